"""Calls that once never ended, each in a process with a time limit."""

import numpy as np
import pytest

from fairaudit_rs import FairMetric, errors
from tests.children import run_child

MOCKED = """
from unittest import mock
import numpy as np
import fairaudit_rs as fa
from fairaudit_rs.models.sklearn import from_sklearn

X = np.random.default_rng(0).normal(size=(30, 3))
y = (X[:, 0] > 0).astype(int)
metric = fa.FairMetric.directions([[0, 0, 1.0]])
model = mock.{kind}()
calls = (
    lambda: fa.individual_test(model, X, y, fair_metric=metric),
    lambda: from_sklearn(model),
)
for call in calls:
    try:
        call()
    except fa.errors.ArgumentTypeError as error:
        print(str(error).partition(";")[0])
"""


@pytest.mark.parametrize("kind", ["Mock", "MagicMock", "NonCallableMock"])
def test_an_object_with_every_attribute_is_no_model(kind):
    done = run_child(MOCKED.format(kind=kind))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"model is a {kind}, whose gradient is not known"
    assert second == f"model is a {kind}"


def test_a_search_that_found_itself_is_refused():
    code = """
import fairaudit_rs as fa
from fairaudit_rs.models.sklearn import from_sklearn
from sklearn.base import BaseEstimator

class Found(BaseEstimator):
    @property
    def best_estimator_(self):
        return self

try:
    from_sklearn(Found())
except fa.errors.ArgumentTypeError as error:
    print(error)
"""
    done = run_child(code)
    assert "more than 10 nested searches;" in done.stdout, done.stderr


@pytest.mark.parametrize("matrix", ["[[1e-310]]", "[[1e-310, 0], [0, 1e-310]]", "[[1e308]]"])
@pytest.mark.parametrize("kind", ["mahalanobis", "matrix"])
def test_a_metric_whose_inverse_is_no_number_is_refused(kind, matrix):
    code = f"""
import numpy as np
import fairaudit_rs as fa
try:
    metric = fa.FairMetric.{kind}({matrix})
    print(metric.split(np.ones((2, metric.n_features))))
except fa.errors.ArgumentError as error:
    print(error)
"""
    done = run_child(code)
    assert (done.returncode, "(features in other units)" in done.stdout) == (0, True), done.stderr


def test_covariances_of_any_usual_unit_are_taken():
    for scale in (1e-90, 1.0, 1e90):
        metric = FairMetric.mahalanobis(np.diag([1.0, 2.0]) * scale)
        assert pytest.approx(np.diag([1.0, 0.5]) / scale) == metric.D
    with pytest.raises(errors.ArgumentError, match=r"has the eigenvalue 1e-300.*largest"):
        FairMetric.mahalanobis([[1e-300]])
