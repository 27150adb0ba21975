"""A run of hostile calls, and that the run finds what it is there for."""

import json
import os

import pytest

import fairaudit_rs as fa

from . import __main__ as hostile
from . import child, corpus

#: Any number by `make fuzz`.
CALLS = 20_000


@pytest.fixture(scope="module")
def report():
    return hostile.run_all(CALLS, "test")


def test_every_call_answers_or_raises_one_of_our_errors(report):
    assert report.calls == CALLS + len(corpus.CALLS)
    assert report.unknown() == {}, str(report)


def test_a_call_is_known_by_its_number():
    for number in range(30):
        first, again = (child.draw("x", number) for _ in range(2))
        assert first[0] == again[0]
        assert list(first[2]) == list(again[2])
        assert first[3].random() == again[3].random()


PLANTED = {
    "foreign": "[][0]",
    "panic": "__import__('fairaudit_rs')._native.CountMetric.ranks(3) and _panic()",
    "crash": "__import__('os').kill(__import__('os').getpid(), 11)",
    "exit": "__import__('os')._exit(1)",
    "hang": "__import__('time').sleep(1000)",
    "memory": "len(bytearray(1 << 40))",
    "fine": "fa.adjust_pvalues([0.1])",
    "refused": "fa.adjust_pvalues([2.0])",
    "python's own": "fa.adjust_pvalues(unknown=1)",
}


def test_what_is_planted_is_found(tmp_path, monkeypatch):
    """A module that stands for the corpus in the children, with one call of every kind."""
    calls = json.dumps(list(PLANTED.values()))
    (tmp_path / "sitecustomize.py").write_text(
        f"import tests.hostile.corpus as corpus\ncorpus.CALLS = {calls}\n"
    )
    monkeypatch.setattr(corpus, "CALLS", list(PLANTED.values()))
    monkeypatch.setattr(hostile, "PATIENCE", 10)
    path = [str(tmp_path), str(hostile.ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    findings = hostile.run_batch("corpus", 0, len(PLANTED))
    told = {list(PLANTED)[one["number"]]: one["what"] for one in findings}
    assert set(told) == {"foreign", "panic", "crash", "exit", "hang", "memory"}
    assert "IndexError" in told["foreign"]
    assert "ends the process (-11)" in told["crash"]
    assert "ends the process (1)" in told["exit"]
    assert "hangs" in told["hang"]
    assert "MemoryError" in told["memory"]


def test_errors_that_are_meant():
    meant = (fa.errors.ArgumentError("x"), TypeError("f() got an unexpected keyword argument 'x'"))
    for error in meant:
        assert child.judged("x", error) is None
    for error in (fa.errors.InternalError("x"), TypeError("x"), ValueError("x"), SystemExit(1)):
        assert type(error).__name__ in child.judged("x", error)["what"]
    assert child.judged("_native.x", ValueError("x")) is None
    assert child.judged("_native.x", fa.errors.InternalError("x")) is not None


def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    ran = []

    def batch(seed, first, count):
        ran.append((seed, first, count))
        return [{"number": first, "what": "x", "trace": ""}] if seed != "corpus" else []

    monkeypatch.setattr(hostile, "run_batch", batch)
    log = tmp_path / "log.jsonl"
    first = hostile.run_all(2 * hostile.BATCH, "s", jobs=1, log=log)
    ran.clear()
    again = hostile.run_all(3 * hostile.BATCH, "s", jobs=1, log=log)
    assert [one for one in ran if one[0] == "s"] == [("s", 2 * hostile.BATCH, hostile.BATCH)]
    assert (first.found["x"]["n"], again.found["x"]["n"]) == (2, 3)


def test_what_is_known_is_told_apart(monkeypatch):
    monkeypatch.setattr(corpus, "KNOWN", {"lens: ValueError*": "soon", "idle*": "never"})
    found = hostile.Report()
    found.add("s", [{"number": 3, "what": "lens: ValueError at x"}, {"number": 4, "what": "y"}], 9)
    assert list(found.unknown()) == ["y"]
    assert found.idle() == ["idle*"]
    assert "9 calls, 1 failures, 2 in all" in str(found)
    assert "--one s:3" in str(found)
