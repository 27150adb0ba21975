"""How features are read: every kind of array as the numbers that it holds, and no other order."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.influence.feature_encodings import FeatureEncodings
from tests.influence.test_marginal import audit

N = 2_500


def make(seed=0):
    """Two binary columns, one of them rare, a constant, and two continuous ones."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            np.where(rng.random(N) < 0.4, 3.0, -1.0),
            (rng.random(N) < 0.05).astype(float),
            np.full(N, 7.0),
            rng.integers(0, 100, N).astype(float),
            np.float32(rng.standard_t(2, N)),
        ]
    )
    group = np.where(rng.random(N) < 0.5, "t", "other")
    score = 1 / (1 + np.exp(-0.2 * X[:, 0] - X[:, 4] - rng.normal(size=N)))
    y_true = (rng.random(N) < score).astype(int)
    return group, X, y_true, score


def coded(X, rows=None):
    """Kinds, and the matrix that the coding gives."""
    columns = X if isinstance(X, dict) else {f"x{j + 1}": X[:, j] for j in range(X.shape[1])}
    coding = FeatureEncodings.from_columns(columns, {})
    matrix = coding.matrix(np.arange(len(next(iter(columns.values())))))
    return coding, matrix


class TestArguments:
    @pytest.mark.parametrize("row", [0, 1, 700, N - 1])
    @pytest.mark.parametrize("column", [0, 2, 4])
    @pytest.mark.parametrize("bad", [np.inf, -np.inf])
    def test_what_is_not_finite_is_named(self, row, column, bad):
        group, X, y_true, score = make()
        X[row, column] = bad
        words = f"feature 'x{column + 1}' is missing or infinite in row {row}"
        for given in (X, np.asfortranarray(X)):
            with pytest.raises(fa.errors.DataError, match=words):
                audit((group, given, y_true, score))

    def test_missing_numbers_of_a_frame_are_features_of_their_own(self):
        group, X, y_true, score = make()
        frame = pd.DataFrame(X).astype({3: "Int64"})
        frame.loc[9, 3] = pd.NA
        found = audit((group, frame, y_true, score))
        assert "3 is missing" in {value.feature for value in found.proxy_scores}

    def test_numbers_of_many_values_are_no_set(self):
        group, X, y_true, score = make()
        columns = {"a": X[:, 1], "b": X[:, 3]}
        with pytest.raises(fa.errors.DataError, match="names 'b', which is continuous"):
            audit((group, columns, y_true, score), sets={"s": ["a", "b"]})


class TestKnownValues:
    def test_kinds_and_values(self):
        coding, matrix = coded(make()[1])
        assert [feature.kind for feature in coding.features] == ["binary"] * 3 + ["continuous"] * 2
        assert coding.features[0].levels == ("3", "-1")
        assert set(np.unique(matrix[:, 0])) == {0.0, 1.0}
        assert not matrix[:, 2].any()

    def test_constants_of_any_size_are_0(self):
        for value in (0.0, -1e300, 1e17, 5e-324):
            _, matrix = coded({"x": np.full(10, value)})
            assert not matrix.any()

    def test_zero_has_no_sign(self):
        coding, _ = coded({"x": np.array([-0.0, 0.0, 1.0])})
        assert coding.features[0].levels == ("1", "0")

    def test_a_second_value_in_the_last_row(self):
        column = np.zeros(20_000)
        column[-1] = 4
        coding, matrix = coded({"x": column})
        assert coding.features[0].levels == ("4", "0")
        assert matrix.sum() == 1
        column[9_000] = 2
        assert coded({"x": column})[0].features[0].kind == "continuous"

    def test_truth_and_text(self):
        data = {
            "always": np.ones(6, bool),
            "never": np.zeros(6, bool),
            "truth": np.arange(6) % 2 == 0,
            "wide": np.array(list("abcabc")),
            "bytes": np.array([b"x", b"y"] * 3),
        }
        coding, matrix = coded(data)
        levels = {feature.name: feature.levels for feature in coding.features}
        assert levels["always"] == ("True",)
        assert levels["never"] == ("False",)
        assert levels["truth"] == ("True", "False")
        assert levels["wide"] == ("a", "b", "c")
        assert set(levels["bytes"]) == {"x", "y"}
        truth, wide = coding.features[2].columns[0], list(coding.features[3].columns)
        assert matrix[:, truth].tolist() == [1, 0] * 3
        assert matrix[:, wide].tolist() == np.eye(3).tolist() * 2


class TestProperties:
    def same(self, data, X, expected):
        group, _, y_true, score = data
        found = audit((group, X, y_true, score)).to_dict()
        assert found == expected

    def test_every_form_of_an_array_gives_the_same_bits(self):
        data = group, X, y_true, score = make()
        expected = audit((group, X, y_true, score)).to_dict()
        wide = np.zeros((N, 9))
        wide[:, 2:7] = X
        twice = np.repeat(X, 2, axis=0)
        swapped = X.astype(X.dtype.newbyteorder())
        columns = {f"x{j + 1}": X[:, j] for j in range(5)}
        mixed = {**columns, "x1": X[:, 0].astype(np.int8), "x4": X[:, 3].astype(np.uint64)}
        mixed["x5"] = X[:, 4].astype(np.float32)
        forms = [
            np.asfortranarray(X),
            wide[:, 2:7],
            twice[::2],
            X[::-1].copy()[::-1],
            swapped,
            X.astype(object),
            X.tolist(),
            columns,
            mixed,
            {name: column.copy() for name, column in columns.items()},
            pd.DataFrame(columns),
            pl.DataFrame({name: column.copy() for name, column in columns.items()}),
        ]
        for form in forms:
            self.same(data, form, expected)

    def test_single_precision_and_truth_in_an_array_are_numbers(self):
        data = group, X, y_true, score = make()
        expected = audit((group, X, y_true, score)).to_dict()
        self.same(data, X.astype(np.float32), expected)
        marks = X[:, :2] > 0
        expected = audit((group, marks.astype(float), y_true, score)).to_dict()
        self.same(data, marks, expected)

    @pytest.mark.parametrize("seed", range(5))
    def test_no_order_of_rows_changes_a_bit(self, seed):
        group, X, y_true, score = make()
        X[:, 4] = np.exp(3 * X[:, 4])
        X[5, 4] = 1e12
        order = np.random.default_rng(seed).permutation(N)
        first = audit((group, X, y_true, score), n_threads=1)
        second = audit((group[order], X[order], y_true[order], score[order]), n_threads=2)
        assert first.to_dict() == second.to_dict()

    def test_other_rows_move_no_score(self):
        group, X, y_true, score = make()
        moved = X.copy()
        moved[np.flatnonzero(group == "other")[:3], 4] = [1e300, -1e300, 1e-300]
        first, second = (audit((group, value, y_true, score)) for value in (X, moved))
        assert repr(first.proxy_scores) == repr(second.proxy_scores)

    def test_what_native_code_saw_is_found_again(self):
        _, X, _, _ = make()
        coding, matrix = coded(X)
        again = pickle.loads(pickle.dumps(coding))
        assert np.array_equal(again.matrix(np.arange(N)), matrix)
        assert np.array_equal(again.native.ends, coding.native.ends, equal_nan=True)
