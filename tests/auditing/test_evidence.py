"""Permutation tests beside an audit: of the pairs that its questions compared, and no others."""

import math

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing import lenses
from fairaudit_rs.permutation import comparison

N = 1_200


def people(n=N, seed=0, small=0):
    """Return decisions and scores of four groups, one of which may be small."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["east", "north", "south", "west"], n)
    region[:small] = "tiny"
    label = rng.random(n) < 0.5
    rate = 0.5 + 0.2 * (region == "east") + 0.1 * label
    return {
        "y_true": label.astype(int),
        "y_pred": (rng.random(n) < rate).astype(int),
        "y_score": rng.random(n),
        "sensitive_features": {"region": region},
    }


def audited(data, *criteria, **options):
    made = [fa.Criterion(attributes=["region"], **criterion) for criterion in criteria]
    policy = fa.Policy(name="own", criteria=made)
    return fa.audit(**data, policy=policy, evidence="permutation", rng=1, **options)


def pairs_of(result):
    return {frozenset((value.first, value.second)) for value in result.comparisons}


@pytest.fixture
def tests(monkeypatch):
    """The groups of every permutation test that is run."""
    seen, original = [], comparison.run_test

    def watched(problem, how, series, chosen=None):
        seen.append((series, chosen))
        return original(problem, how, series, chosen)

    monkeypatch.setattr(comparison, "run_test", watched)
    return seen


RATE = {"metric": "selection_rate", "tolerance": 0.1}
METRICS = {
    "counts": RATE,
    "counts within labels": {"metric": "tpr", "tolerance": 0.1},
    "rows": {"metric": "brier", "tolerance": 0.1},
    "ranks": {"metric": "auc", "tolerance": 0.1},
}


class TestPairs:
    @pytest.mark.parametrize("criterion", METRICS.values(), ids=METRICS)
    def test_comparisons_with_a_reference_are_tested_alone(self, criterion, tests):
        data = people()
        audit = audited(data, {**criterion, "reference": "west"}, n_resamples=199)
        [result] = [value for name, value in audit.results.items() if name.startswith("perm")]
        others = ("east", "north", "south")
        assert pairs_of(result) == {frozenset((finding, "west")) for finding in others}
        # Three pairs, and all groups together.
        assert len(tests) == 4

    @pytest.mark.parametrize("criterion", METRICS.values(), ids=METRICS)
    def test_pairs_that_remain_have_the_pvalues_of_all_pairs(self, criterion):
        data = people()
        few = audited(data, {**criterion, "reference": "west"}, n_resamples=199)
        many = audited(data, criterion, n_resamples=199)
        [name] = [name for name in few.results if name.startswith("permutation")]
        of_all = {
            frozenset((value.first, value.second)): value.pvalue
            for value in many.results[name].comparisons
        }
        assert len(of_all) == 6
        for value in few.results[name].comparisons:
            assert value.pvalue == of_all[frozenset((value.first, value.second))]
        assert few.results[name].pvalue == many.results[name].pvalue
        [finding] = few.questions
        assert finding.evidence == few.results[name].pvalue

    def test_the_adjustment_is_over_the_pairs_that_are_tested(self):
        audit = audited(people(), {**RATE, "reference": "west"})
        comparisons = audit.results["permutation: selection_rate by region"].comparisons
        assert max(value.adjusted_pvalue / value.pvalue for value in comparisons) <= 3

    def test_the_highest_group_is_compared_with_all(self):
        audit = audited(people(), {**RATE, "reference": "highest"})
        result = audit.results["permutation: selection_rate by region"]
        assert pairs_of(result) == {
            frozenset(("east", name)) for name in ("north", "south", "west")
        }

    def test_groups_that_are_not_tested_are_in_no_pair(self, tests):
        audit = audited(people(small=5), RATE)
        result = audit.results["permutation: selection_rate by region"]
        assert not any("tiny" in pair for pair in pairs_of(result))
        assert len(result.comparisons) == 6

    def test_two_questions_of_one_metric_share_a_test_of_the_pairs_of_both(self):
        ratio = {"metric": "selection_rate", "ratio": 0.8, "reference": "west"}
        other = {**RATE, "reference": "east"}
        audit = audited(people(), ratio, other)
        result = audit.results["permutation: selection_rate by region"]
        assert len(result.comparisons) == 5
        assert all(question.evidence == result.pvalue for question in audit.questions)

    def test_without_a_tolerance_all_groups_are_compared(self):
        shown = {"metric": "selection_rate", "binding": False}
        audit = audited(people(), METRICS["counts within labels"], shown)
        result = audit.results["permutation: selection_rate by region"]
        assert len(result.comparisons) == 6
        assert not math.isnan(result.pvalue)


class TestPosedOnce:
    @pytest.mark.parametrize(
        ("criterion", "design"),
        [(METRICS["rows"], {}), (METRICS["counts within labels"], {"strata": True})],
    )
    def test_questions_are_not_posed_again(self, criterion, design, monkeypatch):
        def refuse(*given, **named):
            raise AssertionError("posed again")

        monkeypatch.setattr(lenses, "prepare_question", refuse)
        if design:
            design = {"strata": np.arange(N) % 2}
        audit = audited(people(), {**criterion, "reference": "west"}, n_resamples=199, **design)
        assert any(name.startswith("permutation") for name in audit.results)


class TestLongTests:
    """Evidence of so many rows that all replicates would take long stops once it is decided."""

    def test_only_tests_that_visit_rows(self, monkeypatch):
        monkeypatch.setattr(lenses, "_MOST_VISITED", 1e6)
        audit = audited(people(), *METRICS.values(), n_resamples=999)
        stopped = {}
        for name, result in audit.results.items():
            if name.startswith("permutation"):
                note = any("stop once they are decided" in text for text in result.warnings)
                stopped[result.metric] = (note, result.n_resamples < 999)
        assert stopped["auc"] == stopped[fa.metrics.get("brier").name] == (True, True)
        # Replicates of counts cost the same for any number of rows.
        assert stopped["selection_rate"][0] is stopped["true_positive_rate"][0] is False
        assert sum("stop once they are decided" in note for note in audit.warnings) == 1

    def test_pvalues_are_those_of_adaptive_tests(self, monkeypatch):
        data = people(seed=2)
        whole = audited(data, METRICS["ranks"], n_resamples=1_999)
        monkeypatch.setattr(lenses, "_MOST_VISITED", 1e6)
        early = audited(data, METRICS["ranks"], n_resamples=1_999)
        [name] = [name for name in early.results if name.startswith("permutation")]
        again = fa.permutation_test(
            data["y_true"], y_score=data["y_score"], sensitive_features=data["sensitive_features"],
            metric="auc", adaptive=True, n_resamples=1_999, rng=early.results[name].seed,
        )  # fmt: skip
        result = early.results[name]
        assert result.n_resamples < whole.results[name].n_resamples == 1_999
        assert (result.pvalue, result.pvalue_interval) == (again.pvalue, again.pvalue_interval)
        assert [value.pvalue for value in result.comparisons] == [
            value.pvalue for value in again.comparisons
        ]
        of_verdict = [
            (audit.verdict, [pair.test.p_fail for pair in audit.questions[0].pairs])
            for audit in (early, whole)
        ]
        assert of_verdict[0] == of_verdict[1]

    def test_the_work_decides_and_nothing_else(self, monkeypatch):
        """Rows of all pairs and of all groups, times replicates: not the time that it takes."""
        data = people()
        # Six pairs of four groups visit 3 n rows, all groups (1 + 4) / 2 n.
        work = 199 * N * (3 + 2.5)
        for most, stops in ((work - 1, True), (work, False)):
            monkeypatch.setattr(lenses, "_MOST_VISITED", most)
            audit = audited(data, METRICS["ranks"], n_resamples=199)
            assert any("stop once" in note for note in audit.warnings) is stops
