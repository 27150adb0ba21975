"""The contract of criteria: immutable, picklable, equal, and replicates by any ranges of them."""

import dataclasses
import itertools
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.projection.criteria import CriteriaTolerance
from fairaudit_rs.projection.question import pose_notion

N = 600
CALL = _native.Call(1)


def parity(U, mean):
    return U[:, :2] / mean[:2] - U[:, 2:] / mean[2]


def columns(n_groups=3):
    rng = np.random.default_rng(5)
    group = rng.integers(0, n_groups, N)
    y_true = rng.random(N) < 0.5
    return {
        "y_true": y_true,
        "y_score": np.clip(0.2 * y_true + 0.1 * group + 0.6 * rng.random(N), 0, 1),
        "sensitive_features": group,
    }


def several(**changes):
    other = np.random.default_rng(6).integers(0, 2, N)
    return {"sensitive_features": {"group": columns()["sensitive_features"], "other": other}}


def notion(strata=None):
    group = columns()["sensitive_features"]
    U = np.stack([group == g for g in range(3)], axis=1).astype(float)
    return fa.Notion(parity, U, strata=strata)


DESIGNS = {
    "two groups": lambda: ("equal_opportunity", columns(2), {}),
    "blocks": lambda: ("equalized_odds", columns(), {}),
    "weights": lambda: (
        "equalized_odds",
        columns() | {"sample_weight": np.random.default_rng(7).random(N) + 0.5},
        {},
    ),
    "attributes": lambda: (
        "statistical_parity", columns() | several(), {"attributes": "separate"}
    ),
    "a notion of the user's": lambda: (notion(), columns(), {}),
    "a notion in strata": lambda: (
        notion(columns()["y_true"].astype(int)), columns(), {"exchanging": True}
    ),
}  # fmt: skip
UNWEIGHTED = [name for name in DESIGNS if name != "weights"]


def criteria_of(design):
    asked, given, options = DESIGNS[design]()
    return pose_notion(AuditTable.make(**given), asked, n_threads=1, **options).criteria


def sharp(criteria):
    nothing = np.zeros(len(criteria.gap))
    return CriteriaTolerance(nothing, nothing)


def answers(criteria):
    """Ask as the lens does."""
    plan = criteria.project(sharp(criteria))
    curvature = criteria.curvature(0.1)
    return [
        plan.rows,
        plan.fraction,
        np.array([plan.primal, plan.dual, criteria.bandwidth()]),
        criteria.gap,
        criteria.covariance,
        *curvature.matrices,
        np.array(criteria.predicted_sizes(curvature, 0.05)),
    ]


def replicates(criteria, first, n):
    """Some of the costs of chance gaps: what a worker of a cluster does."""
    test = criteria.exchange(sharp(criteria))
    return test.null_distribution(_native.Draws(n, seed=3, first=first), CALL)


@pytest.fixture(scope="module")
def worker():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("design", DESIGNS)
class TestCriteria:
    def test_a_pickled_copy_is_equal_and_answers_the_same_bits(self, design, worker):
        criteria = criteria_of(design)
        found = answers(criteria)
        copy = pickle.loads(pickle.dumps(criteria))
        assert copy == criteria
        for value, other, elsewhere in zip(
            found, answers(copy), worker.submit(answers, criteria).result(), strict=True
        ):
            np.testing.assert_array_equal(value, other)
            np.testing.assert_array_equal(value, elsewhere)

    def test_nothing_can_be_changed(self, design):
        criteria = criteria_of(design)
        with pytest.raises(dataclasses.FrozenInstanceError):
            criteria.n_threads = 7
        with pytest.raises(ValueError, match="read-only"):
            criteria.rows.distance[0] = 7.0
        with pytest.raises(ValueError, match="read-only"):
            criteria.rows.cell[0] = 0

    def test_others_are_not_equal(self, design):
        criteria = criteria_of(design)
        other = dataclasses.replace(criteria.rows, distance=criteria.rows.distance + 1)
        assert dataclasses.replace(criteria, rows=other) != criteria
        assert criteria != "criteria"

    def test_rows_are_tallied_once(self, design):
        criteria = criteria_of(design)
        before = criteria.native
        answers(criteria)
        assert criteria.native is before


@pytest.mark.parametrize("design", UNWEIGHTED)
@pytest.mark.parametrize("parts", [2, 7, 13])
def test_ranges_of_replicates_are_the_replicates_of_one_call(design, parts, worker):
    criteria = criteria_of(design)
    n = 26
    whole = replicates(criteria, 0, n)
    assert len(np.unique(whole)) > 5
    edges = np.linspace(0, n, parts + 1).astype(int)
    sent = [
        worker.submit(replicates, criteria, int(first), int(last - first))
        for first, last in itertools.pairwise(edges)
    ]
    np.testing.assert_array_equal(np.concatenate([value.result() for value in sent]), whole)


class TestResults:
    def result(self, **options):
        return fa.projection_test(**columns(2), **options)

    @pytest.mark.parametrize("calibration", ["asymptotic", "permutation"])
    def test_a_pickled_result_is_equal(self, calibration):
        result = self.result(calibration=calibration, rng=1, n_resamples=40)
        copy = pickle.loads(pickle.dumps(result))
        assert copy == result
        assert copy.moves == result.moves
        assert str(copy) == str(result)

    def test_pickled_moves_know_where_rows_go_without_the_data(self):
        rng = np.random.default_rng(0)
        X, group = rng.normal(size=(4_000, 3)), rng.integers(0, 2, 4_000)
        X[:, 0] += 0.3 * group
        distance = fa.LinearModel([1.0, 0.5, -0.2]).distance(X)
        moves = fa.projection_test(
            distance=distance, sensitive_features=group, notion="statistical_parity"
        ).moves
        pickled = pickle.dumps(moves)
        np.testing.assert_array_equal(pickle.loads(pickled).x, moves.x)
        assert len(pickled) < X.nbytes


class TestNative:
    """The rows as if they were public."""

    def rows(self, **changes):
        given = {
            "distance": np.array([0.5, 1.0, np.inf, 0.2]),
            "cell": np.array([0, 1, 2, 3], dtype=np.uint16),
            "n_cells": 4,
            "call": CALL,
        }
        return _native.ProjectionRows(**(given | changes))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"cell": np.zeros(3, np.uint16)}, "distance is of length 4; accepted: columns of one"),
            ({"cell": np.full(4, 4, np.uint16)}, "cell is 4"),
            ({"n_cells": 70_000}, "n_cells is 70000; accepted: at most 65534"),
            ({"distance": np.array([0, 1, -1.0, 0])}, "distance is -1 in row 2"),
            ({"distance": np.array([0, np.nan, 1, 0])}, "distance is NaN in row 1"),
            ({"weight": np.array([1, 1, np.inf, 1])}, "sample_weight is inf in row 2"),
            ({"weight": np.ones(5)}, "columns of one length"),
        ],
    )
    def test_wrong_columns_are_named(self, changes, message):
        with pytest.raises(errors.ArgumentError, match=message):
            self.rows(**changes)

    @pytest.mark.parametrize(
        ("method", "arguments", "message"),
        [
            ("project", ([([0], [0.0], [0.0])],), "blocks is"),
            ("project", ([([0, 2], [0.0] * 2, [0.0] * 2)],), "at least two units below"),
            ("exchange", ([([0, 2**64 - 1], [0.0] * 2, [0.0] * 2)],), "at least two units below"),
            ("select", (np.ones(3), 1.0), "gains is of length 3; accepted: one for each row"),
            ("affordable", (np.ones((1, 3)), np.ones(1)), "accepted: one for each cell"),
            ("affordable", (np.ones((2, 4)), np.ones(1)), "accepted: one for each criterion"),
            ("affordable", (np.ones((2, 0)), np.ones(2)), "accepted: one for each cell"),
            ("histogram", (1.0, 0), "bins is 0"),
            ("histogram", (1.0, 2**60), "bins is"),
        ],
    )
    def test_wrong_questions_are_named(self, method, arguments, message):
        with pytest.raises(errors.ArgumentError, match=message):
            getattr(self.rows(), method)(*arguments, CALL)

    def test_wrong_questions_to_curves_are_named(self):
        curves = self.rows().curves([True] * 4, CALL)
        for ask, message in [
            (lambda: curves.rows(4), "cell is 4; accepted: a cell below 4"),
            (lambda: curves.points(9, [0]), "cell is 9"),
            (lambda: curves.ranks(4, 0.0), "cell is 4"),
            (lambda: curves.conjugate([0.0]), "prices is of length 1"),
            (lambda: curves.cost([0.0] * 3 + [-1.0]), "masses is -1 for a cell"),
            (lambda: curves.take([np.nan] * 4, CALL), "masses is NaN for a cell"),
        ]:
            with pytest.raises(errors.ArgumentError, match=message):
                ask()

    def test_views_and_other_types_are_refused(self):
        with pytest.raises(TypeError):
            self.rows(distance=np.arange(8.0)[::2])
        with pytest.raises(TypeError):
            self.rows(cell=np.arange(4))
        with pytest.raises(TypeError):
            self.rows().affordable(np.ones((4, 2)).T, np.ones(2), CALL)

    def test_the_first_solve_says_what_cannot_be_reached(self):
        stuck = self.rows(
            distance=np.full(4, np.inf), cell=np.array([0, 1, 3, 3], dtype=np.uint16)
        ).project([([0, 1], [0.0, 0.0], [0.0, 0.0])], CALL)
        assert isinstance(stuck, _native.Unreachable)
        assert (stuck.block, stuck.unit, stuck.reach) == (0, 0, 0.0)

    def test_gains_of_rows_afford_what_gains_of_cells_do(self):
        rng = np.random.default_rng(1)
        cell = rng.integers(0, 4, 500).astype(np.uint16)
        rows = self.rows(distance=rng.random(500), cell=cell)
        gains = np.array([[1.0, -1.0, 0.5, 0.0], [0.0, 0.2, -0.3, 1.0]])
        budgets = np.array([3.0, 1e9])
        by_cell = rows.affordable(gains, budgets, CALL)
        by_row = rows.affordable(np.ascontiguousarray(gains[:, cell]), budgets, CALL, by_row=True)
        np.testing.assert_array_equal(by_cell, by_row)
        up, down = ((gains[1] * sign).clip(0)[cell].sum() for sign in (1, -1))
        assert by_cell[1] == pytest.approx([up, down])

    def test_a_box_that_is_a_point_has_the_law_of_chi_squares(self):
        law = _native.BoxLaw(np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
        found = law.tail(1.959963984540054**2 / 2, CALL)
        assert found.tail == pytest.approx(0.05, rel=1e-12)
        assert (found.error, found.is_bound) == (0.0, False)
        assert law.quantile(0.05, CALL) == pytest.approx(1.959963984540054**2 / 2, rel=1e-9)
