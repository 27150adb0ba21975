"""Data of the row oracles of the statistics page, section 1. All draws come from `rng`."""

import numpy as np


def error_over_x(rng, power, n=2000):
    """(x, error): x ~ U(1e-5, 1), e ~ N(0, 1), error = e / |x|^power; uncorrelated, dependent."""
    x = rng.uniform(1e-5, 1, n)
    return x, rng.standard_normal(n) / np.abs(x) ** power


def labels_of_group(rng, n, base_rate, fixed_labels):
    """n labels 0/1: exactly round(n * base rate) positives, or each positive with that chance."""
    if fixed_labels:
        return (np.arange(n) < round(n * base_rate)).astype(int)
    return (rng.random(n) < base_rate).astype(int)


def auc_equal(
    rng, sizes=(1500, 300), base_rates=(0.5, 0.06), shift=1.0, spread=1.0, fixed_labels=False
):
    """(y_true, score, group) of groups "a" and "b" with one score law given the label.

    score ~ N(shift y, spread^2 if y = 1, else 1), AUC = Phi(shift / sqrt(1 + spread^2)).

    The page (0.26 and 0.047) does not name its scores. Here, all labels permuted, 8,000 audits and
    B = 500: unstudentized 0.316, DeLong 0.075, for 18 positives of "b" are few. Labels permuted
    within outcomes: 0.055 and 0.051 (4,000 audits, B = 400).
    """
    y_true = np.concatenate(
        [
            labels_of_group(rng, n, base_rate, fixed_labels)
            for n, base_rate in zip(sizes, base_rates, strict=True)
        ]
    )
    scale = np.where(y_true == 1, spread, 1.0)
    score = shift * y_true + scale * rng.standard_normal(len(y_true))
    return y_true, score, np.repeat(["a", "b"], sizes)


def equal_means(rng, sizes=(1000, 50), standard_deviations=(1.0, 5.0)):
    """(row_value, group): N(0, 1) in 1,000 rows of "a", N(0, 25) in 50 rows of "b"."""
    row_value = rng.standard_normal(sum(sizes)) * np.repeat(standard_deviations, sizes)
    return row_value, np.repeat(["a", "b"], sizes)
