"""Evaluates a user-defined function on the observed groups and on their replicates.

The native module makes the replicates; here the function is evaluated on them, in one process or
several. The native module calls compiled functions itself, except within the user's strata.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..errors import ArgumentError, FairAuditError, FunctionError, NotMeasurableError
from ..inference.pvalues import monte_carlo_pvalue
from ..metrics.compiled_functions import address_of

#: Replicates per task of a worker process.
_CHUNK = 16
#: Maximum number of worker processes per core.
_PROCESSES_PER_CORE = 2


@dataclass(frozen=True)
class FunctionStratum:
    """The function in one stratum: code of its first group, values by group, and weight."""

    first: int
    values: list[float]
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionRun(EqualByValue):
    """A function with the rows of some groups; can be pickled for worker processes."""

    name: str
    function: Any
    columns: tuple[NDArray[np.float64], NDArray[np.float64]]
    weight: NDArray[np.float64] | None
    units: _native.Units
    #: Bootstrap samples per group that studentize a test; 0: not studentized.
    n_samples: int
    #: Seed of the bootstrap of the observed rows.
    seed: int

    #: Null distributions of functions are not centred.
    needs_centring = False

    @cached_property
    def _assignments(self) -> _native.Assignments:
        return _native.Assignments(self.units, _native.Call())

    @property
    def address(self) -> int | None:
        """The address of a compiled function; None for Python functions."""
        return address_of(self.function)

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
                f"{type(error).__name__}: {error}",
                argument="metric",
            ) from error
        if math.isinf(answer):
            raise FunctionError(
                f"the function of metric {self.name!r} returned {answer} on {len(label):,} rows. "
                "Return a finite number, or NaN if there is no value.",
                argument="metric",
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
        """Return the value of every group, and the values of its bootstrap samples.

        Within the user's strata these are weighted means over strata.
        """
        call = _native.Call()
        group = self._assignments.groups(draws, replicate, call)
        if self.stratum is not None:
            return self._over_strata(self.strata_of(group), group, draws, replicate)
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
                    # Progress counts replicates, which have one sample per group.
                    progress((g * self.n_samples + b + 1) // n_groups)
        return values, samples

    def double_bootstrap(
        self, draws: _native.Draws, progress: Callable[[int], object] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bootstrap values of every group, and the variance of each by a nested bootstrap.

        For unclustered, unstratified rows only.
        """
        call, n_groups = _native.Call(), self.units.n_groups
        every = _native.Draws(1, seed=draws.seed, series=draws.series)
        group = self._assignments.groups(every, None, call)
        values, variances = (np.empty((draws.n, n_groups)) for _ in range(2))
        last = draws.first + draws.n
        for g in range(n_groups):
            drawn = self._assignments.samples(group, g, last, every, None, call)
            parts = np.split(drawn.rows, np.cumsum(drawn.sizes)[:-1])
            alone = np.zeros(int(np.count_nonzero(group == g)), dtype=group.dtype)
            # At least two groups are required: the second one is empty.
            within = _native.Assignments(_native.Units(alone.astype(np.uint16), 2), call)
            for b in range(draws.first, last):
                # Each sample has its own random stream, so that groups are independent.
                series = draws.series + 1 + b * n_groups + g
                own = _native.Draws(1, seed=draws.seed, series=series)
                again = within.samples(alone, 0, self.n_samples, own, None, call)
                inner = np.split(again.rows, np.cumsum(again.sizes)[:-1])[: self.n_samples]
                value = self.call(parts[b])
                spread = [(self.call(parts[b][rows]) - value) ** 2 for rows in inner]
                values[b - draws.first, g] = value
                variances[b - draws.first, g] = np.mean(spread)
                if progress is not None:
                    progress((g * draws.n + b - draws.first + 1) // n_groups)
        return values, variances

    @cached_property
    def stratum(self) -> NDArray[np.uint32] | None:
        """The user's stratum of each row; None if there is only one."""
        of_unit, of_row = self.units.stratum, self.units.of_row
        if of_unit is None or not of_unit.any():
            return None
        return of_unit if of_row is None else of_unit[of_row]

    def strata_of(self, group: NDArray[Any]) -> list[FunctionStratum]:
        """Return the strata in which every group has a value and at least two units."""
        assert self.stratum is not None
        n_groups = self.units.n_groups
        cell = self.stratum.astype(np.int64) * n_groups + group
        order = np.argsort(cell, kind="stable")
        ends = np.searchsorted(cell[order], np.arange(cell.max() + 2))
        strata = []
        for first in range(0, len(ends) - n_groups, n_groups):
            rows = [order[ends[i] : ends[i + 1]] for i in range(first, first + n_groups)]
            units = [self._weights_of_units(part) for part in rows]
            if min(map(len, units)) < 2:
                continue
            values = [self.call(part) for part in rows]
            if not any(map(math.isnan, values)):
                # D = (sum w)^2 / sum w^2; of two groups this is D_1 D_2 / (D_1 + D_2).
                weight = 1 / sum(float((w**2).sum() / w.sum() ** 2) for w in units)
                strata.append(FunctionStratum(first, values, weight))
        return strata

    def _weights_of_units(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the positive weights of the rows, or of the clusters."""
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        if self.units.of_row is not None:
            clusters = np.unique(self.units.of_row[rows], return_inverse=True)[1].ravel()
            weight = np.bincount(clusters, weight)
        return weight[weight > 0]

    def _over_strata(
        self,
        strata: list[FunctionStratum],
        group: NDArray[Any],
        draws: _native.Draws,
        replicate: int | None,
    ) -> tuple[list[float], NDArray[np.float64]]:
        assert self.stratum is not None
        n_groups, call = self.units.n_groups, _native.Call()
        samples = np.zeros((self.n_samples, n_groups))
        if not strata:
            return [math.nan] * n_groups, samples
        weights = np.array([stratum.weight for stratum in strata])
        weights = weights / weights.sum()
        cell = (self.stratum * np.uint32(n_groups) + group).astype(np.uint32)
        for share, stratum in zip(weights, strata, strict=True):
            for g in range(n_groups if self.n_samples else 0):
                code = stratum.first + g
                drawn = self._assignments.samples(
                    cell, code, self.n_samples, draws, replicate, call
                )
                parts = np.split(drawn.rows, np.cumsum(drawn.sizes)[:-1])
                for b, sample in enumerate(parts[: self.n_samples]):
                    samples[b, g] += share * self.call(sample)
        values = weights @ np.array([stratum.values for stratum in strata])
        return values.tolist(), samples

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
                "have no value in a group, which has too few rows of some kind. Name other groups "
                "with groups=, or pass studentize='shared', which needs no samples.",
                argument="metric",
                mentions=("groups", "studentize"),
            )
        return statistic

    def exact(self, alternative: str, call: _native.Call) -> None:
        """Return None: a function has no exact permutation distribution."""
        del alternative, call

    def null_distribution(self, draws: _native.Draws, call: _native.Call) -> NDArray[np.float64]:
        """Return the statistic of each permutation."""
        if self.address is not None and self.stratum is None:
            return self._assignments.null_distribution(
                self.address, self._compiled_columns(), self.n_samples, draws, call
            )
        if self.address is None and call.n_threads is not None and call.n_threads > 1:
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
        """Return the p-value of each simulated audit with shuffled groups; NaN without a value.

        As in native tests, an audit is a replicate, compared with replicates of its own stream.
        """
        quiet = _native.Call(call.n_threads)
        pvalues = np.empty(draws.n)
        for i, audit in enumerate(_replicates(draws)):
            single = _native.Draws(1, seed=draws.seed, series=draws.series, first=audit)
            [observed] = self.null_distribution(single, quiet)
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
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        try:
            state = pickle.dumps(self)
        except Exception as error:
            raise ArgumentError(
                f"n_threads is {n_processes}, but the function of metric {self.name!r} cannot be "
                f"sent to other processes ({error}). Define it in a module, or pass n_threads=1.",
                argument="n_threads",
            ) from None
        chunks = _chunks(draws)
        n_processes = min(n_processes, len(chunks), _PROCESSES_PER_CORE * (os.cpu_count() or 1))
        pool = ProcessPoolExecutor(n_processes, get_context("spawn"), _start_worker, (state,))
        try:
            parts = []
            for part in pool.map(_run_chunk, chunks):
                parts.append(part)
                if progress is not None:
                    progress(sum(map(len, parts)))
            return np.concatenate(parts)
        except BrokenProcessPool as error:
            raise FunctionError(
                f"the function of metric {self.name!r} ended the process that it ran in, or cannot "
                f"be loaded there ({error}). Pass n_threads=1 to run it in this process.",
                argument="metric",
                mentions=("n_threads",),
            ) from error
        except BaseException:
            # On an error or Ctrl-C, stop the other workers immediately.
            for process in (getattr(pool, "_processes", None) or {}).values():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _replicates(draws: _native.Draws) -> range:
    return range(draws.first, draws.first + draws.n)


def _chunks(draws: _native.Draws) -> list[_native.Draws]:
    """Split the draws into tasks for worker processes."""
    replicates = _replicates(draws)
    chunks = (replicates[i : i + _CHUNK] for i in range(0, draws.n, _CHUNK))
    return [
        _native.Draws(len(chunk), seed=draws.seed, series=draws.series, first=chunk.start)
        for chunk in chunks
    ]


_worker: FunctionRun | None = None


def _start_worker(state: bytes) -> None:
    global _worker
    # The main process handles Ctrl-C and terminates its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker = pickle.loads(state)


def _run_chunk(draws: _native.Draws) -> NDArray[np.float64]:
    assert _worker is not None
    return np.array([_worker.statistic(draws, replicate) for replicate in _replicates(draws)])
