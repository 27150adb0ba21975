"""The request of an audit, recorded in its result: data, columns, favourable values, filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._native import __version__
from ..data.cells import Cells
from ..data.equality import EqualByValue
from ..data.labels import label_matches
from ..data.tables import AuditTable
from ..errors import DataError
from ..report.words import join_names
from .policy import Policy
from .sentences import fill_sentence

#: Names of columns in sentences, by argument.
_ROLES = {
    "y_pred": "decisions",
    "y_true": "labels",
    "y_score": "scores",
    "counterfactual_score": "counterfactual scores",
    "sample_weight": "weights",
    "counts": "numbers of people",
}
_DECISIONS = ("y_pred", "y_true")


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditRequest(EqualByValue):
    """The data of an audit and how they were read."""

    #: The file name, or the kind of data.
    data: str
    #: The column of each argument; for an array the name of the argument.
    columns: dict[str, str]
    attributes: tuple[str, ...]
    strata: tuple[str, ...]
    clusters: tuple[str, ...]
    #: The favourable value of decisions and labels, by column.
    favourable: dict[str, str]
    #: Filters of rows and derived columns, in words.
    filters: tuple[str, ...] = ()
    #: Excluded rows, with the reason.
    excluded: tuple[str, ...] = ()
    #: The version of this package.
    version: str = __version__

    @classmethod
    def from_arguments(
        cls,
        *,
        data: Any,
        arguments: Mapping[str, Any],
        table: AuditTable,
        policy: Policy,
        positive: Any,
    ) -> AuditRequest:
        """Return the request of an audit; ``arguments`` has its columns by argument."""
        columns = {
            role: arguments[role]
            if isinstance(arguments.get(role), str) and data is not None
            else role
            for role in _ROLES
            if role in table.roles
        }
        return cls(
            data=_described(data),
            columns=columns,
            attributes=table.feature_names,
            strata=table.strata_names,
            clusters=_names("clusters", arguments, data) if table.clusters else (),
            favourable={
                columns[role]: favourable
                for role in _DECISIONS
                if role in columns
                and (favourable := _favourable(policy, table, role, positive)) is not None
            },
        )

    def lines(self, n_rows: int) -> Iterator[str]:
        """Yield the request as sentences."""
        rows = "1 row" if n_rows == 1 else f"{n_rows:,} rows"
        yield fill_sentence("asked_data", data=self.data, rows=rows, version=self.version)
        for text in self.filters:
            yield fill_sentence("asked_filter", filter=text)
        columns = [f"{_ROLES[role]} {name}" for role, name in self.columns.items()]
        yield fill_sentence(
            "asked_columns",
            columns="; ".join([*columns, f"attributes {join_names(list(self.attributes), 20)}"]),
        )
        for name, value in (("strata", self.strata), ("clusters", self.clusters)):
            if value:
                yield fill_sentence(f"asked_{name}", **{name: join_names(list(value), 20)})
        if self.favourable:
            values = [f"{column} = {value}" for column, value in self.favourable.items()]
            yield fill_sentence("asked_favourable", favourable=", ".join(values))
        if self.excluded:
            yield fill_sentence("asked_excluded", excluded="; ".join(self.excluded))


def _described(data: Any) -> str:
    """Describe data: the name of a file, or the kind of object."""
    if data is None:
        return "arrays"
    if isinstance(data, Cells):
        return "counts (Cells)"
    if isinstance(data, str | Path):
        return str(data)
    if isinstance(data, list | tuple) and all(isinstance(part, str | Path) for part in data):
        return join_names([str(part) for part in data], 3)
    package = type(data).__module__.partition(".")[0]
    return f"a {package} {type(data).__name__}"


def _names(role: str, arguments: Mapping[str, Any], data: Any) -> tuple[str, ...]:
    """Return the columns of an argument; for an array the name of the argument."""
    value = arguments.get(role)
    if isinstance(value, Mapping):
        return tuple(map(str, value))
    names: Sequence[Any] = [value] if isinstance(value, str) else []
    if isinstance(value, list | tuple):
        names = value
    are_names = bool(names) and all(isinstance(name, str) for name in names)
    return tuple(names) if data is not None and are_names else (role,)


def _favourable(policy: Policy, table: AuditTable, role: str, positive: Any) -> str | None:
    """Return the favourable value of labels or decisions; None for numbers without classes."""
    if not table.source.holds_rows:
        return str(policy.favourable or ("0" if policy.punitive else "1"))
    try:
        values = table.values(role)
    except DataError:
        return None
    if policy.favourable is not None:
        is_there = any(label_matches(value, policy.favourable) for value in values)
        return str(policy.favourable) if is_there else None
    if positive is None:
        if not set(values) <= {0, 1}:
            return None
        positive = 1
    if not policy.punitive:
        return str(positive)
    others = [value for value in values if value != positive]
    return str(others[0]) if len(others) == 1 else None
