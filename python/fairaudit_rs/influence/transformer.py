"""Wrap a repair as a scikit-learn transformer; imported on first use only."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from sklearn.base import BaseEstimator, TransformerMixin


class RowRepair(Protocol):
    """A repair that changes the features of rows."""

    def transform(self, X: Any, group: Any, rng: Any = None) -> Any:
        """Return rows with changed features."""
        ...


class RepairTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Applies a repair to the rows of its target group; requests the metadata ``group``."""

    #: Pipelines pass this metadata on by default.
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"group": True}

    def __init__(self, repair: RowRepair, rng: Any = None) -> None:
        self.repair = repair
        self.rng = rng

    def fit(self, X: Any, y: Any = None) -> RepairTransformer:
        """Do nothing: the repair is fitted already."""
        return self

    def transform(self, X: Any, group: Any) -> Any:
        """Return the rows after the repair."""
        return self.repair.transform(X, group, self.rng)

    def fit_transform(self, X: Any, y: Any = None, group: Any = None) -> Any:
        """Return the rows after the repair."""
        return self.transform(X, group)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags
