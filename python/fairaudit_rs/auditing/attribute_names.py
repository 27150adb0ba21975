"""Checks that the attributes in a policy exist in the data, and that its bands split them.

A criterion about an unknown attribute has no groups to compare. If it were skipped, a typing error
or a renamed column could turn a fail into a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..arguments import suggest_nearest
from ..data.bands import band_names
from ..errors import ArgumentError
from ..report.words import join_names
from .policy import Policy
from .questions import AuditedAttribute
from .values import DEFAULT_BANDS


def check_attribute_names(policy: Policy, attributes: Sequence[str]) -> None:
    """Refuse a policy that names an attribute that the data do not have."""
    for argument, owner, name in _names_in_policy(policy, attributes):
        if name not in attributes:
            raise _unknown_attribute(argument, owner, name, attributes)


def check_bands(policy: Policy, attributes: Sequence[AuditedAttribute]) -> None:
    """Refuse bands that do not split their attribute: it holds text, or all numbers in one band.

    The default bands are for ages; an attribute named "age" that holds texts such as "18-29" stays
    as it is. Numbers stored as text are refused, because each would be a group of its own.
    """
    folded = {name.casefold(): (name, cuts) for name, cuts in policy.bands.items()}
    for attribute in attributes:
        name, cuts = folded.get(attribute.name.casefold(), (attribute.name, ()))
        if attribute.name in policy.bands:
            name, cuts = attribute.name, policy.bands[attribute.name]
        unbanded = [group for group in attribute.groups if cuts and group not in band_names(cuts)]
        numbers = [group for group in unbanded if _is_number_as_text(group)]
        if numbers:
            raise ArgumentError(
                f"bands of {name!r} cannot be applied: {attribute.name!r} holds numbers as text, "
                f"such as {numbers[0]!r}, because some values are no numbers. Convert the column "
                "to numbers (with missing values in place of words such as '?'), or remove these "
                "bands.",
                argument="bands",
            )
        if unbanded and DEFAULT_BANDS.get(name.casefold()) != cuts:
            raise ArgumentError(
                f"bands of {name!r} is {list(cuts)}, which does not split {attribute.name!r}, with "
                f"the values {join_names([repr(group) for group in unbanded])}. Give cuts between "
                "the smallest and the largest number, or remove these bands.",
                argument="bands",
            )


def _is_number_as_text(group: object) -> bool:
    """Return whether a group is a text that holds a number."""
    try:
        return isinstance(group, str) and math.isfinite(float(group))
    except ValueError:
        return False


def _names_in_policy(policy: Policy, attributes: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each attribute that a policy names: the argument, whose it is in words, the name."""
    for criterion in policy.criteria:
        for name in criterion.attributes or ():
            if policy.rule == "fair_lending":
                yield "references", "", name
            else:
                yield "attributes", f" of the criterion {criterion.name}", name
    # Bands ignore case, and the default ones apply only where there is such an attribute.
    known = {name.casefold(): name for name in attributes}
    for name, cuts in policy.bands.items():
        if DEFAULT_BANDS.get(name.casefold()) != cuts:
            yield "bands", "", known.get(name.casefold(), name)


def _unknown_attribute(
    argument: str, owner: str, name: str, attributes: Sequence[str]
) -> ArgumentError:
    """Return the error about a name that is not an attribute, with the nearest one."""
    return ArgumentError(
        f"{argument}{owner} has {name!r}, which is not an attribute of the data; "
        f"{suggest_nearest(name, attributes)}"
        f"accepted: {', '.join(map(repr, attributes))}, or another column that you add to "
        "sensitive_features",
        argument=argument,
        mentions=("sensitive_features",),
    )
