"""Two models on the same rows: whether the gap of the second is smaller than that of the first."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.absolute_gaps import size_change
from fairaudit_rs.inference.paired_differences import (
    ChangeCounts,
    PairedDifference,
    by_score,
    score_statistic,
)

from ..reference import compare_models as reference

Z = 1.959963984540054
METRICS = ["tpr", "fpr", "selection_rate", "accuracy", "ppv", "f1", "mcc", "balanced_accuracy"]
SCORED = ["auc", "brier_score", "mean_prediction"]


def rows(n=600, seed=3):
    """Labels, two scores and groups; the second model helps the positive rows of group a."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list("abc"), n, p=[0.2, 0.3, 0.5])
    label = (rng.random(n) < 0.4).astype(int)
    first = np.clip(0.4 * label + 0.6 * rng.random(n) - 0.15 * (group == "a") * label, 0, 1)
    help_ = 0.1 * (group == "a") * label
    second = np.clip(first + help_ * rng.random(n) + 0.05 * rng.normal(size=n), 0, 1)
    return label, first, second, group


def decided(**options):
    label, first, second, group = rows(**options)
    return label, (first > 0.45).astype(int), (second > 0.45).astype(int), group


def compared(metric, *, n=600, groups=("a", "b"), **options):
    make = rows if metric in SCORED else decided
    label, first, second, group = make(n=n)
    given = {"rng": 1, "n_resamples": 499, **options}
    return fa.compare_models(
        label, first, second, sensitive_features=group, metric=metric, groups=groups, **given
    )


def numbers(result):
    return [
        (
            comparison.first,
            comparison.second,
            comparison.change,
            comparison.change_pvalue,
            comparison.estimate,
            comparison.pvalue,
            *comparison.confidence_interval,
        )
        for comparison in result.comparisons
    ]


def of_counts(first_group, second_group):
    """(first, second, group) of selection rates: counts of both, lost, gained, neither by group."""
    first, second, group = [], [], []
    for name, counts in (("a", first_group), ("b", second_group)):
        first.append(np.repeat([1, 1, 0, 0], counts))
        second.append(np.repeat([1, 0, 1, 0], counts))
        group.append(np.repeat(name, sum(counts)))
    return {
        "first": np.concatenate(first),
        "second": np.concatenate(second),
        "sensitive_features": np.concatenate(group),
        "metric": "selection_rate",
    }


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"metric": "base_rate"}, "neither decisions nor scores"),
            ({"metric": "equalized_odds"}, "has no one value"),
            ({"metric": "calibration_error"}, "biased upwards"),
            ({"metric": "pearson"}, "has no groups"),
            ({"second": None}, "second is None; true_positive_rate needs the decisions"),
            ({"metric": "auc", "first": None}, "first is None; .* needs the scores"),
            ({"y_true": None}, "y_true is None, but true_positive_rate needs labels"),
            ({"adjust": "max-t"}, "adjust is 'max-t'; accepted: 'holm', 'bh', 'none'"),
            ({"alternative": "smaller"}, "alternative is 'smaller'"),
            ({"first": np.arange(600) / 7}, "first has more than 64 distinct values"),
            ({"first": np.arange(600) % 3}, "first holds"),
            ({"second": np.zeros(5)}, "second"),
            ({"first": np.where(np.arange(600) == 3, np.nan, 1.0)}, "first is missing"),
        ],
    )
    def test_what_is_refused(self, options, message):
        label, first, second, group = decided()
        given = {"y_true": label, "first": first, "second": second, "metric": "tpr", **options}
        with pytest.raises((fa.errors.FairAuditError), match=message):
            fa.compare_models(**given, sensitive_features=group)

    def test_cells_hold_one_model(self):
        label, first, _, group = decided()
        cells = fa.tabulate(y_true=label, y_pred=first, sensitive_features=group)
        with pytest.raises(fa.errors.ArgumentTypeError, match="compare_models needs the rows"):
            fa.compare_models(data=cells, metric="tpr")

    def test_a_metric_of_columns_is_the_same_for_both(self):
        label, first, second, group = rows()
        data = {"y": label, "p": first, "q": second, "g": group, "cost": first}
        cost = fa.metrics.ratio_metric("cost", "cost")
        with pytest.raises(fa.errors.ArgumentError, match="the same for both models"):
            fa.compare_models("y", "p", "q", data=data, sensitive_features="g", metric=cost)

    def test_a_group_without_a_value(self):
        label, first, second, group = decided()
        label = np.where(group == "a", 0, label)
        given = (label, first, second)
        with pytest.raises(fa.errors.NotMeasurableError, match="'a' has 0 rows with a positive"):
            fa.compare_models(*given, sensitive_features=group, metric="tpr")
        found = fa.compare_models(*given, sensitive_features=group, metric="tpr", undefined="skip")
        assert [excluded_group.group for excluded_group in found.left_out] == ["a"]
        assert "excluded: a" in str(found)
        assert found.to_frame().height == 2


class TestKnownValues:
    def test_a_gap_that_halves(self):
        """a: 0.5 to 0.6, b: 0.7 to 0.7: the gap goes from -0.2 to -0.1, D = 0.1, S = -.3."""
        result = fa.compare_models(**of_counts((500, 0, 100, 400), (700, 0, 0, 300)))
        pair = result.comparisons[0]
        assert (pair.gap_of_first, pair.gap_of_second) == pytest.approx((-0.2, -0.1))
        assert pair.change == pytest.approx(0.1)
        assert result.estimate == pytest.approx(-0.1)
        assert result.pvalue < 1e-6
        assert [value.n_changed for value in result.values] == [100, 0]
        assert result.overall.measure == "agreement"
        assert result.overall.estimate == 0.95
        assert "fair" not in str(result).lower()

    def test_accuracy_beside_it(self):
        """Of 8 rows the first model is right in 5, the second in 6."""
        result = fa.compare_models(
            [1, 1, 1, 1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0, 0, 1],
            [1, 1, 1, 1, 0, 0, 1, 1],
            sensitive_features=list("abababab"),
            metric="selection_rate",
        )
        overall = result.overall
        assert (overall.measure, overall.of_first, overall.of_second) == ("accuracy", 5 / 8, 6 / 8)
        assert overall.estimate == 1 / 8
        low, high = by_score(ChangeCounts(2, 1, 8), None, 0.95).interval
        assert overall.confidence_interval == (low, high)

    def test_mcnemar(self):
        """Within one group z at 0 is (b - c) / sqrt(b + c)."""
        found = score_statistic(ChangeCounts(14, 5, 400), None, 0.0).nearer
        assert found == pytest.approx(9 / math.sqrt(19), rel=0.01)

    def test_the_same_model_twice(self):
        label, first, _, group = decided()
        for metric in ("tpr", "f1"):
            result = fa.compare_models(
                label, first, first, sensitive_features=group, metric=metric, groups=["a", "b"]
            )
            assert (result.estimate, result.pvalue) == (0, 1)
            low, high = result.comparisons[0].change_interval
            assert low < -0.01 < 0.01 < high
            assert "decide all eligible rows alike in" in str(result)

    def test_the_same_scores_twice(self):
        label, first, _, group = rows()
        result = fa.compare_models(
            label, first, first, sensitive_features=group, metric="auc", groups=["a", "b"]
        )
        assert math.isnan(result.pvalue)
        assert "nothing is shown about the gap of a minus b" in str(result)

    def test_few_rows_that_do_not_change_are_no_precision(self):
        """40 rows that all stay: 0 of 40 has the limit 0.0876 of the score test."""
        result = fa.compare_models(**of_counts((20, 0, 0, 20), (1000, 0, 0, 1000)))
        low, high = result.comparisons[0].change_interval
        limit = Z**2 / (40 + Z**2)
        assert (low, high) == pytest.approx((-limit, limit), abs=2e-4)

    def test_no_interval_is_wider_than_there_can_be(self):
        result = fa.compare_models(**of_counts((0, 1, 0, 1), (0, 0, 1, 1)))
        pair = result.comparisons[0]
        low, high = pair.confidence_interval
        assert -1 <= low < high <= 1
        assert -2 <= pair.change_interval[0] < pair.change_interval[1] <= 2
        for value in result.values:
            assert -1 <= value.confidence_interval[0] < value.confidence_interval[1] <= 1

    def test_a_gap_on_the_other_side(self):
        """-.2 becomes 0.2: it has changed for sure, and its size has not."""
        result = fa.compare_models(**of_counts((500, 0, 400, 100), (700, 0, 0, 300)))
        pair = result.comparisons[0]
        assert pair.turned
        assert pair.change_pvalue < 1e-12
        assert pair.estimate == pytest.approx(0, abs=1e-12)
        assert pair.pvalue > 0.9
        assert "changes its sign" in str(result)

    def test_two_gaps_that_may_both_be_zero_claim_nothing(self):
        """From 0.1 to -0.1 of 40 rows: D is shown, S is not."""
        result = fa.compare_models(**of_counts((40, 40, 0, 20), (50, 0, 0, 50)))
        assert result.comparisons[0].change_pvalue < 1e-6
        assert result.pvalue > 0.1


class TestReference:
    @pytest.mark.parametrize("seed", range(8))
    def test_scores(self, seed):
        rng = np.random.default_rng(seed)
        counts = [rng.multinomial(n, rng.dirichlet([0.5, 0.5, 2])) for n in (25, 90)]
        first, second = (
            (int(up), int(down), int(n)) for (up, down, _), n in zip(counts, (25, 90), strict=True)
        )
        for margin in (0.0, 0.13, -0.2):
            ours = score_statistic(ChangeCounts(*first), ChangeCounts(*second), margin).nearer
            assert ours == pytest.approx(reference.score(first, second, margin), abs=2e-3)

    @pytest.mark.parametrize(
        "tables", [((0, 0, 20), (3, 1, 90)), ((20, 0, 20), (3, 1, 90)), ((0, 7, 7), (0, 30, 90))]
    )
    def test_scores_at_the_ends(self, tables):
        ours = score_statistic(*(ChangeCounts(*table) for table in tables), 0.0).nearer
        assert ours == pytest.approx(reference.score(*tables, 0.0), abs=2e-3)

    def test_intervals_are_what_is_not_rejected(self):
        first, second = (6, 1, 40), (20, 35, 500)
        low, high = by_score(ChangeCounts(*first), ChangeCounts(*second), 0.95).interval
        for inside, outside in ((low + 1e-3, low - 1e-3), (high - 1e-3, high + 1e-3)):
            assert reference.is_accepted(first, second, inside, Z)
            assert not reference.is_accepted(first, second, outside, Z)

    @pytest.mark.parametrize("correlation", [-0.97, -0.9, -0.5, 0.0, 0.6])
    @pytest.mark.parametrize("pvalue", [0.1, 0.025, 0.0005])
    def test_the_better_of_two_quarters(self, pvalue, correlation):
        far = PairedDifference(
            estimate=-1, standard_error=1, less=pvalue, greater=1 - pvalue, interval=(-2, 0)
        )
        total = PairedDifference(
            estimate=2, standard_error=1, less=1.0, greater=1e-9, interval=(1, 3)
        )
        ours = size_change(far, total, correlation)
        expected = reference.one_sided(pvalue, 1.0, correlation)
        assert ours.less == pytest.approx(expected, rel=2e-3)
        assert ours.greater > 0.5

    @pytest.mark.parametrize(
        ("change", "total"),
        [((-0.3, -0.1), (0.2, 0.5)), ((-0.3, 0.1), (0.2, 0.5)), ((-0.2, 0.3), (-0.1, 0.4)),
         ((0.1, 0.4), (-0.5, -0.2)), ((0.1, 0.3), (-0.2, 0.05)), ((-0.4, -0.2), (-0.1, 0.3))],
    )  # fmt: skip
    def test_the_range_of_sizes(self, change, total):
        def tested(interval):
            middle = sum(interval) / 2
            return PairedDifference(
                estimate=middle, standard_error=0.1, less=0.5, greater=0.5, interval=interval
            )

        ours = size_change(tested(change), tested(total), 0.0)
        assert ours.interval == pytest.approx(reference.range_of_sizes(change, total), abs=2e-3)
        assert ours.estimate == pytest.approx(reference.size(sum(change) / 2, sum(total) / 2))

    @pytest.mark.parametrize("metric", ["ppv", "f1", "mcc"])
    def test_values_and_errors_of_counts(self, metric):
        label, first, second, group = decided(n=900)
        pair = compared(metric, n=900).comparisons[0]
        parts = [tuple(c[group == g] for c in (label, first, second)) for g in "ab"]
        name = fa.metrics.get(metric).name
        changes = [reference.change_of(name, *part) for part in parts]
        assert pair.change == pytest.approx(changes[0] - changes[1])
        # One more row in each of four cells, of which 36 and 45 rows are decided differently.
        more = [
            np.concatenate([c, e])
            for c, e in zip(parts[0], ([0, 0, 1, 1], [0, 1] * 2, [1, 0] * 2), strict=True)
        ]
        other = [
            np.concatenate([c, e])
            for c, e in zip(parts[1], ([0, 0, 1, 1], [0, 1] * 2, [1, 0] * 2), strict=True)
        ]
        variance = sum(reference.jackknife_variance(name, *part) for part in (more, other))
        assert pair.change_standard_error == pytest.approx(math.sqrt(variance), rel=1e-4)

    def test_the_bootstrap_of_rows_agrees(self):
        """p-values of D = 0 for F1, resampling rows of both models together."""
        label, first, second, group = decided(n=300)
        parts = [tuple(c[group == g] for c in (label, first, second)) for g in "bc"]
        observed, error, t = reference.bootstrap_t("f1", parts, 60, np.random.default_rng(1))
        pair = compared("f1", n=300, groups=["b", "c"]).comparisons[0]
        assert pair.change == pytest.approx(observed)
        assert pair.change_standard_error == pytest.approx(error, rel=0.35)
        assert np.nanmedian(np.abs(t)) == pytest.approx(0.67, abs=0.35)


class TestProperties:
    @pytest.mark.parametrize("metric", [*METRICS, *SCORED])
    def test_swapped_models_give_the_negated_change(self, metric):
        make = rows if metric in SCORED else decided
        label, first, second, group = make()
        options = {"sensitive_features": group, "metric": metric, "rng": 1, "n_resamples": 499}
        ours = fa.compare_models(label, first, second, alternative="less", **options)
        theirs = fa.compare_models(label, second, first, alternative="greater", **options)
        for comparison, other in zip(ours.comparisons, theirs.comparisons, strict=True):
            low, high = other.confidence_interval
            assert comparison.estimate == pytest.approx(-other.estimate, abs=1e-15)
            assert comparison.pvalue == pytest.approx(other.pvalue, rel=1e-9)
            assert comparison.confidence_interval == pytest.approx((-high, -low), abs=1e-9)
        assert ours.overall.estimate == pytest.approx(-theirs.overall.estimate, abs=1e-15)

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc"])
    def test_swapped_groups_change_signs_alone(self, metric):
        ours, theirs = compared(metric), compared(metric, groups=("b", "a"))
        one, other = ours.comparisons[0], theirs.comparisons[0]
        assert one.change == pytest.approx(-other.change, abs=1e-15)
        assert one.estimate == pytest.approx(other.estimate, abs=1e-15)
        assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)

    @pytest.mark.parametrize("metric", ["tpr", "ppv", "auc", "brier_score"])
    def test_order_of_rows_and_threads_play_no_role(self, metric):
        make = rows if metric in SCORED else decided
        columns = make()
        expected = compared(metric, n_threads=1)
        order = np.random.default_rng(2).permutation(len(columns[0]))
        label, first, second, group = (column[order] for column in columns)
        found = fa.compare_models(
            label, first, second, sensitive_features=group, metric=metric, groups=("a", "b"),
            rng=1, n_resamples=499, n_threads=2,
        )  # fmt: skip
        assert numbers(found) == numbers(expected)
        assert found == expected

    def test_functions_take_the_same_rows_in_both_models(self):
        def median_error(y_true, y_score, weight):
            return float(np.median(np.abs(y_true - y_score)))

        metric = fa.metrics.callable_metric(
            "median_error", median_error, columns=("y_true", "y_score"), n_samples=60
        )
        label, first, _, group = rows()
        shifted = np.abs(label - np.abs(label - first) - 0.01)
        result = fa.compare_models(
            label, first, shifted, sensitive_features=group, metric=metric, groups=["a", "b"], rng=1
        )
        # Every error grows by 0.01: what changes is the same in all samples of the same rows.
        errors = np.abs(label - shifted) - np.abs(label - first)
        assert np.allclose(errors, 0.01)
        assert result.comparisons[0].change == pytest.approx(0, abs=1e-12)
        assert result.overall.estimate == pytest.approx(0.01)
        assert (result.method, result.n_resamples) == ("bootstrap-se", 60)

    def test_sources(self, tmp_path):
        label, first, second, group = decided()
        columns = {"y": label, "p": first, "q": second, "g": group}
        expected = compared("tpr", groups=None)
        path = tmp_path / "rows.csv"
        frame = pl.DataFrame(columns)
        frame.write_csv(path)
        for data in (pd.DataFrame(columns), frame, frame.to_arrow(), frame.lazy(), str(path)):
            found = fa.compare_models(
                "y", "p", "q", data=data, sensitive_features="g", metric="tpr", rng=1
            )
            assert found.to_dict() == {
                **expected.to_dict(), "attribute": "g", "summary": found.summary()
            }  # fmt: skip

    def test_scores_of_a_file(self, tmp_path):
        label, first, second, group = rows()
        frame = pl.DataFrame({"y": label, "p": first, "q": second, "g": group})
        frame.write_parquet(tmp_path / "rows.parquet")
        found = fa.compare_models(
            "y", "p", "q", data=tmp_path / "rows.parquet", sensitive_features="g", metric="auc",
            groups=["a", "b"], rng=1, n_resamples=499,
        )  # fmt: skip
        assert numbers(found) == numbers(compared("auc"))

    def test_text_labels_and_missing_groups(self):
        label, first, second, group = decided()
        named = [np.where(column == 1, "yes", "no") for column in (label, first, second)]
        group = np.where(np.arange(600) < 5, None, group.astype(object))
        found = fa.compare_models(*named, sensitive_features=group, metric="tpr", pos_label="yes")
        assert found.n_missing == 5
        assert "5 of 600 rows have no value" in str(found)

    def test_several_pairs_are_adjusted(self):
        raw, holm = compared("tpr", groups=None, adjust="none"), compared("tpr", groups=None)
        p = [comparison.pvalue for comparison in raw.comparisons]
        assert [comparison.adjusted_pvalue for comparison in raw.comparisons] == p
        assert [comparison.adjusted_pvalue for comparison in holm.comparisons] == fa.adjust_pvalues(
            p
        ).tolist()
        against = compared("tpr", groups=None, reference="c")
        assert [(comparison.first, comparison.second) for comparison in against.comparisons] == [
            ("a", "c"),
            ("b", "c"),
        ]

    @pytest.mark.parametrize("metric", ["tpr", "f1", "auc"])
    def test_the_interval_leaves_out_0_when_the_test_rejects(self, metric):
        for n in (200, 600, 2_000):
            for pair in compared(metric, n=n, groups=None).comparisons:
                low, high = pair.confidence_interval
                assert low <= pair.estimate <= high
                assert (low > 0 or high < 0) == (pair.pvalue < 0.05)

    def test_progress(self):
        seen = []
        compared("auc", progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (998, 998)

    def test_problems_pickle(self):
        result = compared("auc")
        assert pickle.loads(pickle.dumps(result)) == result


# -- size and coverage ------------------------------------------------------------------------


def law(base, tpr, fpr, tpr_2, fpr_2, shared):
    """Probabilities of (label, first, second), decisions with so much in common."""
    found = np.zeros((2, 2, 2))
    for y, share, p, q in ((1, base, tpr, tpr_2), (0, 1 - base, fpr, fpr_2)):
        common = np.array([[1 - max(p, q), max(q - p, 0)], [max(p - q, 0), min(p, q)]])
        alone = np.outer([1 - p, p], [1 - q, q])
        found[y] = share * (shared * common + (1 - shared) * alone)
    return found.ravel()


def drawn(n_audits, sizes, laws, seed=1):
    rng = np.random.default_rng(seed)
    draws = [rng.multinomial(n, value, size=n_audits) for n, value in zip(sizes, laws, strict=True)]
    return np.stack(draws, axis=1)


def band(level, n_audits):
    found = stats.binom(n_audits, level)
    return found.ppf(1e-6) / n_audits, found.isf(1e-6) / n_audits


def changes_of(cells):
    """Of (audits, 8): rows selected by the second model alone, by the first alone, and all."""
    up, down = cells[:, 1] + cells[:, 5], cells[:, 2] + cells[:, 6]
    return up, down, cells.sum(axis=1)


def paired_scores(tables):
    found = {}
    for a, b in zip(
        *(np.stack(changes_of(tables[:, g]), axis=1).tolist() for g in (0, 1)), strict=True
    ):
        key = (*a, *b)
        if key not in found:
            found[key] = score_statistic(ChangeCounts(*a), ChangeCounts(*b), 0.0).nearer
        yield found[key]


def wald(tables, paired=True):
    """The z of un-pooled variances; un-paired it takes the models for samples of their own."""
    gap = variance = 0.0
    for g, sign in ((0, 1), (1, -1)):
        cells = tables[:, g].astype(float)
        up, down, n = changes_of(cells)
        gap = gap + sign * (up - down) / n
        both = cells[:, 3] + cells[:, 7]
        first, second = (both + down) / n, (both + up) / n
        if paired:
            variance = variance + ((up + down) / n - ((up - down) / n) ** 2) / n
        else:
            variance = variance + (first * (1 - first) + second * (1 - second)) / n
    return np.where(gap == 0, 0, gap / np.sqrt(np.maximum(variance, 1e-300)))


NULLS = {
    "equal models": (law(0.4, 0.7, 0.2, 0.7, 0.2, 0.85),) * 2,
    "equal changes": (law(0.4, 0.6, 0.2, 0.75, 0.25, 0.9),) * 2,
    "one way": (law(0.4, 0.6, 0.2, 0.7, 0.25, 1.0),) * 2,
    "near 0": (law(0.1, 0.1, 0.02, 0.15, 0.02, 0.8),) * 2,
    "near 1": (law(0.5, 0.98, 0.95, 0.99, 0.96, 0.7),) * 2,
    "few selected": (law(0.2, 0.5, 0.05, 0.7, 0.05, 0.8),) * 2,
    "noise in one": (law(0.4, 0.7, 0.2, 0.7, 0.2, 0.3), law(0.4, 0.7, 0.2, 0.7, 0.2, 0.95)),
}


@pytest.mark.calibration
class TestCalibration:
    N = 8_000

    @pytest.mark.parametrize("sizes", [(40, 40), (40, 2_000), (100, 2_000)])
    @pytest.mark.parametrize("name", list(NULLS))
    def test_size_of_the_score(self, name, sizes):
        """Two-sided 5, 1 and 0.1 %: measured at most 6.0, 1.1 and .11."""
        tables = drawn(self.N, sizes, NULLS[name])
        z = np.abs(list(paired_scores(tables)))
        for level, most in ((0.05, 0.06), (0.01, 0.012), (0.001, 0.0013)):
            assert np.mean(z >= stats.norm.isf(level / 2)) <= band(most, self.N)[1]

    def test_a_wald_test_fails_it(self):
        """Nothing changes in 40 rows by chance, and a variance of 0 is taken for precision."""
        tables = drawn(self.N, (40, 2_000), NULLS["one way"])
        z = np.abs(wald(tables))
        assert np.mean(z >= stats.norm.isf(0.005)) > band(0.012, self.N)[1]

    def test_an_unpaired_test_is_far_off(self):
        """It hardly ever rejects, so it has no power where models agree."""
        tables = drawn(self.N, (100, 2_000), NULLS["equal models"])
        assert np.mean(np.abs(wald(tables, paired=False)) >= Z) < band(0.05, self.N)[0]
        changed = (law(0.4, 0.6, 0.2, 0.8, 0.3, 0.95), law(0.4, 0.7, 0.2, 0.7, 0.2, 0.95))
        tables = drawn(self.N, (100, 2_000), changed)
        ours = np.mean(np.abs(list(paired_scores(tables))) >= Z)
        assert ours > 0.3 + np.mean(np.abs(wald(tables, paired=False)) >= Z)

    @staticmethod
    def sizes(gap_1, error_1, gap_2, error_2, level=0.05):
        """p-values of size changes of normal gaps, and of the naive test of |g_2| - |g_1|."""

        def tested(estimate, error):
            z = estimate / error
            less, greater = stats.norm.cdf(z), stats.norm.sf(z)
            half = stats.norm.isf(level / 2) * error
            interval = (estimate - half, estimate + half)
            return PairedDifference(
                estimate=estimate,
                standard_error=error,
                less=less,
                greater=greater,
                interval=interval,
            )

        error = math.hypot(error_1, error_2)
        correlation = (error_2**2 - error_1**2) / error**2
        found = size_change(tested(gap_2 - gap_1, error), tested(gap_2 + gap_1, error), correlation)
        naive = 2 * stats.norm.sf(abs(abs(gap_2) - abs(gap_1)) / error)
        return found, naive

    @pytest.mark.parametrize("gaps", [(0, 0), (0, 1), (1, 1), (1, -1), (3, 3), (3, -3)])
    @pytest.mark.parametrize("second_error", [1.0, 0.05])
    def test_size_and_coverage_of_the_change_of_a_size(self, gaps, second_error):
        """Where |g_2| = |g_1| no level is exceeded; the interval covers |g_2| - |g_1|."""
        n, truth = 3_000, abs(gaps[1]) - abs(gaps[0])
        rng = np.random.default_rng(2)
        normal = np.stack(
            [gaps[0] + rng.normal(size=n), gaps[1] + second_error * rng.normal(size=n)]
        )
        found = [self.sizes(a, 1.0, b, second_error)[0] for a, b in normal.T]
        covered = np.mean([value.interval[0] <= truth <= value.interval[1] for value in found])
        assert covered >= band(0.95, n)[0]
        for side in ("less", "greater", "two_sided"):
            if truth == 0 or (truth > 0) == (side == "less"):
                share = np.mean([getattr(value, side) <= 0.05 for value in found])
                if truth == 0 or side != "two_sided":
                    assert share <= band(0.05, n)[1]

    def test_the_sign_of_the_first_gap_alone_fails_it(self):
        """Without the correction for two quarters: no gaps, and a far more precise second model."""
        rng = np.random.default_rng(3)
        first, second = rng.normal(size=20_000), 0.05 * rng.normal(size=20_000)
        change = np.sign(first) * (second - first) / math.hypot(1, 0.05)
        assert np.mean(stats.norm.cdf(change) <= 0.05) > band(0.05, 20_000)[1]

    @pytest.mark.parametrize(("metric", "broken"), [("ppv", "few selected"), ("f1", "one way")])
    def test_size_of_other_metrics_of_counts(self, metric, broken):
        """40 and 100 rows beside 2,000: at most 5.4 and 1.4 %; without one more row up to 22."""
        from fairaudit_rs.permutation.paired_cells import PairedCellProblem

        chosen = fa.metrics.get(metric)
        for sizes in ((40, 2_000), (100, 2_000)):
            for name in ("equal changes", "one way", "few selected"):
                p, plain = [], []
                for counts in drawn(1_500, sizes, NULLS[name]):
                    try:
                        problem = PairedCellProblem(
                            metric=chosen, keys=(("a",), ("b",)), n_rows=sizes,
                            counts=counts.reshape(2, 2, 2, 2), has_labels=True,
                        )  # fmt: skip
                    except fa.errors.NotMeasurableError:
                        continue
                    change, _, _ = problem.tested((0, 1), 0.95)
                    p.append(change.two_sided)
                    bare = sum(problem._variances(c.ravel())[0] for c in problem.counts)
                    z = abs(change.estimate) / math.sqrt(bare) if bare else 0.0
                    plain.append(2 * stats.norm.sf(z))
                for level, most in ((0.05, 0.055), (0.01, 0.014)):
                    assert np.mean(np.array(p) <= level) <= band(most, 1_500)[1]
                if sizes[0] == 40 and name == broken:
                    assert np.mean(np.array(plain) <= 0.01) > band(0.014, 1_500)[1]

    @pytest.mark.parametrize("metric", ["auc", "brier_score"])
    def test_size_of_metrics_of_scores(self, metric):
        rng = np.random.default_rng(4)
        p = []
        for audit in range(400):
            n = np.array([40, 1_000])
            group = np.repeat(["a", "b"], n)
            label = (rng.random(n.sum()) < 0.4).astype(int)
            logit = 1.2 * label + rng.normal(size=n.sum())
            scores = [1 / (1 + np.exp(-logit - s * rng.normal(size=n.sum()))) for s in (0.6, 0.3)]
            result = fa.compare_models(
                label, *scores, sensitive_features=group, metric=metric, n_resamples=199, rng=audit
            )
            p.append(result.comparisons[0].change_pvalue)
        assert np.mean(np.array(p) <= 0.05) <= band(0.055, 400)[1]
        assert np.mean(np.array(p) <= 0.5) >= band(0.4, 400)[0]
