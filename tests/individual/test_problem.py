"""Problems of flows: ranges of rows, pickles, and what the native module holds."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.data.features import Features
from fairaudit_rs.individual.losses import Losses
from fairaudit_rs.individual.problem import PART, problem_class
from fairaudit_rs.individual.schedule import Schedule
from fairaudit_rs.individual.targets import Targets

from .. import architecture

SCHEDULE = Schedule.from_arguments(4, 0.05, 0.3, "heun", 3)
#: Rows of a bit more than thirteen parts.
MANY = 13 * PART + 100


def problem(kind, n=MANY):
    """Rows, a model of a kind, and a metric."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3 if kind == "classes" else 2, n)
    boundary = None if kind == "classes" else 0.0
    if kind == "torch":
        torch = pytest.importorskip("torch")
        torch.manual_seed(1)
        model = fa.TorchModel(torch.nn.Linear(3, 1).double())
    elif kind == "kernel":
        model = fa.KernelModel(X[:4], [1.0, -0.5, 0.3, 2.0], gamma=0.3, threshold=0.5)
    elif kind == "classes":
        model = fa.models.MulticlassModel.linear(rng.normal(size=(3, 3)))
    else:
        model = fa.LinearModel([1.0, 0.5, -0.4], 0.1)
    return problem_class(model.scores)(
        scores=model.scores,
        features=Features(X, None),
        targets=Targets(y.astype(float), "log_loss", boundary),
        metric=fa.FairMetric.mahalanobis(np.diag([1.0, 2.0, 3.0])),
        penalty=2.0,
        floor=None if kind == "paper" else 1e-12,
        batch_size=1_000,
    )


def fields(flowed):
    """Everything that there is to compare."""
    arrays = [flowed.start, flowed.end, flowed.moved, flowed.loss_start, flowed.loss_end]
    return [array.tobytes() for array in arrays], flowed.path.__getnewargs__()


def run_range(pickled, first, last):
    """Evaluate a problem in a worker process."""
    return pickle.loads(pickled).of_rows(slice(first, last)).run(SCHEDULE, 1)


def ranges(n, n_parts):
    """Ranges of whole parts, but for the last one."""
    n_whole = -(-n // PART)
    ends = [min(n, PART * (n_whole * k // n_parts)) for k in range(1, n_parts + 1)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


class TestRanges:
    @pytest.mark.parametrize("kind", ["linear", "paper", "classes", "kernel", "torch"])
    def test_parts_of_the_rows_give_the_bits_of_one_call(self, kind):
        whole = problem(kind)
        wanted = whole.run(SCHEDULE, 2)
        assert whole.run(SCHEDULE, 1).path.mean == wanted.path.mean
        for n_parts in (1, 2, 7, 13):
            found = [whole.of_rows(slice(*rows)).run(SCHEDULE, 2) for rows in ranges(MANY, n_parts)]
            assert fields(whole.joined(found)) == fields(wanted)
        values = Losses(whole, wanted, "loss").values_along_path("normal", None)
        again = Losses(whole, whole.joined(found), "loss").values_along_path("normal", None)
        assert values == again

    @pytest.mark.parametrize("kind", ["linear", "kernel"])
    def test_processes_that_received_the_problem(self, kind):
        whole = problem(kind)
        wanted = whole.run(SCHEDULE, 2)
        pickled = pickle.dumps(whole)
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as workers:
            for n_parts in (1, 2, 7, 13):
                tasks = [
                    workers.submit(run_range, pickled, *rows) for rows in ranges(MANY, n_parts)
                ]
                found = whole.joined([task.result() for task in tasks])
                assert fields(found) == fields(wanted)

    def test_ranges_that_are_no_whole_parts(self):
        whole = problem("linear", 300)
        found = [whole.of_rows(slice(*rows)).run(SCHEDULE) for rows in [(0, 100), (100, 300)]]
        with pytest.raises(
            errors.ArgumentError, match="paths is one of 100 rows; accepted: ranges"
        ):
            whole.joined(found)


class TestNative:
    def test_caches_are_left_out_of_pickles(self):
        one = problem("kernel", 50)
        before = pickle.dumps(one)
        one.run(SCHEDULE)
        assert pickle.dumps(one) == before

    def test_answers_and_schedules_pickle(self):
        flowed = problem("classes", 70).run(SCHEDULE)
        again = pickle.loads(pickle.dumps(flowed))
        assert fields(again) == fields(flowed)
        assert (again.path.n, again.path.squares) == (flowed.path.n, flowed.path.squares)
        schedule = pickle.loads(pickle.dumps(SCHEDULE)).native
        assert (schedule.n_steps, schedule.size, schedule.decay) == (4, 0.05, 0.3)
        assert (schedule.solver, schedule.record) == ("heun", [0, 2, 4])
        assert schedule.stages == ([0.0, 1.0], [0.5, 0.5])

    def test_rows_are_held_by_reference(self):
        rows, targets = np.ones((4, 1)), np.array([0.0, 1.0, 0.0, 1.0])
        flow = _native.Flow.linear(
            rows, targets, "log_loss", np.ones((1, 1)), [0.0], [0.0], np.ones((1, 1, 1))
        )
        steps = Schedule.from_arguments(1, 0.1, 0.0, "euler", 2).native
        rows[2] = 5.0
        found = flow.run(steps, _native.Call(), floor=0.0, boundary=0.0)
        assert found.start.tolist() == [[1.0, 1.0, 5.0, 1.0]]

    def test_wrong_arguments(self):
        rows, labels, one = np.ones((4, 2)), np.zeros(4), np.ones((1, 1, 1))

        def flow(
            rows=rows, labels=labels, coef=((1.0, 2.0),), pulls=(0.0,), gains=one, loss="log_loss"
        ):
            made = _native.Flow.linear(rows, labels, loss, np.array(coef), [0.0], pulls, gains)
            return made.run(SCHEDULE.native, _native.Call(), floor=0.0, boundary=0.0)

        flow()
        for changes, message in [
            ({"labels": np.zeros(5)}, "features is of length 8; accepted: one of length 10"),
            ({"labels": np.full(4, 0.5)}, "targets is something else; accepted: whole numbers"),
            ({"pulls": (0.0, 1.0)}, "gains is of length 1; accepted: one of length 2"),
            ({"loss": "hinge"}, "loss is hinge; accepted: log_loss, "),
        ]:
            with pytest.raises(errors.ArgumentError, match=message):
                flow(**changes)
        # What lies column by column is contiguous, but in another order.
        with pytest.raises(TypeError, match="not contiguous"):
            flow(rows=np.asfortranarray(np.arange(8.0).reshape(4, 2)))
        with pytest.raises(TypeError):
            flow(rows=rows.astype(np.float32))
        with pytest.raises(TypeError):
            flow(rows=rows.ravel())

    def test_an_audit_compares_the_start_with_the_end(self):
        one = problem("linear", 50)
        for record in ([], [0], [4], [0, 2]):
            steps = _native.Schedule(4, 0.1, decay=0.0, solver="euler", record=record)
            with pytest.raises(errors.ArgumentError, match="numbers of steps from 0 to 4, both"):
                one._flow.run(steps, _native.Call(), floor=0.0, boundary=0.0)
        with pytest.raises(errors.ArgumentError, match="boundary is None; accepted: a number for"):
            one._flow.run(SCHEDULE.native, _native.Call(), floor=0.0, boundary=None)

    def test_paths_that_do_not_fit(self):
        path = problem("linear", 50).run(SCHEDULE).path
        other = _native.Path(16_384, [(1, 1.0, 0.0)] * 2, 0, [(0, 0, True)] * 2)
        with pytest.raises(errors.ArgumentError, match="wrong_end is of length 3"):
            _native.Path.joined([other, path])
        with pytest.raises(errors.ArgumentError, match="parts is 3 sums; accepted: as many for"):
            _native.Path(5, [(1, 1.0, 0.0)] * 3, 0, [(0, 0, True)] * 2)
        assert _native.Path.joined([]).n_rows == 0


def test_scores_that_no_flow_follows():
    class Mine:
        n_scores, n_features = 3, 2

    with pytest.raises(
        errors.ArgumentTypeError, match="scores of the class Mine; accepted: Linear"
    ):
        problem_class(Mine())


def test_only_the_question_reads_columns():
    trees = architecture.modules()
    readers = {"column_array", "read_features", "positions_of", "named_columns", "distinct_values"}
    found = {
        value.source
        for value in architecture.imports(trees)
        if value.source.startswith("individual.") and value.name in readers
    }
    assert found == {"individual.question"}


class TestValues:
    """Values equal their pickled copies, and differ where a number does."""

    @staticmethod
    def attack(model, X, y, metric, **options):
        return fa.individual_test(
            model, X, y, fair_metric=metric, n_steps=5, penalty=1.0, rng=1, **options
        )

    @pytest.mark.parametrize("kind", ["linear", "kernel", "torch"])
    def test_results_and_their_parts(self, kind):
        one = problem(kind, 200)
        X, y = one.features.values, one.targets.values
        model = {
            "linear": lambda: fa.LinearModel([1.0, 0.5, -0.4], 0.1),
            "kernel": lambda: fa.KernelModel(X[:4], [1.0, -0.5, 0.3, 2.0], threshold=0.5),
            "torch": lambda: fa.TorchModel(one.scores.module),
        }[kind]()
        found = self.attack(model, X, y, one.metric)
        for value in (found, found.path, found.flow, found.unfair_examples(3), model, one):
            again = pickle.loads(pickle.dumps(value))
            assert again == value
            assert hash(again) == hash(value)
        again = pickle.loads(pickle.dumps(found))
        assert again.unfair_examples(4) == found.unfair_examples(4)
        assert again.unfair_examples(4) != found.unfair_examples(5)
        assert np.array_equal(again.attacked, found.attacked)
        assert again.path != self.attack(model, X, y, one.metric, loss_floor=0.5).path
        assert self.attack(pickle.loads(pickle.dumps(model)), X, y, one.metric) == found

    def test_fair_metrics_and_their_refits(self):
        rng = np.random.default_rng(5)
        X, group = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
        fitted = fa.FairMetric.subspace(X, {"sex": group}, standardize=True)
        again = pickle.loads(pickle.dumps(fitted))
        assert again == fitted
        assert hash(again) == hash(fitted)
        some = np.arange(40)
        assert again.refit(some) == fitted.refit(some) != fitted
        assert fa.FairMetric.matrix(np.eye(3)) == fa.FairMetric.matrix(np.eye(3))
        assert fa.FairMetric.matrix(np.eye(3)) != fa.FairMetric.matrix(2 * np.eye(3))
        assert fa.FairMetric.matrix(np.eye(3)) != 3
        X, y, found = X, group, []
        for metric in (fitted, again):
            options = {"interval": "bootstrap-t", "refit_metric": True, "n_resamples": 9}
            found.append(self.attack(fa.LinearModel([1.0, 0.0, 1.0]), X, y, metric, **options))
        assert found[0] == found[1]

    def test_models(self):
        linear = fa.LinearModel([1.0, 2.0], 0.5)
        kernel = fa.KernelModel([[0.0, 1.0]], [1.0])
        classes = fa.models.MulticlassModel.linear(np.eye(2), classes=["a", "b"])
        for model, others in [
            (linear, [fa.LinearModel([1.0, 2.0]), linear.with_threshold(0.4), kernel]),
            (kernel, [fa.KernelModel([[0.0, 1.0]], [1.0], gamma=2.0)]),
            (classes, [fa.models.MulticlassModel.linear(np.eye(2), classes=["b", "a"]), linear]),
        ]:
            assert pickle.loads(pickle.dumps(model)) == model
            assert all(model != other for other in others)
        # What was asked of a model is no part of it.
        asked = fa.KernelModel([[0.0, 1.0]], [1.0])
        asked.distance([[1.0, 1.0]])
        assert asked == kernel

    def test_models_of_torch(self):
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        module = torch.nn.Linear(2, 1)
        model = fa.TorchModel(module)
        assert pickle.loads(pickle.dumps(model)) == model
        assert fa.TorchModel(module, dtype="float64") != model
        assert fa.TorchModel(torch.nn.Linear(2, 1)) != model
        assert fa.TorchModel(torch.nn.Sequential(torch.nn.Linear(2, 1))) != model

    def test_models_of_scikit_learn(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
        fitted = linear_model.LogisticRegression().fit(X, y)
        one, other = fa.models.adapt(fitted), fa.models.adapt(fitted)
        assert one == other
        assert pickle.loads(pickle.dumps(one)) == one
        assert fa.models.adapt(linear_model.LogisticRegression(C=0.1).fit(X, y)) != one
