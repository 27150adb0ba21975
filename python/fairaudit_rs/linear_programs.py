"""Linear programs by HiGHS: the one place that imports highspy."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InternalError

_TOLERANCE = 1e-10
#: Columns that cost more than this many times the typical one are held at that.
_CEILING = 1e6
_MOST_SCALES = 60
#: Seconds between two looks for signals.
_TICK = 0.05
#: Coefficients below this share of the largest one of their row are not told to the solver.
_DROPPED = 1e-15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """An optimal vertex: the values, and what a unit of each row's bound is worth."""

    values: Array
    duals: Array


def solve_program(
    cost: Array, matrix: Array, low: Array, high: Array, upper: Array
) -> Solution | None:
    """Minimise ``cost @ x`` with ``low <= matrix @ x <= high`` and ``0 <= x <= upper``.

    Returns None when nothing satisfies the rows. Rows are scaled to 1, presolve is off: unscaled
    programs with coefficients of 1e-6 were "solved" to values three times too large. The solver's
    tolerances are absolute, so costs are scaled to those of the columns that the solution uses;
    columns that cost far more than that wait at a ceiling until they are needed.
    """
    if not len(cost):
        fits = bool(((low <= 0) & (high >= 0)).all())
        return Solution(np.zeros(0), np.zeros(len(low))) if fits else None
    most = float(cost.max())
    unit, n_scales = float(np.median(cost)) or most or 1.0, 0
    while True:
        ceiling = _CEILING * unit
        found = _solve_scaled(np.minimum(cost, ceiling) / unit, matrix, low, high, upper)
        if found is None:
            return None
        used = float(cost[found.values > 0].max(initial=0.0))
        too_dear, too_cheap = used > ceiling, 0 < used < unit / _CEILING**0.5
        if n_scales == _MOST_SCALES or not (too_dear or too_cheap):
            return Solution(found.values, found.duals * unit)
        unit, n_scales = used, n_scales + 1


def _solve_scaled(
    cost: Array, matrix: Array, low: Array, high: Array, upper: Array
) -> Solution | None:
    import highspy

    n_rows, n = matrix.shape
    scale = np.abs(matrix).max(axis=1, initial=0.0)
    scale[scale == 0] = 1.0
    # Masses in units of a typical column's, for the same reason.
    mass = float(np.median(upper[upper > 0])) if (upper > 0).any() else 1.0
    scaled = matrix / scale[:, None]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, n_rows
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.zeros(n), upper / mass
    model.row_lower_, model.row_upper_ = low / scale / mass, high / scale / mass
    present = np.abs(scaled.T) > _DROPPED
    starts = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=starts[1:])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = starts
    model.a_matrix_.index_ = np.nonzero(present)[1].astype(np.int32)
    model.a_matrix_.value_ = scaled.T[present]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("presolve", "off"),
        ("solver", "simplex"),
        ("threads", 1),
        ("small_matrix_value", _DROPPED),
        ("primal_feasibility_tolerance", _TOLERANCE),
        ("dual_feasibility_tolerance", _TOLERANCE),
    ):
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    if status != highspy.HighsModelStatus.kOptimal:
        raise InternalError(f"HiGHS ended with {status.name}; please report it")
    solution, basis = solver.getSolution(), solver.getBasis()
    values = np.array(solution.col_value) * mass
    basic = np.array([entry == highspy.HighsBasisStatus.kBasic for entry in basis.col_status])
    values = _vertex(values, basic, basis.row_status, matrix, low, high, upper, highspy)
    return Solution(values, np.array(solution.row_dual) / scale)


class GrowingProgram:
    """Minimise ``cost @ x`` with ``matrix @ x = bound`` and ``x >= 0``, with columns to come.

    Solved by the dual simplex, again and again from the basis that it has. The tolerance is
    absolute: bounds go in as counts, and costs in units of about 1.
    """

    def __init__(self, bound: Array, tolerance: float = 1e-9) -> None:
        import highspy

        self._highspy = highspy
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("threads", 1),
            ("primal_feasibility_tolerance", tolerance),
            ("dual_feasibility_tolerance", tolerance),
        ):
            self._solver.setOptionValue(name, value)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = 0, len(bound)
        model.row_lower_ = model.row_upper_ = bound
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.zeros(1, dtype=np.int32)
        self._solver.passModel(model)

    def add(self, cost: Array, rows: NDArray[np.int32], values: Array) -> None:
        """Add columns: each has these values in these rows, as many in each."""
        n, each = rows.shape
        starts = np.arange(n, dtype=np.int32) * each
        low, high = np.zeros(n), np.full(n, np.inf)
        rows, values = rows.ravel(), values.ravel()
        self._solver.addCols(n, cost, low, high, len(rows), starts, rows, values)

    def solve(self) -> Solution:
        """Return the best values of all columns, and what a unit of each bound is worth."""
        # On a thread of its own: this one hears Ctrl-C, and a solve that is left ends by itself.
        running = threading.Thread(target=self._solver.run, daemon=True)
        running.start()
        while running.is_alive():
            running.join(_TICK)
        status = self._solver.getModelStatus()
        if status != self._highspy.HighsModelStatus.kOptimal:
            raise InternalError(f"HiGHS ended with {status.name}; please report it")
        found = self._solver.getSolution()
        return Solution(np.array(found.col_value), np.array(found.row_dual))


def _vertex(
    values: Array,
    basic: NDArray[np.bool_],
    row_status: Any,
    matrix: Array,
    low: Array,
    high: Array,
    upper: Array,
    highspy: Any,
) -> Array:
    """Return the vertex of a basis without the solver's tolerance."""
    status = highspy.HighsBasisStatus
    bounds = {status.kLower: low, status.kUpper: high}
    rows = np.array([i for i, entry in enumerate(row_status) if entry in bounds], dtype=np.int64)
    columns = np.flatnonzero(basic).astype(np.int64)
    exact = np.where(values > upper / 2, upper, 0.0)
    exact[columns] = 0.0
    if not len(columns) or len(rows) != len(columns):
        return values
    target: NDArray[Any] = np.array([bounds[row_status[i]][i] for i in rows])
    square: NDArray[Any] = matrix[rows][:, columns]
    try:
        exact[columns] = np.linalg.solve(square, target - matrix[rows] @ exact)
    except np.linalg.LinAlgError:
        return values
    inside = (exact >= -1e-9 * upper) & (exact <= upper * (1 + 1e-9))
    return np.clip(exact, 0.0, upper) if inside.all() else values
