"""Writes THIRD_PARTY_NOTICES: the licences of the crates that are linked into the wheel.

`python -m tests.write_notices` writes it; `--check` fails where it is not what would be written.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "THIRD_PARTY_NOTICES"
WHEEL = "fairaudit-py"
HEADING = """\
Third-party notices

The extension module of fairaudit-rs contains code of the crates below, which are under licences of
their own, and of the standard library of Rust (MIT or Apache-2.0). Where there is a choice, MIT is
taken. This file is written by `make docs` from Cargo.lock; do not edit it.
"""


def metadata():
    """Return the metadata of all packages in Cargo.lock, on every platform."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def linked(found):
    """The packages of others whose code is in the wheel, by id: no build scripts, no macros."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node["deps"] for node in found["resolve"]["nodes"]}
    waiting = [package for package in packages if packages[package]["name"] == WHEEL]
    seen = set(waiting)
    while waiting:
        for entry in nodes[waiting.pop()]:
            normal = any(kind["kind"] is None for kind in entry["dep_kinds"])
            kinds = [target["kind"] for target in packages[entry["pkg"]]["targets"]]
            if normal and ["proc-macro"] not in kinds and entry["pkg"] not in seen:
                seen.add(entry["pkg"])
                waiting.append(entry["pkg"])
    others = [packages[value] for value in seen if packages[value]["source"] is not None]
    return sorted(others, key=lambda entry: (entry["name"], entry["version"]))


def texts(package):
    """The licences of a package as they stand in it: that of MIT alone where it may be chosen."""
    folder = Path(package["manifest_path"]).parent
    names = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE", "COPYRIGHT")
    files = [path for path in sorted(folder.iterdir()) if path.name.upper().startswith(names)]
    choices = package["license"].replace("/", " OR ").split(" OR ")
    mit = [file for file in files if "MIT" in file.name.upper()]
    chosen = mit if mit and "MIT" in {choice.strip() for choice in choices} else files
    return [_trimmed(path.read_text("utf-8")) for path in chosen]


def _trimmed(text):
    return "\n".join(map(str.rstrip, text.strip().splitlines()))


def written():
    """The file's content."""
    crates_of = defaultdict(list)
    listed = []
    for package in linked(metadata()):
        name = f"{package['name']} {package['version']}"
        listed.append(f"{name} ({package['license']})")
        found = texts(package)
        if not found:
            authors = ", ".join(package["authors"]) or package["repository"]
            told = f"No licence file is in the package; it is under {package['license']}, by"
            found = [f"{told}\n{authors}."]
        for text in found:
            crates_of[text].append(name)
    parts = [HEADING, "\n".join(listed) + "\n"]
    rule = "-" * 80
    parts += [f"{rule}\n{', '.join(names)}\n\n{text}\n" for text, names in crates_of.items()]
    return "\n".join(parts)


def main(arguments):
    text = written()
    if arguments == ["--check"]:
        same = NOTICES.exists() and NOTICES.read_text("utf-8") == text
        return None if same else "THIRD_PARTY_NOTICES is old; run python -m tests.write_notices"
    NOTICES.write_text(text, encoding="utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
