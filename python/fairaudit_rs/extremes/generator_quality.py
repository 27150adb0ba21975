"""Measures how similar generated and real rows are: by column, jointly, and for a model."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..data.columns import list_some
from ..errors import ArgumentError, ArgumentTypeError, ColumnError, DataError
from ..report.words import number
from ..results.result import Result
from .logistic import DesignMatrix, MixedRidgeLogistic, cross_fitted_auc
from .mixed_columns import MixedRows, coded_like, read_mixed
from .seeds import stream_of

Floats = NDArray[np.float64]

_BINS = 10
#: Rows added to every level or bin, so that none is empty.
_PSEUDOCOUNT = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class Quality(Result):
    """How similar generated rows are to real ones: Table III of Monjezi et al. (2025).

    Attributes
    ----------
    column_scores : dict
        exp(-KL) of each column, with KL = sum_b p_b log(p_b / q_b), where p and q are the shares of
        levels (or of bins between the deciles of the real rows) in the real and the generated
        rows, with half a row added to each count. It is 1 for equal shares. Levels that no real row
        has are merged into one.
    column_score : float
        The mean of the column scores.
    frechet : float
        The Frechet distance between two normal distributions that have the means and covariances
        of the real and of the generated rows (standardised numbers, and levels as 0/1 columns): 0
        if means and covariances agree.
    detection_auc : float
        How well a ridge logistic regression of numbers and flags separates held-out generated rows
        from real ones: 0.5 if it cannot.
    detection_score : float
        1 - (2 max(AUC, 1/2) - 1): 1 if the regression cannot separate them, 0 if it always can.
    f1_real, f1_generated : float
        F1 on held-out real rows of a model trained on real rows, and of one trained on generated
        rows; NaN without a target.
    f1_loss : float
        `f1_real` minus `f1_generated`.
    n_real, n_generated : int
        Rows of each.
    seed : int
        Pass it as ``rng=`` to reproduce the folds.
    """

    column_scores: dict[str, float]
    column_score: float
    frechet: float
    detection_auc: float
    detection_score: float
    f1_real: float
    f1_generated: float
    f1_loss: float
    n_real: int
    n_generated: int
    seed: int

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns."""
        return ("measures",)

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        lost = "" if math.isnan(self.f1_loss) else f", F1 loses {number(self.f1_loss)}"
        return (
            f"{self.n_generated:,} generated rows against {self.n_real:,} real ones: shares of "
            f"columns agree by {number(self.column_score)} of 1, the Frechet distance is "
            f"{number(self.frechet)}, a model tells them apart with an AUC of "
            f"{number(self.detection_auc)}{lost}."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the scores as the rows of a table.

        Returns
        -------
        list of dict
            With measure, column ("" for measures of all columns) and value.

        Examples
        --------
        >>> from fairaudit_rs.extremes.generator_quality import generator_quality
        >>> X = {"age": [31, 45, 62, 28] * 5}
        >>> generator_quality(X, X, rng=0).rows()[0]
        {'measure': 'column_score', 'column': 'age', 'value': 1.0}
        """
        whole = ("column_score", "frechet", "detection_auc", "detection_score")
        labelled = ("f1_real", "f1_generated", "f1_loss")
        names = whole if math.isnan(self.f1_loss) else whole + labelled
        return [
            *(
                {"measure": "column_score", "column": name, "value": value}
                for name, value in self.column_scores.items()
            ),
            *({"measure": name, "column": "", "value": getattr(self, name)} for name in names),
        ]


def generator_quality(
    real: Any,
    generated: Any,
    *,
    target: str | None = None,
    test: Any = None,
    estimator: Any = None,
    n_folds: int = 5,
    rng: Any = None,
    random_state: Any = None,
) -> Quality:
    """Measure how similar generated rows are to real ones.

    Parameters
    ----------
    real, generated : frame or array
        Rows with the same columns. For a fair comparison, use real rows that the generator did not
        learn.
    target : str, optional
        The name of a column of two levels, for F1; the larger number, or the later text in
        alphabetical order, is the positive level.
    test : frame or array, optional
        Real rows on which both models are scored, for F1; needed with `target`.
    estimator : object, optional
        A classifier with `fit` and `predict` that takes a numeric matrix and labels 0 and 1. One
        copy is fitted to the real rows and one to the generated rows. The default is a ridge
        logistic regression.
    n_folds : int
        Folds of the cross-fitted detection.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed of the folds; ``random_state`` is an alias.

    Returns
    -------
    Quality

    Notes
    -----
    Column scores do not detect wrong dependence between columns; the regression detects linear
    differences only. Neither measures the tail of a model's scores.

    Examples
    --------
    >>> import numpy as np
    >>> from fairaudit_rs.extremes.generator_quality import generator_quality
    >>> rng = np.random.default_rng(0)
    >>> real = {"age": rng.normal(40, 10, 500)}
    >>> found = generator_quality(real, {"age": rng.normal(60, 10, 500)}, rng=1)
    >>> found.column_score < 0.5, found.detection_auc > 0.9
    (True, True)
    """
    rows = read_mixed(real)
    checked = arguments.check(n_folds=n_folds, rng=rng, random_state=random_state)
    n_folds, seed = checked.n_folds, checked.seed
    values = coded_like(rows, generated, "generated", unseen=True)
    if len(values) < 2:
        raise DataError(
            f"generated has {len(values)} rows; accepted: at least 2", argument="generated"
        )
    # The result must not depend on the order of the rows.
    values = values[np.lexsort(values.T[::-1])]
    fewest = min(len(rows), len(values))
    if n_folds > fewest:
        raise ArgumentError(
            f"n_folds is {n_folds}; accepted: at most {fewest}, the number of rows of the smaller "
            "frame",
            argument="n_folds",
        )
    scores = {
        column.name: math.exp(-_divergence(rows, place, values[:, place]))
        for place, column in enumerate(rows.columns)
    }
    design = DesignMatrix(rows, tuple(range(len(rows.columns))))
    both = [design.matrix(table) for table in (rows.values, values)]
    label = np.repeat([0.0, 1.0], [len(rows), len(values)])
    detected = cross_fitted_auc(np.concatenate(both), label, n_folds, stream_of(seed))
    f1 = _f1_real_and_generated(rows, values, target, test, estimator)
    return Quality(
        column_scores=scores,
        column_score=float(np.mean(list(scores.values()))),
        frechet=_frechet(*both),
        detection_auc=detected,
        detection_score=2 - 2 * max(detected, 0.5),
        f1_real=f1[0],
        f1_generated=f1[1],
        f1_loss=f1[0] - f1[1],
        n_real=len(rows),
        n_generated=len(values),
        seed=seed,
    )


def _divergence(rows: MixedRows, place: int, generated: Floats) -> float:
    """Return the Kullback-Leibler divergence KL(real || generated) of a column."""
    column, real = rows.columns[place], rows.values[:, place]
    if column.kind == "levels":
        # Levels that no real row has are merged into one, with code 0.
        n_bins = len(column.labels) + int((generated < 0).any())
        codes = [
            sample.astype(np.intp) - int(generated.min(initial=0)) for sample in (real, generated)
        ]
    else:
        cuts = np.unique(np.quantile(real, np.arange(1, _BINS) / _BINS))
        n_bins = len(cuts) + 1
        codes = [np.searchsorted(cuts, sample, side="right") for sample in (real, generated)]
    p, q = (
        (np.bincount(code, minlength=n_bins) + _PSEUDOCOUNT) / (len(code) + _PSEUDOCOUNT * n_bins)
        for code in codes
    )
    return max(float(p @ np.log(p / q)), 0.0)


def _frechet(real: Floats, generated: Floats) -> float:
    """Return |m - m'|^2 + tr(S + S' - 2 (S S')^(1/2)), with means m and covariances S."""
    means = [sample.mean(axis=0) for sample in (real, generated)]
    first, second = (np.atleast_2d(np.cov(sample.T, ddof=0)) for sample in (real, generated))
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    inner = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ second @ root), 0.0)).sum()
    distance = ((means[0] - means[1]) ** 2).sum() + np.trace(first) + np.trace(second) - 2 * inner
    return max(float(distance), 0.0)


def _f1_real_and_generated(
    rows: MixedRows, generated: Floats, target: str | None, test: Any, estimator: Any
) -> tuple[float, float]:
    """Return the F1 on test rows of models trained on real and on generated rows."""
    if target is None and test is None and estimator is None:
        return math.nan, math.nan
    if target is None or test is None:
        lacking, other = ("target", "test") if target is None else ("test", "target")
        given = "estimator" if target is None and test is None else other
        raise ArgumentTypeError(
            f"{given} needs {lacking} too. Pass target= and test= together, to compute F1 on real "
            "rows that no model has learned.",
            argument=given,
            mentions=("target", "test"),
            code="missing-argument",
        )
    names = [column.name for column in rows.columns]
    if target not in names:
        raise ColumnError(
            f"target is {target!r}; accepted: a column of real: {list_some(names, 20)}",
            argument="target",
        )
    target_place = names.index(target)
    labels = rows.columns[target_place].labels
    if len(labels) != 2:
        raise DataError(
            f"target {target!r} has {len(labels) or 'more than ten'} levels; accepted: a column of "
            "two levels",
            argument="target",
        )
    if len(names) == 1:
        raise DataError(
            f"real has no column but target {target!r}. Add features to predict it.",
            argument="real",
            mentions=("target",),
        )
    for name in ("fit", "predict"):
        if estimator is not None and not callable(getattr(estimator, name, None)):
            raise ArgumentTypeError(
                f"estimator is {estimator!r}, which has no method {name}; accepted: an object with "
                "fit and predict",
                argument="estimator",
            )
    test_values = coded_like(rows, test, "test", unseen=True)
    design = DesignMatrix(
        rows, tuple(place for place in range(len(names)) if place != target_place)
    )
    scores = []
    for called, values in (("real", rows.values), ("generated", generated)):
        if len(set(values[:, target_place])) < 2:
            raise DataError(
                f"target {target!r} is the same in all rows of {called}. Pass rows of both levels.",
                argument="target",
                mentions=(called,),
            )
        fit = MixedRidgeLogistic() if estimator is None else copy.deepcopy(estimator)
        fit.fit(design.matrix(values), values[:, target_place])
        predicted = np.asarray(fit.predict(design.matrix(test_values)), dtype=np.float64)
        scores.append(_f1(test_values[:, target_place], predicted))
    return scores[0], scores[1]


def _f1(label: Floats, predicted: Floats) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN); 0 if no label and no prediction is positive."""
    positive, called_positive = label == 1, predicted == 1
    n = int(positive.sum() + called_positive.sum())
    return 2 * int((positive & called_positive).sum()) / n if n else 0.0
