"""The command `fairaudit audit`, which audits data against a policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

import fairaudit_rs as fa

from ..auditing.candidates import MOST_GROUPS
from ..auditing.policy_file import quote_key, read_roles
from ..auditing.values import DEFAULT_BANDS
from ..data.frames import scan_files
from ..errors import ArgumentError
from ..literals import PresetName
from ..writing import check_target, write_text
from . import options
from .command import POLICY_ROLES, command
from .counts import holds_cells, warn_of_counts, written_cells
from .messages import print_note, print_text, width

if TYPE_CHECKING:
    from ..auditing.policy import Policy
    from ..auditing.result import Audit

#: The policy file that is read by default.
POLICY_FILE = "fairaudit.toml"
#: The output format of each file suffix.
FORMATS = {".txt": "text", ".json": "json", ".md": "md"}
#: Options that only other commands have.
_HINTS = dict.fromkeys(
    ("--metric", "-m"),
    "The policy names the metrics of an audit (docs/policy.md); 'fairaudit permutation' tests one.",
) | {"--reference": "The policy names the reference group of an audit (docs/policy.md)."}


class _PresetName(click.Choice[str]):
    """The name of a preset that needs no file."""

    #: It needs a threshold and references.
    WITH_FILE = "fair_lending"

    def __init__(self) -> None:
        super().__init__([name for name in get_args(PresetName) if name != self.WITH_FILE])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a preset; the one that needs a file is refused with what to do."""
        if value == self.WITH_FILE:
            self.fail(
                f"{value} needs a threshold and a reference group for each attribute. Write them "
                "in a file (docs/policy.md) and pass it with --policy.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


@command(hints=_HINTS)
@options.data
@options.sensitive_option("each column is an attribute", required=False)
@options.labels
@click.option(
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path),
    help=f"File with the policy and the columns. Default: {POLICY_FILE}, if it exists.",
)
@click.option("--preset", type=_PresetName(), help="Policy by name, instead of a file.")
@click.option(
    "--favourable",
    help="The value of labels and decisions that people want. Then --pos-label is not needed.",
)
@options.strata_option(
    "Compare only rows with the same value of this column, such as a department. May be repeated."
)
@options.clusters
@options.mixed_clusters
@options.weight
@options.counts
@options.pos_label
@options.reading
@click.option(
    "--evidence",
    default="failures",
    show_default=True,
    type=click.Choice(["failures", "permutation", "none"]),
    help="Run permutation tests besides the verdict, which do not change it: for questions that "
    "fail, for all, or for none.",
)
@options.n_resamples(9_999, "Random permutations or resamples of tests that need them.")
@click.option("--strict", is_flag=True, help="Exit with 3, not 0, if the data do not decide.")
@click.option(
    "--format",
    "form",
    default="text",
    show_default=True,
    type=click.Choice(list(FORMATS.values())),
    help="Format of the printed result.",
)
@click.option(
    "--output",
    "-o",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the result to this .txt, .json or .md file. May be repeated.",
)
@options.quiet
@options.seed
@options.threads
@options.show_progress
@click.pass_context
def audit(
    context: click.Context,
    /,
    policy_path: Path | None,
    preset: str | None,
    favourable: str | None,
    strict: bool,
    form: str,
    output: tuple[Path, ...],
    **given: Any,
) -> None:
    """Audit DATA against a policy and print one verdict.

    DATA is a Parquet or CSV file, or a glob of them in quotes. Columns are named here or in
    fairaudit.toml, which 'fairaudit init' proposes. Exit codes: 0 no fail; 1 the policy is
    violated; 2 the command or the data are wrong; 3 not decided (with --strict).

    \b
    fairaudit audit loans.csv -s sex -s age --y-true repaid --y-pred approved
    fairaudit audit loans.csv --preset four_fifths -s sex --y-pred approved -o report.md
    fairaudit audit counts.parquet --preset parity   (as fairaudit tabulate -o writes them)
    fairaudit audit loans.csv --where "age >= 18" -s sex --y-true repaid --cut score=0.7
    fairaudit audit loans.csv --strict        (policy and columns of fairaudit.toml)
    """
    formats = {path: _format_of(path) for path in output}
    for path in output:
        check_target("--output", path)
    policy, roles, file = _load_policy(policy_path, preset)
    if file is not None:
        context.meta[POLICY_ROLES] = (file, roles)
    combine = {**roles.get("combine", {}), **given.pop("combine")}
    named, filters = options.arguments_and_filters({**given, "combine": combine})
    columns = {**_columns(roles), **named}
    if "counts" not in columns:
        if holds_cells(columns["data"]):
            columns = written_cells(named, _columns(roles))
        else:
            warn_of_counts(columns)
            _warn_of_scores(columns, policy)
            _warn_of_numbers(columns, policy)
    if favourable is not None:
        policy = _with_favourable(favourable, policy, columns)
    found = fa.audit(policy=policy, progress=options.shows_progress(), **columns)
    if found.request is not None:
        request = replace(found.request, data=given["data"], filters=filters)
        found = replace(found, request=request)
    for path, format_ in formats.items():
        write_text("--output", path, _written(found, format_))
    print_text(_written(found, form, width()).rstrip("\n"), whole=form != "text")
    _warn(found, strict)
    context.exit(found.exit_code(strict=strict))


def _format_of(path: Path) -> str:
    if path.suffix not in FORMATS:
        raise ArgumentError(
            f"--output is {path}; accepted: a name that ends in .txt, .json or .md",
            argument="output",
        )
    return FORMATS[path.suffix]


def _load_policy(
    path: Path | None, preset: str | None
) -> tuple[Policy | None, Mapping[str, Any], Path | None]:
    """Return the policy of a file or preset, None for the default; the file's columns; the file."""
    if path is not None and preset is not None:
        raise ArgumentError(
            f"--policy is {path} and --preset is {preset}. Give one of them; the file can name a "
            f'preset itself (preset = "{preset}").',
            argument="policy",
            mentions=("preset",),
            code="conflicting-arguments",
        )
    if preset is not None:
        return fa.Policy.preset(preset), {}, None  # type: ignore[arg-type]
    if path is None:
        path = Path(POLICY_FILE)
        if not path.is_file():
            return None, {}, None
        print_note(f"policy and columns of {path}")
    return fa.Policy.load(path), read_roles(path), path


def _columns(roles: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a policy file, by argument."""
    columns = {name: role for name, role in roles.items() if name != "combine"}
    return {
        name: list(column) if isinstance(column, tuple) else column
        for name, column in columns.items()
    }


def _warn_of_scores(columns: Mapping[str, Any], policy: Policy | None) -> None:
    """Warn of scores outside 0 to 1, unless a tolerance of the policy is in units of the score."""
    name, criteria = columns.get("y_score"), () if policy is None else policy.criteria
    if name is None or any((criterion.tolerance or 0) >= 1 for criterion in criteria):
        return
    if policy is None and "y_pred" not in columns:
        return  # The default policy then tests means of scores, and refuses such scores.
    import polars as pl

    data = columns["data"]
    frame = scan_files(data) if isinstance(data, str) else data
    schema = frame.collect_schema()
    if name not in schema or not schema[name].is_numeric():
        return
    column = pl.col(name)
    ends = frame.select(low=column.min(), high=column.max()).collect(engine="streaming")
    low, high = ends.row(0)
    if low is not None and (low < 0 or high > 1):
        print_note(
            f"warning: y_score is {name!r}, which goes from {low:g} to {high:g}; means of scores "
            "are compared only for scores from 0 to 1"
        )


def _warn_of_numbers(columns: Mapping[str, Any], policy: Policy | None) -> None:
    """Warn of attributes with many different numbers, which are not cut into bands."""
    import polars as pl

    bands = DEFAULT_BANDS if policy is None else policy.bands
    cut = {name.casefold() for name in bands}
    data = columns["data"]
    frame = scan_files(data) if isinstance(data, str) else data
    schema = frame.collect_schema()
    for name in columns.get("sensitive_features", ()):
        if name.casefold() in cut or name not in schema or not schema[name].is_numeric():
            continue
        n = frame.select(pl.col(name).n_unique()).collect(engine="streaming").item()
        if n > MOST_GROUPS:
            print_note(
                f"warning: {name} holds {n:,} different numbers, and each of them is a group. Cut "
                f"numbers into bands in the policy file: bands = {{ {quote_key(name)} = [...] }} "
                "(docs/policy.md)"
            )


def _with_favourable(value: str, policy: Policy | None, columns: Mapping[str, Any]) -> Policy:
    """Return a policy with another favourable value."""
    if policy is None:
        data = columns["data"]
        known = data.columns if isinstance(data, fa.Cells) else columns
        policy = fa.Policy.default(
            labels="y_true" in known, decisions="y_pred" in known, scores="y_score" in known
        )
    return replace(policy, favourable=value)


def _written(found: Audit, form: str, wide: int | None = None) -> str:
    """Return an audit in a format; in text, tables are wrapped to a width."""
    if form == "json":
        return json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n"
    return found.to_markdown() if form == "md" else _text(found, wide)


def _text(found: Audit, wide: int | None) -> str:
    return f"{found.to_text(wide)}\n\nseed {found.seed}\n"


def _warn(found: Audit, strict: bool) -> None:
    """Print a warning if an undecided audit exits with 0."""
    if not strict and found.exit_code(strict=True) not in (0, found.exit_code()):
        what = found.verdict.replace("_", " ")
        some = {"pass": "a pass for some groups only", "no fail": "no fail for some groups only"}
        what = some.get(what, f"{what}, which is no pass")
        print_note(f"warning: {what}; with --strict the exit code is 3")
