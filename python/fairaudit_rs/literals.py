"""The words that arguments accept, as literal types: one alias for each list of words.

Checks take their list from the alias (``get_args``), or a test compares both.
"""

from typing import Literal, TypeAlias

# -- tests of groups ---------------------------------------------------------------------------

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
Studentize: TypeAlias = Literal[
    "auto", "pooled", "unpooled", "corrected", "bootstrap", "shared", "none"
]
Adjustment: TypeAlias = Literal["holm", "bh", "max-t", "none"]
#: Adjustments that need only the p-values.
PlainAdjustment: TypeAlias = Literal["holm", "bh", "none"]
Engine: TypeAlias = Literal["auto", "exact", "cells", "stream", "shuffle", "melded", "callable"]
GapInterval: TypeAlias = Literal["auto", "inversion", "delta", "studentized", "basic", "percentile"]
IntervalMethod: TypeAlias = Literal[
    "auto",
    "score",
    "mover",
    "mantel-haenszel",
    "inversion",
    "studentized",
    "delta",
    "basic",
    "percentile",
]
EquivalenceMethod: TypeAlias = Literal[
    "auto", "score", "mover", "mantel-haenszel", "inversion", "studentized", "delta"
]
Undefined: TypeAlias = Literal["raise", "skip"]
Missing: TypeAlias = Literal["own", "keep_texts"]
MixedClusters: TypeAlias = Literal["refuse", "split", "drop"]
Scale: TypeAlias = Literal["difference", "ratio"]
NullHypothesis: TypeAlias = Literal["shuffle", "weak"]
#: From worst to best.
Verdict: TypeAlias = Literal[
    "fail", "inconclusive", "not_measurable", "pass", "no_fail", "not_asked"
]
Goal: TypeAlias = Literal["difference", "equivalence"]
ConditionsOn: TypeAlias = Literal["label", "decision"]
CorrelationMethod: TypeAlias = Literal["pearson", "spearman"]

# -- projections -------------------------------------------------------------------------------

NotionName: TypeAlias = Literal[
    "statistical_parity",
    "equal_opportunity",
    "predictive_equality",
    "equalized_odds",
    "demographic_parity",
    "equality_of_opportunity",
]
Attributes: TypeAlias = Literal["crossed", "separate"]
ProjectionCalibration: TypeAlias = Literal["asymptotic", "permutation"]

# -- individuals -------------------------------------------------------------------------------

Ratio: TypeAlias = Literal["loss", "error_rate"]
Loss: TypeAlias = Literal["log_loss", "smooth_hinge", "softplus_hinge", "squared"]
Solver: TypeAlias = Literal["euler", "heun", "rk4"]
OneHot: TypeAlias = Literal["free", "keep"]
RatioInterval: TypeAlias = Literal["normal", "log", "bootstrap-t"]
Compatibility: TypeAlias = Literal["paper"]
IndividualPicture: TypeAlias = Literal["path", "ratios"]

# -- influence ---------------------------------------------------------------------------------

DescentMethod: TypeAlias = Literal["reweight", "resample"]
RepairMethod: TypeAlias = Literal["direct", "transport"]
ScoreKind: TypeAlias = Literal["marginal", "held_fixed"]
DescentPicture: TypeAlias = Literal["path", "marginals"]

# -- extremes ----------------------------------------------------------------------------------

ExtremeNull: TypeAlias = Literal["equal_levels", "equal_laws"]
TailMethod: TypeAlias = Literal["gpd", "point_process", "gev"]
TailPicture: TypeAlias = Literal["qq", "return_level", "density", "stability"]
SamplerName: TypeAlias = Literal["random", "optuna"]
Looks: TypeAlias = Literal["last", "each"]
#: For a smoothed bootstrap.
Bandwidth: TypeAlias = Literal["silverman"]
Auto: TypeAlias = Literal["auto"]
UpperByRow: TypeAlias = Literal["row"]

# -- policies ----------------------------------------------------------------------------------

Evidence: TypeAlias = Literal["failures", "permutation", "none"]
VerdictAdjustment: TypeAlias = Literal["holm", "none"]
Intersections: TypeAlias = Literal["inform", "bind", "skip"]
LensName: TypeAlias = Literal["permutation", "projection", "individual", "influence", "extremes"]
#: All lenses but the permutation lens, which answers the questions.
OtherLens: TypeAlias = Literal["projection", "individual", "influence", "extremes"]
RuleName: TypeAlias = Literal["us_eeoc", "nyc_ll144", "fair_lending", "co_insurance_draft"]
PresetName: TypeAlias = Literal[
    "opportunity",
    "error_balance",
    "punitive",
    "parity",
    "four_fifths",
    "predictive",
    "calibration",
    "performance",
    "us_eeoc",
    "nyc_ll144",
    "fair_lending",
    "co_insurance_draft",
]

# -- models ------------------------------------------------------------------------------------

Link: TypeAlias = Literal["auto", "logit", "identity"]
Norm: TypeAlias = Literal["l1", "l2", "linf", "mahalanobis"]
#: For networks.
PlainNorm: TypeAlias = Literal["l1", "l2", "linf"]
KernelName: TypeAlias = Literal["rbf", "polynomial", "linear"]
Precision: TypeAlias = Literal["float32", "float64"]
