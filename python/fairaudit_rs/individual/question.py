"""Models whose gradient flow is known, whatever is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data.labels import Label
from ..errors import ArgumentError, ArgumentTypeError
from ..models.adapt import adapt
from ..models.kernel import KernelModel
from ..models.linear import LinearModel
from ..models.multiclass import MulticlassModel
from ..models.network import TorchModel
from ..models.scores import Scores, scores_of
from ..models.sklearn import is_tree, multiclass_from_sklearn
from .targets import Targets, classes, labels, numbers

LOSSES = ("log_loss", "smooth_hinge", "softplus_hinge", "squared")


@dataclass(frozen=True, kw_only=True)
class FlowModel:
    """Scores of rows, and what they decide."""

    scores: Scores
    #: The score from which on the decision is 1; None with several scores.
    boundary: float | None
    link: str
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...] | None

    def targets(self, y: Any, loss: str, pos_label: Label, n_threads: int | None) -> Targets:
        """Return what the scores are measured against."""
        if loss == "squared":
            values = numbers(y, pos_label)
        elif self.classes:
            values = classes(y, self.classes, pos_label)
        else:
            values = labels(y, pos_label)
        return Targets(values, loss, self.boundary, n_threads)


def flow_model(model: Any, loss: str, ratio: str) -> FlowModel:
    """Return the scores of a model, and refuse a loss that they are not made for."""
    if is_tree(model):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__}, whose score is piecewise constant: there is no "
            "gradient to follow; accepted: linear models, kernel models and networks"
        )
    several = model if isinstance(model, MulticlassModel) else multiclass_from_sklearn(model)
    if several is not None:
        if loss != "log_loss":
            raise ArgumentError(
                f"loss is {loss!r} for a model of {len(several.classes)} classes; accepted: "
                "'log_loss', the multinomial one"
            )
        return FlowModel(
            scores=several.scores,
            boundary=None,
            link="logit",
            classes=several.classes,
            feature_names=several.feature_names,
        )
    adapted = adapt(model)
    if not isinstance(adapted, LinearModel | KernelModel | TorchModel):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__}, whose gradient is not known; accepted: a "
            "LinearModel, KernelModel, TorchModel or MulticlassModel, or a fitted model that "
            "becomes one of them"
        )
    if loss == "log_loss" and adapted.link != "logit":
        raise ArgumentError(
            "model has link='identity', so that its score is no log-odds; loss='log_loss' accepts "
            "link='logit' (the same model with link='logit' if it is one). For the margin of a "
            "support vector machine loss='smooth_hinge' or 'softplus_hinge' is accepted, for "
            "regressions loss='squared'"
        )
    if loss == "squared" and adapted.link == "logit":
        raise ArgumentError(
            "model has link='logit', so that its score is a log-odds and no prediction of y; "
            "loss='squared' accepts link='identity'"
        )
    if loss == "squared" and ratio == "error_rate":
        raise ArgumentError(
            "ratio is 'error_rate', but numbers have no wrong decisions; accepted with "
            "loss='squared': 'loss'"
        )
    return FlowModel(
        scores=scores_of(adapted),
        boundary=adapted.boundary,
        link=adapted.link,
        classes=adapted.classes or (),
        feature_names=adapted.feature_names,
    )
