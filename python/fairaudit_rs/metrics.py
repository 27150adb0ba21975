"""The metric registry: one row per metric, found by name or alias, extended by formulas.

>>> import fairaudit_rs as fa
>>> fa.metrics.get("recall").name
'true_positive_rate'
>>> miss = fa.metrics.count_metric("miss_share", "fn / (fn + tp)")
>>> miss.evaluate(tp=30, fp=5, fn=10, tn=55)
0.25
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from .errors import ArgumentError, ArgumentTypeError, UnknownMetricError

__all__ = ["Metric", "count_metric", "get", "names", "ratio_metric", "register", "table"]

Conditioning = Literal["denominator", "label", "decision", "score"]
Family = Literal["counts", "calibration", "ranks", "ratio"]

#: A number per row: a function of the columns by name, or the name of a column.
RowValue: TypeAlias = Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]] | str

#: What the rows of a set of confusion counts have in common.
_ROWS = {
    (1, 1, 1, 1): "rows",
    (1, 0, 1, 0): "rows with a positive label",
    (0, 1, 0, 1): "rows with a negative label",
    (1, 1, 0, 0): "rows with a positive decision",
    (0, 0, 1, 1): "rows with a negative decision",
}


@dataclass(frozen=True)
class Metric:
    """A metric of one group; a row of the registry.

    Parameters
    ----------
    name : str
        The name that results carry.
    formula : str
        A formula over ``tp, fp, fn, tn`` (family ``"counts"``); for other families only what
        tables print.
    family : {"counts", "calibration", "ranks", "ratio"}
        Counts of labels and decisions; the expected calibration error over ten bins of the
        score; the area under the ROC curve; a ratio of sums of row values.
    description : str
        One line for tables.
    aliases : tuple of str
        Other names that find the metric.
    conditions_on : {"denominator", "label", "decision"}, optional
        Rows whose groups ``strata="auto"`` exchanges among themselves: those of the metric's
        denominator (proportions), of one label, or of one decision. None: all rows.
    numerator, denominator : callable or str, optional
        Row values of a ratio: functions of a mapping of columns, or names of columns of
        ``data``. Without a denominator the ratio is a mean.
    columns : tuple of str
        Which of y_true, y_pred and y_score a metric of another family than counts needs.
    """

    name: str
    formula: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    conditions_on: Conditioning | None = None
    family: Family = "counts"
    numerator: RowValue | None = None
    denominator: RowValue | None = None
    columns: tuple[str, ...] = ()
    _parsed: _native.CountMetric | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.conditions_on not in (None, "denominator", "label", "decision", "score"):
            raise ArgumentError(
                f"conditions_on is {self.conditions_on!r}; accepted: None, 'denominator', "
                "'label', 'decision'"
            )

    def __getstate__(self) -> dict[str, Any]:
        # The parsed formula is made anew where it is needed.
        return {**self.__dict__, "_parsed": None}

    def __reduce__(self) -> Any:
        if _METRICS.get(self.name) is self:
            return get, (self.name,)
        return super().__reduce__()

    @property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        if self._parsed is None:
            object.__setattr__(self, "_parsed", _native.CountMetric.formula(self.formula))
        assert self._parsed is not None
        return self._parsed

    @property
    def is_counts(self) -> bool:
        """Whether the metric is a formula over tp, fp, fn, tn."""
        return self.family == "counts"

    @property
    def is_proportion(self) -> bool:
        """Whether the metric is the share of a set of rows that lie in a subset of it."""
        return self.is_counts and self.native.is_proportion

    @property
    def needs(self) -> tuple[str, ...]:
        """Which of y_true, y_pred and y_score the metric is computed from."""
        if not self.is_counts:
            return self.columns
        fraction = self.native.fraction
        if fraction is None:
            return ("y_true", "y_pred")
        needs = []
        # tp and fn differ by the decision, tp and fp by the label; likewise tn.
        if any(c[0] != c[1] or c[2] != c[3] for c in fraction):
            needs.append("y_true")
        if any(c[0] != c[2] or c[1] != c[3] for c in fraction):
            needs.append("y_pred")
        return tuple(needs)

    @property
    def denominator_rows(self) -> str | None:
        """What the rows in the denominator are called, when they have a plain name."""
        fraction = self.native.fraction if self.is_counts else None
        if fraction is None:
            return None
        a, b, c, d = (int(value != 0) for value in fraction[1])
        return _ROWS.get((a, b, c, d))

    @property
    def variance(self) -> str:
        """The variance that ``studentize="auto"`` takes."""
        return "pooled" if self.is_proportion else "unpooled"

    def evaluate(self, *, tp: float, fp: float, fn: float, tn: float) -> float:
        """Compute the metric from the counts of one group; NaN where it is undefined."""
        if not self.is_counts:
            raise ArgumentError(f"{self.name} is not a function of tp, fp, fn, tn")
        return self.native.evaluate([tp, fp, fn, tn])[0]


def _rows() -> Iterator[Metric]:
    def rate(name: str, formula: str, description: str, *aliases: str) -> Metric:
        return Metric(name, formula, description, aliases, "denominator")

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
    )
    yield Metric(
        "f1",
        "2 * tp / (2 * tp + fp + fn)",
        "harmonic mean of precision and recall",
        ("f1_score", "f_score", "dice"),
    )
    yield Metric(
        "mcc",
        "(tp * tn - fp * fn) / sqrt((tp + fp) * (tp + fn) * (fp + tn) * (fn + tn))",
        "correlation of label and decision",
        ("matthews_corrcoef", "matthews_correlation", "phi"),
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
        name: str, formula: str, description: str, columns: str, value: RowValue, *aliases: str
    ) -> Metric:
        return Metric(
            name,
            formula,
            description,
            aliases,
            family="ratio",
            numerator=value,
            columns=tuple(columns.split()),
        )

    yield mean("mean_prediction", "sum score / n", "mean score", "y_score", "y_score", "mean_score")
    yield mean(
        "mean_residual",
        "sum (y - score) / n",
        "mean of label minus score",
        "y_true y_score",
        lambda rows: rows["y_true"] - rows["y_score"],
        "calibration_in_the_large",
    )
    yield mean(
        "mean_absolute_error",
        "sum |y - score| / n",
        "mean distance of label and score",
        "y_true y_score",
        lambda rows: np.abs(rows["y_true"] - rows["y_score"]),
        "mae",
    )
    yield mean(
        "mean_squared_error",
        "sum (y - score)^2 / n",
        "mean squared distance of label and score",
        "y_true y_score",
        lambda rows: (rows["y_true"] - rows["y_score"]) ** 2,
        "mse",
        "brier_score",
        "brier",
    )
    yield mean(
        "log_loss",
        "-sum (y ln score + (1 - y) ln (1 - score)) / n",
        "mean negative log-likelihood of the labels, scores kept 2^-52 away from 0 and 1",
        "y_true y_score",
        _log_loss,
        "cross_entropy",
    )


def _log_loss(rows: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    label, score = rows["y_true"], rows["y_score"]
    if np.any((score < 0) | (score > 1)):
        bad = score[(score < 0) | (score > 1)][0]
        raise ArgumentError(f"y_score holds {bad:g}; log_loss needs scores from 0 to 1")
    if np.any((label != 0) & (label != 1)):
        raise ArgumentError("y_true holds values besides 0 and 1; log_loss needs labels")
    kept = np.clip(score, 2.0**-52, 1 - 2.0**-52)
    return -np.where(label == 1, np.log(kept), np.log1p(-kept))


_METRICS: dict[str, Metric] = {}
_NAMES: dict[str, str] = {}


def _key(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def register(metric: Metric) -> Metric:
    """Add a metric to the registry, so that it is found by name.

    Raises
    ------
    ArgumentError
        When a name or alias belongs to another metric.
    """
    if not isinstance(metric, Metric):
        raise ArgumentTypeError(f"metric is {metric!r}; accepted: a Metric, see count_metric")
    if metric.is_counts:
        _ = metric.native  # a formula that cannot be read is refused here
    keys = [_key(name) for name in (metric.name, *metric.aliases)]
    for key in keys:
        if _NAMES.get(key, metric.name) != metric.name:
            raise ArgumentError(f"metric name {key!r} belongs to {_NAMES[key]!r} already")
    if metric.name in _METRICS and _METRICS[metric.name] != metric:
        raise ArgumentError(f"metric {metric.name!r} is registered already")
    _METRICS[metric.name] = metric
    _NAMES.update(dict.fromkeys(keys, metric.name))
    return metric


def names() -> list[str]:
    """Return the names of all metrics."""
    return list(_METRICS)


def get(metric: str | Metric) -> Metric:
    """Find a metric by name or alias; a Metric is returned as it is."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise ArgumentTypeError(
            f"metric is {metric!r}; accepted: a name such as 'true_positive_rate', or a Metric"
        )
    name = _NAMES.get(_key(metric))
    if name is not None:
        return _METRICS[name]
    import difflib

    near = difflib.get_close_matches(_key(metric), _NAMES, n=3, cutoff=0.5)
    near_names = list(dict.fromkeys(_NAMES[key] for key in near))
    hint = f"; did you mean {' or '.join(map(repr, near_names))}?" if near_names else ""
    raise UnknownMetricError(
        f"metric is {metric!r}, which is not in the registry{hint} "
        f"(all names: fairaudit_rs.metrics.names(); own ones: fairaudit_rs.metrics.count_metric)"
    )


def count_metric(
    name: str,
    formula: str,
    *,
    description: str = "",
    conditions_on: Literal["label", "decision"] | None = None,
) -> Metric:
    """Make a metric from a formula over tp, fp, fn, tn.

    Parameters
    ----------
    name : str
        The name that results carry.
    formula : str
        Numbers, ``tp``, ``fp``, ``fn``, ``tn``, ``+ - * / **`` (whole exponents),
        parentheses, ``sqrt()``, ``abs()``, ``min(,)``, ``max(,)``. The value must not change
        when all counts are scaled. It is parsed and differentiated, never evaluated as code.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`. A proportion conditions on its denominator by itself.

    Returns
    -------
    Metric
        Pass it as ``metric=``, or make it known by name with `register`.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> fa.metrics.count_metric("jaccard", "tp / (tp + fp + fn)").is_proportion
    True
    """
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError(f"name is {name!r}; accepted: a word that results can carry")
    if not isinstance(formula, str):
        raise ArgumentTypeError(f"formula is {formula!r}; accepted: text such as 'tp / (tp + fn)'")
    if conditions_on not in (None, "label", "decision"):
        raise ArgumentError(
            f"conditions_on is {conditions_on!r}; accepted: None, 'label', 'decision'"
        )
    native = _native.CountMetric.formula(formula)
    conditioning: Conditioning | None = conditions_on
    if conditions_on is None and native.is_proportion:
        conditioning = "denominator"
    return Metric(name, formula, description or formula, (), conditioning)


def ratio_metric(
    name: str,
    numerator: RowValue,
    denominator: RowValue | None = None,
    *,
    description: str = "",
    columns: tuple[str, ...] = (),
) -> Metric:
    """Make a metric that is a ratio of sums of row values, or a mean.

    Parameters
    ----------
    name : str
        The name that results carry.
    numerator, denominator : callable or str
        The value of each row: the name of a column of ``data``, or a function of a mapping of
        the columns named in ``columns``. Without a denominator the metric is a mean.
    description : str, optional
        One line for tables.
    columns : tuple of str
        Which of ``"y_true"``, ``"y_pred"``, ``"y_score"`` a function looks at.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> cost = fa.metrics.ratio_metric("cost_per_case", "cost", "cases")
    >>> miss = fa.metrics.ratio_metric(
    ...     "missed_score", lambda rows: rows["y_true"] * (1 - rows["y_score"]),
    ...     lambda rows: rows["y_true"], columns=("y_true", "y_score"))
    >>> miss.needs
    ('y_true', 'y_score')
    """
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError(f"name is {name!r}; accepted: a word that results can carry")
    for argument, value in (("numerator", numerator), ("denominator", denominator)):
        if not (
            callable(value) or isinstance(value, str) or (value is None and argument[0] == "d")
        ):
            raise ArgumentTypeError(
                f"{argument} is {value!r}; accepted: a function of a mapping of columns, or the "
                "name of a column"
            )
    unknown = set(columns) - {"y_true", "y_pred", "y_score"}
    if unknown:
        raise ArgumentError(
            f"columns names {sorted(unknown)}; accepted: 'y_true', 'y_pred', 'y_score'"
        )

    def shown(value: RowValue | None) -> str:
        return "n" if value is None else f"sum {value if isinstance(value, str) else 'f(row)'}"

    return Metric(
        name,
        f"{shown(numerator)} / {shown(denominator)}",
        description,
        family="ratio",
        numerator=numerator,
        denominator=denominator,
        columns=tuple(columns),
    )


def table() -> list[dict[str, str]]:
    """Return the registry as rows of text: what the docs and ``fairaudit metrics`` print."""
    exchanged = {
        "denominator": "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        "score": "rows of the same score bin",
        None: "all rows",
    }
    return [
        {
            "metric": metric.name,
            "aliases": ", ".join(metric.aliases),
            "formula": metric.formula,
            "meaning": metric.description,
            "variance": metric.variance,
            'exchanged by strata="auto"': exchanged[metric.conditions_on],
        }
        for metric in _METRICS.values()
    ]


for _metric in _rows():
    register(_metric)
