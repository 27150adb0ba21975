"""Builds the tables of Local Law 144 from the people of an audit, by sex and race or ethnicity."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arguments import suggest_nearest
from ...errors import DataError, FairAuditError
from ..refusals import reason_of
from .nyc_ll144 import RACE, RATES, SEX, BiasAudit, ImpactTable, Kind, above_median, impact_tables

if TYPE_CHECKING:
    from ...data.labels import GroupKey, Label
    from ...data.tables import AuditTable
    from ..policy import Policy

#: For each kind of category the option of the rule, and words in the names of columns.
NAMES: Mapping[str, tuple[str, frozenset[str]]] = {
    SEX: ("sex", frozenset({"sex", "gender"})),
    RACE: ("race", frozenset({"race", "ethnicity", "ethnic", "raceethnicity"})),
}
#: For each kind of rate the argument that it needs, and its name in words.
_COLUMNS: Mapping[Kind, tuple[str, str]] = {
    "selection": ("y_pred", "decisions"),
    "scoring": ("y_score", "scores"),
}
_Counts = dict["GroupKey", tuple[int, int]]


def bias_audit(table: AuditTable, policy: Policy, pos_label: Label) -> BiasAudit:
    """Return the tables that Local Law 144 requires, and what is missing for them.

    Sex and race or ethnicity are the attributes that the policy names, or those with such names.
    """
    options = policy.rule_options
    columns, missing = _columns(table.feature_names, options)
    tables: list[ImpactTable] = []
    read: dict[Kind, Callable[[AuditTable], _Counts]] = {
        "selection": lambda known: _selected(known, pos_label),
        "scoring": _above,
    }
    for kind, (role, what) in _COLUMNS.items():
        if not columns:
            break
        if role not in table.roles:
            missing.append(f"{RATES[kind]}s, as the data hold no {what}")
            continue
        try:
            counts = read[kind](table.by(*columns.values()))
        except FairAuditError as error:
            missing.append(f"{RATES[kind]}s: {reason_of(error)}")
            continue
        tables += impact_tables(
            counts,
            column_of_kind=columns,
            kind=kind,
            leave_out=bool(options.get("leave_out", False)),
            is_unknown=policy.is_unknown,
        )
    for option, what in (("date", "the date of the audit"), ("data", "the source of the data")):
        if not options.get(option):
            missing.append(f"{what}; rule_options of the policy take it as {option!r}")
    return BiasAudit(
        date=str(options.get("date", "")),
        source=str(options.get("data", "")),
        tables=tuple(tables),
        columns=columns,
        missing=tuple(missing),
    )


def _columns(names: Sequence[str], options: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the attributes of sex and of race or ethnicity, and what could not be found."""
    found, missing = {}, []
    for what, (option, words) in NAMES.items():
        named = options.get(option)
        if named is not None:
            if named not in names:
                raise DataError(
                    f"rule_options says that {what} is {named!r}, which is not a sensitive "
                    f"feature; {suggest_nearest(str(named), names)}"
                    f"accepted: {', '.join(map(repr, names))}",
                    argument="rule_options",
                )
            found[what] = str(named)
            continue
        fitting = [name for name in names if words & _words(name)]
        if len(fitting) == 1:
            found[what] = fitting[0]
            continue
        why = (
            f"{' and '.join(map(repr, fitting))} could be it"
            if fitting
            else f"no attribute is called so ({', '.join(names)})"
        )
        missing.append(
            f"the tables with {what}: {why}; rule_options of the policy say which one is {option!r}"
        )
    if len(set(found.values())) < len(found):
        raise DataError(
            f"{SEX} and {RACE} are both read from {found[SEX]!r}. Name two attributes "
            "as 'sex' and 'race' in rule_options of the policy.",
            argument="rule_options",
        )
    return found, missing


def _words(name: str) -> set[str]:
    """Return the words of a column name."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower()
    return set(re.split(r"[^a-z]+", parts))


def _selected(table: AuditTable, pos_label: Label) -> _Counts:
    """Count the selected and all people by group, including people of unknown group."""
    cells = table.cells(columns=("y_pred",), pos_label=pos_label)
    total = np.bincount(cells.group, weights=cells.count, minlength=len(cells.groups))
    chosen = np.where(cells.y_pred == 1, cells.count, 0)
    selected = np.bincount(cells.group, weights=chosen, minlength=len(cells.groups))
    return _by_group(cells.groups, selected, total)


def _above(table: AuditTable) -> _Counts:
    """Count the people above the median score by group, including people of unknown group."""
    rows = table.rows(columns=("y_score",), needed_by="the median of all scores")
    above = above_median(rows.columns["y_score"])
    groups = rows.cells.groups
    total = np.bincount(rows.group, minlength=len(groups))
    return _by_group(groups, np.bincount(rows.group[above], minlength=len(groups)), total)


def _by_group(groups: Sequence[GroupKey], selected: Any, total: Any) -> _Counts:
    pairs = zip(selected.tolist(), total.tolist(), strict=True)
    return {key: (int(x), int(n)) for key, (x, n) in zip(groups, pairs, strict=True) if n}
