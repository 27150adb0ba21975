"""The class `Criterion`: one metric or lens of a policy, with its tolerance and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias, get_args

import numpy as np

from .. import arguments, metrics
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import OtherLens
from ..metrics.directions import better_direction
from .keys import argument_of
from .keys import check_names as check_names
from .keys import known_keys as known_keys
from .keys import unknown_key_error as unknown_key_error
from .policy_metric import PolicyMetric

#: A value of labels, decisions or groups.
Label: TypeAlias = str | int | float | bool

#: Words for references that depend on the data: the group with the highest or the best value.
HIGHEST, BEST = "highest", "best"
_RATIO = "a number strictly between 0 and 1, such as 0.8"


@dataclass(frozen=True, kw_only=True, repr=False)
class Criterion:
    """A criterion of a policy: one metric or one lens, with its tolerance.

    Parameters
    ----------
    metric : str, optional
        A metric of the registry by name or alias; the alias is replaced by the name.
    lens : {"projection", "individual", "influence", "extremes"}, optional
        A lens instead of a metric, which then has its own verdict.
    tolerance : float, optional
        The largest tolerated difference between two groups. For a lens: the largest growth of the
        loss, above 1 (individual), gap between a group and all others (influence), difference
        between the worst cases of two groups (extremes), gap that remains after the projection
        (projection).
    ratio : float, optional
        The smallest tolerated ratio of the lower to the higher of two groups, below 1; for metrics
        that are shares. A criterion has a tolerance or a ratio; one with neither is only shown, and
        does not bind.
    attributes : sequence of str, optional
        The sensitive attributes of the criterion; None for all. The individual lens takes all at
        once.
    binding : bool
        Whether the verdict depends on it. Other criteria are informational.
    reference : str, number, bool or tuple, optional
        None compares all pairs of groups. ``"highest"`` compares each group with the one of the
        highest value, ``"best"`` with the one of the best value: the lowest error rate, the highest
        accuracy, the most favourable decisions; a pass then still needs all pairs. A group compares
        all others with it, and needs ``attributes`` with the one attribute that it belongs to; if
        the metric has a direction, only groups that are worse off than this reference can fail a
        ratio. A group that is called "highest" or "best" is given as a tuple of one.
    fair_metric : dict or FairMetric, optional
        For the individual lens: the differences between people that must not matter, chosen before
        the data are seen. A table with ``features``, ``directions`` or a ``matrix``, or a
        `FairMetric`, whose matrix is recorded.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> fa.Criterion(metric="recall", tolerance=0.1)
    Criterion(metric='true_positive_rate', tolerance=0.1)
    >>> print(fa.Criterion(metric="selection_rate", ratio=0.8, reference="highest"))
    selection_rate, ratios of at least 0.8 to the highest group
    >>> print(fa.Criterion(lens="individual", tolerance=1.25))
    individual, growth up to 1.25 times
    """

    metric: str | None = None
    lens: OtherLens | None = None
    tolerance: float | None = None
    ratio: float | None = None
    attributes: tuple[str, ...] | None = None
    binding: bool = True
    reference: Label | tuple[Label, ...] | None = None
    fair_metric: PolicyMetric | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.lens is not None:
            _keep(self, lens=arguments.choice("lens", self.lens, get_args(OtherLens)))
        if self.metric is not None and self.lens is not None:
            raise ArgumentError(
                f"lens is {self.lens!r} and metric is {self.metric!r}. A criterion is about one of "
                "them; make two criteria for both.",
                argument="lens",
                mentions=("metric",),
                code="conflicting-arguments",
            )
        if self.metric is None and self.lens is None:
            raise ArgumentError(
                f"metric is None and lens is None. Name {_EITHER}.",
                argument="metric",
                mentions=("lens",),
                code="missing-argument",
            )
        if self.tolerance is not None:
            _keep(self, tolerance=arguments.check(tolerance=self.tolerance).tolerance)
        if self.ratio is not None:
            _keep(self, ratio=arguments.number("ratio", self.ratio, _RATIO, lambda r: 0 < r < 1))
        attributes = self.attributes
        if attributes is not None:
            attributes = check_names("attributes", attributes)
            if not attributes:
                raise ArgumentError(
                    "attributes is empty; accepted: names, or None for all", argument="attributes"
                )
        _keep(self, attributes=attributes)
        _keep(self, binding=arguments.flag("binding", self.binding))
        _keep(self, reference=_reference(self.reference))
        self._check_name()
        if self.fair_metric is not None:
            if self.lens != "individual":
                raise ArgumentError(
                    f"fair_metric is given for {self.name}, which does not use it. Remove it; only "
                    "the lens individual takes one.",
                    argument="fair_metric",
                )
            _keep(self, fair_metric=PolicyMetric.read(self.fair_metric))
        if self.is_fixed_reference and (attributes is None or len(attributes) != 1):
            raise ArgumentError(
                f"reference is {self.reference!r}, a group of one attribute, but attributes "
                f"{'is not given' if attributes is None else f'is {list(attributes)!r}'}. Give "
                "the one that it belongs to, as in attributes = [\"sex\"], or use 'highest' or "
                "'best', or no reference for all pairs.",
                argument="reference",
                mentions=("attributes",),
            )

    def _check_name(self) -> None:
        """Check the thresholds of the metric or the lens; replace an alias by the metric's name."""
        if self.lens is not None:
            self._check_lens(self.lens)
            return
        metric = _metric(self.metric)
        _keep(self, metric=metric.name)
        self._check_threshold(metric)

    def _check_lens(self, lens: str) -> None:
        """Refuse options that a lens does not take, and a binding lens without a tolerance."""
        for name in ("ratio", "reference"):
            if getattr(self, name) is not None:
                raise ArgumentError(
                    f"{name} is {getattr(self, name)!r}, but {lens} is a lens, which takes a "
                    f"tolerance and compares all groups. Remove {name}.",
                    argument=name,
                )
        if self.attributes is not None and lens == "individual":
            raise ArgumentError(
                f"attributes is {list(self.attributes)!r}, but the individual lens takes all "
                "attributes at once. Remove attributes.",
                argument="attributes",
            )
        if self.tolerance is None:
            if self.binding:
                raise ArgumentError(
                    f"tolerance is None, but the lens {lens} binds. Give a number such as "
                    f"{1.25 if lens == 'individual' else 0.1}, or set binding to false.",
                    argument="tolerance",
                    mentions=("binding",),
                    code="missing-argument",
                )
        elif lens == "individual" and self.tolerance <= 1:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r}; accepted for the individual lens: a number "
                "above 1, such as 1.25 for a loss that may grow to 1.25 times its size",
                argument="tolerance",
            )
        elif lens != "individual" and self.tolerance >= 1:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r}; accepted for the lens {lens}: a number above 0 "
                "and below 1, such as 0.1 (shares and scores never differ by more than 1)",
                argument="tolerance",
            )

    def _check_threshold(self, metric: metrics.Metric) -> None:
        """Refuse thresholds that cannot be tested, and binding criteria without a threshold."""
        if self.reference == BEST and better_direction(metric, punitive=False) is None:
            raise ArgumentError(
                f"reference is 'best', but neither high nor low values of {metric.name} are "
                "better. Use None for all pairs, 'highest', or a group.",
                argument="reference",
            )
        if self.tolerance is not None and self.ratio is not None:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r} and ratio is {self.ratio!r}. A criterion takes "
                "one of them; make two criteria for both.",
                argument="tolerance",
                mentions=("ratio",),
                code="conflicting-arguments",
            )
        if not self.has_threshold:
            if self.binding:
                raise ArgumentError(
                    f"tolerance is None and ratio is None, but {self.metric} binds. Give one of "
                    "them, such as a tolerance of 0.1, or set binding to false.",
                    argument="tolerance",
                    mentions=("ratio", "binding"),
                    code="missing-argument",
                )
            return
        threshold = "tolerance" if self.ratio is None else "ratio"
        given = f"{threshold} is {getattr(self, threshold)!r}"
        why = _WHY_NO_TOLERANCE.get(metric.family) or _why_no_joint_tolerance(metric)
        if why:
            raise ArgumentError(f"{given}, but {metric.name} {why}", argument=threshold)
        if self.ratio is not None and not metric.is_proportion:
            raise ArgumentError(
                f"{given}, but {metric.name} is not a share of rows, and only ratios of shares can "
                "be tested. Use a tolerance.",
                argument="ratio",
                mentions=("tolerance",),
            )
        low, high = metric.range
        if self.tolerance is not None and self.tolerance >= high - low:
            raise ArgumentError(
                f"{given}; accepted: a number above 0 and below {high - low:g}, such as 0.1 for "
                f"10 percentage points ({metric.name} goes from {low:g} to {high:g}, so that "
                "nothing could fail)",
                argument="tolerance",
            )

    @property
    def is_chosen_reference(self) -> bool:
        """Return whether the reference group depends on the data."""
        return self.reference in (HIGHEST, BEST)

    @property
    def is_fixed_reference(self) -> bool:
        """Return whether the reference is a named group."""
        return self.reference is not None and not self.is_chosen_reference

    @property
    def has_threshold(self) -> bool:
        """Return whether the criterion has a tolerance or a ratio, so that it can pass or fail."""
        return self.tolerance is not None or self.ratio is not None

    def covers(self, attribute: str) -> bool:
        """Return whether it is about an attribute."""
        return self.attributes is None or attribute in self.attributes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the fields that are not at their default."""
        return {name: to_plain_value(value) for name, value in _set(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Criterion:
        """Return the criterion in a dict; unknown keys are refused."""
        known_keys("a criterion", content, [entry.name for entry in fields(cls)])
        if "metric" not in content and "lens" not in content:
            raise ArgumentError(
                f"metric is missing in a criterion. Name {_EITHER}.",
                argument="metric",
                code="missing-argument",
            )
        return cls(**{name: from_plain_groups(name, value) for name, value in content.items()})

    def __repr__(self) -> str:
        return f"Criterion({', '.join(f'{name}={value!r}' for name, value in _set(self))})"

    @property
    def in_words(self) -> str:
        """The criterion as text, with the meaning of its metric or lens."""
        if self.metric is None:
            return self._describe(f"{self.name} ({LENS_WORDS[self.name]})")
        return self._describe(f"{self.name} ({metrics.get(self.metric).description})")

    @property
    def name(self) -> str:
        """The name of the metric, or of the lens."""
        name = self.metric or self.lens
        assert name is not None
        return name

    def __str__(self) -> str:
        return self._describe(self.name)

    def _describe(self, metric: str) -> str:
        words = [metric]
        if self.lens == "individual" and self.tolerance is not None:
            words.append(f"growth up to {self.tolerance:g} times")
        elif self.tolerance is not None:
            words.append(f"differences up to {self.tolerance:g}{self._compared}")
        elif self.ratio is not None:
            words.append(f"ratios of at least {self.ratio:g}{self._compared}")
        else:
            words.append("no threshold")
        if self.attributes is not None:
            words.append(f"for {' and '.join(self.attributes)}")
        if self.policy_metric is not None:
            words.append(f"under {self.policy_metric}")
        return ", ".join(words)

    @property
    def policy_metric(self) -> PolicyMetric | None:
        """The fair metric of the policy, as plain data."""
        return None if self.fair_metric is None else PolicyMetric.read(self.fair_metric)

    @property
    def _compared(self) -> str:
        if self.reference is None:
            return ""
        chosen = self.is_chosen_reference
        return f" to the {self.reference} group" if chosen else f" to {self.reference}"


# -- metrics and lenses ------------------------------------------------------------------------

_EITHER = "a metric such as 'tpr', or a lens such as 'extremes'"
#: What each lens measures, for readers who do not know its name.
LENS_WORDS: Mapping[str, str] = {
    "projection": "departure of scores from equal rates, which never passes",
    "individual": "growth of the loss between people who differ in little but their groups",
    "influence": "gap of a group to all others",
    "extremes": "worst cases of a flip",
}

#: By family of metrics, why a tolerance cannot be tested, and what to do instead.
_WHY_NO_TOLERANCE = {
    "calibration": "has no test of a tolerance, because calibrated groups of different sizes "
    "differ in it. Use the metric mean_residual, or no threshold and binding false.",
    "correlation": "is about a continuous attribute and has no gap between groups. Use a metric of "
    "groups, and cut the attribute by bands.",
}


def _metric(name: object) -> metrics.Metric:
    """Return a metric of the registry: only those have a name that a file can hold."""
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"metric is {name!r}; accepted: the name of a metric of the registry (add your own "
            "with metrics.register)",
            argument="metric",
        )
    return metrics.get(name)


def _why_no_joint_tolerance(metric: metrics.Metric) -> str:
    if not metric.components:
        return ""
    parts = " and ".join(part.name for part in metric.components)
    return f"has no test of a tolerance. Make a criterion for each of {parts}."


# -- values ------------------------------------------------------------------------------------


def _keep(entry: Any, **checked: Any) -> None:
    for name, value in checked.items():
        object.__setattr__(entry, name, value)


def _set(part: Any) -> list[tuple[str, Any]]:
    """Return the fields that are not at their default, with their values."""
    pairs = [(entry, getattr(part, entry.name)) for entry in fields(part)]
    return [(entry.name, value) for entry, value in pairs if not is_default(entry, value)]


def is_default(entry: Any, value: object) -> bool:
    """Return whether a field has its default; True and 1 are different values."""
    if entry.default_factory is not MISSING:
        default = entry.default_factory()
        return isinstance(value, Mapping) and dict(value) == default
    return type(value) is type(entry.default) and value == entry.default


def _reference(value: object) -> Label | tuple[Label, ...] | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(check_label("reference", part) for part in value)
    if isinstance(value, Mapping) and len(value) == 1:
        (attribute, group), *_ = value.items()
        raise ArgumentTypeError(
            f"reference is {dict(value)!r}; accepted: a group, such as {group!r}, with its "
            f"attribute in attributes = [{str(attribute)!r}]",
            argument="reference",
            mentions=("attributes",),
        )
    return check_label("reference", value)


def check_label(name: str, value: object) -> Label:
    """Return a value if labels, decisions or groups can have it; refuse others."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and value == value):
        return value
    raise ArgumentTypeError(
        f"{name} is {value!r}; accepted: a value of the data: text, a number, True or False",
        argument=argument_of(name),
    )


# -- dicts -------------------------------------------------------------------------------------


def to_plain_value(value: Any) -> Any:
    """Return a value for JSON and TOML: tuples become lists."""
    if isinstance(value, PolicyMetric):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def from_plain_groups(name: str, value: Any) -> Any:
    """Return a value from a dict as the field needs it: a reference of several parts is a tuple."""
    return tuple(value) if name == "reference" and isinstance(value, list) else value
