"""Attributes that a policy names: each must be in the data, and those with bands hold numbers.

A criterion about an attribute that does not exist has no groups to compare. Skipped, it would turn
a typing error or a renamed column into a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..data.bands import band_names
from ..errors import ArgumentError
from ..results.words import join_names
from .criterion import suggest_nearest
from .policy import Policy
from .questions import AuditedAttribute
from .values import DEFAULT_BANDS


def check_attribute_names(policy: Policy, attributes: Sequence[str]) -> None:
    """Refuse a policy that names an attribute that the data do not have."""
    for key, name in _named(policy, attributes):
        if name not in attributes:
            raise _unknown_attribute(key, name, attributes)


def check_bands(policy: Policy, attributes: Sequence[AuditedAttribute]) -> None:
    """Refuse bands that cut nothing: of text, or with all numbers on one side of the cuts.

    The default ones are for ages; they leave an attribute of that name alone that holds no ages.
    """
    folded = {name.casefold(): (name, cuts) for name, cuts in policy.bands.items()}
    for attribute in attributes:
        name, cuts = folded.get(attribute.name.casefold(), (attribute.name, ()))
        if attribute.name in policy.bands:
            name, cuts = attribute.name, policy.bands[attribute.name]
        others = [group for group in attribute.groups if cuts and group not in band_names(cuts)]
        if others and DEFAULT_BANDS.get(name.casefold()) != cuts:
            raise ArgumentError(
                f"bands of {name!r} is {list(cuts)}, which cuts nothing of "
                f"{attribute.name!r}, whose "
                f"values are {join_names([repr(group) for group in others])}; "
                f"accepted: cuts between "
                "the smallest and the greatest of numbers, or no bands",
                argument="bands",
            )


def _named(policy: Policy, attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every key of a policy that names an attribute, with the name."""
    for criterion in policy.criteria:
        for name in criterion.attributes or ():
            key = f"attributes of the criterion {criterion.name}"
            yield "references" if policy.rule == "fair_lending" else key, name
    # Bands ignore case, and the default ones apply only where there is such an attribute.
    known = {name.casefold(): name for name in attributes}
    for name, cuts in policy.bands.items():
        if DEFAULT_BANDS.get(name.casefold()) != cuts:
            yield "bands", known.get(name.casefold(), name)


def _unknown_attribute(key: str, name: str, attributes: Sequence[str]) -> ArgumentError:
    """Return the error of a name that is not an attribute, with the nearest one."""
    return ArgumentError(
        f"{key} has {name!r}, which is not an attribute of the data; "
        f"{suggest_nearest(name, attributes)}"
        f"accepted: {', '.join(map(repr, attributes))}, or another column that you add to "
        "sensitive_features",
        mentions=("sensitive_features",),
    )
