"""Completion of commands, options and metrics, by a bash that runs."""

import os
import shutil
import subprocess
import sys

import pytest

SCRIPT = """
eval "$(_FAIRAUDIT_COMPLETE=bash_source fairaudit)"
complete -p fairaudit
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
_fairaudit_completion fairaudit
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(folder, *words):
    """Return what bash offers in place of the last word."""
    bash = shutil.which("bash")
    assert bash is not None
    command = folder / "fairaudit"
    command.write_text(
        f"#!{sys.executable}\nfrom fairaudit_rs.cli import main\nmain(prog_name='fairaudit')\n"
    )
    command.chmod(0o755)
    done = subprocess.run(
        [bash, "--norc", "-c", SCRIPT, "bash", "fairaudit", *words],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    setup, *offered = done.stdout.splitlines()
    assert setup == "complete -o nosort -F _fairaudit_completion fairaudit"
    return offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("au",), ["audit"]),
        (("compare", "x.csv", "--f"), ["--first", "--fail-if-worse"]),
        (("audit", "x.csv", "--preset", "four"), ["four_fifths"]),
        (("audit", "x.csv", "--format", ""), ["text", "json", "md"]),
        (("permutation", "x.csv", "-m", "false_p"), ["false_positive_rate"]),
        (("audit", "x.csv", "--nonsense"), [""]),
    ],
)
def test_completion(words, offered, tmp_path):
    assert completed(tmp_path, *words) == offered


def test_files_are_left_to_the_shell(tmp_path):
    completed(tmp_path, "audit")
    done = subprocess.run(
        [tmp_path / "fairaudit"],
        env={**os.environ, "_FAIRAUDIT_COMPLETE": "bash_complete",
             "COMP_WORDS": "fairaudit audit lo", "COMP_CWORD": "2"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "file,lo\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_of_shells(shell, tmp_path):
    completed(tmp_path, "audit")
    done = subprocess.run(
        [tmp_path / "fairaudit"],
        env={**os.environ, "_FAIRAUDIT_COMPLETE": f"{shell}_source"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "fairaudit" in done.stdout
    assert done.stderr == ""
