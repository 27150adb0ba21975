"""Direct repair: the cheapest map of features after which the gap is expected to be 0."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.influence.cell_map import FeatureCells
from fairaudit_rs.influence.cost import ChangeCost
from fairaudit_rs.influence.direct_repair import EnvelopeSegments, GapTarget, fit_direct
from fairaudit_rs.influence.direct_repair import _nearest as nearest_score
from fairaudit_rs.influence.feature_encodings import FeatureEncodings
from fairaudit_rs.influence.rates import RATES, measure_of

from ..reference import influence as reference
from .test_marginal import NAMES

CALL = _native.Call()


class Problem:
    """Random cells of binary features, one number and a text, with scores that follow them."""

    def __init__(self, seed, n=40, binary=4, decision=False, numbers=1):
        rng = np.random.default_rng(seed)
        bits = rng.random((n, binary)) < 0.4
        columns = {f"b{k}": bits[:, k].astype(float) for k in range(binary)}
        columns |= {f"n{k}": rng.choice([0.0, 0.7, 1.9, 2.5], n) for k in range(numbers)}
        columns["t"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
        self.coding = FeatureEncodings.from_columns(columns, {})
        matrix = np.unique(self.coding.matrix(np.arange(n)), axis=0)
        self.features = np.ascontiguousarray(matrix[rng.permutation(len(matrix))])
        lean = self.features @ rng.normal(size=self.features.shape[1])
        self.score = 1 / (1 + np.exp(-lean))
        if decision:
            self.score = np.round(self.score)
        self.label = 1 / (1 + np.exp(0.5 - lean - rng.normal(size=len(lean))))
        self.count = rng.integers(1, 20, len(lean)).astype(float)

    @property
    def cells(self):
        return FeatureCells(features=self.features, count=self.count, score=self.score)

    def cost(self, cost=None, immovable=()):
        return ChangeCost.from_arguments(cost, immovable, self.coding, self.features, self.count)

    def rate(self, name):
        return reference.rate(name, self.label, self.score, self.count)[0]

    def target(self, name, other):
        return GapTarget(measure=measure_of(NAMES[name]), others=(other,), label=self.label)


def plan_of(way):
    """The shares of the map as a matrix."""
    plan = np.eye(len(way.cells))
    np.subtract.at(plan, (way.source, way.source), way.share)
    np.add.at(plan, (way.source, way.to), way.share)
    return plan


def data(n=3_000, seed=0):
    """Rows of a frame with a number, a text, a truth and 0 and 1, and a model-like score."""
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    X = pd.DataFrame(
        {
            "married": (rng.random(n) < np.where(woman, 0.3, 0.6)).astype(np.int8),
            "years": rng.choice([0.5, 1.0, 2.0], n),
            "job": pd.Categorical(rng.choice(["clerk", "sales", "other"], n)),
            "owner": rng.random(n) < 0.4,
        },
        index=np.arange(n) * 3 + 5,
    )
    X["note"] = np.arange(n)
    lean = X["married"] + 0.5 * X["years"] + (X["job"] == "sales") - X["owner"] - 1.2
    score = 1 / (1 + np.exp(-lean.to_numpy()))
    y = (rng.random(n) < score).astype(int)
    return X, y, score, np.where(woman, "woman", "man")


FEATURES = ["married", "years", "job", "owner"]


def audit(X, y, score, group, metric="false_positive_rate", **options):
    return fa.influence_audit(
        y, y_score=score, X=X, features=FEATURES, sensitive_features=group, target="woman",
        metric=metric, **{"n_draws": 39, "rng": 1, **options},
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return data()


@pytest.fixture(scope="module")
def result(rows):
    return audit(*rows)


@pytest.fixture(scope="module")
def repair(result):
    return result.repair(rng=3)


class Sure:
    """P(Y = 1 | X) is 1."""

    def fit(self, X, y):
        pass

    def predict_proba(self, X):
        return np.tile([0.0, 1.0], (len(X), 1))


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"method": "best"}, "method is 'best'; accepted: 'direct', 'transport'"),
            (
                {"parts": (0.5, 0.6)},
                "parts is .*; accepted: 2 shares above 0 that add up to 1 .fit, report",
            ),
            ({"cost": 3}, "cost is 3; accepted: None, a dict of weights by feature, or a function"),
            ({"cost": {"age": 1}}, "cost names 'age', which is not a feature of the audit"),
            ({"cost": {"years": -1}}, "years.* is -1"),
            ({"immovable": "married"}, "immovable is 'married'; accepted: a sequence of feat"),
            ({"immovable": 3}, "immovable is 3; accepted: a sequence of feature"),
            ({"cost": lambda a, b: "far"}, "cost returned 'far'; accepted: numbers of at"),
            ({"nuisance": Sure()}, "no row of the target group is in a denominator of false_posi"),
            ({"immovable": ["sex"]}, "immovable names 'sex', which is not a feature of"),
            ({"floor": 0}, "floor is 0; accepted: a mean score above 0, at most 1"),
            ({"floor": "low"}, "floor is 'low'; accepted: a mean score above 0"),
            ({"nuisance": 3}, "nuisance is 3, without fit; accepted: an estimator with fit and"),
            ({"counterfactual": object()}, "counterfactual needs method='transport'"),
            ({"rng": -1}, "rng is -1"),
            ({"n_threads": 0}, "n_threads is 0"),
            ({"cost": lambda a, b: np.ones((2, 2))}, r"cost returned an array of shape \(2, 2\)"),
            ({"cost": lambda a, b: -pairs(a, b)}, "cost returned negative or missing numbers"),
            ({"cost": lambda a, b: 1 + pairs(a, b)}, "cost returned a number other than 0"),
        ],
    )
    def test_bad_values(self, result, options, words):
        with pytest.raises(errors.FairAuditError, match=words):
            result.repair(**{"rng": 1, **options})

    def test_sums_that_are_not_linear_are_refused(self, rows):
        given = audit(*rows, metric={"false_positive_rate": 1, "false_discovery_rate": 1})
        with pytest.raises(errors.ArgumentError, match="the denominator of false_discovery_rate"):
            given.repair(rng=1)

    def test_too_many_cells_are_refused(self, result, monkeypatch):
        monkeypatch.setattr("fairaudit_rs.influence.direct_repair.MOST_CELLS", 10)
        with pytest.raises(errors.DataError, match=r"at most 10. Bin continuous features first"):
            result.repair(rng=1)

    def test_what_cannot_be_reached_says_how_near_it_comes(self, rows):
        X, y, score, group = rows
        moved = np.where(group == "woman", score / 3, score)
        given = audit(X, y, moved, group)
        words = "a gap of 0 cannot be reached: the gap is -0.[0-9]+, and at best -0.[0-9]+ after"
        with pytest.raises(errors.NotMeasurableError, match=words):
            given.repair(immovable=FEATURES, rng=1)

    @pytest.mark.parametrize(
        ("X", "group", "words"),
        [
            (pd.DataFrame({"married": [1]}), ["woman"], "X has no column 'years'"),
            (None, ["woman"], "group has 1 rows; X has 3,000"),
            (None, None, "group is None; accepted: the values of group, one for each row"),
            (None, "sex", "group is 'sex'; accepted: the values of group"),
        ],
    )
    def test_rows_that_do_not_fit(self, rows, repair, X, group, words):
        with pytest.raises(errors.FairAuditError, match=words):
            repair.transform(rows[0] if X is None else X, group)


def pairs(source, to):
    """Costs by a function: those of the default but for the numbers, which are free."""
    found = np.zeros((len(source["married"]), len(to["married"])))
    for name in ("married", "job", "owner"):
        found += source[name][:, None] != to[name][None]
    return found


class TestKnownValues:
    def test_one_cell_in_half(self):
        """Scores 0 and 1, no rates by label: half of the rows of the cell at 0 go up."""
        coding = FeatureEncodings.from_columns({"x": np.array([0.0, 1.0])}, {})
        features, count = np.array([[0.0], [1.0]]), np.array([8.0, 2.0])
        cells = FeatureCells(features=features, count=count, score=np.array([0.0, 1.0]))
        cost = ChangeCost.from_arguments(None, (), coding, features, count)
        measure = measure_of("selection_rate")
        target = GapTarget(measure=measure, others=(0.6,), label=np.zeros(2))
        found = fit_direct(cells, cost, target, None, CALL)
        assert (found.cell_map.source.tolist(), found.cell_map.to.tolist()) == ([0], [1])
        assert found.cell_map.share[0] == pytest.approx(0.5)
        assert found.certificate["primal"] == pytest.approx(0.4)
        assert found.certificate["dual"] == pytest.approx(0.4)

    def test_ties_are_treated_alike(self):
        """Two cells as far from the next score as each other: both go in the same share."""
        coding = FeatureEncodings.from_columns(
            {"a": np.array([0.0, 1.0]), "b": np.array([0.0, 1.0])}, {}
        )
        features = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        count, score = np.array([0.001, 5.0, 5.0, 5.0]), np.array([0.0, 0, 0, 1])
        cells = FeatureCells(features=features, count=count, score=score)
        cost = ChangeCost.from_arguments(None, (), coding, features, count)
        measure = measure_of("selection_rate")
        target = GapTarget(measure=measure, others=(0.5,), label=np.zeros(4))
        way = fit_direct(cells, cost, target, None, CALL).cell_map
        assert way.source.tolist() == [1, 2]
        assert way.share[0] == way.share[1] == pytest.approx(0.25, abs=1e-3)

    def test_no_gap_no_moves(self):
        problem = Problem(1)
        found = fit_direct(
            problem.cells, problem.cost(), problem.target("fpr", problem.rate("fpr")), None, CALL
        )
        assert (len(found.cell_map.source), found.certificate["primal"]) == (0, 0)


class TestReference:
    @pytest.mark.parametrize("name", [*reference.RATES])
    @pytest.mark.parametrize("decision", [False, True])
    @pytest.mark.parametrize("immovable", [(), ("b0", "t")], ids=str)
    @pytest.mark.parametrize("shift", [-0.06, 0.05])
    def test_direct(self, name, decision, immovable, shift):
        for seed in range(4):
            problem = Problem(seed, decision=decision)
            other = float(np.clip(problem.rate(name) + shift, 0.01, 0.99))
            cost = problem.cost(immovable=immovable)
            C = cost.matrix(problem.features, problem.features)
            expected = reference.direct_repair(
                name, problem.count, problem.label, problem.score, C, other
            )
            target = problem.target(name, other)
            if expected["status"] != "ok":
                with pytest.raises(errors.NotMeasurableError):
                    fit_direct(problem.cells, cost, target, None, CALL)
                continue
            found = fit_direct(problem.cells, cost, target, None, CALL)
            total, certificate = problem.count.sum(), found.certificate
            assert certificate["primal"] * total == pytest.approx(expected["cost"], abs=1e-9)
            assert certificate["dual"] * total == pytest.approx(expected["dual"], abs=1e-9)
            assert certificate["multiplier"] == pytest.approx(expected["multiplier"], rel=1e-9)
            plan = plan_of(found.cell_map)
            after = reference.rate_after_map(
                name, problem.count, problem.label, problem.score, plan
            )
            assert after == pytest.approx(other, abs=1e-9)
            assert plan.min() > -1e-15
            assert np.isfinite(C[plan > 0]).all()
            value, _ = reference.direct_repair_program(
                name, problem.count, problem.label, problem.score, C, other
            )
            assert certificate["primal"] * total == pytest.approx(value, abs=1e-7)

    @pytest.mark.parametrize("name", ["fdr", "ppv", "fpr"])
    @pytest.mark.parametrize("immovable", [(), ("b1",)], ids=str)
    def test_with_a_floor(self, name, immovable):
        """Two multipliers are needed: the program with a second row has the same value."""
        n_needed = 0
        for seed in range(12):
            problem = Problem(seed)
            other = float(problem.rate(name) - 0.06 if name != "ppv" else problem.rate(name) + 0.04)
            floor = float(problem.count @ problem.score / problem.count.sum()) + 0.02
            cost = problem.cost(immovable=immovable)
            C = cost.matrix(problem.features, problem.features)
            value, _ = reference.direct_repair_program(
                name, problem.count, problem.label, problem.score, C, other, floor
            )
            target = problem.target(name, other)
            if np.isnan(value):
                with pytest.raises(errors.NotMeasurableError, match="cannot be reached"):
                    fit_direct(problem.cells, cost, target, floor, CALL)
                continue
            certificate = fit_direct(problem.cells, cost, target, floor, CALL).certificate
            total = problem.count.sum()
            n_needed += certificate["floor_multiplier"] > 0
            assert certificate["primal"] * total == pytest.approx(value, abs=1e-6)
            assert certificate["dual"] == pytest.approx(certificate["primal"], abs=1e-9)
            assert certificate["mean_score"] >= floor - 1e-9
            assert abs(certificate["expected_gap"]) < 1e-9
        assert n_needed > 1

    @pytest.mark.parametrize("name", ["fpr", "fdr", "ppv"])
    @pytest.mark.parametrize("floor", [None, 0.6])
    def test_the_nearest_gap_where_0_is_out_of_reach(self, name, floor):
        """No vertex of all maps comes nearer: cells at an end, at the floor one between."""
        problem = Problem(7, n=9)
        other = 0.001 if name != "ppv" else 0.999
        target, cells = problem.target(name, other), problem.cells
        segments = EnvelopeSegments.from_cells(cells, problem.cost(), CALL)
        score = nearest_score(cells, segments, target, floor)
        found = abs(target.gap(cells.count, score))
        low, high = problem.score.min(), problem.score.max()
        n, best = len(cells), np.inf
        for pattern in range(2**n):
            bits = np.array([pattern >> k & 1 for k in range(n)])
            for partial in range(n):
                one = np.where(bits, high, low)
                if floor is not None:
                    rest = floor * cells.count.sum() - (cells.count @ one)
                    one[partial] = np.clip(one[partial] + rest / cells.count[partial], low, high)
                    if cells.count @ one < floor * cells.count.sum() - 1e-9:
                        continue
                best = min(best, abs(target.gap(cells.count, one)))
                if floor is None:
                    break
        assert found == pytest.approx(best, abs=1e-12)
        with pytest.raises(errors.NotMeasurableError, match=f"at best -?{found:.3f} after"):
            fit_direct(cells, problem.cost(), target, floor, CALL)

    def test_a_sum_of_rates(self):
        """Rates whose denominators do not move are linear together."""
        problem = Problem(2)
        weights = {"fpr": 0.5, "tpr": -1.0, "selection_rate": 2.0}
        rates = {name: problem.rate(name) for name in weights}
        measure = measure_of({NAMES[name]: weight for name, weight in weights.items()})
        others = {name: rate + 0.03 for name, rate in rates.items()}
        target = GapTarget(measure=measure, others=tuple(others.values()), label=problem.label)
        found = fit_direct(problem.cells, problem.cost(), target, None, CALL)
        plan = plan_of(found.cell_map)
        after = sum(
            weight
            * (
                reference.rate_after_map(name, problem.count, problem.label, problem.score, plan)
                - others[name]
            )
            for name, weight in weights.items()
        )
        assert abs(after) < 1e-9
        assert found.certificate["difference"] == pytest.approx(0, abs=1e-12)

    def test_a_cost_by_a_function_is_that_of_its_weights(self):
        problem = Problem(5)
        cost = problem.cost()

        def same(source, to):
            coded = [problem.coding.encode(rows) for rows in (source, to)]
            return problem.cost().matrix(*coded)

        for name in ("fpr", "fnr"):
            target = problem.target(name, problem.rate(name) + 0.05)
            by_weights = fit_direct(problem.cells, cost, target, None, CALL)
            by_function = fit_direct(problem.cells, problem.cost(same), target, None, CALL)
            for key, value in by_weights.certificate.items():
                assert by_function.certificate[key] == pytest.approx(value, abs=1e-12)

    def test_the_report_is_the_gap_of_expected_scores(self, rows, result, repair):
        """By hand: the report part's rows, each with the mean score of where it may go."""
        audit = result.problem
        parts = audit.parts((0.5, 0.5), repair.seed)
        distinct, count = audit.distinct, parts.count[:, 1].astype(float)
        cell, _ = repair.way.find(distinct.features, CALL)
        after = repair.way.expected_score(cell, distinct.terms[:, 1])
        own = (distinct.terms[:, 0], after, count)
        other = (parts.others[:, 1], parts.others[:, 2], parts.other_count[:, 1].astype(float))
        value, _ = reference.gap("fpr", own, other)
        assert repair.gap_after == pytest.approx(value, abs=1e-12)
        repeated = [
            np.repeat(side[k], side[2].astype(int)) for side in (own, other) for k in (0, 1)
        ]
        _, error = reference.gap("fpr", tuple(repeated[:2]), tuple(repeated[2:]))
        assert repair.standard_error == pytest.approx(error, rel=1e-9)
        low, high = repair.confidence_interval
        assert high - low == pytest.approx(2 * stats.norm.isf(0.025) * error)
        by_name = {effect.metric: effect for effect in repair.effects}
        assert by_name["false_positive_rate"].gap_after == repair.gap_after
        wrong = np.average(own[0] * (1 - after) + (1 - own[0]) * after, weights=count)
        assert by_name["accuracy"].after == pytest.approx(1 - wrong, abs=1e-12)


class TestGroups:
    def test_groups_that_were_not_audited_are_named(self, repair, rows):
        X = {name: column[:3] for name, column in rows[0].items()}
        with pytest.raises(errors.DataError, match="group names 'nobody', which is not a group"):
            repair.transform(X, ["nobody"] * 3)


class TestProperties:
    def test_threads_and_the_order_of_rows_change_nothing(self, rows, result, repair):
        X, y, score, group = rows
        order = np.random.default_rng(5).permutation(len(y))
        shuffled = audit(X.iloc[order], y[order], score[order], group[order], n_threads=2)
        again = shuffled.repair(rng=3, n_threads=1)
        assert again == repair
        assert result.repair(rng=3, n_threads=2) == repair
        assert result.repair(rng=4) != repair

    def test_a_dearer_world_has_the_same_moves(self, result, repair):
        dearer = result.repair(rng=3, cost=dict.fromkeys(FEATURES, 8.0))
        assert dearer.cost == pytest.approx(8 * repair.cost)
        assert dearer.moved == pytest.approx(repair.moved)
        assert dearer.gap_after == pytest.approx(repair.gap_after)

    def test_what_must_not_change_does_not(self, rows, result, repair):
        X, _, _, group = rows
        fixed = result.repair(rng=3, immovable=["married", "job"])
        assert fixed.cost >= repair.cost - 1e-12
        done = fixed.transform_report(X, group)
        assert done.n_moved > 0
        for name in ("married", "job"):
            assert (done.X[name].to_numpy() == X[name].to_numpy()).all()

    def test_others_are_left_bit_for_bit(self, rows, repair):
        X, _, _, group = rows
        before = X.copy()
        done = repair.transform_report(X, group)
        pd.testing.assert_frame_equal(X, before)
        assert (done.moved <= (group == "woman")).all()
        pd.testing.assert_frame_equal(done.X[~done.moved], X[~done.moved])
        assert (done.X.dtypes == X.dtypes).all()
        assert done.X.index.equals(X.index)
        assert (done.X["note"] == X["note"]).all()
        assert done.n_moved == pytest.approx(repair.moved * (group == "woman").sum(), rel=0.2)
        assert done.n_unseen == done.unseen.sum()

    def test_all_forms_of_rows_go_the_same_way(self, rows, repair):
        X, _, _, group = rows
        expected = repair.transform(X, group)
        frame = pl.from_pandas(X)
        found = repair.transform(frame, pl.Series(group))
        assert found.schema == frame.schema
        columns = {name: X[name].tolist() for name in X}
        given = {name: list(column) for name, column in columns.items()}
        as_dict = repair.transform(given, list(group))
        assert given == columns
        for name in X:
            assert found[name].to_list() == expected[name].tolist() == as_dict[name]

    def test_arrays(self):
        rng = np.random.default_rng(2)
        X = (rng.random((2_000, 3)) < 0.4).astype(np.int16)
        group = rng.random(2_000) < 0.5
        X[group, 0] |= rng.random(group.sum()) < 0.3
        model = LogisticRegression().fit(X, rng.random(2_000) < 0.2 + 0.5 * X[:, 0])
        made = fa.influence_audit(
            None, y_score=model.predict_proba(X)[:, 1], X=X, model=model, n_draws=39, rng=1,
            sensitive_features=group, target=True, metric="selection_rate",
        ).repair(rng=1)  # fmt: skip
        found = made.transform(X, group)
        assert (found.dtype, found.shape) == (X.dtype, X.shape)
        changed = (found != X).any(axis=1)
        assert 0 < changed.sum() < group.sum()
        assert not changed[~group].any()
        assert (made.transform(X.tolist(), group) == found).all()
        assert {effect.metric for effect in made.effects} == {"selection_rate"}

    def test_draws_have_the_shares_of_the_map(self, rows, repair):
        """Every cell is sent where the map says, as often as it says."""
        X, _, _, group = rows
        n = 200
        many = pd.concat([X] * n, ignore_index=True)
        done = repair.transform_report(many, np.tile(group, n), rng=9)
        expected = repair.transform_report(X, group)
        assert done.n_unseen == n * expected.n_unseen
        coded = repair.coding.encode(dict(X[FEATURES].to_dict("series")))
        cell, _ = repair.way.find(coded[group == "woman"], CALL)
        leaves = np.bincount(repair.way.source, repair.way.share, len(repair.way.cells))[cell]
        by_row = done.moved.reshape(n, -1).mean(axis=0)[group == "woman"]
        assert np.abs(by_row - leaves).max() < 5 * 0.5 / np.sqrt(n)
        assert not by_row[leaves == 0].any()
        assert (by_row[leaves > 1 - 1e-12] == 1).all()

    def test_rows_that_were_not_seen_go_the_way_of_the_nearest(self, rows, repair):
        X, _, _, _ = rows
        new = X.iloc[:300].copy()
        new["years"] = new["years"] + 0.01
        seen = repair.transform_report(X.iloc[:300], ["woman"] * 300)
        done = repair.transform_report(new, ["woman"] * 300)
        assert done.n_unseen == 300
        assert (done.moved == seen.moved).all()
        moved = done.moved
        for name in FEATURES:
            assert (done.X[name][moved].to_numpy() == seen.X[name][moved].to_numpy()).all()
        assert (done.X["years"][~moved] == new["years"][~moved]).all()
        fixed = rows_of_nobody(repair)
        assert fixed.n_moved == 0

    def test_batches_without_the_group_or_without_rows(self, rows, repair):
        X = rows[0]
        done = repair.transform_report(X.iloc[:5], ["man"] * 5)
        pd.testing.assert_frame_equal(done.X, X.iloc[:5])
        assert repair.transform(X.iloc[:0], []).shape == (0, X.shape[1])

    def test_sums_of_moves(self, repair):
        moves = repair.moves
        n = repair.way.cells.n_rows
        assert moves["rows"].sum() / n == pytest.approx(repair.moved)
        assert (moves["rows"] * moves["cost"]).sum() / n == pytest.approx(repair.cost)
        assert moves["rows"].is_sorted(descending=True)
        assert set(moves["from"].struct.fields) == set(FEATURES)
        assert moves["change"].str.contains(" to ").all()

    def test_what_is_told(self, repair):
        assert "The direct repair moves" in repair.summary()
        assert repair.summary() in str(repair)
        content = json.loads(json.dumps(repair.to_dict(), allow_nan=False))
        assert content["kind"] == "Repair"
        assert content["effects"][0]["metric"] == "accuracy"
        assert repair.to_frame()["metric"].to_list() == ["accuracy", *RATES]
        assert "<table>" in repair._repr_html_()
        assert repair.certificate["difference"] == pytest.approx(0, abs=1e-12)
        assert abs(repair.certificate["expected_gap"]) < 1e-12

    def test_tables_of_arrow_keep_their_types(self, rows):
        pa = pytest.importorskip("pyarrow")
        flag, group = np.arange(2_000) % 5 < 2, np.arange(2_000) % 3 < 1
        flag |= group & (np.arange(2_000) % 7 < 2)
        columns = {"flag": pa.array(flag), "town": pa.array(np.where(flag, "u", "v"))}
        columns["code"] = columns["town"].dictionary_encode()
        for X in (pa.table(columns), pa.record_batch(columns)):
            made = fa.influence_audit(
                None, flag, X=X, sensitive_features=group, target=True, n_draws=39, rng=1,
                metric="selection_rate",
            ).repair(rng=1)  # fmt: skip
            found = made.transform(X, group)
            assert type(found) is type(X)
            assert found.schema == X.schema
            others = pa.array(~group)
            assert found.filter(others).to_pylist() == X.filter(others).to_pylist()
            assert made.transform(X.slice(0, 0), group[:0]).num_rows == 0

    def test_scores_that_features_do_not_tell_are_told(self, rows, repair):
        X, y, score, group = rows
        words = "rows with the same features have different scores"
        assert not any(words in warning for warning in repair.warnings)
        decided = np.random.default_rng(9).random(len(score)) < score
        noisy = audit(X, y, decided.astype(float), group).repair(rng=1)
        assert any(words in warning for warning in noisy.warnings)

    def test_pickles(self, rows, repair):
        again = pickle.loads(pickle.dumps(repair))
        assert again == repair
        X, _, _, group = rows
        pd.testing.assert_frame_equal(again.transform(X, group), repair.transform(X, group))

    def test_an_estimator_of_the_user(self, result, repair):
        found = result.repair(rng=3, nuisance=LogisticRegression(C=1e6))
        assert found.cost == pytest.approx(repair.cost, rel=0.1)
        assert found != repair

    def test_few_rows_are_told(self):
        X, y, score, group = data(260)
        found = audit(X, y, score, group).repair(rng=1)
        assert any(
            "rows of the report part are in a denominator" in warning for warning in found.warnings
        )


def rows_of_nobody(repair):
    """Rows with a level that no row had: nothing is near where it must not change."""
    from dataclasses import replace

    way = replace(repair.way, cost=replace(repair.way.cost, fixed=(0,)))
    frame = {"married": [7.0], "years": [1.0], "job": ["clerk"], "owner": [True]}
    return replace(repair, way=way).transform_report(frame, ["woman"])


class TestPipeline:
    def test_the_group_is_passed_on(self, rows, repair):
        X, y, _, group = rows
        X = X[["married", "years", "owner"]].astype(float).assign(job=X["job"])
        numbers = ["married", "years", "owner"]
        with sklearn.config_context(enable_metadata_routing=True):
            step = repair.transformer(rng=5)
            pipeline = make_pipeline(step, Numbers(numbers), LogisticRegression())
            pipeline.fit(X, y, group=group)
            found = pipeline.predict_proba(X, group=group)
        moved = repair.transform(X, group, rng=5)
        expected = LogisticRegression().fit(moved[numbers].to_numpy(), y)
        np.testing.assert_array_equal(found, expected.predict_proba(moved[numbers].to_numpy()))

    def test_it_is_an_estimator(self, rows, repair):
        X, _, _, group = rows
        step = repair.transformer()
        assert step.get_params(deep=False) == {"repair": repair, "rng": None}
        assert step.set_params(rng=3).rng == 3
        assert not step.__sklearn_tags__().requires_fit
        again = pickle.loads(pickle.dumps(clone(step)))
        found = again.fit(X).transform(X, group)
        pd.testing.assert_frame_equal(found, repair.transform(X, group, rng=3))
        with sklearn.config_context(enable_metadata_routing=True):
            step.set_transform_request(group=False)
            assert step.get_metadata_routing().transform.requests == {"group": False}


class Numbers(sklearn.base.TransformerMixin, sklearn.base.BaseEstimator):
    """Some columns of a frame as an array."""

    def __init__(self, names):
        self.names = names

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[self.names].to_numpy()


# -- calibration -------------------------------------------------------------------------------

REPAIRS = 200


def population(seed=0):
    """All rows of five bits: masses of both groups, scores and P(Y = 1 | x)."""
    rng = np.random.default_rng(seed)
    atoms = np.array([[x >> k & 1 for k in range(5)] for x in range(32)], dtype=float)
    masses = [np.prod(np.where(atoms == 1, p, 1 - p), axis=1) for p in (0.45, 0.6)]
    score = 1 / (1 + np.exp(3.0 - atoms @ rng.uniform(0.5, 2.0, 5)))
    label = 1 / (1 + np.exp(2.0 - atoms @ rng.uniform(0.2, 2.0, 5)))
    return atoms, masses, score, label


@pytest.mark.calibration
@pytest.mark.parametrize("name", ["fpr", "fnr"])
def test_the_interval_of_the_gap_after_contains_it(name):
    """The truth is that of the very map, on all rows there could be; without the variance of the
    others the same interval fails."""
    atoms, masses, score, label = population()
    rng = np.random.default_rng(4)
    other = reference.rate(name, label, score, masses[1])[0]
    hits = short = 0
    for _ in range(REPAIRS):
        place = [rng.choice(32, n, p=mass) for n, mass in zip((1_500, 900), masses, strict=True)]
        place = np.concatenate(place)
        y = (rng.random(len(place)) < label[place]).astype(int)
        found = fa.influence_audit(
            y, y_score=score[place], X=atoms[place], sensitive_features=np.arange(len(y)) >= 1_500,
            target=False, metric=NAMES[name], n_draws=9, rng=1,
        ).repair(rng=int(rng.integers(2**32)), nuisance=Rough())  # fmt: skip
        coded = np.ascontiguousarray(atoms)
        cell, _ = found.way.find(coded, CALL)
        after = found.way.expected_score(cell, score)
        truth = reference.rate(name, label, after, masses[0])[0] - other
        low, high = found.confidence_interval
        hits += low <= truth <= high
        # What the others add to the variance, by their size alone.
        share = 900 / 2_400
        half = (high - low) / 2 * np.sqrt(share)
        short += abs(found.gap_after - truth) <= half
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], REPAIRS, 0.95)
    assert low <= hits <= high
    assert not low <= short <= high


class Rough:
    """P(Y = 1 | X) by a fixed logistic regression: fast, and not quite right."""

    def fit(self, X, y):
        self.model = LogisticRegression(C=1.0).fit(X, y)

    def predict_proba(self, X):
        return self.model.predict_proba(X)
