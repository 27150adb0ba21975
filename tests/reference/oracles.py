"""Data of the count oracles of the statistics page, section 1. All draws come from `rng`.

Each function returns (y_true, y_pred, group): 0/1 labels, 0/1 decisions, group "a" or "b".
`fixed_labels=True` gives every group exactly round(n * base rate) positives instead of a binomial
number. The published unstudentized all-label figures are 0.116 and 0.37; fixed labels give 0.1163
and 0.3708, binomial labels 0.1194 and 0.3777 (simulation error at most 0.0025).
"""

import numpy as np


def rows_of_group(rng, n, base_rate, true_positive_rate, true_negative_rate, fixed_labels=False):
    """n rows: y ~ B(base rate) or fixed, then yhat ~ B(TPR) if y = 1, B(1 - TNR) if y = 0."""
    if fixed_labels:
        y_true = (np.arange(n) < round(n * base_rate)).astype(int)
    else:
        y_true = (rng.random(n) < base_rate).astype(int)
    selected = np.where(y_true == 1, true_positive_rate, 1 - true_negative_rate)
    y_pred = (rng.random(n) < selected).astype(int)
    return y_true, y_pred


def two_groups(rng, sizes, base_rates, true_positive_rate, true_negative_rate, fixed_labels=False):
    """Groups "a" and "b" with their own size and base rate and the same TPR and TNR."""
    parts = [
        rows_of_group(rng, n, base_rate, true_positive_rate, true_negative_rate, fixed_labels)
        for n, base_rate in zip(sizes, base_rates, strict=False)
    ]
    y_true = np.concatenate([part[0] for part in parts])
    y_pred = np.concatenate([part[1] for part in parts])
    return y_true, y_pred, np.repeat(["a", "b"], sizes)


def section_4_2(rng, scale=1, fixed_labels=False):
    """n = 200 + 200 times `scale`, P(y = 1) = 0.8 and 0.2, TPR = TNR = 0.9: equal FNR."""
    return two_groups(rng, (200 * scale, 200 * scale), (0.8, 0.2), 0.9, 0.9, fixed_labels)


def base_rates_03_50(rng, true_positive_rate=0.9, fixed_labels=False):
    """1,000 rows each, base rates 0.03 and 0.5, equal TPR (0.9) and TNR .9."""
    return two_groups(rng, (1000, 1000), (0.03, 0.5), true_positive_rate, 0.9, fixed_labels)


def equal_law_20_20(rng, base_rate=0.8, true_positive_rate=0.9, true_negative_rate=0.9):
    """20 rows each of one law (group a of section 4.2 twice), so every permutation test is exact.

    The page (0.091 and 0.032) does not name its data or metric. Here the f1 gap, all labels
    permuted, B = 1,000, rejects at 0.093 with strict ">" and no +1 and at 0.032 with (1 + #{>=}) /
    (1 + B).
    """
    return two_groups(rng, (20, 20), (base_rate, base_rate), true_positive_rate, true_negative_rate)
