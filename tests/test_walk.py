"""A newcomer's way from the README and docs/first_audit.md to a verdict on a file of their own.

Each obstacle on it is a test: separators, texts for missing values, yes and no, labels that are
missing, a column called Age, dates. The page shows what the commands print.
"""

import random
import re
import shlex
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.cli.demo import untidy_loans

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WALK = (ROOT / "docs" / "first_audit.md").read_text(encoding="utf-8")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").write_text(untidy_loans())
    return tmp_path


def run(command):
    """Run a command as the page shows it, or as `init` proposes it."""
    name, *arguments = shlex.split(command)
    assert name == "fairaudit"
    return CliRunner().invoke(main, arguments)


def commands():
    """Return the commands of the page, each with the output that is shown below it."""
    found = []
    for block in re.findall(r"((?:    [^\n]*\n|\n(?=    ))+)", WALK):
        for line in block.splitlines():
            if line.startswith("    $ "):
                found.append((line.removeprefix("    $ "), []))
            elif found:
                found[-1][1].append(line.strip())
    return [(command, " ".join(lines).split()) for command, lines in found]


def test_the_page_leads_to_a_verdict(tmp_path, monkeypatch):
    """Run every command in its order, in an empty folder; dots stand for omitted output."""
    monkeypatch.chdir(tmp_path)
    walk = commands()
    assert [shlex.split(command)[1] for command, _ in walk] == ["demo", "init", "audit"]
    start = time.monotonic()
    for command, output in walk:
        found = run(command)
        printed = found.stdout.split()
        place = 0
        # The parts between dots follow each other; the first is the start and the last the end.
        for part in " ".join(output).split(" ... "):
            assert part in " ".join(printed)[place:], found.output
            place = " ".join(printed).index(part, place) + len(part)
        assert " ".join(printed).startswith(" ".join(output).partition(" ... ")[0]), found.output
        assert place == len(" ".join(printed)), found.output
    assert found.exit_code == 1
    assert found.stdout.startswith("FAIL.")
    assert "to the disadvantage of female" in found.stdout
    assert time.monotonic() - start < 300


def test_the_readme_starts_with_what_a_newcomer_needs():
    """Install, an example with its output and the two commands, in 90 lines."""
    lines = README.splitlines()
    assert len(lines) <= 90
    assert "pip install" in "\n".join(lines[:6])
    assert "fa.permutation_test(" in "\n".join(lines[:20])
    assert README.index("fairaudit init") < README.index("fairaudit audit") < 2_200
    assert "(docs/first_audit.md)" in README


class TestStumbles:
    def test_init_sees_another_separator(self, here):
        found = run("fairaudit init loans.csv --favourable yes")
        assert found.exit_code == 0
        assert "columns are separated by ';', as the first line shows" in found.stdout
        command = found.stdout.splitlines()[-1].strip()
        assert "--delimiter ';'" in command
        assert run(command).exit_code in (0, 1)

    def test_what_init_proposes_is_a_command_that_ends_in_a_verdict(self, here):
        found = run("fairaudit init loans.csv --delimiter ';' --favourable yes")
        assert "sensitive_features: Gender, Age\n" in found.stdout
        assert "y_true: Paid back\n" in found.stdout
        assert "read as missing: ?, NA, n/a\n" in found.stdout
        audit = run(found.stdout.splitlines()[-1].strip())
        assert audit.exit_code == 1, audit.output
        n_missing = untidy_loans().count("; NA;")
        assert f"{1_800 - n_missing:,} of 1,800 rows are kept" in audit.stdout
        assert "above 25 up to 45" in audit.stdout

    def test_of_yes_and_no_the_likely_one_is_taken_and_said(self, here):
        found = run("fairaudit init loans.csv --delimiter ';'")
        assert "favourable: yes (a guess)\n" in found.stdout
        text = (here / "fairaudit.toml").read_text()
        assert "guess from the name and the values: change it if it is wrong.\nfavour" in text
        assert run(found.stdout.splitlines()[-1].strip()).exit_code == 1

    def test_of_two_values_that_say_nothing_one_must_be_said_to_be_favourable(self, here):
        (here / "loans.csv").write_text(untidy_loans().replace("yes", "P").replace("no", "Q"))
        found = run("fairaudit init loans.csv --delimiter ';'")
        assert "which value of Decision do people want, P or Q? Set favourable" in found.stdout
        *_, first, second = (line.strip() for line in found.stdout.splitlines())
        assert first == f"{second[:-1]}P"
        assert second.endswith(" --favourable Q")
        assert run(first).stdout.startswith("INCONCLUSIVE")
        assert run(second).exit_code in (0, 1)
        audit = run(first.removesuffix(" --favourable P"))
        assert audit.exit_code == 2
        assert "--favourable is not given and --y-pred holds 'P', 'Q'. Say" in audit.stderr
        text = (here / "fairaudit.toml").read_text()
        assert "no audit without it: choose one.\n# favourable = " in text
        changed = re.sub("# favourable = .*", 'favourable = "P"', text)
        (here / "fairaudit.toml").write_text(changed)
        assert run(first.removesuffix(" --favourable P")).stdout.startswith("INCONCLUSIVE")

    def test_rows_without_a_label_are_left_out_by_a_filter_that_the_error_names(self, here):
        roles = "-s Gender --y-true 'Paid back' --y-pred Decision --favourable yes"
        command = f"fairaudit audit loans.csv --delimiter ';' --missing NA {roles}"
        found = run(command)
        assert found.exit_code == 2
        assert '(--where "not COLUMN is missing")' in found.stderr
        assert run(f"{command} --where 'not `Paid back` is missing'").exit_code == 1

    def test_ages_are_cut_whatever_the_capitals(self, here):
        roles = "-s Age --y-pred Decision --favourable yes"
        found = run(f"fairaudit audit loans.csv --delimiter ';' --missing NA {roles}")
        assert "up to 25" in found.stdout
        assert "3 comparisons of pairs of groups" in found.stdout

    def test_missing_texts_that_are_named_are_the_only_ones(self, here):
        found = run("fairaudit init loans.csv --delimiter ';' --missing NA --favourable yes")
        assert "read as missing" not in found.stdout
        assert "--missing NA --where" in found.stdout


class TestFourOutputs:
    """A manager reads the first lines alone: what a verdict means, and what it does not."""

    def first(self, n, gap, lift=0.0, seed=1):
        draw = random.Random(seed)
        sex = [draw.choice("fm") for _ in range(n)]
        label = [draw.random() < 0.6 for _ in sex]
        decided = [draw.random() < 0.7 - gap * (name == "f") + lift for name in sex]
        found = fa.audit(label, decided, sensitive_features={"sex": sex}, rng=1)
        first, *rest = found.summary().splitlines()
        asked = len(list(found.request.lines(found.n_rows)))
        return found.verdict, [first, *rest[asked:]], str(found)

    def test_fail(self):
        verdict, lines, _ = self.first(4_000, 0.3)
        assert verdict == "fail"
        assert lines[0].startswith("FAIL. 4,000 rows; ")
        assert "to the disadvantage of f." in lines[1]
        assert lines[2] == "A FAIL is evidence of a gap, not of its cause or its legality."

    def test_pass(self):
        verdict, lines, text = self.first(4_000, 0.0)
        assert verdict == "pass"
        assert "Allowing for chance, the largest possible gap is" in lines[1]
        assert lines[-1] == (
            "A PASS holds for the binding metrics and the tested groups, and for nothing else."
        )
        assert not re.search(r"\bfair\b|unbiased|no bias|complian", text)

    def test_inconclusive(self):
        verdict, lines, _ = self.first(300, 0.0, seed=2)
        assert verdict == "inconclusive"
        assert lines[0].startswith("INCONCLUSIVE (not a pass). ")
        assert lines[1] == (
            "These rows do not decide: they show neither a gap beyond its tolerance, nor that "
            "every gap is within it."
        )
        assert "8 of 10 audits would show a PASS of this question" in lines[-1]

    def test_not_measurable(self):
        verdict, lines, _ = self.first(40, 0.0)
        assert verdict == "not_measurable"
        assert lines[0].startswith("NOT MEASURABLE (not a pass). ")
        assert lines[1] == "There is no verdict: 1 of 1 binding questions could not be tested."
        assert "eligible rows, of 30 needed" in lines[-1]

    @pytest.mark.parametrize(("n", "gap"), [(4_000, 0.3), (4_000, 0.0), (300, 0.0)])
    def test_the_table_says_what_its_columns_are(self, n, gap):
        assert '"observed gap" is the gap in these rows of the groups' in self.first(n, gap)[2]


def test_a_report_is_the_command_of_step_2_with_one_option_more(tmp_path, monkeypatch):
    """The page showed a command without the options that its own file needs."""
    monkeypatch.chdir(tmp_path)
    assert "add `-o report.md` to the command of step 2" in WALK
    demo, init, audit = (command for command, _ in commands())
    assert (run(demo).exit_code, run(init).exit_code) == (0, 0)
    assert run(f"{audit} -o report.md").exit_code == 1
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("#")


def test_another_policy_takes_the_place_of_name_and_criteria(here):
    """The comment named an option that ignores the columns of the file."""
    run("fairaudit init loans.csv --favourable yes")
    lines = (here / "fairaudit.toml").read_text(encoding="utf-8").splitlines()
    comment = 'For another policy write a preset, such as preset = "parity", in place of name'
    assert f"# {comment}" in lines
    kept = lines[: lines.index("[[policy.criterion]]")] + lines[lines.index("[roles]") :]
    text = "\n".join('preset = "parity"' if line.startswith("name =") else line for line in kept)
    (here / "fairaudit.toml").write_text(text, encoding="utf-8")
    policy = fa.Policy.load("fairaudit.toml")
    assert (policy.name, policy.favourable) == ("parity", "yes")
