"""The JSON Schema of ``fairaudit.toml``, with which editors check and complete the file.

It is generated from the classes and their docstrings. No function of the package uses it:
``tests/write_docs.py`` writes it to ``docs/policy.schema.json``. Metric names, and rules that
involve several keys (a tolerance or a ratio, but not both), are checked when the file is read.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..literals import PresetName
from .criterion import Criterion
from .policy import Policy
from .policy_file import ROLES
from .policy_metric import PolicyMetric
from .values import LEAST_FLOOR

_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_SHARE = {"exclusiveMinimum": 0, "exclusiveMaximum": 1}
#: Limits that the annotations do not express.
_LIMITS: Mapping[str, Mapping[str, Any]] = {
    "tolerance": {"exclusiveMinimum": 0},
    "ratio": _SHARE,
    "alpha": _SHARE,
    "floor": {"minimum": LEAST_FLOOR},
    "min_coverage": {"exclusiveMinimum": 0, "maximum": 1},
    "strict_coverage": {"exclusiveMinimum": 0, "maximum": 1},
    "name": {"minLength": 1},
    "attributes": {"minItems": 1, "uniqueItems": True},
    "unknown": {"uniqueItems": True},
    "criterion": {"minItems": 1},
}
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?: {4}.*\n)+)", re.MULTILINE)


def policy_schema() -> dict[str, Any]:
    """Return the schema of a file with ``[policy]`` and ``[roles]``."""
    policy = _properties(Policy, without=("criteria", "reason"))
    about = _parameter_descriptions(Policy.preset)
    criterion = _properties(Criterion, without=("fair_metric",))
    criterion["fair_metric"] = {
        **_table(_properties(PolicyMetric)),
        "description": _parameter_descriptions(Criterion)["fair_metric"],
    }
    policy |= {
        "preset": {"enum": list(get_args(PresetName)), "description": about["name"]},
        "ratio": {"type": "number", **_SHARE, "description": about["ratio"]},
        "references": {
            "type": "object",
            "additionalProperties": {"type": ["string", "integer", "number", "boolean"]},
            "description": about["references"],
        },
        "criterion": {
            "type": "array",
            "items": {
                **_table(criterion),
                "anyOf": [{"required": ["metric"]}, {"required": ["lens"]}],
            },
            **_LIMITS["criterion"],
        },
    }
    either = [{"required": ["preset"]}, {"required": ["name", "criterion"]}]
    column = {"type": "string", "minLength": 1}
    columns = {"anyOf": [column, {"type": "array", "items": column, "minItems": 1}]}
    roles: dict[str, Any] = {name: columns if many else column for name, many in ROLES.items()}
    roles["combine"] = {
        "type": "object",
        "additionalProperties": {"type": "array", "items": column, "minItems": 2},
        "description": (
            "Attributes built from columns of 0 and 1, of which at most one is 1 in each row."
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fairaudit.toml",
        "description": (
            "The policy that a model is audited against, and the role of each data column."
        ),
        **_table({"policy": {**_table(policy), "anyOf": either}, "roles": _table(roles)}),
    }


def _table(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _properties(kind: type, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of each field of a dataclass."""
    hints, about = get_type_hints(kind), _parameter_descriptions(kind)
    found = {}
    for entry in fields(kind):
        if entry.name not in without:
            schema = {**_type(hints[entry.name]), **_LIMITS.get(entry.name, {})}
            default = entry.default_factory() if callable(entry.default_factory) else entry.default
            if default is not MISSING and default is not None:
                schema["default"] = _json_value(default)
            found[entry.name] = schema | {"description": about[entry.name]}
    return found


def _json_value(value: Any) -> Any:
    """Return a value for JSON: tuples become lists."""
    if isinstance(value, Mapping):
        return {name: _json_value(entry) for name, entry in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _type(hint: Any) -> dict[str, Any]:
    """Return the schema of an annotation, without None, which stands for an absent key."""
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (Union, types.UnionType):
        options = [_type(part) for part in inside if part is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(inside[1])}
    return {"type": "array", "items": _type(inside[0])}


def _parameter_descriptions(thing: Any) -> dict[str, str]:
    """Return the description of each parameter in a docstring, on one line."""
    entries = _ENTRY.findall((inspect.getdoc(thing) or "") + "\n")
    descriptions: dict[str, str] = {}
    for names, text in entries:
        words = re.sub(r"``([^`]*)``", r"\1", " ".join(text.split()))
        descriptions |= dict.fromkeys(names.split(", "), words)
    return descriptions
