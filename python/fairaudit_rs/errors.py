"""The errors of the package: each is ours and the built-in's at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    """Base of every error that this package raises on purpose."""


class ArgumentError(FairAuditError, ValueError):
    """An argument has a value that is not accepted."""


class ArgumentTypeError(FairAuditError, TypeError):
    """An argument has a type that is not accepted, or two arguments exclude each other."""


class UnknownMetricError(ArgumentError):
    """No metric of the registry has this name."""


class FormulaError(ArgumentError):
    """The formula of a metric cannot be read, or is not a metric."""


class FunctionError(FairAuditError, RuntimeError):
    """The function of a metric failed, or gave something else than a number."""


class DataError(FairAuditError, ValueError):
    """The data cannot be audited as they are."""


class ColumnError(DataError, KeyError):
    """A column does not exist."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes.
        return str(self.args[0])


class FileError(FairAuditError, OSError):
    """A file cannot be written, or a policy cannot be read."""


class NotMeasurableError(DataError):
    """A metric has no value in a group of the data.

    ``reasons`` holds why, by group, where groups of the data are in the way.
    """

    def __init__(self, message: str, reasons: Mapping[Any, str] | None = None) -> None:
        super().__init__(message)
        self.reasons = dict(reasons or {})


class AuditFailedError(FairAuditError, AssertionError):
    """An audit did not end in the verdict that was asked for; ``verdict`` is the one it has."""

    def __init__(self, message: str, verdict: str = "fail") -> None:
        super().__init__(message)
        self.verdict = verdict


class NotStoredError(FairAuditError, AttributeError):
    """A result that came from a dict is asked for what its dict does not hold."""


class TooManyValuesError(DataError):
    """A column has more distinct values than its role allows."""

    def __init__(self, message: str, details: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.column, self.limit = details


class CancelledError(FairAuditError):
    """The computation was stopped from outside."""


class InternalError(FairAuditError, RuntimeError):
    """A bug of this package; please report it."""
