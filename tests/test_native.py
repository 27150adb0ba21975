"""The seam: random numbers against NumPy, signals, threads, forks, panics, imports."""

import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native, errors

from . import long_calls, native_calls, native_fuzz
from .children import run_child
from .reference import permutation as reference

DRAWS = _native.Draws(200_000, seed=3)
ONES = (1, 1, 1, 1)


def long_test(n_resamples=100_000_000, **options):
    """A test that would run for minutes."""
    draws, call = _native.Draws(n_resamples, seed=1), _native.Call(**options)
    counts = [[[9_000, 3_000, 4_000, 9_500], [8_000, 3_500, 4_200, 9_900]]]
    return count_test(counts, "f1", studentize="unpooled").null_distribution(draws, call)


def count_test(counts=((ONES, ONES),), metric="tpr", **options):
    """A test on counts by stratum, group and class."""
    native = fa.metrics.get(metric).native
    options = {"studentize": "none", **options}
    return _native.PermutationTest.counts(np.array(counts, np.uint64), native, **options)


def mean_test(values, group, n_groups=2, **codes):
    """A test on rows or clusters."""
    codes = {name: np.array(column, np.uint32) for name, column in codes.items()}
    units = _native.Units(np.array(group, np.uint16), n_groups, **codes)
    return _native.PermutationTest.ratio(values, None, units, _native.Call(), studentize="none")


def run_python(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


class TestArguments:
    def test_arrays_that_are_not_contiguous(self):
        metric, table = fa.metrics.get("tpr").native, np.ones((2, 2, 8), np.uint64)
        for view in (table[:, :, ::2], np.asfortranarray(table[:, :, :4]), table[::-1, :, :4]):
            with pytest.raises(TypeError, match=r"not contiguous; pass [^']*'counts'"):
                _native.PermutationTest.counts(view, metric, studentize="none")

    def test_arrays_that_are_not_aligned(self):
        column = np.zeros(8 * 4 + 1, np.uint8)[1:].view(np.float64)
        with pytest.raises(TypeError, match=r"not contiguous; pass [^']*'numerator'"):
            mean_test(column, [0, 1, 0, 1])

    def test_shapes_that_do_not_fit(self):
        with pytest.raises(errors.ArgumentError, match="strata x groups x classes"):
            count_test([[[1, 2, 3, 4]]])
        with pytest.raises(errors.ArgumentError, match="metric is over 4 classes"):
            count_test([[[1, 2], [3, 4]]])
        with pytest.raises(TypeError, match=r"dimensionality mismatch[^']*'counts'"):
            count_test(ONES)
        with pytest.raises(errors.ArgumentError, match="counts is 3 numbers; accepted: 4 counts"):
            fa.metrics.get("tpr").native.evaluate([1, 2, 3])

    def test_unknown_words(self):
        with pytest.raises(errors.ArgumentError, match="studentize is x"):
            count_test(studentize="x")
        with pytest.raises(errors.ArgumentError, match="conditioning is x"):
            count_test(conditioning="x")
        with pytest.raises(errors.ArgumentError, match="alternative is x"):
            count_test().exact("x", _native.Call())

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"n_groups": 1}, "n_groups is 1; accepted: between 2 and 65,536"),
            ({"n_groups": 2**40}, "n_groups is 1099511627776; accepted"),
            ({"group": [0, 1, 2, 1]}, "group is 2 somewhere; accepted: codes below n_groups"),
            ({"group": [0, 1]}, "numerator is of length 4; accepted: one value for each of 2"),
            ({"stratum": [0, 1]}, "stratum is of length 2; accepted: one code for each of 4"),
            ({"of_row": [0, 4]}, "of_row is 4 somewhere; accepted: codes below 4"),
        ],
    )
    def test_units_that_do_not_fit(self, changes, message):
        with pytest.raises(errors.ArgumentError, match=message):
            mean_test(np.arange(4.0), **{"group": [0, 1, 1, 0], **changes})

    def test_marks_are_any_bytes_but_0(self):
        """A view of bytes can hold booleans that neither NumPy nor Rust would make."""
        score, call = np.arange(8.0), _native.Call()
        units = _native.Units(np.arange(8, dtype=np.uint16) // 2 % 2, 2)
        odd = np.array([0, 2, 0, 255, 3, 0, 1, 0], np.uint8)

        def evaluations(marks):
            made = _native.PermutationTest.auc(score, marks, units, call, studentize="none")
            return made.evaluations

        assert evaluations(odd) == evaluations(odd.view(bool)) == evaluations(odd != 0)
        found = [_native.tabulate([value], [2], call) for value in (odd.view(bool), odd != 0)]
        assert sorted(found[0].counts) == sorted(found[1].counts) == [4, 4]
        rows, share = np.arange(8), np.full(8, 0.5)
        moments = [
            _native.group_moments((rows, marks, share), call).tolist()
            for marks in (odd.view(bool), odd != 0, odd)
        ]
        assert moments[0] == moments[1] == moments[2]

    def test_pairs_of_groups_that_are_not_there(self):
        pairs, draws, call = [(0, 1), (0, 9)], _native.Draws(10, seed=1), _native.Call()
        with pytest.raises(errors.ArgumentError, match=r"pairs is \(0, 9\) somewhere; accepted"):
            count_test().max_t(pairs, draws, call)
        with pytest.raises(errors.ArgumentError, match=r"pairs is \(0, 9\) somewhere; accepted"):
            count_test().max_t_pvalues(pairs, np.zeros(2, np.uint64), 10)
        with pytest.raises(errors.ArgumentError, match="counts is of length 2; accepted"):
            count_test().max_t_pvalues([(0, 1)], np.zeros(2, np.uint64), 10)

    def test_groups_of_a_correlation(self):
        draws, call = _native.Draws(10, seed=1), _native.Call()
        test = native_calls.permutation_tests()["correlation"]
        assert test.n_strata == 1
        for ask in (
            lambda: test.bootstrap(draws, call),
            lambda: test.max_t([], draws, call),
            lambda: test.shifts(draws, call),
            lambda: test.contrast(0, 1),
        ):
            with pytest.raises(errors.ArgumentError, match="test is one without groups"):
                ask()

    def test_no_threads(self):
        with pytest.raises(errors.ArgumentError, match="n_threads is 0"):
            long_test(10, n_threads=0)

    def test_replicates_beyond_the_last_index(self):
        with pytest.raises(errors.ArgumentError, match=r"n is 9; accepted: at most 5 replicates"):
            _native.Draws(9, seed=1, first=2**64 - 6)
        with pytest.raises(TypeError, match="positional"):
            _native.Draws(9, 1)


def takes_arguments(function):
    """Of a function in the stub: whether there is anything but self or the class."""
    names = [arg.arg for arg in [*function.args.args, *function.args.kwonlyargs]]
    return bool(set(names) - {"self", "cls"})


class TestFuzz:
    def test_arguments_that_do_not_fit_are_refused(self):
        """In a process of its own, which a failing allocation would end."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.native_fuzz"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        lines = done.stdout.splitlines()
        assert done.returncode == 0, [*lines[-1:], done.stderr[-2_000:]]
        assert [line for line in lines if line.startswith("!")] == []
        tried = {line.split()[1] for line in lines if line.startswith("?")}
        known = native_calls.callables()
        with_arguments = {name for name, value in known.items() if takes_arguments(value)}
        assert tried == with_arguments - native_fuzz.NOT_TRIED.keys()
        # Nothing that it is told not to try was renamed.
        assert native_fuzz.NOT_TRIED.keys() <= known.keys()


class TestPanics:
    def test_every_call_is_guarded(self, tmp_path):
        csv_file = tmp_path / "rows.csv"
        csv_file.write_text("group,label\na,1\nb,0\n")
        calls = native_calls.small_calls(str(csv_file))
        assert set(calls) == native_calls.takers_of_calls()
        for name, run in calls.items():
            run(_native.Call())
            try:
                run(_native.Call.planted_panic())
            except errors.InternalError as error:
                message = str(error)
            else:
                message = "no panic"
            assert re.search("planted.*please report it", message), name
            run(_native.Call())

    @pytest.mark.parametrize("n_resamples", [10, 30_000, 10**12])
    def test_on_any_number_of_threads(self, n_resamples):
        draws = _native.Draws(n_resamples, seed=1)
        with pytest.raises(errors.InternalError, match=r"planted.*please report it"):
            count_test().null_distribution(draws, _native.Call.planted_panic())


class TestOptions:
    def test_draws_are_values(self):
        draws = _native.Draws(9, seed=2**64 - 1, first=3)
        assert repr(draws) == f"Draws(9, seed={2**64 - 1}, series=0, first=3)"
        assert (draws.n, draws.seed, draws.series, draws.first) == (9, 2**64 - 1, 0, 3)
        again = pickle.loads(pickle.dumps(draws))
        assert again == draws
        assert hash(again) == hash(draws)
        assert draws != _native.Draws(9, seed=2**64 - 1)

    def test_a_call_says_what_it_was_given(self):
        call = pickle.loads(pickle.dumps(_native.Call(3, print)))
        assert (call.n_threads, call.progress) == (3, print)
        assert (_native.Call().n_threads, _native.Call().progress) == (None, None)

    def test_parts_of_the_draws_are_those_of_the_whole(self):
        for name, run in native_calls.draws_of_every_kind().items():
            whole = run(_native.Draws(40, seed=7, series=2))
            part = run(_native.Draws(9, seed=7, series=2, first=20))
            assert np.array_equal(whole[20:29], part), name
            assert not np.array_equal(whole, run(_native.Draws(40, seed=7, series=3))), name


class TestRanges:
    """A range of replicates is the unit of work: what comes of ranges is joined, or added up."""

    N = 80

    def ranges(self, n_ranges):
        """Parts of the replicates from 5 on."""
        ends = np.linspace(5, 5 + self.N, n_ranges + 1).astype(int).tolist()
        return [
            _native.Draws(end - first, seed=7, series=2, first=first)
            for first, end in itertools.pairwise(ends)
        ]

    @pytest.mark.parametrize("n_ranges", [2, 7, 13])
    def test_ranges_give_the_bits_of_the_whole(self, n_ranges):
        [whole], parts, call = self.ranges(1), self.ranges(n_ranges), _native.Call()
        for name, test in native_calls.permutation_tests().items():
            null = test.null_distribution(whole, call)
            joined = [test.null_distribution(part, call) for part in parts]
            assert null.tobytes() == np.concatenate(joined).tobytes(), name
            audits = test.audits(19, whole, call)
            joined = [test.audits(19, part, call) for part in parts]
            assert audits.tobytes() == np.concatenate(joined).tobytes(), name
            if "correlation" in name:
                continue
            pairs = [(0, 1), (0, 2), (1, 2)] if len(test.evaluations) == 3 else [(1, 0)]
            counts = test.max_t(pairs, whole, call)
            assert counts.max() > 0, name
            assert counts.min() < self.N, name
            assert np.array_equal(counts, sum(test.max_t(pairs, part, call) for part in parts)), (
                name
            )
            if name in native_calls.IN_STRATA:
                with pytest.raises(errors.ArgumentError, match="rows without strata"):
                    test.bootstrap(whole, call)
                continue
            drawn = test.bootstrap(whole, call)
            joined = [test.bootstrap(part, call) for part in parts]
            again = _native.Replicates(
                np.concatenate([part.values for part in joined]),
                np.concatenate([part.variances for part in joined]),
            )
            assert again == drawn, name

    @pytest.mark.parametrize("n_ranges", [2, 7, 13])
    def test_shifts_join(self, n_ranges):
        [whole], parts, call = self.ranges(1), self.ranges(n_ranges), _native.Call()
        for name, test in native_calls.shift_tests().items():
            shifts, [first, *others] = test.shifts(whole, call), parts
            joined = test.shifts(first, call)
            for part in others:
                joined = joined.joined(test.shifts(part, call))
            assert joined == shifts == pickle.loads(pickle.dumps(shifts)), name
            assert shifts.studentized == pytest.approx(test.observed, rel=1e-9), name
            null = test.null_distribution(whole, call)
            assert shifts.null_distribution() == pytest.approx(null, rel=1e-7), name

    def test_shifts_of_other_tests_are_refused(self):
        tests, [draws], call = native_calls.permutation_tests(), self.ranges(1), _native.Call()
        for name in ("mean", "auc of two", "counts"):
            with pytest.raises(errors.ArgumentError, match="test is another; accepted: one of two"):
                tests[name].shifts(draws, call)
        wrong = np.zeros((4, 8)), np.zeros(9), np.zeros((2, 3))
        with pytest.raises(errors.ArgumentError, match=r"replicates is of shape \[4, 8\]"):
            _native.Shifts(wrong[1], wrong[2], wrong[0])
        with pytest.raises(errors.ArgumentError, match=r"observed is of shape \[3\]; accepted"):
            _native.Shifts(np.zeros(3), wrong[2], np.zeros((4, 9)))
        with pytest.raises(errors.ArgumentError, match=r"shapes is of shape \[3, 2\]; accepted"):
            _native.Shifts(wrong[1], np.zeros((3, 2)), np.zeros((4, 9)))
        with pytest.raises(errors.ArgumentError, match="replicates is infinite somewhere"):
            _native.Shifts(wrong[1], wrong[2], np.full((4, 9), np.inf))

    def test_step_down_pvalues_are_made_of_the_sums(self):
        test, pairs = native_calls.permutation_tests()["mean"], [(0, 1), (0, 2), (1, 2)]
        [whole] = self.ranges(1)
        counts = test.max_t(pairs, whole, _native.Call())
        pvalues = np.array(test.max_t_pvalues(pairs, counts, self.N))
        statistics = [abs(gap) for gap in self.studentized(test, pairs)]
        order = np.argsort(statistics)[::-1]
        expected = np.maximum.accumulate(((1 + counts) / (1 + self.N))[order])
        assert np.array_equal(pvalues[order], expected)

    def studentized(self, test, pairs):
        for i, j in pairs:
            first, second = test.evaluations[i], test.evaluations[j]
            yield (first.value - second.value) / np.sqrt(first.variance + second.variance)

    def test_values_without_variances_are_the_same(self):
        [whole], call = self.ranges(1), _native.Call()
        for name, test in native_calls.permutation_tests().items():
            if "correlation" not in name and name not in native_calls.IN_STRATA:
                values = test.bootstrap(whole, call, variances=False)
                assert values.variances is None
                both = test.bootstrap(whole, call)
                assert values.values.tobytes() == both.values.tobytes(), name


class TestAnswers:
    def test_answers_are_values(self):
        call, tests = _native.Call(), native_calls.permutation_tests()
        replicates = tests["counts"].bootstrap(_native.Draws(9, seed=1), call)
        answers = [
            tests["counts"].evaluations[0],
            tests["correlation"].evaluations[0],
            count_test().exact("two-sided", call),
            replicates,
            _native.Replicates(replicates.values),
            _native.Units(np.arange(4, dtype=np.uint16), 4),
            _native.Units(np.zeros(4, np.uint16), 2, of_row=np.zeros(9, np.uint32)),
        ]
        for i, answer in enumerate(answers):
            again = pickle.loads(pickle.dumps(answer))
            assert again == answer
            assert [other == answer for other in answers] == [j == i for j in range(len(answers))]
        with pytest.raises(AttributeError):
            answers[0].value = 1.0

    def test_a_correlation_is_its_one_evaluation(self):
        rng = np.random.default_rng(5)
        x, y = rng.random((2, 50))
        made = _native.PermutationTest.correlation(x, y, _native.Call(), studentize="unpooled")
        [found] = made.evaluations
        assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1])


class TestKnownValues:
    def test_philox_is_that_of_numpy(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            key = rng.integers(0, 2**64, 2, dtype=np.uint64)
            counter = rng.integers(1, 2**64, 4, dtype=np.uint64)
            # NumPy increments the counter before it makes a block.
            before = counter.copy()
            before[0] -= np.uint64(1)
            oracle = np.random.Philox(key=key, counter=before).random_raw(4)
            assert _native.philox(counter.tolist(), key.tolist()) == oracle.tolist()

    @pytest.mark.parametrize("df", [1.0, 2.6, 9.0, 57.3, 800.0, 3e5, 1e13, np.inf])
    def test_students_t(self, df):
        law = stats.t(df) if np.isfinite(df) else stats.norm
        for t in (-3.0, 0.0, 1e-6, 0.4, 2.0, 8.0, 30.0):
            assert _native.t_upper_tail(t, df) == pytest.approx(law.sf(t), rel=1e-10)
        for tail in (1e-30, 1e-6, 0.025, 0.3, 0.5, 0.9):
            assert _native.t_tail_quantile(tail, df) == pytest.approx(law.isf(tail), rel=1e-8)

    def test_normal_quantiles(self):
        for p in (1e-12, 0.025, 0.5, 0.9, 0.999):
            assert _native.normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-10)

    def test_clopper_pearson(self):
        for k, n in ((0, 99), (3, 99), (50, 9_999), (9_999, 9_999), (123, 1_000_000)):
            expected = reference.clopper_pearson(k, n, 0.99)
            assert _native.clopper_pearson(k, n, 0.99) == pytest.approx(expected, rel=1e-8)


class TestReference:
    """Draws against exact rational laws (small) and against scipy's laws (large)."""

    def check(self, draws, law, n):
        values = np.array(sorted(law))
        expected = np.array([float(law[value]) for value in values]) * n
        counts = np.array([np.sum(draws == value) for value in values])
        assert counts.sum() == n
        large = expected >= 10
        pooled = np.append(expected[large], expected[~large].sum() + 1e-9)
        found = np.append(counts[large], counts[~large].sum())
        statistic = np.sum((found - pooled) ** 2 / pooled)
        assert statistic < stats.chi2.isf(1e-6, max(len(pooled) - 1, 1))

    @pytest.mark.parametrize("parameters", [(9, 4, 5), (30, 14, 15), (40, 33, 21), (60, 29, 30)])
    def test_hypergeometric(self, parameters):
        draws = _native.hypergeometric(*parameters, DRAWS, _native.Call())
        self.check(draws, reference.hypergeometric_law(*parameters), 200_000)

    @pytest.mark.parametrize("parameters", [(6, Fraction(1, 3)), (70, Fraction(4, 10))])
    def test_binomial(self, parameters):
        trials, p = parameters
        draws = _native.binomial(trials, float(p), DRAWS, _native.Call())
        self.check(draws, reference.binomial_law(trials, p), 200_000)

    @pytest.mark.parametrize(
        "parameters",
        [(10**6, 4 * 10**5, 5 * 10**5), (10**9, 10**3, 10**8), (10**12, 10**6, 3 * 10**11)],
    )
    def test_large_hypergeometric_moments(self, parameters):
        population, marked, n_drawn = parameters
        draws = _native.Draws(400_000, seed=4)
        draws = _native.hypergeometric(*parameters, draws, _native.Call()).astype(float)
        share = marked / population
        mean = n_drawn * share
        variance = mean * (1 - share) * (population - n_drawn) / (population - 1)
        z = (draws - mean) / np.sqrt(variance)
        assert abs(z.mean()) < 4.9 / np.sqrt(400_000)
        assert abs(z.var() - 1) < 4.9 * np.sqrt(2 / 400_000)
        skew = (population - 2 * marked) * np.sqrt(population - 1) * (population - 2 * n_drawn)
        skew /= np.sqrt(float(n_drawn) * marked * (population - marked) * (population - n_drawn))
        assert abs(np.mean(z**3) - skew / (population - 2)) < 4.9 * np.sqrt(15 / 400_000)


class TestSignals:
    def test_ctrl_c_is_heard(self):
        code = (
            "import threading, time\n"
            "import os, signal\n"
            "from tests.test_native import long_test\n"
            "long_test(1000)\n"
            "def interrupt(done):\n"
            "    told.append(done)\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "told = []\n"
            "try:\n"
            "    long_test(progress=interrupt)\n"
            "except KeyboardInterrupt:\n"
            "    print(len(told), told[0] < 100_000_000)\n"
        )
        done = run_python(code)
        assert done.returncode == 0, done.stderr
        # At once: nobody was told more of a call that takes minutes.
        assert done.stdout.split() == ["1", "True"]

    @pytest.mark.parametrize("make", long_calls.CALLS, ids=lambda make: make.__name__)
    def test_ctrl_c_during_public_calls(self, make):
        run, sent, ended_early = make(), [], []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        def run_and_wait():
            threading.Timer(0.3, interrupt).start()
            run()
            ended_early.append(True)
            # A late signal comes here instead of ending the tests; a lost one ends this test.
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.1)

        with pytest.raises(KeyboardInterrupt):
            run_and_wait()
        # Heard within the call, which takes long, and not by its end.
        assert not ended_early
        assert time.monotonic() - sent[0] < 30

    def test_an_error_in_the_progress_callback_stops_the_call(self):
        told = []

        def stop(done):
            told.append(done)
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            long_test(progress=stop)
        assert len(told) == 1
        assert told[0] < 100_000_000


class TestThreads:
    def test_the_gil_is_released(self):
        ticks = 0
        stop = threading.Event()

        def count():
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(0.001)

        counter = threading.Thread(target=count)
        counter.start()
        within = []
        # Again where the machine had no time for the other thread.
        while max(within, default=0) < 10 and len(within) < 200:
            before = ticks
            long_test(2_000_000, n_threads=1)
            within.append(ticks - before)
        stop.set()
        counter.join()
        assert within[-1] >= 10

    def test_eight_python_threads_at_once(self):
        alone = long_test(40_000)
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda _: long_test(40_000), range(16)))
        assert all(np.array_equal(alone, null) for null in together)

    def test_a_forked_child_can_run_a_test_after_its_parent(self):
        code = (
            "import os, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "from tests.test_native import long_test\n"
            "parent = long_test(40_000)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(0 if (long_test(40_000) == parent).all() else 3)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        done = run_python(code)
        assert done.stdout.strip() == "0", done.stderr

    def test_lists_of_text_in_a_forked_child(self):
        """Lists are read without polars, whose threads do not survive a fork."""
        code = (
            "import os, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "import fairaudit_rs as fa\n"
            "def run():\n"
            "    return fa.permutation_test([1, 0] * 500, [1, 1, 0, 0] * 250, metric='f1', rng=1,\n"
            "        sensitive_features=['a', 'b', None, 'b', 'a'] * 200).pvalue\n"
            "parent = run()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(0 if run() == parent else 3)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        done = run_python(code)
        assert done.stdout.strip() == "0", done.stderr

    def test_many_threads_are_not_all_started(self):
        tasks = Path("/proc/self/task")
        before, seen = len(list(tasks.iterdir())), []

        def count(done):
            seen.append(len(list(tasks.iterdir())))

        long_test(2_000_000, n_threads=4096, progress=count)
        assert max(seen) - before <= 4 * os.cpu_count() + 1
        assert max(seen) > before

    def test_no_thread_stays(self):
        code = (
            "import os\n"
            "from tests.test_native import long_test\n"
            "before = len(os.listdir('/proc/self/task'))\n"
            "long_test(200_000, n_threads=5)\n"
            "import time\n"
            "deadline = time.monotonic() + 30\n"
            # A thread that has ended leaves the table of processes a little later.
            "while len(os.listdir('/proc/self/task')) > before and time.monotonic() < deadline:\n"
            "    time.sleep(0.01)\n"
            "print(len(os.listdir('/proc/self/task')) - before)\n"
        )
        if not os.path.isdir("/proc/self/task"):  # noqa: PTH112
            pytest.skip("needs /proc")
        assert run_python(code).stdout.strip() == "0"


def test_an_instruction_set_that_is_set_to_nothing_is_not_set():
    code = "import fairaudit_rs as fa; fa.tabulate(y_pred=[0, 1], sensitive_features=[0, 1])"
    assert run_child(code, FAIRAUDIT_SIMD="").returncode == 0
    assert "FAIRAUDIT_SIMD is  ; accepted" in run_child(code, FAIRAUDIT_SIMD=" ").stderr


class TestImport:
    def test_heavy_packages_are_not_loaded(self):
        code = (
            "import sys, fairaudit_rs\n"
            "heavy = {'scipy', 'polars', 'torch', 'pandas', 'highspy', 'sklearn', 'jinja2',"
            " 'rich', 'click', 'msgspec', 'pyarrow'}\n"
            "print(sorted(heavy & set(sys.modules)))\n"
        )
        assert run_python(code).stdout.strip() == "[]"

    def test_importing_is_quick(self):
        """Nothing but the native module, and no more of Python's own than NumPy loads."""
        code = (
            "import sys, numpy\n"
            "before = set(sys.modules)\n"
            "import fairaudit_rs\n"
            "print(*sorted(set(sys.modules) - before))\n"
        )
        assert run_python(code).stdout.split() == ["fairaudit_rs", "fairaudit_rs._native"]

    def test_the_core_works_without_any_extra(self):
        """An import blocker stands in for an environment without the optional packages."""
        code = (
            "import sys\n"
            "class Hide:\n"
            "    def __init__(self, finder):\n"
            "        self.finder = finder\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name.partition('.')[0] in {'torch', 'sklearn', 'onnxruntime', 'pyspark',\n"
            "                'pyarrow', 'pandas', 'optuna'}:\n"
            "            return None\n"
            "        return self.finder.find_spec(name, path, target)\n"
            "sys.meta_path[:] = [Hide(finder) for finder in sys.meta_path]\n"
            "import numpy as np, polars as pl, fairaudit_rs as fa\n"
            "data = fa.datasets.synthetic_credit(500)\n"
            "kwargs = dict(y_true='repaid', y_pred='approved', sensitive_features='sex')\n"
            "frame = pl.DataFrame(data)\n"
            "first = fa.permutation_test(data=frame, metric='tpr', **kwargs)\n"
            "objects = data['sex'].astype(object)\n"
            "second = fa.permutation_test(data['repaid'], data['approved'],\n"
            "    sensitive_features=objects, metric='tpr')\n"
            "assert first.pvalue == second.pvalue\n"
            "from fairaudit_rs.cli import main\n"
            "main(['demo', '--rows', '500'])\n"
        )
        done = run_python(code)
        assert done.returncode == 0, done.stderr
        assert "true_positive_rate" in done.stdout
