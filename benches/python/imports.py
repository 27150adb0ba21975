"""Start-up cost of the package: its import, and the first call of each lens.

Each in processes of their own, the best of several; the import over that of NumPy, the first call
over the second one of the same process. With --write the table goes to the pages.
"""

import subprocess
import sys

from report import machine, run

REPEATS = 7

IMPORT = """
import time, numpy
start = time.perf_counter()
import fairaudit_rs
print(time.perf_counter() - start)
"""
FIRST = """
import time, numpy as np, fairaudit_rs as fa
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2))
y, group, score = X[:, 0] > 0, rng.integers(0, 2, 400), rng.random(400)
def call():
    {call}
def timed():
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
first = timed()
print(first - min(timed() for _ in range(5)))
"""
CALLS = {
    "permutation_test": "fa.permutation_test(y, score > 0.5, sensitive_features=group,"
    " metric='tpr')",
    "intervals": "fa.intervals(y, score > 0.5, sensitive_features=group, metric='f1',"
    " method='studentized', n_resamples=99)",
    "projection_test": "fa.projection_test(y, y_score=score, sensitive_features=group)",
    "individual_test": "fa.individual_test(fa.LinearModel([1.0, 0.1]), X, y,"
    " fair_metric=fa.FairMetric.directions([[0.0, 1.0]]), n_steps=10)",
    "influence_audit": "fa.influence_audit(y, score > 0.5, X=X, sensitive_features=group,"
    " target=0)",
    "extreme_test": "fa.extreme_test(y_score=score / 2, counterfactual_score=score / 2 + X[:, 0]**2"
    " / 99, sensitive_features=group, horizon=200)",
    "fit_tail": "fa.fit_tail(X[:, 0]).level(200)",
}


def best(code):
    """Milliseconds that the code prints in seconds, in the best of several processes."""
    times = []
    for _ in range(REPEATS):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        times.append(1e3 * float(done.stdout))
    return min(times)


def rows():
    yield "`import fairaudit_rs`, over `import numpy`", best(IMPORT), 20
    for name, call in CALLS.items():
        yield f"first `{name}`, over the second one", best(FIRST.format(call=call)), 150


def lines():
    yield "| work | ms | goal, at most |"
    yield "|---|---|---|"
    for work, milliseconds, goal in rows():
        missed = ", missed" if milliseconds > goal else ""
        yield f"| {work} | {milliseconds:.3g} | {goal}{missed} |"
    yield from ["", machine()]


if __name__ == "__main__":
    run("imports", lines(), __doc__)
