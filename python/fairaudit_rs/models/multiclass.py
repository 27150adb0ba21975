"""`MulticlassModel`: one score for each of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..arguments import finite_array
from ..data.columns import list_some
from ..data.features import Fill, names_of, read_features
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import KernelName, Precision
from .kernel import KernelModel, KernelScores
from .linear import LinearScores
from .scores import Scores
from .torch_scores import TorchScores

if TYPE_CHECKING:
    import torch

    from ..data.labels import Label


Floats = NDArray[np.float64]


class MulticlassModel:
    """One score for each of several classes, whose softmax is their probability.

    Made by `linear`, `kernel` or `network`. `individual_test` converts a multinomial
    LogisticRegression or MLPClassifier of scikit-learn to one.

    Attributes
    ----------
    classes : tuple
        The labels, in the order of the scores.
    scores : LinearScores, KernelScores or TorchScores
        The function from rows to scores.
    feature_names : tuple of str or None
        Names of the features, in the order of the model.

    Examples
    --------
    >>> model = MulticlassModel.linear([[1.0], [0.0], [-1.0]], classes=["a", "b", "c"])
    >>> model.decision([[2.0], [-2.0]])
    array(['a', 'c'], dtype='<U1')
    """

    classes: tuple[Label, ...]
    scores: Scores
    feature_names: tuple[str, ...] | None
    #: The values that replace missing ones, by name or position of the column.
    fill: Fill = MappingProxyType({})

    def __init__(
        self,
        scores: Scores,
        classes: Sequence[Label] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if scores.n_scores < 2:
            raise ArgumentError(
                "scores has one score per row, but a model of several classes needs one for each "
                "class. With two classes, use a LinearModel, KernelModel or TorchModel.",
                argument="scores",
            )
        labels = range(scores.n_scores) if classes is None else classes
        if not arguments.is_listing(labels):
            raise ArgumentTypeError(
                f"classes is {labels!r}; accepted: a sequence of labels", argument="classes"
            )
        self.classes = tuple(
            array.item() if isinstance(array, np.generic) else array for array in labels
        )
        if not all(isinstance(class_, str | int | float) for class_ in self.classes):
            raise ArgumentTypeError(
                f"classes is {list_some(list(self.classes), 20)}; accepted: text, "
                f"numbers or booleans",
                argument="classes",
            )
        if len(self.classes) != scores.n_scores or len(set(self.classes)) != len(self.classes):
            raise ArgumentError(
                f"classes is {list_some(list(self.classes), 20)}; accepted: "
                f"{scores.n_scores} distinct "
                "labels, one for each score",
                argument="classes",
            )
        self.scores = scores
        self.feature_names = names_of(feature_names, scores.n_features)

    @classmethod
    def linear(
        cls,
        coef: ArrayLike,
        intercept: ArrayLike = 0.0,
        *,
        classes: Sequence[Label] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> MulticlassModel:
        """Return a model with linear scores: multinomial logistic regression.

        Parameters
        ----------
        coef : array-like of shape (n_classes, n_features)
            Coefficients of each score.
        intercept : float or array-like of shape (n_classes,)
            Added to the scores.
        classes : sequence, optional
            The labels of the scores; 0, 1, ... by default.
        feature_names : sequence of str, optional
            Names of the features. With names, the columns of a frame are chosen by name.

        Returns
        -------
        MulticlassModel
            The model.
        """
        matrix = finite_array("coef", coef, 2)
        return cls(
            LinearScores(matrix, _intercepts(intercept, len(matrix))), classes, feature_names
        )

    @classmethod
    def kernel(
        cls,
        support_vectors: ArrayLike,
        dual_coef: ArrayLike,
        intercept: ArrayLike = 0.0,
        kernel: KernelName = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        *,
        classes: Sequence[Label] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> MulticlassModel:
        """Return a model whose scores are sums of kernels at the same support vectors.

        Parameters
        ----------
        support_vectors : array-like of shape (n_support, n_features)
            The points of the kernels.
        dual_coef : array-like of shape (n_classes, n_support)
            Their coefficients in each score.
        intercept : float or array-like of shape (n_classes,)
            Added to the scores.
        kernel, gamma, degree, coef0 : str, float, int, float
            As for `KernelModel`.
        classes, feature_names : sequence, optional
            As for `linear`.

        Returns
        -------
        MulticlassModel
            The model.
        """
        matrix = finite_array("dual_coef", dual_coef, 2)
        base = KernelModel(support_vectors, matrix[0], 0.0, kernel, gamma, degree, coef0)
        scores = KernelScores(base.scores.kernel, matrix, _intercepts(intercept, len(matrix)))
        return cls(scores, classes, feature_names)

    @classmethod
    def network(
        cls,
        module: torch.nn.Module,
        n_classes: int,
        *,
        dtype: Precision | None = None,
        classes: Sequence[Label] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> MulticlassModel:
        """Return a model of a torch module that gives one logit for each class.

        Parameters
        ----------
        module : torch.nn.Module
            Takes a batch of rows (n, n_features), gives (n, n_classes). No softmax at its end.
        n_classes : int
            Number of logits that it gives.
        dtype : {None, "float32", "float64"}
            Precision to compute in, as for `TorchModel`.
        classes, feature_names : sequence, optional
            As for `linear`.

        Returns
        -------
        MulticlassModel
            The model.
        """
        import torch

        if not isinstance(module, torch.nn.Module):
            raise ArgumentTypeError(
                f"module is a {type(module).__name__}; accepted: a torch.nn.Module",
                argument="module",
            )
        last = type(list(module.modules())[-1]).__name__
        if last in ("Softmax", "LogSoftmax", "Sigmoid"):
            raise ArgumentError(
                f"module ends in {last}, so it gives probabilities, not logits. Pass the module "
                "without this layer.",
                argument="module",
            )
        checked = arguments.check(dtype=dtype, n_classes=n_classes)
        names = names_of(feature_names, None)
        width = None if names is None else len(names)
        return cls(TorchScores(module, checked.dtype, checked.n_classes, width), classes, names)

    def __eq__(self, other: object) -> bool:
        """Return whether another model has the same scores, classes and feature names."""
        if not isinstance(other, MulticlassModel):
            return NotImplemented
        mine, theirs = (
            (model.scores, model.classes, model.feature_names) for model in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.classes, self.feature_names))

    def __repr__(self) -> str:
        kind = type(self.scores).__name__.removesuffix("Scores").lower()
        return f"MulticlassModel({kind}, {len(self.classes)} classes)"

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of every row, one column for each class."""
        return self.scores.score_rows(
            read_features(X, self.scores.n_features, self.feature_names).values
        )

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, one column for each."""
        score = self.decision_function(X)
        size = np.exp(score - score.max(axis=1, keepdims=True))
        return np.asarray(size / size.sum(axis=1, keepdims=True))

    def decision(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest score of every row; the first of ties."""
        labels = np.asarray(self.classes)
        return np.asarray(labels[self.decision_function(X).argmax(axis=1)])


def _intercepts(intercept: ArrayLike, n_scores: int) -> Floats:
    values = np.asarray(intercept)
    if values.ndim == 0:
        values = np.full(n_scores, values)
    checked = finite_array("intercept", values, 1)
    if len(checked) != n_scores:
        raise ArgumentError(
            f"intercept has {len(checked)} numbers; accepted: one, or one for each of the "
            f"{n_scores} scores",
            argument="intercept",
        )
    return checked
