"""Progress of a call: replicates done over all of its tests, and the estimated time."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: Seconds of work before the time of a call is estimated, and seconds left that deserve a warning.
_MEASURED = 2.0
_LONG = 30.0
#: Seconds between two lines of progress where lines cannot be overwritten.
_BETWEEN_LINES = 5.0
#: How to shorten a long call.
ADVICE = "Pass a smaller n_resamples, or progress=True to see how far it is"


@dataclass(kw_only=True)
class Progress:
    """The replicates that are done over all tests of a call."""

    callback: Callable[[int, int], object] | None
    n_resamples: int
    total: int = 0
    done: int = 0
    #: Relative duration of each test; all equal if empty.
    shares: Sequence[float] = ()
    #: How to shorten this call.
    advice: str = ADVICE
    _begun: float = field(default_factory=time.monotonic)
    _has_warned: bool = False

    def tick(self) -> Callable[[int], object]:
        """Return the callback of the next test."""
        start = self.done
        if not start:
            self._begun = time.monotonic()
        return lambda units: self._reach(start + units)

    def show(self, units: int) -> None:
        """Report the progress of the running test."""
        self._reach(self.done + units)

    def finish(self, drawn: bool) -> None:
        """Record that a test is done; an exact test has not reported any progress before."""
        self.done += self.n_resamples
        if self.callback is not None and not drawn:
            self.callback(self.done, self.total)

    def _reach(self, done: int) -> None:
        if self.callback is not None:
            self.callback(min(done, self.total), self.total)
        if not self._has_warned:
            self._forecast(done)

    def _forecast(self, done: int) -> None:
        """Warn once if the call will take long, judged by the replicates that are done."""
        elapsed = time.monotonic() - self._begun
        share = self._share_of(done)
        if elapsed < _MEASURED or not 0 < share < 1 or elapsed / share - elapsed < _LONG:
            return
        self._has_warned = True
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
    """Prints progress: on a terminal in one line, elsewhere as a line every few seconds."""

    def __init__(self) -> None:
        self._total = self._last = 0
        self._begun = self._printed = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Print the number of replicates that are done, and the total."""
        now = time.monotonic()
        if total != self._total or done < self._last or not self._begun:
            self._begun = self._printed = now
        self._total, self._last = total, done
        text = f"{done:>13,} / {total:,}"
        elapsed = now - self._begun
        if 0 < done < total and elapsed >= _MEASURED:
            text += f"   about {format_duration(elapsed * (total - done) / done)} left"
        if sys.stderr.isatty():
            # Padded, to overwrite a longer text.
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
    """Return the number of frames between this function and the user's code."""
    package = __name__.partition(".")[0]
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    # Counted from the caller.
    return level
