"""Table III of Monjezi et al. (2025): how alike generated rows are to real ones."""

from typing import Any

import numpy as np
import polars as pl

from fairaudit_rs.extremes.generator import per_group
from fairaudit_rs.extremes.generator_quality import generator_quality
from fairaudit_rs.extremes.tvae import TVAE

from .data import Flippable

#: Rows that generators learn, at most; as many are compared with, and as many tell the F1.
MOST_ROWS = 3_000
#: Passes of the autoencoder over the rows of a group; by default it makes more.
N_EPOCHS = 100
GENERATORS = ("bootstrap", "copula", "tvae", "independent", "other real rows")


class Independent:
    """Draws each column by itself from the rows that it has seen."""

    def fit(self, X: pl.DataFrame, rng: Any = None) -> "Independent":
        """Keep the rows."""
        self.rows = X
        return self

    def sample(self, n: int, rng: Any = None) -> pl.DataFrame:
        """Draw rows."""
        stream = np.random.default_rng(rng)
        columns = [
            column.gather(stream.integers(len(self.rows), size=n)).alias(column.name)
            for column in self.rows
        ]
        return pl.DataFrame(columns)


def quality(data: Flippable, generator: str, seed: int) -> dict[str, Any]:
    """One generator for each group, on a third of the rows; the others judge."""
    frame = data.frame.with_columns(
        pl.Series("favourable", np.where(data.label == 1, "yes", "no")),
        pl.Series("attribute", np.where(data.features[:, 0] == 1, "privileged", "unprivileged")),
    )
    order = np.random.default_rng([seed, 3]).permutation(len(frame))
    learned, judge, test = (frame[part[:MOST_ROWS].tolist()] for part in np.array_split(order, 3))
    if generator == "other real rows":
        return scores(judge, learned, test, seed)
    makers: dict[str, Any] = {
        "independent": Independent(), "tvae": TVAE(n_epochs=N_EPOCHS), "bootstrap": "bootstrap",
        "copula": "copula",
    }  # fmt: skip
    by_group = {
        str(key[0]): part.drop("attribute")
        for key, part in learned.group_by("attribute", maintain_order=True)
    }
    fitted = per_group(makers[generator], by_group, rng=seed)
    parts = [
        fitted_generator.sample(len(by_group[group]), rng=seed).with_columns(
            attribute=pl.lit(group)
        )
        for group, fitted_generator in fitted.items()
    ]
    return scores(judge, pl.concat(parts), test, seed)


def scores(
    real: pl.DataFrame, generated: pl.DataFrame, test: pl.DataFrame, seed: int
) -> dict[str, Any]:
    """The columns of Table III."""
    found = generator_quality(real, generated, target="favourable", test=test, rng=seed)
    return {
        "columns": found.column_score,
        "frechet": found.frechet,
        "detection": found.detection_score,
        "auc": found.detection_auc,
        "f1_loss": found.f1_loss,
    }
