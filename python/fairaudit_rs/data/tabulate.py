"""The public function `tabulate`, which collapses rows to cells."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from .. import arguments
from ..errors import ArgumentTypeError
from ..literals import Missing
from .cells import Cells
from .labels import Label
from .tables import AuditTable


def tabulate(
    data: Any = None,
    *,
    y_true: Any = None,
    y_pred: Any = None,
    y_score: Any = None,
    sensitive_features: Any,
    strata: Any = None,
    counts: Any = None,
    score_bins: int | ArrayLike | None = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    n_threads: int | None = None,
) -> Cells:
    """Collapse rows to cells: counts by group, stratum, label, decision and score bin.

    Cells are all that the tests of count metrics need. They are small whatever the number of
    rows, and those of parts of the data add up with ``+``.

    Parameters
    ----------
    data : frame, path or glob, optional
        A polars, pandas or Arrow frame, a polars LazyFrame, or the path or glob of Parquet or
        CSV files (read in a stream, so they may be larger than memory). The other arguments
        are then names of its columns, or arrays beside a frame in memory; without it they are
        arrays.
    y_true, y_pred : array or str, optional
        Labels and decisions: 0/1, booleans, or anything with ``pos_label``.
    y_score : array or str, optional
        Scores, put into bins.
    sensitive_features : array, several arrays, or str(s)
        The attributes that define the groups; several define groups by their intersections.
        Several arrays come as a dict, a frame, a list or the columns of a 2-D array. Rows
        with a missing value are counted but belong to no group.
    strata : array, several arrays, or str(s), optional
        Attributes within which groups are compared.
    counts : array or str, optional
        How many people each row stands for: whole numbers of at least 0, by default 1. The result
        is the same as if each row were repeated that many times. This differs from
        ``sample_weight`` of a test, which gives the importance of a row, not the number of times
        that it was observed.
    score_bins : int or sequence of float, optional
        Number of equal bins from 0 to 1 (default 100), or the edges of the bins.
    pos_label : optional
        The value of ``y_true`` and ``y_pred`` that is the positive class.
    missing : {"own", "keep_texts"}, optional
        None: rows with a missing sensitive feature are counted in no group, and missing strata
        raise an error. The texts "nan", "none", "null", "na", "<NA>" and "missing" in sensitive
        features, whatever their case, are read as missing values, with a note. ``"own"`` makes
        missing values of sensitive features, and of strata, a group and a stratum of their own,
        ``"missing"``. ``"keep_texts"`` treats missing values as None does. With both, the texts
        above are groups of their own.
    n_threads : int, optional
        Threads for arrays; None or -1 takes all cores that the process may use.

    Returns
    -------
    Cells

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> cells = fa.tabulate(y_true=[1, 0, 1, 1], y_pred=[1, 0, 0, 1],
    ...                     sensitive_features=["a", "a", "b", "b"])
    >>> cells
    Cells: 4 rows in 4 cells, 2 groups by group, with y_true, y_pred
    >>> (cells + cells).n_rows
    8
    >>> fa.tabulate(y_pred=[1, 0, 1, 0], sensitive_features=["a", "a", "b", "b"],
    ...             counts=[30, 70, 20, 80])
    Cells: 200 rows in 4 cells, 2 groups by group, with y_pred
    """
    if isinstance(data, Cells):
        raise ArgumentTypeError(
            "data is a Cells object, which is tabulated already. Use marginalize to drop features, "
            "and + to add cells.",
            argument="data",
        )
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        strata=strata,
        counts=counts,
        missing=missing,
    )
    return table.cells(
        score_bins=score_bins,
        pos_label=pos_label,
        n_threads=arguments.check(n_threads=n_threads).n_threads,
    )
