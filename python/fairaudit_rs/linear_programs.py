"""Solve linear programs with HiGHS; the only module that imports highspy."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InternalError

_TOLERANCE = 1e-10
#: Costs are capped at this many times the typical cost.
_CEILING = 1e6
_MOST_SCALES = 60
#: Seconds between two checks for signals.
_TICK = 0.05
#: Coefficients below this share of the largest one in their row are dropped.
_DROPPED = 1e-15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """An optimal vertex: the values, and the dual price of each row's bound."""

    values: Array
    duals: Array


def solve_program(
    cost: Array, matrix: Array, low: Array, high: Array, upper: Array
) -> Solution | None:
    """Minimise ``cost @ x`` with ``low <= matrix @ x <= high`` and ``0 <= x <= upper``.

    Returns None when the constraints cannot be satisfied. Rows are scaled to 1 and presolve is off:
    unscaled programs with coefficients of 1e-6 were "solved" to values three times too large. The
    solver's tolerances are absolute, so costs are scaled to those of the columns that the solution
    uses; far higher costs are capped until the solution needs these columns.
    """
    if not len(cost):
        fits = bool(((low <= 0) & (high >= 0)).all())
        return Solution(np.zeros(0), np.zeros(len(low))) if fits else None
    most = float(cost.max())
    unit, n_scales = float(np.median(cost)) or most or 1.0, 0
    while True:
        ceiling = _CEILING * unit
        solution = _solve_scaled(np.minimum(cost, ceiling) / unit, matrix, low, high, upper)
        if solution is None:
            return None
        used = float(cost[solution.values > 0].max(initial=0.0))
        too_dear, too_cheap = used > ceiling, 0 < used < unit / _CEILING**0.5
        if n_scales == _MOST_SCALES or not (too_dear or too_cheap):
            return Solution(solution.values, solution.duals * unit)
        unit, n_scales = used, n_scales + 1


def _solve_scaled(
    cost: Array, matrix: Array, low: Array, high: Array, upper: Array
) -> Solution | None:
    import highspy

    n_rows, n = matrix.shape
    scale = np.abs(matrix).max(axis=1, initial=0.0)
    scale[scale == 0] = 1.0
    # Upper bounds are scaled to the typical one for the same reason.
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
    """Minimise ``cost @ x`` with ``matrix @ x = bound`` and ``x >= 0`` as columns are added.

    Each call of `solve` starts the dual simplex from the last basis. The tolerance is absolute, so
    pass bounds as counts and costs in units of about 1.
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
        """Add columns, each with the same number of entries: ``values`` in the given ``rows``."""
        n, each = rows.shape
        starts = np.arange(n, dtype=np.int32) * each
        low, high = np.zeros(n), np.full(n, np.inf)
        rows, values = rows.ravel(), values.ravel()
        self._solver.addCols(n, cost, low, high, len(rows), starts, rows, values)

    def solve(self) -> Solution:
        """Return the optimal values of all columns, and the dual price of each bound."""
        # In its own thread, so that Ctrl-C works; an abandoned solve runs on to its end.
        running = threading.Thread(target=self._solver.run, daemon=True)
        running.start()
        while running.is_alive():
            running.join(_TICK)
        status = self._solver.getModelStatus()
        if status != self._highspy.HighsModelStatus.kOptimal:
            raise InternalError(f"HiGHS ended with {status.name}; please report it")
        solution = self._solver.getSolution()
        return Solution(np.array(solution.col_value), np.array(solution.row_dual))


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
    """Solve for the vertex of a basis exactly, without the solver's tolerance."""
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
