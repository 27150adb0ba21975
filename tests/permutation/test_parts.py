"""Means that are computed some rows at a time, and rows that are passed over where they lie."""

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors
from fairaudit_rs.data import columns as data_columns
from fairaudit_rs.data import integer_codes
from fairaudit_rs.data.groups import choose_groups
from fairaudit_rs.data.mixed_clusters import resolve_mixed_clusters
from fairaudit_rs.data.tables import AuditTable
from fairaudit_rs.extremes import distinct_rows
from fairaudit_rs.extremes.feature_tables import wrap_features
from fairaudit_rs.individual import attack, sample, simplex
from fairaudit_rs.metrics import families
from fairaudit_rs.permutation import rows as row_problems

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
        monkeypatch.setattr(integer_codes, "_BLOCK_ROWS", 37)
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
        monkeypatch.setattr(integer_codes, "_BLOCK_ROWS", 37)
        score[[50, 51, 390]] = 1e200
        with pytest.raises(errors.ArgumentError, match=r"shape \(400,\) with 3 values that are"):
            asked("mean_squared_error", label, score, group)
        score[[50, 51, 390]] = 1e60
        with pytest.raises(errors.ArgumentError, match=r"absolute values of up to 1e\+120"):
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


#: Where a column of rows can be cut into 1, 2 and 3 parts.
N_PARTS = (1, 2, 3)


def size_of(n, n_parts):
    """Return the rows of a part."""
    return -(-n // n_parts)


class TestNumberOfParts:
    """A result does not depend on the number of parts, nor on the order of the rows."""

    @staticmethod
    def in_parts(monkeypatch, where, name, n, compute):
        found = []
        for n_parts in N_PARTS:
            monkeypatch.setattr(where, name, size_of(n, n_parts))
            found.append(compute())
        return found

    @pytest.mark.parametrize("metric", [*METRICS, "mean_prediction"])
    @pytest.mark.parametrize("ordered", ["ascending", "descending", "shuffled"])
    def test_known_ranges_hold_all_rows(self, metric, ordered, monkeypatch):
        label, score, _ = make()
        order = np.argsort(score)
        order = {"ascending": order, "descending": order[::-1], "shuffled": slice(None)}[ordered]
        columns = {"y_true": label[order].astype(float), "y_score": score[order]}
        kind = fa.metrics.get(metric).kind
        low, high = {
            "mean_residual": (-score.max(), 1 - score.min()),
            "log_loss": (0.0, -np.log(min(score.min(), 1 - score.max()))),
        }.get(metric, (0.0, 1.0))
        for found in self.in_parts(
            monkeypatch, integer_codes, "_BLOCK_ROWS", 400, lambda: kind.bounds(columns)
        ):
            assert found == (low, high)
        columns["y_score"] = np.append(columns["y_score"][:-1], 2.0)
        for found in self.in_parts(
            monkeypatch, integer_codes, "_BLOCK_ROWS", 400, lambda: kind.bounds(columns)
        ):
            assert found is None

    def test_no_rows_have_no_range(self):
        columns = {"y_true": np.zeros(0), "y_score": np.zeros(0)}
        assert fa.metrics.get("mean_residual").kind.bounds(columns) is None

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("ordered", ["ascending", "shuffled"])
    def test_answers_are_the_same(self, metric, ordered, monkeypatch):
        """Few events in a group: its limits know the range of all rows."""
        rng = np.random.default_rng(2)
        score = np.clip(rng.beta(0.5, 9.5, 300), 0.001, 0.97)
        label = (rng.random(300) < score).astype(np.int8)
        group = np.where(rng.random(300) < 0.1, "small", "large")
        order = np.argsort(score, kind="stable")
        if ordered == "ascending":
            label, score, group = label[order], score[order], group[order]
        options = {"sensitive_features": group, "metric": metric, "n_resamples": 99, "rng": 1}

        def answers():
            return [
                fa.permutation_test(label, y_score=score, **options).to_dict(),
                fa.intervals(label, y_score=score, **options).to_dict(),
                fa.equivalence_test(label, y_score=score, margin=0.1, **options).to_dict(),
            ]

        first, *others = self.in_parts(monkeypatch, integer_codes, "_BLOCK_ROWS", 300, answers)
        for other in others:
            assert other == first

    @pytest.mark.parametrize("kind", ["whole", "large", "float", "text"])
    @pytest.mark.parametrize("ordered", [True, False])
    def test_numbers_of_values(self, kind, ordered, monkeypatch):
        rng = np.random.default_rng(3)
        values = rng.integers(0, 40, 200)
        values = {
            "whole": values,
            "large": values * 10**12,
            "float": np.where(values == 7, np.nan, values / 3),
            "text": values.astype(str),
        }[kind]
        values = np.sort(values) if ordered else values
        distinct_values, expected = np.unique(values, return_inverse=True)
        for codes, n in self.in_parts(
            monkeypatch,
            integer_codes,
            "_BLOCK_ROWS",
            200,
            lambda: integer_codes.number_values(values),
        ):
            assert n == len(distinct_values)
            assert codes.tolist() == expected.ravel().tolist()

    def test_codes_of_units(self, monkeypatch):
        rng = np.random.default_rng(4)
        unit = rng.integers(0, 30, 200).astype(np.uint32)
        codes = (unit % 7).astype(np.int64)
        codes[190] += 1

        def compute():
            of_units = integer_codes.codes_by_unit(codes, unit, 30)
            return of_units.tolist(), integer_codes.differing_rows(codes, unit, of_units).tolist()

        first, *others = self.in_parts(monkeypatch, integer_codes, "_BLOCK_ROWS", 200, compute)
        assert others == [first, first]
        assert sum(first[1]) > 0

    def test_clusters_of_several_groups(self, monkeypatch):
        rng = np.random.default_rng(5)
        group, cluster = rng.integers(0, 3, 90), np.arange(90) // 6
        table = AuditTable.make(y_pred=group > 0, sensitive_features=group, clusters=cluster)
        metric = fa.metrics.get("selection_rate")

        def compute():
            rows = table.rows(columns=metric.needs, binary=True, needed_by=metric.name)
            return resolve_mixed_clusters(rows, choose_groups(rows.cells, None, None), "drop", str)

        first, *others = self.in_parts(monkeypatch, integer_codes, "_BLOCK_ROWS", 90, compute)
        for other in others:
            assert other.notes == first.notes
            assert np.array_equal(other.keep, first.keep)

    def test_values_out_of_their_range(self, monkeypatch):
        cost = fa.metrics.ratio_metric("cost", "cost", bounds=(0, 10))
        columns = {"cost": np.append(np.zeros(99), 11.0)}

        def compute():
            with pytest.raises(errors.ArgumentError, match="cost is 11 in row 99"):
                cost.kind.row_values(columns, 100, None)

        self.in_parts(monkeypatch, integer_codes, "_BLOCK_ROWS", 100, compute)

    def test_values_that_are_not_finite(self, monkeypatch):
        values = np.zeros(100)
        values[[31, 60, 99]] = np.nan, np.inf, -np.inf

        def compute():
            return data_columns.count_not_finite(values)

        assert (
            self.in_parts(monkeypatch, data_columns, "_BLOCK_ROWS", 100, compute) == [(3, 31)] * 3
        )

    @pytest.mark.parametrize("metric", ["f1", "auc"])
    def test_the_smallest_count_of_a_group(self, metric, monkeypatch):
        label, score, group = make(90)

        def compute():
            options = {"y_score": score} if metric == "auc" else {"y_pred": score > 0.5}
            return fa.permutation_test(
                label,
                **options,
                sensitive_features=group,
                sample_weight=1.0 + label,
                metric=metric,
                n_resamples=9,
                rng=1,
            ).warnings

        first, *others = self.in_parts(monkeypatch, row_problems, "_BLOCK_ROWS", 90, compute)
        assert others == [first, first]

    def test_rows_that_are_alike(self, monkeypatch):
        rng = np.random.default_rng(6)
        rows = rng.integers(0, 3, (120, 3)).astype(float)
        form = wrap_features(rows)

        def compute():
            return distinct_rows.find_distinct_rows([form], np.arange(120)).distinct_of_row.tolist()

        first, *others = self.in_parts(monkeypatch, distinct_rows, "_CHUNK_ROWS", 120, compute)
        assert others == [first, first]

    def test_columns_that_are_coded_one_hot(self, monkeypatch):
        rng = np.random.default_rng(7)
        rows = np.column_stack([np.eye(3)[rng.integers(0, 3, 90)], rng.random(90)])

        def compute():
            return simplex.found_groups(rows)

        assert self.in_parts(monkeypatch, simplex, "_BLOCK_ROWS", 90, compute) == [((0, 1, 2),)] * 3
        rows[89, 0] = 1 - rows[89, 0]
        assert self.in_parts(monkeypatch, simplex, "_BLOCK_ROWS", 90, compute) == [()] * 3

    def test_rows_that_leave_their_simplex(self, monkeypatch):
        """The farthest row stands in the first of the parts."""
        rows = np.tile([1.0, 0.0, 0.5], (90, 1))
        moved = np.zeros((1, 90))
        moved[0, [5, 50]] = 0.7, 0.3
        flow = attack.Attack(
            rows=rows, moved=moved, parts=np.array([[1.0, -1.0, 0.0]]), feature_names=None
        )

        def compute():
            return simplex.find_departure(flow, ((0, 1),), ["up", "down", "x"])

        for name in ("_BLOCK_ROWS", "_BLOCK"):
            first, *others = self.in_parts(monkeypatch, simplex, name, 90, compute)
            assert "2 of 90 rows: up becomes 1.7" in first.text
            assert others == [first, first]

    def test_sums_of_features(self, monkeypatch):
        rng = np.random.default_rng(8)
        rows = rng.integers(0, 9, (90, 2)).astype(float)

        def compute():
            return sample._perhaps_repeated(rows).tolist()

        first, *others = self.in_parts(monkeypatch, sample, "_BLOCK", 90, compute)
        assert others == [first, first]
