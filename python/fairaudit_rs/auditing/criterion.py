"""One criterion of a policy: a metric or a lens, what is tolerated of it, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias, get_args

import numpy as np

from .. import arguments, metrics
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import OtherLens
from ..metrics.directions import better_value
from .keys import check_names as check_names
from .keys import known_keys as known_keys
from .keys import suggest_nearest as suggest_nearest
from .keys import unknown_key_error as unknown_key_error
from .policy_metric import PolicyMetric

#: A value of labels, decisions or groups.
Label: TypeAlias = str | int | float | bool

#: References that the data choose: the group with the highest value, or with the best one.
HIGHEST, BEST = "highest", "best"
_RATIO = "a number strictly between 0 and 1, such as 0.8"


@dataclass(frozen=True, kw_only=True, repr=False)
class Criterion:
    """A criterion of a policy: one metric or one lens, with its tolerance.

    Parameters
    ----------
    metric : str, optional
        A metric of the registry by name or alias; it is kept by its name.
    lens : {"projection", "individual", "influence", "extremes"}, optional
        A lens in the place of a metric, which then has a verdict of its own.
    tolerance : float, optional
        The largest difference of two groups that is tolerated. Of a lens: the largest growth of the
        loss, above 1 (individual), gap of a group to all others (influence), difference of worst
        cases of two groups (extremes), gap that scores are projected to (projection).
    ratio : float, optional
        The smallest ratio of the lower to the higher of two groups that is tolerated, below 1; of
        shares only. A criterion has a tolerance or a ratio; one that has neither is only shown, and
        does not bind.
    attributes : sequence of str, optional
        The sensitive attributes that it is about; None for all. The individual lens takes all at
        once.
    binding : bool
        Whether the verdict depends on it. Others inform.
    reference : str, number, bool or tuple, optional
        None compares all pairs of groups; ``"highest"`` compares each group with the one of the
        highest value, ``"best"`` with the one of the best value: the lowest error rate, the highest
        accuracy, the most favourable decisions. A pass takes all pairs then, too. A group compares
        all others with it, and goes with the one attribute that it is a group of; a ratio to it
        counts in one direction where the metric has one, so that a group that is better off than
        the reference does not fail. A group that is called "highest" or "best" is given as a tuple
        of one.
    fair_metric : dict or FairMetric, optional
        Of the individual lens: which differences between people must not count, given before the
        data are seen. A table with ``features``, ``directions`` or a ``matrix``, or a `FairMetric`,
        whose matrix is recorded.

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
                f"lens is {self.lens!r} and metric is {self.metric!r}; accepted: one of them, and "
                "two criteria for both",
                argument="lens",
            )
        if self.metric is None and self.lens is None:
            raise ArgumentError(
                f"metric is None and lens is None; accepted: {_EITHER}", argument="metric"
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
                    f"fair_metric is given for {self.name}; accepted with the lens individual "
                    "alone",
                    argument="fair_metric",
                )
            _keep(self, fair_metric=PolicyMetric.read(self.fair_metric))
        if self.is_fixed_reference and (attributes is None or len(attributes) != 1):
            raise ArgumentError(
                f"reference is {self.reference!r} and attributes is {attributes!r}; accepted: the "
                "one attribute that it is a group of, None for all pairs, 'highest' or 'best'",
                argument="reference",
            )

    def _check_name(self) -> None:
        """Keep the name of the metric, and check what is asked of it, or of the lens."""
        if self.lens is not None:
            self._check_lens(self.lens)
            return
        metric = _metric(self.metric)
        _keep(self, metric=metric.name)
        self._check_threshold(metric)

    def _check_lens(self, lens: str) -> None:
        """Refuse what a lens does not take, and one that binds without a tolerance."""
        for name in ("ratio", "reference"):
            if getattr(self, name) is not None:
                raise ArgumentError(
                    f"{name} is {getattr(self, name)!r}; {lens} is a lens, which takes a tolerance "
                    "and compares all groups",
                    argument=name,
                )
        if self.attributes is not None and lens == "individual":
            raise ArgumentError(
                f"attributes is {list(self.attributes)!r}; the individual lens takes all "
                "attributes at once; accepted: None",
                argument="attributes",
            )
        if self.tolerance is None:
            if self.binding:
                raise ArgumentError(
                    f"tolerance is None, but the lens {lens} binds; accepted: a number such as "
                    f"{1.25 if lens == 'individual' else 0.1}, or binding false for what is only "
                    "shown",
                    argument="tolerance",
                )
        elif lens == "individual" and self.tolerance <= 1:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r}; of the individual lens it is how many times "
                "itself a loss may grow to; accepted: a number above 1, such as 1.25",
                argument="tolerance",
            )
        elif lens != "individual" and self.tolerance >= 1:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r}; of {lens} it is a difference of shares or "
                "scores, so that nothing could fail; accepted: a number above 0 and below 1, such "
                "as 0.1",
                argument="tolerance",
            )

    def _check_threshold(self, metric: metrics.Metric) -> None:
        """Refuse thresholds that no test has, and criteria that bind without one."""
        if self.reference == BEST and better_value(metric, punitive=False) is None:
            raise ArgumentError(
                f"reference is 'best'; neither high nor low values of {metric.name} are better; "
                "accepted: None for all pairs, 'highest', or a group",
                argument="reference",
            )
        if self.tolerance is not None and self.ratio is not None:
            raise ArgumentError(
                f"tolerance is {self.tolerance!r} and ratio is {self.ratio!r}; accepted: one of "
                "them, and two criteria for both",
                argument="tolerance",
            )
        if not self.has_threshold:
            if self.binding:
                raise ArgumentError(
                    f"tolerance is None and ratio is None, but {self.metric} binds; accepted: one "
                    "of them, such as tolerance 0.1, or binding false for what is only shown",
                    argument="tolerance",
                )
            return
        given = f"tolerance is {self.tolerance!r}" if self.ratio is None else self._ratio_is
        why = _WHY_NO_TOLERANCE.get(metric.family) or _of_joint(metric)
        if why:
            raise ArgumentError(f"{given}; {metric.name} {why}")
        if self.ratio is not None and not metric.is_proportion:
            raise ArgumentError(
                f"{given}; {metric.name} is no share of rows, and ratios of others have no test "
                "of a tolerance; accepted: a tolerance"
            )
        low, high = metric.range
        if self.tolerance is not None and self.tolerance >= high - low:
            raise ArgumentError(
                f"{given}; {metric.name} goes from {low:g} to {high:g}, so that nothing could "
                f"fail; accepted: a number above 0 and below {high - low:g}, such as 0.1"
            )

    @property
    def _ratio_is(self) -> str:
        return f"ratio is {self.ratio!r}"

    @property
    def is_chosen_reference(self) -> bool:
        """Return whether the data choose the group that others are compared with."""
        return self.reference in (HIGHEST, BEST)

    @property
    def is_fixed_reference(self) -> bool:
        """Return whether all groups are compared with one that is named."""
        return self.reference is not None and not self.is_chosen_reference

    @property
    def has_threshold(self) -> bool:
        """Return whether anything can pass or fail."""
        return self.tolerance is not None or self.ratio is not None

    def covers(self, attribute: str) -> bool:
        """Return whether it is about an attribute."""
        return self.attributes is None or attribute in self.attributes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the fields that are not at their default."""
        return {name: to_plain_value(value) for name, value in _set(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Criterion:
        """Return the criterion that a dict holds; keys that it does not know are refused."""
        known_keys("a criterion", content, [entry.name for entry in fields(cls)])
        if "metric" not in content and "lens" not in content:
            raise ArgumentError(
                f"metric is missing in a criterion; accepted: {_EITHER}", argument="metric"
            )
        return cls(**{name: from_plain_groups(name, value) for name, value in content.items()})

    def __repr__(self) -> str:
        return f"Criterion({', '.join(f'{name}={value!r}' for name, value in _set(self))})"

    @property
    def in_words(self) -> str:
        """The criterion with what its metric is, for people who do not know names of metrics."""
        if self.metric is None:
            return self._told(f"{self.name} ({LENS_WORDS[self.name]})")
        return self._told(f"{self.name} ({metrics.get(self.metric).description})")

    @property
    def name(self) -> str:
        """The name of the metric, or of the lens."""
        name = self.metric or self.lens
        assert name is not None
        return name

    def __str__(self) -> str:
        return self._told(self.name)

    def _told(self, metric: str) -> str:
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
        """The fair metric that is given, as data."""
        return None if self.fair_metric is None else PolicyMetric.read(self.fair_metric)

    @property
    def _compared(self) -> str:
        if self.reference is None:
            return ""
        chosen = self.is_chosen_reference
        return f" to the {self.reference} group" if chosen else f" to {self.reference}"


# -- metrics and lenses ------------------------------------------------------------------------

_EITHER = "a metric such as 'tpr', or a lens such as 'extremes'"
#: What each lens measures, for people who do not know its name.
LENS_WORDS: Mapping[str, str] = {
    "projection": "departure of scores from equal rates, which never passes",
    "individual": "growth of the loss between people who differ in little but their groups",
    "influence": "gap of a group to all others",
    "extremes": "worst cases of a flip",
}

#: By family, why there is no test of a tolerance.
_WHY_NO_TOLERANCE = {
    "calibration": "has no test of a tolerance, as calibrated groups of different sizes differ in "
    "it; accepted: no threshold and binding false, or the metric mean_residual",
    "correlation": "is of a continuous attribute and has no gap of groups; accepted: a metric of "
    "groups, with the attribute cut by bands",
}


def _metric(name: object) -> metrics.Metric:
    """Return a metric of the registry; others have no name that a file could hold."""
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"metric is {name!r}; accepted: the name of a metric of the registry; your own gets "
            "one by metrics.register",
            argument="metric",
        )
    return metrics.get(name)


def _of_joint(metric: metrics.Metric) -> str:
    if not metric.components:
        return ""
    parts = " and ".join(part.name for part in metric.components)
    return f"has no test of a tolerance; accepted: a criterion for each of {parts}"


# -- values ------------------------------------------------------------------------------------


def _keep(entry: Any, **checked: Any) -> None:
    for name, value in checked.items():
        object.__setattr__(entry, name, value)


def _set(part: Any) -> list[tuple[str, Any]]:
    """Return the fields that are not at their default, with their values."""
    pairs = [(entry, getattr(part, entry.name)) for entry in fields(part)]
    return [(entry.name, value) for entry, value in pairs if not is_default(entry, value)]


def is_default(entry: Any, value: object) -> bool:
    """Return whether a field has its default: True is not 1."""
    if entry.default_factory is not MISSING:
        made = entry.default_factory()
        return isinstance(value, Mapping) and dict(value) == made
    return type(value) is type(entry.default) and value == entry.default


def _reference(value: object) -> Label | tuple[Label, ...] | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(check_label("reference", part) for part in value)
    return check_label("reference", value)


def check_label(name: str, value: object) -> Label:
    """Return a value that labels, decisions or groups may have."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and value == value):
        return value
    raise ArgumentTypeError(
        f"{name} is {value!r}; accepted: a value of the data: text, a number, True or False",
        argument=name,
    )


# -- dicts -------------------------------------------------------------------------------------


def to_plain_value(value: Any) -> Any:
    """Return a value as JSON and TOML have it: lists for tuples."""
    if isinstance(value, PolicyMetric):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def from_plain_groups(name: str, value: Any) -> Any:
    """Return what a dict holds in a field as the field has it."""
    return tuple(value) if name == "reference" and isinstance(value, list) else value
