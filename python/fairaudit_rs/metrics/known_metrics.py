"""The built-in metrics of the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from .metric import Bounds, Metric, RowValue
from .row_values import of_one_row

#: The log loss clips scores at this distance from 0 and 1.
_CLIP = 2.0**-52


def known_metrics() -> Iterator[Metric]:
    """Yield the built-in metrics."""
    rates: dict[str, Metric] = {}

    def rate(name: str, formula: str, description: str, *aliases: str) -> Metric:
        rates[name] = Metric(name, formula, description, aliases, "denominator")
        return rates[name]

    yield rate(
        "selection_rate",
        "(tp + fp) / (tp + fp + fn + tn)",
        "share of positive decisions",
        "acceptance_rate",
        "positive_rate",
        "demographic_parity",
        "statistical_parity",
    )
    yield rate(
        "rejection_rate",
        "(fn + tn) / (tp + fp + fn + tn)",
        "share of negative decisions",
        "refusal_rate",
        "negative_rate",
    )
    yield rate(
        "base_rate", "(tp + fn) / (tp + fp + fn + tn)", "share of positive labels", "prevalence"
    )
    yield rate(
        "true_positive_rate",
        "tp / (tp + fn)",
        "share of positive decisions among positive labels",
        "tpr",
        "recall",
        "sensitivity",
        "equal_opportunity",
    )
    yield rate(
        "false_positive_rate",
        "fp / (fp + tn)",
        "share of positive decisions among negative labels",
        "fpr",
        "fall_out",
        "predictive_equality",
    )
    yield rate(
        "true_negative_rate",
        "tn / (fp + tn)",
        "share of negative decisions among negative labels",
        "tnr",
        "specificity",
    )
    yield rate(
        "false_negative_rate",
        "fn / (tp + fn)",
        "share of negative decisions among positive labels",
        "fnr",
        "miss_rate",
    )
    yield rate(
        "positive_predictive_value",
        "tp / (tp + fp)",
        "share of positive labels among positive decisions",
        "ppv",
        "precision",
        "predictive_parity",
    )
    yield rate(
        "false_discovery_rate",
        "fp / (tp + fp)",
        "share of negative labels among positive decisions",
        "fdr",
    )
    yield rate(
        "negative_predictive_value",
        "tn / (fn + tn)",
        "share of negative labels among negative decisions",
        "npv",
    )
    yield rate(
        "false_omission_rate",
        "fn / (fn + tn)",
        "share of positive labels among negative decisions",
        "for",
    )
    yield rate(
        "accuracy",
        "(tp + tn) / (tp + fp + fn + tn)",
        "share of decisions that equal the label",
        "acc",
    )
    yield rate(
        "error_rate",
        "(fp + fn) / (tp + fp + fn + tn)",
        "share of decisions that differ from the label",
        "zero_one_loss",
        "misclassification_rate",
    )
    yield Metric(
        "balanced_accuracy",
        "(tp / (tp + fn) + tn / (fp + tn)) / 2",
        "mean of the true positive and the true negative rate",
        ("bacc", "balanced_acc"),
        "label",
        limits=(0.0, 1.0),
    )
    yield Metric(
        "f1",
        "2 * tp / (2 * tp + fp + fn)",
        "harmonic mean of precision and recall",
        ("f1_score", "f_score", "dice"),
        "denominator",
        limits=(0.0, 1.0),
    )
    yield Metric(
        "mcc",
        "(tp * tn - fp * fn) / sqrt((tp + fp) * (tp + fn) * (fp + tn) * (fn + tn))",
        "correlation of label and decision",
        ("matthews_corrcoef", "matthews_correlation", "phi"),
        limits=(-1.0, 1.0),
    )
    yield Metric(
        "calibration_error",
        "sum over bins |sum (y - score)| / n",
        "mean distance of label share and score over ten bins of the score",
        ("ece", "expected_calibration_error"),
        "score",
        family="calibration",
        columns=("y_true", "y_score"),
    )
    yield Metric(
        "auc",
        "P(score+ > score-) + P(score+ = score-) / 2",
        "share of pairs of a positive and a negative label that the score puts in order",
        ("roc_auc", "roc_auc_score", "auroc"),
        "label",
        family="ranks",
        columns=("y_true", "y_score"),
    )

    def mean(
        name: str,
        formula: str,
        description: str,
        columns: str,
        value: RowValue,
        *aliases: str,
        bounds: Bounds,
    ) -> Metric:
        return Metric(
            name,
            formula,
            description,
            aliases,
            family="ratio",
            numerator=value,
            columns=tuple(columns.split()),
            bounds=bounds,
            is_residual=value is _residual,
        )

    yield mean(
        "mean_prediction",
        "sum score / n",
        "mean score",
        "y_score",
        "y_score",
        "mean_score",
        bounds=_unit_bounds,
    )
    yield mean(
        "mean_residual",
        "sum (y - score) / n",
        "mean of label minus score",
        "y_true y_score",
        _residual,
        "calibration_in_the_large",
        bounds=_residual_bounds,
    )
    yield mean(
        "mean_absolute_error",
        "sum |y - score| / n",
        "mean distance of label and score",
        "y_true y_score",
        _absolute_residual,
        "mae",
        bounds=_unit_bounds,
    )
    yield mean(
        "mean_squared_error",
        "sum (y - score)^2 / n",
        "mean squared distance of label and score",
        "y_true y_score",
        _squared_residual,
        "mse",
        "brier_score",
        "brier",
        bounds=_unit_bounds,
    )
    yield mean(
        "log_loss",
        "-sum (y ln score + (1 - y) ln (1 - score)) / n",
        "mean negative log-likelihood of the labels, scores kept 2^-52 away from 0 and 1",
        "y_true y_score",
        _log_loss,
        "cross_entropy",
        bounds=_log_loss_bounds,
    )
    yield Metric(
        "equalized_odds",
        "true_positive_rate and false_positive_rate",
        "true and false positive rate at once",
        ("eodds",),
        "label",
        family="joint",
        components=(rates["true_positive_rate"], rates["false_positive_rate"]),
    )
    yield Metric(
        "conditional_use_accuracy",
        "positive_predictive_value and negative_predictive_value",
        "both predictive values at once",
        ("predictive_value_equality",),
        "decision",
        family="joint",
        components=(rates["positive_predictive_value"], rates["negative_predictive_value"]),
    )

    def correlation(
        name: str, formula: str, description: str, columns: str, value: RowValue, by_rank: bool
    ) -> Metric:
        return Metric(
            name,
            formula,
            description,
            family="correlation",
            numerator=value,
            columns=tuple(columns.split()),
            by_rank=by_rank,
        )

    for method, by_rank in (("pearson", False), ("spearman", True)):
        yield correlation(
            method,
            f"{method} correlation of score and attribute",
            "association of the score with a continuous attribute",
            "y_score",
            "y_score",
            by_rank,
        )
        yield correlation(
            f"residual_{method}",
            f"{method} correlation of y - score and attribute",
            "association of the residual with a continuous attribute",
            "y_true y_score",
            _residual,
            by_rank,
        )


@of_one_row
def _residual(rows: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    return rows["y_true"] - rows["y_score"]


@of_one_row
def _absolute_residual(rows: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    residual = _residual(rows)
    return np.abs(residual, out=residual)


@of_one_row
def _squared_residual(rows: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    residual = _residual(rows)
    return np.square(residual, out=residual)


@of_one_row
def _log_loss(rows: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    label, score = rows["y_true"], rows["y_score"]
    if np.any((score < 0) | (score > 1)):
        bad = score[(score < 0) | (score > 1)][0]
        raise ArgumentError(
            f"y_score holds {bad:g}, but log_loss needs scores from 0 to 1. Pass probabilities.",
            argument="y_score",
        )
    if np.any((label != 0) & (label != 1)):
        raise ArgumentError(
            "y_true holds other values than 0 and 1, but log_loss needs labels. Pass 0 and 1.",
            argument="y_true",
        )
    clipped = np.clip(score, _CLIP, 1 - _CLIP)
    return -np.where(label == 1, np.log(clipped), np.log1p(-clipped))


def _are_probabilities(rows: Mapping[str, NDArray[np.float64]]) -> bool:
    """Return whether scores lie from 0 to 1, and labels are 0 and 1."""
    score, label = rows["y_score"], rows.get("y_true", np.zeros(0))
    if not len(score) or score.min() < 0 or score.max() > 1:
        return False
    return bool(np.all((label == 0) | (label == 1)))


def _unit_bounds(rows: Mapping[str, NDArray[np.float64]]) -> tuple[float, float] | None:
    return (0.0, 1.0) if _are_probabilities(rows) else None


def _residual_bounds(rows: Mapping[str, NDArray[np.float64]]) -> tuple[float, float] | None:
    if not _are_probabilities(rows):
        return None
    score = rows["y_score"]
    return -float(score.max()), 1 - float(score.min())


def _log_loss_bounds(rows: Mapping[str, NDArray[np.float64]]) -> tuple[float, float] | None:
    """Return 0 and the largest loss that a label can have at these scores."""
    if not _are_probabilities(rows):
        return None
    score = rows["y_score"]
    least = max(min(float(score.min()), 1 - float(score.max())), _CLIP)
    return 0.0, -float(np.log(least))
