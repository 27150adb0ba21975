"""The templates of sentences about rules, used to write and to read the text of audits."""

from __future__ import annotations

#: By name, as in `..sentences.SENTENCES`. Lines about an attribute follow "{attribute}: ".
RULES = {
    # -- any rule --
    "rule_counts": "these lines count rows, each one as a person{unused}",
    "rule_source": "rule {rule}: {since}looked up {as_of}; {source}",
    # -- us_eeoc --
    "highest_rate": "{best} has the highest rate: the others are compared with it",
    "impact_ratio": (
        "{group}: {rate} of {n} selected, {ratio} times the highest rate, that of {best}: {words}. "
        "Test of equal rates: {test}.{more} The data {rules_out} out a true ratio of 0.80 or more "
        "({confidence}{adjusted}){too_few}"
    ),
    "nobody_selected": "{group}: nobody is selected in any group{too_few}",
    # -- fair_lending --
    "adverse_impact": (
        "{group}: favourable decision for {rate} of {n}, {reference} (reference) {reference_rate} "
        "of {reference_n}: adverse impact ratio {ratio}. {flagged}: {why}{favourable_more}{too_few}"
    ),
    "no_adverse_impact": (
        "{group}: favourable decision for {rate} of {n}, {reference} (reference) {reference_rate} "
        "of {reference_n}: no ratio, as nobody in the reference group has it{too_few}"
    ),
    "mean_difference": (
        "{group}: mean score {mean} of {n}, {reference} (reference) {reference_mean} of "
        "{reference_n}: standardized mean difference {smd} (in standard deviations of {spread}). "
        "The means {differ_significantly}{side} ({how}). {flag_of_means}"
    ),
    "no_means": "no standardized mean differences, as no scores were given (y_score)",
    "no_means_of_few": (
        "no standardized mean differences, as the reference or all other groups have 1 row"
    ),
    "no_mean_of_group": "no standardized mean difference of {group}, which has 1 row",
    "means_refused": "no standardized mean differences: {reason}",
    "no_reference": "the policy names no reference group of this attribute",
    "no_decisions": "no decisions were given",
    "one_group": "fewer than two groups",
    # -- co_insurance_draft --
    "approval_gap": (
        "{group}: {rate} of {n} approved, {reference} (reference) {reference_rate} of "
        "{reference_n}. {size} ({how}): the draft, which is not in force, {looks}{too_few}"
    ),
    # -- nyc_ll144 --
    "bias_audit": "Bias audit{made}{source_of_data}",
    "bias_columns": "columns: {columns}",
    "impact_of_selection": (
        "impact ratio: the selection rate of a category over that of the most selected one"
    ),
    "impact_of_scoring": (
        "impact ratio: the scoring rate of a category (share of scores above the median of all) "
        "over that of the highest scoring one"
    ),
    "no_threshold": "the rule sets no threshold; nothing here passes or fails",
    "missing": "missing: {what}",
    "ratios_are_to": "{by}{without}: impact ratios are to {group}, {rate_name} {rate}",
    "small_highest": "{by}: {small_note}",
    "unknown_category": "{by}: {people} of unknown {same_by} {are} in no line",
}
#: Parts of these sentences.
PARTS_OF_RULES = {
    "rule_line": {"rule_line": "{attribute}{without}: {line}"},
    "without": {"without": " (rows, without the {parts})"},
    "unused": {"unused": "; they do not use the {parts}"},
    "since": {"since": "in force since {date}; "},
    "test": {
        "test_of_one": "z = {z}, {p} by {method}; 1 comparison",
        "test_of_several": (
            "z = {z}, {p} by {method}, unadjusted; {adjusted_p} adjusted for {n_tests} comparisons "
            "(Bonferroni, all pairs of groups)"
        ),
    },
    "more": {"more": " {k} more selections would make it four fifths."},
    "adjusted": {
        "adjusted": ", adjusted for {n_tests} comparisons",
    },
    "too_few": {
        "too_few": (
            ". {groups}, below the {floor} that this audit needs for a verdict; {rule} has no such "
            "minimum"
        )
    },
    "why": {
        "flagged": "the ratio is below {limit}, and the rates differ significantly ({how})",
        "favoured": (
            "{group} has the favourable decision more often than {reference}; the rates "
            "{differ_significantly} ({how})"
        ),
        "not_low": "the ratio is not below {limit}; the rates {differ_significantly} ({how})",
        "not_significant": (
            "the ratio is below {limit}, but the rates do not differ significantly ({how})"
        ),
        "small_difference": (
            "the ratio is below {limit}, but the difference of {gap} points does not exceed "
            "{least} points; the rates {differ_significantly} ({how})"
        ),
    },
    "how": {
        "several_tests": "{method}, {p} unadjusted, {n_tests} comparisons, level {level}",
        "one_test": "{method}, {p}, level {level}",
    },
    "favourable_more": {
        "favourable_more": ". {k} more favourable decisions would make the rates equal"
    },
    "side": {
        "advantage": ", to the advantage of {group}",
        "disadvantage": ", to the disadvantage of {group}",
    },
    "flag_of_means": {
        "nothing_flagged": "No threshold is set, so nothing is flagged",
        "flagged_means": "Flagged at a threshold of {limit} to the disadvantage of a group",
        "means_not_flagged": "Not flagged at a threshold of {limit} to the disadvantage of a group",
    },
    "size": {
        "in_favour": (
            "The gap of {gap} points is in favour of the group; the rates {differ_significantly}"
        ),
        "five_and_significant": (
            "The gap of {gap} points is one of 5 points or more, and the rates differ significantly"
        ),
        "five": (
            "The gap of {gap} points is one of 5 points or more, but the rates do not differ "
            "significantly"
        ),
        "below_five": (
            "The gap of {gap} points is below 5 points; the rates {differ_significantly}"
        ),
    },
    "rate_name": {"selection": "selection rate", "scoring": "scoring rate"},
    "has": {"has": "has", "have": "have"},
    "are": {"is": "is", "are": "are"},
    "made": {"made": " of {date}"},
    "source_of_data": {"source_of_data": ". Data: {source}"},
    "small_note": {
        "small_note": (
            "{group} has the highest {rate_name} ({rate}) and fewer than 2 % of the people ({n} of "
            "{n_all}): ratios are given with and without such categories"
        )
    },
}
