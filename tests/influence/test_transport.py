"""Transport repair: the cheapest way to the features of a counterfactual distribution."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairaudit_rs import errors, linear_programs
from fairaudit_rs.influence.cell_map import FeatureCells
from fairaudit_rs.influence.cost import ChangeCost
from fairaudit_rs.influence.feature_encodings import FeatureEncodings
from fairaudit_rs.influence.transport import fit_transport, flow_of

from ..reference import influence as reference
from .test_repair import FEATURES, Problem, audit, data, plan_of


@dataclass
class Reweighted:
    """A counterfactual: disjoint parts, and a weight for each kind of row."""

    parts: object
    factors: np.ndarray


def descended(result, metric="fpr", fixed=(), n_steps=40):
    """A counterfactual by the reference's descent, within the values of fixed columns if any."""
    problem = result.problem
    parts = problem.parts((1 / 3, 1 / 3, 1 / 3), 7)
    distinct = problem.distinct
    label, score = distinct.terms[:, 0], distinct.terms[:, 1]
    _, place = np.unique(distinct.features, axis=0, return_inverse=True)
    h = (np.bincount(place, distinct.count * label) / np.bincount(place, distinct.count))[place]
    fit = reference.Part(
        y0=h, f0=score, h0=h, w0=parts.count[:, 0] + 1e-12,
        y1=parts.others[:, 1], f1=parts.others[:, 2], w1=parts.other_count[:, 0].astype(float),
    )  # fmt: skip
    path = reference.descent_path(metric, fit, n_steps)
    factors = reference.factors(metric, path, score, h)[-1]
    if fixed:
        _, stratum = np.unique(distinct.features[:, list(fixed)], axis=0, return_inverse=True)
        count = parts.count[:, 0]
        factors = factors / (
            np.bincount(stratum, count * factors)[stratum] / np.bincount(stratum, count)[stratum]
        )
    return Reweighted(parts, factors)


@pytest.fixture(scope="module")
def rows():
    return data()


@pytest.fixture(scope="module")
def result(rows):
    return audit(*rows)


@pytest.fixture(scope="module")
def repair(result):
    return result.repair(method="transport", counterfactual=descended(result), rng=3)


def wanted_of(problem, seed=1):
    return problem.count * np.random.default_rng(seed).uniform(0, 2, len(problem.count))


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"counterfactual": None}, "counterfactual is None, but method='transport' needs"),
            ({"counterfactual": 3}, "counterfactual is a int; accepted: a result of descend"),
            ({"floor": 0.1}, "floor needs method='direct', but"),
            ({"nuisance": LogisticRegression()}, "nuisance needs method='direct'"),
            ({"cost": lambda a, b: np.full((len(a["years"]), len(b["years"])), np.inf)},
             "cost is infinite for some pairs"),
        ],
    )  # fmt: skip
    def test_bad_values(self, result, options, words):
        given = {"counterfactual": descended(result), "rng": 1, **options}
        with pytest.raises(errors.FairAuditError, match=words):
            result.repair(method="transport", **given)

    def test_a_counterfactual_of_another_audit(self, result):
        other = descended(audit(*data(600, seed=9)))
        with pytest.raises(errors.DataError, match="counterfactual belongs to another audit"):
            result.repair(method="transport", counterfactual=other)

    def test_no_weight_at_all(self, result):
        given = descended(result)
        given.factors = np.zeros(len(given.factors))
        with pytest.raises(errors.DataError, match="gives every row the weight 0"):
            result.repair(method="transport", counterfactual=given)

    def test_too_many_pairs(self, result, monkeypatch):
        monkeypatch.setattr("fairaudit_rs.influence.transport.MOST_PAIRS", 10)
        with pytest.raises(errors.DataError, match="accepted: at most 10 pairs"):
            result.repair(method="transport", counterfactual=descended(result))

    def test_what_must_not_change_but_would(self, result):
        words = "changes the shares of the immovable features: .* % of the rows to be moved have no"
        with pytest.raises(errors.NotMeasurableError, match=words):
            result.repair(
                method="transport", counterfactual=descended(result), immovable=["married"]
            )


class TestKnownValues:
    def test_two_cells(self):
        coding = FeatureEncodings.from_columns({"x": np.array([0.0, 1.0])}, {})
        features = np.array([[0.0], [1.0]])
        count = np.array([6.0, 2.0])
        cells = FeatureCells(features=features, count=count, score=np.array([0.2, 0.8]))
        cost = ChangeCost.from_arguments(None, (), coding, features, count)
        found = fit_transport(cells, cost, np.array([0.5, 0.5]))
        assert found.cell_map.source.tolist() == [0]
        assert found.cell_map.share[0] == pytest.approx(1 / 3)
        assert found.certificate["primal"] == pytest.approx(0.25)

    @pytest.mark.parametrize(
        ("n", "p", "value"), [(30, 4, 0.267982367123801), (60, 6, 0.4122519225306902)]
    )
    def test_objectives_of_pot(self, n, p, value):
        """`ot.emd` of POT 0.9.7 for the same masses and costs."""
        rng = np.random.default_rng(11)
        for size, width in ((30, 4), (60, 6)):
            X = np.unique((rng.random((4 * size, width)) < 0.4).astype(float), axis=0)
            X = np.column_stack([np.repeat(X, 3, axis=0), np.tile([0.0, 0.7, 1.9], len(X))])[:size]
            a = rng.integers(1, 9, len(X)).astype(float)
            b = a * rng.uniform(0, 2, len(X))
            if size == n:
                break
        coding = FeatureEncodings.from_columns({f"x{k}": X[:, k] for k in range(p + 1)}, {})
        cells = FeatureCells(features=np.ascontiguousarray(X), count=a, score=np.zeros(len(X)))
        cost = ChangeCost.from_arguments(None, (), coding, cells.features, a)
        cost.weights[:] = 1.0
        found = fit_transport(cells, cost, b)
        assert found.certificate["primal"] == pytest.approx(value, rel=1e-9)

    def test_nothing_to_move(self):
        problem = Problem(3)
        found = fit_transport(problem.cells, problem.cost(), problem.count)
        assert (len(found.cell_map.source), found.certificate["primal"]) == (0, 0)


class TestReference:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("scale", [1.0, 1e-4, 1e5])
    def test_the_full_program(self, seed, scale):
        """Its value, its marginals, and a certificate, whatever the unit of the cost."""
        problem = Problem(seed)
        wanted = wanted_of(problem)
        cost = problem.cost(dict.fromkeys(("b0", "b1", "b2", "b3", "n0", "t"), scale))
        C = cost.matrix(problem.features, problem.features)
        value, _ = reference.transport(problem.count, wanted, C / scale)
        found = fit_transport(problem.cells, cost, wanted)
        total, certificate = problem.count.sum(), found.certificate
        assert certificate["primal"] * total / scale == pytest.approx(value, abs=1e-8)
        assert certificate["difference"] / scale == pytest.approx(0, abs=1e-9)
        assert certificate["largest_violation"] <= 1e-8 * scale
        assert certificate["largest_marginal_error"] < 1e-8
        assert found.cell_map.mean_cost == pytest.approx(certificate["primal"], rel=1e-9)
        after = problem.count @ plan_of(found.cell_map)
        np.testing.assert_allclose(after, wanted * total / wanted.sum(), atol=1e-8)

    def test_what_both_sides_have_stays_at_no_loss(self):
        problem = Problem(4)
        wanted = wanted_of(problem)
        cost = problem.cost()
        C = cost.matrix(problem.features, problem.features)
        whole, _ = reference.transport(problem.count, wanted, C, common=False)
        found = fit_transport(problem.cells, cost, wanted).certificate
        assert found["primal"] * problem.count.sum() == pytest.approx(whole, abs=1e-8)

    def test_a_cost_that_is_no_metric(self):
        """A detour costs less there, so that nothing stays unasked."""
        problem = Problem(6)
        C = problem.cost().matrix(problem.features, problem.features) ** 2
        wanted = wanted_of(problem)

        def squared(source, to):
            return problem.cost().matrix(*map(problem.coding.encode, (source, to))) ** 2

        found = fit_transport(problem.cells, problem.cost(squared), wanted)
        value, _ = reference.transport(problem.count, wanted, C, common=False)
        assert found.certificate["primal"] * problem.count.sum() == pytest.approx(value, abs=1e-8)

    def test_masses_of_all_sizes(self):
        """In probabilities, at the solver's own tolerance, one marginal was off by 100 %."""
        problem = Problem(8, n=60)
        rng = np.random.default_rng(2)
        wanted = problem.count * 10 ** rng.uniform(-4, 1, len(problem.count))
        cost = problem.cost()
        C = cost.matrix(problem.features, problem.features)
        value, _ = reference.transport(problem.count, wanted, C)
        found = fit_transport(problem.cells, cost, wanted)
        total = problem.count.sum()
        assert found.certificate["primal"] * total == pytest.approx(value, rel=1e-9)
        after = problem.count @ plan_of(found.cell_map)
        np.testing.assert_allclose(after, wanted * total / wanted.sum(), rtol=1e-6)

    def test_a_flow_between_one_and_many(self):
        for shape in ((1, 1), (1, 5), (5, 1)):
            prices = np.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)
            excess, lack = np.full(shape[0], 1 / shape[0]), np.full(shape[1], 1 / shape[1])
            flow = flow_of(prices, excess, lack)
            assert flow.mass @ prices[flow.source, flow.to] == pytest.approx(prices.mean())


class TestProperties:
    def test_the_group_gets_the_counterfactual_distribution(self, result, repair):
        given = descended(result)
        distinct, count = result.problem.distinct, given.parts.count[:, 0]
        wanted = (count * given.factors) @ distinct.features / (count @ given.factors)
        cells = repair.way.cells
        after = cells.count @ plan_of(repair.way) @ cells.features / cells.n_rows
        np.testing.assert_allclose(after, wanted, atol=1e-9)

    def test_it_says_that_it_does_not_close_gaps_of_labels(self, rows, result, repair):
        assert any(
            "does not close the gap in false_positive_rate" in warning
            for warning in repair.warnings
        )
        selection = audit(*rows, metric="selection_rate")
        given = descended(selection, metric="selection_rate")
        found = selection.repair(method="transport", counterfactual=given, rng=3)
        assert not any("does not close" in warning for warning in found.warnings)
        assert abs(found.gap_after) < abs(found.gap_before)

    def test_immovable_within_strata(self, rows, result):
        given = descended(result, fixed=(0,))
        found = result.repair(
            method="transport", counterfactual=given, immovable=["married"], rng=3
        )
        free = result.repair(method="transport", counterfactual=given, rng=3)
        assert found.cost >= free.cost - 1e-9
        X, _, _, group = rows
        done = found.transform_report(X, group)
        assert done.n_moved > 0
        assert (done.X["married"] == X["married"]).all()
        assert found.certificate["difference"] == pytest.approx(0, abs=1e-9)

    def test_threads_and_the_order_of_rows_change_nothing(self, rows, result, repair):
        X, y, score, group = rows
        order = np.random.default_rng(5).permutation(len(y))
        shuffled = audit(X.iloc[order], y[order], score[order], group[order])
        given = descended(shuffled)
        again = shuffled.repair(method="transport", counterfactual=given, rng=3, n_threads=2)
        assert again == repair

    def test_it_transforms(self, rows, repair):
        X, _, _, group = rows
        done = repair.transform_report(X, group)
        assert done.n_moved > 0
        pd.testing.assert_frame_equal(done.X[group == "man"], X[group == "man"])
        assert "The transport repair moves" in repair.summary()
        assert repair.engine == "linear program"
        assert set(repair.moves["from"].struct.fields) == set(FEATURES)


class TestProgram:
    def test_it_grows(self):
        """Two ways to carry 3 rows; the cheaper one comes later."""
        program = linear_programs.GrowingProgram(np.array([3.0, 3.0]))
        rows = np.array([[0, 1]], dtype=np.int32)
        program.add(np.array([2.0]), rows, np.ones((1, 2)))
        assert program.solve().values.tolist() == [3.0]
        program.add(np.array([1.0]), rows, np.ones((1, 2)))
        found = program.solve()
        assert found.values.tolist() == [0.0, 3.0]
        assert found.duals.sum() == pytest.approx(1.0)

    def test_what_cannot_be_is_an_error(self):
        program = linear_programs.GrowingProgram(np.array([1.0, 2.0]))
        program.add(np.array([1.0]), np.array([[0, 1]], dtype=np.int32), np.ones((1, 2)))
        with pytest.raises(errors.InternalError, match="HiGHS ended with kInfeasible"):
            program.solve()
