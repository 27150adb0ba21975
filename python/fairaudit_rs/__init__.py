"""Is this model unfair, or is it noise? Statistically valid fairness audits at any scale.

>>> import fairaudit_rs as fa
>>> result = fa.permutation_test(
...     y_true=[1, 1, 1, 1, 0, 0, 0, 0], y_pred=[1, 1, 1, 0, 1, 0, 0, 0],
...     sensitive_features=list("aabbaabb"), metric="selection_rate")
>>> result.engine
'exact'
"""

from . import datasets, errors, metrics
from ._native import __version__
from .cells import Cells
from .multiplicity import adjust_pvalues
from .permutation import PermutationResult, permutation_test
from .tables import tabulate

__all__ = [
    "permutation_test",
    "tabulate",
    "adjust_pvalues",
    "metrics",
    "datasets",
    "errors",
    "Cells",
    "PermutationResult",
    "__version__",
]
