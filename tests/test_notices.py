"""Third-party notices and requirements of the wheel."""

import ast
import re
import tomllib

from . import write_notices
from .architecture import PYTHON, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_linked_crate_is_in_the_notices():
    listed = re.findall(r"^(\S+ \d\S*) \(", write_notices.NOTICES.read_text("utf-8"), re.MULTILINE)
    crates = write_notices.linked(write_notices.metadata())
    assert listed == [f"{crate['name']} {crate['version']}" for crate in crates]
    # What runs while building is not in the wheel; what it links is.
    names = {crate["name"] for crate in crates}
    assert {"pyo3", "rayon", "csv"} <= names
    assert not names & {"syn", "pyo3-macros", "pyo3-build-config", "proc-macro2", "criterion"}


def test_every_linked_crate_is_in_the_lock():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {f"{value['name']} {value['version']}" for value in lock}
    text = write_notices.NOTICES.read_text("utf-8")
    assert set(re.findall(r"^(\S+ \d\S*) \(", text, re.MULTILINE)) <= locked


def test_the_notices_are_in_the_wheel():
    assert "THIRD_PARTY_NOTICES" in PROJECT["license-files"]
    assert write_notices.main(["--check"]) is None


def test_what_is_asked_for_is_imported():
    imported = set()
    for path in PYTHON.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    asked = {re.match(r"[\w-]+", dependency)[0] for dependency in PROJECT["dependencies"]}
    assert asked == {"numpy", "scipy", "polars", "highspy", "click"}
    assert asked <= imported
