"""How far a call is: replicates done over all of its tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Progress:
    """Replicates done over all tests of a call."""

    callback: Callable[[int, int], object] | None
    n_resamples: int
    total: int = 0
    done: int = 0

    def tick(self) -> Callable[[int], object] | None:
        """Return the callback of the next test."""
        callback = self.callback
        if callback is None:
            return None
        start = self.done
        return lambda units: callback(min(start + units, self.total), self.total)

    def show(self, units: int) -> None:
        """Tell how far the test that runs is."""
        if self.callback is not None:
            self.callback(min(self.done + units, self.total), self.total)

    def finish(self, drawn: bool) -> None:
        """Note that a test is done; an exact one never ticked."""
        self.done += self.n_resamples
        if self.callback is not None and not drawn:
            self.callback(self.done, self.total)
