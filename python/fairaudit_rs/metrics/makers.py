"""Metrics of the user's: by formula, by row values, by function."""

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
        The name that results carry.
    formula : str
        Numbers, ``tp``, ``fp``, ``fn``, ``tn``, ``+ - * / **`` (whole exponents),
        parentheses, ``sqrt()``, ``abs()``, ``min(,)``, ``max(,)``. The value must not change
        when all counts are scaled. It is parsed and differentiated, never evaluated as code, and
        has at most 500 operators and functions.
    description : str, optional
        One line for tables.
    conditions_on : {"label", "decision"}, optional
        See `Metric`. A proportion conditions on its denominator by itself, and so does F1.

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
    if not isinstance(formula, str) or not _is_text(formula):
        raise ArgumentTypeError(f"formula is {formula!r}; accepted: text such as 'tp / (tp + fn)'")
    _check_conditioning(conditions_on)
    native = _native.CountMetric.formula(formula)
    conditioning: Conditioning | None = conditions_on
    if conditions_on is None and conditions_on_denominator(native):
        conditioning = "denominator"
    return Metric(name, formula, _told(description) or formula, (), conditioning)


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
        The name that results carry.
    numerator, denominator : callable or str
        The value of each row: the name of a column of ``data``, or a function of a mapping of
        the columns named in ``columns``. Without a denominator the metric is a mean. The largest
        one in size lies from 1e-70 to 1e70.
    description : str, optional
        One line for tables.
    columns : tuple of str
        Which of ``"y_true"``, ``"y_pred"``, ``"y_score"`` a function looks at.
    bounds : tuple of float, optional
        The least and the greatest value that a row can have, numerator by denominator: what is
        possible, not what was seen. Groups with few rows near an end of this range are then
        tested by it (melded Gaffke limits), whose size holds however skewed the values are.

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

    def shown(value: RowValue | None) -> str:
        return "n" if value is None else f"sum {value if isinstance(value, str) else 'f(row)'}"

    return Metric(
        name,
        f"{shown(numerator)} / {shown(denominator)}",
        _told(description),
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
        name, formula, _told(description) or formula, (), conditions_on, "joint", components=parts
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
    method = arguments.choice("method", method, get_args(CorrelationMethod))
    shown = value if isinstance(value, str) else "f(row)"
    return Metric(
        name,
        f"{method} correlation of {shown} and the attribute",
        _told(description),
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
    """Make a metric of any function of the rows of a group.

    Parameters
    ----------
    name : str
        The name that results carry.
    function : callable, or a numba cfunc
        ``function(y_true, value, weight) -> float`` of the rows of one group: float arrays, and
        None for the weight when there is none. NaN says that it has no value. A compiled
        function ``float64(CPointer(float64), CPointer(float64), CPointer(float64), int64)``
        (a numba ``cfunc``) gets the three arrays, weights of 1 when there are none,
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
    if not callable(function):
        raise ArgumentTypeError(
            f"function is {function!r}; accepted: a function of (y_true, value, weight), or a "
            "numba cfunc",
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
            mentions=("y_score",),
        )
    return Metric(
        name,
        f"f({', '.join(columns)}, weight)",
        _told(description) or getattr(function, "__doc__", None) or "",
        conditions_on=conditions_on,
        family="callable",
        columns=tuple(columns),
        function=function,
        n_samples=arguments.count("n_samples", n_samples, 2, 1_000_000),
    )


def _told(description: object) -> str:
    if description is not None and not isinstance(description, str):
        raise ArgumentTypeError(
            f"description is {description!r}; accepted: a line of text", argument="description"
        )
    return description or ""


def _is_text(text: str) -> bool:
    """Return whether a text can be encoded: halves of surrogates cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or not _is_text(name):
        raise ArgumentError(
            f"name is {name!r}; accepted: a word that results can carry", argument="name"
        )


def _check_conditioning(value: object) -> None:
    if value is not None and not (isinstance(value, str) and value in ("label", "decision")):
        raise ArgumentError(f"conditions_on is {value!r}; accepted: None, 'label', 'decision'")


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
