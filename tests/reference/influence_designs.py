"""Simulated designs of the influence lens, with their true scores. All draws come from `rng`.

The prototype's own designs are described only in words ("measured", sections 1 to 4); these have
the stated base rates, prevalences and shapes, not its coefficients. Truths are enumerated, or
summed over a fixed grid of 40,000 points of a standard normal variable (error below 1e-6).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import optimize, special, stats

from . import influence as reference

GRID = np.linspace(-8, 8, 40_001)[:-1] + 8 / 40_000
GRID_MASS = stats.norm.pdf(GRID) / stats.norm.pdf(GRID).sum()


@cache
def threshold(share):
    """The t between two points of the grid with P(V > t) closest to `share`, on the grid."""
    at = np.argmin(np.abs(GRID_MASS[::-1].cumsum() - share))
    return (GRID[::-1][at] + GRID[::-1][at + 1]) / 2


@cache
def intercept(slope, share):
    """The a with E expit(a + slope V) = share."""
    return optimize.brentq(
        lambda a: GRID_MASS @ special.expit(a + slope * GRID) - share, -40, 40, xtol=1e-13
    )


@dataclass(frozen=True)
class Marginal:
    """V normal, P(Y=1|V) = expit(a + 1.5 V), P(x=1|V) = expit(k + V) or p.

    Scores expit(a + 1.2 V); decisions V > t with P(V > t) = P(Y = 1).
    """

    base: float = 0.31
    prevalence: float = 0.1
    decision: bool = False
    dependent: bool = False

    def predict(self, v):
        if self.decision:
            return (v > threshold(self.base)).astype(float)
        return special.expit(intercept(1.5, self.base) + 1.2 * v)

    def label_rate(self, v):
        return special.expit(intercept(1.5, self.base) + 1.5 * v)

    def feature_rate(self, v):
        if not self.dependent:
            return np.full(len(v), self.prevalence)
        return special.expit(intercept(1.0, self.prevalence) + v)

    def rows(self, rng, n):
        """(y, f, x)."""
        v = rng.normal(size=n)
        y = (rng.random(n) < self.label_rate(v)).astype(float)
        x = (rng.random(n) < self.feature_rate(v)).astype(float)
        return y, self.predict(v), x

    def truth(self, metric):
        """E[psi | x = 1] - E[psi | x = 0], summed over the grid."""
        h, f, at = self.label_rate(GRID), self.predict(GRID), self.feature_rate(GRID)
        psi = reference.psi_of_x(metric, f, h, reference.rates_of(metric, h, f, GRID_MASS))
        return reference.mean(psi, GRID_MASS * at) - reference.mean(psi, GRID_MASS * (1 - at))


def binary_atoms(d):
    """All 2^d rows of zeros and ones."""
    return np.array([[i >> k & 1 for k in reversed(range(d))] for i in range(2**d)], dtype=float)


@dataclass(frozen=True)
class CeterisParibus:
    """Eight binary features; the first is flipped.

    X_2..X_8 independent; e = P(X_1 = 1 | X_-1) and h = P(Y = 1 | X) are logistic with one
    interaction each, both of X_2 X_3, so that main effects are wrong for both. The model has main
    effects only. Right nuisances: the pairs of `right_h` and `right_e`; wrong ones: no pairs.
    """

    decision: bool = False
    right_h = ((1, 2),)
    right_e = ((0, 1),)
    rates = np.array([0.5, 0.5, 0.4, 0.6, 0.3, 0.5, 0.4])

    def e(self, rest):
        eta = 0.8 - 1.5 * rest[:, 0] - 1.5 * rest[:, 1] + 3.2 * rest[:, 0] * rest[:, 1]
        return special.expit(eta + rest[:, 2:] @ np.array([0.5, -0.5, 0.4, 0.3, -0.3]))

    def h(self, X):
        eta = -0.6 + 0.8 * X[:, 0] - 1.5 * X[:, 1] - 1.5 * X[:, 2] + 3.2 * X[:, 1] * X[:, 2]
        return special.expit(eta + X[:, 3:] @ np.array([0.6, -0.5, 0.5, -0.4, 0.3]))

    def model(self, X):
        eta = -1.5 + 0.7 * X[:, 0] + 0.2 * X[:, 1] + 0.2 * X[:, 2]
        eta = eta + X[:, 3:] @ np.array([0.7, -0.4, 0.5, -0.5, 0.4])
        return (eta > -0.65).astype(float) if self.decision else special.expit(eta)

    def masses(self):
        """(atoms, P0)."""
        X = binary_atoms(8)
        rest = np.prod(np.where(X[:, 1:] == 1, self.rates, 1 - self.rates), axis=1)
        e = self.e(X[:, 1:])
        return X, rest * np.where(X[:, 0] == 1, e, 1 - e)

    def rows(self, rng, n):
        """(X, y, f)."""
        rest = (rng.random((n, 7)) < self.rates).astype(float)
        first = (rng.random(n) < self.e(rest)).astype(float)
        X = np.column_stack([first, rest])
        y = (rng.random(n) < self.h(X)).astype(float)
        return X, y, self.model(X)

    def true_flip(self, X):
        """A Flip with the true nuisances."""
        X_a, X_b, e = X.copy(), X.copy(), self.e(X[:, 1:])
        X_a[:, 0], X_b[:, 0] = 0.0, 1.0
        f_a, f_b, h_a, h_b = self.model(X_a), self.model(X_b), self.h(X_a), self.h(X_b)
        return reference.Flip(1 - X[:, 0], X[:, 0], f_a, f_b, h_a, h_b, 1 - e, e)

    def truth(self, metric):
        """gamma by enumeration of the 256 atoms."""
        X, p = self.masses()
        rates = reference.rates_of(metric, self.h(X), self.model(X), p)
        return reference.plug_in(metric, self.true_flip(X), rates, p)[0]


@dataclass(frozen=True)
class Signs(CeterisParibus):
    """Products of signs in h, in e and in the model: of two features where the default regression,
    which has products of pairs, is right, and of three where it is wrong."""

    h_right: bool = True
    e_right: bool = True
    #: Of the logit of e: lower where the flipped feature is rare.
    level: float = 0.2

    @staticmethod
    def signs(rest, right):
        return np.prod(2 * rest[:, : 2 if right else 3] - 1, axis=1)

    def e(self, rest):
        tail = rest[:, 2:] @ np.array([0.5, -0.5, 0.4, 0.3, -0.3])
        return special.expit(self.level + self.signs(rest, self.e_right) + tail)

    def h(self, X):
        tail = X[:, 3:] @ np.array([0.6, -0.5, 0.5, -0.4, 0.3])
        signs = 1.2 * self.signs(X[:, 1:], self.h_right)
        return special.expit(-1.0 + 0.8 * X[:, 0] + signs + tail)

    def model(self, X):
        signs = 0.3 * self.signs(X[:, 1:], True) + 0.6 * self.signs(X[:, 1:], False)
        tail = X[:, 3:] @ np.array([0.7, -0.4, 0.5, -0.5, 0.4])
        eta = -1.2 + 0.7 * X[:, 0] + signs + tail
        return (eta > -0.3).astype(float) if self.decision else special.expit(eta)


def global_null(rng, n, base=0.31, decision=False, n_features=30, shared=0.3):
    """(y, f, X): features of prevalence 0.5 to 0.02 (geometric), independent of (Y, f).

    Among themselves they are cut from normals of correlation `shared`. Every true score is 0.
    """
    y, f, _ = Marginal(base, 0.5, decision).rows(rng, n)
    rates = np.geomspace(0.5, 0.02, n_features)
    normal = np.sqrt(shared) * rng.normal(size=(n, 1))
    normal = normal + np.sqrt(1 - shared) * rng.normal(size=(n, n_features))
    return y, f, (normal > stats.norm.isf(rates)).astype(float)


@dataclass(frozen=True)
class Descent:
    """Binary features with rates p0 and p1, h = expit(a + X coef) in both groups; the model's
    scores are expit(a + X coef_f)."""

    p0: np.ndarray
    p1: np.ndarray
    coef: np.ndarray
    coef_f: np.ndarray
    offset: float = 0.0

    def h(self, X):
        return special.expit(self.offset + X @ self.coef)

    def model(self, X):
        return special.expit(self.offset + X @ self.coef_f)

    def rows(self, rng, n, group):
        """(X, y, f) of a group."""
        p = self.p1 if group else self.p0
        X = (rng.random((n, len(p))) < p).astype(float)
        return X, (rng.random(n) < self.h(X)).astype(float), self.model(X)

    def parts(self, rng, n_group, fit_h=None):
        """(fit, stop, report), each with a third of the rows of each group.

        h of all parts from the fit part: `fit_h(X, y)` returns a function; None: ridge logistic
        of main effects with penalty 1.
        """
        fit_h = fit_h or logistic_main
        thirds, h = [], None
        for _ in range(3):
            X0, y0, f0 = self.rows(rng, n_group // 3, 0)
            _, y1, f1 = self.rows(rng, n_group // 3, 1)
            h = h or fit_h(X0, y0)
            thirds.append(reference.Part(y0, f0, h(X0), y1, f1, X0=X0))
        return tuple(thirds)

    def law(self):
        """(atoms, Discrete): the population."""
        X = binary_atoms(len(self.p0))
        p0, p1 = (np.prod(np.where(X == 1, p, 1 - p), axis=1) for p in (self.p0, self.p1))
        return X, reference.Discrete(p0, p1, self.model(X), self.h(X), self.h(X))

    def true_gap(self, metric, path, fit_h):
        """The population's gap under the factors of a path, which uses the fitted h."""
        X, law = self.law()
        factor = reference.factors(metric, path, law.f, fit_h(X))[-1]
        p0 = law.p0 * factor / (law.p0 @ factor)
        return reference.population_value(
            metric, reference.Discrete(p0, law.p1, law.f, law.h0, law.h1)
        )


def logistic_main(X, y):
    """h by a ridge logistic regression of main effects, penalty 1."""
    basis = reference.default_basis(X, pairs=())
    fit = reference.ridge_logistic(basis.design(X), y, penalty=1.0)
    return lambda rows: fit.predict(basis.design(rows))


def toy_descent():
    """The toy of the paper; 9 % of the target have Y = 0."""
    coef = np.array([5.0, -2.0, -2.0])
    return Descent(np.array([0.9, 0.2, 0.2]), np.array([0.1, 0.5, 0.5]), coef, coef)


def ten_features():
    """Ten binary features whose rates differ a little between the groups."""
    p0 = np.array([0.6, 0.5, 0.4, 0.3, 0.5, 0.6, 0.2, 0.7, 0.4, 0.5])
    p1 = np.array([0.4, 0.4, 0.5, 0.3, 0.4, 0.5, 0.3, 0.6, 0.4, 0.4])
    coef = np.array([1.0, 0.8, -0.8, 0.5, 0.6, 0.5, -0.6, 0.4, 0.3, 0.5])
    return Descent(p0, p1, coef, 0.9 * coef, -1.8)
