"""Ctrl-C during long calls of other libraries."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.individual import sensitive
from fairaudit_rs.interrupts import interruptible


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
    assert interruptible(lambda: 3) == 3
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        interruptible(lambda: np.linalg.inv(np.zeros((2, 2))))
    found = []
    other = threading.Thread(target=lambda: found.append(interruptible(lambda: 4)))
    other.start()
    other.join()
    assert found == [4]


def test_ctrl_c_is_heard_within_a_call(deaf):
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interruptible(deaf)
    # The call goes on for two minutes.
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(("name", "wide"), [("lstsq", False), ("qr", True)])
def test_ctrl_c_during_the_regressions_of_a_subspace(name, wide, deaf, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    if wide:
        X[:, 2] = X[:, 0] + X[:, 1]
    monkeypatch.setattr(sensitive.np.linalg, name, deaf)
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
