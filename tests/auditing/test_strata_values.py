"""Stratified audits: values, direction and size of a gap come from the same strata."""

import json

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference import homogeneity
from fairaudit_rs.inference.homogeneity import breslow_day, permuted_homogeneity
from fairaudit_rs.inference.mantel_haenszel import keep_shared_strata
from tests.reference import standardised

#: StratifiedTable(tables).test_equal_odds(adjust=True) of statsmodels 0.14 and riskratio_pooled:
#: hits and rows of two groups by stratum, statistic, p, ratio.
STATSMODELS = [
    ([[1260, 180], [20, 540]], [[1800, 200], [200, 1800]], 0.0, 1.0, 0.6666666666666666),
    ([[30, 45], [12, 60], [80, 40]], [[100, 120], [40, 110], [150, 160]],
     31.741231481907718, 1.2807936311531876e-07, 1.1907309127213492),
    ([[12, 5], [33, 20], [7, 7], [50, 61], [3, 9]],
     [[60, 25], [80, 44], [30, 12], [70, 140], [12, 90]],
     17.706273282191077, 0.001408335461268062, 1.2427259031695863),
]  # fmt: skip


def departments(sizes=((1_800, 0.7), (200, 0.9), (200, 0.1), (1_800, 0.3)), label=1):
    """Men and women in A, then in B: within both, women are approved more often by 20 points."""
    who = [("A", "man"), ("A", "woman"), ("B", "man"), ("B", "woman")]
    dept, sex, hit = [], [], []
    for (d, s), (n, rate) in zip(who, sizes, strict=True):
        k = round(n * rate)
        dept += [d] * n
        sex += [s] * n
        hit += [1] * k + [0] * (n - k)
    return {
        "y_true": np.full(len(hit), label),
        "y_pred": np.array(hit),
        "sensitive_features": {"sex": np.array(sex)},
        "strata": {"dept": np.array(dept)},
    }


def audited(data, policy, **options):
    return fa.audit(**{**data, "rng": 1, "policy": policy, **options})


class TestWhoIsWorseOff:
    def test_values_come_from_the_strata(self):
        data = departments()
        text = audited({**data, "y_true": None}, "parity").summary()
        assert "40.0 % for man (2,000 eligible rows) and 60.0 % for woman (2,000)" in text
        assert "compared within dept" in text
        assert "(without strata the order is reversed: man 64.0 %, woman 36.0 %)" in text
        assert "The gap of 20.0 points" in text
        assert "to the disadvantage of man." in text
        assert "36.0 % for woman" not in text

    @pytest.mark.parametrize("metric", ["tpr", "fnr", "selection_rate", "accuracy"])
    @pytest.mark.parametrize("reference", [None, "highest", "woman"])
    def test_values_differ_by_the_gap(self, metric, reference):
        policy = fa.Policy(
            name="own",
            criteria=[
                fa.Criterion(
                    metric=metric,
                    tolerance=0.05,
                    reference=reference,
                    attributes=["sex"] if reference == "woman" else None,
                )
            ],
        )
        audit = audited(departments(), policy)
        row = audit.to_frame("pairs").row(0, named=True)
        assert abs(row["first_value"] - row["second_value"]) == pytest.approx(row["estimate"])
        assert row["estimate"] == pytest.approx(0.2)
        better = "man" if metric == "fnr" else "woman"
        assert {row["first"]: row["first_value"], row["second"]: row["second_value"]}[
            better
        ] == pytest.approx(0.6)

    def test_mirrored_questions(self):
        """FNR has the gap of TPR: what is left of its values within strata."""
        policy = fa.Policy(
            name="own",
            criteria=[fa.Criterion(metric=metric, tolerance=0.05) for metric in ("tpr", "fnr")],
        )
        first, second = audited(departments(), policy).questions
        assert second.same_as == "true_positive_rate"
        test, other = first.pairs[0].test, second.pairs[0].test
        assert test.first.group == other.second.group
        assert other.first_value == pytest.approx(1 - test.second_value)
        assert other.first_value - other.second_value == pytest.approx(test.estimate)

    def test_the_highest_group_is_the_highest_within_strata(self):
        """Crude values name man; within strata woman is the reference of all."""
        policy = fa.Policy(
            name="own", criteria=[fa.Criterion(metric="tpr", tolerance=0.05, reference="highest")]
        )
        data = departments()
        more = departments(((100, 0.4), (10, 0.9), (50, 0.4), (50, 0.3)))
        data["sensitive_features"] = {
            "sex": np.concatenate([data["sensitive_features"]["sex"], np.full(210, "other")])
        }
        data["strata"] = {"dept": np.concatenate([data["strata"]["dept"], more["strata"]["dept"]])}
        for name in ("y_true", "y_pred"):
            data[name] = np.concatenate([data[name], more[name]])
        [question] = audited(data, policy).questions
        # All other pairs can pass and cannot fail: their p of a fail is 1.
        compared = [pair for pair in question.pairs if pair.test.p_fail < 1]
        assert {"woman"} == set.intersection(
            *({group.group for group in pair.test.groups} for pair in compared)
        )

    def test_of_ratios_of_0_the_largest_difference_is_shown(self):
        """The table had b, 2 % selected, as the highest group beside c with 50 %."""
        group = np.tile(np.repeat(["a", "b", "c"], 200), 2)
        hit = np.tile(np.repeat([0, 0, 1, 0, 1], [200, 196, 4, 100, 100]), 2)
        found = audited(
            {
                "y_pred": hit,
                "sensitive_features": {"g": group},
                "strata": np.repeat(["first", "second"], 600),
            },
            "four_fifths",
            pos_label=1,
        )
        one = found.questions[0]
        assert [pair.test.estimate for pair in one.pairs].count(0) == 2
        assert [(group.group, value) for group, value in one.extremes] == [("a", 0.0), ("c", 0.5)]

    def test_cells_that_hold_strata(self):
        data = departments()
        cells = fa.tabulate(**data)
        of_cells = audited({"data": cells}, "opportunity")
        of_rows = audited(data, "opportunity")
        assert of_cells.to_frame("pairs").equals(of_rows.to_frame("pairs"))
        assert "to the disadvantage of man." in of_cells.summary()

    @pytest.mark.parametrize("design", ["plain", "weights", "clusters"])
    @pytest.mark.parametrize("metric", ["selection_rate", "ppv", "mean_residual", "brier"])
    def test_reference(self, design, metric):
        """Random rows: values, share outside and gap equal the loops of the reference."""
        rng = np.random.default_rng(3)
        n = 900
        group, stratum = rng.choice(["a", "b"], n, p=[0.6, 0.4]), rng.choice(list("uvwx"), n)
        group[stratum == "x"] = "a"
        y, p, score = rng.random(n) < 0.5, rng.random(n) < 0.4, rng.random(n)
        weight = rng.exponential(size=n) if design == "weights" else np.ones(n)
        given = {"sample_weight": weight} if design == "weights" else {}
        if design == "clusters":
            given["clusters"] = [
                f"{a}{b}{i % 15}" for i, (a, b) in enumerate(zip(group, stratum, strict=True))
            ]
        above, below = {
            "selection_rate": (p, np.ones(n)),
            "ppv": (p & y, p),
            "mean_residual": (y - score, np.ones(n)),
            "brier": ((y - score) ** 2, np.ones(n)),
        }[metric]
        eligible = below.astype(float) if metric == "ppv" else np.ones(n)
        wanted = standardised.ratio(above, below, group, stratum, "a", "b", weight)
        inside = np.isin(stratum, [row[0] for row in wanted.strata])
        outside = (weight * eligible)[~inside].sum() / (weight * eligible).sum()
        result = fa.permutation_test(
            y.astype(int), p.astype(int), y_score=score, sensitive_features=group, strata=stratum,
            metric=metric, rng=1, n_resamples=99, **given
        )  # fmt: skip
        [within] = result.within
        found = within.first_value, within.second_value, within.share_outside
        assert found == pytest.approx((*wanted.values, outside), abs=1e-12)
        assert found[0] - found[1] == pytest.approx(result.estimate, abs=1e-12)
        assert result.rows()[0]["first_value"] == within.first_value
        assert (within.n_strata, within.n_compared) == (4, 3)

    @pytest.mark.parametrize("metric", ["f1", "mcc", "auc", "balanced_accuracy"])
    @pytest.mark.parametrize("design", ["plain", "weights", "clusters"])
    def test_values_of_other_metrics_differ_by_the_gap(self, metric, design):
        rng = np.random.default_rng(4)
        n = 1_200
        group, stratum = rng.choice(["a", "b"], n), rng.choice(list("uvw"), n)
        y = (rng.random(n) < 0.5).astype(int)
        score = np.clip(0.6 * rng.random(n) + 0.3 * y, 0, 1)
        given = {}
        if design == "weights":
            given["sample_weight"] = rng.exponential(size=n)
        if design == "clusters":
            given["clusters"] = [
                f"{a}{b}{i % 25}" for i, (a, b) in enumerate(zip(group, stratum, strict=True))
            ]
        result = fa.permutation_test(
            y, (score > 0.5).astype(int), y_score=score, sensitive_features=group, strata=stratum,
            metric=metric, rng=1, n_resamples=99, **given
        )  # fmt: skip
        [within] = result.within
        gap = within.first_value - within.second_value
        assert gap == pytest.approx(result.estimate, abs=1e-12)

    def test_people_outside_are_said(self):
        data = departments(((1_800, 0.7), (200, 0.9), (200, 0.1), (0, 0.0)))
        audit = audited({**data, "y_true": None}, "parity")
        within = audit.questions[0].pairs[0].test.within
        assert within.share_outside == pytest.approx(200 / 2_200)
        assert "(without 9.1 % of these people, whose strata hold only one of the groups)" in (
            audit.summary()
        )


class TestCoverage:
    def test_people_of_other_strata_are_not_compared(self):
        """Half of the people are in departments of one sex: that is no pass."""
        dept = np.repeat(["A", "B", "C", "C"], 1_000)
        sex = np.repeat(["m", "f", "m", "f"], 1_000)
        decided = np.concatenate([np.arange(1_000) < n for n in (500, 900, 500, 500)]).astype(int)
        audit = fa.audit(
            y_pred=decided, sensitive_features={"sex": sex}, strata=dept, policy="parity", rng=1
        )
        assert (audit.verdict, audit.exit_code(strict=True)) == ("inconclusive", 3)
        assert audit.questions[0].coverage == pytest.approx(0.5)

    def test_rows_of_dropped_clusters_are_not_compared(self):
        rng = np.random.default_rng(0)
        group, cluster = rng.choice(["a", "b"], 20_000), np.arange(20_000)
        group[:8_000], cluster[:8_000] = np.tile(["a", "b"], 4_000), np.arange(8_000) // 2 + 30_000
        given = {"clusters": cluster, "mixed_clusters": "drop", "policy": "parity", "rng": 1}
        decided = (rng.random(20_000) < 0.5).astype(int)
        for weight in (None, np.full(20_000, 2.0)):
            audit = fa.audit(
                y_pred=decided, sensitive_features={"g": group}, sample_weight=weight, **given
            )
            assert audit.verdict == "inconclusive"
            assert audit.questions[0].coverage == pytest.approx(0.6)
            assert "Excluded: 8,000 rows of clusters in several groups of g." in audit.summary()


class TestOutputs:
    def test_tables(self):
        audit = audited({**departments(), "y_true": None}, "parity")
        frame = audit.to_frame("strata").row(by_predicate=fa_stratum("A"), named=True)
        assert (frame["first"], frame["first_n"], frame["second_n"]) == ("woman", 200, 1_800)
        assert frame["gap"] == pytest.approx(0.2)
        assert frame["homogeneity_test"] == "breslow-day"
        text, page = str(audit), audit.to_markdown()
        assert "dept=A   90.0 % of 200    70.0 % of 1,800  20.0 points  50.0 %" in text
        assert "## Strata: sex, selection\\_rate: woman and man in each stratum" in page
        assert "## Groups (crude values: all rows, without strata)" in page
        assert audit.to_frame("groups")["is_crude"].to_list()[:2] == [True, True]
        assert audit.to_frame("base_rates")["is_crude"].to_list() == [True, True]
        content = audit.to_dict()
        named = [*content["base_rates"], *content["questions"][0]["groups"]]
        assert [value["is_crude"] for value in named] == [True] * 4
        again = fa.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
        assert again == audit
        assert str(again) == text

    def test_results(self):
        data = departments()
        given = {"metric": "selection_rate", "rng": 1}
        given |= {name: data[name] for name in ("y_pred", "sensitive_features", "strata")}
        tested = fa.permutation_test(n_resamples=99, **given)
        assert "within strata: 0.400 for man (2,000 rows) and 0.600 for woman" in tested.summary()
        for result in (tested, fa.intervals(**given), fa.equivalence_test(margin=0.1, **given)):
            assert result.to_frame("strata").height == 2
            assert any("no sign that the odds ratio differs" in n for n in result.warnings)
            assert fa.from_dict(json.loads(json.dumps(result.to_dict()))) == result

    def test_gaps_that_differ_are_said(self):
        data = departments(((900, 0.7), (900, 0.9), (900, 0.5), (900, 0.3)))
        text = str(audited({**data, "y_true": None}, "parity"))
        assert "the odds ratio differs between strata by more than chance explains (Bre" in text


def fa_stratum(name):
    import polars as pl

    return pl.col("stratum") == f"dept={name}"


def cochran_q(parts):
    """Q of the gaps of means: pairs of lists of numbers, by stratum."""
    gaps, weights = [], []
    for first, second in parts:
        gaps.append(first.mean() - second.mean())
        weights.append(1 / sum(value.var(ddof=1) / len(value) for value in (first, second)))
    mean = np.average(gaps, weights=weights)
    return float(np.sum(np.array(weights) * (np.array(gaps) - mean) ** 2))


class TestHomogeneity:
    @pytest.mark.parametrize(("hits", "rows", "statistic", "pvalue", "ratio"), STATSMODELS)
    def test_statsmodels(self, hits, rows, statistic, pvalue, ratio):
        hits, rows = np.array(hits, float), np.array(rows, float)
        found = breslow_day(hits, rows)
        assert found.statistic == pytest.approx(statistic, abs=1e-9)
        assert found.pvalue == pytest.approx(pvalue, rel=1e-9)
        # The ratio of the values within strata is the Mantel-Haenszel ratio.
        means = keep_shared_strata(hits, rows).means
        assert means[0] / means[1] == pytest.approx(ratio, rel=1e-12)

    def test_reference(self):
        rng, n_tested = np.random.default_rng(5), 0
        for _ in range(50):
            rows = rng.integers(5, 80, (6, 2)).astype(float)
            hits = rng.binomial(rows.astype(int), rng.uniform(0.2, 0.8, (6, 2))).astype(float)
            wanted = standardised.tarone(
                np.stack([hits[:, 0], rows[:, 0], hits[:, 1], rows[:, 1]]).T
            )
            found = breslow_day(hits, rows)
            if found.note is None:
                assert (found.statistic, found.pvalue) == pytest.approx(wanted, rel=1e-7)
                n_tested += 1
        assert n_tested > 30

    def test_spread_of_means(self):
        rng = np.random.default_rng(6)
        parts = [(rng.normal(size=60), rng.normal(size=55)) for _ in range(4)]
        values = np.concatenate([v for pair in parts for v in pair])
        second = np.concatenate([np.repeat([False, True], [60, 55]) for _ in range(4)])
        stratum = np.repeat(np.arange(4), 115)
        found = permuted_homogeneity(values, np.ones(len(values)), second, stratum, 1)
        assert found.statistic == pytest.approx(cochran_q(parts))
        assert found.pvalue == pytest.approx(stats.chi2.sf(found.statistic, 3))
        assert found.method == "chi-squared"

    @pytest.mark.parametrize("weighted", [False, True])
    def test_replicates_at_once_are_those_one_by_one(self, weighted, monkeypatch):
        """And the order of the rows plays no part, to the last bit."""
        rng = np.random.default_rng(8)
        below = rng.integers(1, 4, 300) / 2.0 if weighted else np.ones(300)
        above, second = np.round(rng.normal(size=300), 1) * below, rng.random(300) < 0.4
        stratum = rng.choice([0, 2, 5], 300)
        found = permuted_homogeneity(above, below, second, stratum, 1)
        assert found.method == "permutation"
        order = rng.permutation(300)
        rows = [part[order] for part in (above, below, second, stratum)]
        assert permuted_homogeneity(*rows, 1) == found
        monkeypatch.setattr(homogeneity, "_AT_ONCE", 1)
        assert permuted_homogeneity(above, below, second, stratum, 1) == found

    @pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3])
    def test_a_stratum_without_variation_takes_no_part(self, constant):
        """One stratum turned the test off."""
        rng = np.random.default_rng(6)
        parts = [(rng.normal(size=60), rng.normal(size=55)) for _ in range(3)]
        weight = rng.uniform(0.5, 2, 4 * 115)
        parts.insert(1, (np.full(60, constant), np.full(55, constant)))
        values = np.concatenate([v for pair in parts for v in pair])
        second = np.concatenate([np.repeat([False, True], [60, 55]) for _ in range(4)])
        stratum = np.repeat(np.arange(4), 115)
        found = permuted_homogeneity(values, np.ones(len(values)), second, stratum, 1)
        del parts[1]
        assert found.statistic == pytest.approx(cochran_q(parts))
        assert (found.df, found.method) == (2, "chi-squared")
        assert found.note == ("3 of 4 strata are used, as the metric does not vary in the others")
        weighted = permuted_homogeneity(weight * values, weight, second, stratum, 1)
        kept = stratum != 1
        alone = permuted_homogeneity(
            (weight * values)[kept], weight[kept], second[kept], stratum[kept], 1
        )
        assert (weighted.statistic, weighted.pvalue) == (alone.statistic, alone.pvalue)
        assert alone.note is None

    def test_a_stratum_without_variation_in_an_audit(self):
        rng = np.random.default_rng(1)
        group, stratum = rng.choice(["a", "b"], 1_200), np.arange(1_200) % 4
        decided = np.where(stratum == 0, 1, rng.random(1_200) < 0.5).astype(int)
        audit = fa.audit(
            y_pred=decided, sensitive_features={"g": group}, strata={"d": stratum},
            sample_weight=rng.uniform(0.5, 2, 1_200), policy="parity", rng=1, n_resamples=999,
        )  # fmt: skip
        [note] = [note for note in audit.warnings if "no sign that the gap differs" in note]
        assert "3 of 4 strata are used, as the metric does not vary in the others" in note

    def test_nothing_varies(self):
        stratum, second = np.repeat([0, 1, 2], 20), np.tile([False, True], 30)
        values = np.where(stratum == 2, np.arange(60) % 7, 1.0)
        found = permuted_homogeneity(values, np.ones(60), second, stratum, 1)
        assert np.isnan(found.pvalue)
        assert found.note == "the metric varies in fewer than two strata"

    def test_nothing_to_test(self):
        one = breslow_day(np.array([[3.0, 4]]), np.array([[10.0, 10]]))
        assert np.isnan(one.pvalue)
        assert "fewer than two strata" in one.note


@pytest.mark.calibration
class TestHomogeneityLevels:
    def test_permutation_holds_where_the_chi_squared_law_does_not(self):
        """Twenty strata of 4 + 6 skewed values with one gap: Q is far from chi-squared."""
        rng, n_audits, rejected, broken = np.random.default_rng(7), 400, 0, 0
        second = np.tile(np.repeat([False, True], [4, 6]), 20)
        stratum = np.repeat(np.arange(20), 10)
        for _ in range(n_audits):
            values = rng.exponential(size=200) + 0.5 * second + stratum
            found = permuted_homogeneity(values, np.ones(200), second, stratum, 1)
            rejected += found.pvalue <= 0.05
            broken += stats.chi2.sf(found.statistic, 19) <= 0.05
        most = stats.binom.isf(1e-6, n_audits, 0.06)
        assert rejected <= most
        assert broken > 1.5 * most

    def test_strata_without_variation(self):
        """Weighted rates of 10 % in strata of 12 + 12: 58 % of data sets had no test."""
        rng, n_audits, rejected, left_out = np.random.default_rng(1), 60, 0, 0
        second = np.tile(np.repeat([False, True], 12), 10)
        stratum = np.repeat(np.arange(10), 24)
        for _ in range(n_audits):
            weight = rng.uniform(0.5, 2, 240)
            hits = rng.random(240) < 0.1
            found = permuted_homogeneity(weight * hits, weight, second, stratum, 1)
            assert not np.isnan(found.pvalue)
            rejected += found.pvalue <= 0.05
            left_out += found.note is not None
        assert rejected <= stats.binom.isf(1e-6, n_audits, 0.06)
        # With the old rule these had no p-value.
        assert left_out > 0.4 * n_audits


class TestReviews:
    """Defects that three reviews found in the first version of these outputs."""

    def test_a_mirrored_metric_keeps_its_direction_where_crude_values_are_equal(self):
        rows = [("A", "m", 1_000, 300), ("A", "w", 3_000, 1_350), ("B", "m", 1_000, 700),
                ("B", "w", 1_000, 650)]  # fmt: skip
        columns = [([d] * n, [s] * n, np.arange(n) < k) for d, s, n, k in rows]
        dept, sex, hit = (np.concatenate(part) for part in zip(*columns, strict=True))
        policy = fa.Policy(
            name="own",
            criteria=[fa.Criterion(metric=metric, tolerance=0.01) for metric in ("tpr", "fnr")],
        )
        audit = fa.audit(
            np.ones(len(hit), int), hit.astype(int), sensitive_features={"sex": sex}, strata=dept,
            policy=policy, rng=1,
        )  # fmt: skip
        for question in audit.questions:
            [test] = [pair.test for pair in question.pairs]
            (low, low_value), (_, high_value) = test.by_value
            worse = low if question.metric == "true_positive_rate" else test.by_value[1][0]
            assert worse.group == "m"
            assert high_value - low_value == pytest.approx(test.estimate)

    def test_sparse_strata_have_no_test_of_odds_ratios(self):
        rng = np.random.default_rng(1)
        rows = np.full((300, 2), 3.0)
        found = breslow_day(rng.binomial(3, 0.5, (300, 2)).astype(float), rows)
        assert np.isnan(found.pvalue)
        assert "100 % of the cells of all strata expect fewer than 5 people" in found.note

    def test_few_clusters_within_strata_are_guarded(self):
        """40 + 6 clusters: permutations of clusters within strata rejected 34 % at 5 %."""
        rng, rejected = np.random.default_rng(2), 0
        sizes, n = {"a": 40, "b": 6}, 30
        for _ in range(40):
            group = np.repeat([g for g, k in sizes.items() for _ in range(k)], n)
            cluster = np.repeat(np.arange(46), n)
            icc = np.repeat([0.05] * 40 + [0.5] * 6, 1)
            chance = rng.beta(0.05 * (1 / icc - 1), 0.95 * (1 / icc - 1))
            hit = (rng.random(46 * n) < chance[cluster]).astype(int)
            result = fa.permutation_test(
                y_pred=hit, sensitive_features=group, clusters=cluster, strata=cluster % 2,
                metric="selection_rate", n_resamples=199, rng=1,
            )  # fmt: skip
            rejected += result.pvalue <= 0.05
        assert rejected <= 6

    def test_a_rule_of_favourable_decisions_is_never_punitive(self):
        from dataclasses import replace

        with pytest.raises(fa.errors.ArgumentError, match="punitive is True with the rule us_eeoc"):
            replace(fa.Policy.preset("us_eeoc"), punitive=True)


def test_values_without_strata_are_not_crude():
    data = {**departments(), "strata": None}
    content = audited(data, "parity").to_dict()
    assert [rate["is_crude"] for rate in content["base_rates"]] == [False, False]
    assert [group["is_crude"] for group in content["questions"][0]["groups"]] == [False, False]
