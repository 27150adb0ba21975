"""Ctrl-C during one long call of a library that does not look for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

#: Seconds between looks for signals.
_TICK = 0.05


def run_interruptibly(compute: Callable[[], Answer]) -> Answer:
    """Return what a long call answers; Ctrl-C is heard meanwhile, and leaves it to itself.

    The call runs in a thread of its own. It must release the GIL, as linear algebra does, and
    change nothing that others see: after Ctrl-C it ends when it ends, for nobody.
    """
    if threading.current_thread() is not threading.main_thread():
        return compute()
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(compute())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_TICK)
    if errors:
        raise errors[0]
    return answers[0]
