"""The presets as plain data: policies of this package, and rules of law or practice.

The preset of a rule computes what the text of the rule asks for; it gives no advice. It records
since when the rule is in force, its source and legal status, and what it does not cover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The fields of a policy by name; each criterion is a dict of the fields of `Criterion`.
Content = Mapping[str, Any]

#: When the texts and the legal status of the rules were looked up.
_AS_OF = "2026-11-20"
_OURS = "fairaudit_rs; docs/policy.md has the reasons"
_NOT_LAW = "Not a rule of law: a tolerance is a choice of those who answer for the model."


def _binding(metric: str, **threshold: float) -> dict[str, Any]:
    return {"metric": metric, **threshold}


def _informational(metric: str, **threshold: float) -> dict[str, Any]:
    return {"metric": metric, "binding": False, **threshold}


#: Usual tolerances of rates, and of means and scores.
_RATE = {"tolerance": 0.1}
_SCORE = {"tolerance": 0.05}

OPPORTUNITY: Content = {
    "name": "opportunity",
    "criteria": (
        _binding("true_positive_rate", **_RATE),
        _informational("selection_rate", **_RATE),
        _informational("false_positive_rate", **_RATE),
        _informational("positive_predictive_value", **_RATE),
        _informational("accuracy", **_SCORE),
        _informational("mean_residual", **_SCORE),
    ),
    "description": "People who merit the favourable decision get it equally often.",
    "source": _OURS,
    "is_not": f"Silent on people who do not merit it, and on wrong labels. {_NOT_LAW}",
}
ERROR_BALANCE: Content = {
    "name": "error_balance",
    "criteria": (
        _binding("true_positive_rate", **_RATE),
        _binding("false_positive_rate", **_RATE),
        _informational("selection_rate", **_RATE),
        _informational("positive_predictive_value", **_RATE),
        _informational("accuracy", **_SCORE),
        _informational("mean_residual", **_SCORE),
    ),
    "description": "Both kinds of error are equally frequent in all groups.",
    "source": _OURS,
    "is_not": "Where base rates differ it excludes equal predictive values, but for a model "
    f"without errors. {_NOT_LAW}",
}
PUNITIVE: Content = {
    "name": "punitive",
    "criteria": (
        _binding("false_positive_rate", **_RATE),
        _informational("false_negative_rate", **_RATE),
        _informational("positive_predictive_value", **_RATE),
    ),
    "punitive": True,
    "description": "People are wrongly accused equally often: the positive decision is the "
    "unfavourable one.",
    "source": _OURS,
    "is_not": f"Silent on the guilty who go free. {_NOT_LAW}",
}
PARITY: Content = {
    "name": "parity",
    "criteria": (
        _binding("selection_rate", **_RATE),
        _informational("true_positive_rate", **_RATE),
        _informational("false_positive_rate", **_RATE),
        _informational("positive_predictive_value", **_RATE),
        _informational("negative_predictive_value", **_RATE),
        _informational("accuracy", **_SCORE),
        _informational("mean_residual", **_SCORE),
        _informational("auc", **_SCORE),
    ),
    "description": "The favourable decision is equally frequent in all groups.",
    "source": _OURS,
    "is_not": f"Silent on whether decisions are right. {_NOT_LAW}",
}
FOUR_FIFTHS: Content = {
    "name": "four_fifths",
    "criteria": (
        _binding("selection_rate", ratio=0.8),
        _informational("selection_rate", **_RATE),
        _informational("rejection_rate", ratio=0.8),
    ),
    "description": "No group is approved less than four fifths as often as another one.",
    "source": _OURS,
    "is_not": "A ratio of approvals does not see a ratio of refusals, and it is not the rule of "
    f"29 CFR 1607.4 D, which is us_eeoc. {_NOT_LAW}",
}
PREDICTIVE: Content = {
    "name": "predictive",
    "criteria": (
        _binding("positive_predictive_value", **_RATE),
        _binding("negative_predictive_value", **_RATE),
        _informational("base_rate"),
    ),
    "description": "A decision turns out right equally often in all groups.",
    "source": _OURS,
    "is_not": "Where base rates differ it excludes equal error rates, but for a model without "
    f"errors. {_NOT_LAW}",
}
CALIBRATION: Content = {
    "name": "calibration",
    "criteria": (
        _binding("mean_residual", **_SCORE),
        _informational("calibration_error"),
        _informational("auc", **_SCORE),
    ),
    "description": "A score is too high or too low by the same amount in all groups.",
    "source": _OURS,
    "is_not": "Calibration in the large: scores may be wrong in opposite ways for the low and the "
    f"high. {_NOT_LAW}",
}
PERFORMANCE: Content = {
    "name": "performance",
    "criteria": (_binding("auc", **_SCORE), _binding("accuracy", **_SCORE)),
    "description": "The model is equally good in all groups.",
    "source": _OURS,
    "is_not": f"Silent on whom its errors hurt. {_NOT_LAW}",
}

US_EEOC: Content = {
    "name": "us_eeoc",
    "rule": "us_eeoc",
    "criteria": ({"metric": "selection_rate", "ratio": 0.8, "reference": "highest"},),
    "has_pass": False,
    "description": "The four-fifths rule of the Uniform Guidelines on Employee Selection "
    "Procedures: a selection rate below 4/5 of the highest is generally regarded as evidence of "
    'adverse impact; beside it the test of equal rates ("two or three standard deviations"), '
    "unadjusted and adjusted for all pairs of groups, the selections that are missing to 4/5, and "
    "whether the data rule out a true ratio of 4/5 or more.",
    "in_force": "1978-09-25",
    "as_of": _AS_OF,
    "source": "29 CFR 1607.4 D; questions and answers 44 FR 11996, no. 18; Castaneda v. Partida, "
    "430 U.S. 482, n. 17; Hazelwood v. United States, 433 U.S. 299, n. 14",
    "status": 'In force, with a rescission pending: "Rescission of Uniform Guidelines" (RIN '
    "3046-AB43) is in the final rule stage, and a change of the record keeping (RIN 3046-AB45) is "
    "proposed (reginfo.gov, 2026-07-05); no final rule was found. Executive Order 14281 (2025-04) "
    "puts federal enforcement of disparate impact last. State law and private suits remain.",
    "is_not": "An engine, not advice. The rule is about the selection of employees (hiring, "
    "promotion and the like), not about loans, benefits or other decisions. The rule of thumb has "
    "no pass: at a true ratio of exactly 4/5 it flags half of large samples, smaller differences "
    "may count, and larger ones may not where numbers are small.",
}
NYC_LL144: Content = {
    "name": "nyc_ll144",
    "rule": "nyc_ll144",
    "criteria": ({"metric": "selection_rate", "binding": False, "reference": "highest"},),
    "has_pass": False,
    "description": "Impact ratios of Local Law 144: the selection rate of each category over that "
    "of the most selected one, or the share of scores above the median of the full sample over "
    "that of the highest scoring one; by sex, by race or ethnicity, and by both.",
    "in_force": "2023-07-05",
    "as_of": _AS_OF,
    "source": "6 RCNY 5-300 to 5-304, as restated paragraph by paragraph in a public checklist; "
    "the city's own document was not seen",
    "status": "In force. A bias audit is at most one year old and made by an independent auditor; "
    "its summary is published. On 2025-12-02 the New York State Comptroller published an audit of "
    "how the city enforces the law (second-hand; the report itself was not seen).",
    "is_not": "An engine, not advice. The rule asks for numbers and sets no threshold: nothing "
    "here passes or fails.",
}
FAIR_LENDING: Content = {
    "name": "fair_lending",
    "rule": "fair_lending",
    "criteria": (),
    "description": "Adverse impact ratios as lenders compute them: the favourable share over that "
    "of a fixed reference group, flagged below a threshold of yours and where it is significant; "
    "standardized mean differences of scores, where scores are given; and the favourable decisions "
    "that are missing.",
    "as_of": _AS_OF,
    "source": "Practice of the industry, after the documentation of solas-ai 0.6.0; no regulation "
    "has these numbers",
    "status": "Federal: the CFPB's final rule of 2026-04-22 removed the effects test from "
    "Regulation B, effective 2026-07-21; OCC (2025-07) and FDIC (2025-08) dropped it from "
    "examinations. New Jersey: N.J.A.C. 13:16 (2025-12-15) covers lending, housing and vendors, "
    "and asks for empirical evidence, tests before use and less discriminatory alternatives. "
    "Massachusetts: the settlement with Earnest (2025-07-10), which had never tested its models, "
    "requires a test every year. Laws of other states (CA, NY, IL), the Fair Housing Act and "
    "private suits remain. Second-hand, from law firms' summaries.",
    "is_not": "An engine, not advice. There is no threshold of law; 0.80 and 0.90 are customary.",
}
CO_INSURANCE_DRAFT: Content = {
    "name": "co_insurance_draft",
    "rule": "co_insurance_draft",
    "criteria": ({"metric": "selection_rate", "tolerance": 0.05, "binding": False},),
    "has_pass": False,
    "description": "Colorado's draft of quantitative testing in life insurance: approvals that "
    "differ significantly and by 5 percentage points or more between groups are looked into.",
    "as_of": _AS_OF,
    "source": "Draft regulation of 2023-09-27 under C.R.S. 10-3-1104.9 (SB21-169), seen in "
    "summaries of law firms only; bulletin B-10.004 of the Division of Insurance",
    "status": 'Draft. The Division says that it "has not yet adopted rules establishing the '
    'required quantitative testing".',
    "is_not": "An engine, not advice, and no rule in force. The draft estimates race from names "
    "and addresses (BIFSG) and adjusts by regression; here groups are as given and gaps are as "
    "seen.",
}

OWN_PRESETS = (
    OPPORTUNITY,
    ERROR_BALANCE,
    PUNITIVE,
    PARITY,
    FOUR_FIFTHS,
    PREDICTIVE,
    CALIBRATION,
    PERFORMANCE,
)
RULES = (US_EEOC, NYC_LL144, FAIR_LENDING, CO_INSURANCE_DRAFT)
PRESETS: Mapping[str, Content] = {rule["name"]: rule for rule in (*OWN_PRESETS, *RULES)}
