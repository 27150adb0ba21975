"""`fairaudit metrics`."""

from __future__ import annotations

import json

import click

import fairaudit_rs as fa


@click.command("metrics")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_metrics(as_json: bool) -> None:
    """List the metrics of the registry."""
    rows = fa.metrics.table()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            click.echo(f"{row['metric']}: {row['meaning']}")
            click.echo(f"    = {row['formula']}")
            if row["aliases"]:
                click.echo(f"    also {row['aliases']}")
