r"""Encode results as JSON and decode them again, exactly, whatever the names of groups.

The annotation of a field gives its type. JSON has no NaN, infinity, tuples or keys other than text:

- NaN is null (``"NaN"`` if the field may be None), infinity is ``"Infinity"``; in fields of any
  type they are ``{"$float": "NaN"}``,
- arrays and tuples are lists; a list in a field of any type is ``{"$list": [...]}``,
- keys that are not text (0, True, None, tuples) are written as their JSON, and so is text that
  reads like JSON: 0 is ``"0"``, and ``"0"`` is ``"\"0\""``,
- dates are ``{"$date": "2026-01-31"}``, and other values are written as their text.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import DataError

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Decoders by tag, for values in fields of any type.
_TAGS: dict[str, Callable[[Any], Any]] = {
    "$float": lambda text: _NOT_FINITE[text],
    "$list": lambda entries: [decode_value(entry) for entry in entries],
    "$date": date.fromisoformat,
    "$datetime": datetime.fromisoformat,
}
_PLAIN = (bool, int, float, str)
#: Cached annotations by class: a result can contain thousands of objects of one class.
_HINTS: dict[Any, dict[str, Any]] = {}

T = TypeVar("T")


def encode_value(value: Any, hint: Any = Any) -> Any:
    """Encode a value for JSON; ``hint`` is its annotation."""
    optional, hint = _allows_none(hint), _of_one(hint)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value, hint, optional)
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, Mapping):
        entry_hint = get_args(hint)[1] if get_origin(hint) is dict else Any
        return {_key(key): encode_value(entry, entry_hint) for key, entry in value.items()}
    if hasattr(value, "_fields"):
        return encode_fields(value)
    if isinstance(value, list | tuple):
        each = [
            encode_value(entry, kind)
            for entry, kind in zip(value, _entries(hint, value), strict=True)
        ]
        return {"$list": each} if isinstance(value, list) and get_origin(hint) is not list else each
    if is_dataclass(value):
        return value.to_dict() if hasattr(value, "to_dict") else encode_fields(value)
    if isinstance(value, date):
        tag = "$datetime" if isinstance(value, datetime) else "$date"
        return {tag: value.isoformat()}
    return str(value)


def encode_fields(value: Any, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Encode the fields of a dataclass or named tuple for JSON."""
    hints = _hints_of(type(value))
    return {
        name: encode_value(getattr(value, name), hints[name])
        for name in _fields_of(type(value))
        if name not in without
    }


def decode_value(content: Any, hint: Any = Any) -> Any:
    """Decode a value that `encode_value` wrote; ``hint`` is its annotation."""
    optional = content is None and _allows_none(hint)
    hint = _of_one(hint)
    origin, type_args = get_origin(hint), get_args(hint)
    if optional:
        return None
    if hint is float:
        return _decode_float(content)
    if hint in _PLAIN:
        if not isinstance(content, int | float if hint is int else hint):
            raise DataError(f"holds {content!r}; accepted: {hint.__name__}")
        return content
    if origin is Literal:
        if not isinstance(content, str | int) or content not in type_args:
            words = ", ".join(map(repr, type_args))
            raise DataError(f"holds {content!r}; accepted: {words}")
        return content
    if origin is np.ndarray:
        return _decode_array(content, np.dtype(get_args(type_args[1])[0]))
    if origin is dict:
        return {
            _label(key): decode_value(entry, type_args[1])
            for key, entry in _mapping(content).items()
        }
    if origin in (tuple, list):
        if not isinstance(content, list):
            raise DataError(f"holds {content!r}; accepted: a list")
        each = zip(content, _entries(hint, content), strict=True)
        return origin(decode_value(entry, value) for entry, value in each)
    if isinstance(hint, type) and hasattr(hint, "from_dict"):
        return hint.from_dict(content)
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return hint(**decode_fields(hint, content))
    return _decode_any(content)


def decode_fields(kind: Any, content: Any, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Decode the fields that `encode_fields` wrote, by name."""
    content, hints = _mapping(content), _hints_of(kind)
    return {
        name: decode_entry(content, name, hints[name])
        for name in _fields_of(kind)
        if name not in without
    }


def decode_entry(content: Mapping[str, Any], name: str, hint: Any) -> Any:
    """Decode one entry; errors contain its name."""
    if name not in content:
        raise DataError(
            f"{name} is missing. Pass an unchanged dict of `to_dict`.", argument="content"
        )
    try:
        return decode_value(content[name], hint)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"{name}: {error}", argument="content") from None


def _hints_of(kind: Any) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _fields_of(kind: Any) -> tuple[str, ...]:
    named: tuple[str, ...] | None = getattr(kind, "_fields", None)
    return named or tuple(entry.name for entry in fields(kind))


# -- annotations -------------------------------------------------------------------------------


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _allows_none(hint: Any) -> bool:
    return any(option in (type(None), Any) for option in _options(hint))


def _of_one(hint: Any) -> Any:
    """Return the annotation besides None, or Any if there are several."""
    options = [option for option in _options(hint) if option is not type(None)]
    return options[0] if len(options) == 1 else Any


def _entries(hint: Any, value: Any) -> tuple[Any, ...]:
    """Return the annotations of the entries of a list or tuple."""
    type_args = get_args(hint) if get_origin(hint) in (tuple, list) else (Any, ...)
    if get_origin(hint) is list or type_args[-1] is ...:
        return (type_args[0],) * len(value)
    return type_args


# -- numbers and arrays ------------------------------------------------------------------------


def _not_finite(value: float, hint: Any, optional: bool) -> Any:
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if hint is not float:
        return {"$float": name}
    return None if name == "NaN" and not optional else name


def _decode_float(content: Any) -> Any:
    if content is None:
        return math.nan
    if isinstance(content, str) and content in _NOT_FINITE:
        return _NOT_FINITE[content]
    if not isinstance(content, int | float):
        raise DataError(f"holds {content!r}; accepted: a number")
    float(content)  # raises for an int that is too large
    return content


def _encode_array(array: Any) -> Any:
    if array.ndim > 1 and not array.size:
        return {"$shape": list(array.shape)}
    return encode_value(array.tolist(), _nested(array.ndim))


def _nested(depth: int) -> Any:
    hint: Any = float
    for _ in range(depth):
        hint = list[hint]
    return hint


def _decode_array(content: Any, kind: Any) -> Any:
    if isinstance(content, dict):
        return np.empty(tuple(content["$shape"]), dtype=kind)
    depth, inner = 0, content
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0] if inner else None
    if not depth:
        raise DataError(f"holds {content!r}; accepted: a list of numbers")
    return np.array(decode_value(content, _nested(depth)), dtype=kind)


# -- fields of any type ------------------------------------------------------------------------


def _decode_any(content: Any) -> Any:
    if isinstance(content, list):
        return tuple(decode_value(entry) for entry in content)
    if not isinstance(content, dict):
        return content
    if len(content) == 1:
        (tag, inner), *_ = content.items()
        if tag in _TAGS:
            return _TAGS[tag](inner)
    return {_label(key): decode_value(entry) for key, entry in content.items()}


def _mapping(content: Any) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise DataError(f"holds {content!r}; accepted: an object")
    return content


def _key(label: Any) -> str:
    """Encode a label as the key of a JSON object."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str) and not label.startswith("$") and not _is_json(label):
        return label
    return json.dumps(encode_value(label), allow_nan=False, ensure_ascii=False)


def _label(key: str) -> Any:
    return decode_value(_parsed(key)) if _is_json(key) else key


def _is_json(text: str) -> bool:
    # Lists and objects are not parsed, since they may be nested deeply.
    if text.lstrip()[:1] in ("[", "{", '"'):
        return True
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_refused)


def _refused(name: str) -> Any:
    raise ValueError(name)
