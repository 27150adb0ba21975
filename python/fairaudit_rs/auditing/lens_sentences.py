"""The templates of sentences about other lenses, used to write and to read the text of audits."""

from __future__ import annotations

from ..extremes.problem import PERSONS
from .criterion import LENS_WORDS

#: The fair metric under which the individual lens has its limits.
OF_POLICY = "under the metric of this policy"
OF_ROWS = "under every metric that the rows allow"
_TITLES = {lens: words.partition(",")[0] for lens, words in LENS_WORDS.items()}
_GROWS = (
    "between people who differ in little but what tells groups apart the loss grows to {growth} "
    "times itself under {likeness}, "
)
_FLIP = "what one row in {horizon} would gain at least by a flip is "
_DIFFER = "({limits}, {level}): that worst cases differ is {differ_shown}"
_INFLUENCE = (
    "the {rate} of {first} less that of {second} is {gap}, and the data allow {low} to {high} "
    "({level}): {features_found}"
)
_MOVING = "with all else held fixed the decisions move with {moving}"

#: By name, as in `sentences.SENTENCES`.
LENSES = {
    # -- informational lenses --
    "others_inform": "Other lenses, which inform and do not bind:",
    "lens_told": "- {lens}, {attribute}: {lens_found}{lens_note}.",
    "lens_warning": "{lens}, {about}: {warning}",
    # -- a fail --
    "fail_projection": (
        "{attribute}: scores depart from {notion} by more than the tolerated {tolerance} between "
        "{first} and {second}, even after allowing for chance (a gap of {gap} is seen; "
        "{confidence}){lens_note}."
    ),
    "fail_individual": (
        "{attribute}: between people who {who_are} the loss grows to {growth} times itself. That "
        "is more than the tolerated {tolerance} even after allowing for chance (at least {bound}, "
        "{confidence}{of_rows}){lens_note}."
    ),
    "fail_gap": (
        "{attribute}: {quantity} is {low_value} for {low_group} ({low_n} rows that count) and "
        "{high_value} for {high_group} ({high_n} rows that count). The difference of {gap} is "
        "larger than the tolerated {tolerance} even after allowing for chance (at least {bound}, "
        "{confidence}){lens_note}.{goes_with}"
    ),
    # -- a pass --
    "pass_lens": (
        "{attribute}, {lens_title}: shown to be within its tolerance: the most that the data leave "
        "possible is {bound}{alone} ({between}by {same_attribute}; tolerated: {tolerance}; "
        "{confidence}){lens_note}."
    ),
    # -- an open verdict --
    "undecided_projection": (
        "- {attribute}, {lens_title}: that scores depart from {notion} by more than the tolerated "
        "{tolerance} is not shown (gap seen {gap}, {first} and {second}). The projection never "
        "shows that they do not, so it cannot pass{lens_note}."
    ),
    "undecided_lens": (
        "- {attribute}, {lens_title}: {gap} seen{seen_of}; the data allow up to {bound}{alike_as}; "
        "tolerated {tolerance}. {remark}."
    ),
    "lacking_lens": "- {of_attribute}{lens_title}: not measurable: {reason}.",
    "silent_lens": "nothing is said about some groups of {attribute} by the lens {lens}: {reasons}",
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
        "of_policy": f"are alike {OF_POLICY}",
        "fitted": "differ in little but what tells groups apart",
    },
    "of_rows": {"of_rows": f", {OF_ROWS}"},
    "alike": {"of_policy": OF_POLICY, "of_rows": OF_ROWS},
    "alike_as": {"alike_as": " {alike}"},
    "alone": {"alone": ", for this attack alone, {alike}"},
    "quantity": {
        "influence": "the {rate}",
        "extremes": "what the worst cases would gain at least by a flip",
    },
    "goes_with": {"goes_with": " {features}."},
    "between": {"between": "{first} and {second} "},
    "seen_of": {
        "seen_of": " ({high_group} {high_value} of {high_n}, {low_group} {low_value} of {low_n})"
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
        "unknown_rows": "how many rows would tell is not known",
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
            _FLIP + "highest in {worst}, {worst_level}; of {n_groups} groups {first} "
            "({first_level}) and {second} ({second_level}) differ most clearly, by {gap} " + _DIFFER
        ),
    },
    "differ_shown": {"shown": "shown", "not_shown": "not shown, which is no evidence of equality"},
    # Reading takes the first template that matches, so longer ones come first.
    "features_found": {
        "no_direction": "no direction is shown, and so no feature that goes with it",
        "both": "shown to go with it: {features}; " + _MOVING + ". Not that they cause it",
        "features": "shown to go with it: {features}. Not that they cause it",
        "moving": "no feature is shown to go with it; " + _MOVING,
        "none": "no feature is shown to go with it",
    },
}
