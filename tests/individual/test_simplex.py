"""One-hot features: found, told of when they leave their simplex, and held on it."""

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.individual import simplex
from fairaudit_rs.individual.simplex import found_groups

from ..reference import individual as reference

COEF = np.array([1.0, 0.5, -0.5, 2.0, -1.0, 0.3])
GROUP = [1, 2, 3, 4]


def rows(n=60, seed=0):
    """A number, one choice of four, a number."""
    rng = np.random.default_rng(seed)
    choice = np.eye(4)[rng.integers(0, 4, n)]
    X = np.column_stack([rng.normal(size=n), choice, rng.normal(size=n)])
    return X, (rng.random(n) < 0.5).astype(int)


def audit(X, y, model=None, **options):
    options = {
        "fair_metric": fa.FairMetric.directions([[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]]),
        "n_steps": 20, "step_size": 0.05, "penalty": 2.0,
    } | options  # fmt: skip
    return fa.individual_test(fa.LinearModel(COEF) if model is None else model, X, y, **options)


def kernel(seed=3):
    rng = np.random.default_rng(seed)
    points, dual = rng.normal(size=(8, 6)), 3 * rng.normal(size=8)
    ours = fa.KernelModel(points, dual, gamma=0.2, link="logit")
    return ours, reference.KernelExpansion(points, dual, gamma=0.2)


class TestParts:
    """Some rows at a time give what all rows give."""

    def test_groups_and_departures(self, monkeypatch):
        X, y = rows(200)
        X[150, 0] = 1.0
        expected = audit(X, y)
        assert expected.one_hot_groups == (("x1", "x2", "x3", "x4"),)
        assert any("one-hot features leave" in warning for warning in expected.warnings)
        monkeypatch.setattr(simplex, "_BLOCK_ROWS", 7)
        assert audit(X, y).warnings == expected.warnings
        X[199, 1:5] = [1, 1, 0, 0]
        assert found_groups(X) == ()

    @pytest.mark.parametrize("kind", ["linear", "kernel"])
    def test_a_feature_of_some_rows(self, kind):
        X, y = rows()
        flow = audit(X, y, kernel()[0] if kind == "kernel" else None).flow
        for column in range(6):
            assert np.array_equal(flow.feature(slice(5, 30), column), flow.end()[5:30, column])


class TestFound:
    def test_groups_of_columns(self):
        X, _ = rows(500)
        sex = X[:, :1] > 0
        both = np.column_stack([X, sex, ~sex])
        assert found_groups(both) == ((1, 2, 3, 4), (6, 7))
        # Side by side, one after the other.
        assert found_groups(both[:, [6, 7, 1, 2, 3, 4]]) == ((0, 1), (2, 3, 4, 5))
        # A level that nobody has; indicators that are no choice; numbers.
        empty = np.insert(both, 2, 0.0, axis=1)
        assert found_groups(empty)[0] == (1, 2, 3, 4, 5)
        rng = np.random.default_rng(0)
        assert found_groups(rng.integers(0, 2, (500, 5)).astype(float)) == ()
        assert found_groups(2 * X[:, 1:5]) == ()
        assert found_groups(np.ones((5, 1))) == ()

    @pytest.mark.parametrize(
        ("groups", "error", "message"),
        [
            ("x1", errors.ArgumentTypeError, "one_hot_groups is 'x1'"),
            ([[1, 2], [2, 3]], errors.ArgumentError, "a feature in two groups"),
            ([[]], errors.ArgumentError, "a group without features"),
            ([[1, 9]], errors.ArgumentError, "one_hot_groups contains 9"),
            ([[0, 1]], errors.DataError, "one_hot_groups has x0, x1, which are"),
        ],
    )
    def test_wrong_groups(self, groups, error, message):
        with pytest.raises(error, match=message):
            audit(*rows(), one_hot_groups=groups)

    def test_named_groups(self):
        X, y = rows()
        names = ["age", "job=a", "job=b", "job=c", "job=d", "debt"]
        # Apart from each other they are not found.
        order = [1, 0, 2, 5, 3, 4]
        frame = pl.DataFrame(X[:, order], schema=[names[j] for j in order])
        model = fa.LinearModel(COEF[order], feature_names=[names[j] for j in order])
        metric = fa.FairMetric.matrix(np.eye(6))
        options = {"fair_metric": metric, "one_hot": "keep"}
        assert audit(frame, y, model, **options).one_hot_groups == ()
        found = audit(frame, y, model, one_hot_groups=["job"], **options)
        assert found.one_hot_groups == (("job=a", "job=b", "job=c", "job=d"),)
        assert found.attacked[:, [0, 2, 4, 5]].sum(axis=1) == pytest.approx(1)


class TestFree:
    def test_the_note(self):
        X, y = rows()
        found = audit(X, y)
        worst = found.attacked[:, GROUP]
        assert np.abs(worst.sum(axis=1) - 1).max() > 0.01
        notes = [text for text in found.warnings if "one-hot features leave" in text]
        assert len(notes) == 1
        assert "(x1, x2, x3, x4 sum to 1 in the data); one_hot='keep'" in notes[0]
        column = max(
            GROUP, key=lambda j: np.maximum(-found.attacked[:, j], found.attacked[:, j] - 1).max()
        )
        assert f"x{column} becomes" in notes[0]
        still = audit(X, y, penalty=0.0, step_size=1e-9)
        assert not any("one-hot" in text for text in still.warnings)

    def test_numbers_are_those_of_before(self):
        X, y = rows()
        again = audit(X + 1e-9, y)
        assert again.one_hot_groups == ()
        assert audit(X, y).estimate == pytest.approx(again.estimate, rel=1e-6)


class TestKept:
    def test_reference(self):
        X, y = rows()
        metric = fa.FairMetric.directions([[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]])
        ours, theirs = kernel()
        for model, wanted in ((fa.LinearModel(COEF), reference.Linear(COEF)), (ours, theirs)):
            found = audit(X, y, model, one_hot="keep")
            end = reference.held_flow(
                wanted, X, y, metric.D, [GROUP], penalty=2.0, n_steps=20, step_size=0.05
            )
            assert np.abs(found.attacked - end).max() < 1e-10
            ratios = reference.losses_of(wanted, "log_loss", end, y) / reference.losses_of(
                wanted, "log_loss", X, y
            )
            assert found.ratios == pytest.approx(ratios, rel=1e-9)
            assert "held" in found.engine or model is not ours

    @pytest.mark.parametrize("solver", ["euler", "heun", "rk4"])
    @pytest.mark.parametrize("kind", ["linear", "kernel", "classes", "torch"])
    def test_rows_stay_on_the_simplex(self, kind, solver):
        X, y = rows()
        model = fa.LinearModel(COEF)
        if kind == "kernel":
            model = kernel()[0]
        if kind == "classes":
            model = fa.models.MulticlassModel.linear(np.stack([COEF, -COEF]))
        if kind == "torch":
            torch = pytest.importorskip("torch")
            model = torch.nn.Linear(6, 1).double()
            with torch.no_grad():
                model.weight[0], model.bias[0] = torch.tensor(COEF), 0.0
            model = fa.TorchModel(model)
        found = audit(X, y, model, solver=solver, one_hot="keep")
        assert found.attacked[:, GROUP].sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert found.attacked[:, GROUP].min() > -1e-12
        assert not any("one-hot" in text for text in found.warnings)
        free = audit(X, y, model, solver=solver)
        assert found.estimate < free.estimate
        if kind == "torch":
            same = audit(X, y, solver=solver, one_hot="keep")
            assert found.estimate == pytest.approx(same.estimate, rel=1e-10)

    def test_without_groups_the_flow_is_free(self):
        X, y = rows()
        X = X + 1e-3
        found = audit(X, y, one_hot="keep")
        assert found.estimate == audit(X, y).estimate
        assert any("no one-hot features were found" in text for text in found.warnings)

    def test_standardized_features(self):
        X, y = rows()
        group = (X[:, 0] > 0).astype(int)
        metric = fa.FairMetric.subspace(X, group, standardize=[0, 1])
        found = audit(X, y, fair_metric=metric, one_hot="keep")
        assert found.attacked[:, GROUP].sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert found.attacked[:, GROUP].min() > -1e-12

    def test_threads_and_order_bit_for_bit(self):
        X, y = rows(700)
        one = audit(X, y, one_hot="keep", n_threads=1)
        order = np.random.default_rng(0).permutation(700)
        two = audit(X[order], y[order], one_hot="keep", n_threads=3)
        assert (one.ratios[order] == two.ratios).all()
        assert one.lower_bound == two.lower_bound


class TestLeastNorm:
    """Sensitive directions of designs that repeat themselves."""

    def design(self, n=400):
        rng = np.random.default_rng(2)
        X, _ = rows(n, 1)
        sex = (rng.random(n) < 0.3 + 0.4 * X[:, 3]).astype(int)
        return X, sex, np.resize(["a", "b", "c"], n)[rng.permutation(n)]

    @pytest.mark.parametrize("C", [1.0, 1e6, 1e12])
    def test_order_and_coding_do_not_matter(self, C):
        X, sex, third = self.design()
        age = X[:, 0] + X[:, 2]
        wanted = fa.FairMetric.subspace(X, [sex, third, age], C=C)
        rng = np.random.default_rng(3)
        for _ in range(5):
            order = rng.permutation(6)
            found = fa.FairMetric.subspace(X[:, order], [sex, third, age], C=C)
            assert np.abs(found.D - wanted.D[np.ix_(order, order)]).max() < 1e-8
        # Any orthogonal coding of the choice: the directions turn with it.
        turn = np.eye(6)
        turn[1:5, 1:5] = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        found = fa.FairMetric.subspace(X @ turn, [sex, third, age], C=C)
        assert np.abs(turn @ found.D @ turn.T - wanted.D).max() < 1e-8

    def test_the_shortest_coefficients(self):
        """Nothing but the intercept tells apart what the columns sum to: the direction has none."""
        X, sex, _ = self.design()
        for C in (1.0, 1e12):
            metric = fa.FairMetric.subspace(X, sex, C=C)
            free = np.linalg.eigh(metric.D)[1][:, 0]
            assert abs(free[1:5].sum()) < 1e-10 * np.abs(free).max()
        # Of a column given twice both have the same share.
        twice = fa.FairMetric.subspace(X[:, [0, 0, 5]], sex, C=1e12)
        free = np.linalg.eigh(twice.D)[1][:, 0]
        assert free[0] == pytest.approx(free[1], rel=1e-9)

    def test_the_note(self):
        X, sex, _ = self.design()
        metric = fa.FairMetric.subspace(X, sex)
        assert "the 6 that vary have rank 5" in metric.notes[0].text
        found = audit(X, np.resize([0, 1], 400), fair_metric=metric)
        assert metric.notes[0] in found.notes
        assert fa.FairMetric.subspace(X[:, :4], sex).notes == ()

    def test_a_design_of_full_rank_is_as_before(self):
        X, sex, _ = self.design()
        metric = fa.FairMetric.subspace(X[:, :4], sex)
        wanted = reference.subspace_metric(X[:, :4], [sex])
        assert np.abs(metric.D - wanted).max() < 1e-8
