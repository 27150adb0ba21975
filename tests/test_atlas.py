"""The judgements of the validity atlas, on counts that are made up."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

BENCHES = Path(__file__).resolve().parents[1] / "benches" / "python"


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of the benches, and forgets it and what it imports."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHES))
    yield importlib.import_module
    for name in set(sys.modules) - known:
        if str(BENCHES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def rows(metric, sizes, audits=2_000):
    return [{"metric": metric, "size": size, "audits": audits} for size in sizes]


def test_a_small_error_in_every_row_is_told(bench):
    """Each row lies in its band; all rows of Spearman together (the atlas had .066 to .073)."""
    tools = bench("atlas_tools")
    low, high = tools.band(2_000)
    spearman = rows("spearman", (0.066, 0.069, 0.073))
    assert all(low <= row["size"] <= high for row in spearman)
    fair = stats.binom(2_000, 0.05).rvs(60, random_state=np.random.default_rng(1)) / 2_000
    entries = [*spearman, *rows("pearson", fair), *rows("exact", [0.02] * 9)]
    assert tools.pooled_too_often(entries) == {"spearman": pytest.approx(0.0693, abs=1e-4)}


def test_new_designs_make_data_that_can_be_audited(bench):
    """Each design once, fair and unfair; equal means of skewed errors."""
    atlas, page = bench("atlas_designs"), bench("atlas")
    assert {scenario.design for scenario in atlas.scenarios()} == set(atlas.DESIGNS)
    assert set(page.TITLES) == set(atlas.DESIGNS)
    assert len({scenario.key for scenario in atlas.scenarios()}) == len(list(atlas.scenarios()))
    seen = {}
    for scenario in atlas.scenarios():
        if scenario.n == 500:
            seen.setdefault((scenario.design, scenario.metric in atlas.ERRORS), scenario)
    for (design, _), scenario in seen.items():
        for gap in (0.0, atlas.GAP):
            columns = atlas.Maker(scenario, gap).rows(np.random.default_rng(1))
            given = page.arguments(columns, scenario)
            assert ("sample_weight" in given) == ("weights" in design)
            assert ("clusters" in given) == (design in atlas.SHARED)
            assert ("strata" in given) == (design in atlas.STRATIFIED)
            if design in atlas.UNEQUAL:
                assert np.mean(columns["group"] == 0) == pytest.approx(0.02)
    for metric in atlas.ERRORS:
        few, many = atlas.error_shapes(metric, 0.0, skewed=True)
        assert stats.beta(*few).stats("s") > 2 * stats.beta(*many).stats("s")


def test_rows_of_one_metric_go_where_the_order_has_them(bench):
    """Twice is once; what came later is told, and rows that reject too often with it."""
    page = bench("atlas")
    lines = [
        "- 388 scenarios.", "", "### Rows", "", *page.table([]),
        "| auc | 200 | 0.5 / 0.5 | 4.7 |", "| f1 | 2,000 | 0.5 / 0.5 | 5.0 |", "", "end",
    ]  # fmt: skip
    entry = {
        "metric": "brier_score", "design": "plain", "n": 200, "base_rates": (0.5, 0.2),
        "audits": 2_000, "size": 0.05, "size_at_1": 0.01, "withheld": 0.0, "naive": None,
        "coverage": 0.95, "n_intervals": 2_000, "studentized": None, "percentile": None, "power": 1,
    }  # fmt: skip
    other = entry | {"n": 2_000, "base_rates": (0.5, 0.5), "size": 0.09}
    found = page.with_rows(lines, [other, entry])
    assert [page.place_of(row)[:2] for row in found[7:11]] == [
        ("auc", 200), ("brier_score", 200), ("brier_score", 2_000), ("f1", 2_000)
    ]  # fmt: skip
    assert "2 scenarios; in 1 the test rejects" in found[1]
    assert "**9.0**" in found[9]
    assert found[11:] == ["", "end"]
    assert page.with_rows(found, [other, entry]) == found
