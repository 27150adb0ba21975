"""The JSON Schema of policy files accepts what is read, and refuses what is not."""

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import fairaudit_rs as fa
from fairaudit_rs import literals
from fairaudit_rs.auditing.schema import policy_schema

from .test_policy_file import OWN

SCHEMA = policy_schema()
KINDS = {"string": str, "boolean": bool, "integer": int, "number": int | float}
KINDS |= {"object": dict, "array": list}


def fits(value, schema):
    """Return whether a value is as a schema of these few words says."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(
        isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in kinds
    ):
        return False
    checks = {
        "enum": lambda words: value in words,
        "anyOf": lambda options: any(fits(value, option) for option in options),
        "required": lambda names: set(names) <= set(value),
        "properties": lambda known: all(fits(value[k], known[k]) for k in value if k in known),
        "additionalProperties": lambda rest: all(
            rest is not False and fits(value[k], rest)
            for k in value
            if k not in schema.get("properties", {})
        ),
        "items": lambda item: all(fits(entry, item) for entry in value),
        "minItems": lambda least: len(value) >= least,
        "minLength": lambda least: len(value) >= least,
        "uniqueItems": lambda _: len(set(value)) == len(value),
        "minimum": lambda least: value >= least,
        "maximum": lambda most: value <= most,
        "exclusiveMinimum": lambda low: value > low,
        "exclusiveMaximum": lambda high: value < high,
    }
    words = set(schema) - {"type", "default", "description", "title", "$schema"}
    return all(checks[word](schema[word]) for word in words)


def test_the_committed_file_is_what_the_classes_say():
    path = Path(__file__).resolve().parents[2] / "docs" / "policy.schema.json"
    assert json.loads(path.read_text(encoding="utf-8")) == SCHEMA


def test_every_field_is_described():
    policy = SCHEMA["properties"]["policy"]["properties"]
    criterion = policy["criterion"]["items"]["properties"]
    assert {entry.name for entry in fields(fa.Criterion)} == set(criterion)
    own = {entry.name for entry in fields(fa.Policy)} - {"criteria", "reason"}
    assert own | {"preset", "ratio", "references", "criterion"} == set(policy)
    for name, value in {**policy, **criterion}.items():
        assert name == "criterion" or len(value["description"]) > 15


@pytest.mark.parametrize("name", [n for n in get_args(literals.PresetName) if n != "fair_lending"])
def test_presets_fit(name):
    assert fits(tomllib.loads(fa.Policy.preset(name).to_toml()), SCHEMA)
    assert fits({"policy": {"preset": name}}, SCHEMA)


def test_lenses_fit():
    text = OWN.replace('metric = "tpr"', 'lens = "extremes"', 1)
    assert fits(tomllib.loads(text), SCHEMA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("tolerance = 0.1", "tolerence = 0.1"),
        ("tolerance = 0.1", "tolerance = '0.1'"),
        ("ratio = 0.8", "ratio = 1.25"),
        ("alpha = 0.01", "alpha = 5"),
        ("alpha = 0.01", "floor = 3"),
        ("[25, 45]", "['a']"),
        ('metric = "tpr"\n', ""),
        ('metric = "tpr"', 'lens = "extreme"'),
        ('name = "credit"', ""),
        ('name = "credit"', "preset = 'eeoc'"),
        ("[roles]", "[rolls]"),
        ("y_true = ", "y_tru = "),
        ("binding = false", "binding = 'no'"),
    ],
)
def test_it_refuses_what_reading_refuses(old, new, tmp_path):
    text = OWN.replace(old, new, 1) if old else OWN
    assert fits(tomllib.loads(text), SCHEMA) == (not old)
    path = tmp_path / "fairaudit.toml"
    path.write_text(text)
    if old and "y_tru" not in old:
        with pytest.raises(fa.errors.FairAuditError):
            fa.Policy.load(path)
