"""Progress: long calls say how long they take, and print it for people and for pipes."""

import io
import re
import warnings

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import progress
from fairaudit_rs.progress import Progress, ProgressPrinter, format_duration


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests move on."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=["pipe", "terminal"])
def stderr(request, monkeypatch):
    stream = Terminal() if request.param == "terminal" else io.StringIO()

    def take():
        # In the test: pytest sets its own when a test begins.
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return take


class TestForecast:
    def progress(self, **options):
        return Progress(callback=None, n_resamples=1_000, total=4_000, **options)

    def test_long_calls_say_how_long_they_take(self, clock):
        tick = self.progress().tick()
        clock.now += 1.5
        with warnings.catch_warnings():
            # Too early to know.
            warnings.simplefilter("error")
            tick(10)
        clock.now += 1.0
        expected = r"about 17 minutes for 4,000 replicates\. Pass a smaller n_resamples"
        with pytest.warns(UserWarning, match=expected):
            tick(10)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Once.
            tick(20)

    def test_short_calls_say_nothing(self, clock):
        tick = self.progress().tick()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for done in range(400, 4_001, 400):
                clock.now += 3.0
                tick(done)

    def test_tests_take_their_share_of_the_time(self, clock):
        # The last test takes seven tenths: after 3 s of 30 in the first ones, 21 are to come.
        measured = self.progress(shares=[1.0, 1.0, 1.0, 7.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                tick = measured.tick()
                clock.now += 3.0
                tick(1_000)
                measured.finish(drawn=True)
        tick = measured.tick()
        clock.now += 9.0
        # 15 s for two tenths and a half.
        with pytest.warns(UserWarning, match="about 60 seconds"):
            tick(500)

    def test_the_warning_is_of_the_line_that_calls(self, clock):
        def slow(label, score, weight):
            clock.now += 0.5
            return float(np.mean(score))

        metric = fa.metrics.callable_metric("slow", slow, columns=("y_true", "y_score"))

        with pytest.warns(UserWarning, match=r"This call takes about .*adaptive=True") as seen:
            fa.permutation_test(
                y_score=np.linspace(0, 1, 80),
                y_true=[0, 1] * 40,
                sensitive_features=["a", "a", "b", "b"] * 20,
                metric=metric,
                studentize=False,
                n_resamples=200,
                n_threads=1,
            )
        assert seen[0].filename == __file__

    def test_terminals_show_progress_of_long_calls(self, clock, stderr):
        stderr = stderr()
        shown = self.progress()
        tick = shown.tick()
        clock.now += 3.0
        with pytest.warns(UserWarning, match="This call takes"):
            tick(1)
        tick(2)
        assert ("2 / 4,000" in stderr.getvalue()) == stderr.isatty()

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (31, "30 seconds"),
            (88, "90 seconds"),
            (100, "2 minutes"),
            (540, "9 minutes"),
            (5_399, "90 minutes"),
            (10_000, "2.8 hours"),
        ],
    )
    def test_durations(self, seconds, words):
        assert format_duration(seconds) == words


class TestPrinter:
    def test_lines_for_pipes_and_one_line_for_terminals(self, clock, stderr):
        stderr = stderr()
        printer = ProgressPrinter()
        for done in range(0, 1_001, 10):
            printer(done, 1_000)
            clock.now += 0.3
        text = stderr.getvalue()
        if stderr.isatty():
            assert text.count("\n") == 1
            assert text.count("\r") == 101
        else:
            lines = text.splitlines()
            assert "\r" not in text
            # One every five seconds of thirty, and the last.
            assert len(lines) == 6
            assert re.fullmatch(r" +\d+ / 1,000   about \d+ seconds left", lines[0])
        assert text.rstrip().endswith("1,000 / 1,000")

    def test_the_next_test_begins_anew(self, clock, stderr):
        stderr = stderr()
        printer = ProgressPrinter()
        for _ in range(2):
            printer(50, 100)
            clock.now += 10.0
            printer(100, 100)
        assert stderr.getvalue().count("100 / 100") == 2

    def test_progress_is_true(self, stderr):
        stderr = stderr()
        label, score, group = [0, 1] * 40, np.linspace(0, 1, 80), ["a", "a", "b", "b"] * 20
        fa.permutation_test(
            label, y_score=score, sensitive_features=group, metric="auc", n_resamples=99,
            progress=True,
        )  # fmt: skip
        assert "99 / 99" in stderr.getvalue()
