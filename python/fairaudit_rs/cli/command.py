"""The class of all commands, which words errors for people at a terminal.

An error of the package speaks of arguments, arrays and None. A command names its options instead,
with an example, the columns of the file, and the line of the policy file. All of this comes from
the fields of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

import click

from ..auditing.policy_file import read_policy
from ..data.cell_columns import are_cells
from ..data.filtered_files import FileOptions
from ..errors import ColumnError, FairAuditError
from . import options
from .messages import option_name, print_text, with_options

USAGE_ERROR = 2
#: The key in the context of a command for its policy file and the columns that the file names.
POLICY_ROLES = "fairaudit.policy_roles"
#: For each argument that takes a column: what the column holds, and a name that it could have.
_COLUMNS = {
    "sensitive_features": ("groups", "sex"),
    "y_pred": ("decisions", "approved"),
    "y_true": ("labels (what actually happened)", "repaid"),
    "y_score": ("scores", "score"),
    "distance": ("distances to the decision boundary", "distance"),
}
_MOST_LISTED = 30


class TerminalCommand(click.Command):
    """A command whose errors name options and give an example.

    ``hints`` says for options that other commands have what to do instead.
    """

    def __init__(self, *given: Any, hints: Mapping[str, str] | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.hints = dict(hints or {})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; errors of click get an example."""
        try:
            return super().parse_args(ctx, args)
        except FairAuditError as error:
            _stop(error, ctx)
        except click.UsageError as error:
            raise _with_example(error, self, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of this package are printed on one line and exit with 2."""
        try:
            return super().invoke(ctx)
        except FairAuditError as error:
            _stop(error, ctx)

    def example(self) -> str:
        """Return the first example in the help of this command."""
        lines = iter([line.strip() for line in (self.help or "").splitlines()])
        for line in lines:
            if line.startswith(f"fairaudit {self.name}"):
                while line.endswith("\\"):
                    line = line.removesuffix("\\") + next(lines)
                return line.partition("   ")[0]
        return ""


def command(
    name: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], TerminalCommand]:
    """Return a decorator that makes a command of a function."""
    return click.command(name, cls=TerminalCommand, **options)


def _with_example(
    error: click.UsageError, command: TerminalCommand, ctx: click.Context
) -> click.UsageError:
    """Return an error of click with what to do; values that it refuses are explained already."""
    message, advice = error.format_message(), ""
    if isinstance(error, click.NoSuchOption):
        advice = command.hints.get(error.option_name, "")
        if error.option_name == "--favourable" and _has(command, "pos_label"):
            advice = "Pass the positive value of labels and decisions as --pos-label VALUE."
        if advice:
            # Without the options that only look alike.
            message = click.NoSuchOption(error.option_name).format_message()
    elif isinstance(error, click.MissingParameter):
        if error.param is not None and error.param.name == "metric":
            advice = "'fairaudit metrics' lists the names."
    elif isinstance(error, click.BadParameter):
        return error
    elif type(error) is click.UsageError and _has(command, "sensitive_features"):
        advice = "Columns go after an option, such as -s sex."
    parts = [message if message.endswith((".", "?", "?)")) else f"{message}.", advice]
    parts.append(f"Example: {command.example()}" if command.example() else "")
    return click.UsageError(" ".join(filter(None, parts)), ctx)


def _stop(error: FairAuditError, ctx: click.Context) -> NoReturn:
    """Print an error on one line, and end the command."""
    print_text(f"fairaudit: error: {message_of(error, ctx)}", err=True)
    ctx.exit(USAGE_ERROR)


def message_of(error: FairAuditError, ctx: click.Context) -> str:
    """Return the message of an error in words for a terminal."""
    if error.code == "missing-argument":
        message = _missing_columns(error, ctx)
        if message is not None:
            return message
    place = _ErrorPlace(error, ctx)
    if isinstance(error, ColumnError) and place.option is not None:
        several = _several_columns(error, place.option)
        if several is not None:
            return several
    message = str(error)
    advise = _ADVICE.get(error.code) or _ADVICE.get(error.argument or "")
    if advise is not None and error.advice and message.endswith(error.advice):
        message = message.removesuffix(error.advice) + advise(error, place, ctx)
    if error.argument == "pos_label" and ctx.params.get("favourable"):
        message = (
            f"{message.replace('pos_label is', '--favourable is')}. Name the value of the labels "
            "that people want; decisions of 0 and 1 need none."
        )
    message = with_options(error, ctx.command, message, kept=place.keys)
    if error.code == "missing-argument":
        message = message.replace(" is None", " is not given").replace(
            " are None", " are not given"
        )
    return place.name + message


class _ErrorPlace:
    """The place where a wrong value was written: an option, or a line of the policy file."""

    def __init__(self, error: FairAuditError, ctx: click.Context) -> None:
        #: The option with the wrong column.
        self.option: click.Parameter | None = None
        #: What to write before the message: a place and a colon, or nothing.
        self.name = ""
        #: Keys of the policy file in the message, which are no options.
        self.keys: tuple[str, ...] = ()
        #: The name of the column with the wrong value.
        self.column = ""
        path, roles = ctx.meta.get(POLICY_ROLES, (None, {}))
        given = {name: value for name, value in ctx.params.items() if value}
        argument = error.argument
        if isinstance(error, ColumnError) and argument is None:
            argument = next((name for name in given if _names(given[name], error.column)), None)
            if argument is None:
                argument = next((name for name in roles if _names(roles[name], error.column)), None)
            elif argument != "data":
                self.option = _option(ctx.command, argument)
                self.name = f"{option_name(self.option)}: "
        if argument is None:
            return
        column = given.get(argument, roles.get(argument))
        self.column = column if isinstance(column, str) else ""
        if path is None or argument in given:
            return
        file = read_policy(path)
        place = file.place_of("roles", argument) or file.place_of("policy", argument)
        if place is not None:
            is_named = isinstance(error, ColumnError) and error.argument is None
            self.name = f"{place}: " + (f"{argument}: " if is_named else "")
            self.keys = (argument,)


def _names(value: object, column: str) -> bool:
    """Return whether the value of an option or of a role names a column."""
    if isinstance(value, Mapping):
        return any(_names(part, column) for part in value.values())
    return column in value if isinstance(value, list | tuple) else value == column


def _has(command: click.Command, argument: str) -> bool:
    return any(option.name == argument for option in command.params)


def _option(command: click.Command, argument: str) -> click.Parameter:
    return next(option for option in command.params if option.name == argument)


def _several_columns(error: ColumnError, option: click.Parameter) -> str | None:
    """Return the message about an option with several columns at once, such as -s sex,age."""
    parts = [part.strip() for part in error.column.split(",")]
    if len(parts) < 2 or not getattr(option, "multiple", False):
        return None
    if not set(parts) <= set(error.existing):
        return None
    short = option.opts[-1]
    repeated = " ".join(f"{short} {quote(part)}" for part in parts)
    return f"{option_name(option)} is {error.column!r}. Repeat the option: {repeated}"


# -- missing columns ---------------------------------------------------------------------------


def _missing_columns(error: FairAuditError, ctx: click.Context) -> str | None:
    """Return the message about columns that must be named; None if it is about something else."""
    roles = [
        name
        for name in _COLUMNS
        if name in (error.argument, *error.mentions)
        and _has(ctx.command, name)
        and not ctx.params.get(name)
    ]
    if error.argument not in (*roles, "decisions"):
        return None
    named = _columns_of_file(ctx)
    if are_cells(named):
        return None
    if error.argument == "decisions":
        return (
            "an audit needs decisions, or labels with scores. Pass --y-pred COLUMN, such as "
            "--y-pred approved (--cut score=0.7 decides by a number), or --y-true and --y-score."
            + _proposal(ctx, named)
        )
    holds = " or ".join(_COLUMNS[name][0] for name in roles)
    start = f"no column of {holds} is named"
    if error.needed_by:
        start = f"{error.needed_by} needs {holds}"
    shown = [(_option(ctx.command, name).opts[-1], _COLUMNS[name][1]) for name in roles]
    passed = ", or ".join(
        f"{option} COLUMN, such as {option} {example}" for option, example in shown
    )
    path, _ = ctx.meta.get(POLICY_ROLES, (None, {}))
    if path is not None:
        passed += f", or set {' or '.join(roles)} in [roles] of {path}"
    return f"{start}. Pass {passed}.{_proposal(ctx, named)}"


def _proposal(ctx: click.Context, columns: Sequence[str]) -> str:
    """Return sentences on the columns of the data, and for audits on the command that proposes."""
    data = str(ctx.params["data"])
    more = f" and {len(columns) - _MOST_LISTED:,} more" if len(columns) > _MOST_LISTED else ""
    listed = ", ".join(columns[:_MOST_LISTED])
    text = f" Columns of {Path(data).name}: {listed}{more}." if columns else ""
    path, _ = ctx.meta.get(POLICY_ROLES, (None, {}))
    if ctx.command.name == "audit" and path is None:
        text += f" 'fairaudit init {quote(data)}' proposes which to use."
    return text


def _columns_of_file(ctx: click.Context) -> list[str]:
    """Return the columns of the data; none if they cannot be read."""
    given = dict(ctx.params)
    try:
        frame = FileOptions(form=options.text_format(given)[1]).opened(given["data"]).frame
        return list(frame.collect_schema().names())
    except (FairAuditError, OSError):
        return []


# -- advice ------------------------------------------------------------------------------------


def _advise_metric(error: FairAuditError, place: _ErrorPlace, ctx: click.Context) -> str:
    del place, ctx
    problem = str(error).removesuffix(error.advice)
    return f"{'' if problem.endswith('?') else '.'} 'fairaudit metrics' lists all"


def _advise_classes(error: FairAuditError, place: _ErrorPlace, ctx: click.Context) -> str:
    """Return what to do about a column of many numbers in place of labels or decisions."""
    if error.argument != "y_pred":
        return ". So many numbers do not look like labels. Name a column of two values."
    by = f"--cut {place.column or 'score'}=NUMBER"
    cut = f", or decide from a number on with {by}" if _has(ctx.command, "cut") else ""
    return f". So many numbers do not look like decisions. Name scores with --y-score{cut}"


def _advise_scale(error: FairAuditError, place: _ErrorPlace, ctx: click.Context) -> str:
    """Return what to do about scores or labels that are not shares."""
    del ctx
    what = "scores must lie between 0 and 1. Divide them by their largest possible value"
    if error.argument == "y_true":
        what = "labels must be 0 and 1. Name the positive one with --pos-label"
    name = f" (column {place.column})" if place.column else ""
    return (
        f"{name}, but {what}, or use a policy with a tolerance in units of the score "
        "(docs/policy.md)"
    )


def _advise_decisions(error: FairAuditError, place: _ErrorPlace, ctx: click.Context) -> str:
    """Return what to do about a column of scores in place of decisions."""
    if error.argument != "y_pred":
        return error.advice
    cut = f", or in --cut {place.column or 'score'}=NUMBER" if _has(ctx.command, "cut") else ""
    return f" It must hold the decision, 0 or 1; scores belong in --y-score{cut}."


def _advise_favourable(error: FairAuditError, place: _ErrorPlace, ctx: click.Context) -> str:
    del error, place, ctx
    return ". Say which of them people want, with --favourable VALUE"


#: The advice at the end of messages, by the code or the argument of the error.
_ADVICE: Mapping[str, Callable[[FairAuditError, _ErrorPlace, click.Context], str]] = {
    "unknown-metric": _advise_metric,
    "not-classes": _advise_classes,
    "other-scale": _advise_scale,
    "favourable": _advise_favourable,
    "too-many-values": _advise_decisions,
}
