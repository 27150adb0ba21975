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
