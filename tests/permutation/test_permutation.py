"""The permutation lens on counts."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..reference import means
from ..reference import permutation as reference

PROPORTIONS = sorted(reference.PROPORTIONS)
OTHERS = sorted(set(reference.METRICS) - set(reference.PROPORTIONS))


def rows_of(table_a, table_b):
    """Labels, decisions and groups of two tables (tp, fp, fn, tn)."""
    labels, decisions = [1, 0, 1, 0], [1, 1, 0, 0]
    y_true = np.concatenate([np.repeat(labels, table) for table in (table_a, table_b)])
    y_pred = np.concatenate([np.repeat(decisions, table) for table in (table_a, table_b)])
    return y_true, y_pred, np.repeat(["a", "b"], [sum(table_a), sum(table_b)])


def random_rows(seed, n=400, groups="ab", selection=0.5):
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < np.where(y_true == 1, selection + 0.2, selection - 0.2)).astype(int)
    return y_true, y_pred, rng.choice(list(groups), n)


def compare(table_a, table_b, metric="tpr", **options):
    y_true, y_pred, group = rows_of(table_a, table_b)
    return fa.permutation_test(
        y_true, y_pred, sensitive_features=group, metric=metric, **{"rng": 1, **options}
    )


class TestArguments:
    def call(self, **changes):
        y_true, y_pred, group = random_rows(0)
        arguments = {
            "y_true": y_true,
            "y_pred": y_pred,
            "sensitive_features": group,
            "metric": "tpr",
            "rng": 0,
        }
        return fa.permutation_test(**(arguments | changes))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"metric": "true_positiv_rate"}, errors.UnknownMetricError, "'true_positive_rate'"),
            ({"metric": 3}, errors.ArgumentTypeError, "metric is 3"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0; accepted"),
            ({"n_resamples": -5}, errors.ArgumentError, "n_resamples is -5"),
            ({"n_resamples": 10**12}, errors.ArgumentError, "n_resamples is 1,000,000,000,000"),
            ({"n_resamples": 99.5}, errors.ArgumentTypeError, "n_resamples is 99.5"),
            ({"n_resamples": True}, errors.ArgumentTypeError, "n_resamples is True"),
            ({"alternative": "bigger"}, errors.ArgumentError, "accepted: 'two-sided', 'greater'"),
            ({"studentize": "pool"}, errors.ArgumentError, "studentize is 'pool'"),
            ({"studentize": "pooled", "metric": "f1"}, errors.ArgumentError, "not a proportion"),
            ({"adjust": "sidak"}, errors.ArgumentError, "adjust is 'sidak'"),
            ({"engine": "gpu"}, errors.ArgumentError, "engine is 'gpu'"),
            ({"score_bins": 5}, errors.ArgumentTypeError, "score_bins applies to calibration_err"),
            ({"confidence_level": 95}, errors.ArgumentError, "strictly between 0 and 1"),
            ({"confidence_level": "95"}, errors.ArgumentTypeError, "confidence_level is '95'"),
            ({"rng": -1}, errors.ArgumentError, "rng is -1"),
            ({"rng": "x"}, errors.ArgumentTypeError, "rng is a str"),
            ({"rng": 1, "random_state": 1}, errors.ArgumentTypeError, "two names of one argument"),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0"),
            ({"progress": 3}, errors.ArgumentTypeError, "progress is 3"),
            ({"groups": "ab"}, errors.ArgumentTypeError, "a sequence of groups"),
            ({"groups": ["a", "z"]}, errors.DataError, "'z', which is no group.*'a', 'b'"),
            ({"groups": ["a", "a"]}, errors.ArgumentError, "named twice"),
            ({"groups": ["a"]}, errors.DataError, "at least two"),
            ({"reference": "z"}, errors.DataError, "reference names 'z'"),
            (
                {"y_pred": None},
                errors.ArgumentError,
                "y_pred is None, but true_positive_rate",
            ),
            ({"sensitive_features": None}, errors.ArgumentTypeError, "sensitive_features is miss"),
            ({"sensitive_features": ["a"] * 400}, errors.DataError, "only one group.*'a'"),
            ({"sensitive_features": [None] * 400}, errors.DataError, "no group"),
            (
                {"sensitive_features": ["a"] * 3},
                errors.DataError,
                "y_pred 400, group 3",
            ),
        ],
    )
    def test_wrong_values_are_refused(self, changes, error, message):
        with pytest.raises(error, match=message):
            self.call(**changes)

    def test_errors_are_the_built_in_ones_too(self):
        with pytest.raises(ValueError, match="n_resamples"):
            self.call(n_resamples=0)
        with pytest.raises(TypeError, match="metric"):
            self.call(metric=None)

    def test_a_score_without_a_decision_gets_a_hint(self):
        y_true, _, group = random_rows(0)
        with pytest.raises(errors.ArgumentError, match=r"y_pred=\(y_score >= threshold\)"):
            fa.permutation_test(
                y_true, y_score=np.linspace(0, 1, 400), sensitive_features=group, metric="tpr"
            )

    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            ("tpr", "group 'b' has 0 rows with a positive label; true_positive_rate is not"),
            ("base_rate", None),
            ("mcc", "group 'b' has tp=0, fp=3, fn=0, tn=4"),
        ],
    )
    def test_a_group_without_positives(self, metric, message):
        if message is None:
            assert compare((5, 3, 5, 4), (0, 3, 0, 4), metric).values[1].value == 0
            return
        with pytest.raises(errors.NotMeasurableError, match=message):
            compare((5, 3, 5, 4), (0, 3, 0, 4), metric)

    def test_one_sided_with_three_groups(self):
        y_true, y_pred, group = random_rows(0, groups="abc")
        with pytest.raises(errors.ArgumentError, match=r"alternative is 'less', .* for 3 groups"):
            fa.permutation_test(
                y_true, y_pred, sensitive_features=group, metric="tpr", alternative="less"
            )

    def test_an_exact_engine_that_cannot_be(self):
        with pytest.raises(errors.ArgumentError, match="too large to be summed"):
            self.call(metric="f1", engine="exact")

    def test_arguments_that_do_not_go_with_cells(self):
        _, y_pred, group = random_rows(0)
        cells = fa.tabulate(y_pred=y_pred, sensitive_features=group)
        with pytest.raises(errors.ArgumentTypeError, match="y_true cannot be combined with data"):
            fa.permutation_test("y", data=cells, metric="selection_rate")
        with pytest.raises(errors.ArgumentError, match=r"y_true is needed by .* only have y_pred"):
            fa.permutation_test(data=cells, metric="tpr")


class TestKnownValues:
    def test_fishers_exact_test(self):
        # 8/10 against 3/10: 2 sum of C(11,x) C(9,10-x) / C(20,10) over x >= 8.
        tail = sum(math.comb(11, x) * math.comb(9, 10 - x) for x in (8, 9, 10))
        result = compare((8, 0, 2, 0), (3, 0, 7, 0))
        assert result.engine == "exact"
        assert result.pvalue == pytest.approx(2 * tail / math.comb(20, 10), rel=1e-12)
        assert result.pvalue_interval == (result.pvalue, result.pvalue)

    def test_lady_tasting_tea(self):
        # Fisher (1935): 3 of 4 right, one-sided p = 17/70.
        result = compare((3, 0, 1, 0), (1, 0, 3, 0), alternative="greater")
        assert result.pvalue == pytest.approx(17 / 70, rel=1e-12)

    def test_newcombes_interval(self):
        # Newcombe (1998), example (a): 56/70 - 48/80, method 10: 0.0524 to 0.3339.
        result = compare((56, 0, 14, 0), (48, 0, 32, 0))
        assert result.confidence_interval == pytest.approx((0.0524, 0.3339), abs=5e-5)

    def test_compas_error_rates(self, audit_data):
        # ProPublica: false positive rate 44.85 % against 23.45 %.
        import polars as pl

        frame = pl.read_csv(
            audit_data / "compas" / "compas-scores-two-years.csv.gz", infer_schema_length=None
        ).filter(pl.col("race").is_in(["African-American", "Caucasian"]))
        frame = frame.with_columns(high=pl.col("score_text") != "Low")
        result = fa.permutation_test(
            "two_year_recid", "high", data=frame, sensitive_features="race", metric="fpr"
        )
        assert [round(value.value, 4) for value in result.values] == [0.4485, 0.2345]
        assert result.engine == "exact"
        assert result.pvalue < 1e-30

    def test_equal_metrics_give_p_one(self):
        result = compare((8, 1, 2, 1), (8, 5, 2, 5))
        assert (result.estimate, result.statistic, result.pvalue) == (0, 0, 1)

    def test_a_group_where_everything_is_right(self):
        result = compare((20, 2, 0, 5), (9, 2, 11, 5))
        assert math.isfinite(result.statistic)
        low, high = result.confidence_interval
        assert low < result.estimate < high <= 1

    def test_undefined_replicates_count_as_extreme(self):
        # One positive in all of group b's eventual rows: most permutations leave a group empty.
        result = compare((1, 30, 1, 30), (1, 30, 0, 0), strata=None, engine="cells")
        undefined = np.isnan(result.null_distribution)
        assert result.n_undefined == undefined.sum() > 0
        assert any("count as extreme" in text for text in result.warnings)
        at_least = np.abs(result.null_distribution[~undefined]) >= abs(result.statistic) - 1e-9
        expected = (1 + undefined.sum() + at_least.sum()) / (1 + result.n_resamples)
        assert result.pvalue == pytest.approx(expected, rel=1e-12)

    def test_the_smallest_p_of_a_drawn_test(self):
        result = compare((500, 0, 0, 500), (0, 500, 500, 0), engine="cells", n_resamples=99)
        assert result.pvalue == 1 / 100
        low, high = result.pvalue_interval
        assert low == 0
        assert high == pytest.approx(1 - 0.005 ** (1 / 99), rel=1e-9)

    def test_the_undefined_share_of_an_exact_law(self):
        result = compare((1, 4, 1, 4), (1, 4, 1, 4), strata=None)
        assert result.engine == "exact"
        assert result.n_undefined == 0
        assert any("% of the permutations give true_positive" in text for text in result.warnings)

    def test_groups_without_variation(self):
        y_true, y_pred, group = random_rows(5, n=600, groups="abc")
        rows = group == "c"
        y_pred = np.where(rows, y_true, y_pred)
        result = fa.permutation_test(y_true, y_pred, sensitive_features=group, metric="f1", rng=1)
        assert any("does not vary at all within c" in text for text in result.warnings)
        one = compare((5, 0, 0, 5), (4, 0, 0, 6), "mcc")
        assert all(map(math.isnan, one.confidence_interval))
        with pytest.raises(errors.NotMeasurableError, match="'b' has 1 row; a studentized f1 need"):
            compare((5, 2, 3, 5), (1, 0, 0, 0), "f1")

    def test_no_adjusted_p_can_be_small_enough(self):
        y_true, y_pred, group = random_rows(6, n=800, groups="abcdefgh")
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="mcc", n_resamples=99, rng=1
        )
        assert any("raise n_resamples to 560 or more" in text for text in result.warnings)

    def test_the_level_is_compared_as_it_was_meant(self):
        # 1 - 0.9 is a little less than 0.1 in floating point.
        result = compare((3, 0, 0, 0), (0, 0, 2, 0), confidence_level=0.9)
        assert result.pvalue == pytest.approx(0.1, rel=1e-12)
        assert "more than chance explains" in result.summary()

    def test_a_one_sided_sentence(self):
        result = compare((8, 0, 2, 0), (3, 0, 7, 0), alternative="less")
        assert "no evidence of a gap below 0" in result.summary()
        assert result.comparisons[0].confidence_interval == result.confidence_interval

    def test_missing_groups_are_counted(self):
        y_true, y_pred, group = random_rows(3)
        group = group.astype(object)
        group[:7] = None
        result = fa.permutation_test(y_true, y_pred, sensitive_features=group, metric="tpr")
        assert result.n_missing == 7
        assert result.n_rows == 393
        assert "7 of 400 rows have no value of group" in result.warnings[0]

    def test_what_is_exchanged_is_said(self):
        assert compare((8, 1, 2, 1), (8, 5, 2, 5)).exchanged == "rows with a positive label"
        assert compare((8, 1, 2, 1), (8, 5, 2, 5), strata=None).exchanged == "rows"
        y_true, y_pred, group = random_rows(1)
        region = {"region": np.arange(400) % 3}
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="ppv", strata=region
        )
        assert result.exchanged == "rows with a positive decision with equal region"


class TestReference:
    @pytest.mark.parametrize("name", sorted(reference.METRICS))
    def test_values_and_variances(self, name):
        rng = np.random.default_rng(7)
        for _ in range(20):
            table = rng.integers(1, 60, 4)
            native = fa.metrics.get(name).native
            made = native.evaluate(table.astype(float).tolist())
            value, variance = made.value, made.variance
            assert value == pytest.approx(reference.value(name, *table), rel=1e-12)
            assert variance == pytest.approx(reference.variance(name, *table), rel=1e-9)

    def test_calibration_error(self):
        rng = np.random.default_rng(8)
        n = 600
        levels = np.round(rng.random(n) * 20) / 20
        y_true = (rng.random(n) < levels**1.3).astype(int)
        group = rng.choice(["a", "b"], n)
        result = fa.permutation_test(
            y_true, y_score=levels, sensitive_features=group, metric="ece", n_resamples=50, rng=0
        )
        for value in result.values:
            rows = group == value.group
            bins = np.minimum(np.round(levels[rows] * 20).astype(int) // 2, 9)
            error, variance = reference.calibration_error(bins, levels[rows], y_true[rows])
            # Scores are summed in units of 2**-30.
            assert value.value == pytest.approx(error, abs=1e-8)
            assert value.standard_error == pytest.approx(math.sqrt(variance), rel=1e-6)

    @pytest.mark.parametrize("name", PROPORTIONS)
    @pytest.mark.parametrize("studentize", ["pooled", "unpooled", "none"])
    @pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
    def test_exact_conditional_law(self, name, studentize, alternative):
        y_true, y_pred, group = rows_of((7, 2, 3, 4), (3, 4, 5, 2))
        denominator = reference.PROPORTIONS[name][1]
        cell = 2 * (1 - y_pred) + (1 - y_true)
        strata = np.isin(cell, [reference.CELLS.index(name) for name in denominator])
        law = reference.exact_law(y_true, y_pred, group, name, strata, studentize)
        result = fa.permutation_test(
            y_true,
            y_pred,
            sensitive_features=group,
            metric=name,
            studentize=studentize,
            alternative=alternative,
        )
        expected = reference.exact_pvalue(result.statistic, law, alternative)
        assert result.engine == "exact"
        assert result.pvalue == pytest.approx(float(expected), rel=1e-10)

    @pytest.mark.parametrize("name", sorted(reference.METRICS))
    def test_enumerated_law_of_all_labels(self, name):
        y_true, y_pred, group = rows_of((5, 2, 3, 4), (2, 4, 3, 2))
        studentize = "pooled" if name in PROPORTIONS else "unpooled"
        law = reference.exact_law(y_true, y_pred, group, name, None, studentize)
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric=name, strata=None
        )
        expected = reference.exact_pvalue(result.statistic, law)
        assert result.engine == "exact"
        assert result.pvalue == pytest.approx(float(expected), rel=1e-9)
        assert result.null_probabilities.sum() == pytest.approx(1, rel=1e-12)

    @pytest.mark.parametrize(
        "metric",
        [
            "true_positive_rate",
            "mcc",
            "f1",
        ],
    )
    def test_strata_of_the_user(self, metric):
        """The law of the gap within strata: tables of each, and every combination of them."""
        y_true, y_pred, group = rows_of((8, 2, 2, 4), (2, 4, 6, 2))
        region = np.arange(len(y_true)) % 2
        region[np.flatnonzero(group == "a")[:3]] = 2
        cell = 2 * (1 - y_pred) + (1 - y_true)

        def tables(s, name):
            return np.bincount(cell[(region == s) & (group == name)], minlength=4)

        def studentized(of_a, totals):
            """z of Mantel and Haenszel with N - 1, or the gap over its standard error."""
            pairs = [(table, total - table) for table, total in zip(of_a, totals, strict=True)]
            if metric in PROPORTIONS:
                excess, variance = 0.0, 0.0
                for pair in pairs:
                    (x, n), (y, m) = (reference.proportion_counts(metric, *t) for t in pair)
                    if n and m:
                        excess += x - n * (x + y) / (n + m)
                        both = (x + y) * (n + m - x - y)
                        variance += n * m * both / (n + m) ** 2 / (n + m - 1)
                return excess / math.sqrt(variance) if abs(excess) > 1e-12 else 0.0
            parts = [
                [
                    means.Part(
                        reference.value(metric, *t),
                        reference.variance(metric, *t),
                        t.sum(),
                        t.sum(),
                    )
                    for t in pair
                ]
                for pair in pairs
            ]
            return means.stratified_general(parts).studentized

        totals, laws = [], []
        for s in (0, 1, 2):
            own, all_rows = tables(s, "a"), tables(s, "a") + tables(s, "b")
            totals.append(all_rows)
            # A rate exchanges rows of its denominator: positives among themselves.
            blocks = [[0, 2], [1, 3]] if metric in PROPORTIONS else [[0, 1, 2, 3]]
            law = {(0, 0, 0, 0): Fraction(1)}
            for block in blocks:
                drawn = reference.multivariate_hypergeometric_law(
                    [int(all_rows[k]) for k in block], int(own[block].sum())
                )
                law = {
                    tuple(np.add(table, np.bincount(block, part, 4).astype(int)).tolist()): p * q
                    for table, p in law.items()
                    for part, q in drawn.items()
                }
            laws.append(law)
        statistics, weights = [], []
        for combination in itertools.product(*(law.items() for law in laws)):
            of_a, probabilities = zip(*combination, strict=True)
            statistics.append(studentized([np.array(t) for t in of_a], totals))
            weights.append(math.prod(probabilities))
        assert sum(weights) == 1
        observed = studentized([tables(s, "a") for s in (0, 1, 2)], totals)
        extreme = [
            reference.is_extreme(statistic, observed, "two-sided") for statistic in statistics
        ]
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric=metric, strata=region
        )
        expected = float(sum(w for w, beyond in zip(weights, extreme, strict=True) if beyond))
        assert result.engine == "exact"
        assert result.statistic == pytest.approx(observed, rel=1e-9)
        assert result.pvalue == pytest.approx(expected, rel=1e-9)
        assert 0.01 < result.pvalue < 1

    def test_mantel_haenszel(self):
        """Berkeley admissions, 1973: the gap between the sexes turns within departments.

        Admitted and rejected by department A to F (Bickel, Hammel and O'Connell, 1975); the
        Mantel-Haenszel difference by hand from the table.
        """
        men = [(512, 313), (353, 207), (120, 205), (138, 279), (53, 138), (22, 351)]
        women = [(89, 19), (17, 8), (202, 391), (131, 244), (94, 299), (24, 317)]
        rows = [
            (sex, department, admitted, table[1 - admitted])
            for sex, tables in (("m", men), ("w", women))
            for department, table in zip("ABCDEF", tables, strict=True)
            for admitted in (1, 0)
        ]
        import polars as pl

        frame = pl.DataFrame(rows, schema=["sex", "dep", "y", "n"], orient="row")
        options = {"sensitive_features": "sex", "y_pred": "y", "count": "n"}
        crude = fa.permutation_test(
            data=fa.Cells.from_frame(frame, **options), metric="selection_rate"
        )
        assert crude.estimate == pytest.approx(0.1416, abs=1e-3)
        within = fa.permutation_test(
            data=fa.Cells.from_frame(frame, strata="dep", **options), metric="selection_rate"
        )
        weights = [sum(m) * sum(w) / (sum(m) + sum(w)) for m, w in zip(men, women, strict=True)]
        gaps = [m[0] / sum(m) - w[0] / sum(w) for m, w in zip(men, women, strict=True)]
        expected = np.dot(weights, gaps) / np.sum(weights)
        assert within.estimate == pytest.approx(expected, rel=1e-12)
        assert within.estimate < 0
        # Cochran-Mantel-Haenszel without continuity correction: 1.5246 (p = 0.2169).
        assert within.pvalue == pytest.approx(0.2169, abs=0.02)
        low, high = within.confidence_interval
        assert low < within.estimate < high
        assert "gap within equal dep" in within.summary()
        # Exchanging all rows forgets the strata of the cells.
        cells = fa.Cells.from_frame(frame, strata="dep", **options)
        assert fa.permutation_test(
            data=cells, metric="selection_rate", strata=None
        ).estimate == pytest.approx(crude.estimate)

    @pytest.mark.parametrize("name", ["true_positive_rate", "f1", "balanced_accuracy", "mcc"])
    def test_drawn_law_is_that_of_shuffled_rows(self, name):
        y_true, y_pred, group = random_rows(11, n=300)
        studentize = "pooled" if name in PROPORTIONS else "unpooled"
        slow = reference.permutation_pvalue(
            y_true,
            y_pred,
            group,
            name,
            None,
            studentize,
            n_resamples=1_500,
            rng=np.random.default_rng(1),
        )
        fast = fa.permutation_test(
            y_true,
            y_pred,
            sensitive_features=group,
            metric=name,
            strata=None,
            engine="cells",
            n_resamples=20_000,
            rng=2,
        )
        assert fast.statistic == pytest.approx(slow["statistic"], rel=1e-10)
        spread = 4.9 * math.sqrt(0.25 / 1_500)
        assert abs(fast.pvalue - slow["pvalue"]) < spread
        # The whole distributions, at the quantiles of the slow one.
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            at = np.quantile(slow["null"], share)
            below = np.mean(fast.null_distribution <= at) - np.mean(slow["null"] <= at)
            assert abs(below) < spread

    def test_cells_and_exact_engines_agree_in_law(self):
        exact = compare((22, 9, 11, 20), (15, 12, 19, 9))
        drawn = compare((22, 9, 11, 20), (15, 12, 19, 9), engine="cells", n_resamples=200_000)
        order = np.argsort(exact.null_distribution)
        values, law = exact.null_distribution[order], exact.null_probabilities[order]
        place = np.searchsorted(values, drawn.null_distribution - 1e-9)
        counts = np.bincount(place, minlength=len(values))
        large = law * 200_000 >= 10
        expected = np.append(law[large], law[~large].sum()) * 200_000
        found = np.append(counts[large], counts[~large].sum())
        statistic = np.sum((found - expected) ** 2 / expected)
        from scipy.stats import chi2

        assert statistic < chi2.isf(1e-6, len(expected) - 1)

    def test_omnibus(self):
        y_true, y_pred, group = random_rows(12, n=360, groups="abc")
        for name, studentize in (("accuracy", "pooled"), ("f1", "unpooled")):
            slow = reference.permutation_omnibus_pvalue(
                y_true,
                y_pred,
                group,
                name,
                None,
                studentize,
                n_resamples=1_000,
                rng=np.random.default_rng(1),
            )
            fast = fa.permutation_test(
                y_true, y_pred, sensitive_features=group, metric=name, strata=None, rng=1
            )
            assert fast.statistic == pytest.approx(slow["statistic"], rel=1e-9)
            assert abs(fast.pvalue - slow["pvalue"]) < 4.9 * math.sqrt(0.25 / 1_000)

    def test_adjusted_p_values(self):
        y_true, y_pred, group = random_rows(13, n=800, groups="abcd")
        results = {
            method: fa.permutation_test(
                y_true, y_pred, sensitive_features=group, metric="accuracy", adjust=method, rng=1
            )
            for method in ("holm", "bh", "none", "max-t")
        }
        raw = [pair.pvalue for pair in results["none"].comparisons]
        for method, slow in (
            ("none", raw),
            ("holm", reference.holm(raw)),
            ("bh", reference.benjamini_hochberg(raw)),
        ):
            fast = [pair.adjusted_pvalue for pair in results[method].comparisons]
            assert fast == pytest.approx(slow, rel=1e-12)
        joint = np.array([pair.adjusted_pvalue for pair in results["max-t"].comparisons])
        assert np.all(joint >= np.array(raw))
        assert np.all(joint <= np.minimum(6 * np.array(raw), 1) + 0.03)

    def test_max_t_agrees_with_shuffled_rows(self):
        y_true, y_pred, group = random_rows(14, n=400, groups="abc")
        pairs = [("a", "b"), ("a", "c"), ("b", "c")]

        def sizes(labels):
            tables = reference.tables_of_groups(y_true, y_pred, labels, ["a", "b", "c"])
            named = dict(zip("abc", tables, strict=True))
            return [
                abs(reference.statistic_of_tables(named[i], named[j], "accuracy", "pooled"))
                for i, j in pairs
            ]

        rng = np.random.default_rng(1)
        null = np.array([sizes(rng.permutation(group)) for _ in range(1_500)])
        slow = reference.step_down_max_t(np.array(sizes(group)), null)
        fast = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="accuracy", adjust="max-t", rng=1
        )
        adjusted = [pair.adjusted_pvalue for pair in fast.comparisons]
        assert adjusted == pytest.approx(list(slow), abs=4.9 * math.sqrt(0.25 / 1_500))


class TestProperties:
    @pytest.mark.parametrize("engine", ["exact", "cells"])
    def test_swapping_groups_changes_the_sign(self, engine):
        y_true, y_pred, group = random_rows(20)
        options = {"sensitive_features": group, "metric": "tpr", "engine": engine, "rng": 3}
        forward = fa.permutation_test(y_true, y_pred, groups=["a", "b"], **options)
        backward = fa.permutation_test(y_true, y_pred, groups=["b", "a"], **options)
        assert forward.estimate == -backward.estimate
        assert forward.statistic == -backward.statistic
        if engine == "exact":
            assert forward.pvalue == pytest.approx(backward.pvalue, rel=1e-12)

    def test_names_of_groups_do_not_matter(self):
        y_true, y_pred, group = random_rows(21)
        numbers = np.where(group == "a", 5, 9)
        first = fa.permutation_test(y_true, y_pred, sensitive_features=group, metric="f1", rng=3)
        second = fa.permutation_test(y_true, y_pred, sensitive_features=numbers, metric="f1", rng=3)
        assert np.array_equal(first.null_distribution, second.null_distribution)
        assert first.pvalue == second.pvalue

    def test_order_of_rows_does_not_matter(self):
        y_true, y_pred, group = random_rows(22)
        order = np.random.default_rng(0).permutation(len(y_true))
        options = {"metric": "mcc", "rng": 3}
        first = fa.permutation_test(y_true, y_pred, sensitive_features=group, **options)
        second = fa.permutation_test(
            y_true[order], y_pred[order], sensitive_features=group[order], **options
        )
        assert np.array_equal(first.null_distribution, second.null_distribution)

    def test_complementary_rates_give_one_p(self):
        table = (31, 8, 12, 20), (18, 11, 19, 7)
        for name, other in (("tpr", "fnr"), ("fpr", "tnr"), ("ppv", "fdr"), ("npv", "for")):
            first, second = compare(*table, name), compare(*table, other)
            assert first.pvalue == pytest.approx(second.pvalue, rel=1e-12)
            assert first.estimate == pytest.approx(-second.estimate, rel=1e-12)

    def test_one_sided_p_values_add_up(self):
        greater = compare((22, 9, 11, 20), (15, 12, 19, 9), alternative="greater")
        less = compare((22, 9, 11, 20), (15, 12, 19, 9), alternative="less")
        at = np.isclose(greater.null_distribution, greater.statistic, atol=1e-9)
        shared = greater.null_probabilities[at].sum()
        assert greater.pvalue + less.pvalue == pytest.approx(1 + shared, rel=1e-12)
        assert greater.confidence_interval[1] == 1
        assert less.confidence_interval[0] == -1

    def test_cells_give_the_same_test(self):
        y_true, y_pred, group = random_rows(23)
        cells = fa.tabulate(y_true=y_true, y_pred=y_pred, sensitive_features=group)
        direct = fa.permutation_test(y_true, y_pred, sensitive_features=group, metric="f1", rng=4)
        collapsed = fa.permutation_test(data=cells, metric="f1", rng=4)
        assert direct.to_dict() == collapsed.to_dict()
        assert np.array_equal(direct.null_distribution, collapsed.null_distribution)

    def test_reference_group(self):
        y_true, y_pred, group = random_rows(24, n=900, groups="abc")
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="tpr", reference="b", rng=1
        )
        assert [(pair.first, pair.second) for pair in result.comparisons] == [
            ("a", "b"),
            ("c", "b"),
        ]
        values = {value.group: value.value for value in result.values}
        assert result.comparisons[1].estimate == values["c"] - values["b"]
        assert result.estimate == pytest.approx(max(values.values()) - min(values.values()))

    def test_the_largest_gap_lies_in_its_interval(self):
        y_true, y_pred, group = random_rows(25, n=900, groups="abcd")
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric="accuracy", rng=1
        )
        low, high = result.confidence_interval
        assert 0 <= low <= result.estimate <= high
        assert math.isnan(result.standard_error)

    def test_intersections(self):
        y_true, y_pred, group = random_rows(26, n=1_200)
        other = np.arange(1_200) % 2 == 0
        result = fa.permutation_test(
            y_true,
            y_pred,
            sensitive_features={"sex": group, "member": other},
            metric="tpr",
            groups=[("a", True), ("b", False)],
            rng=1,
        )
        assert list(result.group_sizes) == [("a", True), ("b", False)]
        assert "a & member=True" in result.summary()

    def test_a_user_metric_is_the_registry_metric(self):
        table = (22, 9, 11, 20), (15, 12, 19, 9)
        own = fa.metrics.count_metric("missed", "fn / (tp + fn)")
        assert compare(*table, own).pvalue == compare(*table, "fnr").pvalue
        assert compare(*table, own).metric == "missed"

    def test_progress_ends_at_the_total(self):
        seen = []
        compare(
            (220, 90, 110, 200),
            (150, 120, 190, 90),
            "f1",
            n_resamples=50_000,
            progress=lambda done, total: seen.append((done, total)),
        )
        assert seen[-1] == (50_000, 50_000)
        assert seen == sorted(seen)

    def test_results_explain_themselves(self):
        result = compare((220, 90, 110, 200), (150, 120, 190, 90))
        assert "true_positive_rate: 0.667 for a (330 eligible of 620 rows) and 0.441 for b" in str(
            result
        )
        assert "exact permutation test" in str(result)
        assert len(repr(result)) < 200
        content = result.to_dict()
        assert json.loads(json.dumps(content, allow_nan=False)) == content
        assert content["schema_version"] == 3
        assert content["group_sizes"] == {"a": 620, "b": 550}
        frame = result.to_frame()
        assert frame["pvalue"].to_list() == [result.pvalue]
        html = result._repr_html_()
        assert "<table>" in html

    def test_html_escapes_the_names_of_groups(self):
        y_true, y_pred, group = random_rows(27)
        named = np.where(group == "a", "<script>", "&b")
        result = fa.permutation_test(y_true, y_pred, sensitive_features=named, metric="tpr")
        assert "<script>" not in result._repr_html_()
        assert "&lt;script&gt;" in result._repr_html_()

    def test_names_of_intersections_stay_apart(self):
        y_true, y_pred, _ = random_rows(28, n=40)
        first = ["x & y", "x"] * 20
        second = ["z", "y & z"] * 20
        result = fa.permutation_test(
            y_true, y_pred, sensitive_features={"p": first, "q": second}, metric="accuracy"
        )
        assert result.to_dict()["group_sizes"] == {'["x", "y & z"]': 20, '["x & y", "z"]': 20}

    def test_metrics_travel(self):
        import dataclasses
        import pickle

        for metric in (
            *map(fa.metrics.get, fa.metrics.names()),
            fa.metrics.count_metric("own", "fn / (fn + tp)"),
        ):
            _ = metric.is_proportion
            assert pickle.loads(pickle.dumps(metric)) == metric
            other = dataclasses.replace(metric, description="a copy")
            assert pickle.loads(pickle.dumps(other)) == other

    def test_a_result_is_frozen(self):
        result = compare((8, 0, 2, 0), (3, 0, 7, 0))
        with pytest.raises(AttributeError):
            result.pvalue = 0.5


class TestResultsCompare:
    def test_equal_results_are_equal(self):
        import copy
        import pickle

        rng = np.random.default_rng(1)
        y_true, y_pred = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
        for metric, groups in (("f1", 2), ("f1", 3), ("equalized_odds", 2), ("tpr", 2)):
            group = rng.integers(0, groups, 300)
            options = {"sensitive_features": group, "metric": metric, "n_resamples": 99}
            first = fa.permutation_test(y_true, y_pred, rng=1, **options)
            again = fa.permutation_test(y_true, y_pred, rng=1, **options)
            assert first == again == pickle.loads(pickle.dumps(first)) == copy.deepcopy(first)
            assert hash(first) == hash(again)
            assert first != fa.permutation_test(y_true, 1 - y_pred, rng=1, **options)
            assert first != 1
