"""Run one long call of a library so that Ctrl-C still works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

#: Seconds between two checks for signals.
_TICK = 0.05


def run_interruptibly(compute: Callable[[], Result]) -> Result:
    """Return the result of a long call that Ctrl-C can interrupt.

    The call runs in its own thread. It must release the GIL, as linear algebra does, and must not
    change shared state: after Ctrl-C the thread runs on to its end and its result is discarded.
    """
    if threading.current_thread() is not threading.main_thread():
        return compute()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(compute())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_TICK)
    if errors:
        raise errors[0]
    return results[0]
