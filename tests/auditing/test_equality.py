"""Questions without a threshold say whether groups differ, where this takes no replicates."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa


def people(n=1_500, groups=("a", "b", "c"), seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), n)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < np.where(group == "a", 0.4, 0.5)).astype(int)
    return {"y_true": y_true, "y_pred": y_pred, "sensitive_features": {"g": group}}


def audited(data, *criteria, **options):
    policy = fa.Policy(name="own", criteria=[fa.Criterion(**criterion) for criterion in criteria])
    return fa.audit(**data, policy=policy, rng=1, evidence="none", **options)


STRATA = {"d": np.arange(1_500) % 3}


@pytest.mark.parametrize(
    ("metric", "strata"),
    [(name, None) for name in ("selection_rate", "tpr", "ppv", "f1", "balanced_accuracy")]
    + [(name, STRATA) for name in ("selection_rate", "tpr", "ppv")],
)
def test_it_is_that_of_a_question_with_a_tolerance(metric, strata):
    told = {"metric": metric, "binding": False}
    [shown] = audited(people(), told, strata=strata).questions
    [judged] = audited(people(), {**told, "tolerance": 0.1}, strata=strata).questions
    wanted = {frozenset(x.group for x in p.test.groups): p.test.p_equal for p in judged.pairs}
    found = {frozenset(x.group for x in p.test.groups): p.test.p_equal for p in shown.pairs}
    assert found == pytest.approx(wanted, rel=1e-12)
    assert all(0 < p < 1 for p in found.values())
    assert {pair.verdict for pair in shown.pairs} == {"not_asked"}
    assert (shown.verdict, shown.reason) == ("not_asked", "no threshold")


def test_two_rates_have_the_pooled_test():
    group, y = np.repeat(["a", "b"], 2_000), np.tile([1] * 9 + [0] * 11, 200)
    y[:40] = 0
    audit = audited(
        {"y_pred": y, "sensitive_features": {"g": group}},
        {"metric": "selection_rate", "binding": False},
    )
    hits = y[:2_000].sum(), y[2_000:].sum()
    pooled = sum(hits) / 4_000
    z = (hits[0] - hits[1]) / 2_000 / math.sqrt(pooled * (1 - pooled) * 2 / 2_000)
    [row] = audit.findings.filter(audit.findings["lens"] == "permutation").to_dicts()
    assert row["pvalue_equal"] == pytest.approx(2 * stats.norm.sf(abs(z)), rel=0.02)
    assert (row["first"], row["second"], row["verdict"]) == ("b", "a", "not_asked")
    assert math.isnan(row["pvalue"])
    assert math.isnan(row["adjusted_pvalue"])


def test_outputs():
    audit = audited(
        people(),
        {"metric": "tpr", "tolerance": 0.3},
        {"metric": "selection_rate", "binding": False},
    )
    [line] = [line for line in str(audit).splitlines() if "  selection_rate  " in line]
    widest = audit.questions[1].widest_pair.test
    assert f"{100 * widest.estimate:.1f} points" in line
    assert f"{widest.p_equal:.2g}" in line
    assert '"p: no gap" of a question without a threshold is about the two groups' in str(audit)
    assert "selection\\_rate" in audit.to_markdown()
    frame = audit.to_frame("pairs")
    shown = frame.filter(frame["metric"] == "selection_rate")
    assert len(shown) == 3
    assert shown["p_equal"].is_not_nan().all()
    assert set(shown["verdict"]) == {"not_asked"}
    again = fa.from_dict(json.loads(json.dumps(audit.to_dict(), allow_nan=False)))
    assert again == audit
    assert str(again) == str(audit)
    # A question without a threshold is no comparison of the verdict.
    alone = audited(people(), {"metric": "tpr", "tolerance": 0.3})
    assert audit.n_comparisons == alone.n_comparisons == 3
    assert (audit.verdict, audit.plot() is not None) == (alone.verdict, True)


def test_within_strata_values_are_those_of_the_comparison():
    data = people()
    strata = np.where(data["sensitive_features"]["g"] == "a", data["y_true"], 1)
    told = {"metric": "selection_rate", "binding": False}
    audit = audited(data, told, strata={"d": strata})
    [question] = audit.questions
    pair = question.widest_pair.test
    assert abs(pair.first_value - pair.second_value) == pytest.approx(pair.estimate)
    assert dict(question.extremes) == dict(pair.by_value)


def test_what_takes_replicates_has_none():
    data = people()
    told = {"metric": "selection_rate", "binding": False}
    [question] = audited(
        data, told, clusters=np.arange(1_500) // 2, mixed_clusters="split"
    ).questions
    assert question.pairs == ()
    assert len(question.extremes) == 2


def test_a_rule_without_a_threshold():
    audit = fa.audit(**people(), policy="nyc_ll144", rng=1)
    assert audit.verdict == "not_asked"
    assert not math.isnan(audit.findings["pvalue_equal"][0])
