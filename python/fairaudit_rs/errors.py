"""The errors of the package. All but CancelledError are also built-in errors such as ValueError.

A message follows one of two templates. A value that is not accepted: ``n_resamples is 0; accepted:
1 to 100,000,000``. Everything else: what is wrong, then what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AuditFailedError",
    "CancelledError",
    "ColumnError",
    "DataError",
    "FairAuditError",
    "FileError",
    "FormulaError",
    "FunctionError",
    "InternalError",
    "NotMeasurableError",
    "NotStoredError",
    "TooManyValuesError",
    "UnknownMetricError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class FairAuditError(Exception):
    """Base of every error that this package raises on purpose.

    Attributes
    ----------
    code : str
        What is wrong, as a short name that stays the same when the message is reworded.
    argument : str or None
        The argument that the message is about.
    mentions : tuple of str
        Other arguments that the message names, so that the command line can name its options.
    needed_by : str or None
        The metric or other part that needs a missing argument.
    advice : str
        The end of the message that speaks to users of Python; the command line has its own.
    """

    code = "error"

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        mentions: Sequence[str] = (),
        code: str | None = None,
        needed_by: str | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(message + advice)
        self.argument = argument
        self.mentions = tuple(mentions)
        self.needed_by = needed_by
        self.advice = advice
        if code is not None:
            self.code = code

    def with_message(self, message: str) -> Self:
        """Return a copy of this error with another message."""
        changed = copy(self)
        changed.args = (message,)
        return changed


class ArgumentError(FairAuditError, ValueError):
    """An argument has a value that is not accepted."""

    code = "invalid-value"


class ArgumentTypeError(FairAuditError, TypeError):
    """An argument has a type that is not accepted, or two arguments exclude each other."""

    code = "invalid-type"


class UnknownMetricError(ArgumentError):
    """No metric of the registry has this name."""

    code = "unknown-metric"


class FormulaError(ArgumentError):
    """The formula of a metric cannot be read, or is not a metric."""

    code = "invalid-formula"


class FunctionError(FairAuditError, RuntimeError):
    """A function passed by the user failed, or returned something that is not accepted."""

    code = "function-failed"


class DataError(FairAuditError, ValueError):
    """The data cannot be audited in their present form."""

    code = "invalid-data"


class ColumnError(DataError, KeyError):
    """A column does not exist.

    ``column`` is its name, and ``existing`` has the names of the columns that exist.
    """

    code = "unknown-column"

    def __init__(
        self, message: str = "", column: str = "", existing: Sequence[str] = (), **keywords: Any
    ) -> None:
        super().__init__(message, **keywords)
        self.column, self.existing = column, tuple(existing)

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0])


class FileError(FairAuditError, OSError):
    """A file cannot be written, or a policy cannot be read."""

    code = "file"


class NotMeasurableError(DataError):
    """A metric has no value in a group of the data.

    ``reasons`` maps each such group to the reason; it is empty if no single group is the cause.
    """

    code = "not-measurable"

    def __init__(
        self, message: str = "", reasons: Mapping[Any, str] | None = None, **keywords: Any
    ) -> None:
        super().__init__(message, **keywords)
        self.reasons = dict(reasons or {})


class AuditFailedError(FairAuditError, AssertionError):
    """An audit did not reach the required verdict; ``verdict`` is the one that it reached."""

    code = "audit-failed"

    def __init__(self, message: str = "", verdict: str = "fail") -> None:
        super().__init__(message)
        self.verdict = verdict


class NotStoredError(FairAuditError, AttributeError):
    """A result that was read from a dict lacks a part that dicts do not hold."""

    code = "not-stored"


class TooManyValuesError(DataError):
    """A column has more distinct values than its role allows."""

    code = "too-many-values"

    def __init__(
        self, message: str = "", details: tuple[int, int] = (0, 0), **keywords: Any
    ) -> None:
        super().__init__(message, **keywords)
        self.column, self.limit = details


class CancelledError(FairAuditError):
    """The computation was stopped from outside."""

    code = "cancelled"


class InternalError(FairAuditError, RuntimeError):
    """A bug of this package; please report it."""

    code = "internal"
