"""Files that appear whole or not at all: the one way in which anything is written.

What stood under the name stays until the new content is complete, and its links and its mode stay
as they are. What is no regular file (a device, a named pipe, standard output) is written in place.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import ArgumentTypeError, FileError

#: Folders of handles: what they list is open already, and no place for a new file.
_HANDLES = ("/proc/", "/dev/fd/")
_MOST_LINKS = 40
#: A file that nobody has made before, under a name that is no link.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NEW |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def check_target(name: str, path: str | Path) -> None:
    """Refuse a file that cannot be written, before the work whose outcome it shall hold.

    ``name`` is what messages call the path.
    """
    with _naming_errors(name, path):
        _target(name, path)


def write_file(name: str, path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Write what ``write`` puts into a binary file: all of it or nothing."""
    # Rendered first: an error in it touches no file, and a reader of a pipe gets all of it.
    content = io.BytesIO()
    write(content)
    with _naming_errors(name, path):
        target = _target(name, path)
        if target.in_place:
            # Standard output may be a regular file that has been written to: that stays.
            with target.path.open("ab" if target.regular else "wb", 0) as file:
                _write_all(file, content)
        else:
            _replace(target, content)


def write_text(name: str, path: str | Path, text: str) -> None:
    """Write a text as UTF-8; what has no code there (halves of surrogates) is escaped."""
    write_file(name, path, lambda file: file.write(text.encode("utf-8", "backslashreplace")))


def _replace(target: _Target, content: io.BytesIO) -> None:
    """Write beside the target under a name that nobody can know, then take its place."""
    scratch = target.path.with_name(f".fairaudit-{secrets.token_hex(12)}.tmp")
    try:
        # A file that replaces a secret one is never open to others; a new one is as umask says.
        created = os.open(scratch, _NEW, 0o666 if target.mode is None else 0o600)
        with open(created, "wb", 0) as file:  # noqa: PTH123 (a descriptor)
            _write_all(file, content)
        if target.mode is not None:
            scratch.chmod(target.mode)
        scratch.replace(target.path)
    finally:
        scratch.unlink(missing_ok=True)


def _write_all(file: io.RawIOBase | BinaryIO | io.FileIO, content: io.BytesIO) -> None:
    """Write everything: a pipe may take a part at a time."""
    rest = content.getbuffer()
    while rest:
        rest = rest[file.write(rest) or 0 :]


@dataclass(frozen=True)
class _Target:
    """Where a name leads to; the mode is that of a file that is there."""

    path: Path
    mode: int | None
    regular: bool
    in_place: bool


def _target(name: str, given: object) -> _Target:
    """Return where a name leads to when something can be written there."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise ArgumentTypeError(f"{name} is {given!r}; accepted: the path of a file", argument=name)
    path, is_handle = _follow(name, Path(given))
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise FileError(f"{name} is {given}, which is a directory; accepted: a file", argument=name)
    if found is not None and not os.access(path, os.W_OK):
        raise FileError(
            f"{name} is {given}, which may not be written; accepted: another file", argument=name
        )
    regular = found is not None and stat.S_ISREG(found.st_mode)
    in_place = found is not None and (is_handle or not regular)
    if not in_place and not path.parent.is_dir():
        raise FileError(f"{name} is {given}; its directory does not exist", argument=name)
    if not in_place and not os.access(path.parent, os.W_OK | os.X_OK):
        raise FileError(f"{name} is {given}; its directory may not be written", argument=name)
    mode = None if found is None else stat.S_IMODE(found.st_mode)
    return _Target(path=path, mode=mode, regular=regular, in_place=in_place)


def _follow(name: str, given: Path) -> tuple[Path, bool]:
    """Return where links lead to, and whether it is the handle of an open file."""
    path = given
    for _ in range(_MOST_LINKS):
        path = path.parent.resolve() / path.name
        if str(path).startswith(_HANDLES) and path.exists():
            return path, True
        if not path.is_symlink():
            return path, False
        path = path.parent / path.readlink()
    raise FileError(
        f"{name} is {given}, a link that leads back to itself; accepted: a file", argument=name
    )


class _naming_errors:  # noqa: N801 (a context manager that reads like a phrase)
    """Turns errors of the system into ours, with the name and the path."""

    def __init__(self, name: str, path: object) -> None:
        self.name, self.path = name, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileError | ArgumentTypeError):
            return
        # ValueError: a zero byte, or a character that no path has; RuntimeError: links in a circle.
        if isinstance(error, OSError | ValueError | RuntimeError):
            reason = getattr(error, "strerror", None) or error
            raise FileError(
                f"{self.name} is {str(self.path)!r}, which cannot be written: {reason}",
                argument=self.name,
            ) from error
