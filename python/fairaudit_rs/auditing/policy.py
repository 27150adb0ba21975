"""The class `Policy`: the criteria of an audit, and how certain its verdict must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from .. import arguments, metrics
from ..data.labels import label_matches
from ..errors import ArgumentError, ArgumentTypeError, DataError
from ..literals import Auto, Intersections, LensName, PresetName, RuleName, VerdictAdjustment
from .criterion import (
    Criterion,
    Label,
    check_label,
    check_names,
    is_default,
    known_keys,
    to_plain_value,
)
from .policy_file import read_policy, write_toml
from .presets import PRESETS, Content
from .values import (
    DEFAULT_BANDS,
    LEAST_FLOOR,
    check_criteria,
    check_cuts,
    check_rule_options,
    check_text,
    fair_lending_criteria,
    lens_names,
)

__all__ = ["Criterion", "Policy"]

#: The layout of dicts.
_VERSION = 1
#: Text fields about a rule: its content, dates, source and legal status.
TEXTS = ("description", "in_force", "as_of", "source", "status", "is_not", "reason")
_SHARE = "a number above 0 and up to 1, such as 0.95"


@dataclass(frozen=True, kw_only=True, repr=False)
class Policy:
    r"""A policy: the criteria of an audit, and how certain its verdict must be.

    A policy is built in Python, read from a file, or taken from the presets by name. A verdict is
    *fail* when the data show a gap beyond a tolerance, *pass* when they show that there is none,
    and *inconclusive* otherwise.

    Parameters
    ----------
    name : str
        The name of the policy in outputs.
    criteria : sequence of Criterion
        The criteria. The binding ones decide the verdict, the others are informational.
    alpha : float
        The largest probability of a false fail, over all binding questions together, and of a false
        pass.
    adjustment : {"holm", "none"}
        How p-values of failures are adjusted over all pairs of all binding questions.
    floor : int
        The minimum group size: eligible rows that a group needs to be compared, 30 or more. Rows of
        weight 0 are not eligible, and weighted rows must be worth as many rows of equal weight.
        People in groups that a higher minimum excludes count as not covered.
    min_coverage : float
        The share of people, by weight, who must be in compared groups for a pass, for every
        attribute.
    strict_coverage : float
        The share of people, by weight, from which on a pass holds for all people. Below it the
        headline restricts the pass to the tested groups, and a strict run ends with 3.
    favourable : str, number or bool, optional
        The favourable value of labels and decisions; None for the positive decision, or for the
        negative one of a punitive policy.
    punitive : bool
        Whether the positive decision, which metrics are about, is the unfavourable one.
    unknown : sequence of str
        Values of an attribute, in any case, that mean that the group is not known. These people are
        counted, but do not form a group.
    bands : dict
        Cuts of numeric attributes by name: (25, 45) makes the groups up to 25, above 25 up to 45,
        and above 45.
    lenses : str or sequence of str
        The lenses to run, by name, or "auto" for all that the input allows.
    intersections : {"inform", "bind", "skip"}
        How the groups of several attributes together are used. With "inform", two attributes at a
        time, informational. With "bind", up to three, in at most 2,000 comparisons; a pass is
        withheld while an intersection with two groups of 30 rows was not tested, because it needs
        more attributes or comparisons, or because the criterion has a fixed reference.
    rule : {"us_eeoc", "nyc_ll144", "fair_lending", "co_insurance_draft"}, optional
        The rule whose own numbers are reported beside the verdict.
    rule_options : dict
        Options of ``nyc_ll144``: ``sex`` and ``race``, the attributes that hold these, if their
        names do not show it; ``leave_out``, whether categories of fewer than 2 % have no impact
        ratio; ``date`` of the audit and ``data``, the source of the data, for the published table.
    has_pass : bool
        Whether the policy has a pass; without one, the best verdict is *no fail*.
    description, in_force, as_of, source, status, is_not : str
        What the policy is; since when it is in force; when that was looked up; the source; the
        legal status; and what the policy is not.
    reason : str
        Why the policy was chosen, if the caller did not name one.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> policy = fa.Policy(
    ...     name="credit",
    ...     criteria=[
    ...         fa.Criterion(metric="selection_rate", tolerance=0.1),
    ...         fa.Criterion(metric="true_positive_rate", ratio=0.8, binding=False),
    ...     ],
    ...     bands={"age": (25, 45)},
    ... )
    >>> print(policy.describe().replace("; ", "\n"))
    policy "credit"
    binding: selection_rate (share of positive decisions), differences up to 0.1
    favourable: the positive decision
    >>> fa.Policy.from_dict(policy.to_dict()) == policy
    True
    """

    name: str
    criteria: Sequence[Criterion]
    alpha: float = 0.05
    adjustment: VerdictAdjustment = "holm"
    floor: int = LEAST_FLOOR
    min_coverage: float = 0.95
    strict_coverage: float = 0.999
    favourable: Label | None = None
    punitive: bool = False
    unknown: Sequence[str] = ("Unknown", "?", "n/a", "not known", "not stated", "")
    bands: Mapping[str, Sequence[float]] = field(default_factory=lambda: dict(DEFAULT_BANDS))
    lenses: Auto | Sequence[LensName] = "auto"
    intersections: Intersections = "inform"
    rule: RuleName | None = None
    rule_options: Mapping[str, str | bool] = field(default_factory=dict)
    has_pass: bool = True
    description: str = ""
    in_force: str = ""
    as_of: str = ""
    source: str = ""
    status: str = ""
    is_not: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        shares = {
            name: arguments.number(name, getattr(self, name), _SHARE, lambda share: 0 < share <= 1)
            for name in ("min_coverage", "strict_coverage")
        }
        words = {
            "adjustment": get_args(VerdictAdjustment),
            "intersections": get_args(Intersections),
            **({} if self.rule is None else {"rule": get_args(RuleName)}),
        }
        checked: dict[str, Any] = {
            "name": check_text("name", self.name),
            "criteria": check_criteria(self.criteria),
            "alpha": arguments.check(alpha=self.alpha).alpha,
            "floor": _check_floor(self.floor),
            **shares,
            "favourable": arguments.optional("favourable", self.favourable, check_label),
            "punitive": arguments.flag("punitive", self.punitive),
            "unknown": check_names("unknown", self.unknown),
            "bands": check_cuts(self.bands),
            "lenses": lens_names(self.lenses),
            "rule_options": check_rule_options(self.rule, self.rule_options),
            "has_pass": arguments.flag("has_pass", self.has_pass),
            **{name: arguments.choice(name, getattr(self, name), words[name]) for name in words},
            **{name: check_text(name, getattr(self, name), empty=True) for name in TEXTS},
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_lenses()
        if self.punitive and self.rule is not None:
            raise ArgumentError(
                f"punitive is True with the rule {self.rule}, which counts favourable decisions. "
                "Remove it, and name the favourable value of the decisions as favourable.",
                argument="punitive",
                mentions=("rule", "favourable"),
                code="conflicting-arguments",
            )

    def _check_lenses(self) -> None:
        """Refuse criteria about lenses that the policy does not run."""
        for criterion in self.criteria:
            if (
                criterion.lens is not None
                and self.lenses != "auto"
                and criterion.lens not in self.lenses
            ):
                raise ArgumentError(
                    f"lenses is {list(self.lenses)!r}, but a criterion is about {criterion.lens}. "
                    f"Use 'auto', or a list with {criterion.lens!r}.",
                    argument="lenses",
                )

    # -- other constructors ------------------------------------------------------------------

    @classmethod
    def default(
        cls, *, labels: bool = False, decisions: bool = False, scores: bool = False
    ) -> Policy:
        """Return the default policy for the given columns; it has one binding criterion.

        Parameters
        ----------
        labels, decisions, scores : bool
            Whether labels, decisions and scores are given.

        Returns
        -------
        Policy
            For labels and decisions ``opportunity``, for decisions alone ``four_fifths``, for
            labels and scores ``calibration``. Criteria that cannot be computed are removed, and
            ``reason`` says why the policy was chosen.

        Examples
        --------
        >>> import fairaudit_rs as fa
        >>> policy = fa.Policy.default(labels=True, scores=True)
        >>> policy.name, [str(criterion) for criterion in policy.binding]
        ('calibration', ['mean_residual, differences up to 0.05'])
        """
        given = {"labels": labels, "decisions": decisions, "scores": scores}
        known = [name for name, is_given in given.items() if arguments.flag(name, is_given)]
        if decisions:
            name = "opportunity" if labels else "four_fifths"
        elif labels and scores:
            name = "calibration"
        else:
            raise ArgumentError(
                f"there is no default policy for {' and '.join(known) or 'no columns'}. Pass "
                "y_pred (decisions), or y_true and y_score (labels and scores).",
                argument="decisions",
                mentions=("labels", "scores", "policy"),
                code="missing-argument",
            )
        preset = _preset_without_options(name)
        columns = {_COLUMNS[name] for name in known}
        computed = [
            criterion
            for criterion in preset.criteria
            if columns >= {*metrics.get(criterion.name).needs}
        ]
        reason = "decisions were given and no labels"
        if labels:
            reason = f"labels and {'decisions' if decisions else 'scores'} were given"
        return replace(preset, criteria=computed, reason=reason)

    @classmethod
    def preset(
        cls,
        name: PresetName,
        *,
        ratio: float | None = None,
        references: Mapping[str, Label] | None = None,
    ) -> Policy:
        """Return a policy by its name.

        Parameters
        ----------
        name : str
            Policies of this package: ``opportunity``, ``error_balance``, ``punitive``, ``parity``,
            ``four_fifths``, ``predictive``, ``calibration`` and ``performance``. Rules of others,
            each with its source and legal status: ``us_eeoc``, ``nyc_ll144``, ``fair_lending`` and
            ``co_insurance_draft``.
        ratio : float, optional
            For ``fair_lending`` only: the impact ratio below which a group is flagged, which no
            regulation sets; 0.8 and 0.9 are customary.
        references : dict, optional
            For ``fair_lending`` only: the reference group of each attribute, such as
            ``{"race": "white"}``.

        Returns
        -------
        Policy
            ``description``, ``in_force``, ``source``, ``status`` and ``is_not`` describe it.

        Examples
        --------
        >>> import fairaudit_rs as fa
        >>> fa.Policy.preset("punitive").binding
        (Criterion(metric='false_positive_rate', tolerance=0.1),)
        >>> fa.Policy.preset("nyc_ll144").binding
        ()
        """
        content: Content = PRESETS[arguments.choice("name", name, get_args(PresetName))]
        options = {"ratio": ratio, "references": references}
        if name == "fair_lending":
            criteria = fair_lending_criteria(ratio, references)
        else:
            for option, value in options.items():
                if value is not None:
                    raise ArgumentError(
                        f"{option} is {value!r}, but the preset {name} takes none. Remove it; only "
                        "fair_lending has this option.",
                        argument=option,
                    )
            return _preset_without_options(name)
        return cls(**{**content, "criteria": criteria})

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Policy:
        """Return the policy of a dict from `to_dict`; unknown keys are refused.

        Parameters
        ----------
        content : dict
            The fields by name, criteria as dicts.
        """
        known_keys("a policy", content, [*_FIELDS, "schema_version"])
        given = dict(content)
        version = given.pop("schema_version", _VERSION)
        if version != _VERSION:
            raise ArgumentError(
                f"schema_version is {version!r}; accepted: {_VERSION}", argument="schema_version"
            )
        for name in ("name", "criteria"):
            if name not in given:
                raise ArgumentError(
                    f"{name} is missing in a policy. Add it: {_NEEDED[name]}.",
                    argument=name,
                    code="missing-argument",
                )
        if not isinstance(given["criteria"], list | tuple):
            raise ArgumentTypeError(
                f"criteria is {given['criteria']!r}; accepted: {_NEEDED['criteria']}",
                argument="criteria",
            )
        given["criteria"] = [Criterion.from_dict(criterion) for criterion in given["criteria"]]
        return cls(**given)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Return the policy in a file.

        Parameters
        ----------
        path : str or Path
            A TOML file with a table ``[policy]`` and tables ``[[policy.criterion]]``, or a
            ``pyproject.toml`` that has them under ``tool.fairaudit``. Keys are those of `Policy`
            and `Criterion`; ``preset`` starts from a preset, which the other keys change. Errors
            name the key, its value and the line.
        """
        found = read_policy(path)
        if found.part("policy") is None:
            raise ArgumentError(
                f"{found.name} has no table {found.header('policy')}. Add one with name and "
                f"{found.header('policy', 'criterion')}, or with preset.",
                argument="path",
            )
        found.convert(_checked_table, "policy")
        entries = found.part("policy", "criterion")
        criteria = entries and [
            found.convert(Criterion.from_dict, "policy", "criterion", place)
            for place in range(len(entries))
        ]
        return found.convert(lambda table: _of_table(table, criteria), "policy")

    # -- contents and texts ------------------------------------------------------------------

    @property
    def binding(self) -> tuple[Criterion, ...]:
        """The criteria that decide the verdict."""
        return tuple(criterion for criterion in self.criteria if criterion.binding)

    @property
    def informative(self) -> tuple[Criterion, ...]:
        """The criteria that do not affect the verdict."""
        return tuple(criterion for criterion in self.criteria if not criterion.binding)

    def is_unknown(self, value: object) -> bool:
        """Return whether a value of an attribute is missing or means that the group is not known.

        Parameters
        ----------
        value : str, number, bool or None
            Case and surrounding blanks of text are ignored.
        """
        if not isinstance(value, str):
            return value is None or value != value
        return value.strip().casefold() in {name.strip().casefold() for name in self.unknown}

    def positive_label(self, values: Sequence[Label]) -> Label | None:
        """Return the positive value of labels and decisions; None if the policy names none.

        Parameters
        ----------
        values : sequence of str, number or bool
            The two values that labels and decisions have.
        """
        if self.favourable is None:
            return None
        found = [value for value in values if label_matches(value, self.favourable)]
        if not found:
            raise DataError(
                f"favourable is {self.favourable!r}, which is not a value of labels and decisions; "
                f"accepted: {', '.join(map(repr, values))}",
                argument="favourable",
            )
        if not self.punitive:
            return found[0]
        others = [value for value in values if not label_matches(value, self.favourable)]
        if len(others) != 1:
            raise DataError(
                f"favourable is {self.favourable!r} and there are {len(others):,} other values. "
                f'The punitive policy "{self.name}" needs exactly one, the positive value; recode '
                "labels and decisions to two values.",
                argument="favourable",
            )
        return others[0]

    def describe(self) -> str:
        """Return the policy in one line: the binding criteria and the favourable decision."""
        return f"{self.binding_text()}; favourable: {self._favourable}"

    def binding_text(self) -> str:
        """Return the binding criteria and the strictness settings in one line."""
        reason = f" (the default, because {self.reason})" if self.reason else ""
        binds = "; ".join(criterion.in_words for criterion in self.binding)
        parts = [f'policy "{self.name}"{reason}']
        parts.append(f"binding: {binds}" if binds else "nothing binds, so nothing passes or fails")
        if binds and not self.has_pass:
            parts.append("there is no pass")
        parts += [f"{name} {getattr(self, name)}" for name in _STRICTNESS if self._differs(name)]
        if self.intersections == "bind":
            parts.append("intersections bind")
        return "; ".join(parts)

    @property
    def _favourable(self) -> str:
        if self.favourable is not None:
            return str(self.favourable)
        if self.punitive:
            return "the negative decision (the positive one is the punishment)"
        return "the positive decision"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` restores the policy."""
        plain_fields = {
            name: to_plain_value(getattr(self, name)) for name in _FIELDS if name != "criteria"
        }
        plain_fields["bands"] = {name: list(cuts) for name, cuts in self.bands.items()}
        plain_fields["rule_options"] = dict(self.rule_options)
        criteria = [criterion.to_dict() for criterion in self.criteria]
        return {"schema_version": _VERSION, **plain_fields, "criteria": criteria}

    def to_toml(self) -> str:
        """Return the text of a file from which `load` restores the policy, except its reason."""
        policy = {name: getattr(self, name) for name in _KEYS if self._differs(name)}
        criteria = [("[[policy.criterion]]", criterion.to_dict()) for criterion in self.criteria]
        return write_toml([("[policy]", policy), *criteria])

    def _differs(self, name: str) -> bool:
        return not is_default(_FIELDS[name], getattr(self, name))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        if (
            self.name in PRESETS
            and self.name != "fair_lending"
            and self == _preset_without_options(self.name)
        ):
            return f"Policy.preset({self.name!r})"
        named = [name for name in _FIELDS if name not in TEXTS and self._differs(name)]
        shown = {name: getattr(self, name) for name in named}
        shown |= {name: dict(shown[name]) for name in _TABLES if name in shown}
        return f"Policy({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.criteria), self.alpha, self.floor, self.rule))

    def __reduce__(self) -> tuple[Any, ...]:
        tables = {name: dict(getattr(self, name)) for name in _TABLES}
        return _restore, ({name: getattr(self, name) for name in _FIELDS} | tables,)


def _check_floor(value: object) -> int:
    """Return a minimum group size; smaller groups than `LEAST_FLOOR` have no reliable tests."""
    try:
        return arguments.count("floor", value, LEAST_FLOOR, 10**15)
    except (ArgumentError, ArgumentTypeError) as error:
        raise error.with_message(
            f"floor is {value!r}; accepted: a whole number of {LEAST_FLOOR} or more (smaller "
            "groups decide nothing reliably)"
        ) from None


def _preset_without_options(name: str) -> Policy:
    """Return a preset by name, for those without options."""
    content = PRESETS[name]
    return Policy(
        **{**content, "criteria": [Criterion(**criterion) for criterion in content["criteria"]]}
    )


def _restore(content: dict[str, Any]) -> Policy:
    return Policy(**content)


_FIELDS = {entry.name: entry for entry in fields(Policy)}
#: Fields that are tables.
_TABLES = ("bands", "rule_options")
#: Strictness settings, which the first line names if they differ from the defaults.
_STRICTNESS = ("alpha", "adjustment", "floor", "min_coverage", "strict_coverage")
_COLUMNS = {"labels": "y_true", "decisions": "y_pred", "scores": "y_score"}
_NEEDED = {"name": "a text", "criteria": "a list of criteria, one or more"}
#: Keys of ``[policy]`` in files, besides ``criterion``.
_KEYS = [name for name in _FIELDS if name not in ("criteria", "reason")]
_OF_FILES = ("preset", "ratio", "references", "criterion")


def _checked_table(table: object) -> None:
    """Refuse keys that ``[policy]`` does not have."""
    known_keys("[policy]", table, [*_KEYS, *_OF_FILES])
    assert isinstance(table, Mapping)
    entries = table.get("criterion", [])
    if not isinstance(entries, list):
        raise ArgumentTypeError(
            f"criterion is {entries!r}; accepted: tables [[policy.criterion]], in two brackets",
            argument="criterion",
        )


def _of_table(table: Mapping[str, Any], criteria: Sequence[Criterion] | None) -> Policy:
    """Return the policy of ``[policy]`` and its criteria."""
    given = {name: value for name, value in table.items() if name in _KEYS}
    if "preset" not in table:
        for name in ("ratio", "references"):
            if name in table:
                raise ArgumentError(
                    f"{name} is {table[name]!r}, but there is no preset. Remove it, or add "
                    'preset = "fair_lending".',
                    argument=name,
                    mentions=("preset",),
                )
        for name, is_given in (("name", "name" in table), ("criterion", criteria)):
            if not is_given:
                raise ArgumentError(
                    f"{name} is missing in [policy], which has no preset. Add one of them.",
                    argument=name,
                    mentions=("preset",),
                    code="missing-argument",
                )
        return Policy(**given, criteria=criteria or ())
    name = arguments.choice("preset", table["preset"], get_args(PresetName))
    base = Policy.preset(name, ratio=table.get("ratio"), references=table.get("references"))
    if not criteria:
        return replace(base, **given)
    if base.rule is not None:
        raise ArgumentError(
            f"criterion is given with the preset {name}, which defines its own criteria. Remove "
            "[[policy.criterion]].",
            argument="criterion",
            mentions=("preset",),
            code="conflicting-arguments",
        )
    if "name" not in table:
        raise ArgumentError(
            f"name is missing in [policy], whose criteria are not those of {name}. Give the policy "
            "a name of its own.",
            argument="name",
            code="missing-argument",
        )
    return replace(base, **{**dict.fromkeys(TEXTS, ""), **given}, criteria=criteria)
