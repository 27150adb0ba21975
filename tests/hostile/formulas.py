"""Formulas of metrics: words of the language in any order, and sentences with one thing wrong."""

import fairaudit_rs as fa

WORDS = (
    *("tp", "fp", "fn", "tn", "n", "p", "tp", "fn", "+", "-", "*", "/", "(", ")", "sqrt", "abs"),
    *("0", "1", "2", "0.5", "1e308", "1e-320", "1e999", "nan", "inf", ",", "**", "^", "=", " "),
    *("x", "TP", "é", "\0", "\ud800", "--", "1.", ".5", "1e", "log(", "min(", "tp.real", "__"),
)
SENTENCES = ("tp / (tp + fn)", "(tp + tn) / (tp + fp + fn + tn)", "2 * tp / (2 * tp + fp + fn)")


def sentence(r):
    """A formula that is one about every third time."""
    kind = r.random()
    if kind < 0.3:
        return _made(r, 4)
    if kind < 0.6:
        return "".join(r.choice(WORDS) for _ in range(r.randrange(12)))
    if kind < 0.65:
        deep = r.choice((10, 200, 3_000))
        opening, closing = r.choice((("(", ")"), ("-", ""), ("tp+", ""), ("", "/tp"), ("1/(", ")")))
        return opening * deep + "tp" + closing * deep
    letters = list(r.choice(SENTENCES))
    for _ in range(r.choice((1, 1, 2, 5))):
        at = r.randrange(len(letters) + 1)
        letters[at : at + r.choice((0, 1, 1, 3))] = r.choice((*WORDS, ""))
    return "".join(letters)


def _made(r, depth):
    if depth == 0 or r.random() < 0.25:
        return r.choice(("tp", "fp", "fn", "tn", "1", "2", "0", "0.5", "1e308", "1e-320"))
    left, right = _made(r, depth - 1), _made(r, depth - 1)
    return f"({left} {r.choice('+-*/')} {right})"


def make(r):
    """Draw a formula, and what is done with it when it is one."""
    text = sentence(r)
    table = [r.choice((0, 1, 5, 100, 10**9)) for _ in range(4)]

    def run(formula):
        metric = fa.metrics.count_metric("own", formula)
        str(metric)
        repr(metric)
        try:
            return metric.evaluate(*table)
        except TypeError:
            return metric

    def audit(formula):
        y_true, y_pred, group = [0, 1, 1, 0] * 5, [0, 1, 0, 1] * 5, [0, 0, 0, 1, 1] * 4
        metric = fa.metrics.count_metric("own", formula)
        return fa.permutation_test(
            y_true, y_pred, sensitive_features=group, metric=metric, n_resamples=9, rng=1
        )

    return "count_metric", r.choice((run, audit)), {"formula": text}
