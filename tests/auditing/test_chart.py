"""The picture of an audit: what it draws is what the findings say."""

import json

import pytest

import fairaudit_rs as fa

from .test_audit import audited, people, policy, shares
from .test_binding_lenses import audited as audited_with
from .test_binding_lenses import held
from .test_model_lenses import Book

BOTH = (
    {"metric": "selection_rate", "tolerance": 0.1},
    {"metric": "selection_rate", "ratio": 0.8},
    {"metric": "accuracy", "tolerance": 0.05, "binding": False},
    {"metric": "auc", "tolerance": 0.05, "binding": False},
    {"metric": "calibration_error", "binding": False},
)


@pytest.fixture(scope="module")
def audit():
    """All four lenses, which bind."""
    lenses = [held(lens, 0.05) for lens in ("projection", "influence", "extremes")]
    metric = {"metric": "tpr", "tolerance": 0.05, "binding": False}
    return audited_with(Book(), metric, *lenses, held("individual", 1.2))


def panels(found):
    spec = found.plot().spec
    return [
        (value.get("title", {}).get("text"), value["layer"][0]["encoding"]["x"]["title"],
         value["data"]["values"])
        for value in spec["vconcat"]
    ]  # fmt: skip


class TestWhatIsDrawn:
    def test_numbers_are_those_of_the_findings(self):
        found = audited(people(gap=0.3), policy=policy(*BOTH))
        drawn = {row["question"]: row for _, title, rows in panels(found) for row in rows
                 if not title.startswith("ratio")}  # fmt: skip
        for row in found.rows():
            name = f"{row['metric']} by {row['attribute']}"
            if row["lens"] != "permutation" or row["scale"] != "difference":
                continue
            if name not in drawn:
                # Of what informs, intersections are drawn where they fail.
                assert (row["attribute"], row["binding"]) == ("sex and race", False)
                assert row["verdict"] != "fail"
                continue
            times = 1 if row["metric"] == "auc" else 100
            one = drawn[name]
            assert one["verdict"] == row["verdict"].replace("_", " ")
            assert one["seen"] == times * row["estimate"]
            assert (one["low"], one["high"]) == (times * row["low"], times * row["high"])
            assert one["tolerated"] == times * row["tolerance"]
            assert one["groups"] == f"{row['first']} and {row['second']}"

    def test_what_binds_stands_apart_and_ratios_too(self):
        found = audited(people(gap=0.3), policy=policy(*BOTH))
        titles = [(heading, title) for heading, title, _ in panels(found)]
        ratio = "ratio of the lower to the higher share"
        assert titles[:2] == [("binding", "gap, percentage points"), (None, ratio)]
        assert titles[2] == ("told beside, not binding", "gap, percentage points")
        assert (None, "gap of auc") in titles[3:]
        drawn = [row["question"] for _, _, rows in panels(found) for row in rows]
        assert not any("calibration_error" in name for name in drawn)
        title = found.plot().spec["title"]["text"]
        assert title == 'FAIL: policy "own", 4,000 rows'

    def test_lenses_that_are_held_to_a_tolerance(self, audit):
        drawn = {row["question"]: (title, row) for _, title, rows in panels(audit) for row in rows}
        assert drawn["extremes by sex"][0] == "difference of worst cases"
        assert drawn["individual by sex"][0] == "growth of the loss, times"
        for lens in ("influence", "projection"):
            assert drawn[f"{lens} by sex"][0] == "gap, percentage points"
        [test] = next(finding for finding in audit.others if finding.lens == "influence").tests
        assert drawn["influence by sex"][1]["low"] == 100 * test.least
        projected = drawn["projection by sex"][1]
        assert (projected["low"], projected["high"]) == (None, None)
        assert projected["verdict"] == "fail"

    def test_what_is_not_measurable_has_a_row_without_a_gap(self):
        found = audited(shares({"a": (5, 20), "b": (450, 900)}), policy="parity")
        [row] = [
            row for _, _, rows in panels(found) for row in rows if "selection" in row["question"]
        ]
        assert row["text"] == row["verdict"] == "not measurable"
        assert (row["seen"], row["low"], row["high"]) == (None, None, None)

    def test_one_metric_with_two_references_has_two_rows(self):
        own = policy(
            {"metric": "selection_rate", "tolerance": 0.1},
            {"metric": "selection_rate", "tolerance": 0.2, "reference": "highest"},
        )
        found = audited(shares({"a": (50, 100), "b": (50, 100)}), policy=own)
        [(_, _, rows)] = panels(found)
        assert [row["question"] for row in rows] == [
            "selection_rate by group", "selection_rate by group (2)"
        ]  # fmt: skip
        assert [row["tolerated"] for row in rows] == [10, 20]

    def test_the_legend_has_the_verdicts_that_occur(self):
        spec = audited(shares({"a": (50, 1_000), "b": (500, 1_000)}), policy="parity").plot().spec
        color = spec["vconcat"][0]["layer"][0]["encoding"]["color"]
        assert color["scale"]["domain"] == ["fail", "not measurable"]
        assert len(color["scale"]["range"]) == 2


class TestFiles:
    @pytest.mark.parametrize("name", ["parity", "nyc_ll144", "four_fifths"])
    def test_json_and_pictures(self, name, tmp_path):
        data = shares({"a": (40, 100), "<b>": (80, 100), "c": (3, 4)})
        chart = audited(data, policy=name).plot()
        json.dumps(chart.spec, allow_nan=False)
        chart.save(tmp_path / "audit.json")
        assert json.loads((tmp_path / "audit.json").read_text()) == chart.spec
        pytest.importorskip("vl_convert")
        chart.save(tmp_path / "audit.svg")
        picture = (tmp_path / "audit.svg").read_text()
        words = "nothing is held to a tolerance" if name == "nyc_ll144" else "&lt;b&gt;"
        assert words in picture

    def test_what_came_from_a_dict_draws_the_same(self, audit):
        again = fa.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
        assert again.plot().spec == audit.plot().spec
