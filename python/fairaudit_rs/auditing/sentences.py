"""The templates of all sentences of an audit, used to write and to read its text.

`fill_sentence` fills a template. `read_sentence` finds the template of a text and returns its
parts, so that a test can compare the text of an audit with an independent computation.
"""

from __future__ import annotations

import re
from functools import cache
from typing import get_args

from ..literals import LensName
from ..report.notes import Note
from .lens_sentences import LENSES, PARTS_OF_LENSES
from .note_sentences import NOTES, PARTS_OF_NOTES
from .rules.sentences import PARTS_OF_RULES, RULES

#: The templates by name. A part in braces is a text; a part in `PARTS` is a template itself, or "".
SENTENCES = {
    "headline": "{verdict}. {n_rows} rows; {policy}{covered}.",
    **NOTES,
    **RULES,
    **LENSES,
    # -- the request --
    "asked_data": "Data: {data}, {rows} (fairaudit_rs {version}).",
    "asked_filter": "Read: {filter}.",
    "asked_columns": "Columns: {columns}.",
    "asked_strata": "Compared within: {strata}.",
    "asked_clusters": "Rows that belong together: {clusters}.",
    "asked_favourable": "Favourable: {favourable}.",
    "asked_excluded": "Excluded: {excluded}.",
    # -- a fail --
    "fail_difference": (
        "{attribute}: the {metric} is {low_value} for {low_group} ({low_n} eligible rows) and "
        "{high_value} for {high_group} ({high_n}){within}. The gap of {gap} exceeds the tolerated "
        "{tolerance}: allowing for chance, it is at least {bound} ({confidence}){worse}."
    ),
    "fail_ratio": (
        "{attribute}: the {metric} of {low_group} is {gap} times that of {high_group} ({low_value} "
        "of {low_n} and {high_value} of {high_n} eligible rows){within}. That is below the "
        "tolerated {tolerance}: allowing for chance, the ratio is at most {bound} "
        "({confidence}){worse}."
    ),
    "largest_observed": (
        "{attribute}, {metric}: the largest observed gap is {gap}, between {low_group} "
        "({low_value}) and {high_group} ({high_value})."
    ),
    "smallest_observed": (
        "{attribute}, {metric}: the smallest observed ratio is {gap}, of {low_group} "
        "({low_value}) to {high_group} ({high_value})."
    ),
    "more_fail": "{n} more questions fail; see the table.",
    "one_more_fails": "1 more question fails; see the table.",
    "fail_is": "A FAIL is evidence of a gap, not of its cause or its legality.",
    # -- a pass --
    "pass_difference": (
        "{attribute}, {metric}: every gap{to} is within the tolerated {tolerance}. Allowing "
        "for chance, the largest possible gap is {bound}, between {first} and {second} "
        "({confidence}){within}.{differ}"
    ),
    "pass_ratio": (
        "{attribute}, {metric}: every ratio{to} is at least the tolerated {tolerance}. Allowing "
        "for chance, the lowest possible ratio is {bound}, of {first} to {second} "
        "({confidence}){within}.{differ}"
    ),
    "more_pass": "{n} more questions pass; see the table.",
    "one_more_passes": "1 more question passes; see the table.",
    "not_binding": "Beyond the tolerance, but not binding: {what}.",
    "pass_is": (
        "A PASS holds for the binding metrics and the tested groups, and for nothing else."
    ),
    # -- an open verdict --
    "neither": (
        "These rows do not decide: they show neither a gap beyond its tolerance, nor that every "
        "gap is within it."
    ),
    "no_verdict": ("There is no verdict: {n} of {n_all} binding questions could not be tested."),
    "some_pass": "Settled: {n} of {n_all} questions pass.",
    "one_passes": "Settled: 1 of {n_all} questions passes.",
    "pairs_shown": (
        "Settled: {attribute}, {metric}: {n} of {n_all} comparisons are within the tolerance."
    ),
    "people_shown": (
        "Settled: {attribute}, {metric}: among {shown} ({share} of people) every gap is within the "
        "tolerance. Comparisons with {groups} are open."
    ),
    "besides": "Besides, {n} questions are open:",
    "besides_one": "Besides, 1 question is open:",
    "undecided_difference": (
        "- {attribute}, {metric}: the observed gap is {gap} ({low_group}: {low_value} of {low_n}; "
        "{high_group}: {high_value} of {high_n}){within}. {differ} The true gap may be as large as "
        "{bound}; tolerated: {tolerance}. {required}"
    ),
    "undecided_ratio": (
        "- {attribute}, {metric}: the observed ratio is {gap} ({low_group}: {low_value} of "
        "{low_n}; {high_group}: {high_value} of {high_n}){within}. {differ} The true ratio may be "
        "as low as {bound}; tolerated: {tolerance}. {required}"
    ),
    "more_undecided": "- {n} more questions are open; see the table.",
    "one_more_undecided": "- 1 more question is open; see the table.",
    "undecided_reason": "- {attribute}, {metric}: open: {reason}.",
    "not_measurable": "- {attribute}, {metric}: not measurable: {reason}.",
    "not_asked": "- {attribute}, {metric}: not asked: {reason}. Therefore there is no pass.",
    "some_not_asked": (
        "There is no PASS: all questions that were asked pass, but some could not be asked."
    ),
}
#: Parts that are templates themselves, by the name of the part.
PARTS = {
    "to": {"to": " to {reference}"},
    **PARTS_OF_NOTES,
    **PARTS_OF_RULES,
    **PARTS_OF_LENSES,
    "covered": {"covered": "; people in tested groups: {shares}"},
    "worse": {"worse": ", to the disadvantage of {group}"},
    # Reading takes the first template that matches, so longer ones come first.
    "within": {
        "within_some_reversed": (
            ", compared within {strata} (without {outside} of these people, whose strata hold only "
            "one of the groups; without strata the order is reversed: {first} {first_crude}, "
            "{second} {second_crude})"
        ),
        "within_reversed": (
            ", compared within {strata} (without strata the order is reversed: {first} "
            "{first_crude}, {second} {second_crude})"
        ),
        "within_some": (
            ", compared within {strata} (without {outside} of these people, whose strata hold only "
            "one of the groups)"
        ),
        "within": ", compared within {strata}",
    },
    "differ": {
        "others_differ": (
            "Chance alone could explain the gap between {first} and {second}, but not that between "
            "{third} and {fourth} ({confidence})."
        ),
        "they_differ": (
            "Chance alone does not explain the gap between {first} and {second} ({confidence})."
        ),
        "only_tolerance_open": (
            "Chance alone does not explain the gap between {first} and {second} ({confidence}). "
            "Only whether it exceeds the tolerance is open."
        ),
        "not_shown_to_differ": (
            "Chance alone could explain the gap between {first} and {second} ({confidence})."
        ),
        "equality_unknown": "Whether {first} and {second} differ at all could not be tested.",
        "small_gap": " Chance alone does not explain this gap, but it is tolerated.",
    },
    "cell": {"cell": "{group}: {value} of {n}"},
    "required": {
        "rows_to_pass": (
            "With {factor} times as many rows of each group (about {n_rows} eligible rows from "
            "{group}, now {n_now}), 8 of 10 audits would show a PASS of this question, if all "
            "values stay as observed."
        ),
        "rows_to_no_fail": (
            "With {factor} times as many rows of each group (about {n_rows} eligible rows from "
            "{group}, now {n_now}), 8 of 10 audits would show every comparison of this question "
            "within the tolerance, if all values stay as observed."
        ),
        "rows_to_fail": (
            "With {factor} times as many rows of each group (about {n_rows} eligible rows from "
            "{group}, now {n_now}), 8 of 10 audits would FAIL, if the true gap is as large as the "
            "observed one. Observed gaps tend to be too large."
        ),
        "no_rows": (
            "If the gap is as observed, no realistic number of rows will decide at this tolerance."
        ),
        "rows_unknown": "The required number of rows is not known.",
        "reason": "{reason}.",
    },
}
_PART = re.compile(r"\{(\w+)\}")
#: Parts that are values of groups, and the pattern of a value.
_VALUES = ("value", "low_value", "high_value", "first_crude", "second_crude")
_LENSES = f"(?:{'|'.join(get_args(LensName))})"
_VALUE = r"-?(?:[\d,]*\.?\d+(?:e[+-]?\d+)?|infinite)(?: %)?|not measurable"


def fill_sentence(name: str, **parts: object) -> str:
    """Fill the template of a sentence."""
    return SENTENCES[name].format(**parts)


def fill_note(
    name: str, *, subject: tuple[str, ...] = (), scope: str = "", **parts: object
) -> Note:
    """Return the sentence of a note; its code is the name of the template."""
    return Note(name.replace("_", "-"), fill_sentence(name, **parts), subject, scope)


def fill_part(of: str, name: str, **parts: object) -> str:
    """Fill the template of a part of a sentence."""
    return PARTS[of][name].format(**parts)


def read_sentence(text: str, metrics: tuple[str, ...] = ()) -> tuple[str, dict[str, str]] | None:
    """Return the name and the parts of a sentence; None if no template matches.

    ``metrics`` are the accepted texts of the part "metric": without them, "share of positive
    decisions of women" can be read in two ways.
    """
    return _read(text, SENTENCES, metrics)


def read_part(of: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Return the name and the parts of a part of a sentence; None if no template matches."""
    return _read(text, PARTS[of])


def _read(
    text: str, table: dict[str, str], metrics: tuple[str, ...] = ()
) -> tuple[str, dict[str, str]] | None:
    for name, template in table.items():
        found = _pattern(template, metrics).fullmatch(text)
        if found is not None:
            return name, found.groupdict()
    return None


@cache
def _pattern(template: str, metrics: tuple[str, ...]) -> re.Pattern[str]:
    """Return the compiled pattern of a template."""
    known = dict.fromkeys(_VALUES, f"(?:{_VALUE})") | {"lens": _LENSES}
    if metrics:
        known["metric"] = f"(?:{'|'.join(map(re.escape, metrics))})"
    return re.compile(_expression(template, known, is_named=True), re.DOTALL)


def _expression(template: str, known: dict[str, str], is_named: bool) -> str:
    """Return a template as a regular expression; a part that is a template itself may be empty."""
    text, end = "", 0
    for found in _PART.finditer(template):
        name = found.group(1)
        inside = known.get(name, ".+?")
        if name in PARTS:
            each = (_expression(word, known, is_named=False) for word in PARTS[name].values())
            inside = f"(?:{'|'.join(each)})?"
        group = f"(?P<{name}>{inside})" if is_named else f"(?:{inside})"
        text += re.escape(template[end : found.start()]) + group
        end = found.end()
    return text + re.escape(template[end:])
