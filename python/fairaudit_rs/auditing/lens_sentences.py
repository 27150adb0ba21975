"""The templates of sentences about other lenses, used to write and to read the text of audits."""

from __future__ import annotations

from ..extremes.problem import PERSONS
from .criterion import LENS_WORDS

#: The fair metric under which the individual lens has its limits.
OF_POLICY = "under the metric of this policy"
OF_ROWS = "under every metric that the rows allow"
_TITLES = {lens: words.partition(",")[0] for lens, words in LENS_WORDS.items()}
_GROWS = (
    "for similar people who differ mainly in group-related features, the loss is {growth} times "
    "as large under {likeness}, "
)
_FLIP = "with the attribute changed, 1 person in {horizon} would gain at least "
_DIFFER = "({limits}, {level}): that worst cases differ is {differ_shown}"
_INFLUENCE = (
    "the {rate} of {first} minus that of {second} is {gap} ({low} to {high}, {level}): "
    "{features_found}"
)
_MOVING = "with all else held fixed, decisions depend on {moving}"

#: By name, as in `sentences.SENTENCES`.
LENSES = {
    # -- informational lenses --
    "others_inform": "Other lenses, not binding:",
    "lens_told": "- {lens}, {attribute}: {lens_found}{lens_note}.",
    "lens_warning": "{lens}, {about}: {warning}",
    # -- a fail --
    "fail_projection": (
        "{attribute}: scores depart from {notion} by more than the tolerated {tolerance} between "
        "{first} and {second}, even after allowing for chance (observed gap {gap}; "
        "{confidence}){lens_note}."
    ),
    "fail_individual": (
        "{attribute}: for people who {who_are}, the loss is {growth} times as large. That exceeds "
        "the tolerated {tolerance}: allowing for chance, it is at least {bound} times as large "
        "({confidence}{of_rows}){lens_note}."
    ),
    "fail_gap": (
        "{attribute}: {quantity} is {low_value} for {low_group} ({low_n} eligible rows) and "
        "{high_value} for {high_group} ({high_n} eligible rows). The difference of {gap} exceeds "
        "the tolerated {tolerance}: allowing for chance, it is at least {bound} "
        "({confidence}){lens_note}.{goes_with}"
    ),
    # -- a pass --
    "pass_lens": (
        "{attribute}, {lens_title}: within its tolerance. Allowing for chance, the largest "
        "possible value is {bound}{alone} ({between}by {same_attribute}; tolerated: {tolerance}; "
        "{confidence}){lens_note}."
    ),
    # -- an open verdict --
    "undecided_projection": (
        "- {attribute}, {lens_title}: that scores depart from {notion} by more than the tolerated "
        "{tolerance} is not shown (observed gap {gap}, {first} and {second}). The projection "
        "cannot show that they do not, so it never passes{lens_note}."
    ),
    "undecided_lens": (
        "- {attribute}, {lens_title}: observed {gap}{seen_of}; the true value may be as large as "
        "{bound}{alike_as}; tolerated: {tolerance}. {remark}."
    ),
    "lacking_lens": "- {of_attribute}{lens_title}: not measurable: {reason}.",
    "silent_lens": "some groups of {attribute} were not tested by the lens {lens}: {reasons}",
}
#: Parts of these sentences.
PARTS_OF_LENSES = {
    # Reading takes the first template that matches, so longer ones come first.
    "lens_title": {
        "influence_of_rate": f"{_TITLES['influence']} of the {{rate}} (influence)",
        **{lens: f"{title} ({lens})" for lens, title in _TITLES.items()},
    },
    "lens_note": {"lens_note": " ({note})"},
    "who_are": {
        "of_policy": f"are similar {OF_POLICY}",
        "fitted": "differ mainly in group-related features",
    },
    "of_rows": {"of_rows": f", {OF_ROWS}"},
    "alike": {"of_policy": OF_POLICY, "of_rows": OF_ROWS},
    "alike_as": {"alike_as": " {alike}"},
    "alone": {"alone": ", for this attack alone, {alike}"},
    # Reading takes the first template that matches, and "the {rate}" matches both.
    "quantity": {
        "extremes": "the least that the worst cases would gain with the attribute changed",
        "influence": "the {rate}",
    },
    "goes_with": {"goes_with": " {features}."},
    "between": {"between": "{first} and {second} "},
    "seen_of": {
        "seen_of": " ({high_group}: {high_value} of {high_n}; {low_group}: {low_value} of {low_n})"
    },
    "of_attribute": {"of_attribute": "{attribute}, "},
    # Why a lens does not decide, or how its run deviates from the request; several are joined by
    # semicolons, and the first one begins with a capital.
    "why_not_shown": {
        "few_rows": (
            "fitted tails decide nothing: a PASS needs {passes} rows in each group, a FAIL "
            "{fails} in the group with the milder worst cases"
        ),
        "equal_differences": "of the largest differences {groups} equal another one; " + PERSONS,
        "unknown_rows": "the required number of rows is not known",
        "few_people": (
            "only {share} % of people are in groups that could be compared; a pass needs {needed} %"
        ),
    },
    "lens_found": {
        "departs": "that scores depart from {notion} is shown",
        "departs_not_shown": (
            "that scores depart from {notion} is not shown, which is no evidence of none"
        ),
        "grows_more": _GROWS + "at least {low} ({level}): more than {delta} times is shown",
        "grows_less": (
            _GROWS + "at most {high} ({level}): less than {delta} times is shown, for this attack "
            "alone"
        ),
        "grows_open": (
            _GROWS + "and the data allow {low} to {high} ({level}): neither more nor less than "
            "{delta} times is shown"
        ),
        "influence": _INFLUENCE,
        "extremes_of_two": (
            _FLIP + "{first_level} in {first} and {second_level} in {second}, a difference of "
            "{gap} " + _DIFFER
        ),
        "extremes_of_several": (
            _FLIP + "{worst_level} in {worst}, the most; of {n_groups} groups {first} "
            "({first_level}) and {second} ({second_level}) differ most clearly, by {gap} " + _DIFFER
        ),
    },
    "differ_shown": {"shown": "shown", "not_shown": "not shown, which is no evidence of equality"},
    # Reading takes the first template that matches, so longer ones come first.
    "features_found": {
        "no_direction": "the sign of the gap is not shown, so no feature is named",
        "both": "related to it: {features}; " + _MOVING + ". Related is not the cause",
        "features": "related to it: {features}. Related is not the cause",
        "moving": "no feature is shown to be related to it; " + _MOVING,
        "none": "no feature is shown to be related to it",
    },
}
