"""Notes of an audit on its data and lenses: base rates, constant decisions, lenses not run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..data.groups import group_label
from ..data.labels import Label
from ..data.sums import sums_of
from ..report.notes import Note
from ..report.words import join_names
from ..results.result import Finding
from .findings import BaseRate, GroupNamer, LensFinding, QuestionFinding
from .questions import AuditedAttribute
from .sentences import fill_note, fill_part, fill_sentence

#: If more people than this get the same decision, equal rates mean little.
_ALIKE = 0.99
#: If base rates differ by more than this, not all kinds of equality can hold at once.
_UNLIKE = 0.05
#: Shares below this are rounding errors.
_ROUNDED = 1e-9


def base_rates(attributes: Sequence[AuditedAttribute], pos_label: Label) -> tuple[BaseRate, ...]:
    """Return the base rates and selection rates of all groups of single attributes."""
    found = []
    for attribute in attributes:
        if attribute.is_intersection:
            continue
        present = [name for name in ("y_true", "y_pred") if name in attribute.table.roles]
        try:
            cells = attribute.table.cells(columns=present, pos_label=pos_label)
        except ValueError:
            # Labels other than 0 and 1 belong to regressions, which have no base rates.
            cells, present = attribute.table.cells(columns=()), []
        keys = list(cells.group_sizes())
        for i, key in enumerate(keys):
            inside = np.array([group == key for group in cells.groups])[cells.group]
            n = cells.count[inside]
            shares = {name: float(n @ getattr(cells, name)[inside] / n.sum()) for name in present}
            found.append(
                BaseRate(
                    attribute=attribute.name,
                    group=group_label(keys[i]),
                    n_rows=int(n.sum()),
                    base_rate=shares.get("y_true", math.nan),
                    selection_rate=shares.get("y_pred", math.nan),
                    is_crude=bool(attribute.table.strata),
                )
            )
    return tuple(found)


def weight_base_rates(
    rates: Sequence[BaseRate], attributes: Sequence[AuditedAttribute], pos_label: Label
) -> tuple[BaseRate, ...]:
    """Replace the base rates of rows by weighted ones, if rows have weights."""
    found = {(rate.attribute, rate.group): rate for rate in rates}
    for attribute in attributes:
        if attribute.is_intersection or "sample_weight" not in attribute.table.roles:
            continue
        of_attribute = [rate for rate in rates if rate.attribute == attribute.name]
        known = {
            "y_true": any(not math.isnan(rate.base_rate) for rate in of_attribute),
            "y_pred": any(not math.isnan(rate.selection_rate) for rate in of_attribute),
        }
        present = [name for name, is_known in known.items() if is_known]
        rows = attribute.table.rows(columns=present, pos_label=pos_label)
        assert rows.weight is not None
        n_groups = len(rows.cells.groups)
        people = sums_of(rows.group, rows.weight, n_groups)
        sums = {
            name: sums_of(rows.group, rows.weight * rows.columns[name], n_groups)
            for name in present
        }
        for position, key in enumerate(rows.cells.groups):
            n = float(people[position])
            shares = {name: float(total[position]) / n for name, total in sums.items() if n > 0}
            place = (attribute.name, group_label(key))
            if place not in found:
                continue  # people without a group
            found[place] = replace(
                found[place],
                weight=n,
                base_rate=shares.get("y_true", math.nan),
                selection_rate=shares.get("y_pred", math.nan),
            )
    return tuple(found.values())


def notes_of_indicator_attributes(attributes: Sequence[AuditedAttribute]) -> Iterator[Note]:
    """Yield the notes that an attribute of 0 and 1 compares one group with everyone else."""
    flags = [
        attribute
        for attribute in attributes
        if not attribute.is_intersection and set(attribute.groups) == {0, 1}
    ]
    for flag in flags:
        no, yes = sorted(flag.groups)
        name = flag.name
        yield fill_note("flag", scope=name, attribute=name, yes=yes, same_attribute=name, no=no)
    if len(flags) > 1:
        yield fill_note("several_flags")


def notes_of_uniform_decisions(rates: Sequence[BaseRate]) -> Iterator[Note]:
    """Yield a warning if nearly all people get the same decision."""
    first = next(iter(rates), None)
    if first is None:
        return
    of_one = [rate for rate in rates if rate.attribute == first.attribute]
    # Groups of weight 0 have no rate.
    known = [rate for rate in of_one if rate.n_people > 0]
    n = math.fsum(rate.n_people for rate in known)
    share = math.fsum(rate.selection_rate * rate.n_people for rate in known) / (n or math.nan)
    most = max(share, 1 - share)
    if most > _ALIKE:
        yield fill_note("decides_alike", share=f"{100 * most:.1f} %")


def notes_of_refusals(findings: Sequence[QuestionFinding], named: GroupNamer) -> Iterator[Note]:
    """Yield a warning for each ratio of approvals that hides a large ratio of refusals."""
    for finding in findings:
        is_ratio = finding.tolerance is not None and finding.tolerance.scale == "ratio"
        if not (finding.binding and is_ratio and finding.is_share and finding.pairs):
            continue
        assert finding.tolerance is not None
        # Within strata the values are those of the comparison, which crude ones may contradict.
        ends = finding.extremes
        if len(ends) < 2:
            continue
        (low, low_value), (high, high_value) = ends
        refused = _refused(low_value), _refused(high_value)
        if not (low_value > 0.5 and refused[0] * finding.tolerance.value > refused[1]):
            continue
        who, other = (named(finding.attribute, group.group) for group in (low, high))
        is_selection = finding.metric == "selection_rate"
        about = "decisions" if is_selection else "others"
        yield fill_note(
            "refusals" if refused[1] else "refusals_of_one",
            subject=(who, other),
            scope=f"{finding.attribute}, {finding.metric}",
            attribute=finding.attribute,
            refused=fill_part("refused", about, metric=finding.description),
            times=f"{refused[0] / refused[1]:.1f}" if refused[1] else "",
            who=who,
            who_share=f"{100 * refused[0]:.1f} %",
            other=other,
            other_share=f"{100 * refused[1]:.1f} %",
            metric=finding.description,
        )


def _refused(value: float) -> float:
    """Return 1 minus a share; values within strata are sums, whose rounding is removed."""
    complement = 1 - value
    return complement if complement > _ROUNDED else 0.0


def notes_of_conflict(
    findings: Sequence[QuestionFinding],
    rates: Sequence[BaseRate],
    policy_name: str,
    named: GroupNamer,
) -> Iterator[Note]:
    """Yield a note on base rates for attributes whose binding and other criteria disagree."""
    for attribute in dict.fromkeys(rate.attribute for rate in rates):
        tested = {
            repr(group.group)
            for finding in findings
            if finding.attribute == attribute
            for group in finding.tested
        }
        known = [
            rate
            for rate in rates
            if rate.attribute == attribute
            and repr(rate.group) in tested
            and not math.isnan(rate.base_rate)
        ]
        words = {
            binding: {
                finding.verdict
                for finding in findings
                if finding.attribute == attribute and finding.binding is binding
            }
            & {"pass", "fail"}
            for binding in (True, False)
        }
        disagree = words[False] and words[True] and words[False] != words[True]
        if len(known) < 2 or not disagree:
            continue
        low, high = (pick(known, key=lambda rate: rate.base_rate) for pick in (min, max))
        if high.base_rate - low.base_rate > _UNLIKE:
            yield fill_note(
                "base_rates_differ",
                scope=attribute,
                attribute=attribute,
                low_rate=f"{100 * low.base_rate:.0f} %",
                low=named(attribute, low.group),
                high_rate=f"{100 * high.base_rate:.0f} %",
                high=named(attribute, high.group),
                policy=policy_name,
                asked=_binding_criteria(findings),
            )


def notes_of_lenses(others: Sequence[LensFinding]) -> Iterator[Note]:
    """Yield one note with all lenses that did not run; the findings have the reasons."""
    silent: dict[str, list[str]] = {}
    for finding in others:
        if finding.reason and not (finding.binding or finding.told):
            silent.setdefault(finding.lens, []).append(finding.attribute)
    if silent:
        lenses = [
            f"{lens} by {join_names(names)}" if any(names) else lens
            for lens, names in silent.items()
        ]
        yield fill_note("lenses_silent", lenses="; ".join(lenses))


def notes_of_lens_results(
    others: Sequence[LensFinding], results: Mapping[str, Finding], known: Sequence[Note]
) -> Iterator[Note]:
    """Yield the notes of lenses that are not known yet, each with its attributes."""
    about: dict[tuple[str, Note], list[str]] = {}
    for finding in others:
        for note in finding.notes:
            about.setdefault((finding.lens, note), []).append(finding.attribute)
    for name, result in results.items():
        lens, _, what = name.partition(": ")
        for note in result.notes if lens == "permutation" else ():
            if not any(other.text.endswith(note.text) for other in known):
                about.setdefault((lens, note), []).append(what)
    for (lens, note), names in about.items():
        scope = join_names(list(dict.fromkeys(names)))
        warning = note.text.removesuffix(".")
        text = fill_sentence("lens_warning", lens=lens, about=scope, warning=warning)
        yield replace(note, text=text, scope=f"{lens}, {scope}")


def _binding_criteria(findings: Sequence[QuestionFinding]) -> str:
    """Return the binding criteria in words."""
    binding = dict.fromkeys(finding.description for finding in findings if finding.binding)
    return join_names([f"an equal {description}" for description in binding])
