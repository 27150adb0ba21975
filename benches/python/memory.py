"""Peak memory of a piece of code above what its input columns take (Linux).

The code runs in a process of its own, which is this file: nothing that the caller holds, freed or
imported is in the figure. Memory that stays below what was resident before is not seen, so the
set-up is cleaned up first; its imports and a small call to warm up belong into the set-up.
"""

import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path

TOLERANCE = 4 * 2**20  # the kernel counts pages per thread and adds them up late


class MemoryMeasureError(RuntimeError):
    """Raised where the machine cannot measure the peak, or the code failed."""


def peak_above(code, setup, *, python=sys.executable, timeout=120):
    """Measure the peak of `code` after `setup` has made the input columns.

    Parameters
    ----------
    code, setup : str
        Python statements; the code sees the names that the set-up leaves.
    python : str
        Interpreter of the child process.
    timeout : float
        Seconds until the child is stopped.

    Returns
    -------
    peak, columns : float
        Bytes: peak resident memory above that after the set-up; arrays, series and frames that
        the set-up leaves in names without a leading underscore.

    Raises
    ------
    MemoryMeasureError
        Where the peak cannot be reset (not Linux, or no /proc/self/clear_refs), or the child fails.
    """
    child = subprocess.run(
        [python, str(Path(__file__).resolve())],
        input=json.dumps({"code": code, "setup": setup}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if child.returncode != 0:
        reason = child.stderr.strip()[-2000:] or f"it ended with status {child.returncode}"
        raise MemoryMeasureError(f"the measured process failed: {reason}")
    answer = json.loads(child.stdout.splitlines()[-1])
    return float(answer["peak"]), float(answer["columns"])


def _status(name):
    """Return a size of /proc/self/status in bytes."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise MemoryMeasureError(f"peak memory is read from /proc (Linux only): {error}") from error
    for line in lines:
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise MemoryMeasureError(f"/proc/self/status has no {name}")


def _reset_peak():
    """Let VmHWM start anew from the present.

    There is no other way: ru_maxrss cannot be reset, and a child inherits it from its parent.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError as error:
        raise MemoryMeasureError(f"the peak cannot be reset: {error}") from error
    excess = _status("VmHWM") - _status("VmRSS")
    if excess > TOLERANCE:
        raise MemoryMeasureError(f"/proc/self/clear_refs left the peak {excess} bytes too high")


def _give_back():
    """Free the garbage of the set-up, and let the allocator return it where it can be asked to."""
    gc.collect()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    trim(0)


def _n_bytes(value):
    """Size of an array, tensor, series or frame; nothing else is a column."""
    if hasattr(value, "estimated_size"):  # Polars
        return value.estimated_size()
    if hasattr(value, "memory_usage"):  # pandas
        usage = value.memory_usage(index=False, deep=True)
        return int(usage.sum() if hasattr(usage, "sum") else usage)
    if hasattr(value, "nbytes") and hasattr(value, "dtype"):
        return value.nbytes
    return 0


def _measure(code, setup):
    names = {"__name__": "__measured__"}
    exec(compile(setup, "<setup>", "exec"), names)
    kept = {id(value): value for name, value in names.items() if not name.startswith("_")}
    columns = sum(_n_bytes(value) for value in kept.values() if not isinstance(value, type))
    work = compile(code, "<code>", "exec")
    del kept
    _give_back()
    _reset_peak()
    before = _status("VmRSS")
    exec(work, names)
    return {"peak": max(0, _status("VmHWM") - before), "columns": columns}


def main():
    """Be the child: read the task from standard input, write the answer as the last line."""
    print("\n" + json.dumps(_measure(**json.load(sys.stdin))))


if __name__ == "__main__":
    main()
