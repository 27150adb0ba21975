"""The command `fairaudit metrics`, which lists the metrics."""

from __future__ import annotations

import json

import click

import fairaudit_rs as fa

from .command import command
from .messages import print_text


@command("metrics")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_metrics(as_json: bool) -> None:
    """List all metrics, with their formulas and short names.

    \b
    fairaudit metrics
    fairaudit metrics --json > metrics.json
    """
    rows = fa.metrics.table()
    if as_json:
        print_text(json.dumps(rows, indent=2), whole=True)
    else:
        for row in rows:
            print_text(f"{row['metric']}: {row['meaning']}")
            print_text(f"    = {row['formula']}")
            if row["aliases"]:
                print_text(f"    also {row['aliases']}")
