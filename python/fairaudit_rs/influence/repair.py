"""The result of `repair`: a map that changes features of a group to close its gap."""

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
from ..report.words import number
from ..results.chart import Chart
from ..results.result import Finding
from .cell_map import CellMap
from .chart import moves_chart
from .effects import RepairEffect
from .feature_encodings import FeatureEncodings
from .rewrite import rewrite_rows

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

#: The summary names another gap if it grows by more than this.
_HARM = 0.01
#: The random stream that `transform` uses; streams 0 and 1 split the rows into parts.
_TRANSFORM_STREAM = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairedRows:
    """Rows after a repair, with flags of the rows that changed.

    Attributes
    ----------
    X : array or frame
        The rows, in the form of the input.
    moved : ndarray of bool
        Whether the features of each row were changed.
    unseen : ndarray of bool
        Whether each row is in the target group and has features that did not occur in the fit. Such
        a row is treated like the nearest row of the fit.
    """

    X: Any
    moved: NDArray[np.bool_]
    unseen: NDArray[np.bool_]

    @property
    def n_moved(self) -> int:
        """The number of rows whose features were changed."""
        return int(self.moved.sum())

    @property
    def n_unseen(self) -> int:
        """The number of target rows with features that did not occur in the fit."""
        return int(self.unseen.sum())


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Repair(Finding):
    """A randomised map of the features of a group, and its effect on rows not used for the fit.

    Attributes
    ----------
    estimate : float
        The gap after the repair, on the report part; see `gap_after`.
    method : str
        ``"direct"`` or ``"transport"``.
    metric : str
        The metric that is compared.
    target : object
        The group whose rows are moved.
    others : tuple
        The groups that the target is compared with, taken together.
    attribute : str
        The sensitive feature.
    gap_before : float
        The gap before the repair, on the report part.
    gap_before_interval : tuple of float
        The interval of that gap.
    cost : float
        Mean cost per row of the target group in the fit part.
    moved : float
        Share of the rows of the target group in the fit part whose features change.
    n_cells : int
        Number of distinct feature rows of the target group in the fit part.
    n_unseen : int
        Number of target rows in the report part whose features do not occur in the fit part.
    floor : float or None
        The required minimum of the mean score of the target group.
    effects : tuple of RepairEffect
        Accuracy and all rates before and after, on the report part.
    certificate : dict
        The proof that no map is cheaper: the cost per row (``primal``) and a lower bound of the
        cost of any map (``dual``).
    confidence_level : float
        Level of the intervals.
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
    #: The map from the cells of the fit part to their destinations, and the encoding of features.
    way: CellMap
    coding: FeatureEncodings

    _not_in_dict = Finding._not_in_dict | {"way", "coding"}

    _not_compared = frozenset({"coding"})

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("rates", "groups")

    @property
    def gap_after(self) -> float:
        """The gap after the repair, on the report part: the estimate."""
        return self.estimate

    def transform(self, X: Any, group: Any, rng: Any = None, *, random_state: Any = None) -> Any:
        """Apply the repair: return rows with changed features for the target group.

        Parameters
        ----------
        X : array or frame
            Feature rows with the columns of the audit; other columns are not changed.
        group : array
            The sensitive feature of every row (several in a dict or a frame).
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed for the random draw of each row; None uses the seed of the repair.
            ``random_state`` is an alias.

        Returns
        -------
        array or frame
            A copy in the form of X; rows of other groups are unchanged.

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
        """Apply the repair like `transform`, and also return which rows changed or are new.

        Parameters
        ----------
        X, group, rng, random_state
            As in `transform`.

        Returns
        -------
        RepairedRows

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
        rows = np.flatnonzero(self._target_rows(group, n))
        coded = self.coding.encode(columns, rows)
        cell, unseen = self.way.find(coded, _native.Call())
        key = np.array([seed, _TRANSFORM_STREAM], dtype=np.uint64)
        uniform = np.random.Generator(np.random.Philox(key=key)).random(n)[rows]
        destination = self.way.draw(cell, uniform)
        moving = np.flatnonzero(destination >= 0)
        moved, is_unseen = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        moved[rows[moving]] = True
        is_unseen[rows[unseen]] = True
        values = self.coding.decode(self.way.cells.features[destination[moving]])
        return RepairedRows(X=rewrite_rows(X, rows[moving], values), moved=moved, unseen=is_unseen)

    def _target_rows(self, group: Any, n: int) -> NDArray[np.bool_]:
        """Return which rows are in the target group."""
        if group is None or isinstance(group, str):
            raise ArgumentTypeError(
                f"group is {group!r}; accepted: the values of {self.attribute}, one for each row",
                argument="group",
            )
        if not n:
            return np.zeros(0, dtype=bool)
        groups = [self.target, *self.others]
        has_missing_text = any(
            is_missing_text(part) for name in groups for part in _labels_of(name)
        )
        table = AuditTable.make(
            sensitive_features=group, missing="keep_texts" if has_missing_text else None
        ).loaded()
        if table.n_rows != n:
            raise DataError(
                f"group has {table.n_rows:,} rows; X has {n:,}. Pass one group per row.",
                argument="group",
            )
        rows = table.rows(columns=())
        for key in rows.cells.groups:
            if None not in key and not any(_is_group(key, value) for value in groups):
                name = key[0] if len(key) == 1 else key
                raise DataError(
                    f"group names {name!r}, which is not a group of the audit; accepted: "
                    f"{', '.join(map(repr, groups))}",
                    argument="group",
                )
        is_target = [_is_group(key, self.target) for key in rows.cells.groups]
        return np.array(is_target, dtype=bool)[rows.group]

    def transformer(self, rng: Any = None, *, random_state: Any = None) -> Any:
        """Return the repair as a scikit-learn transformer, for pipelines.

        It requests the metadata ``group``, so a pipeline passes it on if metadata routing is
        enabled.

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
        """The moves between cells in the fit part, the largest first.

        One row for each pair of cells: the expected number of rows (``rows``), their share of the
        cell, the cost per row, the features that change, and all features of both cells.
        """
        import polars as pl

        order = np.argsort(-self.way.rows, kind="stable")
        source, destination = self.way.source[order], self.way.to[order]
        features = self.way.cells.features
        ends = [self._frame(features[cells]) for cells in (source, destination)]
        changes = [
            _describe_change(*rows) for rows in zip(*(end.to_dicts() for end in ends), strict=True)
        ]
        return pl.DataFrame(
            {
                "rows": self.way.rows[order],
                "share": self.way.share[order],
                "cost": self.way.row_cost[order],
                "change": pl.Series(changes, dtype=pl.String),
                "from": ends[0].to_struct("from"),
                "to": ends[1].to_struct("to"),
            }
        )

    def plot(self) -> Chart:
        """Return a chart of the share of rows whose value changes, by feature."""
        import polars as pl

        moves, rows = self.moves, []
        for name in moves["from"].struct.fields:
            before, after = moves["from"].struct.field(name), moves["to"].struct.field(name)
            changed = moves.filter(before != after)
            if self._is_continuous(name):
                grows = (after > before).filter(before != after)
                becomes = ["more" if value else "less" for value in grows]
            else:
                becomes = [_text_of(value) for value in after.filter(before != after).to_list()]
            totals = (
                pl.DataFrame(
                    {"change": pl.Series(becomes, dtype=pl.String), "rows": changed["rows"]}
                )
                .group_by("change", maintain_order=True)
                .sum()
            )
            rows += [{"feature": name, **row} for row in totals.to_dicts()]
        return moves_chart(rows, self.way.cells.n_rows)

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
            f"row. On rows not used for the fit, the gap in {self.metric} goes from "
            f"{number(self.gap_before)} to {number(self.estimate)} "
            f"({100 * self.confidence_level:g} % interval {number(low)} to {number(high)})"
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
                f". Of the other gaps, the one in {worst.metric} grows most, from "
                f"{number(worst.gap_before)} to {number(worst.gap_after)}"
            )
        return f"{text}."

    def _most_harmed(self) -> RepairEffect | None:
        """Return the rate whose gap grows most, if any grows by more than a hundredth."""

        def growth(effect: RepairEffect) -> float:
            difference = abs(effect.gap_after) - abs(effect.gap_before)
            return -math.inf if math.isnan(difference) else difference

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


def _is_group(key: tuple[Any, ...], name: Any) -> bool:
    """Return whether a key is that of the group with this name."""
    labels = _labels_of(name)
    return len(key) == len(labels) and all(map(label_matches, key, labels))


def _labels_of(name: Any) -> tuple[Any, ...]:
    """Return the labels in the name of a group, one for each attribute."""
    return name if isinstance(name, tuple) else (name,)


def _describe_change(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the names and values of the features that change."""
    changed = [name for name in before if before[name] != after[name]]
    return ", ".join(
        f"{name} {_text_of(before[name])} to {_text_of(after[name])}" for name in changed
    )


def _text_of(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
