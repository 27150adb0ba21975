"""Which errors of one question or lens are its reason, and stop nobody else."""

from __future__ import annotations

from ..errors import ArgumentError, CancelledError, FairAuditError, InternalError


class BindingRefusedError(ArgumentError):
    """A policy that binds by what cannot decide: it ends the audit, whatever else was asked."""


def reason_of(error: FairAuditError) -> str:
    """Return why something was refused; what is no refusal (a bug, a stop) is raised again."""
    if isinstance(error, CancelledError | InternalError | BindingRefusedError):
        raise error
    return str(error)
