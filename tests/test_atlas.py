"""The judgements of the validity atlas, on counts that are made up."""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa

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
    """Each row lies in its band; all rows of Spearman together (the atlas had 0.066 to 0.073)."""
    tools = bench("atlas_tools")
    low, high = tools.band(2_000)
    spearman = rows("spearman", (0.066, 0.069, 0.073))
    assert all(low <= row["size"] <= high for row in spearman)
    fair = stats.binom(2_000, 0.05).rvs(60, random_state=np.random.default_rng(1)) / 2_000
    entries = [*spearman, *rows("pearson", fair), *rows("exact", [0.02] * 9)]
    assert tools.pooled_too_often(entries) == {"spearman": pytest.approx(0.0693, abs=1e-4)}


def numbers(text):
    """Return the numbers of a text, with a leading zero."""
    return set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", re.sub(r"(?<!\d)\.(?=\d)", "0.", text)))


def test_validity_quotes_the_atlas():
    """Each percentage and decimal of a section is on the page of the atlas that it links to."""
    docs = Path(__file__).resolve().parents[1] / "docs"
    sections = re.split(r"^## ", (docs / "validity.md").read_text("utf-8"), flags=re.MULTILINE)
    linked = 0
    for section in sections:
        page = re.match(r"[^\n]*\n\n\[[^]]*\]\((atlas/\w+\.md)\)", section)
        if page:
            known = numbers((docs / page[1]).read_text("utf-8"))
            quoted = {number for number in numbers(section) if "." in number or "," in number}
            assert not quoted - known, page[1]
            linked += 1
    assert linked == 8


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


# -- audits ------------------------------------------------------------------------------------


def kept(entry):
    """An entry as it is read again."""
    return json.loads(json.dumps(entry))


def made_up(scenarios, audits=1_000):
    """Entries in which no rule ever errs."""
    measured = {}
    for scenario in scenarios:
        entry = {"key": scenario.key, "audits": audits, "counts": {}}
        if hasattr(scenario, "counted"):
            entry["counts"] = dict.fromkeys(scenario.counted, 0)
        elif "family" in scenario.key:
            entry["counts"] = dict.fromkeys(("fail", "pass", "unadjusted", "point", "delta"), 0)
            entry |= {"pairs": 50.0, "passes": {"auc by a": 0}, "quiet": {"auc by a": 0}}
        measured[scenario.key] = entry
    return measured


def test_gaps_of_the_family_are_those_of_its_people(bench):
    families = bench("atlas_audit_families")
    people = families.people(np.random.default_rng(1), 400_000, 1)
    for attribute, groups in (("a", "xy"), ("b", "xyz")):
        for place, group in enumerate(groups):
            part = people["sensitive_features"][attribute] == group
            label, decision, score = (
                people[name][part] for name in ("y_true", "y_pred", "y_score")
            )
            known = families.truth(1, attribute, place)
            seen = {
                "selection_rate": decision.mean(),
                "true_positive_rate": decision[label == 1].mean(),
                "positive_predictive_value": label[decision == 1].mean(),
                "negative_predictive_value": 1 - label[decision == 0].mean(),
                "accuracy": (label == decision).mean(),
                "mean_prediction": score.mean(),
                "brier_score": ((score - label) ** 2).mean(),
                "auc": stats.mannwhitneyu(score[label == 1], score[label == 0]).statistic
                / (label.sum() * (1 - label).sum()),
            }
            for metric, value in seen.items():
                assert value == pytest.approx(known[metric], abs=0.01), metric
    # Pairs of the same law, and pairs that are as far apart as is tolerated.
    assert families.truth(1, "b", 1) == pytest.approx(families.truth(1, "b", 2))
    assert min(families.gap_of(metric, "b") for metric in families.METRICS) > 0.005


def test_each_audit_of_the_atlas_is_made(bench, monkeypatch):
    """Two audits of the least size of everything, each with all its counts."""
    families, pairs, rates, clusters, policies, lenses, tails, rules = (
        bench(f"atlas_audit_{name}")
        for name in (
            "families", "pairs", "rates", "clusters", "policies", "lenses", "tails", "rules"
        )
    )  # fmt: skip
    for name in ("AUDITS_OF_REFERENCES", "AUDITS_OF_ROWS"):
        monkeypatch.setattr(policies, name, 2)
    for module in (rates, clusters, lenses, tails, rules):
        monkeypatch.setattr(module, "AUDITS", 2)
    for name in ("AUDITS_OF_LABELS", "AUDITS_OF_ROWS"):
        monkeypatch.setattr(rates, name, 2)
    monkeypatch.setattr(tails, "AUDITS_OF_PERSONS", 2)
    for name in ("AUDITS_GIVEN", "AUDITS_OF_PROFILES"):
        monkeypatch.setattr(lenses, name, 2)
    for name in ("AUDITS", "AUDITS_OF_PASSES"):
        monkeypatch.setattr(families, name, 2)
    for name in ("AUDITS", "AUDITS_OF_RATES", "AUDITS_BY_REPLICATES", "AUDITS_OF_FUNCTIONS"):
        monkeypatch.setattr(pairs, name, 2)
    everything = bench("atlas_audit").scenarios()
    assert len({value.key for value in everything}) == len(everything)
    for value in [families.AtTheTolerance(500), families.WithoutGaps("TPR, 0.10", 500)]:
        entry = kept(value.measure())
        assert entry["audits"] == 2
        assert all(0 <= count <= 2 for count in entry["counts"].values())
    growth = lenses.AtTheGrowth("4 features, sex strongly in X", given=False)
    of_tails = (tails.PersonsProjected(5), tails.UnlikeTails(0.02, (400, 400), 0.1))
    others = (pairs, rates, clusters, policies, rules)
    made = (scenario for part in others for scenario in part.scenarios())
    for tail in (*made, lenses.NoStandIn(3), growth, *of_tails):
        if getattr(tail, "law", None) != "lognormal":
            entry = kept(tail.measure())
            assert set(entry["counts"]) == set(tail.counted)
            counts = np.concatenate([np.ravel(n) for n in entry["counts"].values()])
            assert counts.min() >= 0
            assert counts.max() <= entry["audits"] <= 12


def test_gaps_of_designs_are_at_the_tolerance(bench, monkeypatch):
    """Of many rows: as the design has it 0.1, and more when it is left out of account."""
    pairs = bench("atlas_audit_pairs")
    monkeypatch.setattr(pairs.OfDesign, "rows", (60_000, 60_000))
    for design in ("strata", "sample_weight", "clusters"):
        for sign in (1, -1):
            columns, given = pairs.OfDesign(design, sign).columns(np.random.default_rng(1))
            decision = columns["y_pred"]
            small = columns["sensitive_features"]["g"] == "a"
            weight = given.get("sample_weight", np.ones(len(small)))
            stratum = given.get("strata", np.zeros(len(small)))
            gaps = []
            for code in np.unique(stratum):
                shares = [
                    np.average(decision[part], weights=weight[part])
                    for part in ((stratum == code) & side for side in (small, ~small))
                ]
                gaps.append(shares[0] - shares[1])
            assert gaps == pytest.approx([0.1 * sign] * len(gaps), abs=0.02)
            crude = abs(decision[small].mean() - decision[~small].mean())
            assert (crude > 0.12) == (design != "clusters")
    monkeypatch.setattr(pairs.InClusters, "clusters", (8_000, 8_000))
    for metric in ("f1", "auc"):
        one = pairs.InClusters(metric, -1)
        columns = one.columns(np.random.default_rng(2))
        found = fa.intervals(**columns, metric=metric, method="delta")
        assert abs(found.estimate) == pytest.approx(one.true_gap, abs=0.01)


def test_audits_that_err_too_often_are_told(bench):
    """Where a gap is at its tolerance, and nowhere else."""
    atlas = bench("atlas_audit")
    measured = made_up(atlas.scenarios())
    assert atlas.too_many(measured) == []
    by_kind = {type(scenario).__name__: scenario for scenario in atlas.scenarios()}

    def told(kind, word, count):
        entry = measured[by_kind[kind].key]
        kept, entry["counts"][word] = entry["counts"].get(word, 0), count
        found = {(value, name) for value, name, *_ in atlas.too_many(measured)}
        entry["counts"][word] = kept
        return found == {(by_kind[kind], word)}

    for kind in ("AtTheTolerance", "TenRates", "OnePair", "FourFifths", "OfDesign", "Function"):
        assert told(kind, "fail", 100)
        assert not told(kind, "fail", 60)
    assert told("FourFifths", "pass", 100)
    assert told("EqualRates", "fail", 100)
    assert told("WithoutGaps", "fail", 100)
    assert not told("WithoutGaps", "pass", 1_000)
    assert told("NoStandIn", "found", 100)
    assert not told("NoStandIn", "without the rule", 1_000)
    assert told("PersonsProjected", "fail", 100)
    assert told("UnlikeTails", "fail", 100)
    assert not told("UnlikeTails", "fitted", 300)
    assert told("RaisedFloor", "pass", 100)
    assert not told("RaisedFloor", "fail", 1_000)
    # Each level has a band of its own.
    assert told("LowRates", "fail", [50, 10, 10])
    assert told("LowRates", "fail", [50, 40, 1])
    assert not told("LowRates", "fail", [60, 20, 4])
    assert atlas.share([60, 40, 10], 1_000) == "6.0 / **4.00** / **1.00**"
    # Rules that do not hold are no errors of ours, and are bold beside them.
    assert not told("TenRates", "delta", 1_000)
    measured[by_kind["TenRates"].key]["counts"]["delta"] = 480
    assert atlas.caught(measured)["delta"][0] == 1
    assert atlas.caught(measured)["ignored"][0] == 0
    lines = list(atlas.page(measured))
    assert "| 100 | 0.1 | 0.0 | 0.0 | **48.0** |" in lines
    assert any("0 of their error shares are above the band" in line for line in lines)


def test_tables_that_are_not_measured_in_full_stay(bench):
    atlas = bench("atlas_audit")
    measured = made_up(atlas.scenarios())
    full = list(atlas.page(measured))
    for scenario in atlas.scenarios():
        if type(scenario).__name__ == "TenRates":
            del measured[scenario.key]
            break
    before = ["### Ten rates of few rows", "", "as it was", "", *full]
    part = list(atlas.page(measured, before))
    assert part[part.index("### Ten rates of few rows") + 2] == "as it was"
    assert any(line.startswith("- 1 scenarios are not measured") for line in part)
    headings = [line for line in full if line.startswith("### ")]
    assert [line for line in part if line.startswith("### ")] == headings
    assert atlas.kept([], "### Ten rates of few rows") == []


def test_one_audit_is_counted_at_all_levels(bench):
    """P-values, answers by level, and rules without a level; the words of an audit are p-values."""
    tools, pairs = bench("atlas_tools"), bench("atlas_audit_pairs")
    audits = [
        {"ours": 0.0005, "old": [True, True, False], "point": True},
        {"ours": 0.02, "old": [True, False, False], "point": np.False_},
        {"ours": np.float64(0.01), "old": [False] * 3, "point": True},
    ]
    assert tools.counted(audits, tools.LEVELS) == {
        "ours": [3, 2, 1],
        "old": [2, 1, 0],
        "point": [2],
    }
    for hits, word in (((40, 10), "fail"), ((25, 25), "pass"), ((30, 20), None)):
        for rows in (50, 500):
            columns = pairs.decisions(*((rows * x // 50, rows) for x in hits))
            found = pairs.audited([("selection_rate", {"tolerance": 0.1})], **columns)
            assert {name for name, p in pairs.words(found).items() if p <= 0.05} == (
                {found.verdict} & {"fail", "pass"}
            )
        if word:
            assert pairs.words(found)[word] < 0.001


def test_closed_forms_of_the_atlas_are_compared_with_audits(bench):
    """A p-value that is not that of the library stops the atlas."""
    rates = bench("atlas_audit_rates")
    check = rates.check
    check({"fail": 0.03, "pass": 0.6}, {"fail": 0.03, "pass": 1.0})
    with pytest.raises(AssertionError, match=r"p of a fail is 0\.04 here, 0\.03 in the library"):
        check({"fail": 0.04, "pass": 0.6}, {"fail": 0.03, "pass": 1.0})
    with pytest.raises(AssertionError, match=r"p of a pass is 0\.04 here"):
        check({"fail": 0.6, "pass": 0.04}, {"fail": 1.0, "pass": 1.0})


# -- two models --------------------------------------------------------------------------------


def test_statistics_of_many_tables_are_those_of_the_library(bench):
    rates = bench("atlas_compare_rates")
    rng = np.random.default_rng(1)
    for law in (*rates.laws()[::9], rates.laws()[-1]):
        for rows in ((20, 200), (40, 40)):
            first, second = rates.drawn(rng, rows, law, 20)
            both = rates.by_rule(*rates.statistics(first, second))["both"]
            rates.check(first, second, both)
    with pytest.raises(AssertionError, match="in the library"):
        rates.check(first, second, both + 1e-3)


def test_what_rows_add_makes_the_change(bench):
    """Sums of what rows add, and variances of tables, are those of the library."""
    others = bench("atlas_compare_others")
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 300)
    scores = [np.clip(0.3 * label + 0.7 * rng.random(300), 0, 1) for _ in range(2)]
    group = np.repeat(["a", "b"], [100, 200])
    for metric in ("auc", "brier_score"):
        parts = [
            others.added(metric, label[group == g], [score[group == g] for score in scores])
            for g in "ab"
        ]
        sums = [sum(part.mean() for part in of) for of in parts]
        found = fa.compare_models(
            label, *scores, sensitive_features=group, metric=metric, rng=1, n_resamples=199
        ).comparisons[0]
        assert sums[0] - sums[1] == pytest.approx(found.change)
        normal, welch = others.of_means(parts)
        assert normal < welch < 1
    # Where many rows change, one more in each cell plays no role.
    tables = [rng.multinomial(10**6, others.LAWS["equal models"][0]) for _ in range(2)]
    for metric in others.FRACTIONS:
        problem = others.PairedCellProblem(
            metric=fa.metrics.get(metric), keys=(("a",), ("b",)), n_rows=(10**6, 10**6),
            counts=np.stack(tables).reshape(2, 2, 2, 2), has_labels=True,
        )  # fmt: skip
        ours = problem.tested((0, 1), 0.95)[0].two_sided
        assert others.plain_pvalue(metric, tables) == pytest.approx(ours, rel=1e-3)


def test_each_comparison_of_the_atlas_is_made(bench, monkeypatch):
    """Few audits of everything, and a page of them; a test that rejects too often is bold."""
    rates, others, atlas = (
        bench(name) for name in ("atlas_compare_rates", "atlas_compare_others", "atlas_compare")
    )
    for module, name in (
        (rates, "AUDITS"), (rates, "AUDITS_OF_INTERVALS"), (rates, "CHECKED"),
        (others, "AUDITS_OF_COUNTS"), (others, "AUDITS_OF_SCORES"), (others, "AUDITS_OF_SIDES"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(others, "N_RESAMPLES", 19)
    everything = atlas.scenarios()
    assert len({value.key for value in everything}) == len(everything)
    kinds = {type(value): value for value in everything}
    measured = {}
    for value in everything:
        alike = kinds[type(value)]
        if alike.key not in measured:
            measured[alike.key] = kept(alike.measure())
        measured[value.key] = measured[alike.key] | {"key": value.key}
    assert {entry["audits"] for entry in measured.values()} <= {1, 2}
    assert any(line.startswith("| f1 | 40 + 40 |") for line in atlas.page(measured))
    assert atlas.share(70, 1_000, 0.01) == "**7.0**"
    assert atlas.share(10, 1_000, 0.01) == "1.0"
    assert atlas.share(2, 1_000, 0.001) == "0.20"
