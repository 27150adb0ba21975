"""p-values against levels: a table and a sentence cannot contradict each other."""

import math

import numpy as np
import polars as pl

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.results import verdict
from fairaudit_rs.results.verdict import rejects_at

from ..reference import tolerance as reference


class TestKnownValues:
    def test_a_p_value_at_the_level_rejects(self):
        assert 0.1 > 1 - 0.9
        assert rejects_at(0.1, 1 - 0.9)
        assert not rejects_at(0.1 * (1 + 1e-6), 1 - 0.9)

    def test_what_is_not_measurable_does_not_reject(self):
        assert rejects_at(math.nan, 0.05) is False

    def test_numpy_numbers_are_plain_afterwards(self):
        assert rejects_at(np.float64(0.01), 0.05) is True


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


def question(fails, passes, coverage=1.0, min_coverage=0.95, **options):
    return verdict.of_question(
        verdict.PairPValues(fails, passes),
        alpha=0.05,
        coverage=coverage,
        min_coverage=min_coverage,
        **options,
    )


class TestRules:
    def test_some_pair_that_is_refuted_fails(self):
        assert question([0.05, 1.0], [1.0, 0.001]) == "fail"
        assert question([0.0501, 1.0], [1.0, 0.001]) == "inconclusive"

    def test_every_pair_must_be_shown(self):
        assert question([1.0, 1.0], [0.05, 0.01]) == "pass"
        assert question([1.0, 1.0], [0.051, 0.01]) == "inconclusive"

    def test_leaving_people_out_buys_no_pass(self):
        assert question([1.0], [0.001], coverage=0.95) == "pass"
        assert question([1.0], [0.001], coverage=0.949) == "inconclusive"
        assert question([1.0], [0.001], coverage=0.5, min_coverage=0.4) == "pass"
        assert question([0.001], [1.0], coverage=0.1) == "fail"
        assert question([1.0], [0.001], coverage=0.99, withheld=True) == "inconclusive"
        assert question([0.001], [1.0], withheld=True) == "fail"

    def test_without_two_groups_nothing_is_measurable(self):
        assert question([], []) == "not_measurable"
        assert question([], [], coverage=0.0) == "not_measurable"

    def test_the_worst_counts(self):
        order = ["pass", "not_measurable", "inconclusive", "fail"]
        for i, better in enumerate(order):
            for worse in order[i:]:
                assert verdict.worst_verdict([better, worse]) == worse
                assert verdict.worst_verdict(iter([worse, better])) == worse
        assert verdict.worst_verdict(["not_asked", "pass"]) == "pass"
        assert verdict.worst_verdict([]) == "not_asked"

    def test_exit_codes(self):
        words = ("pass", "fail", "inconclusive", "not_measurable", "not_asked")
        assert [verdict.exit_code(word) for word in words] == [0, 1, 0, 0, 0]
        assert [verdict.exit_code(word, strict=True) for word in words] == [0, 1, 3, 3, 0]
        assert verdict.exit_code("no_fail", strict=True) == 0
        assert verdict.exit_code("no_fail", strict=True, for_all=False) == 3
        assert verdict.exit_code("pass", for_all=False) == 0
        assert verdict.exit_code("pass", strict=True, for_all=False) == 3
        assert not verdict.covers_enough(0.9989, 0.999)
        assert verdict.covers_enough(0.999, 0.999)

    def test_many_questions_as_the_reference_says(self):
        rng = np.random.default_rng(1)
        seen = set()
        for _ in range(400):
            sizes = rng.integers(0, 4, rng.integers(1, 5))
            questions = [
                (
                    rng.beta(0.1, 1, n).tolist() if rng.random() < 0.4 else [1.0] * n,
                    (rng.beta(0.05, 1, n) * 0.3).tolist(),
                    float(rng.choice([0.9, 0.95, 1.0])),
                )
                for n in sizes
            ]
            adjusted = iter(fa.adjust_pvalues([p for fails, _, _ in questions for p in fails]))
            found = [
                question([next(adjusted) for _ in fails], passes, coverage)
                for fails, passes, coverage in questions
            ]
            assert (found, verdict.worst_verdict(found)) == reference.verdicts(questions)
            seen.add(verdict.worst_verdict(found))
        assert seen == {"pass", "fail", "inconclusive", "not_measurable"}
