"""What every feature moves alone: ceteris-paribus scores, or what stands in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .ceteris_paribus import Flip, Folded, Nuisances, flip, partialled_out
from .features import Feature
from .marginal import Compared, Kinds, Score, refused
from .nuisance import dealt
from .rates import MeasureValue

Floats = NDArray[np.float64]


class Alone:
    """The scores of all features with the others held fixed, and their influence values."""

    def __init__(
        self,
        kinds: Kinds,
        value: MeasureValue,
        features: Sequence[Feature],
        predict: Callable[[Floats], Floats],
        n_folds: int,
        call: _native.Call,
    ) -> None:
        label, score = kinds.parts[:, :2].T
        # By features and label first: the last bit of a score does not move a row to another fold.
        both = np.ascontiguousarray(np.column_stack([kinds.features, label]))
        _, _, place = _native.distinct_rows(both, call)
        order = np.lexsort((score, place))
        dealt_kind, folds, count = dealt(kinds.count[order].astype(np.int64), n_folds)
        kind = order[dealt_kind]
        self.rows = Folded(
            features=kinds.features[kind],
            label=label[kind],
            score=score[kind],
            count=count,
            folds=folds,
        )
        self.value, self.predict = value, predict
        self.nuisances = Nuisances.of(self.rows, value.measure.needs_labels)
        self._influences: dict[int, Floats] = {}
        self.scores = [self._score_of(feature) for feature in features]

    def _score_of(self, feature: Feature) -> Score:
        (column,) = feature.columns
        binary = feature.kind == "binary"
        note = ""
        if binary:
            found = flip(self.nuisances, self.value, self.predict, column)
            what = Compared(feature.name, feature.kind, feature.levels, method="ceteris_paribus")
            if not found.refusal:
                return self._shown(what, found, "")
            note = f"held fixed it has no score ({found.refusal})"
        found = partialled_out(self.rows, self.value, feature.columns, column, binary)
        what = Compared(feature.name, feature.kind, feature.levels, method="partialled_out")
        if found.refusal:
            return refused(what, found.refusal)
        return self._shown(what, found, note)

    def _shown(self, what: Compared, found: Flip, note: str) -> Score:
        score = Score(
            what,
            estimate=found.estimate,
            standard_error=found.standard_error,
            df=found.df,
            n_events=float("nan"),
            note=note,
        )
        self._influences[id(score)] = found.influence
        return score

    def correlation(self, scores: Sequence[Score]) -> Floats:
        """Return the correlations of the influence values of some scores."""
        influence = np.column_stack([self._influences[id(score)] for score in scores])
        products = influence.T @ (self.rows.count[:, None] * influence)
        scale = np.sqrt(np.diag(products))
        return np.asarray(products / np.outer(scale, scale))
