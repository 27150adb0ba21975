"""A copy of the project in which mutants of the core wait behind a switch; see `mutants`.

A function with mutants has its body once as it is, and once for each of them:
`{ if crate::mutant(7) { changed } else { as it was } }`. The environment variable `MUTANT` says
which one a process runs, so that one build serves all. What does not compile that way is left out,
by what the compiler says.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "mutants"
TREE, BUILD = HOME / "tree", HOME / "build"
CORE = "rust/fairaudit-core/src/"
#: Optimised a little: the tests take about as long as the build.
BUILDING = {
    "CARGO_TARGET_DIR": str(BUILD),
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}
SWITCH = """
/// Whether this process runs a mutant.
#[doc(hidden)]
pub fn mutant(number: usize) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<usize>> = std::sync::LazyLock::new(|| {
        let chosen = std::env::var("MUTANT").ok()?;
        Some(chosen.parse().expect("MUTANT is the number of a mutant"))
    });
    *CHOSEN == Some(number)
}
"""


def offset(text, place):
    """Where a line and a column, both from 1, lie in a text."""
    starts = itertools.accumulate((len(line) + 1 for line in text.split("\n")), initial=0)
    start = next(itertools.islice(starts, place["line"] - 1, None))
    # Columns count characters, as Python does.
    return start + place["column"] - 1


def changed(text, mutant):
    """The file with the mutant in it."""
    start, end = (offset(text, mutant["span"][edge]) for edge in ("start", "end"))
    return text[:start] + mutant["replacement"] + text[end:]


def body(text, mutant):
    """Where the body of the mutant's function begins and ends, braces included."""
    span = mutant["function"]["span"]
    start, end = offset(text, span["start"]), offset(text, span["end"])
    # The doc comments and attributes before it may have braces, too.
    signature = re.compile(r"^(?!\s*(//|#)).*?\bfn\b", re.MULTILINE)
    signature = signature.search(text, text.rfind("\n", 0, start) + 1)
    opened = text.index("{", signature.end())
    first, last = (offset(text, mutant["span"][edge]) for edge in ("start", "end"))
    if not opened < first <= last < end or text[end - 1] != "}":
        raise SystemExit(f"the body of {mutant['name']} was not found")
    return opened, end


def with_switches(text, mutants):
    """The file with all mutants, `{number: mutant}`, and the lines on which each of them stands."""
    functions = {}
    for number, mutant in mutants.items():
        functions.setdefault(body(text, mutant), []).append((number, mutant))
    pieces, lines, reached = [], {}, 0
    for (start, end), inside in sorted(functions.items()):
        if start < reached:  # a function within another one that has mutants
            continue
        pieces.append(text[reached:start] + "{")
        for number, mutant in inside:
            pieces.append(f" if crate::mutant({number}) ")
            before = "".join(pieces).count("\n")
            longer = len(changed(text, mutant)) - len(text)
            pieces.append(changed(text, mutant)[start : end + longer])
            lines[number] = range(before + 1, "".join(pieces).count("\n") + 2)
            pieces.append(" else ")
        pieces.append(text[start:end] + "}")
        reached = end
    return "".join([*pieces, text[reached:]]), lines


def copy(replaced):
    """Bring the files to the copy, some replaced, and leave what did not change as it was."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for part in filter(None, files.split("\0")):
        source, target = ROOT / part, TREE / part
        if not source.is_file():
            continue
        content = replaced[part].encode() if part in replaced else source.read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)


def source(name):
    return (ROOT / name).read_text(encoding="utf-8")


def cargo(*arguments):
    """Build, and return what the compiler says: its errors and what it made."""
    command = ["cargo", *arguments, "--locked", "--message-format=json"]
    done = subprocess.run(
        command, cwd=TREE, env={**os.environ, **BUILDING}, capture_output=True, text=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    told = (value["message"] for value in said if value["reason"] == "compiler-message")
    errors = [value for value in told if value["level"] == "error"]
    if done.returncode != 0 and not errors:
        raise SystemExit(done.stderr)
    return errors, [value for value in said if value.get("executable")]


def build_tests():
    """The errors of the compiler, and the tests of the core, by the names of their files."""
    errors, made = cargo("test", "--package", "fairaudit-core", "--lib", "--tests", "--no-run")
    return errors, {Path(value["target"]["src_path"]).stem: value["executable"] for value in made}


def build_module():
    """Put the native module beside the Python code of the copy."""
    errors, _ = cargo("build", "--package", "fairaudit-py")
    if errors:
        raise SystemExit(errors[0]["rendered"])
    library = TREE / "python" / "fairaudit_rs" / "_native.abi3.so"
    library.unlink(missing_ok=True)
    shutil.copy(BUILD / "debug" / "lib_native.so", library)


def build_together(mutants):
    """Build all mutants at once: the numbers of those that are in it, and the test binaries."""
    inside = dict(mutants)
    while True:
        replaced, lines = {}, {}
        for name in {value["file"] for value in inside.values()}:
            of_file = {key: value for key, value in inside.items() if value["file"] == name}
            replaced[name], lines[name] = with_switches(source(name), of_file)
        replaced[f"{CORE}lib.rs"] = replaced.get(f"{CORE}lib.rs", source(f"{CORE}lib.rs")) + SWITCH
        copy(replaced)
        errors, binaries = build_tests()
        if not errors:
            return set().union(*lines.values()), binaries
        spans = [span for error in errors for span in error["spans"]]
        wrong = {
            number
            for span in spans
            for number, where in lines.get(span["file_name"], {}).items()
            if where.start <= span["line_end"] and span["line_start"] < where.stop
        }
        if not wrong:
            raise SystemExit("\n".join(error["rendered"] for error in errors))
        inside = {key: value for key, value in inside.items() if key not in wrong}


def error_alone(mutant):
    """Return the compiler errors of a mutant without a switch; empty when it builds."""
    copy({mutant["file"]: changed(source(mutant["file"]), mutant)})
    errors, _ = cargo("build", "--package", "fairaudit-core")
    return errors[0]["message"] if errors else ""
