"""500 policies with one thing changed: each is refused by name, or its effect can be seen.

A policy that silently ignores a key, an attribute, a band or a reference turns a check off. Keys
are misspelt, values changed, entries left out, types wrong, in dicts and in files.
"""

import copy
import random

import numpy as np
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing.policy_file import quote_key, value_text
from fairaudit_rs.data.bands import band_names

N_POLICIES = 500
SEED = 28
PARTS = 5

ATTRIBUTES = ("race", "sex", "age")


def people(n=600):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, n)
    return pl.DataFrame(
        {
            "label": label,
            "decision": (rng.random(n) < 0.3 + 0.4 * label).astype(int),
            "score": np.clip(0.3 + 0.4 * label + rng.normal(0, 0.1, n), 0, 1),
            "race": rng.choice(["a", "b", "c", "Unknown"], n, p=[0.4, 0.3, 0.25, 0.05]),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
        }
    )


DATA = people()

OWN = {
    "name": "own",
    "alpha": 0.05,
    "adjustment": "holm",
    "floor": 40,
    "min_coverage": 0.9,
    "strict_coverage": 0.99,
    "favourable": 1,
    "punitive": False,
    "unknown": ["Unknown", "?"],
    "bands": {"age": [30, 50]},
    "lenses": ["permutation", "projection"],
    "intersections": "bind",
    "has_pass": True,
    "description": "a test",
    "criteria": [
        {"metric": "selection_rate", "tolerance": 0.1, "attributes": ["race", "sex"]},
        {"metric": "true_positive_rate", "ratio": 0.8, "attributes": ["sex"], "reference": "m"},
        {"metric": "false_positive_rate", "tolerance": 0.3, "reference": "best"},
        {"metric": "auc", "tolerance": 0.2, "binding": False},
        {"lens": "projection", "tolerance": 0.2, "attributes": ["race"], "binding": False},
    ],
}
LENDING = {
    "preset": "fair_lending",
    "ratio": 0.8,
    "references": {"race": "a", "sex": "m"},
    "lenses": ["permutation"],
    "floor": 50,
    "bands": {"age": [40]},
}
HIRING = {
    "preset": "nyc_ll144",
    "lenses": ["permutation"],
    "rule_options": {
        "sex": "sex",
        "race": "race",
        "leave_out": True,
        "date": "2026-11-20",
        "data": "all",
    },
}
SCORES = {
    "name": "scores",
    "lenses": ["permutation"],
    "unknown": ["c"],
    "intersections": "skip",
    "rule": "us_eeoc",
    "criteria": [
        {"metric": "mean_residual", "tolerance": 0.05, "attributes": ["age"]},
        {"metric": "accuracy", "tolerance": 0.2, "reference": "highest"},
    ],
}
BASES = (OWN, OWN, OWN, LENDING, HIRING, SCORES)

VALUES = (None, True, False, 0, 1, 2, -1, 0.5, 1.5, 40, "", "x", "race", "Race", "best", "highest")
CONTAINERS = (
    *([], ["race"], ["rase"], ["age", "sex"], [25, 45], [45, 25], {}),
    *({"age": [1]}, {"Age": [40]}, {"race": [1, 2]}, {"rase": [1]}, {"sex": "m"}, {"rase": "a"}),
)


# -- one change --------------------------------------------------------------------------------


def paths(content, at=()):
    """All places of a nested content."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in pairs:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*at, key))


def at(content, path):
    for key in path:
        content = content[key]
    return content


def misspelt(r, word):
    """Return a word with a typing error, or another attribute."""
    if word in ATTRIBUTES and r.random() < 0.5:
        return r.choice([name for name in ATTRIBUTES if name != word])
    place = r.randrange(len(word)) if word else 0
    changes = (
        word[:place] + word[place + 1 :],
        word[:place] + "q" + word[place:],
        word.upper(),
        word + "_",
    )
    return r.choice(changes)


def other_value(r, value):
    """Return another value, most often of the same type."""
    if r.random() < 0.3:
        return copy.deepcopy(r.choice((*VALUES, *CONTAINERS)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return r.choice((value * 2, value / 2, -value, 0, value + 1))
    if isinstance(value, str):
        return misspelt(r, value)
    return copy.deepcopy(r.choice(CONTAINERS))


def mutated(r, within):
    """Return a base, the base with one change, and what was changed: path, kind, new value."""
    base = r.choice([record for record in BASES if within in ("", *record)])
    content = copy.deepcopy(base)
    path = r.choice([path for path in paths(content) if within in ("", path[0])])
    holder, key = at(content, path[:-1]), path[-1]
    kind = r.choice(("rename", "drop", "value", "value", "value"))
    new = None
    if kind == "rename" and isinstance(key, str):
        new = misspelt(r, key)
        changed = {new if name == key else name: value for name, value in holder.items()}
        holder.clear()
        holder.update(changed)
    elif kind == "drop":
        del holder[key]
    else:
        kind, new = "value", other_value(r, holder[key])
        holder[key] = new
    return base, content, (path, kind, new)


# -- policies ----------------------------------------------------------------------------------


def has_none(content):
    if isinstance(content, dict):
        return any(map(has_none, content.values()))
    return any(map(has_none, content)) if isinstance(content, list) else content is None


def toml(content):
    """Return a policy as a file has it; criteria are tables of their own."""
    criteria = content.get("criteria", [])
    tables = isinstance(criteria, list) and all(
        isinstance(criterion, dict) for criterion in criteria
    )
    if not tables:
        return None
    lines = ["[policy]"]
    lines += [
        f"{quote_key(key)} = {value_text(value)}"
        for key, value in content.items()
        if key != "criteria"
    ]
    for criterion in criteria:
        lines += ["[[policy.criterion]]"]
        lines += [f"{quote_key(key)} = {value_text(value)}" for key, value in criterion.items()]
    return "\n".join(lines) + "\n"


def made(content, path):
    """Return the policy of a content: of a preset by a file, of others by a file or a dict."""
    text = None if has_none(content) else toml(content)
    of_file = {*content} & {"preset", "ratio", "references"} or len(str(content)) % 2
    if text is None and of_file and "name" not in content:
        return None
    if text is None or not of_file:
        return fa.Policy.from_dict(content)
    path.write_text(text, encoding="utf-8")
    return fa.Policy.load(path)


def audited(policy):
    return fa.audit(
        data=DATA,
        y_true="label",
        y_pred="decision",
        y_score="score",
        sensitive_features=list(ATTRIBUTES),
        policy=policy,
        evidence="none",
        n_resamples=1_999,
        rng=1,
        n_threads=1,
    )


# -- what must be seen -------------------------------------------------------------------------


def names_what_is_wrong(message, path, new):
    """Return whether a message names the key, the value, or what stands there."""
    words = [key for key in path if isinstance(key, str)]
    words += ["criterion"] if path[0] == "criteria" else []
    words += [repr(new)] if new is not None else []
    words += [str(new)] if new != "" else []
    words += [repr(part) for part in new] if isinstance(new, list | dict) else []
    return any(word in message for word in words)


def effects_missing(audit):
    """Yield what a policy asks for and an audit does not show."""
    policy = audit.policy
    shown = {
        (question.metric, question.attribute): [group.group for group in question.groups]
        for question in audit.questions
    }
    for criterion in policy.criteria:
        if criterion.metric is None:
            if criterion.lens in policy.lenses:
                wanted = [name for name in ATTRIBUTES if criterion.covers(name)]
                found = [each.attribute for each in audit.others if each.lens == criterion.lens]
                yield from (f"{criterion.lens} by {name}" for name in wanted if name not in found)
            continue
        for name in criterion.attributes or ATTRIBUTES:
            if (criterion.metric, name) not in shown:
                yield f"{criterion.metric} by {name}"
            elif criterion.is_fixed_reference:
                groups = [
                    group.group
                    for each in audit.questions
                    if (each.metric, each.attribute) == (criterion.metric, name)
                    for pair in each.pairs
                    for group in pair.test.groups
                ]
                if groups and criterion.reference not in groups:
                    yield f"reference {criterion.reference}"
    for name, cuts in policy.bands.items():
        attribute = {each.casefold(): each for each in ATTRIBUTES}.get(name.casefold())
        groups = {
            group for (_, each), found in shown.items() if each == attribute for group in found
        }
        if groups and not groups <= set(band_names(cuts)):
            yield f"bands of {name}"
    for (metric, attribute), groups in shown.items():
        yield from (
            f"unknown {group} in {metric} by {attribute}"
            for group in groups
            if isinstance(group, str) and policy.is_unknown(group)
        )
    if policy.intersections == "skip" and any(
        question.is_intersection for question in audit.questions
    ):
        yield "intersections"
    for question in audit.questions:
        for group in question.groups:
            if group.is_tested and group.n_counted < policy.floor:
                yield f"floor of {group.group}"


def same(content, other):
    """Return whether two contents are the same policy; what is at its default may be left out."""
    defaults = fa.Policy(name="x", criteria=[fa.Criterion(metric="tpr", tolerance=0.1)]).to_dict()

    def full(entry):
        found = {**defaults, **entry}
        found["criteria"] = [
            {"binding": True, "attributes": None, "reference": None, **each}
            for each in entry.get("criteria", [])
        ]
        for each in found["criteria"]:
            if "metric" in each:
                each["metric"] = fa.metrics.get(each["metric"]).name
        return found

    return full(content) == full(other)


def problem(r, tmp_path, within=""):
    """Return what is wrong with how one mutated policy is taken, and whether it was refused.

    ``within`` is the key that is changed, or something in it; "" for any.
    """
    base, content, (path, kind, new) = mutated(r, within)
    try:
        policy = made(content, tmp_path / "own.toml")
        if policy is None:
            return None, False
        audit = audited(policy)
        text = str(audit)
    except fa.errors.FairAuditError as error:
        words = (*path, new, repr(at(base, path))) if kind == "rename" else path
        found = None if names_what_is_wrong(str(error), words, new) else f"unclear: {error}"
        return found and f"{told(path, kind, new)}: {found}", True
    found = list(effects_missing(audit))
    resolved, before = audit.policy.to_dict(), made(base, tmp_path / "base.toml").to_dict()
    if resolved == before:
        is_same = kind == "drop" or at(base, path) == new
        if not (is_same if "preset" in base else same(content, base)):
            found.append("nothing of it is seen")
    if "None" in text:
        found.append("None in the text")
    return (f"{told(path, kind, new)}: {found}" if found else None), False


def told(path, kind, new):
    return f"{'.'.join(map(str, path))} {kind} {new!r}"


@pytest.mark.parametrize("part", range(PARTS))
def test_every_change_is_refused_by_name_or_seen(part, tmp_path):
    r = random.Random(SEED + part)
    found = [problem(r, tmp_path) for _ in range(N_POLICIES // PARTS)]
    assert [text for text, _ in found if text] == []
    refused = sum(was_refused for _, was_refused in found)
    assert 0.3 < refused / len(found) < 0.9


@pytest.mark.parametrize(
    ("check", "within"), [("check_attribute_names", "criteria"), ("check_bands", "bands")]
)
def test_what_is_ignored_without_a_word_is_found(check, within, tmp_path, monkeypatch):
    """Without one of the checks a policy is taken of which nothing is seen."""
    monkeypatch.setattr(f"fairaudit_rs.auditing.audit.{check}", lambda policy, attributes: None)
    r = random.Random(SEED)
    assert any(problem(r, tmp_path, within)[0] for _ in range(60))
