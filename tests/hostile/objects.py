"""Audits, policies, notions, stored results and models of scikit-learn, with what does not fit."""

import copy
from functools import cache
from typing import get_args

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs import literals

from . import files, values


def audit(r, rows):
    """Everything that can be asked of rows, seldom of a model beside them."""
    rows.n *= r.choice((1, 5))
    given = rows.data()
    given |= {"n_resamples": r.choice((1, 19)), "rng": r.randrange(99), "n_threads": 1}
    if r.random() < 0.5:
        given["policy"] = r.choice(get_args(literals.PresetName))
    if r.random() < 0.3:
        given["policy"] = fa.Policy(**policy(r, rows)[1])
    if r.random() < 0.1:
        given |= {"model": rows.linear(), "X": rows.of("X"), "lenses": ["individual"]}
    if r.random() < 0.2:
        given["evidence"] = r.choice(get_args(literals.Evidence))
    return fa.audit, given


def criterion(r, rows):
    metric = r.choice(("tpr", "selection_rate", "auc", "calibration_error", "equalized_odds"))
    given = {"metric": metric, "binding": r.random() < 0.7}
    given[r.choice(("tolerance", "ratio"))] = r.choice((0.1, 0.8, None))
    if r.random() < 0.3:
        given["reference"] = r.choice((None, "highest", 0, "a", ("a", 1)))
    return fa.Criterion, given


def policy(r, rows):
    """Criteria of two metrics at most, which may be refused together."""
    criteria = [fa.Criterion(metric="selection_rate", tolerance=r.choice((0.05, 0.2)))]
    if r.random() < 0.5:
        criteria.append(fa.Criterion(metric="tpr", ratio=0.8, binding=False))
    given = {"name": "own", "criteria": criteria, "floor": r.choice((30, 30, 60))}
    given["intersections"] = r.choice(get_args(literals.Intersections))
    return fa.Policy, given


def policy_of(r, rows):
    """From a name, a dict, a file."""
    kind = r.randrange(3)
    known = fa.Policy.preset(r.choice(("parity", "opportunity", "four_fifths")))
    if kind == 0:
        return fa.Policy.preset, {"name": r.choice(get_args(literals.PresetName))}
    if kind == 1:
        return fa.Policy.from_dict, {"content": edited(r, known.to_dict())}
    path = files.folder() / r.choice(("policy.toml", "pyproject.toml"))
    path.write_bytes(files.changed(r, known.to_toml().encode(), TOML))
    return fa.Policy.load, {"path": path}


TOML = (
    *(b"\n", b'"', b"[", b"]", b"[[", b"= ", b"'''", b"nan", b"inf", b"9" * 400, b"\xff", b"\0"),
    *(b"\npreset = 3", b"alpha = ", b"[[policy.criterion]]\n", b"[tool.fairaudit.policy]\n", b"{}"),
)


def notion(r, rows):
    group = rows.rng.integers(0, 2, rows.n)
    own = np.stack([group == 0, group == 1], axis=1).astype(float)
    phi = r.choice((lambda U, mean: U[:, :1] / mean[0] - U[:, 1:] / mean[1], own))
    return fa.Notion, {"phi": phi, "U": own, "name": "own"}


def own_notion(r, rows):
    """An audit of a notion whose function answers with anything."""
    answer = r.choice((values.scalar(r), rows.rng.normal(size=(rows.n, 1)), np.zeros((rows.n, 2))))
    U = r.choice((rows.rng.random((rows.n, 2)), rows.rng.random((rows.n + 1, 1))))
    made = fa.Notion(lambda U, mean: answer, U)
    data = {name: rows.of(name) for name in ("y_true", "y_score", "sensitive_features")}
    return fa.projection_test, {**data, "notion": made, "n_resamples": 9, "rng": 1}


def several_classes(r, rows):
    kind = fa.MulticlassModel.linear if r.random() < 0.5 else fa.MulticlassModel.kernel
    weights = rows.rng.normal(size=(3, 2))
    if kind == fa.MulticlassModel.linear:
        return kind, {"coef": weights, "classes": ["a", "b", "c"]}
    return kind, {"support_vectors": rows.of("X")[:2], "dual_coef": weights}


def of_sklearn(r, rows):
    """A fitted estimator, one of whose attributes is something else."""
    model = copy.copy(r.choice(_fitted()))
    if r.random() < 0.7:
        name = r.choice([var for var in vars(model) if not var.startswith("__")])
        vars(model)[name] = r.choice((values.scalar, lambda r: values.column(r, 2)))(r)
    return r.choice((fa.models.from_sklearn, fa.models.adapt)), {"model": model}


@cache
def _fitted():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    X, y = np.array([[0.0, 1.0], [1.0, 0.5], [0.2, 2.0], [1.5, 1.0]]), [0, 1, 0, 1]
    return [kind().fit(X, y) for kind in (LogisticRegression, SVC)]


def top_ups(r, rows):
    return fa.TopUps, {"generator": "bootstrap", "n_top_ups": r.choice((1, 3))}


def own_generator(r, rows):
    """Not trained: that of networks needs torch."""
    kind = r.choice((fa.TVAE, fa.CTGAN, fa.SmoothedBootstrap, fa.GaussianCopula))
    return kind, {"n_epochs": r.choice((1, 10))} if kind in (fa.TVAE, fa.CTGAN) else {}


def stored(r, rows):
    """A result that was stored, and edited by hand."""
    return fa.from_dict, {"content": edited(r, r.choice(_stored()))}


@cache
def _stored():
    """Results of several kinds as dicts."""
    i = np.arange(80)
    data = {"y_true": i % 2, "y_pred": i // 2 % 2, "sensitive_features": i // 3 % 3}
    made = [
        fa.permutation_test(**data, metric="tpr", n_resamples=9, rng=1),
        fa.intervals(**data, metric="tpr"),
        fa.audit(**data, rng=1, n_resamples=9),
        fa.sample_size(0.1, metric="tpr", value=0.5),
        fa.projection_test(data["y_true"], y_score=i * 7 % 80 / 80, sensitive_features=i // 3 % 2),
        fa.fit_tail(np.arange(300) * 7 % 97 / 80, n_exceedances=30),
    ]
    return [result.to_dict() for result in made]


def edited(r, content):
    """The same dicts and lists, but for one entry that is gone or something else."""
    if not isinstance(content, dict | list) or not content or r.random() < 0.25:
        return values.scalar(r)
    other = content.copy()
    place = r.choice(list(other)) if isinstance(other, dict) else r.randrange(len(other))
    if r.random() < 0.1:
        del other[place]
    else:
        other[place] = edited(r, other[place])
    return other


MAKERS = {
    "audit": audit,
    "criterion": criterion,
    "policy": policy,
    "policy_of": policy_of,
    "notion": notion,
    "own_notion": own_notion,
    "several_classes": several_classes,
    "of_sklearn": of_sklearn,
    "top_ups": top_ups,
    "own_generator": own_generator,
    "stored": stored,
}
