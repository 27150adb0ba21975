"""Files appear whole or not at all, and nothing beside them changes."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.errors import ArgumentTypeError, FileError
from fairaudit_rs.results.chart import Chart
from fairaudit_rs.writing import check_target, write_file, write_text

from .architecture import PYTHON

WRITERS = {
    "text": lambda path: write_text("path", path, "new"),
    "chart": lambda path: Chart({"new": 1}).save(path),
    "cells": lambda path: cells().write_parquet(path),
}


def cells(n=40):
    return fa.tabulate(y_pred=np.arange(n) % 2, sensitive_features=np.arange(n) % 3)


def command(folder, *arguments):
    """`fairaudit projection` with few rows."""
    data = folder / "rows.parquet"
    rng = np.random.default_rng(1)
    score, sex = rng.random(200), rng.choice(["f", "m"], 200)
    pl.DataFrame({"score": score + 0.1 * (sex == "f"), "sex": sex}).write_parquet(data)
    roles = ("-s", "sex", "--y-score", "score", "--notion", "statistical_parity")
    return [str(role) for role in ("projection", data, *roles, *arguments)]


class TestRefused:
    @pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
    def test_what_cannot_be_written(self, write, tmp_path):
        (tmp_path / "folder.json").mkdir()
        (tmp_path / "circle.json").symlink_to("circle.json")
        for name, told in {
            "folder.json": "which is a directory; accepted: a file",
            "nowhere/x.json": "its directory does not exist",
            "circle.json": "a link that leads back to itself|Symlink loop|symbolic links",
            "zero\0.json": "cannot be written: .*null",
        }.items():
            with pytest.raises(FileError, match=f"path is .*{told}"):
                write(tmp_path / name)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["circle.json", "folder.json"]

    def test_no_path(self):
        for path in (3, None, b"x", [1]):
            with pytest.raises(ArgumentTypeError, match=r"path is .*; accepted: the path of a fil"):
                check_target("path", path)

    @pytest.mark.parametrize("locked", ["old.json", ""])
    def test_what_the_system_does_not_let_us_write(self, locked, tmp_path, monkeypatch):
        (tmp_path / "old.json").write_text("old")
        allowed = os.access
        monkeypatch.setattr(
            os, "access", lambda path, how: Path(path) != tmp_path / locked and allowed(path, how)
        )
        with pytest.raises(FileError, match="write-protected"):
            write_text("path", tmp_path / "old.json", "new")
        assert (tmp_path / "old.json").read_text() == "old"

    @pytest.mark.parametrize("option", ["--json", "--moves", "--plot"])
    def test_before_the_work_begins(self, option, tmp_path, monkeypatch):
        monkeypatch.setattr(fa, "projection_test", None)
        (tmp_path / "folder.csv").mkdir()
        for path in ("nowhere/x.csv", "folder.csv/../nowhere/x.csv"):
            result = CliRunner().invoke(main, command(tmp_path, option, tmp_path / path))
            assert result.exit_code == 2
            assert f"{option} is " in result.stderr
            assert "its directory does not exist" in result.stderr

    def test_a_picture_of_no_known_kind(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fa, "projection_test", None)
        result = CliRunner().invoke(main, command(tmp_path, "--plot", tmp_path / "x.pdf"))
        assert result.exit_code == 2
        assert "accepted: .json, .svg, .png or .html" in result.stderr


class TestTargets:
    @pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
    def test_links_stay(self, write, tmp_path):
        (tmp_path / "real").mkdir()
        target = tmp_path / "real" / "file.json"
        target.write_text("old")
        (tmp_path / "second.json").symlink_to("real/file.json")
        (tmp_path / "first.json").symlink_to(tmp_path / "second.json")
        write(tmp_path / "first.json")
        assert (tmp_path / "first.json").readlink() == tmp_path / "second.json"
        assert (tmp_path / "second.json").readlink() == Path("real/file.json")
        assert target.read_bytes() != b"old"
        assert not target.is_symlink()

    def test_a_link_to_nothing_is_filled(self, tmp_path):
        (tmp_path / "link").symlink_to("new")
        write_text("path", tmp_path / "link", "text")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "new").read_text() == "text"

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444 | 0o200])
    def test_modes_stay(self, mode, tmp_path):
        target = tmp_path / "file"
        target.write_text("old")
        target.chmod(mode)
        write_text("path", target, "new")
        assert target.read_text() == "new"
        assert stat.S_IMODE(target.stat().st_mode) == mode

    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
    def test_new_files_are_as_umask_says(self, umask, mode, tmp_path):
        before = os.umask(umask)
        try:
            write_text("path", tmp_path / "file", "new")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode

    def test_devices_are_written_in_place(self):
        before = Path("/dev/null").stat()
        write_text("path", "/dev/null", "new")
        after = Path("/dev/null").stat()
        assert stat.S_ISCHR(after.st_mode)
        assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)

    def test_pipes_are_written_in_place(self, tmp_path):
        pipe = tmp_path / "pipe.json"
        os.mkfifo(pipe)
        read = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
        reader.start()
        write_text("path", pipe, "x" * 300_000)
        reader.join()
        assert read == [b"x" * 300_000]
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert list(tmp_path.iterdir()) == [pipe]

    @pytest.mark.parametrize("into", ["file", "pipe"])
    def test_standard_output(self, into, tmp_path):
        """Earlier output stays before it."""
        code = "import sys; from fairaudit_rs.cli import main; main(sys.argv[1:])"
        run = [sys.executable, "-c", code, *command(tmp_path, "--json", "/dev/stdout")]
        if into == "file":
            with (tmp_path / "out").open("wb") as file:
                subprocess.run(run, stdout=file, check=True)
            printed = (tmp_path / "out").read_text()
        else:
            printed = subprocess.run(run, capture_output=True, check=True, text=True).stdout
        sentence, found, rest = printed.partition("\n[\n")
        assert sentence.startswith("statistical_parity: ")
        assert json.loads(found + rest)[0]["kind"] == "ProjectionResult"

    def test_all_outputs_of_a_command(self, tmp_path):
        for name in ("j.json", "m.csv", "p.json"):
            (tmp_path / f"real-{name}").write_text("old")
            (tmp_path / f"real-{name}").chmod(0o600)
            (tmp_path / name).symlink_to(f"real-{name}")
        outputs = ("--json", "j.json", "--moves", "m.csv", "--plot", "p.json")
        paths = [tmp_path / output if "." in output else output for output in outputs]
        result = CliRunner().invoke(main, command(tmp_path, *paths))
        assert result.exit_code == 0, result.output
        for name in ("j.json", "m.csv", "p.json"):
            assert (tmp_path / name).is_symlink()
            assert (tmp_path / f"real-{name}").read_text() != "old"
            assert stat.S_IMODE((tmp_path / f"real-{name}").stat().st_mode) == 0o600
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


class TestWhole:
    def test_a_planted_file_is_not_followed(self, tmp_path):
        """The name of the scratch file could be known: a link there led anywhere."""
        victim = tmp_path / "victim"
        victim.write_text("mine")
        for name in (".file.json.tmp", ".file.json"):
            (tmp_path / name).symlink_to(victim)
        write_text("path", tmp_path / "file.json", "new")
        assert victim.read_text() == "mine"
        assert (tmp_path / ".file.json.tmp").is_symlink()

    def test_the_scratch_file_is_exclusive_and_unknowable(self, tmp_path, monkeypatch):
        seen, known = [], os.open

        def spy(path, flags, *rest):
            seen.append((str(path), flags))
            return known(path, flags, *rest)

        monkeypatch.setattr(os, "open", spy)
        for _ in range(2):
            write_text("path", tmp_path / "file", "new")
        assert seen[0][0] != seen[1][0]
        assert all(flags & os.O_EXCL and flags & os.O_CREAT for _, flags in seen)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
    @pytest.mark.parametrize("old", [None, "old"])
    def test_nothing_is_left_of_what_failed(self, old, error, tmp_path, monkeypatch):
        target = tmp_path / "file"
        if old:
            target.write_text(old)

        def fail(file, content):
            file.write(content.getvalue()[:1])
            raise error

        monkeypatch.setattr("fairaudit_rs.writing._write_all", fail)
        expected = KeyboardInterrupt if error is KeyboardInterrupt else FileError
        with pytest.raises(expected, match=None if error is KeyboardInterrupt else "No space left"):
            write_text("path", target, "new")
        assert [path.read_text() for path in tmp_path.iterdir()] == ([old] if old else [])

    def test_nothing_is_touched_where_the_content_fails(self, tmp_path):
        target = tmp_path / "file"
        target.write_text("old")

        def fail(file):
            file.write(b"ne")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_file("path", target, fail)
        assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]

    def test_two_writers_leave_one_whole_file(self, tmp_path):
        target = tmp_path / "cells.parquet"
        sizes = (300, 3_000)
        with get_context("spawn").Pool(2) as pool:
            pool.starmap(_write_often, [(target, size) for size in sizes])
        assert fa.Cells.read_parquet(target).n_rows in sizes
        assert list(tmp_path.iterdir()) == [target]

    def test_interrupted_between_the_bytes(self, tmp_path):
        """A pipe without a reader waits; Ctrl-C ends it."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)

        def write_when_asked():
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            write_text("path", pipe, "new")

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                write_when_asked()
        finally:
            signal.signal(signal.SIGINT, before)
        assert stat.S_ISFIFO(pipe.stat().st_mode)


def _write_often(target, size):
    written = cells(size)
    for _ in range(50):
        written.write_parquet(target)
        assert fa.Cells.read_parquet(target).n_rows in (300, 3_000)


def test_nobody_else_writes():
    """Every file is written by `writing`."""
    words = (".write_text(", ".write_bytes(", ".savefig(", ".sink_", "mkstemp", "NamedTemporary")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(PYTHON.rglob("*.py"))
        if path.name != "writing.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if any(word in line for word in words) or 'open("w' in line or ".write_parquet(" in line
        if "def write_parquet" not in line
    ]
    assert found == []
