"""Means that are computed some rows at a time, and rows that are passed over where they lie."""

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.data import numbering
from fairaudit_rs.metrics import families

METRICS = ["mean_residual", "mean_absolute_error", "mean_squared_error", "log_loss"]
UNPOOLED = {"studentize": "unpooled"}


def make(n=400, groups=3):
    rng = np.random.default_rng(5)
    label = (rng.random(n) < 0.4).astype(np.int8)
    score = np.clip(rng.random(n), 0.01, 0.99)
    return label, score, rng.integers(0, groups, n)


def asked(metric, label, score, group, **options):
    options = {"n_resamples": 99, "rng": 3} | options
    return fa.permutation_test(
        label, y_score=score, sensitive_features=group, metric=metric, **options
    )


class TestKnownValues:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("design", ["plain", "strata", "clusters", "some groups"])
    def test_parts_give_the_bits_of_all_rows(self, metric, design, monkeypatch):
        label, score, group = make()
        options = {
            "plain": {},
            "strata": {"strata": np.arange(400) % 4},
            "clusters": {"clusters": 3 * (np.arange(400) // 6) + group},
            "some groups": {"groups": [2, 0]},
        }[design]
        monkeypatch.setattr(numbering, "_PART", 37)
        by_part = asked(metric, label, score, group, **options)
        monkeypatch.setattr(families, "is_of_one_row", lambda source: False)
        assert asked(metric, label, score, group, **options).to_dict() == by_part.to_dict()

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, ">i2", np.float32])
    def test_the_type_of_labels_does_not_matter(self, dtype):
        label, score, group = make()
        expected = asked("mean_squared_error", label.astype(np.int64), score, group).to_dict()
        assert asked("mean_squared_error", label.astype(dtype), score, group).to_dict() == expected
        assert asked("auc", label.astype(dtype), score, group, n_resamples=9).to_dict() == (
            asked("auc", label.astype(float), score, group, n_resamples=9).to_dict()
        )

    @pytest.mark.parametrize("strata", ["auto", None, np.arange(400) % 4])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_pair_of_groups_is_tested_as_alone(self, strata, weighted):
        """Rows of other groups are passed over where they lie."""
        label, score, group = make()
        weight = np.arange(400) % 3 + 1.0 if weighted else None
        options = {"strata": strata, "sample_weight": weight, "reference": 2}
        pair = asked("auc", label, score, group, **options).comparisons[1]
        inside = group != 0
        options = {
            name: value[inside] if isinstance(value, np.ndarray) else value
            for name, value in options.items()
        }
        alone = asked("auc", label[inside], score[inside], group[inside], **options)
        assert (pair.first, pair.second) == (1, 2)
        assert pair.statistic == alone.statistic
        assert pair.estimate == pytest.approx(alone.estimate, rel=1e-10)


class TestArguments:
    def test_what_is_not_finite_is_counted_in_all_parts(self, monkeypatch):
        label, score, group = make()
        monkeypatch.setattr(numbering, "_PART", 37)
        score[[50, 51, 390]] = 1e200
        with pytest.raises(errors.ArgumentError, match=r"shape \(400,\) with 3 values that are"):
            asked("mean_squared_error", label, score, group)
        score[[50, 51, 390]] = 1e60
        with pytest.raises(errors.ArgumentError, match=r"values of up to 1e\+120 in size"):
            asked("mean_squared_error", label, score, group)

    def test_parts_of_a_mean_are_as_many_values_as_units(self):
        units, call = _native.Units(np.arange(12, dtype=np.uint16) % 2, 2), _native.Call()
        x = np.linspace(0, 1, 12)
        mean = _native.PermutationTest.mean
        whole = _native.PermutationTest.ratio(x, None, units, call, **UNPOOLED)
        parts = mean(iter([x[:5], x[5:5], x[5:]]), units, call, **UNPOOLED)
        assert parts.evaluations == whole.evaluations
        for n, told in [(11, "of length 11"), (13, "of 13 values")]:
            with pytest.raises(errors.ArgumentError, match=told):
                mean([np.zeros(n)], units, call, **UNPOOLED)
        with pytest.raises(errors.ArgumentError, match="of 13 values"):
            mean(iter(lambda: np.zeros(1), None), units, call, **UNPOOLED)
        with pytest.raises(TypeError):
            mean([x.astype(np.float32)], units, call, **UNPOOLED)

    def test_places_go_with_rows_alone(self):
        group, call = np.arange(12, dtype=np.uint16) % 3, _native.Call()
        x, label = np.linspace(0, 1, 12), np.arange(12) % 4 > 1
        auc = _native.PermutationTest.auc
        rows = _native.Units(group, 2)
        places = np.array([1, 2, 0], dtype=np.uint16)
        some = auc(x, label, rows, call, **UNPOOLED, places=places)
        inside = group != 1
        units = _native.Units((group[inside] == 0).astype(np.uint16), 2)
        alone = auc(x[inside], label[inside], units, call, **UNPOOLED)
        assert some.evaluations == alone.evaluations
        with pytest.raises(errors.ArgumentError, match="group is 2 somewhere"):
            auc(x, label, rows, call, **UNPOOLED, places=places[:2])
        clusters = _native.Units(group, 2, of_row=np.arange(12, dtype=np.uint32))
        with pytest.raises(errors.ArgumentError, match="places is given with clusters"):
            auc(x, label, clusters, call, **UNPOOLED, places=places)
