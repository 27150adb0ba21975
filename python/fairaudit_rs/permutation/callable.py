"""Comparing groups by any function of their rows.

The native module makes the replicates; here the function is evaluated on them, in this process or
in several. A compiled function never comes here: the native module calls it.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import Value
from ..data.labels import GroupKey
from ..data.rows import Rows
from ..data.tables import MAX_DECISION_VALUES
from ..errors import ArgumentError, FairAuditError, FunctionError, NotMeasurableError
from ..inference.intervals import Bootstrap, Pair
from ..inference.pvalues import monte_carlo_pvalue
from ..metrics.metric import Metric
from .problem import Gap, Problem
from .units import group_codes, make_units, positions_of

#: Replicates that a worker process gets at a time.
_CHUNK = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionRun(Value):
    """A function on the rows of some groups; it can be sent to other processes."""

    name: str
    function: Any
    columns: tuple[NDArray[np.float64], NDArray[np.float64]]
    weight: NDArray[np.float64] | None
    units: _native.Units
    #: That a test is studentized with, in each group; 0: it is not.
    n_samples: int
    #: Seed of the bootstrap of the observed rows.
    seed: int

    #: A null distribution of differences that strata shift is centred by no formula here.
    needs_centring = False

    @cached_property
    def _assignments(self) -> _native.Assignments:
        return _native.Assignments(self.units, _native.Call())

    @property
    def address(self) -> int | None:
        """The address of a compiled function."""
        address = getattr(self.function, "address", None)
        return None if address is None else int(address)

    def _compiled_columns(self) -> list[NDArray[np.float64]]:
        weight = np.ones(len(self.columns[0])) if self.weight is None else self.weight
        return [*self.columns, weight]

    def call(self, rows: NDArray[Any]) -> float:
        """Evaluate the function on some rows."""
        if self.address is not None:
            return self._call_compiled(rows)
        label, value = (column[rows] for column in self.columns)
        weight = None if self.weight is None else self.weight[rows]
        try:
            answer = float(self.function(label, value, weight))
        except FairAuditError:
            raise
        except Exception as error:
            raise FunctionError(
                f"the function of metric {self.name!r} failed on {len(label):,} rows: "
                f"{type(error).__name__}: {error}"
            ) from error
        if math.isinf(answer):
            raise FunctionError(
                f"the function of metric {self.name!r} gives {answer} on {len(label):,} rows; "
                "accepted: a finite number, or NaN where it has no value"
            )
        return answer

    def _call_compiled(self, rows: NDArray[Any]) -> float:
        import ctypes

        pointer = ctypes.POINTER(ctypes.c_double)
        prototype = ctypes.CFUNCTYPE(ctypes.c_double, pointer, pointer, pointer, ctypes.c_int64)
        columns = [np.ascontiguousarray(column[rows]) for column in self._compiled_columns()]
        assert self.address is not None
        function = prototype(self.address)
        pointers = (column.ctypes.data_as(pointer) for column in columns)
        return float(function(*pointers, len(columns[0])))

    def values(
        self,
        draws: _native.Draws,
        replicate: int | None,
        progress: Callable[[int], object] | None = None,
    ) -> tuple[list[float], NDArray[np.float64]]:
        """Return the value of every group, and those of its bootstrap samples."""
        call = _native.Call()
        group = self._assignments.groups(draws, replicate, call)
        values = []
        n_groups = self.units.n_groups
        samples = np.empty((self.n_samples, n_groups))
        for g in range(n_groups):
            rows = np.flatnonzero(group == g)
            values.append(self.call(rows))
            drawn = self._assignments.samples(group, g, self.n_samples, draws, replicate, call)
            parts = np.split(drawn.rows, np.cumsum(drawn.sizes)[:-1])
            for b, sample in enumerate(parts[: self.n_samples]):
                samples[b, g] = self.call(sample)
                if progress is not None:
                    # In replicates: one has a sample of each group.
                    progress((g * self.n_samples + b + 1) // n_groups)
        return values, samples

    def statistic(self, draws: _native.Draws, replicate: int | None) -> float:
        """Return the statistic of a replicate; None: as observed."""
        values, samples = self.values(draws, replicate)
        return self._assignments.statistic(values, samples)

    @property
    def observed(self) -> float:
        """The observed statistic."""
        statistic = self.statistic(_native.Draws(1, seed=self.seed), None)
        if math.isnan(statistic):
            raise NotMeasurableError(
                f"some of the {self.n_samples} bootstrap samples that studentize {self.name!r} "
                "have no value in a group: it has too few rows of some kind for it. Name the "
                "groups with groups=, or take studentize='shared', which needs no samples"
            )
        return statistic

    def exact(self, alternative: str, call: _native.Call) -> None:
        """Return nothing: a function has no law that could be summed."""
        del alternative, call

    def null_distribution(self, draws: _native.Draws, call: _native.Call) -> NDArray[np.float64]:
        """Return the statistic of some permutations."""
        if self.address is not None:
            return self._assignments.null_distribution(
                self.address, self._compiled_columns(), self.n_samples, draws, call
            )
        if call.n_threads is not None and call.n_threads > 1:
            return self._in_processes(draws, call.n_threads, call.progress)
        null = np.empty(draws.n)
        for i, replicate in enumerate(_replicates(draws)):
            null[i] = self.statistic(draws, replicate)
            if call.progress is not None:
                call.progress(i + 1)
        return null

    def audits(
        self, n_resamples: int, draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.float64]:
        """Return the p-value of each of some audits with shuffled groups; NaN without a value.

        As those of a native test: an audit is a replicate, compared with those of its own series.
        """
        quiet = _native.Call(call.n_threads)
        pvalues = np.empty(draws.n)
        for i, audit in enumerate(_replicates(draws)):
            one = _native.Draws(1, seed=draws.seed, series=draws.series, first=audit)
            [observed] = self.null_distribution(one, quiet)
            own = _native.Draws(n_resamples, seed=draws.seed, series=draws.series + 1 + audit)
            null = self.null_distribution(own, quiet)
            extreme, _ = _native.count_extreme(null, observed, "two-sided", False, quiet)
            undefined = math.isnan(observed)
            pvalues[i] = math.nan if undefined else monte_carlo_pvalue(extreme, n_resamples)
            if call.progress is not None:
                call.progress(i + 1)
        return pvalues

    def _in_processes(
        self,
        draws: _native.Draws,
        n_processes: int,
        progress: Callable[[int], object] | None,
    ) -> NDArray[np.float64]:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        try:
            state = pickle.dumps(self)
        except Exception as error:
            raise ArgumentError(
                f"n_threads is {n_processes}, but the function of metric {self.name!r} cannot be "
                f"sent to other processes ({error}); accepted: a function defined in a module, or "
                "n_threads=1"
            ) from None
        pool = ProcessPoolExecutor(n_processes, get_context("spawn"), _start_worker, (state,))
        try:
            parts = []
            for part in pool.map(_run_chunk, _chunks(draws)):
                parts.append(part)
                if progress is not None:
                    progress(sum(map(len, parts)))
            return np.concatenate(parts)
        finally:
            pool.shutdown(cancel_futures=True)


def _replicates(draws: _native.Draws) -> range:
    return range(draws.first, draws.first + draws.n)


def _chunks(draws: _native.Draws) -> list[_native.Draws]:
    """Return the draws in parts, each for a process."""
    replicates = _replicates(draws)
    chunks = (replicates[i : i + _CHUNK] for i in range(0, draws.n, _CHUNK))
    return [
        _native.Draws(len(chunk), seed=draws.seed, series=draws.series, first=chunk.start)
        for chunk in chunks
    ]


_worker: FunctionRun | None = None


def _start_worker(state: bytes) -> None:
    global _worker
    _worker = pickle.loads(state)


def _run_chunk(draws: _native.Draws) -> NDArray[np.float64]:
    assert _worker is not None
    return np.array([_worker.statistic(draws, replicate) for replicate in _replicates(draws)])


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionProblem(Problem):
    """Any function of the rows of a group."""

    rows: Rows
    position: NDArray[np.int64]
    conditional: bool
    seed: int

    @classmethod
    def make(
        cls,
        rows: Rows,
        metric: Metric,
        keys: Sequence[GroupKey],
        scaling: str,
        conditional: bool,
        seed: int,
    ) -> FunctionProblem:
        """Take the rows of some groups."""
        sizes = rows.cells.group_sizes()
        return cls(
            metric=metric,
            keys=tuple(keys),
            n_rows=tuple(sizes[key] for key in keys),
            scaling=scaling,
            rows=rows,
            position=positions_of(rows.cells, keys),
            conditional=conditional,
            seed=seed,
        )

    def check(self) -> None:
        """Raise when the function has no value in some group."""
        self.check_measurable(lambda i: f"{self.n_rows[i]} rows and gets NaN")

    @cached_property
    def evaluations(self) -> tuple[_native.Evaluation, ...]:
        """The metric in each group, with the variance of its bootstrap."""
        run = replace(self.test(), n_samples=self.metric.n_samples)
        values, samples = run.values(_native.Draws(1, seed=self.seed), None)
        spread = ((samples - np.array(values)) ** 2).mean(axis=0)
        return tuple(
            _native.Evaluation(value, float(variance))
            for value, variance in zip(values, spread, strict=True)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know besides the numbers."""
        notes = []
        if any(math.isnan(entry.variance) for entry in self.evaluations):
            notes.append(
                f"some bootstrap samples of a group have no value of {self.metric.name}, so there "
                "is no standard error"
            )
        if self.stratified:
            notes.append(
                "the gap of a callable is that of all rows: what strata explain is not taken away"
            )
        return tuple(notes)

    @property
    def drawing_engine(self) -> str:
        """Return the name of the engine that draws replicates."""
        return "callable"

    @property
    def stratified(self) -> bool:
        """Whether rows are exchanged within strata of the user's."""
        return bool(self.rows.cells.strata_names)

    def make_test(self, chosen: tuple[int, ...]) -> FunctionRun:
        """Make the run on the groups at some positions."""
        codes, keep = group_codes(self.rows, self.position, chosen)
        own = None
        if self.conditional and self.metric.conditions_on and self.rows.cluster is None:
            own = self._own_strata()
        units = make_units(self.rows, self.keys, codes, keep, chosen, own)
        label, value = (
            np.ascontiguousarray(self.rows.columns[name][keep], dtype=np.float64)
            for name in self.metric.columns
        )
        return FunctionRun(
            name=self.metric.name,
            function=self.metric.function,
            columns=(label, value),
            weight=None if self.rows.weight is None else self.rows.weight[keep],
            units=units.native(len(chosen)),
            n_samples=self.metric.n_samples if self.scaling == "bootstrap" else 0,
            seed=self.seed,
        )

    def _own_strata(self) -> NDArray[np.uint32]:
        """Return the places of the labels or decisions among the distinct ones."""
        column = "y_true" if self.metric.conditions_on == "label" else "y_pred"
        distinct, place = np.unique(self.rows.columns[column], return_inverse=True)
        if len(distinct) > MAX_DECISION_VALUES:
            raise ArgumentError(
                f"{column} has {len(distinct):,} distinct values; accepted: at most "
                f"{MAX_DECISION_VALUES} when {self.metric.name} conditions on it"
            )
        return place.ravel().astype(np.uint32)

    def _gap(self, pair: Pair) -> Gap:
        """Return the difference of two groups, whatever the strata."""
        first, second = (self.evaluations[i] for i in pair)
        return Gap(first.value - second.value, math.sqrt(first.variance + second.variance))

    def step_down(
        self, pairs: Sequence[Pair], draws: _native.Draws, call: _native.Call
    ) -> NDArray[np.uint64]:
        """Refuse: the pairs of a callable have no joint replicates."""
        raise ArgumentError(
            f"adjust is 'max-t' for {self.metric.name}, a callable; accepted: 'holm', 'bh', 'none'"
        )

    def scaled(
        self, statistic: float, null: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Divide by the standard deviation of all replicates, if it is shared."""
        if self.scaling != "shared":
            return statistic, null
        spread = float(np.nanstd(null, ddof=1)) if len(null) > 1 else math.nan
        return (statistic / spread, null / spread) if spread > 0 else (statistic, null)

    @property
    def gap_method(self) -> str:
        """How the gap of a test gets its interval when nobody chooses: there is no formula."""
        return "bootstrap-se"

    def chosen_gap_method(self, wanted: str) -> str:
        """Return the method behind a word, or raise when there is no such interval."""
        if wanted in ("delta", "studentized"):
            which = ", which has no formula" if wanted == "delta" else ""
            raise ArgumentError(
                f"interval is {wanted!r} for {self.metric.name}, a callable{which}; "
                "accepted: 'auto', 'basic', 'percentile'"
            )
        # A bootstrap within strata of the user's is of all rows, as the gap is.
        return self.gap_method if wanted == "auto" else wanted

    def interval_methods(self, scale: str = "difference") -> tuple[str, ...]:
        """Return how values, gaps and ratios can get intervals; the first is what "auto" means."""
        del scale
        return ("delta", "basic", "percentile")

    def why_not(self, method: str) -> str:
        """Say why there is no interval by a method."""
        if method == "studentized":
            return "a callable, which would need a bootstrap in each sample"
        return super().why_not(method)

    def shown_method(self, method: str) -> str:
        """Return the name of a method: standard errors are those of the bootstrap."""
        return "bootstrap-se" if method == "delta" else method

    def bootstrap(
        self, draws: _native.Draws, call: _native.Call, *, variances: bool = True
    ) -> Bootstrap:
        """Resample the rows of every group; samples have no variances."""
        del variances
        # Samples come one after the other: those before the first are drawn and left out.
        run = replace(self.test(), n_samples=draws.first + draws.n)
        every = _native.Draws(1, seed=draws.seed, series=draws.series)
        samples = run.values(every, None, call.progress)[1][draws.first :]
        return Bootstrap(samples, np.full(samples.shape, math.nan))
