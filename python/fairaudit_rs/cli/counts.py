"""Reads counts of people from files: a column of counts (--count), or from `fairaudit tabulate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import fairaudit_rs as fa

from ..data.cell_columns import are_cells
from ..data.frames import column_names, scan_files
from ..errors import ArgumentError
from .messages import print_note

#: Usual names of columns that hold numbers of people.
_USUAL = {"count", "counts", "freq", "frequency", "n", "n_rows"}
#: The arguments of `tabulate`.
_OF_CELLS = ("y_true", "y_pred", "sensitive_features", "strata", "counts", "pos_label", "missing")
#: The arguments that files from `fairaudit tabulate` make unnecessary, with their options.
_HELD = {
    "y_true": "--y-true",
    "y_pred": "--y-pred",
    "y_score": "--y-score",
    "strata": "--strata",
    "pos_label": "--pos-label",
}


def names_of(data: Any) -> list[str]:
    """Return the names of the columns of data, which is a path or an opened frame."""
    return column_names(data) if isinstance(data, str) else list(data.collect_schema().names())


def holds_cells(data: Any) -> bool:
    """Return whether data were written by `fairaudit tabulate`."""
    return are_cells(names_of(data))


def as_cells(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function, with cells as data if the file has counts.

    Weights, clusters and scores of counted rows are refused, with the reason. Files from
    `fairaudit tabulate` have their own attributes; for other data --sensitive is required.
    """
    is_written = "counts" not in arguments and holds_cells(arguments["data"])
    if "sensitive_features" not in arguments and not is_written:
        raise ArgumentError(
            "--sensitive is missing. Name a column of groups.",
            argument="sensitive_features",
            code="missing-argument",
        )
    if "counts" in arguments:
        for name, option, why in (
            ("sample_weight", "--weight", "the people of a row have no weights of their own"),
            ("clusters", "--clusters", "a row does not say to which clusters its people belong"),
            ("y_score", "--y-score", "a row of counts has labels and decisions"),
        ):
            if name in arguments:
                raise ArgumentError(
                    f"{option} cannot be combined with --count: {why}. Leave it out, or pass data "
                    "with one row for each person.",
                    argument=name,
                    mentions=("counts",),
                    code="conflicting-arguments",
                )
        cells = fa.tabulate(**{k: v for k, v in arguments.items() if k in (*_OF_CELLS, "data")})
        found = {k: v for k, v in arguments.items() if k not in _OF_CELLS} | {"data": cells}
    elif is_written:
        found = written_cells(arguments)
        names = found["data"].sensitive_features
        if "sensitive_features" not in found and len(names) > 1:
            print_note(
                f"groups are those of {' & '.join(names)}, as the counts hold; -s chooses some"
            )
    else:
        return dict(arguments)
    return found | ({"strata": "auto"} if found["data"].strata_names else {})


def written_cells(
    arguments: Mapping[str, Any], of_file: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of a function for a file from `fairaudit tabulate`.

    Its columns replace those of a policy file, ``of_file``; other options are refused.
    """
    data = arguments["data"]
    frame = (scan_files(data) if isinstance(data, str) else data).collect()
    cells = fa.Cells.from_frame(frame)
    found = {**(of_file or {}), **arguments}
    for name, option in _HELD.items():
        given = arguments.get(name)
        if given is not None and given not in (name, [name]):
            shown = ", ".join(given) if isinstance(given, list) else given
            raise ArgumentError(
                f"{option} is {shown!r}, and DATA holds counts with columns of its own (by "
                f"{', '.join(cells.sensitive_features)}; {', '.join(cells.columns)}), whose "
                f"positive value is 1. Leave out {option}.",
                argument=name,
                mentions=("data",),
                code="conflicting-arguments",
            )
        if name in found and given is None:
            print_note(f"{name} is that of the counts, and not {found[name]!r} of the policy file")
        found.pop(name, None)
    if "sensitive_features" in found:
        named = found["sensitive_features"]
        found["sensitive_features"] = [column.removeprefix("group:") for column in named]
    return {**found, "data": cells}


def warn_of_counts(columns: Mapping[str, Any]) -> None:
    """Warn of unused columns that may hold numbers of people."""
    given = [column for role, column in columns.items() if role != "data"]
    used = {name for column in given for name in (column if isinstance(column, list) else [column])}
    warn_of_names(name for name in names_of(columns["data"]) if name not in used)


def warn_of_names(names: Iterable[str]) -> None:
    """Warn of each column with a usual name for numbers of people."""
    for name in names:
        if name.strip().lower() in _USUAL:
            print_note(
                f"warning: every row is read as one person; if column {name!r} holds "
                f"numbers of people, say --count {name}"
            )
