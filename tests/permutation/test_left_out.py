"""Groups without a value, or with few rows: all of them named, the others compared as if alone."""

import json
import math
import pickle

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import fairaudit_rs as fa
from fairaudit_rs.cli import main
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, NotMeasurableError

METRICS = {
    "counts": ("tpr", {}),
    "formula": ("f1", {}),
    "joint": ("equalized_odds", {}),
    "ranks": ("auc", {}),
    "mean": ("mean_residual", {}),
    "weights": ("tpr", {"sample_weight": True}),
    "clusters": ("tpr", {"clusters": True}),
    "strata": ("tpr", {"strata": True}),
    "callable": (
        fa.metrics.callable_metric(
            "share_of_positives", lambda y, p, w: p[y > 0].mean() if y.any() else math.nan
        ),
        {},
    ),
}
#: The metrics that have intervals.
MEASURED = [name for name in METRICS if name not in ("joint", "strata")]


@pytest.fixture(scope="module")
def book():
    """Groups a, b, c of some 130 rows; x and y of three rows without a positive label or spread."""
    rng = np.random.default_rng(3)
    n = 400
    group = rng.choice(list("abc"), n)
    group[:6] = list("xyxyxy")
    y_true = rng.integers(0, 2, n)
    y_true[:6] = 0
    score = np.round(rng.random(n), 2)
    score[:6] = [0.1, 0.2, 0.3, 0.15, 0.25, 0.35]
    return {
        "y_true": y_true,
        "y_pred": (score > 0.4).astype(int),
        "y_score": score,
        "group": group,
        "sample_weight": rng.uniform(0.5, 2, n),
        "clusters": np.where(np.arange(n) < 6, np.arange(n) % 2, 10 + np.arange(n)),
        "strata": np.arange(n) % 3,
    }


def given(book, kind, wanted=None):
    """Return the arguments of a call."""
    metric, design = METRICS[kind]
    needs = fa.metrics.get(metric).needs
    columns = {name: book[name] for name in ("y_true", "y_pred", "y_score") if name in needs}
    columns |= {name: book[name] for name in design}
    return {"sensitive_features": book["group"], "metric": metric, "rng": 1, **columns}


def told_apart(first, second):
    """Return the fields in which two results differ."""
    first, second = first.to_dict(), second.to_dict()
    return {name for name in first if first[name] != second[name]}


CALLS = {
    "test": lambda **one: fa.permutation_test(**{"n_resamples": 199, **one}),
    "intervals": lambda **one: fa.intervals(**{"n_resamples": 199, **one}),
    "equivalence": lambda **one: fa.equivalence_test(**{"margin": 0.3, "n_resamples": 199, **one}),
    "calibrate": lambda **one: fa.calibrate(**{"n_audits": 20, "n_resamples": 49, **one}),
    "power": lambda rng, **one: fa.minimum_detectable_gap(**one),
    "size": lambda rng, **one: fa.sample_size(0.2, **one),
}
SAYS = {"warnings", "left_out", "notes", "summary"}


class TestArguments:
    def test_words(self, book):
        with pytest.raises(ArgumentError, match="undefined is 'drop'; accepted: 'raise', 'skip'"):
            fa.permutation_test(**given(book, "counts"), undefined="drop")
        with pytest.raises(ArgumentError, match="min_group_size is 0; accepted: a whole number"):
            fa.permutation_test(**given(book, "counts"), min_group_size=0)

    def test_where_no_group_can_be_left_out(self, book):
        with pytest.raises(ArgumentTypeError, match="min_group_size applies to plans from data"):
            fa.sample_size(0.1, metric="tpr", value=0.5, min_group_size=10)
        with pytest.raises(ArgumentTypeError, match="undefined does not apply to pearson, a cor"):
            fa.permutation_test(
                y_score=book["y_score"],
                sensitive_features=book["sample_weight"],
                metric=fa.metrics.correlation_metric("pearson", lambda rows: rows["y_score"]),
                undefined="skip",
            )

    @pytest.mark.parametrize("kind", METRICS)
    def test_an_error_names_every_group(self, book, kind):
        if kind == "mean":  # which has a value in every group
            return
        with pytest.raises(NotMeasurableError, match=r"group 'x' has .*; group 'y' has ") as caught:
            CALLS["test"](**given(book, kind))
        assert set(caught.value.reasons) == {"x", "y"}
        assert "undefined='skip'" in str(caught.value)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (str(copy), copy.reasons) == (str(caught.value), caught.value.reasons)

    def test_a_reference_without_a_value(self, book):
        message = r"reference is 'x', which is excluded \(3 rows: 0 rows with a positive label"
        with pytest.raises(NotMeasurableError, match=message):
            CALLS["test"](**given(book, "counts"), undefined="skip", reference="x")
        with pytest.raises(
            NotMeasurableError, match=r"reference is 'y'.*fewer rows than min_group"
        ):
            CALLS["test"](**given(book, "counts"), min_group_size=5, reference="y")

    def test_too_few_groups_are_left(self, book):
        message = r"1 of 3 groups can be compared by true_positive_rate.*Excluded: x .*; y "
        with pytest.raises(NotMeasurableError, match=message):
            CALLS["test"](**given(book, "counts"), undefined="skip", groups=["a", "x", "y"])
        with pytest.raises(NotMeasurableError, match=r"0 of 5 groups .*min_group_size=1,000"):
            CALLS["test"](**given(book, "counts"), min_group_size=1_000)

    def test_few_rows_alone_do_not_skip(self, book):
        """A group of enough rows without a value is an error still."""
        with pytest.raises(NotMeasurableError, match=r"^group 'x' has 0 rows.*; group 'y' has"):
            CALLS["test"](**given(book, "counts"), min_group_size=3)


class TestEquality:
    """The rest is compared to the bit as if only the rest had been named."""

    @pytest.mark.parametrize("kind", METRICS)
    @pytest.mark.parametrize("reference", [None, "b"])
    def test_of_tests(self, book, kind, reference):
        one = {**given(book, kind), "reference": reference}
        alone = CALLS["test"](**one, groups=["a", "b", "c"])
        if kind == "mean":
            left = CALLS["test"](**one, min_group_size=4)
        else:
            left = CALLS["test"](**one, undefined="skip")
        assert told_apart(left, alone) == {"warnings", "notes", "left_out"}
        assert np.array_equal(left.null_distribution, alone.null_distribution, equal_nan=True)
        assert [(entry.group, entry.n_rows) for entry in left.left_out] == [("x", 3), ("y", 3)]
        [note] = set(left.warnings) - set(alone.warnings)
        assert note.startswith("excluded: x (3 rows: ")
        assert "; y (3 rows: " in note

    @pytest.mark.parametrize("call", ["intervals", "equivalence", "power"])
    @pytest.mark.parametrize("kind", MEASURED)
    def test_of_other_procedures(self, book, call, kind):
        one = given(book, kind)
        skip = {"min_group_size": 4} if kind == "mean" else {"undefined": "skip"}
        left, alone = CALLS[call](**one, **skip), CALLS[call](**one, groups=["a", "b", "c"])
        assert told_apart(left, alone) <= SAYS
        assert [entry.group for entry in left.left_out] in (["x", "y"], [])

    def test_of_calibrations_and_sizes(self, book):
        for call in ("calibrate", "size"):
            one = given(book, "counts")
            left = CALLS[call](**one, undefined="skip")
            alone = CALLS[call](**one, groups=["a", "b", "c"])
            assert told_apart(left, alone) <= SAYS
            assert "excluded: x (3 rows: 0 rows with a positive label" in str(left)

    def test_plans_need_a_group_that_varies(self, book):
        one = given(book, "mean")
        flat = np.where(np.isin(book["group"], ["x", "y"]), 0.5, book["y_score"])
        one |= {"metric": "mean_prediction", "y_score": flat}
        del one["y_true"]
        with pytest.raises(ArgumentError, match="has no standard error, in 'x', 'y', so"):
            CALLS["power"](**one)
        left = CALLS["power"](**one, undefined="skip")
        alone = CALLS["power"](**one, groups=["a", "b", "c"])
        assert told_apart(left, alone) == {"left_out"}
        assert "y (3 rows: no variation of mean_prediction to plan with)" in str(left)

    def test_max_t_and_adaptive(self, book):
        one = {**given(book, "formula"), "adjust": "max-t", "adaptive": True}
        left = CALLS["test"](**one, undefined="skip")
        alone = CALLS["test"](**one, groups=["a", "b", "c"])
        assert told_apart(left, alone) == {"warnings", "notes", "left_out"}


class TestRows:
    def test_of_a_test(self, book):
        result = CALLS["test"](**given(book, "counts"), undefined="skip")
        frame = result.to_frame()
        left = frame.filter(pl.col("comparison") == "left out")
        assert left["first"].to_list() == ["x", "y"]
        assert np.isnan(left["first_value"].to_numpy()).all()
        assert "not defined there" in left["inconclusive"][0]
        assert [value.group for value in result.values] == ["a", "b", "c"]
        assert set(result.group_sizes) == {"a", "b", "c"}

    @pytest.mark.parametrize("call", ["intervals", "equivalence"])
    def test_of_intervals_and_equivalence(self, book, call):
        result = CALLS[call](**given(book, "counts"), undefined="skip")
        last = result.to_frame().tail(2)
        assert last["first"].to_list() == ["x", "y"]
        assert last["estimate"].is_nan().all()
        assert "not defined there" in last["reason"][1]

    def test_equality_is_not_bought(self, book):
        result = CALLS["equivalence"](**given(book, "counts"), margin=0.5, undefined="skip")
        assert result.pvalue < 0.05
        assert "every gap of 3 groups" in result.summary()
        assert "Nothing is shown about x, y, which are excluded." in result.summary()

    def test_two_groups_are_left(self, book):
        result = CALLS["test"](**given(book, "counts"), undefined="skip", groups=["a", "b", "x"])
        assert len(result.comparisons) == 1
        assert "for a (64 eligible of 131 rows) and" in result.summary()
        assert result.to_frame()["comparison"].to_list() == ["pair", "left out"]


def test_on_the_command_line(book, tmp_path):
    path = tmp_path / "book.csv"
    pl.DataFrame({name: book[name] for name in ("y_true", "y_pred", "group")}).write_csv(path)
    words = ["permutation", str(path), "-s", "group", "-m", "tpr", "--y-true", "y_true"]
    words += ["--y-pred", "y_pred", "--seed", "1", "--json", str(tmp_path / "out.json")]
    failed = CliRunner().invoke(main, words)
    assert failed.exit_code == 2
    assert "--undefined skip" in failed.output
    done = CliRunner().invoke(main, [*words, "--undefined", "skip"])
    assert done.exit_code == 0, done.output
    assert "excluded: x (3 rows" in done.output
    [one] = json.loads((tmp_path / "out.json").read_text())
    assert [entry["group"] for entry in one["left_out"]] == ["x", "y"]
    done = CliRunner().invoke(main, [*words, "--min-group-size", "10"])
    assert done.exit_code == 0, done.output
    assert "fewer rows than --min-group-size" in done.output or "min_group_size" in done.output
