"""The metric registry: one row per metric, found by name or alias, extended by formulas.

>>> import fairaudit_rs as fa
>>> fa.metrics.get("recall").name
'true_positive_rate'
>>> miss = fa.metrics.count_metric("miss_share", "fn / (fn + tp)")
>>> miss.evaluate(tp=30, fp=5, fn=10, tn=55)
0.25
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from . import _native
from .errors import ArgumentError, ArgumentTypeError, UnknownMetricError

__all__ = ["Metric", "count_metric", "get", "names", "register", "table"]

Conditioning = Literal["denominator", "label", "decision"]

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
        A formula over ``tp, fp, fn, tn``, or ``"calibration"`` for the expected calibration
        error over ten bins of the score.
    description : str
        One line for tables.
    aliases : tuple of str
        Other names that find the metric.
    conditions_on : {"denominator", "label", "decision"}, optional
        Rows whose groups ``strata="auto"`` exchanges among themselves: those of the metric's
        denominator (proportions), of one label, or of one decision. None: all rows.
    """

    name: str
    formula: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    conditions_on: Conditioning | None = None
    _parsed: _native.CountMetric | None = field(default=None, repr=False, compare=False)

    @property
    def native(self) -> _native.CountMetric:
        """The metric as the native module evaluates it."""
        if self._parsed is None:
            object.__setattr__(self, "_parsed", _native.CountMetric.formula(self.formula))
        assert self._parsed is not None
        return self._parsed

    @property
    def is_calibration(self) -> bool:
        """Whether the metric compares labels with scores instead of decisions."""
        return self.formula == "calibration"

    @property
    def is_proportion(self) -> bool:
        """Whether the metric is the share of a set of rows that lie in a subset of it."""
        return not self.is_calibration and self.native.is_proportion

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that the metric is computed from."""
        if self.is_calibration:
            return ("y_true", "y_score")
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
        fraction = None if self.is_calibration else self.native.fraction
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
        if self.is_calibration:
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
        "calibration",
        "mean distance of label share and score over ten bins of the score",
        ("ece", "expected_calibration_error"),
    )


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
    if not metric.is_calibration:
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
    conditioning: Conditioning | None = "denominator" if native.is_proportion else conditions_on
    return Metric(name, formula, description or formula, (), conditioning, native)


def table() -> list[dict[str, str]]:
    """Return the registry as rows of text: what the docs and ``fairaudit metrics`` print."""
    exchanged = {
        "denominator": "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        None: "all rows",
    }
    return [
        {
            "metric": metric.name,
            "aliases": ", ".join(metric.aliases),
            "formula": "sum over bins |sum (y - score)| / n"
            if metric.is_calibration
            else metric.formula,
            "meaning": metric.description,
            "variance": metric.variance,
            'exchanged by strata="auto"': exchanged[metric.conditions_on],
        }
        for metric in _METRICS.values()
    ]


for _metric in _rows():
    register(_metric)
