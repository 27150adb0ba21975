"""`fairaudit init`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..auditing.proposing import (
    Column,
    Proposal,
    columns_of,
    missing_texts,
    proposed_text,
    question_of,
)
from ..data.filters import column_text
from ..data.reading import Reading
from ..data.text_files import hint_of
from ..errors import ArgumentError, DataError
from ..writing import check_target, write_text
from . import options
from .audit import POLICY_FILE
from .messages import say

#: So many rows are looked at.
_MOST_ROWS = 1_000_000


@click.command()
@options.data
@options.text_files
@click.option("--favourable", help="The favourable value of labels and decisions.")
@click.option(
    "--output",
    "-o",
    default=POLICY_FILE,
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; one that is there stays as it is.",
)
def init(data: str, favourable: str | None, output: Path, **given: Any) -> None:
    """Look at DATA and propose a policy file.

    Proposes which columns are attributes, labels, decisions and scores, and what to hold the model
    to; writes it with the reason of every line. Nothing is overwritten.

    \b
    fairaudit init loans.csv
    fairaudit init loans.csv --favourable granted -o policies/credit.toml
    """
    if os.path.lexists(output):
        raise ArgumentError(f"--output is {output}, which is there; accepted: a new name")
    check_target("--output", output)
    columns, marked = _looked_at(data, given)
    proposal = Proposal.of(columns)
    if favourable is None and sys.stdin.isatty():
        favourable = _asked(proposal)
    untold = [
        found[0]
        for role, found in proposal.roles.items()
        if role in ("y_true", "y_pred", "y_score") and found and found[0].n_missing
    ]
    reading = {**given, "missing": (*given["missing"], *marked)}
    command = _next(data, output, reading, [one.name for one in untold])
    write_text("--output", output, proposed_text(data, command, proposal, favourable))
    for role, found in proposal.roles.items():
        names = ", ".join(one.name for one in found) or "not found"
        say(f"{role}: {names}")
    if marked:
        say(f"read as missing: {', '.join(marked)}")
    for one in untold:
        say(f"{one.n_missing:,} rows have no {one.name}; the command below leaves them out")
    open_question = question_of(proposal) if favourable is None else None
    if open_question:
        say(f"\n{open_question}")
    say(f"\nwritten to {output}: read it, then run")
    say(f"  {command}", whole=True)


def _looked_at(data: str, given: Mapping[str, Any]) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns, and the texts that are read as missing though nobody said so."""
    form = options.text_format(dict(given))[1]
    columns = columns_of(Reading(form=form).opened(data).frame.head(_MOST_ROWS))
    hint = hint_of([one.name for one in columns])
    if hint:
        raise DataError(f"data from {data} have one column, {columns[0].name!r}{hint}")
    marked = () if form.missing else missing_texts(columns)
    if marked:
        marking = Reading(form=replace(form, missing=marked))
        columns = columns_of(marking.opened(data).frame.head(_MOST_ROWS))
    return columns, marked


def _asked(proposal: Proposal) -> str | None:
    """Ask which value is favourable; no answer leaves it open."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    if not decided:
        return None
    values = [str(value) for value, _ in decided[0].values]
    answer = click.prompt(
        f"What do people want of {decided[0].name} ({' or '.join(values)})? Empty: not now",
        default="",
        show_default=False,
        err=True,
    )
    return answer or None


def _next(data: str, output: Path, given: Mapping[str, Any], untold: Sequence[str]) -> str:
    """Return the command that audits the same file in the same way."""
    words = ["fairaudit", "audit", data]
    if str(output) != POLICY_FILE:
        words += ["--policy", str(output)]
    for name in ("delimiter", "encoding"):
        if given[name] is not None:
            words += [f"--{name}", given[name]]
    if given["missing"]:
        words += ["--missing", ",".join(given["missing"])]
    if untold:
        words += ["--where", " and ".join(f"not {column_text(name)} is missing" for name in untold)]
    return shlex.join(words)
