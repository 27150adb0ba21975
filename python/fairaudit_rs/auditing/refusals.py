"""Errors in one question or lens: most become its reason in the audit, a few end the audit."""

from __future__ import annotations

from ..errors import ArgumentError, CancelledError, FairAuditError, InternalError


class BindingRefusedError(ArgumentError):
    """A binding criterion that cannot reach a verdict, which ends the audit."""


def reason_of(error: FairAuditError) -> str:
    """Return the message of an error as the reason of a finding.

    Bugs, cancellations and refusals that end the audit are raised again.
    """
    if isinstance(error, CancelledError | InternalError | BindingRefusedError):
        raise error
    # Reasons stand inside of sentences.
    return str(error).removesuffix(".")
