"""How far a call is: replicates done over all of its tests, and how long all of them take."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: Seconds of work from which the time of a call is estimated, and that must be left to say so.
_MEASURED = 2.0
_LONG = 30.0
#: Seconds between two lines of progress, where lines cannot be written over.
_BETWEEN_LINES = 5.0
#: What makes a long call shorter.
ADVICE = "Pass a smaller n_resamples, or progress=True to see how far it is"


@dataclass(kw_only=True)
class Progress:
    """Replicates done over all tests of a call."""

    callback: Callable[[int, int], object] | None
    n_resamples: int
    total: int = 0
    done: int = 0
    #: How long each test takes compared with the others; equally long where nothing is known.
    shares: Sequence[float] = ()
    #: What makes this call shorter.
    advice: str = ADVICE
    _begun: float = field(default_factory=time.monotonic)
    _told: bool = False

    def tick(self) -> Callable[[int], object]:
        """Return the callback of the next test."""
        start = self.done
        if not start:
            self._begun = time.monotonic()
        return lambda units: self._reach(start + units)

    def show(self, units: int) -> None:
        """Tell how far the test that runs is."""
        self._reach(self.done + units)

    def finish(self, drawn: bool) -> None:
        """Note that a test is done; an exact one never ticked."""
        self.done += self.n_resamples
        if self.callback is not None and not drawn:
            self.callback(self.done, self.total)

    def _reach(self, done: int) -> None:
        if self.callback is not None:
            self.callback(min(done, self.total), self.total)
        if not self._told:
            self._forecast(done)

    def _forecast(self, done: int) -> None:
        """Warn once when the call takes long, measured on the replicates that are done."""
        elapsed = time.monotonic() - self._begun
        share = self._share_of(done)
        if elapsed < _MEASURED or not 0 < share < 1 or elapsed / share - elapsed < _LONG:
            return
        self._told = True
        warnings.warn(
            f"This call takes about {format_duration(elapsed / share)} for "
            f"{self.total:,} replicates. "
            f"{self.advice}.",
            stacklevel=_outside(),
        )
        if self.callback is None and sys.stderr.isatty():
            self.callback = ProgressPrinter()

    def _share_of(self, done: int) -> float:
        """Return the share of the whole time that these replicates take."""
        if not self.shares:
            return done / self.total if self.total else 0.0
        n_tests = max(round(self.total / self.n_resamples), len(self.shares))
        mean = sum(self.shares) / len(self.shares)
        shares = [*self.shares, *[mean] * (n_tests - len(self.shares))]
        finished, rest = divmod(done, self.n_resamples)
        spent = sum(shares[:finished]) + sum(shares[finished : finished + 1]) * (
            rest / self.n_resamples
        )
        return spent / sum(shares)


class ProgressPrinter:
    """Prints how far a call is: on a terminal in one line, elsewhere a line every few seconds."""

    def __init__(self) -> None:
        self._total = self._last = 0
        self._begun = self._printed = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Print what is done, of how much."""
        now = time.monotonic()
        if total != self._total or done < self._last or not self._begun:
            self._begun = self._printed = now
        self._total, self._last = total, done
        text = f"{done:>13,} / {total:,}"
        elapsed = now - self._begun
        if 0 < done < total and elapsed >= _MEASURED:
            text += f"   about {format_duration(elapsed * (total - done) / done)} left"
        if sys.stderr.isatty():
            # Longer texts that were there before are written over.
            sys.stderr.write(f"\r{text:<60}" + ("\n" if done >= total else ""))
        elif done >= total or now - self._printed >= _BETWEEN_LINES:
            self._printed = now
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def format_duration(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(5 * round(seconds / 5), 5)} seconds"
    if seconds < 5_400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3_600:.1f} hours"


def _outside() -> int:
    """Return how many calls up the code of the user is."""
    package = __name__.partition(".")[0]
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    # Counted from the caller of this function.
    return level
