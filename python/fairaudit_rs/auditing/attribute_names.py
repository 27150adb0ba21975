"""Attribute names in a policy: each must be an attribute of the data.

A criterion about an attribute that does not exist has no groups to compare. Skipped, it would turn
a typing error or a renamed column into a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import ArgumentError
from .criterion import nearest
from .policy import Policy
from .values import DEFAULT_BANDS


def check_attribute_names(policy: Policy, attributes: Sequence[str]) -> None:
    """Refuse a policy that names an attribute that the data do not have."""
    for key, name in _named(policy, attributes):
        if name not in attributes:
            raise _unknown_attribute(key, name, attributes)


def _named(policy: Policy, attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every key of a policy that names an attribute, with the name."""
    for criterion in policy.criteria:
        for name in criterion.attributes or ():
            key = f"attributes of the criterion {criterion.name}"
            yield "references" if policy.rule == "fair_lending" else key, name
    # Bands ignore case, and the default ones apply only where there is such an attribute.
    known = {name.casefold(): name for name in attributes}
    for name, cuts in policy.bands.items():
        if DEFAULT_BANDS.get(name) != cuts:
            yield "bands", known.get(name.casefold(), name)


def _unknown_attribute(key: str, name: str, attributes: Sequence[str]) -> ArgumentError:
    """Return the error of a name that is not an attribute, with the nearest one."""
    return ArgumentError(
        f"{key} has {name!r}, which is not an attribute of the data; {nearest(name, attributes)}"
        f"accepted: {', '.join(map(repr, attributes))}, or another column that you add to "
        "sensitive_features"
    )
