"""Which columns `fairaudit init` takes for decisions and labels, and what it asks on a terminal."""

import sys
import tomllib

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from fairaudit_rs.auditing.candidates import columns_of
from fairaudit_rs.auditing.proposal import Proposal, proposed_text
from fairaudit_rs.cli import main
from fairaudit_rs.data.headers import has_names_below, has_no_names


def proposal(**columns):
    frame = pl.DataFrame({"sex": ["f", "m"] * 50, **columns, "rest": np.arange(100)})
    return Proposal.from_columns(columns_of(frame.lazy()))


def two(first, second):
    return [first, first, second, second] * 25


@pytest.mark.parametrize(
    ("name", "values", "is_decision", "favourable"),
    [
        ("loan_approved", (0, 1), True, 1),
        ("ApprovalStatus", ("Approved", "Denied"), True, "Approved"),
        ("admit", (0, 1), True, 1),
        ("hired", ("no", "yes"), True, "yes"),
        ("isSelected", (False, True), True, True),
        ("granted", (0.0, 1.0), True, 1),
        ("decision", ("reject", "accept"), True, "accept"),
        ("denied", (0, 1), True, 0),
        ("action", ("hire", "wait"), True, "hire"),
        ("xyz", ("granted", "refused"), True, "granted"),
        ("outcome", (0, 1), False, 1),
        ("target", (-1, 1), False, 1),
        ("label", ("good", "bad"), False, "good"),
        ("y", ("yes", "no"), False, "yes"),
        ("pass", (0, 1), False, 1),
        ("default", ("no", "yes"), False, "no"),
        ("two_year_recid", (0, 1), False, 0),
        ("income", ("<=50K", ">50K"), False, ">50K"),
        ("IncomeOver50K", (-1, 1), False, 1),
        ("label", ("A", "B"), False, None),
        ("class", (1, 2), False, None),
    ],
)
def test_names_and_values(name, values, is_decision, favourable):
    found = proposal(**{name: two(*values)})
    assert found.decided is not None
    assert found.decided.name == name
    assert found.decided.is_decision == is_decision
    assert found.favourable() == favourable
    assert found.lacking() is None


@pytest.mark.parametrize("name", ["region", "has_car", "passenger_kind"])
def test_other_columns_are_candidates_and_not_taken(name):
    found = proposal(**{name: two("north", "south")})
    assert [candidate.name for candidate in found.candidates] == [name]
    assert found.decided is None
    assert found.lacking() == "decisions or labels"


def test_labels_beside_decisions():
    both = proposal(approved=two(0, 1), repaid=[0, 1] * 50)
    assert [value.name for value in both.roles["y_true"]] == ["repaid"]
    assert both.opposite is None
    turned = proposal(approved=two(0, 1), default=[0, 1] * 50)
    assert turned.roles["y_true"] == []
    assert turned.opposite is not None
    assert turned.opposite.name == "default"
    same = proposal(predicted_recid=two(0, 1), two_year_recid=[0, 1] * 50)
    assert [value.name for value in same.roles["y_true"]] == ["two_year_recid"]


@pytest.mark.parametrize(
    ("ages", "bands"),
    [([15, 16, 17, 18, 19, 22], "[16, 18]"), ([18, 25, 33, 47, 58, 80], "[25, 45]")],
)
def test_ages_are_cut_where_they_make_groups(ages, bands):
    frame = pl.DataFrame({"age": ages * 20, "y": [0, 1] * 60})
    text = proposed_text("x.csv", ["x"], Proposal.from_columns(columns_of(frame.lazy())), None)
    assert f"bands = {{ age = {bands} }}" in text


@pytest.mark.parametrize(
    ("rows", "none", "below"),
    [
        ([["sex", "y"], ["f", "1"], ["m", "0"]], False, False),
        ([["f", "1"], ["m", "0"], ["f", "0"], ["m", "1"]], True, False),
        ([["sex", "y"], ["f", "1"], ["sex", "y"], ["m", "0"]], False, False),
        ([["", "0", "1"], ["0", "3.5", "4"], ["1", "2.5", "1"]], False, False),
        ([["63.0", "1.0"], ["67.0", "0.0"], ["41.5", "1.0"]], True, False),
        ([["2019", "2020"], ["a", "b"], ["c", "d"]], False, False),
        ([["", "X1", "Y"], ["id", "sex", "y"], ["1", "2", "0"], ["2", "1", "1"]], False, True),
        ([["a"], ["a"]], False, False),
        ([], False, False),
    ],
)
def test_first_lines(rows, none, below):
    assert has_no_names(rows) == none
    assert has_names_below(rows) == below


class TestTerminal:
    @pytest.fixture
    def asked(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys.modules["fairaudit_rs.cli.init"], "_is_terminal", lambda: True)
        pl.DataFrame(
            {
                "sex": ["f", "m"] * 50,
                "region": ["north", "north", "south", "south"] * 25,
                "approved": [0, 1, 1, 0] * 25,
                "offer": ["P", "Q"] * 50,
            }
        ).write_csv("people.csv")

        def ask(*answers):
            return CliRunner().invoke(
                main, ["init", "people.csv"], input="".join(f"{answer}\n" for answer in answers)
            )

        return ask

    def content(self):
        with open("fairaudit.toml", "rb") as file:  # noqa: PTH123
            return tomllib.load(file)

    def test_the_enter_key_takes_the_likeliest(self, asked):
        found = asked("", "", "", "")
        assert found.exit_code == 0, found.output
        assert "  region: north 50, south 50\n" in found.stdout
        assert "(- for none) [approved]" in found.stderr
        assert self.content()["roles"] == {"y_pred": "approved", "sensitive_features": ["sex"]}

    def test_others_are_named(self, asked):
        found = asked("nope", "offer", "", "region, sex", "Q")
        assert found.exit_code == 0, found.output
        assert "'nope' is not among: approved, offer, region" in found.stderr
        content = self.content()
        assert content["roles"] == {"y_pred": "offer", "sensitive_features": ["region", "sex"]}
        assert content["policy"]["favourable"] == "Q"

    def test_none_is_an_error(self, asked):
        found = asked("-", "-", "")
        assert found.exit_code == 2
        assert (
            "people.csv has columns of two values that could be decisions or labels (approved"
            in (found.stderr)
        )

    def test_the_enter_key_proposes_a_column_when_no_name_tells(self, asked):
        """The default was "-", so that the enter key ended in an error."""
        pl.read_csv("people.csv").drop("offer").rename({"approved": "q1"}).with_columns(
            q1=pl.when(pl.col("q1") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
        ).select("region", "q1", "sex").write_csv("people.csv")
        found = asked("", "", "", "")
        assert found.exit_code == 0, found.output
        assert "(- for none) [q1]" in found.stderr
        assert "separated by commas (others: region) [sex]" in found.stderr
        assert self.content()["roles"] == {"y_pred": "q1", "sensitive_features": ["sex"]}

    def test_a_number_does_not_hide_the_labels(self, asked):
        """A column "points" stood before the labels, which were then not found."""
        frame = pl.read_csv("people.csv").drop("offer")
        frame.with_columns(repaid=frame["approved"], points=pl.Series(range(100)) / 90).write_csv(
            "people.csv"
        )
        found = asked("", "", "", "")
        assert found.exit_code == 0, found.output
        assert "y_score: not found (points goes from 0 to 1.1; scores must lie" in found.stdout
        assert self.content()["roles"]["y_true"] == "repaid"
        lines = found.stdout.splitlines()
        assert lines.index("  points: numbers from 0 to 1.1") == 3


def test_columns_whose_names_do_not_tell(tmp_path, monkeypatch):
    """They were listed as the likeliest, and then the command said that none was found."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(
        {"sex": ["f", "m"] * 50, "invited": ["yes", "no"] * 50, "z": [1.0, 2.0, 3.0, 4.0] * 25}
    )
    frame.write_csv("people.csv")
    found = CliRunner().invoke(main, ["init", "people.csv"])
    assert found.exit_code == 2
    assert "(invited), but neither names nor values tell which" in found.stderr
    command = "fairaudit audit people.csv --sensitive sex --y-pred invited"
    assert command in found.stderr
    words = [*command.split()[1:], "--favourable", "yes"]
    assert CliRunner().invoke(main, words).exit_code in (0, 1)


def test_labels_that_no_name_tells_are_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = pl.Series(["yes", "no", "no"] * 40)
    frame = pl.DataFrame({"sex": ["f", "m"] * 60, "stay": answers, "approved": answers})
    frame.write_csv("people.csv")
    found = CliRunner().invoke(main, ["init", "people.csv"])
    assert "y_true: not found (could be: stay; without labels the policy is four_fifths)" in (
        found.stdout
    )
    text = (tmp_path / "fairaudit.toml").read_text()
    assert "# None was found; this could be: stay." in text


def test_a_favourable_value_that_no_row_has(tmp_path, monkeypatch):
    """It was written into the policy, and only the audit refused it."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"sex": ["f", "m"] * 50, "approved": [0, 1, 1, 0] * 25}).write_csv("people.csv")
    found = CliRunner().invoke(main, ["init", "people.csv", "--favourable", "yes"])
    assert found.exit_code == 2
    assert "--favourable is 'yes'; accepted: 0 or 1, the values of approved" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
    assert CliRunner().invoke(main, ["init", "people.csv", "--favourable", "1"]).exit_code == 0
