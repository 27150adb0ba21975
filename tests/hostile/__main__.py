"""Runs hostile calls in processes of their own: `python -m tests.hostile --calls 1000000 --seed 1`.

Each call must answer, or raise one of our errors (a plain `TypeError` where Python itself refuses
the call); no crash, no hang, no panic, no foreign exception, within a limit of memory. A call is
known by its seed and number: `--one SEED:NUMBER` makes it again, in this process. What was done is
kept in `ledger.json`, where a stopped run goes on, on another day and machine, too.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from . import corpus
from .ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
BATCH = 2_500
#: Seconds without a sign of life after which a call counts as hung; one takes some milliseconds.
PATIENCE = 60
#: What the status file holds while a child imports, and seconds that this may take.
STARTING, START = b"starting", 300
#: One thread for each child: they run side by side.
QUIET = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Report:
    """The failures of a run: the count of each kind, and its first call."""

    calls: int = 0
    found: dict = field(default_factory=dict)

    def add(self, seed, findings, calls):
        self.calls += calls
        for finding in findings:
            entry = self.found.setdefault(
                finding["what"], {"n": 0, "first": f"{seed}:{finding['number']}"}
            )
            entry["n"] += 1
            entry.setdefault("trace", finding.get("trace", ""))

    def unknown(self):
        """Failures that nobody has said to be known."""
        return {what: value for what, value in self.found.items() if known(what) is None}

    def idle(self):
        """Patterns of known failures that nothing fits any more."""
        return [name for name in corpus.KNOWN if not any(fnmatchcase(w, name) for w in self.found)]

    def __str__(self):
        lines = [f"{self.calls:,} calls, {len(self.unknown())} failures, {len(self.found)} in all"]
        for what, value in sorted(self.found.items(), key=lambda entry: -entry[1]["n"]):
            reason = known(what)
            lines.append(f"{'known' if reason else 'FAIL'} {value['n']}x {what}")
            lines.append(f"     python -m tests.hostile --one {value['first']}   {value['trace']}")
        return "\n".join(lines)


def known(what):
    """Why a failure is known; None where it is not."""
    return next((why for name, why in corpus.KNOWN.items() if fnmatchcase(what, name)), None)


def run_batch(seed, first, count):
    """The findings of some calls; others go on after one that ends its process or hangs."""
    findings, end = [], first + count
    while first < end:
        done, at, ending = _child(seed, first, end - first)
        findings += done
        if ending is None:
            break
        findings.append({"number": at, "what": ending[0], "trace": ending[1]})
        first = at + 1
    return findings


def _child(seed, first, count):
    """Findings of a process; with which call and how it ended, unless it came to its end."""
    with tempfile.TemporaryDirectory() as folder:
        status, errors = Path(folder) / "status", Path(folder) / "stderr"
        status.write_bytes(STARTING)
        command = [sys.executable, "-m", "tests.hostile.child", "--seed", str(seed)]
        command += ["--first", str(first), "--count", str(count), "--status", str(status)]
        with errors.open("wb") as stderr:
            child = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=ROOT,
                env={**os.environ, **QUIET},
            )
            hung = threading.Event()
            threading.Thread(target=_watch, args=(child, status, hung), daemon=True).start()
            lines = child.stdout.read().decode().splitlines()
            code = child.wait()
            child.stdout.close()
        told = [json.loads(line) for line in lines]
        at = status.read_text()
        if code == 0 and at.startswith("done"):
            return told, None, None
        last = [line.strip() for line in errors.read_text(errors="replace").splitlines() if line]
        frames = [line for line in last if "fairaudit_rs" in line or "hostile" in line]
        what = "hangs" if hung.is_set() else f"ends the process ({code})"
        at = int(at) if at.strip().isdigit() else first
        named = next((line for line in last if "panicked" in line or "memory alloc" in line), "")
        if seed == "corpus":
            what = f"corpus {corpus.CALLS[at][:60]}: {what}"
        where = frames[0].split("/")[-1] if frames else ""
        return told, at, (f"{what}: {named[:90]} {where}", " ".join(last)[-300:])


def _watch(child, status, hung):
    """End a process that shows no sign of life."""
    seen, since = None, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        try:
            now = status.read_bytes()
        except OSError:
            return
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > (START if now == STARTING else PATIENCE):
            hung.set()
            # It says where it is; then it may be too far gone even for that.
            child.send_signal(signal.SIGABRT)
            time.sleep(2)
            child.kill()
            return


def run_all(calls, seed, jobs=None, *, first=0, ledger=None, again=False, tell=None):
    """Run the corpus, then so many calls; batches that the ledger has as done are not run again."""
    report = Report()
    batches = [("corpus", 0, len(corpus.CALLS))]
    batches += [
        (seed, at, min(BATCH, first + calls - at)) for at in range(first, first + calls, BATCH)
    ]
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        waiting = []
        for batch in batches:
            done = ledger is not None and not again and ledger.has(*batch)
            waiting.append((batch, None if done else pool.submit(run_batch, *batch)))
        try:
            for row, future in waiting:
                findings = [] if future is None else future.result()
                report.add(row[0], findings, row[2])
                if ledger is not None and future is not None and row[0] != "corpus":
                    ledger.add(*row, failures_of(findings))
                if tell is not None and future is not None:
                    tell(f"{report.calls:,} calls, {len(report.unknown())} failures")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return report


def failures_of(findings):
    """Return unknown failures, each with its first call."""
    found = {}
    for finding in findings:
        if known(finding["what"]) is None:
            found.setdefault(finding["what"], finding["number"])
    return found


def show_one(which):
    """Make a call again, with all that it says."""
    from . import child

    seed, _, number = which.rpartition(":")
    if seed == "corpus":
        print(corpus.CALLS[int(number)])
        print(child.run_corpus(int(number)))
        return
    name, function, given, r = child.draw(seed, int(number))
    print(name, function, *(f"\n  {key} = {value!r:.800}" for key, value in given.items()))
    try:
        result = function(**given)
        print(result)
        child.public.look_at(result, r)
    except BaseException:
        traceback.print_exc()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--one", metavar="SEED:NUMBER")
    parser.add_argument("--again", action="store_true", help="run what was done, too")
    given = parser.parse_args()
    if given.one:
        return show_one(given.one)
    ledger = Ledger()
    report = run_all(
        given.calls,
        given.seed,
        given.jobs,
        first=given.first,
        ledger=ledger,
        again=given.again,
        tell=print,
    )
    print(f"{ledger.n_done(given.seed):,} calls of seed {given.seed} are done")
    print(report)
    for value in report.idle():
        print(f"no longer known: {value}")
    return int(bool(report.unknown()))


if __name__ == "__main__":
    sys.exit(main())
