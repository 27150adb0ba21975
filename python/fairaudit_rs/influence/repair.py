"""A repair: rows of a group that are given other features, and what that does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..data.features import named_columns
from ..data.labels import is_missing_text, label_matches
from ..data.tables import AuditTable
from ..errors import ArgumentTypeError, DataError
from ..results.chart import Chart
from ..results.result import Finding
from ..results.words import number
from .cell_map import CellMap
from .chart import moves_chart
from .coding import Coding
from .effects import RepairEffect
from .rewrite import rewrite_rows

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

#: Growth of a gap that the sentence tells.
_HARM = 0.01
#: Of the draws of `transform`; the parts of the rows have the two before it.
_SERIES = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairedRows:
    """Rows after a repair, and what happened to each.

    Attributes
    ----------
    X : array or frame
        The rows, in the form in which they came.
    moved : ndarray of bool
        By row, whether it was given other features.
    unseen : ndarray of bool
        By row, whether it is of the target group and its features were not seen in the fit: it
        went the way of the nearest row that was seen.
    """

    X: Any
    moved: NDArray[np.bool_]
    unseen: NDArray[np.bool_]

    @property
    def n_moved(self) -> int:
        """How many rows were given other features."""
        return int(self.moved.sum())

    @property
    def n_unseen(self) -> int:
        """How many rows of the target group had features that were not seen in the fit."""
        return int(self.unseen.sum())


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Repair(Finding):
    """A randomised map of the features of a group, and its effect on rows that had no part in it.

    Attributes
    ----------
    estimate : float
        The gap after the repair, on the report part; see `gap_after`.
    method : str
        ``"direct"`` or ``"transport"``.
    metric : str
        What is compared.
    target : object
        The group whose rows are moved.
    others : tuple
        The groups that it is compared with, together.
    attribute : str
        The sensitive feature.
    gap_before : float
        The gap before the repair, on the report part.
    gap_before_interval : tuple of float
        Its interval.
    cost : float
        Mean cost per row of the target group in the fit part.
    moved : float
        Share of its rows there that are given other features.
    n_cells : int
        Distinct rows of features of the target group in the fit part.
    n_unseen : int
        Rows of the target group in the report part whose features are none of these.
    floor : float or None
        The least mean score of the target group that was asked for.
    effects : tuple of RepairEffect
        Accuracy and all rates before and after, on the report part.
    certificate : dict
        What shows that no map does it for less: the cost per row (``primal``) and a lower bound of
        that of all maps (``dual``).
    confidence_level : float
        Of the intervals.
    """

    method: str
    metric: str
    target: Any
    others: tuple[Any, ...]
    attribute: str
    gap_before: float
    gap_before_interval: tuple[float, float]
    cost: float
    moved: float
    n_cells: int
    n_unseen: int
    floor: float | None
    effects: tuple[RepairEffect, ...]
    certificate: dict[str, float]
    confidence_level: float
    #: Where rows go, and how features are read.
    way: CellMap
    coding: Coding

    _bulky = Finding._bulky | {"way", "coding"}

    _uncompared = frozenset({"coding"})

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("rates", "groups")

    @property
    def gap_after(self) -> float:
        """The gap after the repair, on the report part: the estimate."""
        return self.estimate

    def transform(self, X: Any, group: Any, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return rows with the features that the repair gives to those of the target group.

        Parameters
        ----------
        X : array or frame
            Rows of features, with the columns of the audit; others are left as they are.
        group : array
            The sensitive feature of every row (several in a dict or a frame).
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed of the draws, one for each row; None takes that of the repair.
            ``random_state`` is an alias.

        Returns
        -------
        array or frame
            A copy, in the form in which X came; rows of other groups are the same.

        Examples
        --------
        >>> import numpy as np, fairaudit_rs as fa
        >>> rng = np.random.default_rng(0)
        >>> woman, part_time = rng.random(4_000) < 0.5, rng.random(4_000) < 0.3
        >>> part_time |= woman & (rng.random(4_000) < 0.4)
        >>> y_pred, X = ~part_time, {"part_time": part_time}
        >>> result = fa.influence_audit(
        ...     None, y_pred, X=X, sensitive_features=np.where(woman, "woman", "man"),
        ...     target="woman", metric="selection_rate", n_draws=99, rng=1)
        >>> repair = result.repair(rng=1)
        >>> repair.transform({"part_time": [True, True]}, ["man", "man"])
        {'part_time': [True, True]}
        """
        return self.transform_report(X, group, rng, random_state=random_state).X

    def transform_report(
        self, X: Any, group: Any, rng: Any = None, *, random_state: Any = None
    ) -> RepairedRows:
        """Return what `transform` returns, with which rows moved and which were not seen before.

        Parameters
        ----------
        X, group, rng, random_state
            As in `transform`.

        Returns
        -------
        Transformed

        Examples
        --------
        >>> import numpy as np, fairaudit_rs as fa
        >>> rng = np.random.default_rng(0)
        >>> woman, part_time = rng.random(4_000) < 0.5, rng.random(4_000) < 0.3
        >>> part_time |= woman & (rng.random(4_000) < 0.4)
        >>> y_pred, X = ~part_time, {"part_time": part_time}
        >>> result = fa.influence_audit(
        ...     None, y_pred, X=X, sensitive_features=np.where(woman, "woman", "man"),
        ...     target="woman", metric="selection_rate", n_draws=99, rng=1)
        >>> done = result.repair(rng=1).transform_report(X, np.where(woman, "woman", "man"))
        >>> done.n_unseen, bool((done.moved <= woman).all())
        (0, True)
        """
        seed = self.seed
        if rng is not None or random_state is not None:
            seed = arguments.check(rng=rng, random_state=random_state).seed
        columns = dict(named_columns(X))
        n = len(next(iter(columns.values()))) if columns else 0
        inside = self._inside(group, n)
        rows = np.flatnonzero(inside)
        coded = self.coding.encode(columns, rows)
        cell, unseen = self.way.find(coded, _native.Call())
        key = np.array([seed, _SERIES], dtype=np.uint64)
        uniform = np.random.Generator(np.random.Philox(key=key)).random(n)[rows]
        to = self.way.draw(cell, uniform)
        leaves = np.flatnonzero(to >= 0)
        moved, new = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        moved[rows[leaves]] = True
        new[rows[unseen]] = True
        values = self.coding.decode(self.way.cells.features[to[leaves]])
        return RepairedRows(X=rewrite_rows(X, rows[leaves], values), moved=moved, unseen=new)

    def _inside(self, group: Any, n: int) -> NDArray[np.bool_]:
        """Return which rows are of the target group."""
        if group is None or isinstance(group, str):
            raise ArgumentTypeError(
                f"group is {group!r}; accepted: the values of {self.attribute}, one for each row",
                argument="group",
            )
        if not n:
            return np.zeros(0, dtype=bool)
        known = [self.target, *self.others]
        kept = any(is_missing_text(part) for name in known for part in _parts(name))
        table = AuditTable.make(
            sensitive_features=group, missing="keep_texts" if kept else None
        ).loaded()
        if table.n_rows != n:
            raise DataError(f"group has {table.n_rows:,} rows; X has {n:,}", argument="group")
        rows = table.rows(columns=())
        for key in rows.cells.groups:
            if None not in key and not any(_is(key, value) for value in known):
                shown = key[0] if len(key) == 1 else key
                raise DataError(
                    f"group names {shown!r}, which is not a group of the audit; accepted: "
                    f"{', '.join(map(repr, known))}",
                    argument="group",
                )
        wanted = [_is(key, self.target) for key in rows.cells.groups]
        return np.array(wanted, dtype=bool)[rows.group]

    def transformer(self, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return the repair as a transformer of scikit-learn, for pipelines.

        It asks for the metadata ``group``, so that a pipeline passes it on where metadata routing
        is enabled.

        Parameters
        ----------
        rng : None, int, SeedSequence, Generator or RandomState
            As in `transform`.
        random_state
            As in `transform`.

        Returns
        -------
        sklearn.base.BaseEstimator
            With ``fit`` (which does nothing), ``transform(X, group)`` and ``fit_transform``.

        Examples
        --------
        >>> import numpy as np, fairaudit_rs as fa
        >>> X = {"x": np.arange(4_000) % 8 < 3}
        >>> result = fa.influence_audit(
        ...     None, X["x"], X=X, sensitive_features=np.arange(4_000) % 2 < 1, target=True,
        ...     metric="selection_rate", n_draws=99, rng=1)
        >>> type(result.repair(rng=1).transformer()).__name__
        'RepairTransformer'
        """
        from .transformer import RepairTransformer

        if rng is not None and random_state is not None:
            arguments.check(rng=rng, random_state=random_state)
        return RepairTransformer(self, rng if random_state is None else random_state)

    @property
    def moves(self) -> pl.DataFrame:
        """Who moves where in the fit part, the largest moves first.

        One row for each pair of cells: the rows that are expected to go that way (``rows``), their
        share of the cell, the cost of one of them, what changes, and all features of both.
        """
        import polars as pl

        order = np.argsort(-self.way.rows, kind="stable")
        source, to = self.way.source[order], self.way.to[order]
        features = self.way.cells.features
        ends = [self._frame(features[cells]) for cells in (source, to)]
        changes = [_change(*rows) for rows in zip(*(end.to_dicts() for end in ends), strict=True)]
        return pl.DataFrame(
            {
                "rows": self.way.rows[order],
                "share": self.way.share[order],
                "cost": self.way.price[order],
                "change": pl.Series(changes, dtype=pl.String),
                "from": ends[0].to_struct("from"),
                "to": ends[1].to_struct("to"),
            }
        )

    def plot(self) -> Chart:
        """Return a chart of what the repair changes: by feature the share of rows that move."""
        import polars as pl

        moves, shown = self.moves, []
        for name in moves["from"].struct.fields:
            before, after = moves["from"].struct.field(name), moves["to"].struct.field(name)
            changed = moves.filter(before != after)
            if self._is_continuous(name):
                more = (after > before).filter(before != after)
                becomes = pl.Series(
                    ["more" if chart else "less" for chart in more], dtype=pl.String
                )
            else:
                values = after.filter(before != after).to_list()
                becomes = pl.Series([_shown(value) for value in values], dtype=pl.String)
            totals = (
                pl.DataFrame({"change": becomes, "rows": changed["rows"]})
                .group_by("change", maintain_order=True)
                .sum()
            )
            shown += [{"feature": name, **row} for row in totals.to_dicts()]
        return moves_chart(shown, self.way.cells.n_rows)

    def _is_continuous(self, name: str) -> bool:
        return any(
            feature.name == name and feature.kind == "continuous"
            for feature in self.coding.features
        )

    def _frame(self, coded: Floats) -> pl.DataFrame:
        import polars as pl

        decoded = self.coding.decode(coded)
        return pl.DataFrame({name: column.tolist() for name, column in decoded.items()})

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        low, high = self.confidence_interval
        text = (
            f"The {self.method} repair moves {100 * self.moved:.3g} % of the rows of "
            f"{self.sized(self.target)} that it was fitted to, at a cost of {number(self.cost)} a "
            f"row. On rows that had "
            f"no part in it the gap in {self.metric} goes from {number(self.gap_before)} to "
            f"{number(self.estimate)} ({100 * self.confidence_level:g} % interval {number(low)} to "
            f"{number(high)})"
        )
        accuracy = next((effect for effect in self.effects if effect.metric == "accuracy"), None)
        if accuracy is not None:
            text += (
                f"; accuracy in {self.name_of(self.target)} goes from {number(accuracy.before)} to "
                f"{number(accuracy.after)}"
            )
        worst = self._most_harmed()
        if worst is not None:
            text += (
                f". Of the other gaps that in {worst.metric} grows most, from "
                f"{number(worst.gap_before)} to {number(worst.gap_after)}"
            )
        return f"{text}."

    def _most_harmed(self) -> RepairEffect | None:
        """Return the rate whose gap grows most, if one grows by more than a hundredth."""

        def growth(effect: RepairEffect) -> float:
            found = abs(effect.gap_after) - abs(effect.gap_before)
            return -math.inf if math.isnan(found) else found

        others = [
            effect for effect in self.effects if effect.metric not in ("accuracy", self.metric)
        ]
        worst = max(others, key=growth, default=None)
        return worst if worst is not None and growth(worst) > _HARM else None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per rate."""
        return [
            {
                "metric": effect.metric,
                "before": effect.before,
                "after": effect.after,
                "others": effect.others,
                "gap_before": effect.gap_before,
                "gap_after": effect.gap_after,
                "gap_after_low": effect.gap_after_low,
                "gap_after_high": effect.gap_after_high,
            }
            for effect in self.effects
        ]


def _is(key: tuple[Any, ...], name: Any) -> bool:
    """Return whether the key of a group is that of a name, or of several of them."""
    parts = _parts(name)
    return len(key) == len(parts) and all(map(label_matches, key, parts))


def _parts(name: Any) -> tuple[Any, ...]:
    """Return the labels that the name of a group is made of."""
    return name if isinstance(name, tuple) else (name,)


def _change(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Say which features change."""
    changed = [name for name in before if before[name] != after[name]]
    return ", ".join(f"{name} {_shown(before[name])} to {_shown(after[name])}" for name in changed)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
