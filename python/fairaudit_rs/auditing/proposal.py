"""Proposes the roles of the columns in a file, and writes them as a policy file.

The roles (attributes, labels, decisions, scores, weights) are guessed by name and content. The user
reads and corrects them; no audit uses them directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..data.groups import escape_controls
from .candidates import LEAST_SCORE, MOST_GROUPS, Candidate, FileColumn, candidates_of, plain_text
from .criterion import Criterion
from .policy import Policy
from .policy_file import quote_key, value_text
from .values import LEAST_FLOOR

#: Words in the names of columns by role; the first word that fits decides.
_NAMES = {
    "sensitive_features": "sex gender race ethnicity ethnic age nationality citizenship religion "
    "disability marital marital_status married marriage country_birth birthplace native_country "
    "foreign foreigner immigrant veteran pregnant orientation caste",
    "y_score": "score scores prob proba probability risk y_score p_hat predicted_probability",
    "sample_weight": "weight weights sample_weight fnlwgt survey_weight",
}
#: The roles in the order in which they are printed.
_ROLES = ("sensitive_features", "y_score", "y_pred", "y_true", "sample_weight")
#: Words in the names of 0/1 columns that are values of race or sex, and words that go with them.
_RACES = {
    *("black", "white", "asian", "hispanic", "latino", "latina", "caucasian", "african"),
    *("native", "indigenous", "pacific"),
}
_SEXES = {"female", "male", "woman", "man"}
_BESIDE = {"is", "race", "ethnicity", "sex", "gender", "american", "indian", "alaska", "islander"}
_BESIDE |= {"non", "or", "and", "other", "hawaiian"}
#: Weights of surveys, such as PERWT15F.
_WEIGHT = re.compile(r"(per|fin|pop|hh|sv)?w(eigh)?ts?\d*f?")
_MOST_LISTED = 8
_ONE = {"1", "true"}
#: Ages are cut here where that makes three groups.
_AGES = (25, 45)


def missing_texts(columns: Sequence[FileColumn]) -> tuple[str, ...]:
    """Return the texts in columns that usually mean a missing value."""
    texts = {value for column in columns for value in column.marks}
    return tuple(sorted(texts))


def combinations_of(columns: Sequence[FileColumn]) -> dict[str, list[FileColumn]]:
    """Return 0/1 columns that seem to be the values of one attribute, by attribute.

    Their names begin with the same attribute, as race_black and race_white, or are those of races.
    """
    known = {*_NAMES["sensitive_features"].split()}
    found: dict[str, list[FileColumn]] = {}
    for column in columns:
        first, _, rest = re.sub(r"[^a-z0-9]+", "_", column.name.strip().lower()).partition("_")
        attribute = first if rest and first in known else None
        if attribute is None and _is_named_after(_RACES, column):
            attribute = "race"
        if column.is_flag and attribute is not None:
            found.setdefault(attribute, []).append(column)
    names = {column.name for column in columns}
    return {name: flags for name, flags in found.items() if len(flags) > 1 and name not in names}


def _is_named_after(values: set[str], column: FileColumn) -> bool:
    """Return whether a 0/1 column is named after a group, as is_female, unlike white_collar."""
    words = set(re.sub(r"[^a-z]+", " ", column.name.lower()).split())
    return column.is_flag and bool(words & values) and words <= values | _BESIDE


def _combined(name: str, flags: Sequence[FileColumn]) -> FileColumn:
    """Return an attribute that is combined from columns of 0 and 1."""
    values = [
        (flag.name, n) for flag in flags for value, n in flag.values if plain_text(value) in _ONE
    ]
    return FileColumn(
        name=name,
        values=tuple(sorted(values, key=lambda entry: -entry[1])),
        n_values=len(values),
        n_missing=0,
        is_number=False,
        low=0.0,
        high=0.0,
    )


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The proposed roles of columns."""

    columns: tuple[FileColumn, ...]
    roles: dict[str, list[FileColumn]]
    #: All columns that may hold decisions or labels, the likeliest first.
    candidates: tuple[Candidate, ...]
    #: The audited column: decisions, or labels if there are no decisions; None without both.
    decided: Candidate | None
    #: Labels whose favourable value is the opposite of that of the decisions, under another name.
    opposite: Candidate | None = None
    #: Attributes by name that are combined from columns of 0 and 1.
    combine: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        columns: Sequence[FileColumn],
        decisions: str | None = None,
        labels: str | None = None,
        attributes: Sequence[str] | None = None,
        combine: Mapping[str, Sequence[FileColumn]] | None = None,
    ) -> Proposal:
        """Guess roles by names, values and positions, except those that the caller names.

        ``combine`` has attributes by name, each with columns of 0 and 1 that exclude each other.
        """
        combined = [_combined(name, flags) for name, flags in (combine or {}).items()]
        by_name = {column.name: column for column in [*columns, *combined]}
        roles = _roles_by_name(columns)
        parts = {flag.name for flags in (combine or {}).values() for flag in flags}
        single = [feature for feature in roles["sensitive_features"] if feature.name not in parts]
        roles["sensitive_features"] = [*single, *combined]
        if attributes is not None:
            roles["sensitive_features"] = [by_name[name] for name in attributes]
        taken = {column.name for fitting in roles.values() for column in fitting} | parts
        taken -= {decisions, labels}
        weights = {column.name for column in columns if _could_be("sample_weight", column)}
        last = next(
            (column.name for column in reversed(columns) if column.name not in weights), None
        )
        candidates = candidates_of([column for column in columns if column.name not in taken], last)
        likely = [candidate for candidate in candidates if candidate.score >= LEAST_SCORE]
        named = {candidate.name: candidate for candidate in candidates}
        if decisions is None and labels is None:
            decision = next((candidate for candidate in likely if candidate.is_decision), None)
            # A number can replace decisions, by a cut, but not add labels to decisions.
            label = next(
                (c for c in likely if not c.is_decision and (decision is None or c.cut is None)),
                None,
            )
        else:
            decision, label = named.get(decisions or ""), named.get(labels or "")
            decision = None if decision is None else replace(decision, is_decision=True)
        if decision is not None and label is not None and label.cut is not None:
            label = None
        has_scores = bool(roles["y_score"]) and label is not None and label.cut is None
        decided = decision or (None if has_scores else label)
        opposite = None
        if decision is not None and label is not None and _are_opposite(decision, label):
            opposite, label = label, None
        is_label = label is not None and label is not decided
        roles |= {
            "y_pred": [decided.column] if decided and decided.cut is None else [],
            "y_true": [label.column] if label is not None and is_label else [],
        }
        return cls(
            columns=tuple(columns),
            roles={role: roles[role] for role in _ROLES},
            candidates=tuple(candidates),
            decided=decided,
            opposite=opposite,
            combine={
                name: [flag.name for flag in flags]
                for name, flags in (combine or {}).items()
                if by_name[name] in roles["sensitive_features"]
            },
        )

    @property
    def cut(self) -> str | None:
        """The cut that makes decisions of numbers, as ``grade=10``."""
        decided = self.decided
        if decided is None or decided.cut is None:
            return None
        return f"{decided.name}={decided.cut:g}"

    @property
    def has_labels_only(self) -> bool:
        """Return whether labels are compared instead of decisions."""
        return self.decided is not None and not self.decided.is_decision

    def policy(self) -> Policy | None:
        """Return the default policy for these roles; None if they are not enough."""
        has = {name: bool(self.roles[f"y_{name}"]) for name in ("true", "pred", "score")}
        has["pred"] = has["pred"] or self.cut is not None
        if not has["pred"] and not (has["true"] and has["score"]):
            return None
        return Policy.default(labels=has["true"], decisions=has["pred"], scores=has["score"])

    def lacking(self) -> str | None:
        """Return the missing role that an audit needs; None if it has all."""
        if self.policy() is None:
            return "decisions or labels"
        return None if self.roles["sensitive_features"] else "attributes of people"

    def favourable(self) -> Any:
        """Guess the value that people want, by names and values; None if unknown."""
        decided = self.decided
        if decided is None:
            decided = next((c for c in self.candidates if c.column in self.roles["y_true"]), None)
        return None if decided is None else decided.favourable


def _roles_by_name(columns: Sequence[FileColumn]) -> dict[str, list[FileColumn]]:
    """Return attributes, scores and weights."""
    roles: dict[str, list[FileColumn]] = {name: [] for name in _NAMES}
    for role, words in _NAMES.items():
        known = words.split()
        taken = {column.name for fitting in roles.values() for column in fitting}
        fitting = [
            (min(known.index(word) for word in column.words & {*known}), column)
            for column in columns
            if column.name not in taken and column.words & {*known} and _could_be(role, column)
        ]
        several = role == "sensitive_features"
        if several:
            named = {column.name for _, column in fitting}
            flags = [column for column in columns if _is_named_after(_RACES | _SEXES, column)]
            fitting += [(len(known), flag) for flag in flags if flag.name not in named]
        fitting.sort(key=lambda pair: pair[0])
        roles[role] = [column for _, column in (fitting if several else fitting[:1])]
    if not roles["sample_weight"]:
        weights = [column for column in columns if _WEIGHT.fullmatch(column.name.strip().lower())]
        roles["sample_weight"] = [
            weight for weight in weights if _could_be("sample_weight", weight)
        ][:1]
    found = roles["sensitive_features"]
    if any("age" in column.words and not column.is_number for column in found):
        # The file has age groups already.
        found = [column for column in found if "age" not in column.words or not column.is_number]
    roles["sensitive_features"] = found
    return roles


def _are_opposite(decision: Candidate, label: Candidate) -> bool:
    """Return whether labels have another favourable value than decisions, which is not their 1."""
    if label.favourable is None or decision.favourable is None:
        return False
    wanted = plain_text(label.favourable)
    if wanted == plain_text(decision.favourable):
        return False
    values = {plain_text(value) for value, _ in label.column.values}
    return values not in ({"0", "1"}, {"false", "true"}) or wanted in ("0", "false")


def _could_be(role: str, column: FileColumn) -> bool:
    """Return whether the content of a column fits a role."""
    if role == "sensitive_features":
        return 2 <= column.n_values <= MOST_GROUPS or (column.is_number and "age" in column.words)
    if role == "y_score":
        return column.is_number and not column.is_binary and column.low >= 0 and column.high <= 1
    if role == "sample_weight":
        named = column.words & {*_NAMES[role].split()} or _WEIGHT.fullmatch(
            column.name.strip().lower()
        )
        return bool(named) and column.is_number and column.low >= 0
    return column.is_binary


def reason_without(role: str, proposal: Proposal) -> str:
    """Return why scores or labels were not found, or which columns could be labels."""
    if role == "y_true" and proposal.roles["y_pred"] and not proposal.has_labels_only:
        policy = proposal.policy()
        others = [
            candidate.name
            for candidate in proposal.candidates
            if candidate.score
            and candidate.cut is None
            and candidate.column not in proposal.roles["y_pred"]
        ]
        if policy is None or proposal.opposite is not None or not others:
            return ""
        could = ", ".join(map(escape_controls, others[:_MOST_LISTED]))
        return f" (could be: {could}; without labels the policy is {policy.name})"
    if role != "y_score":
        return ""
    known = {*_NAMES[role].split()}
    columns = [c for c in proposal.columns if c.words & known and c.is_number]
    columns += [candidate.column for candidate in proposal.candidates if candidate.cut is not None]
    column = columns[0] if columns else None
    if column is None or _could_be(role, column) or column.is_binary:
        return ""
    return (
        f" ({escape_controls(column.name)} goes from {column.low:g} to {column.high:g}; scores "
        "must lie between 0 and 1)"
    )


def unused_columns(role: str, proposal: Proposal) -> list[str]:
    """Return the columns whose content fits a role, and that have no other role."""
    taken = {column.name for columns in proposal.roles.values() for column in columns}
    fitting = [column.name for column in proposal.columns if _could_be(role, column)]
    return [name for name in fitting if name not in taken][:_MOST_LISTED]


def takes_positive_value(proposal: Proposal) -> bool:
    """Return whether the audit itself takes the guessed favourable value, 1 of 0 and 1."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    numbers = {
        float(value)
        for column in decided[:1]
        for value, _ in column.values
        if isinstance(value, bool | int | float)
    }
    return numbers == {0, 1} and bool(proposal.favourable())


def listed_values(column: FileColumn) -> str:
    """Return the values of a column with their numbers of rows."""
    shown = ", ".join(
        f"{escape_controls(str(value))} {n:,}" for value, n in column.values[:_MOST_LISTED]
    )
    n_more = column.n_values - _MOST_LISTED
    return f"{shown} and {n_more} more" if n_more > 0 else shown


def unsaid_values(proposal: Proposal) -> list[str]:
    """Return the two values of which the user must name the favourable one; [] if it is known.

    For 0 and 1 an audit takes 1; for 1 and 2 it cannot know, as for two texts.
    """
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    if not decided or proposal.favourable() is not None:
        return []
    return sorted(str(value) for value, _ in decided[0].values)


def question_of(proposal: Proposal) -> str | None:
    """Return the question which of two values is favourable; None if it is known."""
    values = unsaid_values(proposal)
    if not values:
        return None
    name = (proposal.roles["y_pred"] or proposal.roles["y_true"])[0].name
    return (
        f"one choice is left: which value of {escape_controls(name)} do people want, "
        f"{' or '.join(map(escape_controls, values))}? Set favourable in the file, or pass "
        "--favourable to this command or to the audit."
    )


def describe_guesses(proposal: Proposal) -> list[str]:
    """Return the guesses about decisions and labels, in lines for users."""
    lines = []
    for name, columns in proposal.combine.items():
        lines.append(f"{name}: combined from {', '.join(columns)}")
    decided = proposal.decided
    if decided is not None and decided.cut is not None:
        lines.append(
            f"{decided.name} holds numbers from {decided.column.low:g} to {decided.column.high:g}: "
            f"{decided.cut:g} and more is taken as positive, which is a guess (--cut)"
        )
    if proposal.has_labels_only and decided is not None:
        lines.append(
            f"no decisions of a model were found: the labels in {decided.name} are compared "
            "between the groups, as if they were decisions"
        )
    label = proposal.opposite
    if label is not None and decided is not None:
        lines.append(
            f"{label.name} is not used: its favourable value is {label.favourable}, and that of "
            f"{decided.name} is {decided.favourable}. Make a column of labels with the same meaning"
        )
    return lines


def proposed_text(
    data: str, commands: Sequence[str], proposal: Proposal, favourable: str | None
) -> str:
    """Return the text of a policy file, with the reason of every line and the next commands."""
    lines = [
        f"# Proposed by `fairaudit init` after a look at {escape_controls(data)}.",
        "# Read it before you audit. Columns are guesses; the favourable value, the tolerances and",
        f"# the metrics that decide are your choice. Then run{' one of' if commands[1:] else ''}",
        *(f"#   {escape_controls(command)}" for command in commands),
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
        why += [
            '# For another policy write a preset, such as preset = "parity", in place of name',
            "# and of all [[policy.criterion]] below (docs/policy.md).",
            "",
        ]
    lines = [*why, "[policy]", f"name = {value_text(policy.name)}"]
    lines += _favourable_lines(proposal, favourable)
    lines += [
        "# Largest share of audits with a wrong FAIL; the same holds for a wrong PASS.",
        f"alpha = {policy.alpha}",
        "# Groups with fewer rows than this are not compared. Only rows that a metric uses count.",
        f"floor = {policy.floor}",
        "# Smallest share of people in compared groups that allows a pass.",
        f"min_coverage = {policy.min_coverage}",
    ]
    bands = {
        feature.name: _cuts(feature)
        for feature in proposal.roles["sensitive_features"]
        if _is_cut(feature)
    }
    for name, (low, high) in bands.items():
        lines += [
            f"# {escape_controls(name)} is cut into groups: up to {low:g}; above {low:g}, up to "
            f"{high:g}; above {high:g}."
        ]
    lines += [f"bands = {value_text(bands)}"] if bands else []
    lines.append("")
    for criterion in policy.criteria:
        lines += ["[[policy.criterion]]", *_criterion_lines(criterion), ""]
    return lines


def _criterion_lines(criterion: Criterion) -> list[str]:
    """Return the keys of a criterion, with the meaning of a tolerance that binds."""
    lines = []
    for key, value in criterion.to_dict().items():
        line = f"{quote_key(key)} = {value_text(value)}"
        if key == "tolerance" and criterion.binding and value < 1:
            lines += [
                f"# The largest gap between two groups that is accepted: {100 * value:g} "
                "percentage points. This",
                "# is a default and not a law. Choose it before you see results.",
            ]
        if key == "ratio" and criterion.binding:
            lines += [
                "# The smallest accepted ratio of two groups. Choose it before you see results.",
            ]
        lines.append(f"{line}  # shown only, not part of the verdict" if key == "binding" else line)
    return lines


def _is_cut(column: FileColumn) -> bool:
    """Return whether an attribute holds ages, which are cut into bands."""
    return column.is_number and not column.is_binary and "age" in column.words


def _cuts(column: FileColumn) -> tuple[float, float]:
    """Return the cuts of ages: the usual ones, or thirds if these do not make three groups."""
    if column.low <= _AGES[0] and _AGES[1] < column.high:
        return _AGES
    low, high = (int(cut) if cut == int(cut) else cut for cut in column.thirds)
    return (low, high) if column.low <= low < high < column.high else _AGES


def _favourable_lines(proposal: Proposal, favourable: str | None) -> list[str]:
    """Return the lines with the favourable value, or with the question which one it is."""
    decided = proposal.roles["y_pred"] or proposal.roles["y_true"]
    if not decided:
        return ["# favourable = 1"]
    values = [value for value, _ in decided[0].values]
    texts = [
        value_text(value if isinstance(value, bool | int | float) else str(value))
        for value in values
    ]
    by_value = dict(zip(values, texts, strict=True))
    name = escape_controls(decided[0].name)
    about = f"# The value of {name} that people want; its values: {', '.join(texts)}."
    if favourable is not None:
        same = [text for value, text in by_value.items() if str(value) == favourable]
        return [about, f"favourable = {same[0] if same else value_text(favourable)}"]
    guess = proposal.favourable()
    if guess is None:
        return [about, "# There is no audit without it: choose one.", f"# favourable = {texts[0]}"]
    if takes_positive_value(proposal):
        return [
            f"# The value of {name} that people want; its values: {', '.join(texts)}.",
            f"# It is not set: the audit takes {by_value[guess]}. If that is a punishment, set the "
            "other one,",
            "# because the audit would turn around.",
            f"# favourable = {by_value[guess]}",
        ]
    return [
        about,
        "# This is a guess from the name and the values: change it if it is wrong.",
        f"favourable = {by_value[guess]}",
    ]


def _role_lines(proposal: Proposal) -> list[str]:
    lines = [f"# {escape_controls(line)}." for line in describe_guesses(proposal)]
    for role, what in (
        ("sensitive_features", "Attributes whose groups are compared."),
        ("y_true", "Labels: what actually happened."),
        ("y_pred", "Decisions, by a model or a person."),
        ("y_score", "Scores of the model, from 0 to 1."),
        ("sample_weight", "Weights: how much each row counts."),
    ):
        found = proposal.roles[role]
        if role == "sample_weight" and not found:
            continue
        if role == "y_pred" and proposal.has_labels_only:
            what = "Labels, compared as if they were decisions."
        lines.append(f"# {what}")
        if role == "sensitive_features":
            lines += [f"#   {_describe_groups(column)}" for column in found]
        if not found:
            others = unused_columns(role, proposal)
            these = "these could be" if others[1:] else "this could be"
            could = f"; {these}: {', '.join(map(escape_controls, others))}" if others else ""
            if role == "y_pred" and proposal.cut is not None:
                could = f"; the command makes them, by --cut {escape_controls(proposal.cut)}"
            lines += [f"# None was found{could}.", f'# {role} = "..."']
        elif role == "sensitive_features":
            lines.append(f"{role} = {value_text([column.name for column in found])}")
            if proposal.combine:
                lines += [
                    "# Attributes that are made of columns of 0 and 1 which exclude each other.",
                    f"combine = {value_text(proposal.combine)}",
                ]
        else:
            # The name alone does not make a column a weight: the user decides.
            mark = "# " if role == "sample_weight" else ""
            lines.append(f"{mark}{role} = {value_text(found[0].name)}")
    return lines


def _describe_groups(column: FileColumn) -> str:
    """Return the groups of an attribute with their sizes."""
    missing = f", missing {column.n_missing:,}" if column.n_missing else ""
    if column.n_values > MOST_GROUPS:
        return f"{escape_controls(column.name)}: {column.low:g} to {column.high:g}{missing}"
    small = [n for _, n in column.values if n < LEAST_FLOOR]
    few = f" ({len(small)} of them below the floor of {LEAST_FLOOR} rows)" if small else ""
    return f"{escape_controls(column.name)}: {listed_values(column)}{missing}{few}"
