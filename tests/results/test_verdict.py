"""p-values against levels: a table and a sentence cannot contradict each other."""

import math

import numpy as np
import polars as pl

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.results.verdict import rejects


class TestKnownValues:
    def test_a_p_value_at_the_level_rejects(self):
        assert 0.1 > 1 - 0.9
        assert rejects(0.1, 1 - 0.9)
        assert not rejects(0.1 * (1 + 1e-6), 1 - 0.9)

    def test_what_is_not_measurable_does_not_reject(self):
        assert rejects(math.nan, 0.05) is False

    def test_numpy_numbers_are_plain_afterwards(self):
        assert rejects(np.float64(0.01), 0.05) is True


def test_table_and_sentence_agree_at_the_level(tmp_path, capsys):
    """Nine replicates, none as extreme: p is exactly 1 / 10."""
    y_true = np.tile([1, 1, 0, 0], 100)
    y_pred = np.concatenate([y_true[:200], 1 - y_true[200:]])
    group = np.repeat(["a", "b"], 200)
    pl.DataFrame({"y": y_true, "d": y_pred, "g": group}).write_parquet(tmp_path / "data.parquet")
    words = "permutation data.parquet -s g -m f1 --y-true y --y-pred d --n-resamples 9"
    arguments = [
        *words.replace("data.parquet", str(tmp_path / "data.parquet")).split(),
        "--seed",
        "1",
    ]
    main([*arguments, "--confidence-level", "0.9"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "differs" in printed
    assert "more than chance explains" in printed
    result = fa.permutation_test(
        y_true, y_pred, sensitive_features=group, metric="f1", n_resamples=9, rng=1
    )
    assert result.pvalue == 0.1


def test_replicates_that_just_reach_the_level_are_enough():
    group = np.repeat(["a", "b"], 200)
    options = {"metric": "f1", "n_resamples": 9, "rng": 1, "sensitive_features": group}
    y_true = np.tile([1, 1, 0, 0], 100)

    def warns(level):
        result = fa.permutation_test(y_true, y_true[::-1], confidence_level=level, **options)
        return any("no drawn test alone can reach" in warning for warning in result.warnings)

    assert warns(0.91)
    assert not warns(0.9)
