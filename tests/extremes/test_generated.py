"""extreme_test with generated rows: the model is asked of them, and they stand apart."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairaudit_rs as fa
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError


def rows(n=1_200, seed=0):
    rng = np.random.default_rng(seed)
    woman = (rng.random(n) < 0.5).astype(float)
    return {"woman": woman, "tenure": rng.gamma(2.0, 2.0, n), "part_time": rng.integers(0, 2, n)}


def model(X):
    tenure = np.asarray(X["tenure"], dtype=float)
    harm = np.asarray(X["woman"]) * 0.4 * np.exp(-tenure / 3) * (1 + np.asarray(X["part_time"]))
    return 1 / (1 + np.exp(-(0.25 * tenure - harm)))


def ask(X, **options):
    given = {"generator": "bootstrap", "n_resamples": 5, "horizon": 500, "rng": 1, **options}
    return fa.extreme_test(model, X, attribute="woman", **given)


class TestArguments:
    def test_scores_alone_have_no_generated_rows(self):
        score = np.linspace(0, 0.5, 400)
        with pytest.raises(ArgumentError, match="generator needs model and X"):
            fa.extreme_test(
                y_score=score,
                counterfactual_score=score + 0.1,
                sensitive_features=np.arange(400) % 2,
                generator="bootstrap",
            )

    def test_what_is_flipped_must_be_said(self):
        X = rows()
        with pytest.raises(ArgumentError, match="generator needs attribute="):
            fa.extreme_test(
                model,
                X,
                flip=lambda X, levels: {**X, "woman": 1 - X["woman"]},
                sensitive_features=X["woman"],
                generator="bootstrap",
            )

    def test_row_bounds_are_refused(self):
        with pytest.raises(ArgumentError, match="generator cannot be combined with upper='row'"):
            ask(rows(), upper="row")

    @pytest.mark.parametrize("generator", ["gan", 3, dict])
    def test_what_is_no_generator_is_refused(self, generator):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="generator is"):
            ask(rows(), generator=generator)


class TestKnownValues:
    def test_generated_rows_change_no_number_of_the_real_ones(self):
        X = rows()
        plain, more = ask(X, generator=None), ask(X)
        assert plain.augmented == {}
        assert plain.comparisons == more.comparisons
        assert plain.return_levels.equals(more.return_levels, null_equal=True)
        assert set(more.augmented) == {0, 1}
        assert any("stand apart" in text for text in more.warnings)

    def test_the_real_tail_is_the_fitted_one(self):
        result = ask(rows())
        for group, found in result.augmented.items():
            tail = result.tails[group]
            assert found.n_real == tail.n
            assert found.real.threshold == tail.threshold
            assert found.real.shape == tail.shape
            assert found.real.return_level == pytest.approx(tail.level(500).fitted, rel=1e-12)

    def test_a_generator_that_repeats_rows_shifts_nothing(self):
        class Same:
            def fit(self, X, rng=None):
                self.X = X
                return self

            def sample(self, n, rng=None):
                return {name: np.asarray(column)[:n] for name, column in self.X.items()}

        found = ask(rows(), generator=Same(), n_resamples=1).augmented[1]
        # Every row twice: the same upper values, each of them twice.
        assert found.augmented.return_level == pytest.approx(found.real.return_level, abs=0.02)


class TestProperties:
    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_frames_of_all_kinds_are_asked_alike(self, kind):
        X = rows()
        ours, theirs = ask(X), ask(kind(X))
        for group in (0, 1):
            assert ours.augmented[group].augmented == theirs.augmented[group].augmented

    def test_the_order_of_rows_plays_no_part(self):
        X = rows()
        order = np.random.default_rng(3).permutation(len(X["woman"]))
        turned = {name: column[order] for name, column in X.items()}
        assert ask(X).augmented == ask(turned).augmented

    def test_networks_are_fitted_anew_less_often(self):
        from fairaudit_rs.extremes.generated_tails import count_refits, top_ups_of

        assert count_refits(top_ups_of("tvae"), 999) == 19
        assert count_refits(top_ups_of(fa.TVAE()), 999) == 19
        assert count_refits(top_ups_of("copula"), 999) == 99
        assert count_refits(top_ups_of("copula"), 7) == 7
