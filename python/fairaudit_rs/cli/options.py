"""The options that commands share, with one default and one description each.

Whatever its name on the command line, an option has the name and the default of the Python argument
that it sets: so options are passed on by name, and messages can name options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

import click
from click.shell_completion import CompletionItem

from .. import metrics
from ..data.filtered_files import FileOptions
from ..data.text_files import TextFormat
from ..errors import ArgumentError
from ..literals import Missing
from ..writing import check_target
from .counts import as_cells
from .messages import PROGRESS, QUIET, is_quiet, print_note

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def combine_options(*options: Decorator) -> Decorator:
    """Return several options as one, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def path_option(name: str, variable: str, text: str) -> Decorator:
    """Return an option that takes an output file."""
    return click.option(name, variable, type=click.Path(dir_okay=False, path_type=Path), help=text)


def sensitive_option(
    repeated: str = "their intersections are compared", required: bool = True
) -> Decorator:
    """Return the option for the columns of the groups."""
    return click.option(
        "--sensitive",
        "-s",
        "sensitive_features",
        multiple=True,
        required=required,
        help=f"Column of groups, such as sex. Repeat the option for several: {repeated}.",
    )


#: Files of counts have their own attributes, which are used by default.
sensitive_or_counts = sensitive_option(
    "their intersections are compared. Not needed for files that 'fairaudit tabulate' wrote",
    required=False,
)


def _metrics(
    context: click.Context, option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of metrics."""
    del context, option
    return [CompletionItem(name) for name in metrics.names() if name.startswith(incomplete)]


def _files(
    context: click.Context, option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete file names."""
    del context, option
    return [CompletionItem(incomplete, type="file")]


def metric_option(
    text: str = "Name of a metric. May be repeated. 'fairaudit metrics' lists them.",
) -> Decorator:
    """Return the option for metrics by name."""
    return click.option(
        "--metric", "-m", multiple=True, required=True, help=text, shell_complete=_metrics
    )


def strata_option(text: str) -> Decorator:
    """Return the option for columns within whose values groups are compared."""
    return click.option("--strata", multiple=True, help=text)


def group_option(text: str) -> Decorator:
    """Return the option for the groups to compare."""
    return click.option("--group", "groups", multiple=True, help=text)


def adjust_option(words: Sequence[str]) -> Decorator:
    """Return the option for the adjustment of p-values."""
    return click.option(
        "--adjust",
        default="holm",
        show_default=True,
        type=click.Choice(words),
        help="Adjustment of p-values for several pairs of groups.",
    )


def y_pred(text: str = "Column of decisions.") -> Decorator:
    """Return the option for the column of decisions."""
    return click.option("--y-pred", help=text)


def n_resamples(default: int, text: str) -> Decorator:
    """Return the option for the number of replicates."""
    return click.option("--n-resamples", default=default, show_default=True, type=int, help=text)


def json_file(what: str) -> Decorator:
    """Return the options for a JSON file of results, and for printing nothing else."""
    file = path_option("--json", "json_path", f"Write the {what} to this file as JSON.")
    return combine_options(file, quiet)


def _be_quiet(context: click.Context, option: click.Parameter, value: bool) -> None:
    del option
    context.meta[QUIET] = value


def _force_progress(context: click.Context, option: click.Parameter, value: bool) -> None:
    del option
    context.meta[PROGRESS] = value


def shows_progress() -> bool:
    """Return whether to show progress: always on a terminal, elsewhere with --progress."""
    if is_quiet():
        return False
    context = click.get_current_context(silent=True)
    forced = context is not None and bool(context.meta.get(PROGRESS))
    return forced or sys.stderr.isatty()


data = click.argument("data", shell_complete=_files)
quiet = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_be_quiet,
    help="Print only errors.",
)
y_true = click.option("--y-true", help="Column of labels: what actually happened.")
y_score = click.option("--y-score", help="Column of scores.")
clusters = click.option(
    "--clusters",
    multiple=True,
    help="Column of clusters: rows with the same value belong together, such as one person's.",
)
weight = click.option("--weight", "sample_weight", help="Column of weights.")
pos_label = click.option(
    "--pos-label", help="The value of labels and decisions that counts as positive."
)
#: Values of `--missing` with a special meaning, which are not texts of a file.
_MISSING = get_args(Missing)
text_files = combine_options(
    click.option(
        "--missing",
        multiple=True,
        help="Texts that stand for a missing value, such as NA,? Two words are special: with own, "
        "people with a missing value form a group (or stratum) of their own; with keep_texts, "
        "texts such as nan and none are names of groups. May be repeated.",
    ),
    click.option(
        "--delimiter", help="Separator of the columns in text files: a character, or tab."
    ),
    click.option("--encoding", help="Encoding of text files. Default: UTF-8."),
    click.option(
        "--columns", help="Names of the columns, such as a,b,c, for a text file without a header."
    ),
    click.option(
        "--skip-lines",
        type=click.IntRange(0),
        help="Number of lines to skip at the start of text files, above the header.",
    ),
)
where = click.option(
    "--where",
    help="Rows to keep, such as \"age >= 18 and state = 'NY'\". Rows with a missing value in the "
    "condition are dropped.",
)


def _combined(
    context: click.Context, option: click.Parameter, value: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Read attributes that are combined from columns, as race=black,white."""
    del context, option
    found = {}
    for text in value:
        name, _, columns = text.partition("=")
        if not name.strip() or not columns or name.strip() in found:
            raise ArgumentError(
                f"combine is {text!r}; accepted: a new name and columns, as "
                "race=black,white,asian, each name once",
                argument="combine",
            )
        found[name.strip()] = tuple(column.strip() for column in columns.split(","))
    return found


combine = click.option(
    "--combine",
    multiple=True,
    callback=_combined,
    help="Combine columns of 0 and 1 into one attribute, such as race=black,white,asian. May be "
    "repeated.",
)
reading = combine_options(where, combine, text_files)
cut = click.option(
    "--cut",
    help="Count scores from this number on as positive decisions, such as score=0.7. Replaces "
    "--y-pred.",
)
mixed_clusters = click.option(
    "--mixed-clusters",
    default="refuse",
    show_default=True,
    type=click.Choice(["refuse", "split", "drop"]),
    help="Clusters with rows in several groups are an error (refuse), split by group, or dropped.",
)
reference = click.option("--reference", help="Compare every other group with this one.")
excluded_groups = combine_options(
    click.option(
        "--undefined",
        default="raise",
        show_default=True,
        type=click.Choice(["raise", "skip"]),
        help="Groups without a value of the metric are an error (raise), or excluded (skip).",
    ),
    click.option("--min-group-size", type=int, help="Exclude groups with fewer rows than this."),
)
labels = combine_options(y_true, y_pred(), y_score, cut)
labels_or_scores = combine_options(
    y_true, y_pred("Column of decisions; not needed with --y-score."), y_score
)
#: Options on how data are read and which groups are compared.
compared = combine_options(
    pos_label,
    reading,
    reference,
    group_option(
        "A group to compare; all groups by default. May be repeated. 'a & b' is an intersection."
    ),
    excluded_groups,
)
row_columns = combine_options(clusters, mixed_clusters, weight)
alternative = click.option(
    "--alternative",
    default="two-sided",
    show_default=True,
    type=click.Choice(["two-sided", "greater", "less"]),
    help="Direction of the gap that is tested.",
)
confidence_level = click.option(
    "--confidence-level",
    default=0.95,
    show_default=True,
    type=float,
    help="Confidence of intervals; 1 minus the level of tests.",
)
seed = click.option(
    "--seed",
    "rng",
    type=click.IntRange(0),
    help="Seed of random numbers. Default: a random one, which is printed.",
)
counts = click.option(
    "--count", "counts", help="Column of counts, if each row stands for many people."
)
threads = click.option(
    "--threads", "n_threads", type=int, help="Number of threads. Default: all cores."
)
show_progress = click.option(
    "--progress",
    "show_progress",
    is_flag=True,
    expose_value=False,
    callback=_force_progress,
    help="Show progress on standard error, even without a terminal.",
)
computation = combine_options(confidence_level, seed, threads, show_progress)
#: Options of commands about gaps: columns, strata, counts and groups.
gap_columns = combine_options(
    labels,
    strata_option(
        "Compare only rows with the same value of this column, such as a department. May be "
        "repeated."
    ),
    counts,
    compared,
)


def gap_options(methods: Sequence[str], text: str) -> Decorator:
    """Return the options of commands about gaps that offer several methods."""
    method = click.option(
        "--method", default="auto", show_default=True, type=click.Choice(methods), help=text
    )
    replicates = n_resamples(9_999, "Random permutations or resamples of methods that need them.")
    return combine_options(
        gap_columns, method, row_columns, replicates, computation, json_file("results")
    )


def of_each(
    function: Callable[..., Any],
    metric: Sequence[str],
    given: Mapping[str, Any],
    of_cells: bool = False,
) -> list[Any]:
    """Call a function for each metric, with the seed of the first call, and return the results."""
    arguments, results = given_arguments(given), list[Any]()
    if of_cells:
        arguments = as_cells(arguments)
    for name in metric:
        results.append(function(metric=name, progress=shows_progress(), **arguments))
        arguments["rng"] = results[0].seed
    return results


def given_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as Python arguments; options that were not given keep their default."""
    found, filters = arguments_and_filters(given)
    for sentence in filters:
        print_note(sentence)
    return found


def arguments_and_filters(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the options as Python arguments, and how the data were read, in sentences."""
    found = {name: value for name, value in given.items() if value is not None and value != ()}
    missing, form = text_format(found)
    where, cut = found.pop("where", None), found.pop("cut", None)
    combine = found.pop("combine", {})
    if missing is not None:
        found["missing"] = missing
    if cut is not None and "y_pred" in found:
        raise ArgumentError(
            f"cut is {cut!r} and y_pred is {found['y_pred']!r}. Give one of them.",
            argument="cut",
            mentions=("y_pred",),
            code="conflicting-arguments",
        )
    filters: tuple[str, ...] = ()
    if form != TextFormat() or where is not None or cut is not None or combine:
        reading = FileOptions(form=form, where=where, cut=cut, combine=combine)
        opened = reading.opened(found["data"])
        found["data"], filters = opened.frame, opened.told()
        if opened.decision is not None:
            found["y_pred"] = opened.decision
    return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}, filters


def text_format(given: dict[str, Any]) -> tuple[str | None, TextFormat]:
    """Remove the options of text files from ``given``; return `missing` and the text format."""
    words = [word.strip() for text in given.pop("missing", ()) for word in text.split(",")]
    delimiter, columns = given.pop("delimiter", None), given.pop("columns", None)
    form = TextFormat(
        delimiter="\t" if delimiter in ("tab", "\\t") else delimiter,
        encoding=given.pop("encoding", None),
        missing=tuple(word for word in words if word not in (*_MISSING, "")),
        skip_lines=given.pop("skip_lines", None) or 0,
        columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
    )
    own = sorted({word for word in words if word in _MISSING})
    if len(own) > 1:
        raise ArgumentError(
            f"missing is {' and '.join(map(repr, own))}. Give one of them.",
            argument="missing",
            code="conflicting-arguments",
        )
    return own[0] if own else None, form


def check_files(**files: Path | None) -> None:
    """Refuse output files that cannot be written, before the work begins."""
    for name, path in files.items():
        if path is not None:
            check_target(f"--{name}", path)
