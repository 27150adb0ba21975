"""The small calls of `native_calls` with arguments that do not fit, as careless callers pass.

A call may answer or raise; it must not panic, and it must not end the process. `python -m
tests.native_fuzz NAME ...` prints the calls that do not keep to that, of functions and classes
whose names begin so (of all, without names).
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from fairaudit_rs import _native, errors

from . import native_calls

DTYPES = (np.float64, np.float32, np.int64, np.uint64, np.uint32, np.uint16, np.uint8, bool, "S3")
REFUSALS = (TypeError, ValueError, OverflowError, IndexError, errors.FairAuditError)

#: Of the native module what is not tried, and why.
NOT_TRIED = {
    "Assignments.null_distribution": "jumps to the address that it is given",
    "Call.planted_panic": "panics, which is what it is for",
}


class Recorder:
    """Stands for the native module, or an object of it, and writes down how it is called."""

    def __init__(self, native, calls, name=""):
        self.native, self.calls, self.name = native, calls, name

    def __getattr__(self, name):
        found = getattr(self.native, name)
        known = callable(found) or name in ("Call", "Draws")
        return Recorder(found, self.calls, f"{self.name}.{name}".lstrip(".")) if known else found

    def __call__(self, *args, **kwargs):
        args, kwargs = plain(args), plain(kwargs)
        self.calls.setdefault(self.name, (self.native, args, kwargs))
        answer = self.native(*args, **kwargs)
        if type(answer).__module__ == _native.__name__:
            return Recorder(answer, self.calls, type(answer).__name__)
        return answer


def plain(value):
    """The value without recorders."""
    if isinstance(value, Recorder):
        return value.native
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    return value


def recorded(csv_file):
    """How every native function is called, by name: itself, its arguments."""
    calls, known = {}, native_calls._native
    native_calls._native = Recorder(_native, calls)
    try:
        # Before any that is made without arguments.
        native_calls._native.Call(1, None)
        made = [*native_calls.small_calls(csv_file).values()]
        for run in made:
            run(_native.Call())
        native_calls.permutation_tests()
        _without_calls(native_calls._native)
    finally:
        native_calls._native = known
    return {name: call for name, call in calls.items() if name not in NOT_TRIED}


def _without_calls(native):
    """Return the functions that take no `Call`."""
    numbers = np.linspace(0, 1, 6)
    _metrics_and_tests(native, numbers)
    _flows(native, numbers)
    _tails(native, numbers)
    native.Draws(3, seed=1, series=2, first=4)
    native.Contrast(0.5, 0.1, 2, 1)
    native.Extremes(1, 2, 0)
    native.Limits(numbers, numbers)
    native.beta_quantile(2.0, 3.0, 0.5)
    native.normal_quantile(0.5)
    native.t_tail_quantile(0.1, 3.0)
    native.t_upper_tail(1.5, 3.0)
    native.clopper_pearson(3, 9, 0.95)
    native.philox([1, 2, 3, 4], [5, 6])


def _metrics_and_tests(native, numbers):
    metric = native.CountMetric
    metric.joint([metric.formula("tp / (tp + fn)"), metric.formula("fp / (fp + tn)")])
    rate = metric.formula("tp / (tp + fn)")
    rate.gradient([1.0, 2.0, 3.0, 4.0])
    rate.evaluate([1.0, 2.0, 3.0, 4.0], _native.Call())
    metric.ranks(3)
    native.Evaluation(1.0, 2.0)
    native.ExactLaw(0.5, 0.0, numbers, numbers)
    native.Replicates(numbers.reshape(3, 2), numbers.reshape(3, 2))
    units = native.Units(np.arange(6, dtype=np.uint16) % 2, 2)
    test = native.PermutationTest.ratio(numbers, None, units, _native.Call(), studentize="none")
    test.max_t_pvalues([(0, 1)], np.array([3], np.uint64), 9)
    shifts = test.shifts(_native.Draws(9, seed=1), _native.Call())
    native.Shifts(*plain(shifts).__getnewargs__())


def _flows(native, numbers):
    rows, targets = numbers.reshape(3, 2), np.array([0.0, 1.0, 1.0])
    model = native.KernelExpansion(
        np.eye(2), np.ones((1, 2)), [0.1], "rbf", gamma=0.5, degree=2, coef0=0.0
    )
    metric = native.MetricPull(np.ones(2), [0.5], np.eye(2)[:1], 1.0)
    flow = native.Flow.kernel(rows, targets, "log_loss", model, metric, [[0]])
    schedule = native.Schedule(3, 0.1, decay=0.0, solver="euler", record=[0, 3])
    scores = flow.scores(schedule, _native.Call())
    native.FlowScores(scores.native.scores, scores.native.moved)
    flowed = plain(flow.run(schedule, _native.Call(), floor=0.0, boundary=0.0))
    parts = (flowed.start, flowed.end, flowed.moved, flowed.loss_start, flowed.loss_end)
    native.Flowed(*parts, flowed.path)
    end = native.Path(5, [(1, 1.0, 0.0)], 0, [(0, 0, True)])
    native.Path.joined([_native.Path(native.FLOW_PART, [(1, 1.0, 0.0)], 0, [(0, 0, True)]), end])


def _tails(native, numbers):
    law = (0.0, 1.0, 0.1)
    native.gev_return_level(law, 20.0, 100.0)
    native.gev_of_excesses(1.0, 0.5, 0.1, 3.0)
    native.gev_excesses(law, 0.2)
    native.critical_variations(0.95)
    native.forward_stop([0.5, 0.01], 0.05)
    native.last_cut_score()
    native.cut_grid()
    native.default_exceedances(500)
    native.tabled_designs()
    values = native.TailValues(np.random.default_rng(0).random(120), _native.Call())
    values.top(3)
    values.order_limits(100.0, 0.95)
    values.ties(15)
    values.fit_over(0.5, None)
    tail = values.fit(15, None, None)
    tail.level(100.0)
    cuts = native.Cuts.of_shape(15)
    cuts.z(0.5, 0.1)
    native.Cuts(plain(cuts).values)


def worse(value):
    """Other values than the one that fits."""
    yield None
    if isinstance(value, np.ndarray):
        yield from arrays(value)
    elif isinstance(value, bool):
        yield "x"
    elif isinstance(value, int):
        yield from (0, 1, 70_000, -1, 2**64, 0.5)
    elif isinstance(value, float):
        yield from (0.0, -1.0, 1e308, np.inf, np.nan)
    elif isinstance(value, str):
        yield from ("x", "", "\0", 3)
    elif isinstance(value, tuple | list):
        yield from ((), [], value[:-1], [*value, *value], "x", [None])
        for i, entry in enumerate(value):
            for other in worse(entry):
                yield type(value)([*value[:i], other, *value[i + 1 :]])
    else:
        yield from (3, "x")


def arrays(array):
    """An array with another shape, type, order or content."""
    yield from (array[:0], array[:-1], array[::-1], array[::2], array.T, array.ravel(), array[None])
    yield from (np.concatenate([array, array]), np.asfortranarray(array), array.tolist(), array[0])
    for dtype in DTYPES:
        yield array.astype(dtype)
    bytes_ = np.zeros(array.nbytes + 1, np.uint8)[1:]
    yield bytes_.view(array.dtype).reshape(array.shape)
    yield array.astype(array.dtype.newbyteorder())
    if array.dtype.kind == "b":
        yield np.full(array.shape, 200, np.uint8).view(bool)
    elif array.dtype.kind in "ui":
        yield from (np.full_like(array, top) for top in (0, 1, np.iinfo(array.dtype).max))
        yield from (np.where(np.arange(len(array)) == 0, array.max() + 1, array.T).T,)
    elif array.dtype.kind == "f":
        yield from (np.full_like(array, x) for x in (0.0, -1.0, np.nan, np.inf, 1e308, 5e-324))


def fuzzed(csv_file, names):
    """Yield the name of a call, what was wrong with it, and what it came to."""
    for name, (native, args, kwargs) in recorded(csv_file).items():
        if not name.startswith(names):
            continue
        for place in [*range(len(args)), *kwargs]:
            for other in worse(args[place] if isinstance(place, int) else kwargs[place]):
                changed = (
                    [*args[:place], other, *args[place + 1 :]] if isinstance(place, int) else args
                )
                named = kwargs if isinstance(place, int) else {**kwargs, place: other}
                # Told before the call, which may end the process.
                print("?", name, place, " ".join(repr(other).split())[:60], flush=True)
                try:
                    native(*changed, **named)
                except errors.InternalError as error:
                    yield name, place, other, error
                except REFUSALS:
                    continue
                except BaseException as error:  # a panic that no gate caught
                    yield name, place, other, error


def main(names):
    with tempfile.TemporaryDirectory() as folder:
        csv_file = Path(folder) / "rows.csv"
        csv_file.write_text("group,label\na,1\nb,0\n", encoding="utf-8")
        seen = set()
        for name, place, other, error in fuzzed(str(csv_file), tuple(names) or ""):
            if (name, place) not in seen:
                seen.add((name, place))
                print("!", name, place, repr(other)[:200], type(error).__name__, str(error)[:200])


if __name__ == "__main__":
    main(sys.argv[1:])
