"""Keys and lists of texts in policies: unknown keys are refused with the nearest one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError


def check_names(name: str, value: object) -> tuple[str, ...]:
    """Return a sequence of different texts as a tuple."""
    if not arguments.is_listing(value) or isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: a list of texts", argument=name)
    found = tuple(value)
    for text in found:
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"{name} holds {text!r}; accepted: a list of texts", argument=name
            )
        if found.count(text) > 1:
            raise ArgumentError(f"{name} holds {text!r} twice; accepted: each once", argument=name)
    return found


def known_keys(where: str, content: object, accepted: Iterable[str]) -> None:
    """Refuse what is no dict, and keys that it should not have, with the nearest one."""
    if not isinstance(content, Mapping):
        raise ArgumentTypeError(f"{where} is {content!r}; accepted: a table of keys and values")
    accepted = list(accepted)
    for key, value in content.items():
        if key not in accepted:
            raise unknown_key_error(where, key, value, accepted)


def unknown_key_error(
    where: str, key: object, value: object, accepted: Iterable[str]
) -> ArgumentError:
    """Return the error of a key that is not known."""
    accepted = list(accepted)
    shown = ", ".join(map(repr, accepted))
    return ArgumentError(
        f"{key} is no key of {where} (its value is {value!r}); "
        f"{suggest_nearest(str(key), accepted)}"
        f"accepted: {shown}"
    )


def suggest_nearest(name: str, accepted: Iterable[str]) -> str:
    """Return the question whether the nearest accepted name was meant; "" if none is near."""
    import difflib

    folded = {word.casefold(): word for word in accepted}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f"did you mean {folded[near[0]]!r}? " if near else ""
