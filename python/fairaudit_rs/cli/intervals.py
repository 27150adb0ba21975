"""The command `fairaudit intervals`, which computes intervals of metrics and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import fairaudit_rs as fa

from ..literals import IntervalMethod
from . import options
from .command import command
from .show import print_results, write_json


@command()
@options.data
@options.metric_option()
@options.sensitive_or_counts
@options.gap_options(get_args(IntervalMethod), "How intervals are computed.")
def intervals(metric: tuple[str, ...], json_path: Path | None, **given: Any) -> None:
    """Compute intervals of metrics, gaps and ratios in DATA.

    DATA is a Parquet or CSV file, or a glob of them in quotes.

    \b
    fairaudit intervals loans.csv -s sex -m tpr --y-true repaid --y-pred approved
    """
    options.check_files(json=json_path)
    results = options.of_each(fa.intervals, metric, given, of_cells=True)
    print_results(results)
    if json_path is not None:
        write_json(json_path, [result.to_dict() for result in results])
