"""The audit against what users have, in one run on one machine.

Ten metrics of three attributes with 2, 5 and 3 groups, 10^6 rows from arrays. With --write the
table goes to benches/README.md and docs/performance.md.
"""

import numpy as np

import fairaudit_rs as fa
from baselines import fairlearn_bootstraps
from report import machine, run, seconds, time_table, timed

N = 10**6
OF_DECISIONS = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "negative_predictive_value",
    "accuracy",
    "f1",
)
OF_SCORES = ("auc", "mean_prediction", "brier_score")
#: Bootstrap samples of the baseline that are drawn; 100 are asked for.
FEW = 1


def make_rows():
    rng = np.random.default_rng(3)
    label, noise = rng.random(N) < 0.4, rng.normal(size=N)
    score = 1 / (1 + np.exp(-(1.5 * (label - 0.4) + noise)))
    by = {
        "sex": np.array(["female", "male"])[rng.integers(0, 2, N)],
        "race": np.array(list("abcde"))[rng.choice(5, N, p=[0.6, 0.2, 0.1, 0.06, 0.04])],
        "age": np.array(["18-29", "30-59", "60+"])[rng.choice(3, N, p=[0.3, 0.5, 0.2])],
    }
    return label.astype(int), (score > 0.5).astype(int), score, by


def policy():
    names = (*OF_DECISIONS, *OF_SCORES)
    criteria = tuple(fa.Criterion(metric=name, tolerance=0.05) for name in names)
    return fa.Policy(
        name="ten metrics", criteria=criteria, intersections="skip", lenses=("permutation",)
    )


def benchmarks():
    label, decision, score, by = make_rows()
    asked = {"sensitive_features": by, "policy": policy(), "rng": 1}

    def audit(evidence):
        return fa.audit(label, decision, y_score=score, evidence=evidence, **asked)

    mine = seconds(lambda: audit("none"), 3)
    # The estimate costs as much as a sample.
    each = timed(lambda: fairlearn_bootstraps(label, decision, score, by, FEW)) / (FEW + 1)
    frames = 101 * each
    work = "audit with its verdict, 10^6 rows, 10 metrics x 3 attributes of 2, 5, 3 groups"
    yield work, "fairlearn MetricFrame, 100 bootstrap samples (1, scaled)", frames, mine, 1_000

    def one_by_one():
        for criterion in asked["policy"].criteria:
            given = {"y_pred": decision} if criterion.metric in OF_DECISIONS else {"y_score": score}
            given |= {"metric": criterion.metric, "margin": criterion.tolerance, "rng": 1}
            for column in by.values():
                fa.equivalence_test(label, sensitive_features=column, **given)

    yield work, "our `equivalence_test`, one call a question", timed(one_by_one), mine, None


def lines():
    yield from time_table(benchmarks())
    yield from ["", machine()]


if __name__ == "__main__":
    run("audit", lines(), __doc__)
