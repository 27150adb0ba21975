"""A run of hostile calls, and that the run finds what it is there for."""

import json
import os
import random
import types

import pytest

import fairaudit_rs as fa
from fairaudit_rs.results.result import Serializable

from . import __main__ as hostile
from . import child, corpus, public
from .ledger import Ledger, joined

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


#: What no call draws, and why.
NOT_CALLED = {
    fa.TorchModel: "torch: seconds and gigabytes of addresses in each child",
    fa.models.Distances: "made by score_distance and by models",
    fa.models.Model: "a protocol",
    fa.metrics.Metric: "made by the functions beside it",
    fa.metrics.names: "takes nothing",
    fa.metrics.table: "takes nothing",
    fa.metrics.register: "would change what later calls are; the corpus has it",
}


def test_everything_public_is_drawn():
    """Functions and classes; results, which functions make, are read from dicts (`from_dict`)."""
    places = (fa, fa.metrics, fa.models, fa.datasets)
    every = {getattr(place, name) for place in places for name in place.__all__}
    every = {value for value in every if callable(value)}
    results = {
        serializable
        for serializable in every
        if isinstance(serializable, type) and issubclass(serializable, Serializable)
    }
    drawn = set()
    for name, maker in public.MAKERS.items():
        for number in range(40):
            r = random.Random(f"{name}:{number}")
            try:
                function = maker(r, public.Rows(r))[0]
            except fa.errors.FairAuditError:
                continue
            owner = getattr(function, "__self__", None)
            # Of methods of a class the class, which makes its objects.
            drawn.add(owner if isinstance(owner, type) else function)
    drawn |= {fa.metrics.count_metric}  # by `formulas`
    assert every - results - drawn == set(NOT_CALLED)
    assert fa.from_dict in drawn


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
    told = {list(PLANTED)[finding["number"]]: finding["what"] for finding in findings}
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


@pytest.fixture
def ran(monkeypatch):
    """The batches that were run; those of `failing` fail."""
    found = types.SimpleNamespace(batches=[], failing={})

    def batch(seed, first, count):
        if seed != "corpus":
            found.batches.append((seed, first, count))
        what = found.failing.get(first)
        return [{"number": first + 7, "what": what, "trace": ""}] if what else []

    monkeypatch.setattr(hostile, "run_batch", batch)
    return found


def test_a_stopped_run_goes_on(ran, tmp_path):
    path, size = tmp_path / "ledger.json", hostile.BATCH

    def run(calls, **options):
        ran.batches.clear()
        return hostile.run_all(calls, "s", jobs=1, ledger=Ledger(path), **options)

    run(2 * size)
    report = run(3 * size)
    assert ran.batches == [("s", 2 * size, size)]
    assert report.calls == 3 * size + len(corpus.CALLS)
    run(size, first=4 * size)
    assert ran.batches == [("s", 4 * size, size)]
    assert Ledger(path).of("s")["done"] == [[0, 3 * size], [4 * size, 5 * size]]
    assert Ledger(path).n_done("s") == 4 * size
    run(5 * size)
    assert ran.batches == [("s", 3 * size, size)]
    assert Ledger(path).of("s")["done"] == [[0, 5 * size]]
    run(size, again=True)
    assert ran.batches == [("s", 0, size)]
    assert Ledger(path).n_done("other") == 0


def test_a_batch_that_fails_is_run_again_until_it_is_mended(ran, tmp_path):
    path, size = tmp_path / "ledger.json", hostile.BATCH
    ran.failing = {size: "x"}
    for _ in range(2):
        ran.batches.clear()
        report = hostile.run_all(3 * size, "s", jobs=1, ledger=Ledger(path))
        assert report.found["x"]["first"] == f"s:{size + 7}"
        assert Ledger(path).of("s") == {
            "done": [[0, size], [2 * size, 3 * size]],
            "failing": {"x": size + 7},
            "mended": {},
        }
    assert ran.batches == [("s", size, size)]
    ran.failing = {}
    hostile.run_all(3 * size, "s", jobs=1, ledger=Ledger(path))
    mended = {"done": [[0, 3 * size]], "failing": {}, "mended": {"x": size + 7}}
    assert Ledger(path).of("s") == mended


def test_the_ledger_of_the_repository_can_be_read():
    entry = Ledger().of("1")
    assert entry["done"][0][0] == 0
    assert entry["done"] == joined(entry["done"])


def test_what_is_known_is_told_apart(monkeypatch):
    monkeypatch.setattr(corpus, "KNOWN", {"lens: ValueError*": "soon", "idle*": "never"})
    found = hostile.Report()
    found.add("s", [{"number": 3, "what": "lens: ValueError at x"}, {"number": 4, "what": "y"}], 9)
    assert list(found.unknown()) == ["y"]
    assert found.idle() == ["idle*"]
    assert "9 calls, 1 failures, 2 in all" in str(found)
    assert "--one s:3" in str(found)
