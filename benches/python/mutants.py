"""Do the tests notice when the core is wrong? `make mutants` changes it and looks.

cargo-mutants says what could be changed; a sample of that, drawn by a seed, is built into a copy of
the tree (`mutants_tree`) and tried one by one, until a test fails: all Rust tests of the core,
those of the mutant's module first; then the fast Python tests of the lenses that use it, files
that name it first, and the frozen outputs. A mutant is caught when a test fails or does not come
to an end, and this test alone passes without the mutant. What was tried is kept in
`mutants.jsonl`, where a stopped run goes on; a mutant whose lines have changed since is tried
again, one that lived with `--again`. `--write` puts the figure and those that live into
`docs/atlas/tests.md`; a mutant that no test can notice is named in `EQUIVALENT`, with the reason.
"""

import argparse
import functools
import hashlib
import json
import os
import queue
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import mutants_tree as tree
from report import write_section

ROOT, CORE = tree.ROOT, tree.CORE
RECORD = Path(__file__).with_suffix(".jsonl")
TOOLS = ROOT / "target" / "tools" / "bin"
LENSES = ("permutation", "projection", "individual", "influence", "extremes")
#: Seconds, of computing and of waiting, after which a test counts as hanging: none takes half.
BUSY, PATIENCE = 60, 900
#: Bytes that a process may take: a mutant that takes more fails before the machine does.
MEMORY = 16 << 30
DATA = os.environ.get("FAIRAUDIT_DATA") or str(ROOT.parent / "shared" / "data")
SURROUNDINGS = {
    "PYTHONPATH": str(tree.TREE / "python"),
    "PYTHONUNBUFFERED": "1",
    "FAIRAUDIT_DATA": DATA,
}
PYTEST = [sys.executable, "-m", "pytest", "-x", "-v", "-p", "no:cacheprovider"]
PYTEST += ["-m", "not calibration"]
#: Tests that fail without a mutant, on this machine.
BROKEN: list[str] = []
#: How Rust's tests and pytest say that a test failed.
FAILED = re.compile(r"test (.+?)(?: - should panic)? \.\.\. FAILED|(\S+::.+?) (?:FAILED|ERROR) ")
HANGS = "does not come to an end"
ENDED = "ended"
HALF, LIVES, CAUGHT = "not noticed by Rust", "lives", "caught"
#: What does not compile; what compiles, but not behind a switch (`impl Trait` of two types).
UNVIABLE, LEFT_OUT = "unviable", "left out"
#: A mutant and why nothing can tell it from the core, by what `name` gives.
EQUIVALENT = {
    "metrics/auc/clusters.rs: replace > with >= in Some<'_, M>::add_run": (
        "adds to the ranks of clusters that were not drawn, which nobody reads"
    ),
    "influence/nuisance.rs: replace / with % in cross_fit": (
        "starts the fits of folds with other second derivatives, which are taken anew where they "
        "lead too slowly: all fits end where the gradient vanishes, to 1e-11"
    ),
}


def name(mutant):
    """Return the change and its place, without the line, which moves."""
    text = mutant["name"].split(": ", 1)[1]
    return f"{mutant['file'].removeprefix(CORE)}: {text}"


def lines(mutant):
    """The lines that are changed and those around them, without their numbers."""
    return mutant["diff"].split("@@\n", 1)[-1]


def key(mutant):
    """Return the key of a mutant, which changes with its lines."""
    return name(mutant), hashlib.sha256(lines(mutant).encode()).hexdigest()[:16]


def sample(count, seed):
    """Draw mutants of the core; how many there are."""
    command = [TOOLS / "cargo-mutants", "mutants", "--list", "--json", "--diff"]
    command += ["--package", "fairaudit-core"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    everything = json.loads(listed)
    # Each has its own luck, so that the sample stays what it is when other lines change.
    luck = {
        id(value): random.Random(f"{seed}:{name(value)}:{lines(value)}").random()
        for value in everything
    }
    return sorted(everything, key=lambda entry: luck[id(entry)])[:count], len(everything)


def read_record():
    if not RECORD.exists():
        return {}
    entries = map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    return {(entry["name"], entry["lines"]): entry for entry in entries}


def write_record(record):
    text = "".join(json.dumps(record[value]) + "\n" for value in sorted(record))
    draft = RECORD.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(RECORD)


def limit():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def computed(process):
    """Seconds that a process and its children that have ended computed, on all cores."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def next_line(heard, process):
    """Return the next line of a process, "" at its end; `None` if it hangs."""
    busy, since = computed(process), time.monotonic()
    while computed(process) - busy < BUSY and time.monotonic() - since < PATIENCE:
        try:
            return heard.get(timeout=5)
        except queue.Empty:
            pass
    return None


def listen(process, heard):
    with process.stdout:
        for line in process.stdout:
            heard.put(line)
    heard.put("")


def first_failure(command, number=None):
    """The first test that fails when a mutant is switched on; `None` when all pass."""
    environment = {**os.environ, **tree.BUILDING, **SURROUNDINGS}
    if number is not None:
        environment["MUTANT"] = str(number)
    binary = command[0].startswith(str(tree.BUILD))
    process = subprocess.Popen(
        command,
        cwd=tree.TREE / "rust" / "fairaudit-core" if binary else tree.TREE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=limit,
    )
    heard = queue.Queue()
    listener = threading.Thread(target=listen, args=(process, heard), daemon=True)
    listener.start()
    try:
        while line := next_line(heard, process):
            if found := FAILED.match(line):
                return found[1] or found[2]
        if line is None:
            return HANGS
        code = process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # A child in a session of its own may hold the pipe.
        listener.join(timeout=10)
    if -code in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        raise SystemExit(f"{command[0]} was stopped from outside")
    return None if code == 0 else ENDED


@functools.cache
def passes(command, test):
    """Return whether the test that failed passes without a mutant, alone where it has a name."""
    if test in (HANGS, ENDED) or command[0] == "cargo":
        return first_failure(command) is None
    if command[0] == sys.executable:
        return first_failure([*PYTEST, test]) is None
    return first_failure([command[0], "--exact", test]) is None


def rust_tests(mutant, binaries):
    """All tests of the core, in the order in which they are likely to tell."""
    module = "::".join(mutant["file"].removeprefix(CORE).removesuffix(".rs").split("/")[:2]) + "::"
    module = module.removesuffix("mod::")
    yield (binaries["value_stability"],)
    yield (binaries["lib"], module)
    yield (binaries["properties"],)
    yield (binaries["lib"], "--skip", module)
    yield ("cargo", "test", "--locked", "--package", "fairaudit-core", "--doc")


def python_tests(mutant):
    """The frozen outputs, and the fast tests of the lenses that use what is changed."""
    place = mutant["file"].removeprefix(CORE).removesuffix(".rs").split("/")
    word = place[-2 if place[-1] == "mod" else -1]

    def tells(path):
        return re.search(rf"\b{word}\b", path.read_text(encoding="utf-8")) is not None

    if place[0] in LENSES:
        rooms = [place[0]]
    else:
        code = ROOT / CORE
        users = [lens for lens in LENSES if any(map(tells, (code / lens).rglob("*.rs")))]
        rooms = [*(users or LENSES[:1]), "data", "metrics"]
    files = [file for room in rooms for file in sorted((ROOT / "tests" / room).glob("test_*.py"))]
    named = [file for file in files if word in file.stem]
    likely = [*named, *(file for file in files if tells(file) and file not in named)]
    others = [file for file in files if file not in likely]
    for some in (likely, [ROOT / "tests" / "test_golden.py"], others):
        if some:
            yield (*PYTEST, *(str(file.relative_to(ROOT)) for file in some))


def left_out(command):
    """How a command leaves out the tests that fail without a mutant."""
    if command[0] == "cargo":
        return []
    word = "--deselect" if command[0] == sys.executable else "--skip"
    return [part for test in BROKEN for part in (word, test)]


def noticed(commands, number, otherwise):
    """Return the outcome of a mutant; the test that notices it passes without it."""
    for command in commands:
        failed = first_failure([*command, *left_out(command)], number)
        while failed and not passes(command, failed):
            if failed in (HANGS, ENDED, *BROKEN):
                raise SystemExit(f"{' '.join(command)} fails without a mutant")
            BROKEN.append(failed)
            print(f"left out, as it fails without a mutant: {failed}", flush=True)
            failed = first_failure([*command, *left_out(command)], number)
        if failed:
            suite = "pytest" if command[0] == sys.executable else "cargo test"
            return {"outcome": CAUGHT, "by": f"{suite}: {failed}"}
    return {"outcome": otherwise, "by": ""}


def attempts(mutants, wanted, half):
    """Try mutants, of all that are drawn; `half` are those that the Rust tests did not notice."""
    together, binaries = tree.build_together(mutants)
    for number in sorted((wanted & together) - half):
        found = noticed(rust_tests(mutants[number], binaries), number, HALF)
        if found["outcome"] == HALF:
            half = half | {number}
        yield number, found
    if half:
        tree.build_module()
    for number in sorted(half):
        yield number, noticed(python_tests(mutants[number]), number, LIVES)
    for number in sorted(wanted - together):
        error = tree.error_alone(mutants[number])
        yield number, {"outcome": UNVIABLE if error else LEFT_OUT, "by": error}


def report(tried, drawn, population, seed):
    """The figure, and those that live."""
    lives = [value for value in tried if value["outcome"] == LIVES]
    same = [live for live in lives if live["name"] in EQUIVALENT]
    caught = [value["by"] for value in tried if value["outcome"] == CAUGHT]
    left_out = sum(value["outcome"] == LEFT_OUT for value in tried)
    by_rust = sum(value.startswith("cargo test") for value in caught)
    by_golden = sum(value.startswith("pytest: tests/test_golden.py") for value in caught)
    of = len(caught) + len(lives) - len(same)
    share = 100 * len(caught) / max(of, 1)
    unviable = len(tried) - len(caught) - len(lives) - left_out
    yield (
        f"{len(tried)} changes of {population:,} were tried ({drawn} drawn with seed {seed}); "
        f"{unviable} do not compile, {len(same)} make no difference that a test could see"
        + (f", {left_out} compile only without a switch and were left out" if left_out else "")
        + f". Of the other {of}, {len(caught)} are caught ({share:.0f} %): {by_rust} by the Rust "
        f"tests, then {len(caught) - by_rust - by_golden} by the fast Python tests and {by_golden} "
        "by the frozen outputs."
    )
    yield ""
    for live in lives:
        yield f"- `{live['name']}`: {EQUIVALENT.get(live['name'], 'lives')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="try those that lived once more")
    parser.add_argument("--known", action="store_true", help="report what was tried, try no more")
    parser.add_argument("--write", action="store_true", help="put the figure into the docs")
    given = parser.parse_args()
    drawn, population = sample(given.sample, given.seed)
    mutants = dict(enumerate(drawn, 1))
    record = read_record()
    known = {
        number: record.get(key(mutant), {}).get("outcome") for number, mutant in mutants.items()
    }
    half = {number for number, of in known.items() if of == HALF}
    wanted = half | {number for number, of in known.items() if of is None}
    if given.again:
        wanted |= {number for number, of in known.items() if of == LIVES}
    # What is known not to compile would only be taken out of the build again.
    apart = {number for number, of in known.items() if of in (UNVIABLE, LEFT_OUT)}
    together = {number: mutant for number, mutant in mutants.items() if number not in apart}
    untried = [] if given.known or not wanted else attempts(together, wanted, half)
    for number, found in untried:
        named, hashed = key(mutants[number])
        record[named, hashed] = {"name": named, "lines": hashed, **found}
        write_record(record)
        print(f"{number}/{given.sample} {found['outcome']}: {named} {found['by']}", flush=True)
    found = [record[key(value)] for value in drawn if key(value) in record]
    tried = [value for value in found if value["outcome"] != HALF]
    told = list(report(tried, len(drawn), population, given.seed))
    print("\n".join(told))
    if given.write:
        write_section(ROOT / "docs" / "atlas" / "tests.md", "mutants", told)


if __name__ == "__main__":
    main()
