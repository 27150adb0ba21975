"""Recognises numba cfuncs that users pass as functions of rows, and finds their machine code."""

from __future__ import annotations

import sys

from ..errors import ArgumentTypeError

#: In numba's notation; the arguments are y_true, the value, the weight and the number of rows.
SIGNATURE = "(float64*, float64*, float64*, int64) -> float64"


def address_of(function: object) -> int | None:
    """Return the address of the machine code of a numba ``cfunc``; None for any other object.

    The address is called as code, so the check is by type: a mock, a ctypes object or a row of a
    customer table may have an ``address`` too.
    """
    # A cfunc exists only after numba was imported.
    kind = getattr(sys.modules.get("numba.core.ccallback"), "CFunc", None)
    if kind is None or not isinstance(function, kind):
        return None
    return int(function.address)


def check_compiled(argument: str, function: object) -> None:
    """Raise if a compiled function does not have the signature that it is called with."""
    signature = getattr(function, "_sig", None)
    if address_of(function) is not None and str(signature) != SIGNATURE:
        raise ArgumentTypeError(
            f"{argument} is a cfunc of {signature}; accepted: {SIGNATURE} (y_true, value, weight, "
            "number of rows)",
            argument=argument,
            mentions=("y_true",),
        )
