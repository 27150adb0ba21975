"""The metric registry: one row per metric, found by name or alias, extended by formulas.

>>> import fairaudit_rs as fa
>>> fa.metrics.get("recall").name
'true_positive_rate'
>>> miss = fa.metrics.count_metric("miss_share", "fn / (fn + tp)")
>>> miss.evaluate(tp=30, fp=5, fn=10, tn=55)
0.25
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native, arguments
from .errors import ArgumentError, ArgumentTypeError, UnknownMetricError

__all__ = [
    "Metric",
    "callable_metric",
    "correlation_metric",
    "count_metric",
    "get",
    "joint_metric",
    "names",
    "ratio_metric",
    "register",
    "table",
]

Conditioning = Literal["denominator", "label", "decision", "score"]
Family = Literal["counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"]

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
    family : {"counts", "calibration", "ranks", "ratio", "joint", "correlation", "callable"}
        Counts of labels and decisions; the expected calibration error over ten bins of the
        score; the area under the ROC curve; a ratio of sums of row values; several count
        metrics at once; the correlation of a row value with a continuous attribute; any function
        of the rows of a group.
    description : str
        One line for tables.
    aliases : tuple of str
        Other names that find the metric.
    conditions_on : {"denominator", "label", "decision"}, optional
        Rows whose groups ``strata="auto"`` exchanges among themselves: those of the metric's
        denominator (proportions), of one label, or of one decision. None: all rows.
    numerator, denominator : callable or str, optional
        Row values of a ratio: functions of a mapping of columns, or names of columns of
        ``data``. Without a denominator the ratio is a mean. The numerator is also the row value
        of a correlation.
    columns : tuple of str
        Which of y_true, y_pred and y_score a metric of another family than counts needs.
    components : tuple of Metric
        The metrics of a joint criterion.
    by_rank : bool
        Whether a correlation is one of ranks (Spearman).
    function : callable, optional
        The function of a metric of family callable; see `callable_metric`.
    n_samples : int
        Bootstrap samples per replicate that studentize a callable.
    limits : tuple of float
        The least and the greatest value of the metric; those of proportions and of the AUC are
        known.
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
    components: tuple[Metric, ...] = ()
    by_rank: bool = False
    function: Callable[..., Any] | None = None
    n_samples: int = 100
    limits: tuple[float, float] = (-math.inf, math.inf)
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
            parsed = (
                _native.CountMetric.joint([part.native for part in self.components])
                if self.family == "joint"
                else _native.CountMetric.formula(self.formula)
            )
            object.__setattr__(self, "_parsed", parsed)
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
        if self.family == "joint":
            needed = {name for part in self.components for name in part.needs}
            return tuple(name for name in ("y_true", "y_pred") if name in needed)
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
    def range(self) -> tuple[float, float]:
        """The least and the greatest value that the metric can have."""
        return (0.0, 1.0) if self.is_proportion or self.family == "ranks" else self.limits

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
        if self.family == "callable":
            return "bootstrap"
        return "pooled" if self.is_proportion or self.is_separate else "unpooled"

    @property
    def is_separate(self) -> bool:
        """Whether a joint criterion is one of proportions that share no rows."""
        if not self.components or not all(part.is_proportion for part in self.components):
            return False
        denominators = [(part.native.fraction or ([], []))[1] for part in self.components]
        return all(sum(rows) <= 1 for rows in zip(*denominators, strict=True))

    def evaluate(self, *, tp: float, fp: float, fn: float, tn: float) -> float:
        """Compute the metric from the counts of one group; NaN where it is undefined."""
        if not self.is_counts:
            raise ArgumentError(f"{self.name} is not a function of tp, fp, fn, tn")
        return self.native.evaluate([tp, fp, fn, tn])[0]


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
    _check_name(name)
    if not isinstance(formula, str):
        raise ArgumentTypeError(f"formula is {formula!r}; accepted: text such as 'tp / (tp + fn)'")
    _check_conditioning(conditions_on)
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
    _check_name(name)
    _check_row_value("numerator", numerator)
    if denominator is not None:
        _check_row_value("denominator", denominator)
    columns = _check_columns(columns)

    def shown(value: RowValue | None) -> str:
        return "n" if value is None else f"sum {value if isinstance(value, str) else 'f(row)'}"

    return Metric(
        name,
        f"{shown(numerator)} / {shown(denominator)}",
        description,
        family="ratio",
        numerator=numerator,
        denominator=denominator,
        columns=columns,
    )


def joint_metric(
    name: str,
    components: Sequence[str | Metric],
    *,
    description: str = "",
    conditions_on: Literal["label", "decision"] | None = None,
) -> Metric:
    """Make a criterion that asks for several count metrics to be equal at once.

    Parameters
    ----------
    name : str
        The name that results carry.
    components : sequence of str or Metric
        At least two count metrics. They are tested by the quadratic form of their differences,
        which knows how the metrics of one group are correlated.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> fa.metrics.joint_metric("both_rates", ["tpr", "ppv"]).components[1].name
    'positive_predictive_value'
    """
    _check_name(name)
    _check_conditioning(conditions_on)
    if not isinstance(components, list | tuple):
        raise ArgumentTypeError(
            f"components is {components!r}; accepted: a list of at least two count metrics"
        )
    parts = tuple(get(component) for component in components)
    wrong = [part.name for part in parts if not part.is_counts]
    if len(parts) < 2 or wrong:
        raise ArgumentError(
            f"components is {[part.name for part in parts]}; accepted: at least two count metrics"
        )
    formula = " and ".join(part.name for part in parts)
    return Metric(
        name, formula, description or formula, (), conditions_on, "joint", components=parts
    )


def correlation_metric(
    name: str,
    value: RowValue,
    *,
    method: Literal["pearson", "spearman"] = "pearson",
    description: str = "",
    columns: tuple[str, ...] = (),
) -> Metric:
    """Make a metric that correlates a row value with a continuous sensitive attribute.

    Parameters
    ----------
    name : str
        The name that results carry.
    value : callable or str
        The value of each row; see `ratio_metric`.
    method : {"pearson", "spearman"}
        Correlation of the values, or of their ranks.
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
    >>> error = fa.metrics.correlation_metric(
    ...     "error_by_age", lambda rows: abs(rows["y_true"] - rows["y_score"]),
    ...     columns=("y_true", "y_score"))
    >>> result = fa.permutation_test(
    ...     [0, 1, 0, 1], y_score=[0.1, 0.8, 0.4, 0.4], sensitive_features=[20, 31, 42, 53],
    ...     metric=error, rng=1)
    >>> result.engine
    'shuffle'
    """
    _check_name(name)
    _check_row_value("value", value)
    columns = _check_columns(columns)
    if method not in ("pearson", "spearman"):
        raise ArgumentError(f"method is {method!r}; accepted: 'pearson', 'spearman'")
    shown = value if isinstance(value, str) else "f(row)"
    return Metric(
        name,
        f"{method} correlation of {shown} and the attribute",
        description,
        family="correlation",
        numerator=value,
        columns=columns,
        by_rank=method == "spearman",
    )


def callable_metric(
    name: str,
    function: Any,
    *,
    columns: tuple[str, str] = ("y_true", "y_pred"),
    description: str = "",
    conditions_on: Literal["label", "decision"] | None = None,
    n_samples: int = 100,
) -> Metric:
    """Make a metric of any function of the rows of a group.

    Parameters
    ----------
    name : str
        The name that results carry.
    function : callable, or a numba cfunc
        ``function(y_true, value, weight) -> float`` of the rows of one group: float arrays, and
        None for the weight when there is none. NaN says that it has no value. A compiled
        function ``float64(CPointer(float64), CPointer(float64), CPointer(float64), int64)``
        (anything with an ``address``) gets the three arrays, weights of 1 when there are none,
        and the number of rows; it runs on all threads without the interpreter.
    columns : tuple of str
        ``("y_true", "y_pred")`` or ``("y_true", "y_score")``: what the function gets.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`.
    n_samples : int
        Bootstrap samples of every replicate that studentize the statistic (equation (1) of
        DiCiccio et al.). The function is called ``1 + n_samples`` times per group and replicate;
        ``studentize="shared"`` needs no samples.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import numpy as np
    >>> import fairaudit_rs as fa
    >>> def median_error(y_true, y_score, weight):
    ...     return float(np.median(np.abs(y_true - y_score)))
    >>> median = fa.metrics.callable_metric(
    ...     "median_error", median_error, columns=("y_true", "y_score"))
    >>> median.variance
    'bootstrap'
    """
    _check_name(name)
    if not callable(function) and not hasattr(function, "address"):
        raise ArgumentTypeError(
            f"function is {function!r}; accepted: a function of (y_true, value, weight), or a "
            "compiled one with an address"
        )
    pairs = (("y_true", "y_pred"), ("y_true", "y_score"))
    if not isinstance(columns, list | tuple) or tuple(columns) not in pairs:
        raise ArgumentError(
            f"columns is {columns!r}; accepted: ('y_true', 'y_pred'), ('y_true', 'y_score')"
        )
    _check_conditioning(conditions_on)
    if conditions_on == "decision" and "y_pred" not in columns:
        raise ArgumentError(
            "conditions_on is 'decision', but the function gets y_score; accepted: None, 'label'"
        )
    return Metric(
        name,
        f"f({', '.join(columns)}, weight)",
        description or getattr(function, "__doc__", None) or "",
        conditions_on=conditions_on,
        family="callable",
        columns=tuple(columns),
        function=function,
        n_samples=arguments.count("n_samples", n_samples, 2, 1_000_000),
    )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError(f"name is {name!r}; accepted: a word that results can carry")


def _check_conditioning(value: object) -> None:
    if value not in (None, "label", "decision"):
        raise ArgumentError(f"conditions_on is {value!r}; accepted: None, 'label', 'decision'")


def _check_row_value(argument: str, value: object) -> None:
    if not (callable(value) or isinstance(value, str)):
        raise ArgumentTypeError(
            f"{argument} is {value!r}; accepted: a function of a mapping of columns, or the "
            "name of a column"
        )


def _check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    unknown = set(columns) - {"y_true", "y_pred", "y_score"}
    if unknown:
        raise ArgumentError(
            f"columns names {sorted(unknown)}; accepted: 'y_true', 'y_pred', 'y_score'"
        )
    return tuple(columns)


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


def _fill() -> None:
    from ._registry import metrics

    for metric in metrics():
        register(metric)


_fill()
