"""`fairaudit influence`."""

import json
import re

import polars as pl
import pytest

from fairaudit_rs.cli import main

from .test_marginal import make


@pytest.fixture
def file(tmp_path):
    group, X, y_true, shown = make()
    path = tmp_path / "data.parquet"
    pl.DataFrame({**X, "g": group, "y": y_true, "f": shown}).write_parquet(path)
    return path


def run(file, *more):
    words = "-s g --target t -f binary -f level -f number --y-true y --y-score f --seed 1"
    main(["influence", str(file), *words.split(), *more], standalone_mode=False)


def test_what_is_printed_and_written(file, tmp_path, capsys):
    run(file, "-m", "fpr", "-m", "selection_rate", "--json", str(tmp_path / "out.json"))
    printed = capsys.readouterr().out
    assert "false_positive_rate of scores is 0." in printed
    assert "selection_rate of scores is 0." in printed
    assert re.search(r"^  binary .* True against False ", printed, re.MULTILINE)
    written = json.loads((tmp_path / "out.json").read_text())
    assert [value["metric"] for value in written] == ["false_positive_rate", "selection_rate"]
    assert written[0]["seed"] == written[1]["seed"] == 1


def test_refusals_are_one_line(file, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["influence", str(file), "-m", "auc", "-s", "g", "--target", "t", "-f", "binary",
              "--y-true", "y", "--y-score", "f"])  # fmt: skip
    assert stopped.value.code == 2
    assert "is not supported by influence_audit" in capsys.readouterr().err


def test_metrics_that_are_no_rates(file, capsys):
    run(file, "-m", "calibration", "-m", "divergence")
    printed = capsys.readouterr().out
    assert "The calibration error of t is" in printed
    assert "The divergence of the scores (output, nats) is" in printed
    assert "interval of all" not in printed
