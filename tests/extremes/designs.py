"""Data and models that tests of the extremes lens share."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def people(n=600, seed=0):
    """A frame of a text, a boolean, a categorical and two numeric features."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["woman", "man"], n),
            "race": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "age": rng.integers(18, 70, n),
            "married": rng.random(n) < 0.4,
            "income": np.round(rng.normal(size=n), 2),
        }
    )


def labels(frame, seed=1):
    rng = np.random.default_rng(seed)
    score = frame.income + 0.9 * (frame.sex == "man") - 0.6 * (frame.race == "b") + 0.2
    return (rng.random(len(frame)) < 1 / (1 + np.exp(-score))).astype(int)


def pipeline(frame, y):
    """One-hot columns of text, standardised numbers, a logistic regression."""
    coded = make_column_transformer(
        (OneHotEncoder(), ["sex", "race"]),
        (StandardScaler(), ["age", "income"]),
        remainder="passthrough",
    )
    return make_pipeline(coded, LogisticRegression()).fit(frame, y)


def one_hot(frame, scaled):
    """One-hot columns named by prefix, standardised or not, as a frame."""
    coded = pd.get_dummies(frame, columns=["sex", "race"], dtype=float)
    if not scaled:
        return coded
    return pd.DataFrame(
        StandardScaler().fit_transform(coded), columns=coded.columns, index=coded.index
    )


def by_row(question, n):
    """The discrimination of each row of the data, NaN for those that are in no group."""
    found = np.full(n, np.nan)
    for group in question.groups:
        found[group.rows] = group.discrimination
    return found
