"""Is this model unfair, or is it noise? Statistically valid fairness audits at any scale.

>>> import fairaudit_rs as fa
>>> result = fa.permutation_test(
...     y_true=[1, 1, 1, 1, 0, 0, 0, 0], y_pred=[1, 1, 1, 0, 1, 0, 0, 0],
...     sensitive_features=list("aabbaabb"), metric="selection_rate")
>>> result.engine
'exact'
"""

from . import datasets, errors, metrics, models
from ._native import __version__
from .data.cells import Cells
from .data.tabulate import tabulate
from .individual.fair_metric import FairMetric
from .individual.lens import individual_test
from .individual.result import IndividualResult
from .inference.multiplicity import adjust_pvalues
from .models.kernel import KernelModel
from .models.linear import LinearModel
from .models.multiclass import MulticlassModel
from .models.network import TorchModel
from .permutation.calibration import CalibrationReport, calibrate
from .permutation.equivalence import EquivalenceResult, equivalence_test
from .permutation.intervals import IntervalResult, intervals
from .permutation.lens import permutation_test
from .permutation.power import minimum_detectable_gap, sample_size
from .permutation.power_plan import PowerPlan
from .permutation.result import PermutationResult
from .projection.lens import projection_test
from .projection.notions import Notion
from .projection.result import ProjectionResult

__all__ = [
    "permutation_test",
    "projection_test",
    "individual_test",
    "intervals",
    "equivalence_test",
    "minimum_detectable_gap",
    "sample_size",
    "calibrate",
    "tabulate",
    "adjust_pvalues",
    "LinearModel",
    "KernelModel",
    "TorchModel",
    "MulticlassModel",
    "FairMetric",
    "Notion",
    "metrics",
    "models",
    "datasets",
    "errors",
    "Cells",
    "PermutationResult",
    "ProjectionResult",
    "IndividualResult",
    "IntervalResult",
    "EquivalenceResult",
    "PowerPlan",
    "CalibrationReport",
    "__version__",
]
