"""Slow, plain reference for verdicts: p of a tolerance, Holm, coverage, the six rules.

Written from the statistics page, section 6, not from the library. Pairs are put into order by hand,
likelihoods are searched on grids, a bound is looked for among many tolerances.
"""

import numpy as np

from . import proportions

GRID = 4_001
WORST_FIRST = ("fail", "inconclusive", "not_measurable", "pass", "not_asked")


def restricted(x_1, n_1, x_2, n_2, margin):
    """The most likely (p_1, p_2) with p_1 = p_2 + margin: grids of p_2."""
    low, high = max(0.0, -margin), min(1.0, 1.0 - margin)
    for _ in range(4):
        p_2 = np.linspace(low, high, GRID)
        p_1 = np.clip(p_2 + margin, 0.0, 1.0)
        up = proportions.log_likelihood(x_1, n_1, p_1) + proportions.log_likelihood(x_2, n_2, p_2)
        best = int(np.argmax(up))
        step = (high - low) / (GRID - 1)
        low, high = max(p_2[best] - step, low), min(p_2[best] + step, high)
    return p_1[best], p_2[best]


def by_difference(x_1, n_1, x_2, n_2, margin):
    """(P, P') of p_1 - p_2 = margin: the larger of the score and its skewness correction."""
    p_1, p_2 = restricted(x_1, n_1, x_2, n_2, margin)
    (v_1, m_1), (v_2, m_2) = proportions.moments(n_1, p_1), proportions.moments(n_2, p_2)
    distance = x_1 / n_1 - x_2 / n_2 - margin
    return proportions.both_sides(distance, v_1 + v_2, m_1 - m_2)


def of_tails(at_most, at_least, tol):
    """(p_fail, p_pass), given P(m) and P'(m) of an ordered pair."""
    p_fail = min(1.0, at_most(tol) + at_most(-tol))
    return p_fail, max(at_most(-tol), at_least(tol))


def of_shares(x_1, n_1, x_2, n_2, tol):
    """(p_fail, p_pass) of two proportions and a difference."""
    if x_1 / n_1 < x_2 / n_2:
        x_1, n_1, x_2, n_2 = x_2, n_2, x_1, n_1

    def p(m):
        return by_difference(x_1, n_1, x_2, n_2, m)

    return of_tails(lambda m: p(m)[0], lambda m: p(m)[1], tol)


def of_ratio(x_1, n_1, x_2, n_2, rho):
    """(p_fail, p_pass) of two proportions and a ratio, the lower one first."""
    if x_1 / n_1 > x_2 / n_2:
        x_1, n_1, x_2, n_2 = x_2, n_2, x_1, n_1
    low, high = (proportions.by_ratio(x_1, n_1, x_2, n_2, r) for r in (rho, 1 / rho))
    return min(1.0, low[1] + high[1]), max(low[0], high[1])


def of_logits(theta_1, se_1, theta_2, se_2, tol):
    """(p_fail, p_pass) of two values in [0, 1] with standard errors, by logit-MOVER."""
    if theta_1 < theta_2:
        theta_1, se_1, theta_2, se_2 = theta_2, se_2, theta_1, se_1
    if any(se == 0 or t in (0, 1) for t, se in ((theta_1, se_1), (theta_2, se_2))):
        return 1.0, 1.0

    def limits(theta, se):
        return lambda z: proportions.logit_limits(theta, se, z)

    def at_most(m):
        one, other = limits(theta_1, se_1), limits(theta_2, se_2)
        return proportions.mover_pvalue(theta_1, one, theta_2, other, m)

    return of_tails(at_most, lambda m: 1 - at_most(m), tol)


def of_limits(lower_1, upper_1, lower_2, upper_2, d, tol):
    """(p_fail, p_pass) of melded limits; ``d`` is the gap that is seen."""
    if d < 0:
        lower_1, upper_1, lower_2, upper_2 = lower_2, upper_2, lower_1, upper_1
    n = len(lower_1)

    def at_most(m):
        return (1 + sum(a - b <= m for a, b in zip(lower_1, upper_2, strict=True))) / (1 + n)

    def at_least(m):
        return (1 + sum(a - b >= m for a, b in zip(upper_1, lower_2, strict=True))) / (1 + n)

    return of_tails(at_most, at_least, tol)


def holm(pvalues):
    """The step-down procedure as it is told: the smallest times m, the next times m - 1, ..."""
    adjusted, most = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        most = max(most, (len(pvalues) - rank) * pvalues[i])
        adjusted[i] = min(1.0, most)
    return adjusted


def verdicts(questions, alpha=0.05, min_coverage=0.95):
    """Verdicts of binding questions, and of all: [(p_fail of pairs, p_pass of pairs, coverage)]."""
    family = iter(holm([p for fails, _, _ in questions for p in fails]))
    adjusted = [[next(family) for _ in fails] for fails, _, _ in questions]
    found = []
    for (fails, passes, coverage), of_pairs in zip(questions, adjusted, strict=True):
        if not fails:
            word = "not_measurable"
        elif min(of_pairs) <= alpha:
            word = "fail"
        elif max(passes) <= alpha and coverage >= min_coverage:
            word = "pass"
        else:
            word = "inconclusive"
        found.append(word)
    return found, min(found, key=WORST_FIRST.index)


def shown_gap(p_fail, level, d, steps=2_000):
    """The largest tolerance among many that the data refute; 0 when there is none."""
    refuted = [t for t in np.linspace(0, d, steps) if p_fail(t) <= level]
    return max(refuted, default=0.0)


def possible_gap(p_pass, level, most, steps=2_000):
    """The smallest tolerance among many within which the gap is shown to lie."""
    shown = [t for t in np.linspace(0, most, steps) if p_pass(t) <= level]
    return min(shown, default=most)


def of_fixed_reference(x, n, x_reference, n_reference, rho, better="higher"):
    """(p_fail, p_pass) of a share to that of a fixed reference, in one direction.

    Where high values are better the ratio must be at least rho: Phi(z(rho)) and its complement.
    Where low ones are better it must be at most 1 / rho.
    """
    if better == "lower":
        x, n, x_reference, n_reference = x_reference, n_reference, x, n
    greater, less = proportions.by_ratio(x, n, x_reference, n_reference, rho)
    return less, greater
