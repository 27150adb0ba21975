"""Compiled functions of rows: which objects are one, and where its machine code is."""

from __future__ import annotations

import sys

from ..errors import ArgumentTypeError

#: Of y_true, the value, the weight and the number of rows, as numba writes it.
SIGNATURE = "(float64*, float64*, float64*, int64) -> float64"


def address_of(function: object) -> int | None:
    """Return where the machine code of a numba ``cfunc`` is; None for everything else.

    By type: what merely has an ``address`` (a mock, a ctypes object, a row of a customer table)
    would be jumped to.
    """
    # Nobody has a cfunc who has not loaded numba.
    kind = getattr(sys.modules.get("numba.core.ccallback"), "CFunc", None)
    if kind is None or not isinstance(function, kind):
        return None
    return int(function.address)


def check_compiled(argument: str, function: object) -> None:
    """Raise when a compiled function has other arguments than it will be called with."""
    signature = getattr(function, "_sig", None)
    if address_of(function) is not None and str(signature) != SIGNATURE:
        raise ArgumentTypeError(
            f"{argument} is a cfunc of {signature}; accepted: {SIGNATURE} (y_true, value, weight, "
            "number of rows)",
            argument=argument,
            mentions=("y_true",),
        )
