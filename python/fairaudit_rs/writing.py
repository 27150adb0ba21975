"""Write files atomically: a file appears complete or not at all. All output goes through here.

The old file remains until the new content is complete; links and the mode are preserved. Devices,
named pipes and standard output are written in place.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import ArgumentTypeError, FileError

#: Folders of file handles: their entries are open already, and new files cannot be put there.
_HANDLES = ("/proc/", "/dev/fd/")
_MOST_LINKS = 40
#: Flags to create a new file: fail if the name exists or is a link.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NEW |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def check_target(name: str, path: str | Path) -> None:
    """Raise if a file cannot be written, before the work that produces its content.

    ``name`` is the argument that holds the path.
    """
    with _naming_errors(name, path):
        _target(name, path)


def write_file(name: str, path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Write the output of ``write`` to a file, completely or not at all."""
    # Rendered first: an error in `write` leaves the file alone, and a pipe gets the whole content.
    content = io.BytesIO()
    write(content)
    with _naming_errors(name, path):
        target = _target(name, path)
        if target.in_place:
            # Standard output may be a regular file with content, which must remain.
            with target.path.open("ab" if target.regular else "wb", 0) as file:
                _write_all(file, content)
        else:
            _replace(target, content)


def write_text(name: str, path: str | Path, text: str) -> None:
    """Write a text as UTF-8; lone surrogates are escaped."""
    write_file(name, path, lambda file: file.write(text.encode("utf-8", "backslashreplace")))


def _replace(target: _Target, content: io.BytesIO) -> None:
    """Write to a file with a random name beside the target, then rename it."""
    scratch = target.path.with_name(f".fairaudit-{secrets.token_hex(12)}.tmp")
    try:
        # A file that replaces a private one is never open to others; a new one follows the umask.
        created = os.open(scratch, _NEW, 0o666 if target.mode is None else 0o600)
        with open(created, "wb", 0) as file:  # noqa: PTH123 (a descriptor)
            _write_all(file, content)
        if target.mode is not None:
            scratch.chmod(target.mode)
        scratch.replace(target.path)
    finally:
        scratch.unlink(missing_ok=True)


def _write_all(file: io.RawIOBase | BinaryIO | io.FileIO, content: io.BytesIO) -> None:
    """Write all of the content; a pipe may take only a part at a time."""
    rest = content.getbuffer()
    while rest:
        rest = rest[file.write(rest) or 0 :]


@dataclass(frozen=True)
class _Target:
    """The file that a path leads to; the mode is None if it does not exist yet."""

    path: Path
    mode: int | None
    regular: bool
    in_place: bool


def _target(name: str, raw_path: object) -> _Target:
    """Return the file that a path leads to, after checking that it can be written."""
    if not isinstance(raw_path, str | os.PathLike) or not isinstance(os.fspath(raw_path), str):
        raise ArgumentTypeError(
            f"{name} is {raw_path!r}; accepted: the path of a file", argument=name
        )
    path, is_handle = _follow(name, Path(raw_path))
    try:
        status = path.stat()
    except FileNotFoundError:
        status = None
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise FileError(
            f"{name} is {raw_path}, which is a directory; accepted: a file", argument=name
        )
    if status is not None and not os.access(path, os.W_OK):
        raise FileError(
            f"{name} is {raw_path}, which is write-protected; accepted: a file that can be written",
            argument=name,
        )
    regular = status is not None and stat.S_ISREG(status.st_mode)
    in_place = status is not None and (is_handle or not regular)
    if not in_place and not path.parent.is_dir():
        raise FileError(
            f"{name} is {raw_path}, but its directory does not exist. Create it first.",
            argument=name,
        )
    if not in_place and not os.access(path.parent, os.W_OK | os.X_OK):
        raise FileError(
            f"{name} is {raw_path}, but its directory is write-protected. Choose another one.",
            argument=name,
        )
    mode = None if status is None else stat.S_IMODE(status.st_mode)
    return _Target(path=path, mode=mode, regular=regular, in_place=in_place)


def _follow(name: str, start: Path) -> tuple[Path, bool]:
    """Follow links; return the final path, and whether it is the handle of an open file."""
    path = start
    for _ in range(_MOST_LINKS):
        path = path.parent.resolve() / path.name
        if str(path).startswith(_HANDLES) and path.exists():
            return path, True
        if not path.is_symlink():
            return path, False
        path = path.parent / path.readlink()
    raise FileError(
        f"{name} is {start}, a link that leads back to itself; accepted: the path of a file",
        argument=name,
    )


@contextmanager
def _naming_errors(name: str, path: object) -> Iterator[None]:
    """Turn errors of the operating system into a FileError with the argument and the path."""
    try:
        yield
    except (FileError, ArgumentTypeError):
        raise
    # ValueError: a zero byte or an invalid character in the path; RuntimeError: a link cycle.
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(
            f"{name} is {str(path)!r}, which cannot be written: {reason}", argument=name
        ) from error
