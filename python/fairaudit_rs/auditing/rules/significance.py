"""The parts of a rule's sentences that describe a test and its p-value."""

from __future__ import annotations

from ...report.words import p_text
from ..sentences import fill_part


def describe_test(method: str, pvalue: float, n_tests: int, alpha: float) -> str:
    """Describe a test in a sentence; p-values of several tests are not adjusted."""
    name = "one_test" if n_tests == 1 else "several_tests"
    p, n = p_text(pvalue), f"{n_tests:,}"
    return fill_part("how", name, method=method, p=p, n_tests=n, level=f"{alpha:g}")


def differ_significantly(is_significant: bool) -> str:
    """Return the verb of a sentence about two rates or means."""
    return f"{'differ' if is_significant else 'do not differ'} significantly"
