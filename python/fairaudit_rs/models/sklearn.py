"""Converts fitted estimators of scikit-learn to models of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError, FairAuditError
from ..literals import Link
from .binary import BinaryModel
from .estimators import best_of, fitted_value, sklearn_names
from .kernel import KernelModel
from .linear import LinearModel
from .multiclass import MulticlassModel
from .preprocessing import PreprocessedColumns, prepared_by, steps_of
from .torch_model import TorchModel, make_network

_Read: TypeAlias = LinearModel | KernelModel | TorchModel
_Reader: TypeAlias = Callable[[Any, float | None], _Read]


def from_sklearn(
    model: Any, threshold: float | None = None
) -> LinearModel | KernelModel | TorchModel:
    """Return a fitted scikit-learn estimator as a model of this package.

    Parameters
    ----------
    model : estimator
        Fitted, with two classes; label 1 is its second class. LogisticRegression,
        LinearDiscriminantAnalysis and SGDClassifier with log loss become a `LinearModel` with
        link ``"logit"``; LinearSVC, RidgeClassifier, Perceptron, other SGDClassifiers, and
        linear regressions (LinearRegression, Ridge, Lasso, ElasticNet) one with link
        ``"identity"``; SVC and NuSVC (linear, rbf, poly) and KernelRidge become a `KernelModel`,
        MLPClassifier a `TorchModel` in double precision (its weights are copied).
        A Pipeline of scalers (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler) and
        SimpleImputer, and a ColumnTransformer of these, OneHotEncoder, ``"passthrough"`` and
        ``"drop"``, before a linear model or a network becomes one model; a fitted search
        (GridSearchCV) is replaced by its best estimator.
    threshold : float, optional
        By default probability 0.5 or margin 0, as the estimator decides itself. Required for
        regressions: 0.5 for labels 0 and 1, 0 for labels -1 and 1.

    Returns
    -------
    LinearModel, KernelModel or TorchModel
        With the names of the features, when the estimator was fitted on a frame.

    Notes
    -----
    A pipeline is folded: the model takes features before scaling, so distances are in their
    units. For distances in scaled units adapt the last step, ``pipeline[-1]``, and pass scaled
    rows. Every level of a one-hot encoded column is a feature: its indicator, named as in
    scikit-learn (``job_clerk``). The model reads it from a frame with the column ``job`` or with
    the indicators, and moves it like any number (``immovable=`` fixes it). Dropped columns are
    not features. Where a value is missing, a gradient flow starts at the value that the imputer
    fills in (``fill``); other functions raise for such rows.
    """
    if not sklearn_names(model) and not is_tree(model):
        raise ArgumentTypeError(
            f"model is a {type(model).__name__}; accepted: a fitted estimator of scikit-learn",
            argument="model",
        )
    if hasattr(model, "best_estimator_"):
        return from_sklearn(best_of(model), threshold)
    names = sklearn_names(model)
    last = last_step(model)
    class_name = type(last).__name__
    if is_tree(last):
        raise ArgumentTypeError(
            f"model is a {class_name}, whose score is piecewise constant, so that distances to its "
            "boundary have no density there. Pass its scores instead, "
            'y_score=model.predict_proba(X)[:, 1] with calibration="permutation". extreme_test '
            "takes any model.",
            argument="model",
            mentions=("calibration",),
        )
    for accepted, read in _READERS.items():
        if accepted in names:
            return _read(read, model, threshold)
    raise ArgumentTypeError(
        f"model is a {class_name}, for which there is no closed form; accepted: linear models, "
        "SVC, NuSVC, KernelRidge, MLPClassifier, and pipelines that end in a linear model or a "
        "network. For any other model pass y_score to projection_test: the distance is then "
        "|score - threshold|. extreme_test takes any model.",
        argument="model",
        mentions=("y_score",),
    )


def _read(read: _Reader, model: Any, threshold: float | None) -> _Read:
    """Convert an estimator; raise if its attributes are not those of a fitted one."""
    try:
        return read(model, threshold)
    except (FairAuditError, MemoryError):
        raise
    except Exception as error:
        raise ArgumentTypeError(
            f"model is a {type(last_step(model)).__name__} that cannot be read "
            f"({type(error).__name__}: {error}). Pass the estimator as scikit-learn fitted it.",
            argument="model",
        ) from error


_Ours = TypeVar("_Ours", bound=BinaryModel)
_TREES = ("Tree", "Forest", "Boost", "LGBM", "XGB", "Booster", "Stump")


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or of the best one of a search; else the model."""
    model = best_of(model)
    while "Pipeline" in sklearn_names(model):
        model = best_of(model.steps[-1][1])
    return model


def is_tree(model: Any) -> bool:
    """Return whether a model consists of trees, so that its score is piecewise constant."""
    package = type(model).__module__.partition(".")[0]
    known = package in ("sklearn", "lightgbm", "xgboost", "catboost")
    return known and any(word in type(model).__name__ for word in _TREES)


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _check_binary(model: Any) -> None:
    classes = fitted_value(model, "classes_")
    if isinstance(classes, list) or np.ndim(classes) != 1 or len(classes) != 2:
        what = f"{len(classes)} {'outputs' if isinstance(classes, list) else 'classes'}"
        raise ArgumentError(
            f"model is a {type(model).__name__} with {what}; accepted: two classes",
            argument="model",
        )


def _linear(model: Any, threshold: float | None, link: Link) -> LinearModel:
    coef = np.asarray(fitted_value(model, "coef_"), dtype=np.float64)
    intercept = np.ravel(fitted_value(model, "intercept_"))
    if coef.ndim == 2 and coef.shape[0] > 1:
        raise ArgumentError(
            f"model is a {type(model).__name__} with {coef.shape[0]} outputs; accepted: one",
            argument="model",
        )
    return LinearModel(
        coef.ravel(), float(intercept[0]), threshold, link=link, feature_names=_names(model)
    )


def _log_odds(model: Any, threshold: float | None) -> LinearModel:
    _check_binary(model)
    return _with_classes(_linear(model, threshold, "logit"), model)


def _margin(model: Any, threshold: float | None) -> LinearModel:
    _check_binary(model)
    return _with_classes(_linear(model, threshold, "identity"), model)


def _with_classes(ours: _Ours, model: Any) -> _Ours:
    """Set the labels that the two classes of an estimator stand for."""
    ours.classes = tuple(np.asarray(model.classes_).tolist())
    return ours


def _sgd(model: Any, threshold: float | None) -> LinearModel:
    return (_log_odds if model.loss == "log_loss" else _margin)(model, threshold)


def _regression(model: Any, threshold: float | None) -> LinearModel:
    _require_threshold(model, threshold)
    return _linear(model, threshold, "identity")


def _require_threshold(model: Any, threshold: float | None) -> None:
    if threshold is None:
        raise ArgumentTypeError(
            f"threshold is missing, and a {type(model).__name__} predicts numbers. Pass the number "
            "from which on the decision is 1 (0.5 for labels 0 and 1).",
            argument="threshold",
            code="missing-argument",
        )


def _support_vectors(model: Any, threshold: float | None) -> KernelModel:
    _check_binary(model)
    ours = KernelModel(
        fitted_value(model, "support_vectors_"),
        fitted_value(model, "dual_coef_"),
        float(np.ravel(fitted_value(model, "intercept_"))[0]),
        # The value used in the fit: "scale" depends on the training data.
        **_kernel_of(model, fitted_value(model, "_gamma")),
        threshold=threshold,
        link="identity",
        feature_names=_names(model),
    )
    return _with_classes(ours, model)


def _kernel_ridge(model: Any, threshold: float | None) -> KernelModel:
    _require_threshold(model, threshold)
    points = fitted_value(model, "X_fit_")
    dual = np.asarray(fitted_value(model, "dual_coef_"))
    if dual.ndim == 2 and dual.shape[1] > 1:
        raise ArgumentError(
            f"model is a KernelRidge with {dual.shape[1]} outputs; accepted: one", argument="model"
        )
    return KernelModel(
        points,
        dual.ravel(),
        0.0,
        **_kernel_of(model, 1 / np.shape(points)[1] if model.gamma is None else model.gamma),
        threshold=threshold,
        link="identity",
        feature_names=_names(model),
    )


def _kernel_of(model: Any, gamma: float) -> dict[str, Any]:
    """Return the kernel of an estimator, with the parameters that it uses."""
    if model.kernel == "linear":
        return {"kernel": "linear"}
    if model.kernel == "rbf":
        return {"kernel": "rbf", "gamma": gamma}
    if model.kernel in ("poly", "polynomial"):
        degree = int(model.degree) if float(model.degree).is_integer() else model.degree
        return {"kernel": "polynomial", "gamma": gamma, "degree": degree, "coef0": model.coef0}
    raise ArgumentError(
        f"model is a {type(model).__name__} with kernel={model.kernel!r}; accepted: linear, "
        "rbf, poly",
        argument="model",
        mentions=("kernel",),
    )


def _pipeline(model: Any, threshold: float | None) -> LinearModel | TorchModel:
    last, columns = _unfolded(model)
    if _is_network(last):
        return _network(last, threshold, columns, None)
    ours = from_sklearn(last, threshold)
    if not isinstance(ours, LinearModel):
        raise ArgumentTypeError(
            f"model is a Pipeline that ends in {type(last).__name__}; accepted: one that "
            "ends in a linear model or a network (for kernels adapt the last step, and pass "
            "transformed rows)",
            argument="model",
        )
    folded = LinearModel(
        columns.feature_weights(ours.coef[:, None])[:, 0],
        ours.intercept + float(ours.coef @ columns.shift),
        ours.threshold,
        link=ours.link,
        feature_names=columns.feature_names,
    )
    folded.classes, folded.fill = ours.classes, columns.fill_by_name
    return folded


def _unfolded(model: Any) -> tuple[Any, PreprocessedColumns]:
    """Return the last step of a pipeline, and the columns that it takes."""
    columns = PreprocessedColumns.raw(steps_of(model)[0][1])
    last = model
    while "Pipeline" in sklearn_names(last):
        *before, (_, after) = steps_of(last)
        columns = prepared_by(before, columns)
        last = best_of(after)
    return last, columns


def _is_network(model: Any) -> bool:
    return "MLPClassifier" in sklearn_names(model)


def _plain_network(model: Any, threshold: float | None) -> TorchModel:
    return _network(model, threshold, None, _names(model))


def _network(
    model: Any,
    threshold: float | None,
    columns: PreprocessedColumns | None,
    names: list[str] | None,
) -> TorchModel:
    _check_binary(model)
    module = _layers(model, columns)
    feature_names = names if columns is None else columns.feature_names
    ours = TorchModel(module, threshold, link="logit", feature_names=feature_names)
    if columns is not None:
        ours.fill = columns.fill_by_name
    return _with_classes(ours, model)


def _layers(model: Any, columns: PreprocessedColumns | None) -> Any:
    """Return a network as a torch module of logits, with the preprocessing in its first layer."""
    weights, biases = list(fitted_value(model, "coefs_")), list(fitted_value(model, "intercepts_"))
    # Two classes have one output; two classes with several outputs are several labels per row.
    wanted = 1 if len(model.classes_) == 2 else len(model.classes_)
    if len(biases[-1]) != wanted:
        raise ArgumentError(
            f"model is a {type(model).__name__} with {len(biases[-1])} labels for every row; "
            "accepted: one label",
            argument="model",
        )
    if columns is not None:
        biases[0] = biases[0] + columns.shift @ weights[0]
        weights[0] = columns.feature_weights(weights[0])
    return make_network(weights, biases, model.activation)


def multiclass_from_sklearn(model: Any) -> MulticlassModel | None:
    """Convert a fitted estimator with more than two classes; return None for any other model."""
    model = best_of(model)
    names = sklearn_names(model)
    classes = getattr(model, "classes_", ())
    if not names or isinstance(classes, list) or np.ndim(classes) != 1 or len(classes) < 3:
        return None
    last, columns = _unfolded(model) if "Pipeline" in names else (model, None)
    labels = np.asarray(classes).tolist()
    feature_names = _names(model) if columns is None else columns.feature_names
    if _is_network(last):
        module = _layers(last, columns)
        ours = MulticlassModel.network(
            module, len(labels), classes=labels, feature_names=feature_names
        )
        return _with_fill(ours, columns)
    known = sklearn_names(last)
    # Up to version 1.7, scikit-learn could fit each class against the rest.
    one_vs_rest = "ovr" in str(getattr(last, "multi_class", "")) or (
        getattr(last, "solver", "") == "liblinear"
    )
    accepted = {"LogisticRegression", "LinearDiscriminantAnalysis"}
    if one_vs_rest or not accepted.intersection(known):
        raise ArgumentTypeError(
            f"model is a {type(last).__name__} with {len(labels)} classes, whose scores have no "
            "softmax. With several classes use LogisticRegression, LinearDiscriminantAnalysis, "
            "MLPClassifier, or a MulticlassModel.",
            argument="model",
        )
    coef, intercept = fitted_value(last, "coef_"), fitted_value(last, "intercept_")
    if columns is not None:
        coef, intercept = columns.feature_weights(coef.T).T, intercept + coef @ columns.shift
    ours = MulticlassModel.linear(coef, intercept, classes=labels, feature_names=feature_names)
    return _with_fill(ours, columns)


def _with_fill(ours: MulticlassModel, columns: PreprocessedColumns | None) -> MulticlassModel:
    """Set the values that replace missing ones."""
    if columns is not None:
        ours.fill = columns.fill_by_name
    return ours


_READERS: dict[str, _Reader] = {
    "Pipeline": _pipeline,
    "LogisticRegression": _log_odds,
    "LinearDiscriminantAnalysis": _log_odds,
    "SGDClassifier": _sgd,
    "LinearSVC": _margin,
    "RidgeClassifier": _margin,
    "RidgeClassifierCV": _margin,
    "Perceptron": _margin,
    "LinearRegression": _regression,
    "Ridge": _regression,
    "RidgeCV": _regression,
    # Lasso and the cross-validated ones of scikit-learn share these bases.
    "ElasticNet": _regression,
    "LinearModelCV": _regression,
    "SVC": _support_vectors,
    "NuSVC": _support_vectors,
    "KernelRidge": _kernel_ridge,
    "MLPClassifier": _plain_network,
}
