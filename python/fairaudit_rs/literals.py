"""The words that arguments accept, as literal types: one alias for each list of words.

Argument checks read the accepted words from the alias with ``get_args``; where they do not, a test
checks that the two lists agree.
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
#: "own": missing values are a group (or stratum) of their own; "keep_texts": texts such as "nan"
#: are groups.
Missing: TypeAlias = Literal["own", "keep_texts"]
MixedClusters: TypeAlias = Literal["refuse", "split", "drop"]
Scale: TypeAlias = Literal["difference", "ratio"]
NullHypothesis: TypeAlias = Literal["shuffle", "weak"]
#: In order of precedence: the verdict of several questions is the first of these that occurs.
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
#: Several sensitive features form intersections, or are tested one by one in a joint test.
AttributeCombination: TypeAlias = Literal["crossed", "separate"]
ProjectionCalibration: TypeAlias = Literal["asymptotic", "permutation"]

# -- individuals -------------------------------------------------------------------------------

Ratio: TypeAlias = Literal["loss", "error_rate"]
Loss: TypeAlias = Literal["log_loss", "smooth_hinge", "softplus_hinge", "squared"]
Solver: TypeAlias = Literal["euler", "heun", "rk4"]
OneHot: TypeAlias = Literal["free", "keep"]
RatioInterval: TypeAlias = Literal["normal", "log", "bootstrap-t"]
#: Compute as the authors of the paper of a lens do.
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
#: Test a tail after the last top-up, or after each one.
InterimLooks: TypeAlias = Literal["last", "each"]
#: For a smoothed bootstrap.
Bandwidth: TypeAlias = Literal["silverman"]
Auto: TypeAlias = Literal["auto"]
#: The upper end of the difference of a row is 1 - score.
UpperByRow: TypeAlias = Literal["row"]

# -- policies ----------------------------------------------------------------------------------

Evidence: TypeAlias = Literal["failures", "permutation", "none"]
VerdictAdjustment: TypeAlias = Literal["holm", "none"]
Intersections: TypeAlias = Literal["inform", "bind", "skip"]
LensName: TypeAlias = Literal["permutation", "projection", "individual", "influence", "extremes"]
#: All lenses except permutation: those that a criterion of a policy can name.
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
#: The norms that are supported for neural networks.
PlainNorm: TypeAlias = Literal["l1", "l2", "linf"]
KernelName: TypeAlias = Literal["rbf", "polynomial", "linear"]
Precision: TypeAlias = Literal["float32", "float64"]
