"""Rows with weights, several rows of one person, and rows that repeat each other."""

import math

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.data.sums import sums_of
from fairaudit_rs.individual.problem import PART
from fairaudit_rs.inference.clusters import degrees_of_freedom, effective_number

from ..reference import individual as reference

MODEL = fa.LinearModel([1.0, -0.5, 0.7])
METRIC = fa.FairMetric.directions([[0.0, 1.0, 1.0]])
#: Every kind of bound of both ratios.
CASES = [(r, i) for r in ("loss", "error_rate") for i in ("normal", "log", "bootstrap-t")]


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), rng


def audit(X, y, model=MODEL, **options):
    options = {"fair_metric": METRIC, "n_steps": 30, "rng": 1, "n_resamples": 99} | options
    return fa.individual_test(model, X, y, **options)


def models():
    """By kind, the same rows' models."""
    rng = np.random.default_rng(5)
    support = rng.normal(size=(12, 3))
    yield "linear", MODEL
    yield "kernel", fa.KernelModel(support, rng.normal(size=12), gamma=0.3, link="logit")
    yield "classes", fa.models.MulticlassModel.linear(rng.normal(size=(2, 3)))


def numbers(result):
    """All that must agree."""
    return [
        result.estimate, result.standard_error, result.pvalue, *result.confidence_interval,
        result.lower_bound, result.upper_bound, *result.path.estimate, *result.path.lower_bound,
    ]  # fmt: skip


class TestArguments:
    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            (
                {"sample_weight": [1.0, 2.0]},
                errors.DataError,
                "sample_weight has 2 rows, X has 300",
            ),
            ({"sample_weight": -np.ones(300)}, errors.DataError, "sample_weight is -1 in row 0"),
            ({"sample_weight": np.zeros(300)}, errors.DataError, "sample_weight is 0 in every row"),
            ({"sample_weight": "w"}, errors.ArgumentTypeError, "sample_weight is 'w'"),
            ({"clusters": [1, 2]}, errors.DataError, "clusters has 2 rows, X has 300"),
            ({"clusters": [None] * 300}, errors.DataError, "clusters"),
            ({"clusters": "id"}, errors.ArgumentTypeError, "clusters is the text 'id'"),
            (
                {"clusters": np.arange(300), "compat": "paper"},
                errors.ArgumentError,
                "compat is 'paper' with sample_weight or clusters",
            ),
        ],
    )
    def test_wrong_values(self, changes, error, message):
        X, y, _ = rows()
        with pytest.raises(error, match=message):
            audit(X, y, **changes)

    def test_clusters_of_several_columns(self):
        X, y, rng = rows()
        house, person = rng.integers(0, 20, 300), rng.choice(["a", "b"], 300)
        both = audit(X, y, clusters={"house": house, "person": person})
        one = audit(X, y, clusters=np.char.add(house.astype(str), person))
        assert numbers(both) == numbers(one)
        assert both.n_clusters == 40


class TestReference:
    @pytest.mark.parametrize("kind", ["linear", "kernel", "classes"])
    @pytest.mark.parametrize("ratio", ["loss", "error_rate"])
    def test_weights_and_clusters(self, kind, ratio):
        X, y, rng = rows()
        model = dict(models())[kind]
        person, weight = rng.integers(0, 40, 300), rng.exponential(size=300)
        weight[:30] = 0
        for given in (
            {"clusters": person}, {"sample_weight": weight},
            {"clusters": person, "sample_weight": weight},
        ):  # fmt: skip
            found = audit(X, y, model, ratio=ratio, **given)
            plain = audit(X, y, model, ratio=ratio)
            columns = [plain.ratios, None]
            if ratio == "error_rate":
                columns = [wrong(plain.score_end, y), wrong(plain.score_start, y)]
            wanted = reference.clustered_ratio(
                *columns, given.get("sample_weight"), given.get("clusters")
            )
            assert (found.estimate, found.standard_error**2, found.df) == pytest.approx(
                wanted, rel=1e-10
            )
            # The last point of the path by the sums, and by itself.
            assert found.path.estimate[-1] == found.estimate
            assert found.path.lower_bound[-1] == found.lower_bound

    @pytest.mark.parametrize("given", ["clusters", "weights"])
    def test_the_path(self, given):
        X, y, rng = rows()
        person, weight = rng.integers(0, 40, 300), rng.exponential(size=300)
        options = {"clusters": person} if given == "clusters" else {"sample_weight": weight}
        found = audit(X, y, path_points=4, **options)
        for step, estimate, bound in zip(
            found.path.step, found.path.estimate, found.path.lower_bound, strict=True
        ):
            # A flow of so many steps; the first point has none.
            if step:
                alone = audit(X, y, n_steps=int(step), **options)
                assert estimate == pytest.approx(alone.estimate, rel=1e-12)
                assert bound == pytest.approx(alone.lower_bound, rel=1e-10)
            else:
                assert (estimate, bound) == (1.0, 1.0)

    def test_degrees_of_freedom(self):
        weight = np.random.default_rng(1).exponential(size=9)
        wanted = reference.clustered_ratio(np.arange(9.0), None, weight)[2]
        assert degrees_of_freedom(weight) == pytest.approx(wanted, rel=1e-12)
        assert degrees_of_freedom(np.full(9, 0.3)) == pytest.approx(8)
        assert effective_number(np.full(9, 0.3)) == pytest.approx(9)
        assert effective_number(np.array([1.0, 1e-9])) == pytest.approx(1)


def wrong(scores, y):
    decided = scores >= 0 if scores.ndim == 1 else scores.argmax(axis=1)
    return (decided != y).astype(float)


class TestProperties:
    @pytest.mark.parametrize(("ratio", "interval"), CASES)
    def test_clusters_of_one_and_equal_weights_change_nothing(self, ratio, interval):
        X, y, rng = rows()
        wanted = audit(X, y, ratio=ratio, interval=interval)
        for given in ({"clusters": rng.permutation(300)}, {"sample_weight": np.full(300, 0.7)}):
            found = audit(X, y, ratio=ratio, interval=interval, **given)
            assert numbers(found) == numbers(wanted)

    @pytest.mark.parametrize(("ratio", "interval"), CASES)
    def test_weights_are_rows_that_stand_for_several(self, ratio, interval):
        X, y, rng = rows()
        weight = rng.integers(0, 4, 300)
        weighted = audit(X, y, ratio=ratio, interval=interval, sample_weight=weight)
        many = np.repeat(np.arange(300), weight)
        repeated = audit(X[many], y[many], ratio=ratio, interval=interval, clusters=many)
        assert numbers(weighted) == pytest.approx(numbers(repeated), rel=1e-9)
        assert weighted.error_rates == pytest.approx(repeated.error_rates)
        # Who weighs nothing can be left out.
        kept = weight > 0
        alone = audit(X[kept], y[kept], ratio=ratio, interval=interval, sample_weight=weight[kept])
        assert numbers(weighted) == pytest.approx(numbers(alone), rel=1e-12)
        assert any(f"{(~kept).sum()} of 300 rows have weight 0" in w for w in weighted.warnings)

    def test_repeating_all_rows_changes_nothing_with_clusters(self):
        X, y, _ = rows()
        once, again = audit(X, y), np.tile(np.arange(300), 3)
        known = audit(X[again], y[again], clusters=again)
        assert known.standard_error == pytest.approx(once.standard_error, rel=1e-9)
        unknown = audit(X[again], y[again])
        assert unknown.standard_error == pytest.approx(once.standard_error / 3**0.5, rel=1e-2)

    @pytest.mark.parametrize(("ratio", "interval"), CASES)
    def test_order_of_rows_and_names_of_clusters_bit_for_bit(self, ratio, interval):
        X, y, rng = rows()
        person, weight = rng.integers(0, 60, 300), rng.exponential(size=300)
        options = {"ratio": ratio, "interval": interval}
        wanted = audit(X, y, clusters=person, sample_weight=weight, n_threads=1, **options)
        order, names = rng.permutation(300), rng.permutation(60)
        found = audit(
            X[order], y[order], clusters=names[person][order], sample_weight=weight[order],
            n_threads=3, **options,
        )  # fmt: skip
        assert numbers(found)[:7] == numbers(wanted)[:7]
        assert numbers(found) == pytest.approx(numbers(wanted), rel=1e-12)

    def test_parts_of_many_rows(self):
        X, y, rng = rows(PART + 500)
        person = rng.integers(0, 5_000, len(X))
        found = audit(X, y, n_steps=4, path_points=2, clusters=person)
        wanted = reference.clustered_ratio(found.ratios, clusters=person)
        assert (found.estimate, found.standard_error**2) == pytest.approx(wanted[:2], rel=1e-9)
        assert found.path.lower_bound[0] == 1.0

    def test_torch(self):
        torch = pytest.importorskip("torch")
        module = torch.nn.Linear(3, 1).double()
        with torch.no_grad():
            module.weight[0] = torch.tensor([1.0, -0.5, 0.7], dtype=torch.float64)
            module.bias[0] = 0
        X, y, rng = rows()
        given = {"clusters": rng.integers(0, 50, 300), "sample_weight": rng.exponential(size=300)}
        found = audit(X, y, fa.TorchModel(module, dtype="float64"), **given)
        assert numbers(found) == pytest.approx(numbers(audit(X, y, **given)), rel=1e-9)

    def test_refits_draw_whole_persons(self):
        X, y, rng = rows()
        group = (X[:, 1] + rng.normal(size=300) > 0).astype(int)
        many = np.repeat(np.arange(300), 3)
        options = {"interval": "bootstrap-t", "refit_metric": True, "n_resamples": 99}
        once = audit(X, y, fair_metric=fa.FairMetric.subspace(X, group), **options)
        metric = fa.FairMetric.subspace(X[many], group[many])
        known = audit(X[many], y[many], fair_metric=metric, clusters=many, **options)
        unknown = audit(X[many], y[many], fair_metric=metric, **options)
        width = [high - low for low, high in (
            value.confidence_interval for value in (once, known, unknown)
        )]  # fmt: skip
        assert width[1] == pytest.approx(width[0], rel=0.35)
        assert width[2] < 0.75 * width[1]

    def test_rows_of_weight_0_cannot_spoil_anything(self):
        X, y, _ = rows()
        X[0] = 1e308
        weight = np.ones(300)
        weight[0] = 0
        found = audit(X, y, fa.LinearModel([1e3, -0.5, 0.7]), sample_weight=weight)
        assert found.n_nonfinite == 0
        assert math.isfinite(found.lower_bound)
        assert math.isnan(audit(X, y, fa.LinearModel([1e3, -0.5, 0.7])).estimate)

    @pytest.mark.parametrize("interval", ["normal", "bootstrap-t"])
    def test_too_few_clusters(self, interval):
        X, y, _ = rows()
        person = np.r_[np.zeros(290), np.arange(1, 11)]
        found = audit(X, y, clusters=person, interval=interval)
        assert math.isfinite(found.estimate)
        assert math.isnan(found.pvalue)
        assert "has no test" in found.summary()
        assert any("11 clusters or weighted rows count as 1 of equal" in w for w in found.warnings)

    def test_of_each_person_one_example(self):
        X, y, _ = rows()
        many = np.repeat(np.arange(300), 2)
        found = audit(X[many], y[many], clusters=many)
        examples = found.unfair_examples(5)
        assert len(set(many[examples.row])) == 5
        assert examples.ratio == pytest.approx(audit(X, y).unfair_examples(5).ratio)
        assert "300 clusters, t with 299 degrees of freedom" in found.details

    def test_bars_of_weights(self):
        X, y, rng = rows()
        weight = rng.exponential(size=300)
        bars = audit(X, y, sample_weight=weight).plot("ratios").spec["layer"][0]
        assert sum(value["rows"] for value in bars["data"]["values"]) == pytest.approx(weight.sum())
        assert bars["encoding"]["y"]["title"] == "weight of the rows"


class TestSums:
    def test_their_bits_do_not_depend_on_the_order(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=5_000) * 10.0 ** rng.integers(-12, 3, 5_000)
        cluster = rng.integers(0, 7, 5_000)
        wanted = sums_of(cluster, values)
        exact = [math.fsum(values[cluster == number]) for number in range(7)]
        assert wanted == pytest.approx(exact, rel=1e-14)
        for _ in range(20):
            order = rng.permutation(5_000)
            assert (sums_of(cluster[order], values[order]) == wanted).all()
        # Added up as they come they differ.
        plain = {np.bincount(cluster[o], weights=values[o])[0] for o in (
            rng.permutation(5_000) for _ in range(20)
        )}  # fmt: skip
        assert len(plain) > 1
        values[3] = math.nan
        assert np.isnan(sums_of(cluster, values)).sum() == 1
        assert sums_of(cluster, np.zeros(5_000), 9).tolist() == [0.0] * 9


class TestRepeatedRows:
    def test_they_are_counted(self):
        X, y, _ = rows()
        assert audit(X, y).n_repeated == 0
        X[1], y[1] = X[0], y[0]
        X[2], y[2] = X[0], 1 - y[0]
        X[3:6], y[3:6] = X[3], y[3]
        found = audit(X, y)
        assert found.n_repeated == 3
        assert any("3 of 300 rows repeat another one" in w for w in found.warnings)
        told = audit(X, y, clusters=np.arange(300))
        assert told.n_repeated == 3
        assert not any("repeat another one" in w for w in told.warnings)

    def test_zeros_of_either_sign_are_equal(self):
        X, y = np.zeros((4, 3)), np.array([0, 1, 0, 1])
        X[2:] = -0.0
        assert audit(X, y).n_repeated == 2
