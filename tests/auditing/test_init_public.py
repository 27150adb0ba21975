"""`fairaudit init` on public files: what it finds, and that the command it prints runs."""

import shlex
import tomllib

import pytest
from click.testing import CliRunner

from fairaudit_rs.cli import main

#: Files with a line of names: their options, the label, its favourable value, the attributes.
FILES = {
    "bank/bank-full.csv.gz": ([], "y", "yes", ["age", "marital"]),
    "default/default_of_credit_card_clients.csv.gz": (
        [], "default payment next month", 0, ["SEX", "AGE", "MARRIAGE"],
    ),
    "student/student-por.csv": ([], "G3", None, ["sex", "age"]),
    "student/student-mat.csv": ([], "G3", None, ["sex", "age"]),
    "compas/compas-scores-two-years.csv.gz": (
        [], "two_year_recid", 0, ["sex", "race", "age_cat"],
    ),
    "meps15/mep1_processed.csv.gz": ([], "Probability", None, ["sex", "race", "AGE"]),
    "meps16/mep2_processed.csv.gz": ([], "Probability", None, ["sex", "race", "AGE"]),
    "adult_proxy/adult_proxy_data.csv.gz": (
        [], "IncomeOver50K", 1, ["Sex", "Age_leq_30", "Married", "Immigrant"],
    ),
}  # fmt: skip
#: Files without one, and what separates their columns.
NAMELESS = {
    "adult/adult.data.gz": (",", 15),
    "german/german.data": (" ", 21),
    "heart/processed.cleveland.data": (",", 14),
    "drug/drug_consumption.data": (",", 32),
    "arrhythmia/arrhythmia.data": (",", 280),
}
GERMAN = (
    "status,duration,credit_history,purpose,credit_amount,savings,employment,installment_rate,"
    "personal_status,other_debtors,residence_since,property,age,other_installment_plans,housing,"
    "existing_credits,job,num_dependents,telephone,foreign_worker,credit"
)


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_labels_and_attributes_are_found_and_the_command_runs(name, here, audit_data):
    options, label, favourable, attributes = FILES[name]
    found = run("init", audit_data / name, *options)
    assert found.exit_code == 0, found.output
    content = tomllib.loads((here / "fairaudit.toml").read_text())
    assert content["roles"]["sensitive_features"] == attributes
    assert content["policy"].get("favourable") == favourable
    assert f"  {label}: " in found.stdout
    command = shlex.split(found.stdout.splitlines()[-1])
    if label == "G3":
        assert "y_pred" not in content["roles"]
        assert command[-2:] == ["--cut", "G3=10"]
    else:
        assert content["roles"]["y_pred"] == label
    # Without a policy of its own the audit would stop for lack of decisions.
    audit = run(*command[1:], "--seed", "1", "--evidence", "none")
    assert audit.exit_code in (0, 1), audit.output
    assert audit.stdout.startswith(("PASS", "FAIL", "INCONCLUSIVE"))


@pytest.mark.parametrize("name", NAMELESS)
def test_files_without_a_line_of_names(name, here, audit_data):
    delimiter, n_columns = NAMELESS[name]
    found = run("init", audit_data / name, "--delimiter", delimiter)
    assert found.exit_code == 2
    assert "seems to have no line of names: its first line holds values" in found.stderr
    assert f"Name its {n_columns} columns with --columns a,b,c" in found.stderr
    assert not list(here.iterdir())


def test_columns_that_are_named_end_in_a_verdict(here, audit_data):
    given = (audit_data / "german/german.data", "--delimiter", " ", "--columns", GERMAN)
    found = run("init", *given)
    assert found.exit_code == 0, found.output
    assert "y_pred: credit\n" in found.stdout
    assert "  credit: 1 700, 2 300\n" in found.stdout
    for line in found.stdout.splitlines()[-2:]:
        audit = run(*shlex.split(line)[1:], "--seed", "1", "--evidence", "none")
        assert audit.exit_code in (0, 1), audit.output
    audit = run(
        *("audit", *given, "-s", "personal_status", "--y-pred", "credit", "--favourable", "1"),
        *("--preset", "parity", "--seed", "1"),
    )
    assert audit.exit_code in (0, 1), audit.output
    assert "1,000 rows" in audit.stdout


def test_a_comment_above_the_table(here, audit_data):
    given = (audit_data / "adult/adult.test.gz", "--delimiter", ",")
    assert "Skip lines above the table with --skip-lines 1" in run("init", *given).stderr
    assert "has no line of names" not in run("init", *given, "--skip-lines", 1).stdout
    assert "Name its 15 columns" in run("init", *given, "--skip-lines", 1).stderr
