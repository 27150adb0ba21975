"""The templates of the notes of an audit, used to write and to read the text of audits."""

from __future__ import annotations

from ..data import labels, mixed_clusters
from ..permutation import melded_limits, strata, two_one_sided, within_strata

#: By name, as in `sentences.SENTENCES`; a note is printed with "Note: " before it and a full stop.
NOTES = {
    **within_strata.SENTENCES,
    "many_strata": f"{{attribute}}, {{metric}}: {strata.MANY_STRATA}",
    "effect_varies": f"{{attribute}}, {{metric}}: {strata.EFFECT_VARIES}",
    "missing_texts": labels.MISSING_TEXTS_NOTE,
    **mixed_clusters.SENTENCES,
    **melded_limits.SENTENCES,
    # -- the table and the verdict --
    "equal_is": (
        '"p: no gap" of a question without a threshold is about the two groups with the largest '
        "observed gap, not adjusted for this choice; the table of pairs has all of them"
    ),
    "table_is": (
        '"observed gap" is the gap in these rows of the groups in "compared", and "bound" its '
        'limit with {confidence}: < at most, > at least. "p: no gap" tests whether these groups '
        'differ at all; "p: tolerated" is small where their gap exceeds the tolerance'
    ),
    "errors_are": (
        "{tests}. At most {rate} of audits FAIL falsely{together}{false_pass}. These rates and the "
        "confidence of bounds hold before the verdict is known. Only binding checks make the "
        "verdict{labels}"
    ),
    "not_tested": "not tested for {attribute}, {metric}: {groups}",
    # -- remarks on data and lenses --
    "flag": "{attribute} = {yes} is compared with everyone else ({same_attribute} = {no})",
    "several_flags": (
        "if attributes of 0 and 1 exclude each other, they can be combined to one whose groups are "
        "compared with each other (combine_columns, or --combine)"
    ),
    "decides_alike": (
        "the model decides the same way for {share} of the people; equal rates are then easy to "
        "reach, and other metrics should bind"
    ),
    "refusals": (
        "{attribute}: {refused} {times} times as frequent for {who} ({who_share}) as for {other} "
        "({other_share}); a ratio of the {metric} does not show this, and this policy "
        "does not ask for it"
    ),
    "refusals_of_one": (
        "{attribute}: {refused} found for {who} ({who_share}) and never for {other} "
        "({other_share}); a ratio of the {metric} does not show this, and this policy "
        "does not ask for it"
    ),
    "base_rates_differ": (
        "base rates differ by {attribute} ({low_rate} of {low} and {high_rate} of {high}): no "
        "model with errors has equal decisions, equal error rates and equal predictive values at "
        'once; the policy "{policy}" asks for {asked} alone'
    ),
    "small_intersections": (
        "{n} intersections of attributes are below the minimum group size of a metric and not "
        "compared by it: {groups}"
    ),
    "small_intersection": (
        "{n} intersection of attributes is below the minimum group size of a metric and not "
        "compared by it: {groups}"
    ),
    "own_minimum": (
        "{attribute}: {groups} {has} fewer than {floor} rows and no verdict here. This minimum is "
        "our own: {rule} has none, and its own lines are about all groups"
    ),
    "lenses_silent": "not run: {lenses}; the table of findings has the reasons",
    "folded": "{note}; the same of {groups} ({n} notes of this kind)",
}
#: Parts of these sentences.
PARTS_OF_NOTES = {
    "refused": {"decisions": "negative decisions are", "others": "all but the {metric} is"},
    "why_open": {
        **two_one_sided.SENTENCES,
        "no_stratum": strata.UNSHARED,
        "few_covered": (
            "only {share} % of people are in groups that could be tested; a pass needs {needed} %"
        ),
        "withheld": "{n} testable groups are excluded by the minimum size of the policy",
        "group_withheld": "a testable group is excluded by the minimum size of the policy",
    },
    "tests": {
        "one_pair": "1 pair of groups is compared",
        "one_lens": "1 other lens is asked",
        "comparisons": "{n} comparisons of pairs of groups",
        "comparisons_and_lenses": "{n} comparisons of pairs of groups and of other lenses",
    },
    "false_pass": {"false_pass": ", and at most {rate} PASS falsely"},
    "labels": {"labels": ". Labels are taken as true"},
    "together": {
        "all": " for all of them together (Holm)",
        "each": " for each of them alone",
    },
}
