"""How soon Ctrl-C is heard while 2 x 10^7 rows are prepared: seconds of the processor's time.

    python benches/python/interrupts.py [--rows 2e7] [--looks 5] [name ...]

A signal is sent at several moments of a call; what counts is the processor's time of the process
from then to the `KeyboardInterrupt`, which does not depend on what else the machine does. One
thread.
"""

import argparse
import os
import signal
import threading
import time

import numpy as np

import fairaudit_rs as fa


def calls(n):
    """By name, functions that make a call without arguments."""
    rng = np.random.default_rng(0)
    y_true, y_pred = (rng.random(n) < 0.4).astype(np.int8), rng.random(n) < 0.5
    score, group = rng.random(n), (rng.random(n) < 0.3).astype(np.int8)
    few = {"n_resamples": 9, "n_threads": 1, "rng": 1}

    def test(metric="tpr", **given):
        rows = {"y_true": y_true, "sensitive_features": group}
        rows |= {"y_score": score} if metric in ("auc", "spearman") else {"y_pred": y_pred}
        return lambda: fa.permutation_test(**{**rows, **given}, metric=metric, **few)

    def of_frame(kind, metric):
        import polars as pl

        frame = pl.DataFrame({"y": y_true, "p": y_pred, "s": score, "g": text()})
        data = frame.to_pandas() if kind == "pandas" else frame
        role = {"y_score": "s"} if metric == "auc" else {"y_pred": "p"}
        return lambda: fa.permutation_test(
            "y", **role, data=data, sensitive_features="g", metric=metric, **few
        )

    def text(kind="U5"):
        return np.array(["man", "woman"], dtype=kind)[group]

    def in_fours():
        return {"clusters": np.arange(n) // 4, "sensitive_features": np.repeat(group[::4], 4)[:n]}

    bands = {"a": (score * 10).round(), "b": y_pred}
    two = {"g": group, "h": score > 0.3}
    return {
        "rates": lambda: test(),
        "labels as text": lambda: test(sensitive_features=text()),
        "labels as objects": lambda: test(sensitive_features=text(object)),
        "strata": lambda: test(strata=rng.integers(0, 500, n)),
        "clusters": lambda: test(**in_fours()),
        "weights": lambda: test(sample_weight=rng.random(n)),
        "AUC": lambda: test("auc"),
        "Spearman": lambda: test("spearman", sensitive_features=rng.random(n)),
        "polars": lambda: of_frame("polars", "tpr"),
        "pandas": lambda: of_frame("pandas", "tpr"),
        "AUC of polars": lambda: of_frame("polars", "auc"),
        "projection": lambda: (
            lambda: fa.projection_test(y_true, y_score=score, sensitive_features=group, n_threads=1)
        ),
        "influence": lambda: (
            lambda: fa.influence_audit(
                y_true,
                y_pred,
                X=bands,
                sensitive_features=group,
                target=0,
                n_draws=9,
                metric="selection_rate",
                n_threads=1,
            )
        ),
        "audit": lambda: (
            lambda: fa.audit(y_true, y_pred, y_score=score, sensitive_features=two, **few)
        ),
    }


def heard_after(run, moment):
    """Seconds from a signal, so many seconds into a call, to its end; None if it ended before."""
    sent, ended = [], threading.Event()
    begun = time.process_time()

    def interrupt():
        while not ended.is_set():
            if time.process_time() - begun >= moment:
                sent.append(time.process_time())
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.002)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        run()
        ended.set()
        thread.join()
    except KeyboardInterrupt:
        found = time.process_time()
        ended.set()
        thread.join()
        return found - sent[0]
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    made = calls(int(given.rows))
    print("| call | all of it, s | longest until Ctrl-C is heard, s |\n|---|---|---|")
    for name in given.names or made:
        run = made[name]()
        begun = time.process_time()
        run()
        whole = time.process_time() - begun
        moments = [whole * (i + 0.5) / given.looks for i in range(given.looks)]
        heard = [found for moment in moments if (found := heard_after(run, moment)) is not None]
        print(f"| {name} | {whole:.1f} | {max(heard, default=0):.2f} |", flush=True)


if __name__ == "__main__":
    main()
