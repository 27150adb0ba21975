"""The command `fairaudit init`, which proposes a policy file."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..auditing.candidates import FileColumn, columns_of
from ..auditing.proposal import (
    Proposal,
    combinations_of,
    describe_guesses,
    listed_values,
    missing_texts,
    proposed_text,
    question_of,
    reason_without,
    takes_positive_value,
    unsaid_values,
    unused_columns,
)
from ..data.cell_columns import are_cells
from ..data.filtered_files import FileOptions
from ..data.filters import column_text
from ..data.frames import check_columns
from ..data.headers import first_rows, has_names_below, has_no_names
from ..data.text_files import TextFormat, hint_of, separator_in
from ..errors import ArgumentError, DataError
from ..writing import check_target, write_text
from . import options
from .audit import POLICY_FILE
from .command import command
from .counts import warn_of_names
from .messages import print_text

#: Maximum number of rows that are read.
_MOST_ROWS = 1_000_000
#: Maximum number of listed candidates.
_MOST_LISTED = 20


@command()
@options.data
@options.counts
@options.text_files
@click.option("--favourable", help="The value of labels and decisions that people want.")
@click.option(
    "--output",
    "-o",
    default=POLICY_FILE,
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write. An existing file is never changed.",
)
def init(data: str, favourable: str | None, output: Path, **given: Any) -> None:
    """Propose a policy file for DATA: columns and metrics.

    Guesses which columns hold attributes of people, labels, decisions and scores, and writes them
    to a file with the default policy. Comments explain each line. Read the file and choose: the
    favourable value, the tolerances and the groups are your decision. On a terminal the command
    asks. Elsewhere it takes the likeliest answer, and stops if no name or value tells which column
    holds decisions or labels. Nothing is overwritten. Exit code 2: no column of attributes, or none
    of decisions or labels, was found.

    \b
    fairaudit init loans.csv
    fairaudit init loans.csv --favourable granted -o policies/credit.toml
    fairaudit init german.data --delimiter " " --columns status,duration,sex,credit
    """
    if os.path.lexists(output):
        raise ArgumentError(
            f"{output} exists already and is left as it is. Edit it, delete it, or write another "
            "file with -o NAME.",
            argument="output",
        )
    check_target("--output", output)
    given = {**given, "delimiter": _delimiter(data, given)}
    given = {**given, "skip_lines": _lines_above(data, given)}
    columns, read_as_missing = _read_columns(data, given)
    if given["counts"] is None:
        warn_of_names(column.name for column in columns if column.is_number)
    combine = _mutually_exclusive_sets(data, given, combinations_of(columns))
    proposal = Proposal.from_columns(columns, combine=combine)
    _say_candidates(proposal)
    if _is_terminal():
        proposal = _ask_roles(proposal, combine)
        favourable = favourable or _ask_favourable(proposal)
    if proposal.lacking() is not None:
        raise DataError(_explain_missing_roles(data, proposal), argument="data")
    if favourable is not None:
        _check_favourable(favourable, proposal)
    for role, found in proposal.roles.items():
        names = ", ".join(column.name for column in found) or "not found"
        print_text(f"{role}: {names}{'' if found else reason_without(role, proposal)}")
        others = _other_attributes(proposal) if role == "sensitive_features" else []
        if others:
            print_text(f"other columns that could make groups: {', '.join(others)}")
    for line in describe_guesses(proposal):
        print_text(line)
    if read_as_missing:
        print_text(f"read as missing: {', '.join(read_as_missing)}")
    incomplete = _with_missing(proposal)
    for column in incomplete:
        print_text(
            f"{column.n_missing:,} rows have no {column.name}; the command below leaves them out"
        )
    reading = {**given, "missing": (*given["missing"], *read_as_missing)}
    command = _audit_command(
        data, output, reading, [column.name for column in incomplete], proposal.cut
    )
    commands = [command]
    if favourable is None and unsaid_values(proposal):
        commands = [
            f"{command} {_option('favourable', value)}" for value in unsaid_values(proposal)
        ]
    write_text("--output", output, proposed_text(data, commands, proposal, favourable))
    if favourable is None and unsaid_values(proposal):
        print_text(f"\n{question_of(proposal)}")
    elif favourable is None and proposal.decided is not None and proposal.cut is None:
        guess = proposal.favourable()
        if takes_positive_value(proposal):
            print_text(f"favourable: not set; the audit takes {guess}")
        else:
            print_text(f"favourable: {guess} (a guess)")
    print_text(f"\nwritten to {output}: read it, then run{' one of' if len(commands) > 1 else ''}")
    for line in commands:
        print_text(f"  {line}", whole=True)


def _is_terminal() -> bool:
    """Return whether there is a user to ask."""
    return sys.stdin.isatty()


def _delimiter(data: str, given: Mapping[str, Any]) -> str | None:
    """Return the delimiter: the given one, or the one in the first line."""
    form = options.text_format(dict(given))[1]
    if form.delimiter is not None:
        return str(given["delimiter"])
    rows = [] if form.columns else first_rows(data, form)
    found = separator_in(rows[0]) if rows else None
    if found is None:
        return None
    name = "tab" if found == "\t" else found
    print_text(f"columns are separated by {name!r}, as the first line shows")
    return name


def _lines_above(data: str, given: Mapping[str, Any]) -> int | None:
    """Return how many lines above the header to skip; raise an error if there is no header."""
    form = options.text_format(dict(given))[1]
    rows = [] if form.columns else first_rows(data, form)
    if has_no_names(rows):
        raise DataError(
            f"{data} seems to have no line of names: its first line holds values "
            f"({', '.join(map(repr, rows[0][:3]))}, ...). Name its {len(rows[0]):,} columns with "
            "--columns a,b,c, here and in other commands",
            argument="data",
            mentions=("columns",),
        )
    if not has_names_below(rows):
        return form.skip_lines or None
    above = form.skip_lines + 1
    print_text(
        f"line {above:,} is skipped: line {above + 1:,} seems to hold the names of the columns"
    )
    return above


def _read_columns(data: str, given: Mapping[str, Any]) -> tuple[list[FileColumn], tuple[str, ...]]:
    """Return the columns, and the texts (such as "?") that are missing although not given."""
    form = options.text_format(dict(given))[1]
    columns = _columns(data, form, given["counts"])
    names = [column.name for column in columns]
    if are_cells(names):
        raise DataError(
            f"{data} is a table of counts that fairaudit tabulate wrote and needs no policy "
            f"proposal for its columns. Run fairaudit audit {shlex.quote(data)}",
            argument="data",
        )
    hint = hint_of(names)
    if hint:
        raise DataError(f"{data} has only one column, {columns[0].name!r}{hint}", argument="data")
    read_as_missing = () if form.missing else missing_texts(columns)
    if read_as_missing:
        columns = _columns(data, replace(form, missing=read_as_missing), given["counts"])
    return columns, read_as_missing


def _columns(data: str, form: TextFormat, counts: str | None) -> list[FileColumn]:
    frame = FileOptions(form=form).opened(data).frame.head(_MOST_ROWS)
    if counts is not None:
        schema = frame.collect_schema()
        check_columns([counts], schema.names())
        if not schema[counts].is_integer():
            raise ArgumentError(
                f"counts names {counts!r}, which holds {schema[counts]}; accepted: whole numbers",
                argument="counts",
            )
    return columns_of(frame, counts)


def _mutually_exclusive_sets(
    data: str, given: Mapping[str, Any], found: Mapping[str, list[FileColumn]]
) -> dict[str, list[FileColumn]]:
    """Return the sets of 0/1 columns in which no row has more than one 1.

    Print why the other sets are not combined.
    """
    form, exclusive = options.text_format(dict(given))[1], {}
    for name, columns in found.items():
        combine = {name: [column.name for column in columns]}
        try:
            FileOptions(form=form, combine=combine).opened(data)
        except DataError as error:
            print_text(f"not combined to {name}: {error}")
        else:
            exclusive[name] = columns
    return exclusive


def _say_candidates(proposal: Proposal) -> None:
    """List the columns that may hold decisions or labels, with their values."""
    found = proposal.candidates
    if not found:
        return
    print_text("columns that may hold decisions or labels, the likeliest first:")
    for candidate in found[:_MOST_LISTED]:
        column = candidate.column
        numbers = f"numbers from {column.low:g} to {column.high:g}"
        print_text(
            f"  {candidate.name}: {numbers if candidate.cut is not None else listed_values(column)}"
        )
    if len(found) > _MOST_LISTED:
        print_text(f"  and {len(found) - _MOST_LISTED:,} more")
    print_text("")


def _explain_missing_roles(data: str, proposal: Proposal) -> str:
    """Return the message about roles that were not found, with what to do."""
    what = proposal.lacking()
    names = [candidate.name for candidate in proposal.candidates if candidate.cut is None]
    if what == "decisions or labels" and names:
        groups = [column.name for column in proposal.roles["sensitive_features"]]
        words = ["fairaudit audit", shlex.quote(data), _option("sensitive", (groups or ["sex"])[0])]
        words.append(_option("y-pred", names[0]))
        asks = "Name" if _is_terminal() else "Run init on a terminal, where it asks, or name"
        return (
            f"{data} has columns of two values that could be decisions or labels "
            f"({', '.join(names[:_MOST_LISTED])}), but neither names nor values tell which. "
            f"Nothing is written. {asks} the column of decisions in the audit: "
            f"{' '.join(words)} (labels: --y-true COLUMN)"
        )
    if what == "decisions or labels":
        return (
            f"no decisions and no labels were found in {data}, and nothing is written. Name a "
            "column of two values in the audit, as in fairaudit audit DATA -s sex --y-pred "
            "approved, or decide by a number, as in --cut score=0.7"
        )
    return (
        f"no attributes of people, as sex or age, were found in {data}, and nothing is written. "
        "Name a column whose values make groups in the audit, as in fairaudit audit DATA -s sex"
    )


def _with_missing(proposal: Proposal) -> list[FileColumn]:
    """Return the columns of labels, decisions and scores in which values are missing."""
    roles = ("y_true", "y_pred", "y_score")
    found = [proposal.roles[role][0] for role in roles if proposal.roles[role]]
    if proposal.cut is not None and proposal.decided is not None:
        found.append(proposal.decided.column)
    return [column for column in found if column.n_missing]


def _ask_roles(proposal: Proposal, combine: Mapping[str, Sequence[FileColumn]]) -> Proposal:
    """Ask for the roles of columns; the enter key takes the likeliest column."""
    names = [candidate.name for candidate in proposal.candidates]
    found = proposal.decided
    taken = {
        "decisions": found.name if found and found.is_decision else "",
        "labels": "".join(column.name for column in proposal.roles["y_true"])
        or (found.name if found and not found.is_decision else ""),
    }
    if not any(taken.values()):
        # Without a guess by names the likeliest column is proposed.
        taken["decisions"] = next((c.name for c in proposal.candidates if c.cut is None), "")
    for what, text in (
        ("decisions", "Column of decisions by a model or a person (- for none)"),
        ("labels", "Column of labels, what actually happened (- for none)"),
    ):
        taken[what] = _prompted(text, names, taken[what])
    own = ", ".join(feature.name for feature in proposal.roles["sensitive_features"])
    everything = [*(column.name for column in proposal.columns), *combine]
    others = ", ".join(_other_attributes(proposal, [taken["decisions"], taken["labels"]]))
    attributes = _prompted(
        "Columns of groups of people, separated by commas"
        + (f" (others: {others})" if own and others else f" ({others})" if others else ""),
        everything,
        own,
        several=True,
    )
    return Proposal.from_columns(
        proposal.columns,
        decisions=taken["decisions"],
        labels=taken["labels"],
        attributes=[name.strip() for name in attributes.split(",") if name.strip()],
        combine=combine,
    )


def _other_attributes(proposal: Proposal, taken: Sequence[str] = ()) -> list[str]:
    """Return columns that make groups too, but are not proposed as attributes."""
    # Values such as yes and no are those of decisions rather than of groups of people.
    known = {*taken, *(candidate.name for candidate in proposal.candidates if candidate.score)}
    known.update(*proposal.combine.values())
    return [name for name in unused_columns("sensitive_features", proposal) if name not in known]


def _prompted(text: str, names: Sequence[str], default: str, several: bool = False) -> str:
    """Ask for a column until the answer is one of the names, or "-" for none."""
    while True:
        answer = str(click.prompt(text, default=default or "-", err=True)).strip()
        if answer == "-":
            return ""
        wanted = [part.strip() for part in answer.split(",")] if several else [answer]
        unknown = [name for name in wanted if name not in names]
        if not unknown:
            return answer
        print_text(f"{unknown[0]!r} is not among: {', '.join(names)}", err=True)


def _check_favourable(favourable: str, proposal: Proposal) -> None:
    """Refuse a favourable value that the column of decisions or labels does not have."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    values = [str(value) for value, _ in decided[0].values] if decided else []
    if values and proposal.cut is None and favourable not in values:
        raise ArgumentError(
            f"favourable is {favourable!r}; accepted: {' or '.join(values)}, the values of "
            f"{decided[0].name}",
            argument="favourable",
        )


def _ask_favourable(proposal: Proposal) -> str | None:
    """Ask which value is favourable; without an answer return the guess, or None."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    if not decided:
        return None
    values = [str(value) for value, _ in decided[0].values]
    guess = proposal.favourable()
    answer = click.prompt(
        f"Which value of {decided[0].name} do people want ({' or '.join(values)})?"
        f"{' Empty: not now' if guess is None else ''}",
        default="" if guess is None else str(guess),
        show_default=guess is not None,
        err=True,
    )
    return answer or None


def _audit_command(
    data: str,
    output: Path,
    given: Mapping[str, Any],
    incomplete: Sequence[str],
    threshold: str | None,
) -> str:
    """Return the command that audits the same file in the same way."""
    words = ["fairaudit audit", shlex.quote(data)]
    if str(output) != POLICY_FILE:
        words.append(_option("policy", str(output)))
    for name in ("counts", "delimiter", "encoding", "skip_lines", "columns"):
        if given[name] is not None:
            option = "count" if name == "counts" else name
            words.append(_option(option, str(given[name])))
    if given["missing"]:
        words.append(_option("missing", ",".join(given["missing"])))
    if threshold is not None:
        words.append(_option("cut", threshold))
    if incomplete:
        kept = " and ".join(f"not {column_text(name)} is missing" for name in incomplete)
        words.append(_option("where", kept))
    return " ".join(words)


def _option(name: str, value: str) -> str:
    """Return an option for a shell; a value that begins with a dash is joined by "="."""
    between = "=" if value.startswith("-") else " "
    return f"--{name.replace('_', '-')}{between}{shlex.quote(value)}"
