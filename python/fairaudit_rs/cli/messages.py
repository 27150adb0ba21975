"""Messages of the command line: they name options where those of Python name arguments."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import IO

import click

from ..data.groups import printable
from ..results.tables import wrapped

#: Where the context of a command keeps that it is quiet, and that it shows its progress.
QUIET, PROGRESS = "fairaudit.quiet", "fairaudit.progress"
#: What messages say of rows with missing values.
_LEAVE_OUT = "leave these rows out"
#: The argument that a message is about comes first.
_SUBJECT = re.compile(
    r"(?P<name>[a-z]\w*)(?= (?:is|has|holds|names|contains|gives|goes|does|and \w+ are)\b)"
)
#: ``name=`` with a value or none; what stands in quotes, where a word is a value, not a name; and a
#: name that is no English word. Code, as ``name=model.predict(X)`` or ``name=(a >= b)``, is left.
_TOKEN = re.compile(
    r"""\w+=[\w.]*\([^()]*\)"""
    r"""|(?<![\w.`'"-])(?P<given>[a-z]\w*)=(?>(?P<value>'[^']*'|[\w.+-]*\w)?)(?![("\[])"""
    r"""|(?<!\w)'[^']*'(?!\w)|"[^"]*\""""
    r"""|(?<![\w.`'"-])(?P<name>[a-z]\w*_\w+)(?![`'"(=]|\.\w)"""
)


def say(text: str, err: bool = False, whole: bool = False) -> None:
    """Print a text whose parts come from data: it cannot steer the terminal.

    Lines are wrapped on a terminal only, and not those that are ``whole``: of files and commands.
    A reader who has left (``| head``) is no error: nothing more is printed, the work goes on, and
    the exit code is what it would have been.
    """
    if not err and is_quiet():
        return
    text = printable(text, kept="\n")
    try:
        click.echo(text if err or whole else _wrapped(text), err=err)
    except BrokenPipeError:
        _print_nowhere(sys.stderr if err else sys.stdout)


def note(text: str) -> None:
    """Print what is no result on the standard error."""
    if not is_quiet():
        say(f"fairaudit: {text}", err=True)


def is_quiet() -> bool:
    """Whether the command was asked to print nothing but errors."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def width() -> int | None:
    """Return how wide the terminal is that is printed to; None where it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _wrapped(text: str) -> str:
    """Return a text in lines as wide as the terminal, if there is one."""
    most = width()
    if most is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in wrapped(line, most) or [""])


def _print_nowhere(stream: IO[str]) -> None:
    """Let a stream go nowhere, with what it still holds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def with_options(message: str, command: click.Command) -> str:
    """Return a message with the options of a command in place of the arguments that they set."""
    options = {one.name: one for one in command.params if one.name}
    if "where" in options:
        message = message.replace(_LEAVE_OUT, f'{_LEAVE_OUT} (--where "not COLUMN is missing")')
    subject = _SUBJECT.match(message)
    if subject is None or subject["name"] not in options:
        return _TOKEN.sub(_replacement(options), message)
    rest = message[subject.end() :]
    return _shown(options[subject["name"]]) + _TOKEN.sub(_replacement(options), rest)


def _replacement(options: Mapping[str, click.Parameter]) -> Callable[[re.Match[str]], str]:
    """Return what stands in place of a token."""

    def replaced(token: re.Match[str]) -> str:
        option = options.get(token["given"] or token["name"])
        if option is None:
            return token[0]
        value = token["value"] or ""
        if not value or getattr(option, "is_flag", False):
            return _shown(option)
        if isinstance(option, click.Argument):
            return token[0]
        return f"{_shown(option)} {'none' if value == 'None' else value.strip(chr(39))}"

    return replaced


def _shown(option: click.Parameter) -> str:
    return option.opts[0] if isinstance(option, click.Option) else option.human_readable_name
