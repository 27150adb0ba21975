"""The permutation lens on ranks and row values: the stream engine."""

import math
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..reference import means, row_oracles
from ..reference import rows as reference


def make(seed=0, n=300, groups="ab", levels=None):
    rng = np.random.default_rng(seed)
    y_true = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.3 * y_true + 0.7 * rng.random(n), 0, 1)
    if levels:
        score = np.round(score * levels) / levels
    return y_true, score, rng.choice(list(groups), n)


def test_of(y_true, score, group, metric, **options):
    return fa.permutation_test(
        y_true, y_score=score, sensitive_features=group, metric=metric, **{"rng": 1, **options}
    )


test_of.__test__ = False


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


class TestArguments:
    def test_cells_hold_no_rows(self):
        y_true, score, group = make()
        cells = fa.tabulate(y_true=y_true, y_score=score, sensitive_features=group)
        with pytest.raises(
            errors.ArgumentTypeError, match="mean_prediction needs the rows themselves"
        ):
            fa.permutation_test(data=cells, metric="mean_score")

    @pytest.mark.parametrize(("keep", "few"), [(0, "0 rows"), (1, "1 row")])
    def test_too_few_positives(self, keep, few):
        y_true, score, group = make()
        positives = np.flatnonzero((group == "b") & (y_true == 1))
        y_true[positives[keep:]] = 0
        with pytest.raises(errors.NotMeasurableError, match=f"'b' has {few} with a positive label"):
            test_of(y_true, score, group, "auc")

    def test_scores_that_are_missing(self):
        y_true, score, group = make()
        score[3] = np.nan
        with pytest.raises(errors.DataError, match=r"y_score is nan in row 3 .* in 1 of"):
            test_of(y_true, score, group, "auc")

    def test_log_loss_needs_probabilities(self):
        y_true, score, group = make()
        with pytest.raises(errors.ArgumentError, match="log_loss needs scores from 0 to 1"):
            test_of(y_true, 2 * score + 1, group, "log_loss")

    def test_row_values_that_do_not_fit(self):
        y_true, score, group = make()
        short = fa.metrics.ratio_metric("short", lambda rows: np.ones(3))
        with pytest.raises(errors.ArgumentError, match="numerator of short gives an array"):
            test_of(y_true, score, group, short)
        with pytest.raises(errors.ArgumentTypeError, match=r"column 'cost' is named by the metric"):
            test_of(y_true, score, group, fa.metrics.ratio_metric("cost", "cost"))

    def test_an_instruction_set_that_is_not_there(self):
        code = (
            "import numpy as np, fairaudit_rs as fa\n"
            "from fairaudit_rs import _native\n"
            "metric, call = fa.metrics.get('f1').native, _native.Call()\n"
            "units = _native.Units(np.arange(4, dtype=np.uint16) % 2, 2)\n"
            "made, options = _native.PermutationTest, {'studentize': 'none'}\n"
            "calls = [\n"
            "    lambda: fa.tabulate(y_true=[0, 1], y_pred=[0, 1], sensitive_features=[0, 1]),\n"
            "    lambda: made.counts(np.full((1, 2, 4), 9, np.uint64), metric, **options),\n"
            "    lambda: made.ratio(np.ones(4), None, units, call, **options),\n"
            "]\n"
            "for make in calls:\n"
            "    try:\n"
            "        make()\n"
            "    except fa.errors.ArgumentError as error:\n"
            "        print(error)\n"
        )
        done = run_python(code, FAIRAUDIT_SIMD="avx1024")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == 3
        assert all("FAIRAUDIT_SIMD is avx1024; accepted: base" in line for line in lines)


class TestReference:
    @pytest.mark.parametrize("levels", [None, 10])
    def test_auc_and_delong(self, levels):
        y_true, score, group = make(levels=levels)
        result = test_of(y_true, score, group, "auc", n_resamples=20)
        assert result.engine == "stream"
        for value in result.values:
            rows = group == value.group
            assert value.value == pytest.approx(reference.auc(y_true[rows], score[rows]), rel=1e-12)
            assert value.standard_error**2 == pytest.approx(
                reference.delong_variance(y_true[rows], score[rows]), rel=1e-10
            )

    @pytest.mark.parametrize("name", sorted(reference.ROW_METRICS))
    def test_row_metrics(self, name):
        y_true, score, group = make()
        score = np.clip(score, 0.01, 0.99)
        result = test_of(y_true, score, group, name, n_resamples=20)
        for value in result.values:
            rows = group == value.group
            a, d = reference.ROW_METRICS[name](y_true[rows], score[rows])
            assert value.value == pytest.approx(reference.ratio(a, d), rel=1e-10)
            assert value.standard_error**2 == pytest.approx(
                reference.ratio_variance(a, d), rel=1e-10
            )

    @pytest.mark.parametrize("name", ["auc", "brier_score"])
    def test_the_law_is_that_of_shuffled_rows(self, name):
        y_true, score, group = make(2, n=160)
        if name == "auc":
            columns, estimate = (y_true, score), reference.auc_estimate
        else:
            columns, estimate = reference.ROW_METRICS[name](y_true, score), reference.ratio_estimate
            if columns[1] is None or np.ndim(columns[1]) == 0:
                columns = (columns[0], np.ones(len(group)))
        slow = reference.row_permutation_pvalue(
            columns, group, estimate, n_resamples=800, rng=np.random.default_rng(1)
        )
        fast = test_of(
            y_true, score, group, name, strata=None, n_resamples=20_000, studentize="unpooled"
        )
        assert fast.statistic == pytest.approx(slow["statistic"], rel=1e-9)
        band = 4.9 * math.sqrt(0.25 / 800)
        assert abs(fast.pvalue - slow["pvalue"]) < band
        for share in (0.1, 0.5, 0.9):
            at = np.quantile(slow["null"], share)
            assert abs(np.mean(fast.null_distribution <= at) - share) < band

    @pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
    def test_means_are_tested_by_the_larger_p_of_two_statistics(self, alternative):
        """T and h of rows that are really shuffled."""
        y_true, score, group = make(2, n=160)
        a, _ = reference.ROW_METRICS["brier_score"](y_true, score)
        n = 1_500
        slow = means.pvalues(a, None, group, n_resamples=n, rng=np.random.default_rng(1))
        fast = test_of(
            y_true,
            score,
            group,
            "brier_score",
            n_resamples=20_000,
            alternative=alternative,
            engine="stream",
        )
        assert fast.inconclusive is None
        assert fast.statistic == pytest.approx(
            means.linearised(a, None, group).studentized, rel=1e-9
        )
        sides = 2 if alternative == "two-sided" else 1
        p = getattr(slow, alternative.replace("-", "_"))
        share = min(p / sides, 0.5)
        assert fast.pvalue == pytest.approx(p, abs=sides * 5.5 * math.sqrt(share * (1 - share) / n))
        unpooled = test_of(
            y_true, score, group, "brier_score", n_resamples=20_000, studentize="unpooled"
        )
        assert unpooled.statistic == fast.statistic
        assert unpooled.null_distribution == pytest.approx(fast.null_distribution, rel=1e-9)

    def test_stream_and_cells_agree_in_law(self):
        """The mean of a 0/1 value is a rate: chi-square of the two null distributions."""
        rng = np.random.default_rng(3)
        y_pred, group = rng.integers(0, 2, 90), rng.choice(["a", "b"], 90)
        share = fa.metrics.ratio_metric("share", "y_score", columns=("y_score",))
        options = {"sensitive_features": group, "studentize": "unpooled", "rng": 1}
        n = 60_000
        stream = fa.permutation_test(y_score=y_pred, metric=share, n_resamples=n, **options)
        cells = fa.permutation_test(
            y_pred=y_pred,
            metric="selection_rate",
            engine="cells",
            strata=None,
            n_resamples=n,
            **options,
        )
        # Of shares p (1 - p) / n, of means p (1 - p) / (n - 1): the gap and T tell the shares.
        sizes = [np.sum(group == name) for name in "ab"]

        def as_of_rows(first):
            """T of a mean when so many of the rows of "a" are 1."""
            shares = first / sizes[0], (y_pred.sum() - first) / sizes[1]
            terms = [p * (1 - p) / n for p, n in zip(shares, sizes, strict=True)]
            v = [sum(terms), sum(t * n / (n - 1) for t, n in zip(terms, sizes, strict=True))]
            return [(shares[0] - shares[1]) / math.sqrt(value) for value in v]

        hits = np.arange(max(0, y_pred.sum() - sizes[1] + 1), min(sizes[0], y_pred.sum()))
        of_shares, of_means = np.transpose([as_of_rows(first) for first in hits])
        observed = int(y_pred[group == "a"].sum()) - hits[0]
        assert stream.statistic == pytest.approx(of_means[observed], rel=1e-10)
        assert cells.statistic == pytest.approx(of_shares[observed], rel=1e-10)
        found = [
            np.array([np.sum(np.abs(null - value) < 2e-6) for value in values])
            for null, values in (
                (stream.null_distribution, of_means),
                (cells.null_distribution, of_shares),
            )
        ]
        assert [counts.sum() for counts in found] == [n, n]
        found = [counts[sum(found) >= 20] for counts in found]
        statistic = np.sum((found[0] - found[1]) ** 2 / (found[0] + found[1]))
        from scipy.stats import chi2

        assert statistic < chi2.isf(1e-6, len(found[0]) - 1)


class TestProperties:
    @pytest.mark.parametrize("metric", ["auc", "log_loss", "mean_residual"])
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_bits(self, metric, groups, tmp_path):
        y_true, score, group = make(4, n=4_000, groups=groups, levels=100)
        score = np.clip(score, 0.01, 0.99)
        first = test_of(y_true, score, group, metric, n_resamples=99)
        order = np.random.default_rng(0).permutation(len(group))
        frame = pl.DataFrame({"y": y_true, "s": score, "group": group})
        for i, part in enumerate(frame.iter_slices(999)):
            part.write_parquet(tmp_path / f"{9 - i}.parquet")
        names = {"y_true": "y", "y_score": "s", "sensitive_features": "group", "rng": 1}
        others = [
            test_of(y_true, score, group, metric, n_resamples=99, n_threads=n) for n in (1, 2, 7)
        ]
        others.append(test_of(y_true[order], score[order], group[order], metric, n_resamples=99))
        others += [
            fa.permutation_test(data=data, metric=metric, n_resamples=99, **names)
            for data in (frame, frame.lazy(), str(tmp_path / "*.parquet"))
        ]
        for other in others:
            assert np.array_equal(other.null_distribution, first.null_distribution)
            assert other.to_dict() == first.to_dict()

    def test_bits_of_every_instruction_set(self):
        code = (
            "import numpy as np, hashlib, fairaudit_rs as fa\n"
            "from tests.permutation.test_rows import make, test_of\n"
            "for metric in ('auc', 'mae'):\n"
            "    null = test_of(*make(5, n=3000), metric, n_resamples=200).null_distribution\n"
            "    print(hashlib.sha256(null.tobytes()).hexdigest())\n"
            "y_true, score, group = make(5, n=100_000)\n"
            "null = fa.permutation_test(y_true, score > 0.4, sensitive_features=group,\n"
            "    metric='f1', n_resamples=200, rng=1).null_distribution\n"
            "print(hashlib.sha256(null.tobytes()).hexdigest())\n"
        )
        seen = set()
        for name in ("baseline", "avx2", "avx512"):
            done = run_python(code, FAIRAUDIT_SIMD=name)
            if done.returncode and "accepted:" in done.stderr:
                continue  # this processor has no such instructions
            assert done.returncode == 0, done.stderr
            seen.add(done.stdout)
        assert len(seen) == 1

    def test_strata_labels_and_reference_groups(self):
        y_true, score, group = make(6, n=900, groups="abc")
        result = test_of(
            y_true,
            score,
            group,
            "auc",
            strata=np.arange(900) % 3,
            reference="b",
            adjust="max-t",
            n_resamples=199,
        )
        assert result.exchanged == "rows of the same label with equal stratum"
        assert [pair.second for pair in result.comparisons] == ["b", "b"]
        assert all(pair.adjusted_pvalue >= pair.pvalue for pair in result.comparisons)

    def test_gaps_are_taken_within_strata(self):
        """One group is more often where values are high, and 1 lower wherever it is."""
        rng = np.random.default_rng(7)
        high = rng.random(2_000) < 0.5
        group = np.where(rng.random(2_000) < np.where(high, 0.8, 0.2), "a", "b")
        value = 10.0 * high - (group == "a") + rng.normal(size=2_000)
        options = {"sensitive_features": group, "metric": "mean_score", "rng": 1}
        crude = fa.permutation_test(y_score=value, n_resamples=99, **options)
        within = fa.permutation_test(y_score=value, strata=high, n_resamples=999, **options)
        assert crude.estimate > 4
        # Standard deviation of the estimate: 1 / sqrt(sum k) = 1 / sqrt(320) = .056.
        assert within.estimate == pytest.approx(-1, abs=5 * 0.056)
        slow = means.stratified(value, None, group, high)
        assert within.estimate == pytest.approx(slow.difference, rel=1e-9)
        assert within.standard_error**2 == pytest.approx(slow.variance, rel=1e-9)
        assert within.statistic == pytest.approx(slow.studentized, rel=1e-9)
        assert within.pvalue == 2 / 1_000  # twice that of the smaller side
        three = np.where(rng.random(2_000) < 0.3, "c", group)
        omnibus = fa.permutation_test(
            y_score=10.0 * high + rng.normal(size=2_000),
            strata=high,
            metric="mean_score",
            sensitive_features=three,
            rng=1,
            n_resamples=499,
        )
        assert omnibus.pvalue > 0.01

    def test_columns_of_the_data(self):
        frame = pl.DataFrame(
            {"g": ["a", "b"] * 200, "cost": np.arange(400.0), "cases": [1, 2] * 200}
        )
        cost = fa.metrics.ratio_metric("cost_per_case", "cost", "cases")
        result = fa.permutation_test(data=frame, sensitive_features="g", metric=cost, rng=1)
        assert result.values[0].value == frame.filter(pl.col("g") == "a")["cost"].mean()
        assert result.values[1].value == frame.filter(pl.col("g") == "b")["cost"].mean() / 2


@pytest.mark.calibration
class TestCalibration:
    def rejected(self, audits, metric, n_audits, **options):
        rng = np.random.default_rng(1)
        p = [
            test_of(*audits(rng), metric, n_resamples=399, **options).pvalue
            for _ in range(n_audits)
        ]
        return np.mean(np.array(p) <= 0.05)

    def test_auc_with_very_different_base_rates(self):
        """Base rates 0.5 (1,500 rows) and 0.06 (300 rows), one AUC."""

        def audits(rng):
            y_true, score, group = row_oracles.auc_equal(rng)
            return y_true, score, group

        from scipy.stats import binom

        assert self.rejected(audits, "auc", 1_000) <= binom(1_000, 0.05).isf(1e-6) / 1_000
        assert self.rejected(audits, "auc", 400, strata=None, studentize=False) > 0.2

    def test_means_with_very_different_spread(self):
        def audits(rng):
            value, group = row_oracles.equal_means(rng)
            return None, value, group

        from scipy.stats import binom

        low, high = (binom(1_500, 0.05).ppf(1e-6) / 1_500, binom(1_500, 0.05).isf(1e-6) / 1_500)
        assert low <= self.rejected(audits, "mean_prediction", 1_500) <= high
        unstudentized = self.rejected(audits, "mean_prediction", 400, studentize=False)
        assert unstudentized == pytest.approx(0.56, abs=0.12)
