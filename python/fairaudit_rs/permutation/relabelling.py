"""The same data with groups drawn anew: equal ones, or with a gap."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ArgumentError
from ..metrics.metric import rank_influence
from .callable import FunctionProblem
from .correlation import CorrelationProblem
from .counts import CountProblem
from .problem import Problem
from .rows import RowProblem
from .units import group_codes, make_units

#: Series of the shuffles: none that a test uses.
_SHUFFLE_SERIES = 2**63


def relabelling_of(problem: Problem, generator: np.random.Generator, seed: int) -> Shuffled:
    """Return what gives the rows of a problem other groups."""
    if isinstance(problem, CorrelationProblem):
        return _ShuffledAttribute(problem, generator)
    if isinstance(problem, CountProblem):
        tiltable = problem.metric.family in ("counts", "ranks")
        return (_TiltedCounts if tiltable else _ShuffledCounts)(problem, generator)
    if isinstance(problem, FunctionProblem):
        return _ShuffledRows(problem, generator, seed)
    assert isinstance(problem, RowProblem)
    return _TiltedRows(problem, generator, seed)


class Shuffled:
    """Makes problems with equal groups."""

    def relabelled(self, audit: int, with_gap: bool) -> Problem:
        """Return the problem of an audit: with equal groups, or with the gap that was aimed at."""
        assert not with_gap
        return self.shuffled(audit)

    def shuffled(self, audit: int) -> Problem:
        """Return the problem with groups shuffled within strata."""
        raise NotImplementedError


class Tilted(Shuffled):
    """Makes problems with a gap as well."""

    def relabelled(self, audit: int, with_gap: bool) -> Problem:
        """Return the problem of an audit: with equal groups, or with the gap that was aimed at."""
        return self.tilted() if with_gap else self.shuffled(audit)

    #: How readily a unit goes to the first group.
    probability: NDArray[np.float64]

    def influence(self) -> NDArray[np.float64]:
        """Return how much a unit moves the metric, in standard deviations."""
        raise NotImplementedError

    def expected_gap(self, probability: NDArray[np.float64]) -> float:
        """Return the gap of the first group when units go to it with these probabilities."""
        raise NotImplementedError

    def base(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the number of rows of each unit, its stratum, the first group's share by it."""
        raise NotImplementedError

    def tilted(self) -> Problem:
        """Return a problem with the gap that `aim` set."""
        raise NotImplementedError

    def aim(self, gap: float) -> None:
        """Find the tilt with an expected gap."""
        influence = self.influence()
        rows, stratum, shares = self.base()

        def at(tilt: float) -> NDArray[np.float64]:
            return _tilt(tilt * influence, rows, stratum, shares)

        # What the metric's own strata make of the groups is there without a gap.
        explained = self.expected_gap(at(0.0))

        def reached(tilt: float) -> float:
            return (self.expected_gap(at(tilt)) - explained) * math.copysign(1.0, gap)

        high = math.copysign(0.1, gap)
        while reached(high) < abs(gap):
            high *= 2
            if abs(high) > 50:
                largest = math.copysign(reached(high), gap)
                raise ArgumentError(
                    f"gaps holds {gap:g}; these data reach {largest:.3g} at most when the groups "
                    "are drawn anew"
                )
        low = 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            if reached(middle) < abs(gap):
                low = middle
            else:
                high = middle
        self.probability = at(high)


def _tilt(
    push: NDArray[np.float64],
    rows: NDArray[np.float64],
    stratum: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return logistic(push + offset), the offset of each stratum keeping its expected share."""
    low, high = np.full(len(shares), -700.0), np.full(len(shares), 700.0)
    totals = np.maximum(np.bincount(stratum, rows, len(shares)), 1e-300)
    probability = np.zeros(len(push))
    for _ in range(80):
        middle = 0.5 * (low + high)
        probability = 1 / (1 + np.exp(-np.clip(push + middle[stratum], -700, 700)))
        too_many = np.bincount(stratum, rows * probability, len(shares)) / totals > shares
        high, low = np.where(too_many, middle, high), np.where(too_many, low, middle)
    return probability


class _ShuffledAttribute(Shuffled):
    def __init__(self, problem: CorrelationProblem, generator: np.random.Generator) -> None:
        self.problem, self.generator = problem, generator

    def shuffled(self, audit: int) -> Problem:
        del audit
        rows = self.problem.rows
        attribute = rows.attribute.copy()
        stratum = rows.stratum
        if stratum is None:
            self.generator.shuffle(attribute)
        else:
            for code in np.unique(stratum):
                inside = stratum == code
                attribute[inside] = self.generator.permutation(attribute[inside])
        made = replace(rows, attribute=attribute)
        return CorrelationProblem.make(made, self.problem.metric, self.problem.scaling)


class _ShuffledCounts(Shuffled):
    def __init__(self, problem: CountProblem, generator: np.random.Generator) -> None:
        self.problem, self.generator = problem, generator
        n_classes = problem.counts.shape[2]
        if problem.conditioning is None:
            parts = np.zeros(n_classes, dtype=np.int64)
        elif problem.conditioning == "denominator":
            assert problem.count_metric.fraction is not None
            parts = (np.array(problem.count_metric.fraction[1]) > 0).astype(np.int64)
        else:
            parts = np.array(problem.conditioning, dtype=np.int64)
        #: Classes whose rows exchange their groups.
        self.parts = [np.flatnonzero(parts == part) for part in np.unique(parts)]

    def make(self, counts: NDArray[np.uint64]) -> Problem:
        """Return the problem of other counts."""
        problem = self.problem
        n_rows = counts.sum(axis=(0, 2)).astype(int).tolist()
        return replace(problem, n_rows=n_rows, counts=counts)

    def shuffled(self, audit: int) -> Problem:
        del audit
        counts = self.problem.counts.astype(np.int64)
        made = np.zeros_like(counts)
        for stratum, observed in enumerate(counts):
            for classes in self.parts:
                part = observed[:, classes]
                sizes, left = part.sum(axis=1), part.sum(axis=0)
                for group, size in enumerate(sizes[:-1]):
                    drawn = self.draw(left, int(size))
                    made[stratum, group, classes] = drawn
                    left = left - drawn
                made[stratum, -1, classes] = left
        return self.make(made.astype(np.uint64))

    def draw(self, left: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Draw rows without replacement."""
        if left.sum() < 10**9:
            drawn: NDArray[np.int64] = self.generator.multivariate_hypergeometric(
                left, size, method="marginals"
            )
            return drawn
        # NumPy stops here; our own sampler does not.
        drawn = np.zeros_like(left)
        population, needed, call = int(left.sum()), size, _native.Call()
        for k, marked in enumerate(left.tolist()):
            draws = _native.Draws(1, seed=int(self.generator.integers(2**63)))
            drawn[k] = _native.hypergeometric(population, marked, needed, draws, call)[0]
            population, needed = population - marked, needed - int(drawn[k])
        return drawn


class _TiltedCounts(_ShuffledCounts, Tilted):
    def influence(self) -> NDArray[np.float64]:
        problem = self.problem
        totals = problem.counts.sum(axis=(0, 1)).astype(float)
        if problem.metric.family == "ranks":
            psi = rank_influence(np.arange(len(totals)) // 2, np.arange(len(totals)) % 2, totals)
        else:
            gradient = problem.count_metric.gradient(totals.tolist())
            assert gradient is not None
            psi = np.nan_to_num(np.array(gradient))
        spread = math.sqrt(float((psi**2 * totals).sum() / totals.sum()))
        scaled: NDArray[np.float64] = np.tile(psi / (spread or 1.0), len(problem.counts))
        return scaled

    def base(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        counts = self.problem.counts.astype(float)
        rows = counts.sum(axis=1)
        part_of_class = np.zeros(rows.shape[1], dtype=np.int64)
        for part, classes in enumerate(self.parts):
            part_of_class[classes] = part
        n_parts = len(self.parts)
        stratum = (np.arange(len(rows))[:, None] * n_parts + part_of_class).ravel()
        first = np.bincount(stratum, counts[:, 0].ravel(), len(rows) * n_parts)
        totals = np.bincount(stratum, rows.ravel(), len(rows) * n_parts)
        return rows.ravel(), stratum, first / np.maximum(totals, 1)

    def expected_gap(self, probability: NDArray[np.float64]) -> float:
        rows = self.problem.counts.sum(axis=1).astype(float)
        first = (rows * probability.reshape(rows.shape)).sum(axis=0)
        rest = rows.sum(axis=0) - first
        values = (self.problem.count_metric.evaluate(part.tolist())[0] for part in (first, rest))
        return float(next(values) - next(values))

    def tilted(self) -> Problem:
        counts = self.problem.counts.astype(np.int64)
        made = np.zeros_like(counts)
        rows = counts.sum(axis=1)
        first = self.generator.binomial(rows, self.probability.reshape(rows.shape))
        made[:, 0] = first
        sizes = counts[:, 1:].sum(axis=2)
        for stratum, left in enumerate(rows - first):
            # The other groups share what is left as they shared it.
            shares = np.cumsum(sizes[stratum]) / max(sizes[stratum].sum(), 1)
            ends = np.round(shares * left.sum()).astype(np.int64)
            for group, size in enumerate(np.diff(ends, prepend=0)[:-1]):
                drawn = self.draw(left, int(size))
                made[stratum, group + 1] = drawn
                left = left - drawn
            made[stratum, -1] = left
        return self.make(made.astype(np.uint64))


class _ShuffledRows(Shuffled):
    def __init__(
        self, problem: RowProblem | FunctionProblem, generator: np.random.Generator, seed: int
    ) -> None:
        if isinstance(problem, RowProblem):
            problem = _in_order(problem)
        self.problem, self.generator = problem, generator
        every = range(len(problem.keys))
        codes, self.keep = group_codes(problem.rows, problem.position, every)
        own = problem.own_strata_codes() if isinstance(problem, RowProblem) else None
        self.units = make_units(problem.rows, problem.keys, codes, self.keep, every, own)
        self.shuffle = _native.FunctionTest(
            self.units.group.astype(np.uint32),
            len(problem.keys),
            "none",
            _native.Call(),
            self.units.stratum,
            self.units.of_row,
        )
        self.draws = _native.Draws(1, seed=seed, series=_SHUFFLE_SERIES)
        place = {key: i for i, key in enumerate(problem.rows.cells.groups)}
        self.group_of_code = np.array([place[key] for key in problem.keys], dtype=np.uint16)

    def make(self, codes: NDArray[Any]) -> Problem:
        """Return the problem with other groups of the kept rows."""
        problem = self.problem
        group = problem.rows.group.copy()
        group[self.keep] = self.group_of_code[codes]
        rows = replace(problem.rows, group=group)
        n_rows = np.bincount(codes, minlength=len(problem.keys)).tolist()
        made = replace(problem, rows=rows, n_rows=n_rows)
        made.notes.clear()
        return made

    def shuffled(self, audit: int) -> Problem:
        return self.make(self.shuffle.assignment(audit, self.draws, _native.Call()))


def _in_order(problem: RowProblem) -> RowProblem:
    """Return the problem with its rows in an order that does not depend on how they came."""
    rows = problem.rows
    columns = [rows.group, *rows.columns.values()]
    columns += [part for part in (rows.weight, rows.stratum, rows.cluster) if part is not None]
    order = np.lexsort(columns)

    def sort(column: NDArray[Any] | None) -> Any:
        return None if column is None else column[order]

    made = replace(
        problem,
        rows=replace(
            rows,
            group=rows.group[order],
            stratum=sort(rows.stratum),
            columns={name: column[order] for name, column in rows.columns.items()},
            cluster=sort(rows.cluster),
            weight=sort(rows.weight),
        ),
    )
    made.notes[:] = problem.notes
    return made


class _TiltedRows(_ShuffledRows, Tilted):
    def _values(self) -> dict[str, NDArray[Any]]:
        assert isinstance(self.problem, RowProblem)
        return {name: value[self.keep] for name, value in self.problem.row_values.items()}

    def influence(self) -> NDArray[np.float64]:
        rows = self.problem.rows
        columns = {name: column[self.keep] for name, column in rows.columns.items()}
        weight = None if rows.weight is None else rows.weight[self.keep]
        psi = self.problem.metric.influence(columns, weight)
        summed = self.units.sums(psi if weight is None else weight * psi)
        return summed / (float(summed.std()) or 1.0)

    def base(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        group, stratum = self.units.group, self.units.stratum
        codes = np.zeros(len(group), np.int64) if stratum is None else stratum.astype(np.int64)
        n = int(codes.max()) + 1
        totals = np.bincount(codes, minlength=n)
        first = np.bincount(codes, group == 0, n)
        return np.ones(len(group)), codes, first / np.maximum(totals, 1)

    def expected_gap(self, probability: NDArray[np.float64]) -> float:
        values = self._values()
        share = probability if self.units.of_row is None else probability[self.units.of_row]
        if "score" in values:
            weight = values.get("weight", np.ones(len(share)))
            both = [np.concatenate([values[name]] * 2) for name in ("score", "label")]
            group = np.repeat(np.array([0, 1], dtype=np.uint16), len(share))
            weights = np.concatenate([weight * share, weight * (1 - share)])
            test = _native.RowTest.auc(
                both[0], both[1], group, 2, "unpooled", _native.Call(), weight=weights
            )
            first, second = (value for value, *_ in test.evaluations())
            return float(first - second)
        parts = []
        for part in (share, 1 - share):
            if "counts" in values:
                totals = (values["counts"] * part[:, None]).sum(axis=0)
                parts.append(self.problem.metric.native.evaluate(totals.tolist())[0])
            else:
                below = values.get("denominator", np.ones(len(part)))
                parts.append(float(values["numerator"] @ part) / float(below @ part))
        return float(parts[0] - parts[1])

    def tilted(self) -> Problem:
        first = self.generator.random(len(self.probability)) < self.probability
        sizes = np.bincount(self.units.group, minlength=len(self.problem.keys))[1:]
        rest = self.generator.permutation(
            np.repeat(
                np.arange(1, len(sizes) + 1),
                np.diff(
                    np.round(np.cumsum(sizes) / sizes.sum() * (~first).sum()), prepend=0
                ).astype(np.int64),
            )
        )
        codes = np.zeros(len(first), dtype=np.int64)
        codes[~first] = rest
        return self.make(codes if self.units.of_row is None else codes[self.units.of_row])
