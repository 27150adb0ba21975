"""Ctrl-C during long calls of other libraries."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.individual import sensitive_directions
from fairaudit_rs.interrupts import run_interruptibly


@pytest.fixture
def deaf():
    """A call that looks for no signal, and sends one as soon as it has begun."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    free = threading.Event()

    def call(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        free.wait(120)

    yield call
    free.set()
    signal.signal(signal.SIGINT, before)


def test_answers_and_errors():
    assert run_interruptibly(lambda: 3) == 3
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run_interruptibly(lambda: np.linalg.inv(np.zeros((2, 2))))
    found = []
    other = threading.Thread(target=lambda: found.append(run_interruptibly(lambda: 4)))
    other.start()
    other.join()
    assert found == [4]


def test_ctrl_c_is_heard_within_a_call(deaf):
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(deaf)
    # The call goes on for two minutes.
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(("name", "wide"), [("lstsq", False), ("qr", True)])
def test_ctrl_c_during_the_regressions_of_a_subspace(name, wide, deaf, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    if wide:
        X[:, 2] = X[:, 0] + X[:, 1]
    monkeypatch.setattr(sensitive_directions.np.linalg, name, deaf)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fa.FairMetric.subspace(X, rng.normal(size=50))
    assert time.monotonic() - start < 60


def test_linear_algebra_lets_others_run():
    """In a thread of its own: the one that waits must get its turn."""
    turns = []
    done = threading.Event()

    def count():
        while not done.is_set():
            turns.append(1)
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    matrix = np.random.default_rng(0).normal(size=(200_000, 60))
    for _ in range(20):
        before = len(turns)
        np.linalg.qr(matrix, mode="r")
        if len(turns) - before > 3:
            break
    done.set()
    counter.join()
    assert len(turns) - before > 3


def test_ctrl_c_while_scores_of_like_size_are_ordered():
    """Their first halves are equal: all of them are ordered by the second, which takes seconds."""
    rng = np.random.default_rng(0)
    n = 4_000_000
    score, label = 0.5 + 1e-9 * rng.random(n), rng.random(n) < 0.4
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun, sent = time.process_time(), []

    def interrupt():
        # Into the ordering: the processor's time tells the moment on every machine.
        while time.process_time() - begun < 1.0:
            time.sleep(0.002)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fa.permutation_test(
                label, y_score=score, sensitive_features=np.arange(n) % 2, metric="auc",
                n_resamples=9_999, n_threads=1, rng=1,
            )  # fmt: skip
        heard = time.process_time()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert heard - sent[0] < 0.5
