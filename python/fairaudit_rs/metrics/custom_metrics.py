"""Functions that define custom metrics: from a formula, from row values, or from a function.

Users call them as ``fairaudit_rs.metrics.count_metric`` and so on. The `Metric` that they return is
passed as ``metric=`` to `permutation_test`, `intervals` and the other functions that take a metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

from .. import _native, arguments
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import ConditionsOn, CorrelationMethod
from .compiled_functions import check_compiled
from .metric import AnyMetric, Conditioning, Metric, RowValue
from .proportion_sums import conditions_on_denominator
from .registry import get


def count_metric(
    name: str,
    formula: str,
    *,
    description: str = "",
    conditions_on: ConditionsOn | None = None,
) -> Metric:
    """Make a metric from a formula over tp, fp, fn, tn.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    formula : str
        Numbers, ``tp``, ``fp``, ``fn``, ``tn``, ``+ - * / **`` (whole exponents),
        parentheses, ``sqrt()``, ``abs()``, ``min(,)``, ``max(,)``. The value must not change
        when all counts are scaled. It is parsed and differentiated, never evaluated as code, and
        has at most 500 operators and functions.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`. By default proportions and F1 condition on their denominator.

    Returns
    -------
    Metric
        Pass it as ``metric=``, or add it to the registry with `register`.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> fa.metrics.count_metric("jaccard", "tp / (tp + fp + fn)").is_proportion
    True
    """
    _check_name(name)
    if not isinstance(formula, str) or not _is_encodable(formula):
        raise ArgumentTypeError(
            f"formula is {formula!r}; accepted: text such as 'tp / (tp + fn)'", argument="formula"
        )
    _check_conditioning(conditions_on)
    native = _native.CountMetric.formula(formula)
    conditioning: Conditioning | None = conditions_on
    if conditions_on is None and conditions_on_denominator(native):
        conditioning = "denominator"
    return Metric(name, formula, _checked_description(description) or formula, (), conditioning)


def ratio_metric(
    name: str,
    numerator: RowValue,
    denominator: RowValue | None = None,
    *,
    description: str = "",
    columns: tuple[str, ...] = (),
    bounds: tuple[float, float] | None = None,
) -> Metric:
    """Make a metric that is a ratio of sums of row values, or a mean.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    numerator, denominator : callable or str
        The value of each row: the name of a column of ``data``, or a function of a mapping of
        the columns named in ``columns``. Without a denominator the metric is a mean. The
        largest absolute row value must lie between 1e-70 and 1e70.
    description : str, optional
        One line for tables.
    columns : tuple of str
        The columns that a function uses: ``"y_true"``, ``"y_pred"``, ``"y_score"``.
    bounds : tuple of float, optional
        The smallest and largest possible (not observed) value of numerator / denominator in a
        row. A group in which few rows have values near one of the bounds (rare events) is then
        tested with melded Gaffke limits, which keep their level however skewed the values are.

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

    _check_bounds(bounds)

    def sum_text(value: RowValue | None) -> str:
        return "n" if value is None else f"sum {value if isinstance(value, str) else 'f(row)'}"

    return Metric(
        name,
        f"{sum_text(numerator)} / {sum_text(denominator)}",
        _checked_description(description),
        family="ratio",
        numerator=numerator,
        denominator=denominator,
        columns=columns,
        bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
    )


def joint_metric(
    name: str,
    components: Sequence[AnyMetric],
    *,
    description: str = "",
    conditions_on: ConditionsOn | None = None,
) -> Metric:
    """Make a joint criterion: several count metrics must be equal between groups at once.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    components : sequence of str or Metric
        At least two count metrics. They are tested by the quadratic form of their differences,
        which allows for the correlation of the metrics within a group.
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
            f"components is {components!r}; accepted: a list of at least two count metrics",
            argument="components",
        )
    parts = tuple(get(component) for component in components)
    wrong = [part.name for part in parts if not part.is_counts]
    if len(parts) < 2 or wrong:
        raise ArgumentError(
            f"components is {[part.name for part in parts]}; accepted: at least two count metrics",
            argument="components",
        )
    formula = " and ".join(part.name for part in parts)
    return Metric(
        name,
        formula,
        _checked_description(description) or formula,
        (),
        conditions_on,
        "joint",
        components=parts,
    )


def correlation_metric(
    name: str,
    value: RowValue,
    *,
    method: CorrelationMethod = "pearson",
    description: str = "",
    columns: tuple[str, ...] = (),
) -> Metric:
    """Make a metric that correlates a row value with a continuous sensitive attribute.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    value : callable or str
        The value of each row; see `ratio_metric`.
    method : {"pearson", "spearman"}
        Correlation of the values, or of their ranks.
    description : str, optional
        One line for tables.
    columns : tuple of str
        The columns that a function uses: ``"y_true"``, ``"y_pred"``, ``"y_score"``.

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
    method = arguments.choice("method", method, get_args(CorrelationMethod))
    row_value = value if isinstance(value, str) else "f(row)"
    return Metric(
        name,
        f"{method} correlation of {row_value} and the attribute",
        _checked_description(description),
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
    conditions_on: ConditionsOn | None = None,
    n_samples: int = 100,
) -> Metric:
    """Make a metric from any function of the rows of a group.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    function : callable, or a numba cfunc
        ``function(y_true, value, weight) -> float`` of the rows of one group: float arrays, and
        None for the weight when there is none. Return NaN where the metric is undefined.
        A compiled function (a numba ``cfunc``) with the signature
        ``float64(CPointer(float64), CPointer(float64), CPointer(float64), int64)`` gets the
        three arrays, weights of 1 when there are none,
        and the number of rows; it runs on all threads without the interpreter.
    columns : tuple of str
        ``("y_true", "y_pred")`` or ``("y_true", "y_score")``: the arrays that the function gets.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`.
    n_samples : int
        Number of bootstrap samples that studentize the statistic in each replicate (equation (1)
        of DiCiccio et al.). The function is called ``1 + n_samples`` times per group and replicate;
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
    if not callable(function):
        raise ArgumentTypeError(
            f"function is {function!r}; accepted: a function of (y_true, value, weight), or a "
            "numba cfunc",
            argument="function",
            mentions=("y_true",),
        )
    check_compiled("function", function)
    pairs = (("y_true", "y_pred"), ("y_true", "y_score"))
    if not isinstance(columns, list | tuple) or tuple(columns) not in pairs:
        raise ArgumentError(
            f"columns is {columns!r}; accepted: ('y_true', 'y_pred'), ('y_true', 'y_score')",
            argument="columns",
        )
    _check_conditioning(conditions_on)
    if conditions_on == "decision" and "y_pred" not in columns:
        raise ArgumentError(
            "conditions_on is 'decision', but the function gets y_score; accepted: None, 'label'",
            argument="conditions_on",
            mentions=("y_score",),
        )
    return Metric(
        name,
        f"f({', '.join(columns)}, weight)",
        _checked_description(description) or getattr(function, "__doc__", None) or "",
        conditions_on=conditions_on,
        family="callable",
        columns=tuple(columns),
        function=function,
        n_samples=arguments.count("n_samples", n_samples, 2, 1_000_000),
    )


def _checked_description(description: object) -> str:
    if description is not None and not isinstance(description, str):
        raise ArgumentTypeError(
            f"description is {description!r}; accepted: a line of text", argument="description"
        )
    return description or ""


def _is_encodable(text: str) -> bool:
    """Return whether a text can be encoded; lone surrogates cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or not _is_encodable(name):
        raise ArgumentError(f"name is {name!r}; accepted: text that is not empty", argument="name")


def _check_conditioning(value: object) -> None:
    if value is not None and not (isinstance(value, str) and value in ("label", "decision")):
        raise ArgumentError(
            f"conditions_on is {value!r}; accepted: None, 'label', 'decision'",
            argument="conditions_on",
        )


def _check_row_value(argument: str, value: object) -> None:
    if not (callable(value) or isinstance(value, str)):
        raise ArgumentTypeError(
            f"{argument} is {value!r}; accepted: a function of a mapping of columns, or the "
            "name of a column",
            argument=argument,
        )


def _check_bounds(value: object) -> None:
    if value is None:
        return
    ends = list(value) if isinstance(value, list | tuple) else []
    if len(ends) != 2 or not all(arguments.is_number(end) for end in ends):
        raise ArgumentTypeError(
            f"bounds is {value!r}; accepted: two numbers (low, high)", argument="bounds"
        )
    if not -math.inf < ends[0] < ends[1] < math.inf:
        raise ArgumentError(
            f"bounds is {value!r}; accepted: two finite numbers, the lower one first",
            argument="bounds",
        )


def _check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    known = ("y_true", "y_pred", "y_score")
    if not isinstance(columns, list | tuple | set | frozenset):
        raise ArgumentTypeError(
            f"columns is {columns!r}; accepted: a sequence of {known}", argument="columns"
        )
    unknown = [name for name in columns if not (isinstance(name, str) and name in known)]
    if unknown:
        raise ArgumentError(
            f"columns names {unknown!r}; accepted: 'y_true', 'y_pred', 'y_score'",
            argument="columns",
        )
    return tuple(columns)
