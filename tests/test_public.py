"""The public names: a table that loads them when they are asked for."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib

import pytest

import fairaudit_rs as fa

from .architecture import PYTHON

ROOMS = ("metrics", "models", "datasets", "errors")


def run_child(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def typed_names():
    """Return the names that type checkers see, by their module."""
    tree = ast.parse((PYTHON / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_the_table_is_what_type_checkers_see():
    typed = typed_names()
    assert {name for name, module in typed.items() if module is None} == set(ROOMS)
    assert {name: module for name, module in typed.items() if module} == fa._MODULE_OF


def test_every_name_is_listed_and_there():
    assert set(fa.__all__) == {*fa._MODULE_OF, *ROOMS, "__version__"}
    for name in fa.__all__:
        assert name in dir(fa)
        assert getattr(fa, name) is getattr(fa, name)


def test_the_table_names_where_things_are_defined():
    for name, module in fa._MODULE_OF.items():
        assert getattr(fa, name).__module__ == f"fairaudit_rs.{module}"


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'fairaudit_rs' has no attribute 'audits'"):
        _ = fa.audits


def test_no_public_name_is_that_of_a_package():
    """`import fairaudit_rs.x` would put the package in the place of a function x."""
    packages = {module.name for module in pkgutil.iter_modules(fa.__path__)} - set(ROOMS)
    assert not packages & set(fa.__all__)


def test_nothing_is_loaded_before_it_is_asked_for():
    code = (
        "import sys, fairaudit_rs as fa\n"
        "own = {name for name in sys.modules if name.startswith('fairaudit_rs')}\n"
        "print(sorted(own))\n"
        "fa.intervals, fa.equivalence_test, fa.permutation_test\n"
        "print(callable(fa.intervals))\n"
        "print(any('individual' in name or 'projection' in name for name in sys.modules))\n"
    )
    loaded, is_function, others = run_child(code).splitlines()
    assert loaded == "['fairaudit_rs', 'fairaudit_rs._native']"
    assert is_function == "True"
    assert others == "False"


def test_star_import_and_tab_completion():
    code = "from fairaudit_rs import *\nprint(permutation_test.__name__, metrics.__name__)\n"
    assert run_child(code).split() == ["permutation_test", "fairaudit_rs.metrics"]
    assert set(fa.__all__) <= set(dir(fa))


@pytest.mark.parametrize("room", ROOMS)
def test_public_modules_list_their_names(room):
    module = importlib.import_module(f"fairaudit_rs.{room}")
    assert getattr(fa, room) is module
    for name in module.__all__:
        assert inspect.getdoc(getattr(module, name))


#: Extras that no code uses yet; pyproject.toml says what they wait for.
WAITING = {"onnx"}


def test_extras_are_used_and_installed_by_make():
    """Every extra has a package that some code imports, and `make test` installs it."""
    root = PYTHON.parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    installed = set(re.search(r"^EXTRAS := (.*)$", makefile, re.MULTILINE)[1].split(","))
    assert installed == set(extras) - {"bench"}
    files = [
        file for folder in ("python", "tests", "benches") for file in (root / folder).rglob("*.py")
    ]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    used = set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE))
    names = {"scikit-learn": "sklearn", "vl-convert-python": "vl_convert"}
    for extra in set(extras) - {"dev"}:
        packages = [re.match(r"[\w-]+", requirement)[0] for requirement in extras[extra]]
        assert (extra in WAITING) != any(names.get(name, name) in used for name in packages), extra
