"""Checks of keys and lists of texts in policies; errors suggest the nearest known key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError


def argument_of(name: str) -> str:
    """Return the argument of a name that messages use, such as "bands of 'age'"."""
    return name.partition(" ")[0]


def check_names(name: str, value: object) -> tuple[str, ...]:
    """Return a sequence of different texts as a tuple."""
    argument = argument_of(name)
    if not arguments.is_listing(value) or isinstance(value, Mapping):
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: a list of texts", argument=argument
        )
    names = tuple(value)
    for text in names:
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"{name} holds {text!r}; accepted: a list of texts", argument=argument
            )
        if names.count(text) > 1:
            raise ArgumentError(f"{name} holds {text!r} twice. List it once.", argument=argument)
    return names


def known_keys(
    where: str, content: object, accepted: Iterable[str], argument: str = "content"
) -> None:
    """Refuse content that is not a table, and unknown keys; the error names the nearest key."""
    if not isinstance(content, Mapping):
        raise ArgumentTypeError(
            f"{where} is {content!r}; accepted: a table of keys and values", argument=argument
        )
    accepted = list(accepted)
    for key, value in content.items():
        if key not in accepted:
            raise unknown_key_error(where, key, value, accepted)


def unknown_key_error(
    where: str, key: object, value: object, accepted: Iterable[str]
) -> ArgumentError:
    """Return the error about an unknown key."""
    accepted = list(accepted)
    shown = ", ".join(map(repr, accepted))
    return ArgumentError(
        f"{key} is not a key of {where} (its value is {value!r}); "
        f"{arguments.suggest_nearest(str(key), accepted)}"
        f"accepted: {shown}",
        argument=str(key),
    )
