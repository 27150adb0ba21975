"""What a reader of verdicts must know of the data: base rates, decisions all alike, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.groups import label
from ..data.labels import Label
from ..data.sums import sums_of
from ..results.result import Finding
from ..results.words import listed
from .findings import BaseRate, LensFinding, QuestionFinding
from .questions import Attribute
from .sentences import part, sentence

#: A model that decides alike for more people than this has equal rates for nothing.
_ALIKE = 0.99
#: Base rates that differ by more than this cannot go with all kinds of equality at once.
_UNLIKE = 0.05
#: Shares below this are sums of rounded numbers.
_ROUNDED = 1e-9

Named = Callable[[str, Any], str]


def base_rates(attributes: Sequence[Attribute], pos_label: Label) -> tuple[BaseRate, ...]:
    """Return labels and decisions of all groups of single attributes."""
    found = []
    for one in attributes:
        if one.is_intersection:
            continue
        present = [name for name in ("y_true", "y_pred") if name in one.table.roles]
        try:
            cells = one.table.cells(columns=present, pos_label=pos_label)
        except ValueError:
            # Labels that are no 0 and 1: of regressions, whose metrics read numbers.
            cells, present = one.table.cells(columns=()), []
        keys = list(cells.group_sizes())
        for i, key in enumerate(keys):
            inside = np.array([group == key for group in cells.groups])[cells.group]
            n = cells.count[inside]
            shares = {name: float(n @ getattr(cells, name)[inside] / n.sum()) for name in present}
            found.append(
                BaseRate(
                    attribute=one.name,
                    group=label(keys[i]),
                    n_rows=int(n.sum()),
                    base_rate=shares.get("y_true", math.nan),
                    selection_rate=shares.get("y_pred", math.nan),
                    is_crude=bool(one.table.strata),
                )
            )
    return tuple(found)


def by_weight(
    rates: Sequence[BaseRate], attributes: Sequence[Attribute], pos_label: Label
) -> tuple[BaseRate, ...]:
    """Return base rates of rows as those of people: by weight, where rows have weights."""
    found = {(rate.attribute, rate.group): rate for rate in rates}
    for one in attributes:
        if one.is_intersection or "sample_weight" not in one.table.roles:
            continue
        of_attribute = [rate for rate in rates if rate.attribute == one.name]
        known = {
            "y_true": any(not math.isnan(rate.base_rate) for rate in of_attribute),
            "y_pred": any(not math.isnan(rate.selection_rate) for rate in of_attribute),
        }
        present = [name for name, is_known in known.items() if is_known]
        rows = one.table.rows(columns=present, pos_label=pos_label)
        assert rows.weight is not None
        n_groups = len(rows.cells.groups)
        people = sums_of(rows.group, rows.weight, n_groups)
        sums = {
            name: sums_of(rows.group, rows.weight * rows.columns[name], n_groups)
            for name in present
        }
        for at, key in enumerate(rows.cells.groups):
            n = float(people[at])
            shares = {name: float(total[at]) / n for name, total in sums.items() if n > 0}
            place = (one.name, label(key))
            if place not in found:
                continue  # people without a group
            found[place] = replace(
                found[place],
                weight=n,
                base_rate=shares.get("y_true", math.nan),
                selection_rate=shares.get("y_pred", math.nan),
            )
    return tuple(found.values())


def notes_of_flags(attributes: Sequence[Attribute]) -> Iterator[str]:
    """Say that an attribute of 0 and 1 compares one group with everyone else."""
    flags = [one for one in attributes if not one.is_intersection and set(one.groups) == {0, 1}]
    for one in flags:
        no, yes = sorted(one.groups)
        name = one.name
        yield sentence("flag", attribute=name, yes=yes, same_attribute=name, no=no)
    if len(flags) > 1:
        yield sentence("several_flags")


def notes_of_alike(rates: Sequence[BaseRate]) -> Iterator[str]:
    """Warn of a model that decides the same way for nearly everybody."""
    first = next(iter(rates), None)
    if first is None:
        return
    of_one = [one for one in rates if one.attribute == first.attribute]
    # Groups of no weight have no rate, and no part.
    known = [one for one in of_one if one.n_people > 0]
    n = math.fsum(one.n_people for one in known)
    share = math.fsum(one.selection_rate * one.n_people for one in known) / (n or math.nan)
    most = max(share, 1 - share)
    if most > _ALIKE:
        yield sentence("decides_alike", share=f"{100 * most:.1f} %")


def notes_of_refusals(findings: Sequence[QuestionFinding], named: Named) -> Iterator[str]:
    """Warn of ratios of approvals that hide refusals."""
    for one in findings:
        is_ratio = one.tolerance is not None and one.tolerance.scale == "ratio"
        if not (one.binding and is_ratio and one.is_share and one.pairs):
            continue
        assert one.tolerance is not None
        # Within strata the values are those of the comparison, which crude ones may contradict.
        ends = one.extremes
        if len(ends) < 2:
            continue
        (low, low_value), (high, high_value) = ends
        refused = _refused(low_value), _refused(high_value)
        if not (low_value > 0.5 and refused[0] * one.tolerance.value > refused[1]):
            continue
        who, other = (named(one.attribute, group.group) for group in (low, high))
        is_selection = one.metric == "selection_rate"
        about = "decisions" if is_selection else "others"
        yield sentence(
            "refusals" if refused[1] else "refusals_of_one",
            attribute=one.attribute,
            refused=part("refused", about, metric=one.description),
            times=f"{refused[0] / refused[1]:.1f}" if refused[1] else "",
            who=who,
            who_share=f"{100 * refused[0]:.1f} %",
            other=other,
            other_share=f"{100 * refused[1]:.1f} %",
            metric=one.description,
        )


def _refused(value: float) -> float:
    """Return what a share leaves; values within strata are sums that are rounded."""
    left = 1 - value
    return left if left > _ROUNDED else 0.0


def notes_of_conflict(
    findings: Sequence[QuestionFinding], rates: Sequence[BaseRate], policy_name: str, named: Named
) -> Iterator[str]:
    """Say that base rates differ where binding and informative criteria disagree."""
    for attribute in dict.fromkeys(one.attribute for one in rates):
        tested = {
            repr(group.group)
            for one in findings
            if one.attribute == attribute
            for group in one.tested
        }
        known = [
            one
            for one in rates
            if one.attribute == attribute
            and repr(one.group) in tested
            and not math.isnan(one.base_rate)
        ]
        words = {
            binding: {
                one.verdict
                for one in findings
                if one.attribute == attribute and one.binding is binding
            }
            & {"pass", "fail"}
            for binding in (True, False)
        }
        disagree = words[False] and words[True] and words[False] != words[True]
        if len(known) < 2 or not disagree:
            continue
        low, high = (pick(known, key=lambda rate: rate.base_rate) for pick in (min, max))
        if high.base_rate - low.base_rate > _UNLIKE:
            yield sentence(
                "base_rates_differ",
                attribute=attribute,
                low_rate=f"{100 * low.base_rate:.0f} %",
                low=named(attribute, low.group),
                high_rate=f"{100 * high.base_rate:.0f} %",
                high=named(attribute, high.group),
                policy=policy_name,
                asked=_asked(findings),
            )


def notes_of_lenses(others: Sequence[LensFinding]) -> Iterator[str]:
    """Say in one line which other lenses are silent; the findings have each reason."""
    silent: dict[str, list[str]] = {}
    for one in others:
        if one.reason and not (one.binding or one.told):
            silent.setdefault(one.lens, []).append(one.attribute)
    if silent:
        lenses = [
            f"{lens} by {listed(names)}" if any(names) else lens for lens, names in silent.items()
        ]
        yield sentence("lenses_silent", lenses="; ".join(lenses))


def warnings_of_lenses(
    others: Sequence[LensFinding], results: Mapping[str, Finding], notes: Sequence[str]
) -> Iterator[str]:
    """Repeat all warnings of lenses that are no notes yet, each with what it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for one in others:
        for warning in one.warnings:
            about.setdefault((one.lens, warning), []).append(one.attribute)
    for name, result in results.items():
        lens, _, what = name.partition(": ")
        told = result.warnings if lens == "permutation" else ()
        said = (one for one in told if not any(note.endswith(one) for note in notes))
        for warning in said:
            about.setdefault((lens, warning), []).append(what)
    for (lens, warning), names in about.items():
        about_it = listed(list(dict.fromkeys(names)))
        yield sentence("lens_warning", lens=lens, about=about_it, warning=warning.removesuffix("."))


def _asked(findings: Sequence[QuestionFinding]) -> str:
    """Return what binds, in words."""
    binding = dict.fromkeys(one.description for one in findings if one.binding)
    return listed([f"an equal {description}" for description in binding])
