"""Python code in processes of its own: for what is read once per process."""

import os
import re
import subprocess
import sys


def run_child(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def instruction_sets():
    """Those that this processor has, as the message about one that none has lists them."""
    code = "import fairaudit_rs as fa\nfa.tabulate(y_pred=[0, 1], sensitive_features=[0, 1])"
    message = run_child(code, FAIRAUDIT_SIMD="none").stderr
    names = re.search(r"accepted: (.*) on this processor", message).group(1).split(", ")
    assert names[0] == "baseline"
    return names


def outputs_of_instruction_sets(code):
    """Return the distinct outputs of the code: one entry when the bits are the same."""
    seen = set()
    for name in instruction_sets():
        done = run_child(code, FAIRAUDIT_SIMD=name)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        seen.add(done.stdout)
    return seen
