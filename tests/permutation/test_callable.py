"""The permutation lens on any function of the rows of a group."""

import itertools
import math
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numba
import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.metrics import compiled_functions as compiled_module

from ..children import outputs_of_instruction_sets
from ..reference import permutation
from ..reference import rows as reference


def make(seed=0, n=60, groups="ab"):
    rng = np.random.default_rng(seed)
    group = np.resize(list(groups), n)
    y_true = rng.integers(0, 2, n)
    return y_true, rng.random(n) + 0.2 * y_true, group


def mean(y_true, value, weight):
    return float(np.average(value, weights=weight))


def median(y_true, value, weight):
    return float(np.median(value))


def sums(y_true, value, weight):
    """Add up in the order of the rows, as the compiled one does."""
    weight = np.ones(len(value)) if weight is None else weight
    total, n = 0.0, 0.0
    for y, v, w in zip(y_true.tolist(), value.tolist(), weight.tolist(), strict=True):
        total += w * v * (1.0 + y)
        n += w
    return total / n if n > 0.0 else math.nan


def positives_only(y_true, value, weight):
    return float(value[y_true == 1].mean()) if (y_true == 1).any() else math.nan


def fails(y_true, value, weight):
    raise KeyError("nothing here")


def waits_in_workers(y_true, value, weight):
    """Say that it began, then take a minute; quick where it was called from."""
    if multiprocessing.parent_process() is not None:
        Path(os.environ["FAIRAUDIT_TEST_BEGAN"]).touch()
        time.sleep(60)
    return float(value.mean())


def ends_workers(y_true, value, weight):
    if multiprocessing.parent_process() is not None:
        os._exit(3)
    return float(value.mean())


def metric_of(function=mean, **options):
    return fa.metrics.callable_metric(
        function.__name__ if hasattr(function, "__name__") else "compiled",
        function,
        **{"columns": ("y_true", "y_score"), "n_samples": 20, **options},
    )


def test_of(data, metric, **options):
    y_true, value, group = data
    return fa.permutation_test(
        y_true,
        y_score=value,
        sensitive_features=group,
        metric=metric,
        **{"rng": 1, "n_resamples": 49, **options},
    )


test_of.__test__ = False


def compiled():
    """`sums` as machine code."""
    types = numba.types
    pointer = types.CPointer(types.float64)

    @numba.cfunc(types.float64(pointer, pointer, pointer, types.int64))
    def function(y_true, value, weight, n):
        total, rows = 0.0, 0.0
        for i in range(n):
            total += weight[i] * value[i] * (1.0 + y_true[i])
            rows += weight[i]
        return total / rows if rows > 0.0 else math.nan

    return function


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "options", "match"),
        [
            (("", mean), {}, "name is ''"),
            (("m", 3), {}, "function is 3; accepted: a function of"),
            (("m", "mean"), {}, "function is 'mean'; accepted"),
            (("m", None), {}, "function is None; accepted"),
            (("m", mean), {"columns": ("y_true",)}, r"columns is \('y_true',\); accepted"),
            (("m", mean), {"columns": ("y_score", "y_true")}, "columns is .*; accepted"),
            (("m", mean), {"columns": 3}, "columns is 3; accepted"),
            (("m", mean), {"n_samples": 1}, "n_samples is 1; accepted: a whole number from 2"),
            (("m", mean), {"n_samples": 2.5}, "n_samples is 2.5; accepted"),
            (("m", mean), {"n_samples": True}, "n_samples is True; accepted"),
            (("m", mean), {"conditions_on": "score"}, "conditions_on is 'score'; accepted"),
        ],
    )
    def test_metrics_that_are_none(self, arguments, options, match):
        with pytest.raises(errors.FairAuditError, match=match):
            fa.metrics.callable_metric(*arguments, **options)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"studentize": "pooled"}, "studentize is 'pooled'; accepted: 'auto', 'bootstrap'"),
            ({"studentize": "unpooled"}, "studentize is 'unpooled'; accepted: 'auto', 'bootstr"),
            ({"interval": "studentized"}, "interval is 'studentized' for mean, a callable; accept"),
            ({"engine": "cells"}, "engine is 'cells'.*accepted: 'auto', 'callable'"),
            ({"engine": "exact"}, "engine is 'exact'.*accepted: 'auto', 'callable'"),
            ({"score_bins": 4}, "score_bins applies to .* not to mean"),
            ({"sample_weight": -np.ones(60)}, "sample_weight is -1 in row 0"),
            ({"clusters": np.arange(60) // 3}, "clusters have rows in more than one group"),
            ({"n_threads": 0}, "n_threads is 0; accepted"),
        ],
    )
    def test_wrong_inputs(self, options, match):
        with pytest.raises(errors.FairAuditError, match=match):
            test_of(make(), metric_of(), **options)

    def test_an_address_makes_no_machine_code(self):
        """Whatever had an attribute ``address`` was jumped to."""
        mock = MagicMock(return_value=0.5, __doc__="A mock.")
        mock.address = 1
        mock._sig = compiled_module.SIGNATURE
        assert compiled_module.address_of(mock) is None
        result = test_of(make(), metric_of(mock), studentize="shared", n_resamples=19)
        assert result.estimate == 0
        assert mock.call_count > 2 * 19
        with pytest.raises(errors.ArgumentTypeError, match=r"function is .*; accepted: a f"):
            fa.metrics.callable_metric("m", SimpleNamespace(address=1))

    def test_machine_code_of_other_arguments(self):
        types = numba.types
        function = numba.cfunc(types.float64(types.float64))(lambda x: x)
        with pytest.raises(errors.ArgumentTypeError, match=r"a cfunc of .*; accepted: \(float64\*"):
            fa.metrics.callable_metric("m", function)
        function = compiled()
        assert compiled_module.address_of(function) == function.address

    def test_a_worker_that_ends(self):
        with pytest.raises(errors.FunctionError, match="ended the process that it ran in"):
            test_of(make(), metric_of(ends_workers), studentize="shared", n_threads=2)

    def test_ctrl_c_ends_workers(self, tmp_path, monkeypatch):
        began = tmp_path / "began"
        monkeypatch.setenv("FAIRAUDIT_TEST_BEGAN", str(began))

        def interrupt():
            while not began.exists():
                time.sleep(0.01)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        sent = []
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            threading.Thread(target=interrupt, daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                test_of(make(), metric_of(waits_in_workers), studentize="shared", n_threads=2)
        finally:
            signal.signal(signal.SIGINT, before)
        # Nobody waited for a call to end, which takes a minute.
        assert time.monotonic() - sent[0] < 30
        assert multiprocessing.active_children() == []

    def test_max_t_has_no_joint_replicates(self):
        with pytest.raises(errors.ArgumentError, match="adjust is 'max-t' for mean, a callable"):
            test_of(make(groups="abc"), metric_of(), adjust="max-t")

    def test_cells_hold_no_rows(self):
        y_true, _, group = make()
        cells = fa.tabulate(y_true=y_true, y_pred=y_true, sensitive_features=group)
        with pytest.raises(
            errors.ArgumentTypeError, match=r"data is a Cells.*; mean needs the rows"
        ):
            fa.permutation_test(data=cells, metric=metric_of(columns=("y_true", "y_pred")))

    @pytest.mark.parametrize(
        ("function", "match"),
        [
            (fails, "function of metric 'fails' failed on 30 rows: KeyError: 'nothing here'"),
            (lambda y, v, w: None, "failed on 30 rows: TypeError"),
            (lambda y, v, w: v[:2], "failed on 30 rows: TypeError"),
            (lambda y, v, w: "high", "failed on 30 rows: ValueError"),
            (lambda y, v: 0.0, "failed on 30 rows: TypeError"),
        ],
    )
    def test_functions_that_fail(self, function, match):
        with pytest.raises(errors.FairAuditError, match=match):
            test_of(make(), metric_of(function))

    def test_the_error_of_a_function_has_a_name(self):
        """As all errors: one that users can name and catch."""
        with pytest.raises(errors.FairAuditError, match="metric 'fails'") as caught:
            test_of(make(), metric_of(fails))
        assert type(caught.value).__name__ in errors.__all__

    def test_functions_that_fail_in_other_processes(self):
        with pytest.raises(errors.FairAuditError, match="metric 'fails' failed on 30 rows: KeyErr"):
            test_of(make(), metric_of(fails), n_threads=2)

    def test_functions_that_cannot_be_sent(self):
        metric = metric_of(lambda y, v, w: 0.0)
        with pytest.raises(errors.ArgumentError, match=r"n_threads is 2, but .* cannot be sent"):
            test_of(make(), metric, n_threads=2)

    def test_a_group_without_a_value(self):
        y_true, value, group = make()
        y_true[group == "b"] = 0
        with pytest.raises(errors.NotMeasurableError, match="group 'b' has 30 rows and gets NaN"):
            test_of((y_true, value, group), metric_of(positives_only))

    @pytest.mark.parametrize("studentize", ["bootstrap", "none", "shared"])
    @pytest.mark.parametrize("answer", [math.inf, -math.inf])
    def test_a_group_with_an_infinite_value(self, answer, studentize):
        """inf - inf is no gap: refuse it as what has no value."""
        metric = metric_of(lambda y, v, w: answer)
        with pytest.raises(errors.FairAuditError, match="inf"):
            test_of(make(), metric, studentize=studentize)

    def test_conditions_on_a_score(self):
        """Rows of one decision exchange groups; a score is none, and truncating it is no way."""
        with pytest.raises(errors.FairAuditError, match="conditions_on is 'decision'"):
            test_of(make(), metric_of(conditions_on="decision"), studentize="none")

    def test_conditions_on_labels_that_are_numbers(self):
        """Labels 0.2 and 0.7 are different, and so are -1 and 3: not exchanged, or refused."""
        y_true, value, group = make()
        metric = metric_of(conditions_on="label")
        options = {"studentize": "none", "n_resamples": 99}
        plain = test_of((y_true, value, group), metric, **options)
        for low, high in ((0.2, 0.7), (-1.0, 3.0)):
            data = (np.where(y_true == 1, high, low), value, group)
            try:
                result = test_of(data, metric, **options)
            except errors.FairAuditError as error:
                assert "conditions_on" in str(error)  # noqa: PT017 (one of two good ends)
            else:
                assert np.array_equal(result.null_distribution, plain.null_distribution)


class TestKnownValues:
    def test_medians(self):
        """Medians 3 and 20: a gap of -17."""
        metric = metric_of(median)
        result = fa.permutation_test(
            np.zeros(10, dtype=int),
            y_score=[1, 2, 3, 4, 90, 10, 15, 20, 21, 22],
            sensitive_features=list("aaaaabbbbb"),
            metric=metric,
            n_resamples=99,
            rng=1,
        )
        assert [value.value for value in result.values] == [3, 20]
        assert result.estimate == -17
        assert (result.engine, result.studentize) == ("callable", "bootstrap")
        assert result.interval == "bootstrap-se"

    def test_what_the_function_gets(self):
        seen = []

        def spy(y_true, value, weight):
            seen.append((y_true.dtype, value.dtype, None if weight is None else weight.dtype))
            return float(len(y_true))

        test_of(make(), metric_of(spy), n_resamples=2)
        test_of(make(), metric_of(spy), n_resamples=2, sample_weight=np.arange(1, 61))
        kinds = {tuple(None if value is None else value.kind for value in entry) for entry in seen}
        assert kinds == {("f", "f", None), ("f", "f", "f")}


class TestReference:
    @pytest.mark.parametrize("studentize", ["none", "shared"])
    def test_pvalues_are_those_of_all_permutations(self, studentize):
        y_true, value, group = make(1, n=10)
        observed = np.median(value[group == "a"]) - np.median(value[group == "b"])
        law = []
        for chosen in itertools.combinations(range(10), 5):
            inside = np.isin(np.arange(10), chosen)
            law.append(np.median(value[inside]) - np.median(value[~inside]))
        p = np.mean([permutation.is_extreme(term, observed, "two-sided") for term in law])
        result = test_of((y_true, value, group), metric_of(median), studentize=studentize,
                         n_resamples=4_000)  # fmt: skip
        null = result.null_distribution
        scale = 1.0
        if studentize == "shared":
            scale = result.estimate / result.statistic
            assert np.std(null, ddof=1) == pytest.approx(1)
        assert result.statistic * scale == pytest.approx(observed, rel=1e-12)
        assert {round(entry, 9) for entry in null * scale} <= {round(term, 9) for term in law}
        low, high = binom(4_000, p).ppf(1e-6), binom(4_000, p).isf(1e-6)
        assert (1 + low) / 4_001 <= result.pvalue <= (1 + high) / 4_001

    def test_the_bootstrap_of_every_replicate(self):
        """S = T / sqrt(v), v of equation (1): near the slow one with many samples."""
        data = y_true, value, group = make(2, n=50)
        metric = metric_of(mean, n_samples=2_000)
        result = test_of(data, metric, n_resamples=1)
        sides = [(y_true[group == g], value[group == g], np.ones(25)) for g in "ab"]
        v = reference.bootstrap_variance(mean, *sides, 2_000, np.random.default_rng(1))
        assert result.statistic == pytest.approx(result.estimate / math.sqrt(v), rel=0.12)
        assert result.standard_error == pytest.approx(math.sqrt(v), rel=0.12)
        theory = math.sqrt(sum(reference.ratio_variance(value[group == g]) for g in "ab"))
        assert result.standard_error == pytest.approx(theory, rel=0.1)

    def test_bootstrap_pvalues(self):
        y_true, value, group = make(3, n=40)
        value = value + 0.15 * (group == "a")
        slow = reference.callable_pvalue(
            lambda value: value.mean(), (value,), group, 400, 20, np.random.default_rng(1)
        )
        fast = test_of((y_true, value, group), metric_of(), n_resamples=999)
        assert abs(fast.pvalue - slow["pvalue"]) < 4.9 * math.sqrt(0.25 / 400)
        for share in (0.1, 0.5, 0.9):
            at = np.quantile(slow["null"], share)
            assert np.mean(fast.null_distribution <= at) == pytest.approx(share, abs=0.12)

    @pytest.mark.parametrize("interval", ["basic", "percentile"])
    def test_intervals(self, interval):
        data = make(4)
        _, value, group = data
        result = test_of(data, metric_of(), interval=interval, n_resamples=1_000,
                         studentize="none")  # fmt: skip
        sides = [(value[group == g],) for g in "ab"]
        rng = np.random.default_rng(1)
        replicates = [
            reference.difference(np.mean, *(reference.resample(side, rng) for side in sides))
            for _ in range(1_000)
        ]
        if interval == "basic":
            slow = reference.basic_interval(result.estimate, replicates)
        else:
            slow = reference.percentile_interval(replicates)
        assert result.confidence_interval == pytest.approx(slow, abs=0.6 * np.std(replicates))
        assert result.interval == interval

    def test_clusters_move_together(self):
        """Eight clusters: the law is that of all 70 assignments of clusters."""
        rng = np.random.default_rng(5)
        cluster = np.repeat(np.arange(8), [1, 3, 2, 2, 1, 3, 2, 2])
        value = rng.normal(size=16) + cluster % 3
        names = np.array(list("aabbabab"))
        data = (np.zeros(16, dtype=int), value, names[cluster])
        law = []
        for chosen in itertools.combinations(range(8), 4):
            inside = np.isin(cluster, chosen)
            law.append(round(value[inside].mean() - value[~inside].mean(), 9))
        result = test_of(data, metric_of(), studentize="none", clusters=cluster, n_resamples=2_000)
        assert {round(entry, 9) for entry in result.null_distribution} == set(law)
        assert result.exchanged == "clusters"
        many = test_of(data, metric_of(n_samples=2_000), clusters=cluster, n_resamples=1)
        v = sum(
            reference.clustered_ratio_variance(value[data[2] == g], cluster=cluster[data[2] == g])
            for g in "ab"
        )
        # Few clusters of unequal size: the bootstrap of a ratio is near its linearisation.
        assert many.standard_error == pytest.approx(math.sqrt(v), rel=0.35)


class TestUndefined:
    def test_no_evidence_from_an_observed_statistic_without_a_value(self):
        """Bootstrap samples of few positives have no value: there is no statistic, so no p."""
        rng = np.random.default_rng(0)
        y_true = np.r_[np.zeros(28), 1, 1, np.tile([0, 1], 15)].astype(int)
        data = (y_true, rng.random(60), np.repeat(["a", "b"], 30))
        try:
            result = test_of(data, metric_of(positives_only, n_samples=40), n_resamples=199)
        except errors.FairAuditError:
            return
        assert math.isfinite(result.statistic) or math.isnan(result.pvalue) or result.pvalue == 1
        assert "more than chance explains" not in result.summary()

    def test_replicates_without_a_value_are_extreme(self):
        y_true = np.zeros(40, dtype=int)
        y_true[[0, 1, 2, 20, 21, 22]] = 1
        data = (y_true, np.linspace(0, 1, 40), np.repeat(["a", "b"], 20))
        result = test_of(data, metric_of(positives_only), studentize="none", n_resamples=499)
        undefined = np.isnan(result.null_distribution)
        assert result.n_undefined == undefined.sum() > 0
        extreme = undefined | (
            np.abs(result.null_distribution) >= abs(result.statistic) * (1 - 1e-10)
        )
        assert result.pvalue == (1 + extreme.sum()) / 500
        assert any("no value in some group" in text for text in result.warnings)


class TestProperties:
    @pytest.mark.parametrize("studentize", ["bootstrap", "shared", "none"])
    def test_relabelled_groups(self, studentize):
        y_true, value, group = make(6)
        first = test_of((y_true, value, group), metric_of(), studentize=studentize)
        renamed = np.where(group == "a", "z", group)
        second = test_of((y_true, value, renamed), metric_of(), studentize=studentize)
        assert second.estimate == -first.estimate
        assert np.sign(second.statistic) == -np.sign(first.statistic)

    def test_processes(self):
        first = test_of(make(7), metric_of(median))
        for n_threads in (1, 2):
            other = test_of(make(7), metric_of(median), n_threads=n_threads)
            assert np.array_equal(other.null_distribution, first.null_distribution)
            assert other.to_dict() == first.to_dict()

    @pytest.mark.parametrize("design", ["none", "weights", "clusters", "both", "strata"])
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    @pytest.mark.parametrize("studentize", ["bootstrap", "shared", "none"])
    def test_compiled_functions_give_the_same_bits(self, studentize, groups, design):
        function = compiled()
        cluster = np.repeat(np.arange(30), 3)
        y_true, value, _ = make(8, n=90)
        group = np.resize(list(groups), 30)[cluster]
        options = {"studentize": studentize}
        if design in ("weights", "both"):
            options["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2, 90)
        if design in ("clusters", "both"):
            options["clusters"] = cluster
        if design == "strata":
            options["strata"] = np.resize([0, 1], 90)
        slow = test_of((y_true, value, group), metric_of(sums, n_samples=5), n_resamples=20,
                       **options)  # fmt: skip
        for n_threads in (None, 1, 2, 7):
            fast = test_of(
                (y_true, value, group),
                fa.metrics.callable_metric(
                    "sums", function, columns=("y_true", "y_score"), n_samples=5
                ),
                n_threads=n_threads,
                n_resamples=20,
                **options,
            )
            assert fast.statistic == slow.statistic
            assert np.array_equal(fast.null_distribution, slow.null_distribution)
            assert fast.to_dict() == slow.to_dict()

    def test_bits_of_every_instruction_set(self):
        code = (
            "import hashlib\n"
            "from tests.permutation.test_callable import make, metric_of, test_of, median\n"
            "result = test_of(make(9), metric_of(median))\n"
            "print(hashlib.sha256(result.null_distribution.tobytes()).hexdigest())\n"
        )
        assert len(outputs_of_instruction_sets(code)) == 1

    def test_equal_weights_are_none(self):
        first = test_of(make(10), metric_of())
        for weight in (1.0, 0.25):
            second = test_of(make(10), metric_of(), sample_weight=np.full(60, weight))
            assert second.null_distribution == pytest.approx(first.null_distribution, rel=1e-9)

    def test_frames(self):
        y_true, value, group = make(11)
        cluster, weight = np.arange(60), np.linspace(1, 2, 60)
        first = test_of((y_true, value, group), metric_of(), clusters=cluster, sample_weight=weight)
        frame = pl.DataFrame({"y": y_true, "s": value, "group": group, "who": cluster, "w": weight})
        other = fa.permutation_test(
            data=frame,
            y_true="y",
            y_score="s",
            sensitive_features="group",
            clusters="who",
            sample_weight="w",
            metric=metric_of(),
            rng=1,
            n_resamples=49,
        )
        assert np.array_equal(other.null_distribution, first.null_distribution)
        assert other.pvalue == first.pvalue

    def test_decisions(self):
        """A count metric as a function: the values of the registry."""
        y_true, value, group = make(12, n=200)
        y_pred = (value > 0.6).astype(int)

        def rate(y_true, y_pred, weight):
            return float(y_pred[y_true == 1].mean())

        metric = fa.metrics.callable_metric("rate", rate, conditions_on="label", n_samples=5)
        own = fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric=metric, rng=1, n_resamples=9
        )
        known = fa.permutation_test(y_true, y_pred, sensitive_features=group, metric="tpr", rng=1)
        assert own.estimate == pytest.approx(known.estimate, rel=1e-12)
        assert own.exchanged == "rows of the same label"

    @pytest.mark.parametrize("studentize", ["bootstrap", "shared", "none"])
    def test_adaptive(self, studentize):
        """The same first replicates, and a statistic on the same scale as without stopping."""
        data = make(13)
        options = {"studentize": studentize, "n_resamples": 128}
        metric = metric_of(n_samples=5)
        fixed = test_of(data, metric, **options)
        stopped = test_of(data, metric, adaptive=True, **options)
        assert stopped.statistic == pytest.approx(fixed.statistic, rel=1e-12)
        assert stopped.null_distribution == pytest.approx(fixed.null_distribution, rel=1e-12)

    def test_an_interval_says_what_it_is(self):
        """There is no delta method for a function: refused as "studentized" is, or named."""
        try:
            result = test_of(make(14), metric_of(), interval="delta")
        except errors.ArgumentError as error:
            assert "interval is 'delta'" in str(error)  # noqa: PT017 (one of two good ends)
        else:
            assert result.interval == "bootstrap-se"


@pytest.mark.calibration
class TestCalibration:
    N_AUDITS = 400

    def rejected(self, audit):
        rng = np.random.default_rng(1)
        return np.mean([audit(rng) <= 0.05 for _ in range(self.N_AUDITS)])

    def test_size(self):
        """A mean by machine code, 60 + 60 rows of spread 1 and 4, B = 99."""
        function = compiled()

        def audit(rng, studentize="bootstrap", sizes=(60, 60)):
            group = np.repeat(["a", "b"], sizes)
            value = rng.normal(size=sum(sizes)) * np.where(group == "a", 4, 1)
            metric = metric_of(function, n_samples=50)
            data = (np.zeros(sum(sizes), dtype=int), value, group)
            return test_of(data, metric, studentize=studentize, n_resamples=99, rng=rng).pvalue

        law = binom(self.N_AUDITS, 0.05)
        low, high = law.ppf(1e-6) / self.N_AUDITS, law.isf(1e-6) / self.N_AUDITS
        assert low <= self.rejected(audit) <= high
        assert low <= self.rejected(lambda rng: audit(rng, sizes=(40, 160))) <= high
        for broken in ("shared", "none"):
            assert self.rejected(lambda rng, how=broken: audit(rng, how, (40, 160))) > high

    def test_size_with_clusters(self):
        function = compiled()

        def audit(rng, clustered=True):
            cluster = np.repeat(np.arange(80), rng.integers(1, 6, 80))
            value = rng.normal(size=80)[cluster] + 0.5 * rng.normal(size=len(cluster))
            data = (np.zeros(len(cluster), dtype=int), value, np.where(cluster < 40, "a", "b"))
            return test_of(
                data,
                metric_of(function, n_samples=50),
                clusters=cluster if clustered else None,
                n_resamples=99,
                rng=rng,
            ).pvalue

        law = binom(self.N_AUDITS, 0.05)
        low, high = law.ppf(1e-6) / self.N_AUDITS, law.isf(1e-6) / self.N_AUDITS
        assert low <= self.rejected(audit) <= high
        assert self.rejected(lambda rng: audit(rng, False)) > high


class TestStrata:
    """Functions are compared within strata of the user's as formulas are."""

    @staticmethod
    def columns(seed=3, n=600):
        rng = np.random.default_rng(seed)
        stratum = rng.integers(0, 4, n)
        first = rng.random(n) < np.where(stratum % 2, 0.7, 0.3)
        return {
            "y_true": rng.integers(0, 2, n),
            "y_pred": (rng.random(n) < 0.2 + 0.2 * stratum).astype(int),
            "sensitive_features": np.where(first, "a", "b"),
            "strata": stratum,
            "rng": 1,
        }

    @staticmethod
    def f1(y_true, y_pred, weight):
        weight = np.ones(len(y_true)) if weight is None else weight
        hits, both = weight @ (y_true * y_pred), weight @ (y_true + y_pred)
        return float(2 * hits / both) if both else math.nan

    @pytest.mark.parametrize("design", ["none", "weights", "clusters"])
    def test_f1_is_f1(self, design):
        columns = self.columns()
        if design == "weights":
            columns["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2, 600)
        if design == "clusters":
            # Two rows of one group and stratum.
            columns = {name: np.repeat(part, 2) if name != "rng" else 1
                       for name, part in columns.items()}  # fmt: skip
            columns["clusters"] = np.repeat(np.arange(600), 2)
        own = fa.metrics.callable_metric("own", self.f1, n_samples=400)
        ours = fa.permutation_test(metric=own, n_resamples=1, **columns)
        formula = fa.permutation_test(metric="f1", n_resamples=99, **columns)
        assert ours.estimate == pytest.approx(formula.estimate, rel=1e-9)
        # A bootstrap of 400 samples knows a standard deviation to 3.5 %.
        assert ours.standard_error == pytest.approx(formula.standard_error, rel=0.2)
        marginal = fa.permutation_test(metric=own, n_resamples=1, **{**columns, "strata": None})
        assert abs(marginal.estimate - ours.estimate) > 0.003
        assert [value.value for value in ours.values] == [value.value for value in marginal.values]

    def test_what_strata_explain_is_no_evidence(self):
        """Values that follow the stratum alone: told apart at once where it is left out."""
        columns = self.columns()
        value = 5.0 * columns["strata"] + np.random.default_rng(2).normal(size=600)
        data = {"y_true": columns["y_true"], "y_score": value, "rng": 1, "n_resamples": 99}
        data["sensitive_features"] = columns["sensitive_features"]
        own = metric_of(mean)
        within = fa.permutation_test(metric=own, strata=columns["strata"], **data)
        assert within.pvalue > 0.05
        assert fa.permutation_test(metric=own, **data).pvalue <= 0.02
        groups = np.resize(list("abc"), 600)
        of_three = {**data, "sensitive_features": groups, "strata": columns["strata"]}
        assert fa.permutation_test(metric=own, **of_three).pvalue > 0.05

    def test_strata_that_take_no_part_are_counted(self):
        columns = self.columns()
        alone = np.flatnonzero(columns["sensitive_features"] == "a")[:3]
        # One row of "a" in one stratum, and a stratum without "b".
        columns["strata"][alone] = [8, 9, 9]
        columns["strata"][np.flatnonzero(columns["sensitive_features"] == "b")[:4]] = 8
        own = fa.metrics.callable_metric("own", self.f1, n_samples=20)
        result = fa.permutation_test(metric=own, n_resamples=9, **columns)
        assert any(
            text.startswith("2 of 6 strata hold no value of own") for text in result.warnings
        )
        kept = columns["strata"] < 8
        others = {k: v if k == "rng" else v[kept] for k, v in columns.items()}
        other = fa.permutation_test(metric=own, n_resamples=9, **others)
        assert result.estimate == pytest.approx(other.estimate, rel=1e-12)

    def test_other_intervals_are_refused(self):
        own = fa.metrics.callable_metric("own", self.f1, n_samples=20)
        with pytest.raises(ValueError, match="interval is 'basic' with strata of your own"):
            fa.permutation_test(metric=own, interval="basic", n_resamples=9, **self.columns())
