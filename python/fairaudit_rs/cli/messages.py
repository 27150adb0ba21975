"""Prints texts of the command line, and names options in messages instead of Python arguments."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Mapping
from typing import IO

import click

from ..data.groups import escape_controls
from ..errors import FairAuditError
from ..rendering.text import wrap_line

#: Keys in the context of a command: whether it is quiet, and whether it shows progress.
QUIET, PROGRESS = "fairaudit.quiet", "fairaudit.progress"
#: The advice in messages about rows with missing values.
_LEAVE_OUT = "leave these rows out"


def print_text(text: str, err: bool = False, whole: bool = False) -> None:
    """Print a text without control characters, because parts of it come from data.

    Lines are wrapped on a terminal, except with ``whole``, for files and commands. A closed output
    (``| head``) is not an error: nothing more is printed, and the exit code does not change.
    """
    if not err and is_quiet():
        return
    text = escape_controls(text, kept="\n")
    try:
        click.echo(text if err or whole else _wrapped(text), err=err)
    except BrokenPipeError:
        _discard(sys.stderr if err else sys.stdout)


def print_note(text: str) -> None:
    """Print a remark, which is not part of the result, to the standard error."""
    if not is_quiet():
        print_text(f"fairaudit: {text}", err=True)


def is_quiet() -> bool:
    """Return whether the command prints only errors (--quiet)."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def width() -> int | None:
    """Return the width of the terminal; None if the output is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _wrapped(text: str) -> str:
    """Return a text wrapped to the width of the terminal, if there is one."""
    most = width()
    if most is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in wrap_line(line, most) or [""])


def _discard(stream: IO[str]) -> None:
    """Redirect a stream and its buffer to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def with_options(
    error: FairAuditError,
    command: click.Command,
    message: str | None = None,
    kept: Collection[str] = (),
) -> str:
    """Return the message of an error, or another, with options instead of arguments.

    Only arguments that the error lists (`argument` and `mentions`) are replaced, except those that
    are ``kept`` because they are keys of a file.
    """
    message = str(error) if message is None else message
    options = {option.name: option for option in command.params if option.name}
    if "where" in options:
        message = message.replace(_LEAVE_OUT, f'{_LEAVE_OUT} (--where "not COLUMN is missing")')
    named = {name: options[name] for name in _named(error) if name in options and name not in kept}
    if not named:
        return message
    return _token(named, error.argument).sub(lambda found: _as_option(found, named), message)


def _token(names: Collection[str], first: str | None) -> re.Pattern[str]:
    """Return the pattern of the names in a message; quoted text and code do not match.

    A name that could be an English word ("metric") is one only at the start, or before "=".
    """
    known = "|".join(names)
    unmistakable = "|".join(name for name in names if "_" in name) or r"(?!)"
    start = rf"(?P<start>\A{first}\b(?!=))|" if first and first in names else ""
    return re.compile(
        start + rf"""(?<!\w)'[^']*'(?!\w)|"[^"]*\""""
        rf"""|(?<![\w.`'"-])(?P<given>{known})=(?>(?P<value>'[^']*'|[\w.+-]*\w)?)(?![("\[])"""
        rf"""|(?<![\w.`'"-])(?P<name>{unmistakable})(?![\w`'"(=]|\.\w)"""
    )


def _named(error: FairAuditError) -> tuple[str, ...]:
    """Return the arguments that the message of an error names."""
    return (*([error.argument] if error.argument else []), *error.mentions)


def _as_option(found: re.Match[str], options: Mapping[str, click.Parameter]) -> str:
    """Return the option for an argument in a message, with its value if there is one."""
    groups = found.groupdict()
    name = groups.get("start") or groups["given"] or groups["name"]
    if name is None:
        return found[0]
    option = options[name]
    value = groups["value"] or ""
    if not value or getattr(option, "is_flag", False):
        return option_name(option)
    if isinstance(option, click.Argument):
        return found[0]
    return f"{option_name(option)} {'none' if value == 'None' else value.strip(chr(39))}"


def option_name(option: click.Parameter) -> str:
    """Return the long name of an option, or the name of an argument."""
    return option.opts[0] if isinstance(option, click.Option) else option.human_readable_name
