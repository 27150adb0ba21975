"""`fairaudit init`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..auditing.proposing import Proposal, columns_of, proposed_text
from ..data.reading import Reading
from ..errors import ArgumentError
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
    frame = Reading(form=options.text_format(dict(given))[1]).opened(data).frame
    proposal = Proposal.of(columns_of(frame.head(_MOST_ROWS)))
    if favourable is None and sys.stdin.isatty():
        favourable = _asked(proposal)
    command = _next(data, output, given)
    write_text("--output", output, proposed_text(data, command, proposal, favourable))
    for role, found in proposal.roles.items():
        names = ", ".join(one.name for one in found) or "not found"
        say(f"{role}: {names}")
    say(f"\nwritten to {output}: read it, then run")
    say(f"  {command}", whole=True)


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


def _next(data: str, output: Path, given: Mapping[str, Any]) -> str:
    """Return the command that audits the same file in the same way."""
    words = ["fairaudit", "audit", data]
    if str(output) != POLICY_FILE:
        words += ["--policy", str(output)]
    for name in ("delimiter", "encoding"):
        if given[name] is not None:
            words += [f"--{name}", given[name]]
    for text in given["missing"]:
        words += ["--missing", text]
    return shlex.join(words)
