"""What a file seems to hold: which columns are people's attributes, labels, decisions and scores.

Guesses by name and by content, made to be read and corrected: nothing is audited on their account.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..data.groups import printable
from .policy import Policy
from .policy_file import bare, value_text
from .values import LEAST_FLOOR

if TYPE_CHECKING:
    import polars as pl

#: Words in names of columns, by what they hold; the first fitting one counts.
_NAMES = {
    "sensitive_features": "sex gender race ethnicity ethnic age nationality citizenship religion "
    "disability marital marital_status married country_birth birthplace native_country "
    "foreign foreigner veteran pregnant orientation caste",
    "y_score": "score scores prob proba probability risk y_score p_hat predicted_probability",
    "y_pred": "y_pred pred prediction predicted decision decided approved approval accepted hired "
    "selected granted admitted offer flagged denied refused rejected",
    "y_true": "y_true label labels target outcome actual truth ground_truth repaid default "
    "defaulted paid recid recidivism two_year_recid income class y performance",
    "sample_weight": "weight weights sample_weight fnlwgt survey_weight",
}
#: More values than this make no groups, but for numbers that are cut into bands.
_MOST_GROUPS = 20
_MOST_LISTED = 8


#: Texts that stand for a missing value in many files.
_MARKS = ("?", "-", "na", "n/a", "#n/a", "nan", "null", "none")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a file."""

    name: str
    #: Its values with their numbers of rows, the most frequent first; some of them.
    values: tuple[tuple[Any, int], ...]
    n_values: int
    n_missing: int
    is_number: bool
    low: float
    high: float
    #: Those of its texts that usually stand for a missing value.
    marks: tuple[str, ...] = ()

    @property
    def is_binary(self) -> bool:
        """Whether it has two values."""
        return self.n_values == 2

    @property
    def words(self) -> set[str]:
        """The words of its name, and the name."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name.strip()).lower()
        name = re.sub(r"[^a-z0-9]+", "_", name).strip("_")
        return {name, *name.split("_")}


def columns_of(frame: pl.LazyFrame) -> list[Column]:
    """Return what the columns of a table hold."""
    import polars as pl

    frame = frame.collect().lazy()
    found = []
    for name, kind in frame.collect_schema().items():
        one = frame.select(pl.col(name).alias("value"))
        counted = (
            one.drop_nulls()
            .group_by("value")
            .len()
            .sort(["len", "value"], descending=[True, False])
            .collect()
        )
        n_rows, n_values = int(one.select(pl.len()).collect().item()), counted.height
        numbers = kind.is_numeric() and n_values > 0
        found.append(
            Column(
                name=name,
                values=tuple(counted.head(_MOST_GROUPS).iter_rows()),
                n_values=n_values,
                n_missing=n_rows - int(counted["len"].sum()),
                is_number=kind.is_numeric(),
                low=float(counted["value"].min()) if numbers else 0.0,  # type: ignore[arg-type]
                high=float(counted["value"].max()) if numbers else 0.0,  # type: ignore[arg-type]
                marks=_marks(counted["value"]) if kind == pl.String else (),
            )
        )
    return found


def missing_texts(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the texts of columns that usually stand for a missing value."""
    found = {value for one in columns for value in one.marks}
    return tuple(sorted(found))


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Which columns are what."""

    columns: tuple[Column, ...]
    roles: dict[str, list[Column]]

    @classmethod
    def of(cls, columns: list[Column]) -> Proposal:
        """Guess roles by names and by contents."""
        roles: dict[str, list[Column]] = {name: [] for name in _NAMES}
        for role, words in _NAMES.items():
            known = words.split()
            taken = {one.name for ones in roles.values() for one in ones}
            fitting = [
                (min(known.index(word) for word in one.words & {*known}), one)
                for one in columns
                if one.name not in taken and one.words & {*known} and _could_be(role, one)
            ]
            fitting.sort(key=lambda pair: pair[0])
            several = role == "sensitive_features"
            roles[role] = [one for _, one in (fitting if several else fitting[:1])]
        return cls(columns=tuple(columns), roles=roles)

    def policy(self) -> Policy | None:
        """Return the default policy for what there is; None where that is not enough."""
        has = {name: bool(self.roles[f"y_{name}"]) for name in ("true", "pred", "score")}
        if not has["pred"] and not (has["true"] and has["score"]):
            return None
        return Policy.default(labels=has["true"], decisions=has["pred"], scores=has["score"])


def _could_be(role: str, one: Column) -> bool:
    """Whether the content of a column is as its role has it."""
    if role == "sensitive_features":
        return 2 <= one.n_values <= _MOST_GROUPS or (one.is_number and "age" in one.words)
    if role == "y_score":
        return one.is_number and not one.is_binary and one.low >= 0 and one.high <= 1
    if role == "sample_weight":
        return one.is_number and one.low >= 0
    return one.is_binary


def _marks(values: pl.Series) -> tuple[str, ...]:
    """Return the texts among values that stand for a missing one, without blanks around them."""
    texts = values.str.strip_chars()
    return tuple(texts.filter(texts.str.to_lowercase().is_in(_MARKS)).unique().to_list())


def question_of(proposal: Proposal) -> str | None:
    """Return what must be said before an audit: which of two texts is favourable."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    values = [value for value, _ in decided[0].values] if decided else []
    if not values or not all(isinstance(value, str) for value in values):
        return None
    told = " or ".join(printable(value) for value in sorted(values))
    return (
        f"one thing is left to say: what do people want of {printable(decided[0].name)}, {told}? "
        "Say it as favourable in the file, or as --favourable of this command or of the audit."
    )


def proposed_text(data: str, command: str, proposal: Proposal, favourable: str | None) -> str:
    """Return the text of a policy file, with the reason of every line, and what to run then."""
    lines = [
        f"# Proposed by `fairaudit init` after a look at {printable(data)}.",
        "# Read it before you audit: what binds is your choice, and names of columns are guesses.",
        f"#   {printable(command)}",
        "",
        *_policy_lines(proposal, favourable),
        "[roles]",
        *_role_lines(proposal),
        "",
    ]
    return "\n".join(lines)


def _policy_lines(proposal: Proposal, favourable: str | None) -> list[str]:
    policy = proposal.policy()
    if policy is None:
        policy = Policy.preset("four_fifths")
        why = ["# No decisions were found, and no labels with scores: name them under [roles].", ""]
    else:
        why = [f"# {policy.description}", f"# Chosen because {policy.reason}."]
        why += ["# Others: fairaudit_rs.Policy.preset, docs/policy.md.", ""]
    lines = [*why, "[policy]", f"name = {value_text(policy.name)}"]
    lines += _favourable_lines(proposal, favourable)
    lines += [
        "# The most often that a fail, or a pass, may be false.",
        f"alpha = {policy.alpha}",
        "# Rows that count which a group needs to be compared.",
        f"floor = {policy.floor}",
        "# The share of people who must be in compared groups for a pass.",
        f"min_coverage = {policy.min_coverage}",
    ]
    ages = [one for one in proposal.roles["sensitive_features"] if one.n_values > _MOST_GROUPS]
    if ages:
        bands = {one.name: [25, 45] for one in ages}
        lines += ["# Numbers are cut into groups: up to 25, above 25 up to 45, above 45."]
        lines += [f"bands = {value_text(bands)}"]
    lines.append("")
    for one in policy.criteria:
        lines.append("[[policy.criterion]]")
        lines += [f"{bare(key)} = {value_text(value)}" for key, value in one.to_dict().items()]
        lines += [] if one.binding else ["# (told, and no part of the verdict)"]
        lines.append("")
    return lines


def _favourable_lines(proposal: Proposal, favourable: str | None) -> list[str]:
    """Say which value is favourable, or ask."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    if not decided:
        return ["# favourable = 1"]
    values = [value for value, _ in decided[0].values]
    told = [value_text(one if isinstance(one, bool | int | float) else str(one)) for one in values]
    name = printable(decided[0].name)
    if favourable is not None:
        same = [text for value, text in zip(values, told, strict=True) if str(value) == favourable]
        return [
            f"# What people want of {name}; its values: {', '.join(told)}.",
            f"favourable = {same[0] if same else value_text(favourable)}",
        ]
    positive = max(values) if decided[0].is_number or isinstance(values[0], bool) else values[0]
    why = [
        "# the positive one (1, true) is taken, and where that is a punishment the audit asks the",
        "# wrong question.",
    ]
    if isinstance(positive, str):
        why = ["# there is no audit."]
    return [
        f"# What do people want of {name}? Its values: {', '.join(told)}. Say which: without it",
        *why,
        f"# favourable = {value_text(positive)}",
    ]


def _role_lines(proposal: Proposal) -> list[str]:
    lines = []
    for role, what in (
        ("sensitive_features", "Attributes whose groups are compared."),
        ("y_true", "What turned out: labels."),
        ("y_pred", "What the model decided."),
        ("y_score", "Its scores, from 0 to 1."),
        ("sample_weight", "Weights of rows."),
    ):
        found = proposal.roles[role]
        if role == "sample_weight" and not found:
            continue
        lines.append(f"# {what}")
        if role == "sensitive_features":
            lines += [f"#   {_told(one)}" for one in found]
        if not found:
            others = [one.name for one in proposal.columns if _could_be(role, one)][:_MOST_LISTED]
            could = f"; these could be: {', '.join(map(printable, others))}" if others else ""
            lines += [f"# None was found{could}.", f'# {role} = "..."']
        elif role == "sensitive_features":
            lines.append(f"{role} = {value_text([one.name for one in found])}")
        else:
            # A weight is no weight only because it is called so.
            mark = "# " if role == "sample_weight" else ""
            lines.append(f"{mark}{role} = {value_text(found[0].name)}")
    return lines


def _told(one: Column) -> str:
    """Return the groups of an attribute with their sizes."""
    missing = f", missing {one.n_missing:,}" if one.n_missing else ""
    if one.n_values > _MOST_GROUPS:
        return f"{printable(one.name)}: {one.low:g} to {one.high:g}{missing}"
    shown = ", ".join(f"{printable(str(value))} {n:,}" for value, n in one.values[:_MOST_LISTED])
    more = f" and {one.n_values - _MOST_LISTED} more" if one.n_values > _MOST_LISTED else ""
    small = [n for _, n in one.values if n < LEAST_FLOOR]
    few = f" ({len(small)} of them below the floor of {LEAST_FLOOR} rows)" if small else ""
    return f"{printable(one.name)}: {shown}{more}{missing}{few}"
