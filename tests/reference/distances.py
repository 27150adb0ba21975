"""Slow: distances to a decision boundary from their definition, one row at a time.

d(x) = inf{cost(x, x') : C(x') != C(x)} (Si et al. 2021, equation (6)), by an optimizer over x',
and by trying every combination of the discrete features (equation (4)).
"""

import numpy as np
from scipy import optimize

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def cost(change, norm, covariance=None):
    """The cost of a change of the features."""
    if norm == "mahalanobis":
        return float(np.sqrt(change @ np.linalg.solve(covariance, change)))
    return float(np.linalg.norm(change, ORDERS[norm]))


def slide(coef, margin, norm, free, covariance=None):
    """The least cost of a change of the free features with coef @ change = -margin.

    l1 and linf by linear programming, the others from the conditions of Lagrange.
    """
    if not coef[free].any():
        return np.inf
    if margin == 0:
        return 0.0
    p = len(coef)
    if norm in ("l1", "linf"):
        # Variables: the change, and its size (per feature, or one for all).
        on = np.eye(p) if norm == "l1" else np.ones((p, 1))
        sizes = on.shape[1]
        answer = optimize.linprog(
            np.r_[np.zeros(p), np.ones(sizes)],
            A_ub=np.block([[np.eye(p), -on], [-np.eye(p), -on]]),
            b_ub=np.zeros(2 * p),
            A_eq=np.r_[coef, np.zeros(sizes)][None],
            b_eq=[-margin],
            bounds=[(None, None) if f else (0, 0) for f in free] + [(0, None)] * sizes,
        )
        assert answer.status == 0
        return answer.fun
    inverse = np.eye(p) if norm == "l2" else np.linalg.inv(covariance)
    inside, w = inverse[np.ix_(free, free)], coef[free]
    # Minimize change @ inside @ change: stationary where its gradient is a multiple of w.
    system = np.block([[2 * inside, w[:, None]], [w[None], np.zeros((1, 1))]])
    change = np.linalg.solve(system, np.r_[np.zeros(len(w)), -margin])[:-1]
    return float(np.sqrt(change @ inside @ change))


def linear(
    row, coef, offset, norm, immovable=(), discrete=(), jump_cost=0.0, allowed=(), covariance=None
):
    """The distance of one row: sliding alone, and after every allowed jump."""
    discrete = list(discrete)
    sliding = np.setdiff1d(np.arange(len(coef)), discrete)
    free = np.isin(sliding, immovable, invert=True)
    scale = None if covariance is None else covariance[np.ix_(sliding, sliding)]

    def from_here(margin):
        return slide(coef[sliding], margin, norm, free, scale)

    margin = coef @ row + offset
    best = from_here(margin)
    if not any(np.array_equal(row[discrete], other) for other in allowed):
        return best
    for other in allowed:
        after = row.copy()
        after[discrete] = other
        if np.array_equal(after, row) or np.any((after != row)[list(immovable)]):
            continue
        left = coef @ after + offset
        flipped = (left >= 0) != (margin >= 0)
        best = min(best, jump_cost + (0.0 if flipped else from_here(left)))
    return best
