"""Do the tests notice when the core is wrong? `make mutants` changes it and looks.

cargo-mutants says what could be changed; a sample of that, drawn by a seed, is tried in a copy of
the tree: the Rust tests first, then, with a build that is little optimised, the frozen outputs and
the fast Python tests of the lens. A mutant is caught when a test fails or does not come to an end.
What was tried is kept in `target/mutants/SEED.jsonl`, where a stopped run goes on; a mutant whose
lines have changed since is tried again. `--write` puts the figure and those that live into
`docs/validity.md`; a mutant that no test can notice is named in `EQUIVALENT`, with the reason.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from report import write_section

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "mutants"
TREE, BUILD = HOME / "tree", HOME / "build"
CORE = "rust/fairaudit-core/src/"
TOOLS = ROOT / "target" / "tools" / "bin"
LENSES = ("permutation", "projection", "individual", "influence", "extremes")
#: Seconds after which tests count as hanging: they take some ten times less.
PATIENCE = {"cargo": 300, "python": 1_200}
#: Optimised a little: builds and tests take about as long.
BUILDING = {
    "CARGO_TARGET_DIR": str(BUILD),
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}
DATA = os.environ.get("FAIRAUDIT_DATA") or str(ROOT.parent / "shared" / "data")
SURROUNDINGS = {"PYTHONPATH": str(TREE / "python"), "FAIRAUDIT_DATA": DATA}
#: A mutant and why nothing can tell it from the core, by what `name` gives.
EQUIVALENT: dict[str, str] = {}


def name(mutant):
    """What is changed where, without the line, which moves."""
    text = mutant["name"].split(": ", 1)[1]
    return f"{mutant['file'].removeprefix(CORE)}: {text}"


def body(mutant):
    """The lines that are changed and those around them, without their numbers."""
    return mutant["diff"].split("@@\n", 1)[-1]


def sample(count, seed):
    """Draw mutants of the core."""
    command = [TOOLS / "cargo-mutants", "mutants", "--list", "--json", "--diff"]
    command += ["--package", "fairaudit-core"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    everything = json.loads(listed)
    # Each has its own luck, so that the sample stays what it is when other lines change.
    luck = {
        id(one): random.Random(f"{seed}:{name(one)}:{body(one)}").random() for one in everything
    }
    return sorted(everything, key=lambda one: luck[id(one)])[:count], len(everything)


def copy_tree():
    """Bring the files of the project to the copy, and leave what did not change as it was."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for one in filter(None, files.split("\0")):
        source, target = ROOT / one, TREE / one
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)


def changed(text, mutant):
    """The file with the mutant in it."""
    start, end = mutant["span"]["start"], mutant["span"]["end"]
    lines = text.split("\n")
    before = [*lines[: start["line"] - 1], lines[start["line"] - 1][: start["column"] - 1]]
    after = [lines[end["line"] - 1][end["column"] - 1 :], *lines[end["line"] :]]
    return "\n".join(before) + mutant["replacement"] + "\n".join(after)


def run(command, patience, **environment):
    """Whether a command says that all is well; what it printed."""
    try:
        done = subprocess.run(
            command,
            cwd=TREE,
            env={**os.environ, **BUILDING, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return False, "does not come to an end"
    if done.returncode in (-2, -9, -15):
        raise SystemExit(f"{command[0]} was stopped from outside")
    return done.returncode == 0, done.stdout + done.stderr


def failure(printed):
    """The first test that failed, as far as the output tells."""
    marks = ("FAILED", "ERROR", "does not come to an end")
    lines = [line.strip() for line in printed.splitlines()]
    rust = [
        line.removeprefix("---- ").split(" stdout")[0] for line in lines if line.startswith("---- ")
    ]
    told = rust or [line for line in lines if line.startswith(marks)] or ["ended"]
    return told[0][:160]


def python_tests(mutant):
    """The fast tests of the lens; those of what all lenses share are of the first lens too."""
    room = mutant["file"].removeprefix(CORE).split("/")[0]
    if room in LENSES:
        return [f"tests/{room}"]
    return ["tests/permutation", "tests/data", "tests/metrics", "tests/projection"]


def attempt(mutant):
    """Change the core, and say which tests notice."""
    path = TREE / mutant["file"]
    original = path.read_text(encoding="utf-8")
    path.write_text(changed(original, mutant), encoding="utf-8")
    try:
        return tested(python_tests(mutant))
    finally:
        path.write_text(original, encoding="utf-8")


def tested(paths_of_lens):
    """What the tests say of the copy."""
    tests = ["cargo", "test", "--quiet", "--package", "fairaudit-core", "--lib", "--tests"]
    built, printed = run([*tests, "--no-run"], 3 * PATIENCE["cargo"])
    if not built:
        return {"outcome": "unviable", "by": printed[-300:]}
    passed, printed = run(tests, PATIENCE["cargo"])
    if not passed:
        return {"outcome": "caught", "by": f"cargo test: {failure(printed)}"}
    build = ["cargo", "build", "--quiet", "--package", "fairaudit-py"]
    built, printed = run(build, 3 * PATIENCE["cargo"])
    if not built:
        return {"outcome": "unviable", "by": printed[-300:]}
    library = BUILD / "debug" / "lib_native.so"
    shutil.copy(library, TREE / "python" / "fairaudit_rs" / "_native.abi3.so")
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not calibration"]
    for paths in (["tests/test_golden.py"], paths_of_lens):
        passed, printed = run([*pytest, *paths], PATIENCE["python"], **SURROUNDINGS)
        if not passed:
            return {"outcome": "caught", "by": f"pytest: {failure(printed)}"}
    return {"outcome": "lives", "by": ""}


def lines_of(tried, population, seed):
    """The figure, and those that live."""
    viable = [one for one in tried if one["outcome"] != "unviable"]
    same = [one for one in viable if one["outcome"] == "lives" and one["name"] in EQUIVALENT]
    caught = [one for one in viable if one["outcome"] == "caught"]
    by_rust = sum(one["by"].startswith("cargo") for one in caught)
    yield (
        f"{len(caught)} of {len(viable) - len(same)} mutants of the core are caught "
        f"({100 * len(caught) / max(len(viable) - len(same), 1):.0f} %): {by_rust} by the Rust "
        f"tests, {len(caught) - by_rust} by the fast Python tests. {len(tried)} were drawn of "
        f"{population:,} (seed {seed}); {len(tried) - len(viable)} do not compile, and "
        f"{len(same)} cannot be told from the core."
    )
    yield ""
    for one in viable:
        if one["outcome"] == "lives":
            reason = EQUIVALENT.get(one["name"], "lives")
            yield f"- `{one['name']}`: {reason}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the figure into the docs")
    given = parser.parse_args()
    mutants, population = sample(given.sample, given.seed)
    HOME.mkdir(parents=True, exist_ok=True)
    log = HOME / f"{given.seed}.jsonl"
    known = {}
    if log.exists():
        entries = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        known = {entry["diff"]: entry for entry in entries}
    copy_tree()
    if not known:
        whole = tested([f"tests/{room}" for room in (*LENSES, "data", "metrics")])
        if whole["outcome"] != "lives":
            raise SystemExit(f"the tests fail without a mutant: {whole['by']}")
    tried = []
    for mutant in mutants:
        diff = body(mutant)
        entry = known.get(diff)
        if entry is None:
            entry = {"name": name(mutant), "diff": diff, **attempt(mutant)}
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        tried.append(entry)
        print(
            f"{len(tried)}/{given.sample} {entry['outcome']}: {entry['name']} {entry['by'][:120]}"
        )
        sys.stdout.flush()
    found = list(lines_of(tried, population, given.seed))
    print("\n".join(found))
    if given.write:
        write_section(ROOT / "docs" / "validity.md", "mutants", found)


if __name__ == "__main__":
    main()
