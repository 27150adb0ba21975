"""Strata that hold one group each, of which nothing is compared, and strata that can be queries."""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa

N = 60
CALLS = {
    "test": fa.permutation_test,
    "intervals": fa.intervals,
    "equivalence": lambda *args, **given: fa.equivalence_test(*args, margin=0.1, **given),
}


def make(n=N, groups=2):
    rng = np.random.default_rng(1)
    return {
        "y_true": rng.integers(0, 2, n),
        "y_pred": rng.integers(0, 2, n),
        "y_score": rng.random(n),
        "sensitive_features": np.array(list("abc"))[np.arange(n) % groups],
    }


def accuracy(y_true, y_pred, weight):
    del weight
    return float((y_true == y_pred).mean())


METRICS = {
    "selection_rate": ("y_pred",),
    "true_positive_rate": ("y_true", "y_pred"),
    "f1": ("y_true", "y_pred"),
    "mean_prediction": ("y_score",),
    "auc": ("y_true", "y_score"),
}
#: Of a function all groups must share a stratum.
FUNCTION = fa.metrics.callable_metric("agreement", accuracy)


def ask(call, metric, columns, strata, data=None, **options):
    data = make() if data is None else data
    given = {name: data[name] for name in (*columns, "sensitive_features")}
    return CALLS[call](
        **given, metric=metric, strata=strata, **({"n_resamples": 99, "rng": 1} | options)
    )


class TestArguments:
    @pytest.mark.parametrize("strata", [np.arange(N), np.arange(N) % 2], ids=["rows", "groups"])
    @pytest.mark.parametrize("metric", [*METRICS, "function"])
    @pytest.mark.parametrize("call", CALLS)
    def test_strata_of_one_group_are_not_measurable(self, call, metric, strata):
        metric = FUNCTION if metric == "function" else metric
        with pytest.raises(fa.errors.NotMeasurableError, match="nothing is compared") as told:
            ask(call, metric, METRICS.get(metric, ("y_true", "y_pred")), strata)
        assert set(told.value.reasons) == {"a", "b"}

    @pytest.mark.parametrize("call", CALLS)
    def test_weighted_rates_too(self, call):
        with pytest.raises(fa.errors.NotMeasurableError, match="nothing is compared"):
            ask(call, "selection_rate", ("y_pred",), np.arange(N), sample_weight=np.ones(N))

    @pytest.mark.parametrize("metric", ["equalized_odds", "calibration_error"])
    def test_joint_criteria_and_calibration_too(self, metric):
        columns = ("y_true", "y_score" if metric == "calibration_error" else "y_pred")
        with pytest.raises(fa.errors.NotMeasurableError, match="nothing is compared"):
            ask("test", metric, columns, np.arange(N))

    def test_an_audit_does_not_measure_it(self):
        data = make()
        found = fa.audit(
            None,
            data["y_pred"],
            sensitive_features={"g": data["sensitive_features"]},
            strata=np.arange(N),
            policy=fa.Policy(
                name="p", criteria=[fa.Criterion(metric="selection_rate", tolerance=0.1)]
            ),
            pos_label=1,
            rng=1,
        )
        assert found.verdict == "not_measurable"


class TestPairs:
    """Three groups of which a and b share a stratum, and c none."""

    STRATA = (np.arange(N) % 3 == 2).astype(int)

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_pair_without_a_stratum_has_no_p(self, metric):
        result = ask("test", metric, METRICS[metric], self.STRATA, make(groups=3))
        known, *unknown = result.comparisons
        assert known.inconclusive is None
        assert 0 < known.pvalue <= 1
        for value in unknown:
            assert math.isnan(value.pvalue)
            assert math.isnan(value.estimate)
            assert math.isnan(value.confidence_interval[0])
            assert "no stratum holds" in value.inconclusive
            assert any(value.inconclusive in note for note in result.warnings)

    @pytest.mark.parametrize("metric", ["selection_rate", "mean_prediction", "auc"])
    def test_equality_is_not_shown_with_the_reason(self, metric):
        result = ask(
            "equivalence",
            metric,
            METRICS[metric],
            self.STRATA,
            make(groups=3),
            confidence_level=0.9,
        )
        assert result.pvalue == 1
        assert any("no stratum holds" in note for note in result.warnings)

    def test_the_pair_that_shares_one_is_tested_as_alone(self):
        data = make(groups=3)
        result = ask("test", "mean_prediction", ("y_score",), self.STRATA, data)
        two = ask("test", "mean_prediction", ("y_score",), self.STRATA, data, groups=["a", "b"])
        assert result.comparisons[0].statistic == two.comparisons[0].statistic


EXPOSURE = fa.metrics.ratio_metric("exposure", "exposure")
WARNING = "If the strata are queries"
VARYING = "If they are a sample of others"


def rankings(rng, n_queries=30, items=20, tau=1.0):
    """Return the exposure of ranked items; the effect of a group varies by query with mean 0."""
    query = np.repeat(np.arange(n_queries), items)
    group = rng.random(len(query)) < 0.5
    effect = rng.normal(0, tau, n_queries)[query] * np.where(group, 0.5, -0.5)
    score = effect + rng.normal(size=len(query))
    rank = np.empty(len(query))
    for q in range(n_queries):
        mine = query == q
        rank[mine] = stats.rankdata(-score[mine])
    return {
        "data": {"exposure": 1 / np.log2(1 + rank), "group": group, "query": query},
        "sensitive_features": "group",
        "strata": "query",
        "metric": EXPOSURE,
    }


class TestQueries:
    def test_strata_that_can_be_queries_are_named(self):
        result = fa.permutation_test(**rankings(np.random.default_rng(1)), n_resamples=99, rng=1)
        (note,) = [note for note in result.warnings if WARNING in note]
        assert note.startswith("30 strata with few rows each")
        intervals = fa.intervals(**rankings(np.random.default_rng(1)), n_resamples=99, rng=1)
        assert any(WARNING in note for note in intervals.warnings)

    @pytest.mark.parametrize("metric", ["selection_rate", "auc"])
    def test_rates_and_ranks_too(self, metric):
        result = ask("test", metric, METRICS[metric], np.arange(N * 4) // 12, make(N * 4))
        assert any(WARNING in note for note in result.warnings)

    @pytest.mark.parametrize(("n_queries", "items", "tau"), [(6, 20, 1.0), (12, 200, 0.0)])
    def test_few_strata_and_large_ones_are_not(self, n_queries, items, tau):
        given = rankings(np.random.default_rng(1), n_queries, items, tau)
        result = fa.permutation_test(**given, n_resamples=99, rng=1)
        assert not any(WARNING in note or VARYING in note for note in result.warnings)

    def test_large_strata_with_unequal_effects_are_named(self):
        """The note looked at the number of strata and their size alone."""
        given = rankings(np.random.default_rng(1), 12, 200)
        for ask_of in (fa.permutation_test, fa.intervals):
            result = ask_of(**given, n_resamples=99, rng=1)
            [note] = [note for note in result.warnings if VARYING in note]
            assert note.startswith("the effect differs between the 12 strata that are compared")

    @pytest.mark.parametrize(("sizes", "text"), [((30, 20), WARNING), ((12, 400), VARYING)])
    @pytest.mark.parametrize("evidence", ["none", "permutation"])
    def test_audits_name_them_without_evidence(self, evidence, sizes, text):
        """The note came with the permutation test of equality alone."""
        rng, (n_strata, n) = np.random.default_rng(3), sizes
        stratum = np.repeat(np.arange(n_strata), n)
        group = rng.random(len(stratum)) < 0.5
        effect = np.where(stratum % 2, 0.3, -0.3) * group
        audit = fa.audit(
            y_pred=(rng.random(len(stratum)) < 0.5 + effect).astype(int),
            sensitive_features={"g": group}, strata={"query": stratum}, evidence=evidence,
            policy="parity", rng=1, n_resamples=199,
        )  # fmt: skip
        [note] = [note for note in audit.warnings if text in note]
        assert note.startswith("g, selection_rate: ")
        assert str(n_strata) in note


@pytest.mark.calibration
class TestRankings:
    def test_fair_rankings_are_rejected_and_warned_of(self):
        """Effects of a group that vary by query: 19 % at 5 %, so that the note must be there."""
        rng, rejected, noted = np.random.default_rng(2), 0, 0
        n_audits = 250
        for audit in range(n_audits):
            result = fa.permutation_test(**rankings(rng), n_resamples=199, rng=audit)
            rejected += result.pvalue <= 0.05
            noted += any(WARNING in note for note in result.warnings)
        assert noted == n_audits
        # The warning is needed: without it this is the test of a level of 5 %.
        assert rejected > stats.binom(n_audits, 0.05).isf(1e-6)

    def test_without_effects_by_query_the_level_holds(self):
        rng, rejected = np.random.default_rng(3), 0
        for audit in range(150):
            result = fa.permutation_test(**rankings(rng, tau=0.0), n_resamples=199, rng=audit)
            rejected += result.pvalue <= 0.05
        assert rejected <= stats.binom(150, 0.05).isf(1e-6)
