"""`extreme_test`: bad input, pairs of groups, both nulls, means, and what is kept."""

import json
import math
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import errors

from ..reference import extremes as reference
from .designs import labels, people, pipeline


def scored(sizes=(500, 500), ends=(0.5, 0.3), seed=0):
    """Scores, flipped scores and groups, rows in a random order."""
    rng = np.random.default_rng(seed)
    names = np.repeat(list("abcdefgh")[: len(sizes)], sizes)
    end = np.repeat(ends, sizes)
    score = 0.4 * rng.random(len(names))
    order = rng.permutation(len(names))
    return {
        "y_score": score[order],
        "counterfactual_score": (score + end * rng.beta(2, 4, len(names)))[order],
        "sensitive_features": names[order],
    }


def of_differences(gain, group, score=0.0):
    score = np.broadcast_to(score, len(gain))
    return {
        "y_score": score,
        "counterfactual_score": score + gain,
        "sensitive_features": group,
    }


def test(**options):
    return fa.extreme_test(**{"horizon": 500, "rng": 1, **options})


test.__test__ = False


# -- Arguments: the bad input of the issue ---------------------------------------------------------


class TestBadInput:
    def test_fewer_rows_than_a_tail_needs(self):
        with pytest.raises(errors.NotMeasurableError, match="group 'a': 99 rows; a tail needs at"):
            test(**scored((99, 500)))
        with pytest.raises(errors.NotMeasurableError, match="12 rows"):
            test(**scored((12, 12)), horizon=20)

    def test_a_group_of_12_rows_beside_others(self):
        result = test(**scored((500, 12, 500), (0.5, 0.5, 0.3)))
        reasons = {
            (comparison.first, comparison.second): comparison.reason
            for comparison in result.comparisons
        }
        assert reasons["a", "c"] == ""
        assert reasons["a", "b"] == reasons["b", "c"] == "12 rows; a tail needs at least 100"
        assert any("b is not compared: 12 rows" in text for text in result.warnings)
        assert result.pvalue == result.clearest.pvalue
        assert result.clearest.second == "c"
        assert result.tails["b"].level(500).standing == "refused"
        assert math.isfinite(result.tails["b"].lower_free(500))
        assert math.isfinite(result.acd["b"].value)

    def test_a_small_group_does_not_limit_the_exceedances_of_others(self):
        result = test(**scored((500, 12, 500), (0.5, 0.5, 0.3)), n_exceedances=40)
        assert result.tails["a"].n_exceedances == 40
        with pytest.raises(errors.ArgumentError, match=r"n_exceedances is 300; .* from 15 to 199"):
            test(**scored((500, 200), (0.5, 0.3)), n_exceedances=300)

    def test_all_differences_equal(self):
        group = np.repeat(["a", "b"], 500)
        with pytest.raises(errors.NotMeasurableError, match=r"values are all 0\.125"):
            test(**of_differences(np.full(1_000, 0.125), group))
        # Where order statistics limit the level, equal ones are measured as equal.
        result = test(**of_differences(np.full(1_000, 0.125), group), horizon=100)
        assert (result.estimate, result.pvalue) == (0, 1)

    def test_a_model_that_ignores_the_attribute(self):
        frame = people(1_200)
        y = labels(frame)
        model = pipeline(frame.assign(sex="man"), y)
        wide = frame.assign(sex=frame.sex)

        def predict(X):
            return model.predict_proba(X.assign(sex="man"))[:, 1]

        with pytest.raises(errors.NotMeasurableError, match="the model ignores sex: no flip"):
            test(model=predict, X=wide, attribute="sex")

    def test_half_of_the_differences_are_zero(self):
        rng = np.random.default_rng(3)
        group = np.repeat(["a", "b"], 600)
        gain = np.where(rng.random(1_200) < 0.5, 0, 0.5 * rng.beta(2, 4, 1_200))
        result = test(**of_differences(gain, group))
        assert all(not tail.reason for tail in result.tails.values())
        most = np.where(rng.random(1_200) < 0.98, 0, gain)
        with pytest.raises(errors.NotMeasurableError, match="rows without a difference"):
            test(**of_differences(most, group))

    def test_a_horizon_of_hardly_more_than_one_row(self):
        with pytest.raises(errors.NotMeasurableError, match="below the threshold"):
            test(**scored(), horizon=1.0001)
        low, high = test(**scored(), horizon=1.1).confidence_interval
        assert low < high

    @pytest.mark.parametrize(("share", "m"), [(0.6, 2), (0.9, 5), (0.5, 1.5)])
    def test_levels_among_equal_differences(self, share, m):
        rng = np.random.default_rng(3)
        group = np.repeat(["a", "b"], 600)
        gain = np.where(rng.random(1_200) < share, 0, 0.5 * rng.beta(2, 4, 1_200))
        result = test(**of_differences(gain, group), horizon=m)
        assert result.ecd == 0
        assert result.pvalue > 0.05
        low, high = result.confidence_interval
        assert low <= 0 <= high
        assert math.copysign(1, low + 0.0) == (1 if low == 0 else -1)

    def test_mass_at_the_bound(self):
        rng = np.random.default_rng(3)
        group = np.repeat(["a", "b"], 600)
        gain = rng.beta(2, 4, 1_200)
        gain[::300] = 1.0
        result = test(**of_differences(gain, group))
        for tail in result.tails.values():
            assert tail.upper is None or tail.reason
        gain[::7] = 1.0
        with pytest.raises(errors.NotMeasurableError, match="largest values are all 1"):
            test(**of_differences(gain, group))
        assert test(**of_differences(gain, group), horizon=100).comparisons[0].estimate == 0

    def test_a_model_that_returns_no_number(self):
        frame = people(300)

        def broken(X):
            found = np.full(len(X), 0.5)
            found[7] = np.nan
            return found

        with pytest.raises(errors.FairAuditError, match=r"(?i)nan|finite"):
            test(model=broken, X=frame, attribute="sex", horizon=100)

    @pytest.mark.parametrize("bad", [-0.1, 1.2])
    @pytest.mark.parametrize("column", ["y_score", "counterfactual_score"])
    def test_probabilities_outside_of_0_to_1(self, bad, column):
        data = scored()
        data[column] = data[column].copy()
        data[column][17] = bad
        with pytest.raises(
            errors.DataError, match=rf"{column} is {bad:g} in row 17 and not from 0"
        ):
            test(**data)

    def test_other_scales_without_an_upper_end(self):
        data = scored()
        data = {**data, **{k: 10 * data[k] for k in ("y_score", "counterfactual_score")}}
        plain = test(**scored(), upper=None)
        assert test(**data, upper=None).ecd == pytest.approx(10 * plain.ecd, rel=1e-6)

    def test_an_attribute_that_is_no_feature(self):
        frame = people(300)
        with pytest.raises(errors.FairAuditError, match=r"(?s)attribute.*'gender'.*sex"):
            test(model=lambda X: np.zeros(len(X)), X=frame, attribute="gender")

    def test_a_horizon_beyond_the_rows(self):
        with pytest.raises(errors.NotMeasurableError) as raised:
            test(**scored((200, 200)), horizon=1e9)
        assert "a horizon of 1,000,000,000 is beyond 5 times the 200 rows" in str(raised.value)
        assert "the largest one is 1,000" in str(raised.value)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"null": "equal"}, errors.ArgumentError, "null is 'equal'; accepted: 'equal_levels'"),
            ({"horizon": 1}, errors.ArgumentError, "horizon is 1; accepted: a number of rows"),
            (
                {"horizon": math.nan},
                errors.ArgumentError,
                "horizon is nan; accepted: a number of rows",
            ),
            ({"horizon": None}, errors.ArgumentTypeError, "horizon is None"),
            ({"upper": "rows"}, errors.ArgumentError, "upper is 'rows'; accepted"),
            ({"upper": 0.2}, errors.DataError, r"row \d+ is 0.*above upper, 0.2"),
            ({"n_exceedances": 5}, errors.ArgumentError, "n_exceedances is 5"),
            ({"n_exceedances": "all"}, errors.ArgumentError, "n_exceedances is 'all'"),
            ({"groups": ["a"]}, errors.FairAuditError, "only one group"),
            ({"groups": ["a", "z"]}, errors.FairAuditError, "'z'"),
            ({"reference": "z"}, errors.FairAuditError, "reference names 'z'"),
            ({"n_resamples": 0}, errors.ArgumentError, "n_resamples is 0"),
            ({"confidence_level": 95}, errors.ArgumentError, "confidence_level is 95"),
            ({"rng": -1}, errors.FairAuditError, "rng is -1"),
            ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0"),
            ({"y_score": None}, errors.ArgumentError, "counterfactual_score needs y_score too"),
            ({"attribute": "sex"}, errors.ArgumentTypeError, "attribute cannot be combined wi"),
            ({"flip": "a"}, errors.ArgumentTypeError, "flip cannot be combined with y_score"),
            ({"counterfactual_score": np.zeros(3)}, errors.DataError, r"rows|length"),
        ],
    )
    def test_arguments_that_are_refused(self, options, error, message):
        with pytest.raises(error, match=message):
            test(**{**scored(), **options})


# -- Known values ----------------------------------------------------------------------------------


def test_all_pairs_and_the_reference():
    data = scored((500, 400, 600), (0.5, 0.4, 0.3))
    everyone = test(**data)
    assert [(comparison.first, comparison.second) for comparison in everyone.comparisons] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    to_b = test(**data, reference="b")
    assert {(comparison.first, comparison.second) for comparison in to_b.comparisons} == {
        ("a", "b"),
        ("c", "b"),
    }
    swapped = {
        (comparison.first, comparison.second): comparison for comparison in to_b.comparisons
    }["c", "b"]
    plain = everyone.comparisons[2]
    assert swapped.estimate == -plain.estimate
    assert (swapped.low, swapped.high) == pytest.approx((-plain.high, -plain.low), rel=1e-6)
    assert swapped.pvalue == pytest.approx(plain.pvalue, rel=1e-6)
    two = test(**data, groups=["a", "c"])
    assert two.estimate == everyone.comparisons[1].estimate
    assert set(two.tails) == {"a", "c"}
    assert two.n_rows == 1_100


def test_pvalues_of_pairs_are_those_of_holm():
    result = test(**scored((500,) * 4, (0.35, 0.33, 0.32, 0.3)))
    raw = [comparison.pvalue for comparison in result.comparisons]
    order = np.argsort(raw)
    holm = np.maximum.accumulate(np.array(raw)[order] * (6 - np.arange(6)))
    found = np.array([comparison.adjusted_pvalue for comparison in result.comparisons])
    np.testing.assert_allclose(found[order], np.minimum(holm, 1))
    assert result.pvalue == found.min()


def test_the_interval_of_the_clearest_difference_is_that_of_all_pairs():
    data = scored((500,) * 3, (0.5, 0.4, 0.3))
    result = test(**data)
    pair = [result.clearest.first, result.clearest.second]
    alone = test(**data, groups=pair, confidence_level=1 - 0.05 / 3)
    assert result.confidence_interval == alone.confidence_interval
    assert result.confidence_interval[0] < result.clearest.low


def test_an_unmeasurable_pair_does_not_count_among_the_others():
    both = test(**scored((500, 12, 500), (0.5, 0.5, 0.3)))
    [pair] = [comparison for comparison in both.comparisons if not comparison.reason]
    assert both.confidence_interval == (pair.low, pair.high)
    assert pair.adjusted_pvalue == pair.pvalue


def test_means_of_groups():
    data = scored()
    c = reference.discrimination(data["y_score"], data["counterfactual_score"])
    result = test(**data)
    for name in "ab":
        mine = c[data["sensitive_features"] == name]
        assert result.acd[name].value == pytest.approx(reference.acd(mine))
        assert result.acd[name].standard_error == pytest.approx(stats.sem(mine))
        assert result.cvar[name].value == pytest.approx(reference.cvar(mine))


def test_each_row_has_its_own_room():
    data = scored()
    data["y_score"] = data["y_score"].copy()
    full = np.flatnonzero(data["sensitive_features"] == "a")[:3]
    data["y_score"][full] = data["counterfactual_score"][full] = 1.0
    result = test(**data, upper="row")
    assert result.n_no_room == {"a": 3}
    assert result.tails["a"].n == 497
    mine = data["sensitive_features"] == "b"
    c = reference.discrimination(data["y_score"], data["counterfactual_score"])[mine]
    share, none = reference.row_shares(c, 1 - data["y_score"][mine])
    assert none == 0
    meant = reference.fitted_level(share, 500, reference.default_k(500), 1.0)
    assert result.tails["b"].level(500).fitted == pytest.approx(meant, rel=1e-6)
    assert any("share of each row's own room" in text for text in result.warnings)


def test_order_statistics_stand_first_with_the_fit_beside():
    result = test(**scored((600, 800)), horizon=150)
    [pair] = result.comparisons
    assert pair.method == "order statistics"
    assert math.isfinite(pair.fitted_pvalue)
    mixed = test(**scored((300, 800)), horizon=150).comparisons[0]
    assert mixed.method == "fit and order statistics"
    assert test(**scored(), horizon=500).comparisons[0].method == "fit"


# -- Reference -------------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [1.0, None])
def test_levels_and_the_test_of_a_pair(upper):
    data = scored((400, 300), (0.35, 0.3))
    result = test(**data, upper=upper, horizon=400)
    c = reference.discrimination(data["y_score"], data["counterfactual_score"])
    curves = []
    for name, n in (("a", 400), ("b", 300)):
        k = reference.default_k(n)
        cuts = fa._native.Cuts.of_level(k, float(n), 400.0)
        mine = c[data["sensitive_features"] == name]
        curves.append(reference.curve(mine, 400, cuts.values, upper=upper))
        low, high = reference.return_level_interval(curves[-1])
        found = result.tails[name].level(400)
        assert (found.low, found.high) == pytest.approx((low, high), abs=2e-4 * (high - low))
    assert result.ecd == pytest.approx(reference.ecd(*curves), abs=1e-7)
    least, p = reference.equal_levels_test(*curves)
    assert result.clearest.statistic == pytest.approx(least, abs=2e-3)
    assert result.pvalue == pytest.approx(max(p, 1e-3), abs=1e-3)


def test_equal_laws_by_permuting_rows():
    data = scored((200, 150), (0.3, 0.3), seed=4)
    result = test(**data, null="equal_laws", horizon=150, n_resamples=999)
    c = reference.discrimination(data["y_score"], data["counterfactual_score"])
    groups = [c[data["sensitive_features"] == name] for name in "ab"]
    observed, p = reference.equal_laws_test(*groups, 150, n_permutations=299, upper=1.0)
    assert result.clearest.statistic == pytest.approx(observed, abs=1e-7)
    spread = math.sqrt(p * (1 - p) * (1 / 299 + 1 / 999))
    assert abs(result.pvalue - p) < 4.9 * spread + 1 / 299
    assert round(result.pvalue * 1_000) == pytest.approx(result.pvalue * 1_000)


# -- Properties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"upper": None}, {"upper": "row"}, {"null": "equal_laws"}])
def test_any_order_of_rows_and_any_number_of_threads(options):
    data = scored((500, 400, 300), (0.5, 0.4, 0.3))
    data["counterfactual_score"][::3] = np.round(data["counterfactual_score"][::3], 2)
    backwards = {name: column[::-1] for name, column in data.items()}
    first = test(**data, **options, n_threads=1)
    second = test(**backwards, **options, n_threads=2)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def test_a_model_in_any_order_of_rows():
    frame = people(700)
    model = pipeline(frame, labels(frame))
    first = test(model=model, X=frame, attribute="race")
    order = np.random.default_rng(2).permutation(len(frame))
    second = test(model=model, X=frame.iloc[order].reset_index(drop=True), attribute="race")
    assert first.to_dict() == second.to_dict()


def test_a_frame_says_the_same_as_arrays(tmp_path):
    data = scored()
    frame = pl.DataFrame(
        {"s": data["y_score"], "t": data["counterfactual_score"], "g": data["sensitive_features"]}
    )
    frame.write_parquet(tmp_path / "data.parquet")
    columns = {"y_score": "s", "counterfactual_score": "t", "sensitive_features": "g"}
    plain = test(**{**data, "sensitive_features": {"g": data["sensitive_features"]}})
    for source in (frame, frame.to_pandas(), tmp_path / "data.parquet"):
        assert test(**columns, data=source) == plain


def test_copies_json_and_frames():
    result = test(**scored((500, 12, 400), (0.5, 0.4, 0.3)), null="equal_laws", n_resamples=99)
    other = pickle.loads(pickle.dumps(result))
    assert other == result
    assert hash(other) == hash(result)
    assert other.return_levels.equals(result.return_levels, null_equal=True)
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(content["tails"]) == {"a", "b", "c"}
    assert content["seed"] == 1
    assert result.return_levels.height == 18
    assert result.to_frame().height == 3
    assert result != test(**scored((500, 12, 400), (0.5, 0.4, 0.3)), n_resamples=99)


@pytest.mark.parametrize("kind", ["return_level", "qq", "density", "stability"])
def test_pictures_of_all_groups(kind):
    vl_convert = pytest.importorskip("vl_convert")
    spec = test(**scored((500, 12, 400), (0.5, 0.4, 0.3))).plot(kind).spec
    json.dumps(spec, allow_nan=False)
    assert "<svg" in vl_convert.vegalite_to_svg(spec)


def test_another_seed_moves_permutations_alone():
    data = scored(ends=(0.3, 0.3))
    first, second = (test(**data, null="equal_laws", rng=seed) for seed in (1, 2))
    assert first.pvalue != second.pvalue
    assert first.estimate == second.estimate
    assert test(**data).pvalue == test(**data, rng=5).pvalue


def test_progress_counts_to_the_end():
    seen = []
    test(
        **scored((300,) * 3, (0.3,) * 3), null="equal_laws", n_resamples=200,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen[-1] == (600, 600)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_nothing_is_warned_of_by_python():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = test(**scored((120, 130)), horizon=400)
    assert any("with so few rows in a (120), b (130)" in text for text in result.warnings)
    assert any("are extrapolated" in text for text in result.warnings)


@pytest.mark.calibration
def test_equal_levels_are_rejected_as_often_as_promised():
    """beta(2, 4) against itself in other numbers, 500 and 100 rows, m = 400: 5 %; a doubled level
    is found."""
    n, rejected, found = 300, 0, 0
    rng = np.random.default_rng(12)
    for _ in range(n):
        first, second = rng.beta(2, 4, 500), rng.beta(2, 4, 100)
        group = np.repeat(["a", "b"], [500, 100])
        c = np.concatenate([first, second])
        rejected += test(**of_differences(c, group), horizon=400).pvalue <= 0.05
        unlike = np.concatenate([first, 0.5 * second])
        found += test(**of_differences(unlike, group), horizon=400).pvalue <= 0.05
    band = stats.binom(n, 0.065).ppf(1 - 1e-6)
    assert rejected <= band < found
