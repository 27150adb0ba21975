"""Formulas that nobody writes by hand: as long as a file, in processes of their own."""

import pytest

from fairaudit_rs import _native, errors, metrics
from tests.children import run_child

CODE = """
import fairaudit_rs as fa
text = {text}
try:
    fa.metrics.count_metric("long", text)
except fa.errors.FormulaError as error:
    print("refused", len(str(error)) < 600, "more than 500 operators" in str(error))
"""


@pytest.mark.parametrize(
    "text",
    [
        "'tp' + ' + tp' * {n} + ' / (tp + fn)'",
        "'tp' + ' - fp' * {n} + ' / (tp + fn)'",
        "'tp' + ' * 1' * {n} + ' / (tp + fn)'",
        "'tp' + ' / 1' * {n} + ' / (tp + fn)'",
        "'(' + ' + '.join(['abs(tp)'] * {n}) + ') / (tp + fn)'",
    ],
    ids=["sums", "differences", "products", "quotients", "functions"],
)
@pytest.mark.parametrize("n", [8_000, 30_000, 300_000])
def test_a_long_chain_is_refused_and_overflows_no_stack(text, n):
    done = run_child(CODE.format(text=text.format(n=n)))
    assert (done.returncode, done.stdout) == (0, "refused True True\n"), done.stderr[-500:]


def test_a_chain_up_to_the_limit_is_a_metric():
    recall = metrics.count_metric("recall", "tp" + " * 1" * 498 + " / (tp + fn)")
    assert recall.kind.native.evaluate([3.0, 0.0, 1.0, 0.0]).value == 0.75
    with pytest.raises(errors.FormulaError, match=r"more than 500 operators and functions"):
        metrics.count_metric("recall", "tp" + " * 1" * 499 + " / (tp + fn)")


def test_joint_criteria_are_not_nested():
    one = _native.CountMetric.formula("tp / (tp + fn)")
    joint = _native.CountMetric.joint([one, one])
    with pytest.raises(errors.ArgumentError, match=r"a joint criterion among others"):
        _native.CountMetric.joint([joint, one])
