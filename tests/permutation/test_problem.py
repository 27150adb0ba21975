"""The contract of problems: immutable, picklable, equal, and each native test made once."""

import dataclasses
import functools
import itertools
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.data.equality import are_equal
from fairaudit_rs.permutation import correlation, counts, rows
from fairaudit_rs.permutation.problem import Problem

from .posing import posed

N = 400


def median_error(y_true, value, weight):
    return float(np.median(np.abs(y_true - value)))


MEDIAN = fa.metrics.callable_metric(
    "median_error", median_error, columns=("y_true", "y_score"), n_samples=5
)


def columns(n_groups=3):
    rng = np.random.default_rng(5)
    group = rng.integers(0, n_groups, N)
    y_true = (rng.random(N) < 0.4 + 0.1 * group).astype(int)
    score = np.clip(0.3 * y_true + 0.5 * rng.random(N), 0, 1).round(3)
    return {
        "y_true": y_true,
        "y_pred": score > 0.4,
        "y_score": score,
        "sensitive_features": group,
    }


def weighted():
    return {"sample_weight": np.random.default_rng(6).random(N) + 0.5}


def clustered():
    rng = np.random.default_rng(7)
    cluster = np.arange(N) // 4
    return {"clusters": cluster, "sensitive_features": rng.integers(0, 3, N // 4)[cluster]}


def strata():
    return {"strata": np.random.default_rng(8).integers(0, 3, N)}


DESIGNS = {
    "rate": lambda: ("tpr", {}),
    "rate in strata": lambda: ("selection_rate", strata()),
    "formula": lambda: ("f1", {}),
    "formula in strata": lambda: ("f1", strata()),
    "calibration": lambda: ("calibration_error", {}),
    "joint": lambda: ("equalized_odds", {}),
    "ranks by score": lambda: ("auc", {"engine": "cells"}),
    "ranks by row": lambda: ("auc", {"engine": "stream"}),
    "ranks in strata": lambda: ("auc", {"engine": "stream", **strata()}),
    "weighted ranks": lambda: ("auc", weighted()),
    "clustered ranks": lambda: ("auc", clustered()),
    "mean": lambda: ("mean_squared_error", {}),
    "mean in strata": lambda: ("mean_squared_error", strata()),
    "weighted rate": lambda: ("tpr", weighted()),
    "clustered formula": lambda: ("f1", clustered()),
    "correlation": lambda: (
        "pearson",
        {"sensitive_features": np.random.default_rng(9).random(N)},
    ),
    "ranks of a correlation": lambda: (
        "spearman",
        {"sensitive_features": np.random.default_rng(9).random(N), **strata()},
    ),
    "function": lambda: (MEDIAN, {}),
}
#: Tests of a function take a while: a few replicates tell.
REPLICATES = {"function": 26}


def problem_of(design, *, turned=False):
    metric, given = DESIGNS[design]()
    chosen = fa.metrics.get(metric)
    needed = {*chosen.needs, "sensitive_features"}
    kept = {name: column for name, column in columns().items() if name in needed} | given
    if turned:
        # Clusters of four rows go on being of one group.
        kept["sensitive_features"] = kept["sensitive_features"][::-1].copy()
    return posed(chosen, 3, **kept)


def bits(array):
    return np.asarray(array, dtype=np.float64).tobytes()


def null_of(problem, first, end):
    draws = _native.Draws(end - first, seed=4, series=2, first=first)
    return problem.test().null_distribution(draws, _native.Call(1))


def bootstrap_of(problem, first, end):
    draws = _native.Draws(end - first, seed=4, series=2, first=first)
    drawn = problem.bootstrap(draws, _native.Call(1))
    return np.concatenate([drawn.values, drawn.variances], axis=1)


def shifts_of(problem, first, end):
    draws = _native.Draws(end - first, seed=4, series=2, first=first)
    return problem.test((0, 1)).shifts(draws, _native.Call(1))


def exceedances_of(problem, first, end):
    pairs = [(0, 1), (0, 2), (1, 2)]
    draws = _native.Draws(end - first, seed=4, series=0, first=first)
    return problem.step_down(pairs, draws, _native.Call(1))


def audits_of(problem, first, end):
    draws = _native.Draws(end - first, seed=4, series=2**63, first=first)
    return problem.equal("shuffle").pvalues(19, draws, _native.Call(1))


def ends(n, n_parts):
    return np.linspace(0, n, n_parts + 1).astype(int)


@pytest.fixture(scope="module")
def workers():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("design", DESIGNS)
class TestContract:
    def test_pickled_problems_are_equal_and_go_on(self, design):
        problem = problem_of(design)
        again = pickle.loads(pickle.dumps(problem))
        assert again == problem
        assert are_equal(again.evaluations, problem.evaluations)
        assert again.gap((0, 1)) == problem.gap((0, 1))
        assert bits(null_of(again, 0, 20)) == bits(null_of(problem, 0, 20))

    def test_nothing_changes(self, design):
        problem = problem_of(design)
        before = pickle.dumps(problem)
        null_of(problem, 0, 5)
        problem.gap((0, 1))
        assert isinstance(problem.notes, tuple)
        assert pickle.dumps(problem) == before
        with pytest.raises(dataclasses.FrozenInstanceError):
            problem.scaling = "none"

    def test_other_data_are_unequal(self, design):
        problem = problem_of(design)
        other = problem_of(design, turned=True)
        assert type(other) is type(problem)
        assert other != problem

    def test_parts_in_processes_give_the_same_bits(self, design, workers):
        problem = problem_of(design)
        n = REPLICATES.get(design, 260)
        whole = null_of(problem, 0, n)
        for n_parts in (1, 2, 7, 13):
            cuts = ends(n, n_parts)
            parts = workers.map(null_of, [problem] * n_parts, cuts[:-1], cuts[1:])
            assert bits(np.concatenate(list(parts))) == bits(whole)

    def test_parts_of_audits_give_the_same_bits(self, design):
        problem = problem_of(design)
        n = 4 if design == "function" else 60
        whole = audits_of(problem, 0, n)
        again = pickle.loads(pickle.dumps(problem))
        for n_parts in (2, 3):
            cuts = ends(n, n_parts)
            parts = map(audits_of, [again] * n_parts, cuts[:-1], cuts[1:])
            assert bits(np.concatenate(list(parts))) == bits(whole)


#: Those of groups whose replicates are joint ones; a joint criterion has its components' bootstrap.
RESAMPLED = [name for name in DESIGNS if "correlation" not in name and name != "function"]


ROWS_IN_STRATA = ["ranks in strata", "mean in strata"]
#: Those that have a test of two groups at any gap.
SHIFTED = ["mean", "mean in strata", "weighted rate"]


class TestRanges:
    @pytest.mark.parametrize(
        "design", [name for name in RESAMPLED if name not in ("joint", *ROWS_IN_STRATA)]
    )
    def test_bootstrap_in_parts(self, design, workers):
        problem = problem_of(design)
        whole = bootstrap_of(problem, 0, 130)
        for n_parts in (1, 2, 7, 13):
            cuts = ends(130, n_parts)
            parts = workers.map(bootstrap_of, [problem] * n_parts, cuts[:-1], cuts[1:])
            assert bits(np.concatenate(list(parts))) == bits(whole)

    @pytest.mark.parametrize("design", ROWS_IN_STRATA)
    def test_strata_are_not_resampled(self, design):
        """A group can be drawn empty in a stratum, which changes what is estimated."""
        with pytest.raises(errors.ArgumentError, match="test is one of strata; accepted: rows wit"):
            bootstrap_of(problem_of(design), 0, 10)

    @pytest.mark.parametrize("design", SHIFTED)
    def test_shifts_in_parts(self, design, workers):
        """Joined in order they are the bits of the whole, its limits too."""
        problem = problem_of(design)
        whole = shifts_of(problem, 0, 260)
        again = pickle.loads(pickle.dumps(whole))
        assert are_equal(again.__getnewargs__(), whole.__getnewargs__())
        for n_parts in (1, 2, 7, 13):
            cuts = ends(260, n_parts)
            parts = list(workers.map(shifts_of, [problem] * n_parts, cuts[:-1], cuts[1:]))
            joined = functools.reduce(lambda first, second: first.joined(second), parts)
            assert joined.n == whole.n == 260
            for first, second in zip(joined.__getnewargs__(), whole.__getnewargs__(), strict=True):
                assert bits(first) == bits(second)
            assert bits(joined.null_distribution()) == bits(whole.null_distribution())
            for side in ("greater", "less"):
                call = _native.Call(1)
                assert joined.limit(side, 0.025, call) == whole.limit(side, 0.025, call)

    @pytest.mark.parametrize("design", RESAMPLED)
    def test_step_down_counts_add_up(self, design, workers):
        problem, pairs = problem_of(design), [(0, 1), (0, 2), (1, 2)]
        whole = exceedances_of(problem, 0, 130)
        assert whole.any()
        for n_parts in (1, 2, 7, 13):
            cuts = ends(130, n_parts)
            parts = workers.map(exceedances_of, [problem] * n_parts, cuts[:-1], cuts[1:])
            together = np.sum(list(parts), axis=0)
            assert together.tolist() == whole.tolist()
        assert problem.adjusted(pairs, together, 130) == problem.adjusted(pairs, whole, 130)


class TestNativeTests:
    @pytest.mark.parametrize(
        ("metric", "owner", "name"),
        [("auc", rows.RowProblem, "make_test"), ("f1", counts.ClassCountProblem, "make_test")],
    )
    def test_each_is_made_once(self, metric, owner, name, monkeypatch):
        """Four groups in strata: six pairs and all of them."""
        made = []
        make = getattr(owner, name)

        def counted(self, chosen):
            made.append(chosen)
            return make(self, chosen)

        monkeypatch.setattr(owner, name, counted)
        given = columns(4) | strata()
        options = {"engine": "stream"} if metric == "auc" else {}
        del given["y_pred" if metric == "auc" else "y_score"]
        fa.permutation_test(**given, metric=metric, n_resamples=99, rng=1, **options)
        assert len(made) == len(set(made)) == 7

    def test_that_of_all_groups_is_kept(self):
        problem = problem_of("ranks by row")
        whole = problem.test()
        pair = problem.test((0, 1))
        assert problem.test((0, 1)) is pair
        assert problem.test((0, 2)) is not pair
        assert problem.test((0, 1, 2)) is problem.test() is whole
        assert problem.test((0, 1)) is not pair

    def test_the_attribute_is_read_once(self, monkeypatch):
        read = []
        original = correlation.row_value
        monkeypatch.setattr(
            correlation, "row_value", lambda *given: read.append(1) or original(*given)
        )
        given = columns()
        fa.permutation_test(
            y_score=given["y_score"],
            sensitive_features=np.random.default_rng(1).random(N),
            metric="pearson",
            n_resamples=99,
        )
        assert read == [1]


def test_every_problem_is_tried():
    def below(kind):
        return {kind, *(value for child in kind.__subclasses__() for value in below(child))}

    tried = {type(problem_of(design)) for design in DESIGNS}
    assert tried == {kind for kind in below(Problem) if not kind.__abstractmethods__}


def test_samples_of_a_function_join_too():
    problem = problem_of("function")

    def values(first, end, series=0):
        draws = _native.Draws(end - first, seed=4, series=series, first=first)
        return problem.bootstrap(draws, _native.Call(1)).values

    whole = values(0, 26)
    for n_parts in (1, 2, 7, 13):
        cuts = ends(26, n_parts).tolist()
        parts = [values(*pair) for pair in itertools.pairwise(cuts)]
        assert bits(np.concatenate(parts)) == bits(whole)
    assert bits(values(0, 26, series=3)) != bits(whole)


def test_a_joint_criterion_is_resampled_by_its_components():
    problem = problem_of("joint")
    with pytest.raises(errors.ArgumentError, match="resample its components"):
        problem.bootstrap(_native.Draws(5, seed=1), _native.Call())
    assert len(problem.components) == 2


@pytest.mark.parametrize("metric", ["tpr", "f1", "both"])
def test_strata_without_part_are_noted(metric):
    """One that holds one group only; the standard error is that of the gap within strata."""
    group = np.r_[np.resize([0, 1], 300), np.ones(100, dtype=int)]
    given = {name: column for name, column in columns().items() if name != "y_score"}
    given |= {"sensitive_features": group, "strata": np.arange(400) // 100}
    chosen = fa.metrics.joint_metric("both", ["f1", "tpr"]) if metric == "both" else metric
    found = fa.permutation_test(**given, metric=chosen, interval="delta", n_resamples=9, rng=1)
    assert sum("1 of 4 strata hold no value" in text for text in found.warnings) >= 1
    assert not any("too long" in text for text in found.warnings)
    whole = fa.permutation_test(
        **{name: column[:300] for name, column in given.items()},
        metric=chosen,
        interval="delta",
        n_resamples=9,
        rng=1,
    )
    assert not any("hold no value" in text for text in whole.warnings)
    assert whole.estimate == pytest.approx(found.estimate, rel=1e-12)
    assert whole.standard_error == pytest.approx(found.standard_error, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("design", [name for name in DESIGNS if name != "function"])
def test_native_tests_are_made_on_the_threads_that_were_asked_for(design):
    metric, given = DESIGNS[design]()
    chosen = fa.metrics.get(metric)
    needed = {*chosen.needs, "sensitive_features"}
    kept = {name: column for name, column in columns().items() if name in needed}
    problem = posed(chosen, 3, **(kept | given), n_threads=1)
    for component in (problem, *problem.components):
        assert component.call.n_threads == 1
    assert problem == problem_of(design)
