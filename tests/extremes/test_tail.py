"""`fit_tail`: arguments, what stands behind a level, words, pictures, what is kept."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors
from fairaudit_rs.extremes.tail import HORIZONS, PICTURES

from ..reference import extremes as reference


def sample(n=500, seed=0):
    return np.random.default_rng(seed).beta(2, 4, n)


def on_grid(n=1_000, step=0.01, seed=0):
    return np.round(sample(n, seed) / step) * step


# -- Arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_exceedances": "few"}, errors.ArgumentError, "n_exceedances is 'few'; accepted"),
        ({"n_exceedances": 14}, errors.ArgumentError, "n_exceedances is 14; .* from 15 to 499"),
        ({"n_exceedances": 500}, errors.ArgumentError, "n_exceedances is 500; .* from 15 to 499"),
        ({"n_exceedances": 20.5}, errors.ArgumentTypeError, "n_exceedances is 20.5; .*whole"),
        ({"n_exceedances": 30, "threshold": 0.5}, errors.ArgumentError, "n_exceedances and thresh"),
        ({"threshold": math.nan}, errors.ArgumentError, "threshold is nan; accepted: a finite"),
        ({"threshold": "high"}, errors.ArgumentTypeError, "threshold is 'high'"),
        ({"threshold": 0.99}, errors.NotMeasurableError, "threshold is 0.99, and 0 rows exceed it"),
        ({"method": "weibull"}, errors.ArgumentError, "method is 'weibull'; accepted: 'gpd'"),
        ({"upper": 0.5}, errors.DataError, "values has .*, above upper, 0.5. Pass"),
        ({"upper": 0.0}, errors.ArgumentError, "upper is 0"),
        ({"upper": math.inf}, errors.ArgumentError, "upper is inf"),
        ({"upper": "row"}, errors.ArgumentTypeError, "upper is 'row'"),
        ({"resolution": "fine"}, errors.ArgumentError, "resolution is 'fine'; accepted: 'auto'"),
        ({"resolution": 0}, errors.ArgumentError, "resolution is 0"),
        ({"blocks": np.zeros(500)}, errors.ArgumentError, "blocks applies to method='gev'"),
        ({"block_size": 10}, errors.ArgumentError, "block_size applies to method='gev' or"),
        ({"method": "point_process", "block_size": 1}, errors.ArgumentError, "block_size is 1; "),
        ({"method": "gev", "threshold": 0.5}, errors.ArgumentError, "threshold does not apply to"),
        ({"method": "gev", "upper": 1.0}, errors.ArgumentError, "upper does not apply to method="),
        ({"method": "gev", "n_exceedances": 20}, errors.ArgumentError, "n_exceedances does not ap"),
        ({"confidence_level": 95}, errors.ArgumentError, "confidence_level is 95"),
        ({"confidence_level": 1.0}, errors.ArgumentError, "confidence_level is 1"),
        ({"n_threads": 0}, errors.ArgumentError, "n_threads is 0"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        fa.fit_tail(sample(), **options)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (sample(99), errors.NotMeasurableError, "values has 99 rows; a tail needs at least 100"),
        (
            np.full(200, 0.25),
            errors.NotMeasurableError,
            "all 200 values are 0.25: there is no",
        ),
        (
            np.append(sample(), np.nan),
            errors.ArgumentError,
            "values has missing or infinite entries",
        ),
        (
            np.append(sample(), -np.inf),
            errors.ArgumentError,
            "values has missing or infinite entries",
        ),
        (sample().reshape(-1, 2), errors.ArgumentError, r"values has shape \(250, 2\)"),
        ([], errors.ArgumentError, "values has shape"),
        (["a", "b"], errors.ArgumentTypeError, "values is not an array of numbers"),
    ],
)
def test_values_that_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        fa.fit_tail(values)


@pytest.mark.parametrize("m", [1, 0.5, -3, math.nan, math.inf, "all"])
@pytest.mark.parametrize("ask", ["level", "return_level", "lower_free", "stability"])
def test_horizons_that_are_refused(ask, m):
    with pytest.raises(errors.FairAuditError, match=r"m is .*; accepted: a"):
        getattr(fa.fit_tail(sample()), ask)(m)


def test_pictures_that_are_refused():
    with pytest.raises(errors.ArgumentError, match="kind is 'pie'; accepted: 'qq'"):
        fa.fit_tail(sample()).plot("pie")
    few = fa.fit_tail(np.append(np.zeros(500), sample(10)))
    assert few.reason
    with pytest.raises(errors.ArgumentError, match="kind is 'qq', which needs a fit"):
        few.plot("qq")


# -- Known values ----------------------------------------------------------------------------------


def test_what_stands_behind_a_level():
    tail = fa.fit_tail(sample(500), upper=1.0)
    standings = {m: tail.level(m).standing for m in (2, 100, 136, 137, 2_500, 2_501, 1e9)}
    assert standings == {
        2: "measured", 100: "measured", 136: "measured", 137: "extrapolated",
        2_500: "extrapolated", 2_501: "refused", 1e9: "refused",
    }  # fmt: skip
    assert tail.largest_horizon == 2_500
    refused = tail.level(1e9)
    assert "a horizon of 1,000,000,000 is beyond 5 times the 500 rows" in refused.reason
    assert "the largest one is 2,500" in refused.reason
    assert math.isnan(refused.value)
    assert refused.at_least == refused.lower_free
    assert [level.horizon for level in tail.return_levels] == list(HORIZONS)
    assert tail.return_level(100)[1:] == reference.order_interval(sample(500), 100)


def test_the_upper_limit_is_not_below_the_largest_where_rows_nearly_suffice():
    for seed in range(20):
        c = sample(500, seed)
        tail = fa.fit_tail(c, upper=1.0)
        assert tail.level(160).high >= c.max()
        assert tail.level(160).low == tail.level(160).fitted_low


def test_half_as_many_exceedances_stand_beside():
    c = sample(2_000)
    tail, half = fa.fit_tail(c, upper=1.0), fa.fit_tail(c, upper=1.0, n_exceedances=39)
    assert tail.n_exceedances == 78
    found, beside = tail.level(2_000), half.level(2_000)
    assert (found.half, found.half_low, found.half_high) == (
        beside.fitted, beside.fitted_low, beside.fitted_high,
    )  # fmt: skip
    assert math.isnan(fa.fit_tail(c, n_exceedances=15).level(2_000).half)


def test_types_by_the_interval_of_the_shape():
    rng = np.random.default_rng(5)
    heavy, light = rng.pareto(1.2, 5_000), rng.random(5_000)
    assert fa.fit_tail(heavy).type == "II"
    assert fa.fit_tail(heavy).feasible is False
    assert fa.fit_tail(light).type == "III"
    assert fa.fit_tail(light).endpoint < 1.01
    exponential = fa.fit_tail(rng.standard_exponential(5_000))
    assert exponential.type == "I"
    assert exponential.feasible is None
    assert "is not known" in exponential.feasibility()
    assert fa.fit_tail(light).feasible is True
    assert "No guarantee is feasible" in fa.fit_tail(heavy).feasibility()
    assert "type III in the limit" in fa.fit_tail(light, upper=1.0).feasibility()


def test_a_point_process_is_the_same_fit():
    c = sample(2_000)
    plain = fa.fit_tail(c, upper=1.0)
    other = fa.fit_tail(c, upper=1.0, method="point_process", block_size=500)
    mu, scale, xi = reference.gev_of_gpd(
        plain.location, plain.shape, plain.scale, 500 * plain.n_exceedances / 2_000
    )
    assert (other.location, other.scale, other.shape) == pytest.approx((mu, scale, xi))
    assert other.level(500) == plain.level(500)


def test_a_threshold_is_the_order_statistic_below():
    c = sample(500)
    at = np.sort(c)[-41]
    over, by_rank = fa.fit_tail(c, threshold=at), fa.fit_tail(c, n_exceedances=40)
    assert (over.shape, over.n_exceedances) == (by_rank.shape, 40)
    assert over.return_level(1_000) == by_rank.return_level(1_000)


def test_scores_on_a_grid():
    tail = fa.fit_tail(on_grid())
    assert tail.resolution == pytest.approx(0.01)
    assert not tail.reason
    assert any("grid of 0.01" in text for text in tail.warnings)
    assert fa.fit_tail(on_grid(), resolution=None).resolution is None
    # Cells need five values that differ.
    few = fa.fit_tail(on_grid(step=0.2))
    assert "values above the threshold differ; a fit needs at least 5" in few.reason
    assert math.isnan(few.shape)
    assert few.type == ""
    assert few.feasible is None
    assert few.level(100).standing == "measured"
    assert few.level(1_000).standing == "refused"
    assert "order statistics alone" in few.summary()


def test_values_at_the_upper_end():
    c = sample(500)
    c[:20] = 1.0
    tail = fa.fit_tail(c, upper=1.0)
    assert any("20 values are at the upper end" in text for text in tail.warnings) or tail.reason
    assert tail.upper is None or tail.reason


def test_zeros_at_the_threshold():
    c = np.append(np.zeros(950), sample(50))
    tail = fa.fit_tail(c, upper=1.0)
    assert "the threshold lies at the 950 rows without a difference" in tail.reason
    assert tail.level(100).standing == "measured"
    assert tail.lower_free(100) == reference.lower_free(c, 100)


# -- Reference -------------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [None, 1.0])
@pytest.mark.parametrize("m", [150, 500, 2_000])
def test_levels_against_the_reference(upper, m):
    c = sample(500, 3)
    tail = fa.fit_tail(c, upper=upper)
    k = reference.default_k(500)
    assert tail.n_exceedances == k
    assert tail.level(m).fitted == pytest.approx(reference.fitted_level(c, m, k, upper), rel=1e-6)
    assert tail.lower_free(m) == reference.lower_free(c, m)
    assert tail.level(m).standing == reference.standing(500, m)
    low = tail.level(m).fitted_low
    assert tail.level(m).at_least == pytest.approx(reference.at_least(low, c, m))


def test_stability_against_the_reference():
    c = sample(300, 2)
    rows = fa.fit_tail(c, upper=1.0).stability(300)
    meant = reference.stability(c, 300, [row.n_exceedances for row in rows], 1.0)
    np.testing.assert_allclose([row.shape for row in rows], meant[:, 2], atol=1e-5)


# -- Properties ------------------------------------------------------------------------------------


def test_equal_results_and_others():
    c = sample()
    tail = fa.fit_tail(c, upper=1.0)
    assert tail == fa.fit_tail(c[::-1], upper=1.0, n_threads=1)
    assert hash(tail) == hash(fa.fit_tail(c[::-1], upper=1.0))
    assert tail != fa.fit_tail(c, upper=1.0, confidence_level=0.9)
    assert tail != fa.fit_tail(sample(seed=1), upper=1.0)
    assert tail != 3


@pytest.mark.parametrize("values", [sample(), on_grid(), np.append(np.zeros(500), sample(10))])
def test_copies_say_the_same(values):
    tail = fa.fit_tail(values, upper=2.0)
    tail.level(300)
    for other in (pickle.loads(pickle.dumps(tail)), copy.deepcopy(tail)):
        assert other == tail
        assert other.level(300) == tail.level(300) or math.isnan(tail.level(300).value)
        assert other.to_dict() == tail.to_dict()


def test_json_is_strict():
    tail = fa.fit_tail(sample(), upper=1.0)
    text = json.dumps(tail.to_dict(), allow_nan=False)
    content = json.loads(text)
    assert content["kind"] == "TailFit"
    assert "problem" not in content
    assert [row["horizon"] for row in content["return_levels"]] == list(HORIZONS)
    assert content["return_levels"][-1]["value"] is None
    assert content["goodness_of_fit"]["pvalue"] == tail.goodness_of_fit.pvalue
    assert tail.to_frame().height >= 1
    assert len(repr(tail)) < 300
    json.dumps(fa.fit_tail(np.append(np.zeros(500), sample(10))).to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("values", [sample(300), on_grid(600), sample(300) * 40 - 3])
def test_pictures_can_be_drawn(kind, values, tmp_path):
    vl_convert = pytest.importorskip("vl_convert")
    spec = fa.fit_tail(values, upper=None).plot(kind).spec
    json.dumps(spec, allow_nan=False)
    assert "<svg" in vl_convert.vegalite_to_svg(spec)
    fa.fit_tail(values).plot(kind).save(tmp_path / "chart.json")
    assert json.loads((tmp_path / "chart.json").read_text()) == spec


def test_a_picture_of_levels_without_a_fit():
    spec = fa.fit_tail(np.append(np.zeros(500), sample(10))).plot("return_level").spec
    json.dumps(spec, allow_nan=False)


def test_sentences_quote_the_numbers():
    tail = fa.fit_tail(sample(2_000), upper=1.0)
    value, low, high = tail.return_level(1_000)
    for number in (value, low, high, tail.shape):
        assert f"{number:.3f}" in tail.summary() or f"{number:.3g}" in tail.summary()
    assert "The tail of 2,000 rows: 78 of them exceed" in tail.summary()
    assert "extrapolated" in tail.summary()


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_matter(factor):
    plain, scaled = fa.fit_tail(sample()), fa.fit_tail(factor * sample())
    assert scaled.shape == pytest.approx(plain.shape, abs=1e-6)
    meant = factor * np.array(plain.return_level(1_000))
    assert scaled.return_level(1_000) == pytest.approx(meant, rel=1e-6)
