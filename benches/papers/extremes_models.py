"""The models of Monjezi et al. (2025), and what is done about their tails.

Mitigators are short and our own, but for fairlearn's exponentiated gradient. All models give
probabilities of the favourable label for rows whose first column is the protected attribute.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import fairaudit_rs as fa

from .data import Codes, Matrix

#: Rows that a support vector machine is fitted on at most.
SVM_ROWS = 2_000
LAYERS = (64, 32, 16, 8, 4)
#: Networks make 20 passes over the rows, and as many more as make so many steps.
BATCH, N_PASSES, N_STEPS = 256, 20, 1_500
#: Rounds of the minimax game with its step, and of exponentiated gradient: fewer for networks.
N_ROUNDS = {"logistic regression": 30, "network": 6}
N_ITERATIONS = {"logistic regression": 20, "network": 4}
RATE = 2.0
N_NEIGHBOURS = 5
#: Settings that a search tries.
N_SETTINGS = {"logistic regression": 40, "network": 12}
SPACES: dict[str, dict[str, Any]] = {
    "logistic regression": {
        "C": (1e-5, 10.0, "log"),
        "l1_ratio": [0.0, 1.0],
        "fit_intercept": [True, False],
        "class_weight": [None, "balanced"],
    },
    "network": {
        "hidden_layer_sizes": [LAYERS, (64, 32), (32, 16, 8), (16,)],
        "alpha": (1e-5, 3.0, "log"),
        "learning_rate_init": (1e-4, 1e-2, "log"),
        "share_of_steps": (0.1, 1.0),
    },
}
PARTS = (0.6, 0.25, 0.15)
#: Rows per row of the horizon from which order statistics limit a level at 95 %.
ORDER_ROWS = 3.69


class Support:
    """A support vector machine of some of the rows, its scores made probabilities by Platt."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Matrix, y: Codes) -> "Support":
        """Fit it on rows at random."""
        rows = np.random.default_rng(self.seed).permutation(len(y))[:SVM_ROWS]
        self.model = CalibratedClassifierCV(SVC(), ensemble=False).fit(X[rows], y[rows])
        return self

    def predict_proba(self, X: Matrix) -> Matrix:
        """Probabilities of both labels."""
        return np.asarray(self.model.predict_proba(X))


def logistic(seed: int = 0) -> LogisticRegression:
    """Logistic regression at the defaults of scikit-learn, to the optimum."""
    return LogisticRegression(max_iter=2_000, random_state=seed)


class Network(MLPClassifier):
    """Six layers of weights; small data make more passes."""

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = LAYERS,
        alpha: float = 1e-4,
        learning_rate_init: float = 1e-3,
        share_of_steps: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes, alpha=alpha, learning_rate_init=learning_rate_init,
            batch_size=BATCH, random_state=random_state,
        )  # fmt: skip
        self.share_of_steps = share_of_steps

    def fit(self, X: Matrix, y: Codes, sample_weight: Matrix | None = None) -> "Network":
        """Train it."""
        passes = max(N_PASSES, math.ceil(N_STEPS / math.ceil(len(y) / BATCH)))
        self.max_iter = max(1, round(self.share_of_steps * passes))
        self.batch_size = min(BATCH, len(y))
        super().fit(X, y, sample_weight=sample_weight)
        return self


def network(seed: int = 0) -> Network:
    """A network at its defaults."""
    return Network(random_state=seed)


MODELS: dict[str, Callable[[int], Any]] = {
    "logistic regression": logistic,
    "SVM": Support,
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "network": network,
}


def fitted(model: Any, X: Matrix, y: Codes, **options: Any) -> Any:
    """Fit a model, however many steps it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **options)


# --- mitigation ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """The mean probability of weighted models."""

    models: Sequence[Any]
    weights: Sequence[float]

    def predict_proba(self, X: Matrix) -> Matrix:
        """Probabilities of both labels."""
        parts = [model.predict_proba(X)[:, 1] for model in self.models]
        mean = np.clip(np.average(parts, axis=0, weights=self.weights), 0, 1)
        return np.column_stack([1 - mean, mean])


Fit = Callable[[str, Matrix, Codes, int], Any]


def as_it_is(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """Nothing is done."""
    return fitted(MODELS[name](seed), X, y)


def exponentiated_gradient(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """Agarwal et al. (2018), equalized odds; the mixture's mean probability."""
    found = ExponentiatedGradient(
        MODELS[name](seed),
        EqualizedOdds(difference_bound=0.02),
        max_iter=N_ITERATIONS[name],
    )
    fitted(found, X, y, sensitive_features=X[:, 0])
    weights = np.asarray(found.weights_, dtype=float)
    used = np.flatnonzero(weights > 0)
    return Mixture([found.predictors_[i] for i in used], weights[used].tolist())


def minimax(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """Diana et al. (2021): the group with the larger error gains weight, round by round."""
    group, models = X[:, 0].astype(int), []
    lost = np.zeros(2)
    share = np.bincount(group, minlength=2) / len(group)
    for step in range(N_ROUNDS[name]):
        # Exponential weights: round t has the step RATE / sqrt(t) of the losses so far.
        power = np.exp(RATE / np.sqrt(step + 1) * (lost - lost.max()))
        weight = power / power.sum() / share
        model = fitted(MODELS[name](seed), X, y, sample_weight=weight[group])
        wrong = model.predict(X) != y
        lost += [wrong[group == place].mean() for place in (0, 1)]
        models.append(model)
    return Mixture(models, [1.0] * len(models))


def reweighing(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """Kamiran and Calders (2012): weights that make group and label independent."""
    cell = 2 * X[:, 0].astype(int) + y
    count = np.bincount(cell, minlength=4).reshape(2, 2)
    expected = np.outer(count.sum(axis=1), count.sum(axis=0)) / count.sum()
    weight = (expected / np.maximum(count, 1)).ravel()[cell]
    return fitted(MODELS[name](seed), X, y, sample_weight=weight)


def smote(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """After Fair-SMOTE: cells filled up between neighbours, then situation testing."""
    rng = np.random.default_rng(seed)
    cell = 2 * X[:, 0].astype(int) + y
    most = np.bincount(cell).max()
    parts, labels = [X], [y]
    for place in range(4):
        own = X[cell == place]
        n_missing = most - len(own)
        if not n_missing or len(own) <= N_NEIGHBOURS:
            continue
        near = NearestNeighbors(n_neighbors=N_NEIGHBOURS + 1).fit(own)
        start = rng.integers(len(own), size=n_missing)
        _, known = near.kneighbors(own[np.unique(start)])
        of = np.searchsorted(np.unique(start), start)
        end = known[of, rng.integers(1, N_NEIGHBOURS + 1, n_missing)]
        between = rng.random((n_missing, 1))
        parts.append(own[start] + between * (own[end] - own[start]))
        labels.append(np.full(n_missing, place % 2))
    X, y = np.vstack(parts), np.concatenate(labels)
    judge = fitted(logistic(seed), X, y)
    flipped = X.copy()
    flipped[:, 0] = 1 - flipped[:, 0]
    same = judge.predict(X) == judge.predict(flipped)
    return fitted(MODELS[name](seed), X[same], y[same])


def two_models(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """After MAAT: a model of all rows, and one of rows whose groups have the same base rate."""
    rng = np.random.default_rng(seed)
    cell = 2 * X[:, 0].astype(int) + y
    count = np.bincount(cell, minlength=4).reshape(2, 2)
    ratio = y.mean() / (1 - y.mean())
    kept = []
    for group, (n_no, n_yes) in enumerate(count):
        # As many as fit into the base rate of all rows.
        wanted = (min(n_no, n_yes / ratio), min(n_yes, n_no * ratio))
        for label, n in enumerate(wanted):
            rows = np.flatnonzero(cell == 2 * group + label)
            kept.append(rng.permutation(rows)[: round(n)])
    rows = np.concatenate(kept)
    fair = fitted(MODELS[name](seed), X[rows], y[rows])
    return Mixture([as_it_is(name, X, y, seed), fair], [1.0, 1.0])


def ecd_fair(name: str, X: Matrix, y: Codes, seed: int) -> Any:
    """Ours: `ecd_search` over settings, with its floor 0.01 below the most accurate one."""
    fewest = int(np.bincount(X[:, 0].astype(int)).min() * min(PARTS) * 0.95)
    try:
        return searched(name, X, y, seed, min(1_000, 5 * fewest))
    except fa.errors.DataError:
        # Features of few values leave tails without a fit; order statistics go less far.
        return searched(name, X, y, seed, int(fewest / ORDER_ROWS))


def searched(name: str, X: Matrix, y: Codes, seed: int, horizon: int) -> Any:
    """Search the settings of a model."""
    regression = LogisticRegression(solver="liblinear", max_iter=2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fa.ecd_search(
            regression if name == "logistic regression" else network(), X, y, attribute=0,
            reference=1, space=SPACES[name], parts=PARTS, n_settings=N_SETTINGS[name],
            horizon=horizon, rng=seed, n_threads=1,
        )  # fmt: skip


MITIGATORS: dict[str, Fit] = {
    "none": as_it_is,
    "exponentiated gradient": exponentiated_gradient,
    "reweighing": reweighing,
    "after Fair-SMOTE": smote,
    "after MAAT": two_models,
    "minimax": minimax,
    "ecd_search": ecd_fair,
}
