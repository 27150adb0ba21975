"""Metric functions and scorers of scikit-learn: those that mean a metric of ours are taken."""

import functools
import subprocess
import sys
import warnings

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.metrics.of_sklearn import METRIC_OF_FUNCTION

sklearn_metrics = pytest.importorskip("sklearn.metrics")

RNG = np.random.default_rng(1)
N = 400
Y = RNG.integers(0, 2, N)
SCORE = np.clip(0.3 * Y + 0.7 * RNG.random(N), 0.01, 0.99)
P = (SCORE > 0.5).astype(int)
GROUP = RNG.choice(["a", "b"], N)


@pytest.mark.parametrize("name", METRIC_OF_FUNCTION)
def test_a_function_means_the_metric_of_that_name(name):
    """The values of the groups are those of scikit-learn."""
    function = getattr(sklearn_metrics, name)
    metric = fa.metrics.get(function)
    value = SCORE if "y_score" in metric.needs else P
    found = fa.permutation_test(
        Y, y_pred=P, y_score=SCORE, sensitive_features=GROUP, metric=function, n_resamples=9
    )
    assert found.metric == metric.name
    for group_value in found.values:
        rows = group_value.group == GROUP
        assert group_value.value == pytest.approx(function(Y[rows], value[rows]), rel=1e-12)
    assert fa.metrics.get(name) is metric


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"average": "binary"}, "f1_score"),
        ({"zero_division": np.nan}, "f1_score"),
        ({"pos_label": 1, "labels": None}, "recall_score"),
        ({"average": "macro"}, "roc_auc_score"),
        ({"normalize": True}, "accuracy_score"),
        ({}, "precision_score"),
    ],
)
def test_options_that_change_nothing(options, name):
    function = functools.partial(getattr(sklearn_metrics, name), **options)
    assert fa.metrics.get(function).name == METRIC_OF_FUNCTION[name]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"average": "macro"}, "f1_score"),
        ({"average": None}, "recall_score"),
        ({"zero_division": 0}, "f1_score"),
        ({"zero_division": 1.0}, "precision_score"),
        ({"pos_label": 0}, "recall_score"),
        ({"normalize": False}, "accuracy_score"),
        ({"adjusted": True}, "balanced_accuracy_score"),
        ({"max_fpr": 0.1}, "roc_auc_score"),
        ({"sample_weight": [1.0]}, "accuracy_score"),
        ({"something": 1}, "recall_score"),
    ],
)
def test_options_that_mean_another_metric(options, name):
    function = functools.partial(getattr(sklearn_metrics, name), **options)
    (option,) = options
    message = rf"metric is scikit-learn's {name} with {option}=.*, which is another metric; accept"
    with pytest.raises(errors.ArgumentError, match=message):
        fa.metrics.get(function)


@pytest.mark.parametrize(
    "name", ["recall", "precision", "f1", "accuracy", "balanced_accuracy", "matthews_corrcoef"]
)
def test_scorers_of_decisions(name):
    scorer = sklearn_metrics.get_scorer(name)
    assert fa.metrics.get(scorer) is fa.metrics.get(name)


def test_scorers_of_scores():
    assert fa.metrics.get(sklearn_metrics.get_scorer("roc_auc")).name == "auc"
    made = sklearn_metrics.make_scorer(
        sklearn_metrics.brier_score_loss, response_method="predict_proba"
    )
    assert fa.metrics.get(made).name == "mean_squared_error"
    assert fa.metrics.get(sklearn_metrics.make_scorer(sklearn_metrics.recall_score)).needs == (
        "y_true",
        "y_pred",
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda m: m.get_scorer("neg_log_loss"),
            "a scorer of -log_loss; accepted: the l",
        ),
        (lambda m: m.get_scorer("f1_macro"), "f1_score with (average='macro'|pos_label=None)"),
        (
            lambda m: m.get_scorer("average_precision"),
            "average_precision_score, which is no m",
        ),
        (lambda m: m.make_scorer(m.roc_auc_score), "a scorer of roc_auc_score by 'predict', and"),
        (
            lambda m: m.make_scorer(m.recall_score, response_method="predict_proba"),
            "a scorer of recall_score by 'predict_proba', and true_positive_rate is one of decis",
        ),
        (lambda m: m.jaccard_score, r"jaccard_score, which is no .* metrics.callable_metric\('jac"),
    ],
)
def test_what_means_something_else(make, message):
    with pytest.raises(errors.ArgumentError, match=message):
        fa.metrics.get(make(sklearn_metrics))


def test_the_advice_works():
    def average_precision(y_true, value, weight):
        return sklearn_metrics.average_precision_score(y_true, value, sample_weight=weight)

    metric = fa.metrics.callable_metric(
        "average_precision", average_precision, columns=("y_true", "y_score"), n_samples=9
    )
    found = fa.permutation_test(
        Y, y_score=SCORE, sensitive_features=GROUP, metric=metric, n_resamples=9
    )
    assert found.metric == "average_precision"


@pytest.mark.parametrize("value", [len, lambda y, p: 0.0, functools.partial(max, 1), np.mean])
def test_functions_of_others_are_pointed_to_callable_metric(value):
    with pytest.raises(errors.ArgumentTypeError, match=r"own: see metrics\.callable_metric"):
        fa.metrics.get(value)


def test_a_function_of_that_name_is_not_that_of_scikit_learn():
    def recall_score(y_true, y_pred):
        return 0.0

    recall_score.__module__ = "sklearn.metrics._classification"
    with pytest.raises(errors.ArgumentTypeError, match=r"see metrics\.callable_metric"):
        fa.metrics.get(recall_score)


def test_functions_in_tests_of_all_kinds():
    given = {"y_true": Y, "y_pred": P, "sensitive_features": GROUP, "rng": 1}
    for function in (fa.permutation_test, fa.intervals, fa.calibrate):
        few = {"n_resamples": 19} | ({"n_audits": 10} if function is fa.calibrate else {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = function(**given, **few, metric=sklearn_metrics.recall_score)
        assert one.metric == function(**given, **few, metric="tpr").metric
    both = fa.metrics.joint_metric(
        "both", [sklearn_metrics.recall_score, sklearn_metrics.precision_score]
    )
    assert [part.name for part in both.components] == [
        "true_positive_rate",
        "positive_predictive_value",
    ]


def test_nothing_is_imported():
    code = (
        "import sys, fairaudit_rs as fa\n"
        "try:\n    fa.metrics.get(len)\n"
        "except fa.errors.ArgumentTypeError:\n    pass\n"
        "assert fa.metrics.get('recall_score').name == 'true_positive_rate'\n"
        "assert not any(name.startswith('sklearn') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
