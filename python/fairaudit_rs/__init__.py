"""Is this model unfair, or is it noise? Statistically valid fairness audits at any scale.

>>> import fairaudit_rs as fa
>>> result = fa.permutation_test(
...     y_true=[1, 1, 1, 1, 0, 0, 0, 0], y_pred=[1, 1, 1, 0, 1, 0, 0, 0],
...     sensitive_features=list("aabbaabb"), metric="selection_rate")
>>> result.engine
'exact'

The public names are those in ``__all__``, here and in `metrics`, `models`, `datasets` and `errors`;
all other paths may change. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._native import __version__

if TYPE_CHECKING:
    from . import datasets, errors, metrics, models
    from .auditing.audit import audit
    from .auditing.criterion import Criterion
    from .auditing.policy import Policy
    from .auditing.result import Audit
    from .data.cells import Cells
    from .data.combined_columns import combine_columns
    from .data.tabulate import tabulate
    from .extremes.augment import TopUps
    from .extremes.copula import GaussianCopula
    from .extremes.ctgan import CTGAN
    from .extremes.fit_tail import fit_tail
    from .extremes.generator_quality import Quality, generator_quality
    from .extremes.gev import GevFit
    from .extremes.lens import extreme_test
    from .extremes.result import ExtremeResult
    from .extremes.search import ecd_search
    from .extremes.search_result import SearchResult
    from .extremes.smoothed import SmoothedBootstrap
    from .extremes.tail import TailFit
    from .extremes.tvae import TVAE
    from .individual.examples import UnfairExamples
    from .individual.fair_metric import FairMetric
    from .individual.lens import individual_test
    from .individual.result import IndividualResult
    from .inference.multiplicity import adjust_pvalues
    from .influence.alignment import AlignmentResult
    from .influence.counterfactual import Counterfactual
    from .influence.lens import influence_audit
    from .influence.repair import Repair
    from .influence.result import InfluenceResult
    from .models.kernel import KernelModel
    from .models.linear import LinearModel
    from .models.multiclass import MulticlassModel
    from .models.torch_model import TorchModel
    from .permutation.calibration import CalibrationReport, calibrate
    from .permutation.compare_models import compare_models
    from .permutation.equivalence import EquivalenceResult, equivalence_test
    from .permutation.intervals import IntervalResult, intervals
    from .permutation.lens import permutation_test
    from .permutation.model_comparison import ModelComparison
    from .permutation.power import minimum_detectable_gap, sample_size
    from .permutation.power_plan import PowerPlan
    from .permutation.result import PermutationResult
    from .projection.lens import projection_test
    from .projection.moves import Moves
    from .projection.notions import Notion
    from .projection.result import ProjectionResult
    from .results.result import from_dict

__all__ = [
    "audit",
    "permutation_test",
    "projection_test",
    "individual_test",
    "influence_audit",
    "extreme_test",
    "fit_tail",
    "ecd_search",
    "generator_quality",
    "intervals",
    "equivalence_test",
    "compare_models",
    "minimum_detectable_gap",
    "sample_size",
    "calibrate",
    "tabulate",
    "combine_columns",
    "adjust_pvalues",
    "from_dict",
    "Policy",
    "Criterion",
    "LinearModel",
    "KernelModel",
    "TorchModel",
    "MulticlassModel",
    "FairMetric",
    "Notion",
    "SmoothedBootstrap",
    "GaussianCopula",
    "TVAE",
    "CTGAN",
    "TopUps",
    "metrics",
    "models",
    "datasets",
    "errors",
    "Cells",
    "Audit",
    "PermutationResult",
    "ProjectionResult",
    "IndividualResult",
    "InfluenceResult",
    "ExtremeResult",
    "TailFit",
    "GevFit",
    "SearchResult",
    "Quality",
    "Repair",
    "Counterfactual",
    "AlignmentResult",
    "Moves",
    "UnfairExamples",
    "IntervalResult",
    "EquivalenceResult",
    "ModelComparison",
    "PowerPlan",
    "CalibrationReport",
    "__version__",
]

#: The module of each public name.
_MODULE_OF = {
    "audit": "auditing.audit",
    "Audit": "auditing.result",
    "permutation_test": "permutation.lens",
    "PermutationResult": "permutation.result",
    "intervals": "permutation.intervals",
    "IntervalResult": "permutation.intervals",
    "equivalence_test": "permutation.equivalence",
    "EquivalenceResult": "permutation.equivalence",
    "compare_models": "permutation.compare_models",
    "ModelComparison": "permutation.model_comparison",
    "minimum_detectable_gap": "permutation.power",
    "sample_size": "permutation.power",
    "PowerPlan": "permutation.power_plan",
    "calibrate": "permutation.calibration",
    "CalibrationReport": "permutation.calibration",
    "projection_test": "projection.lens",
    "ProjectionResult": "projection.result",
    "Moves": "projection.moves",
    "Notion": "projection.notions",
    "individual_test": "individual.lens",
    "IndividualResult": "individual.result",
    "UnfairExamples": "individual.examples",
    "FairMetric": "individual.fair_metric",
    "influence_audit": "influence.lens",
    "InfluenceResult": "influence.result",
    "AlignmentResult": "influence.alignment",
    "Repair": "influence.repair",
    "Counterfactual": "influence.counterfactual",
    "extreme_test": "extremes.lens",
    "ExtremeResult": "extremes.result",
    "fit_tail": "extremes.fit_tail",
    "TailFit": "extremes.tail",
    "GevFit": "extremes.gev",
    "ecd_search": "extremes.search",
    "SearchResult": "extremes.search_result",
    "SmoothedBootstrap": "extremes.smoothed",
    "GaussianCopula": "extremes.copula",
    "TVAE": "extremes.tvae",
    "CTGAN": "extremes.ctgan",
    "TopUps": "extremes.augment",
    "generator_quality": "extremes.generator_quality",
    "Quality": "extremes.generator_quality",
    "from_dict": "results.result",
    "Policy": "auditing.policy",
    "Criterion": "auditing.criterion",
    "tabulate": "data.tabulate",
    "combine_columns": "data.combined_columns",
    "Cells": "data.cells",
    "adjust_pvalues": "inference.multiplicity",
    "LinearModel": "models.linear",
    "KernelModel": "models.kernel",
    "TorchModel": "models.torch_model",
    "MulticlassModel": "models.multiclass",
}
#: Public modules.
_PUBLIC_MODULES = {"metrics", "models", "datasets", "errors"}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC_MODULES:
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
