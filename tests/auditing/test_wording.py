"""The sentences of an audit: nothing that reads as its opposite, nothing that hides another."""

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs.auditing.sentences import PARTS, read_part, read_sentence
from fairaudit_rs.auditing.wording import Wording

from .test_audit import audited, people, policy, shares


def test_a_bound_reads_as_the_tolerance_only_where_it_is():
    counts = {"a": (4_500, 9_000), "b": (450, 900)}
    one = audited(shares(counts), policy="parity").questions[0]
    wording = Wording([one], 0.05, 1, lambda _, group: str(group))
    assert wording.bound(one, 0.1) == "10.0 points"
    assert wording.bound(one, 0.10004) == "10.004 points"
    assert wording.bound(one, 0.09996) == "9.996 points"
    assert wording.bound(one, 0.0712) == "7.1 points"
    ratio = audited(shares(counts), policy="four_fifths").questions[0]
    assert wording.bound(ratio, 0.7999) == "0.7999"
    assert wording.bound(ratio, 0.853) == "0.85"


def test_a_pass_tells_each_criterion_and_what_does_not_bind():
    data = shares({"a": (4_000, 4_500), "b": (800, 900)})
    both = policy(
        {"metric": "selection_rate", "tolerance": 0.1},
        {"metric": "selection_rate", "ratio": 0.8},
    )
    text = audited(data, policy=both).summary()
    about = "group, share of positive decisions: every"
    assert f"{about} gap is within the tolerated 10.0 points. Allowing for chance" in text
    assert f"{about} ratio is at least the tolerated 0.80. Allowing for chance" in text
    assert "between a and b" in text or "between b and a" in text
    hidden = shares({"a": (8_910, 9_000), "b": (4_650, 5_000)})
    told = audited(hidden, policy="four_fifths").summary()
    assert told.startswith("PASS.")
    assert "Beyond the tolerance, but not binding: rejection_rate by group." in told
    assert "Beyond" not in audited(data, policy="four_fifths").summary()


def test_many_that_hold_it_up_are_told_as_pairs():
    counts = {"most": (9_500, 10_000), "few": (1_600, 1_800), "rest": (4_130, 4_600)}
    own = policy({"metric": "selection_rate", "tolerance": 0.05})
    text = audited(shares(counts), policy=own).summary()
    assert "1 of 3 comparisons are within the tolerance" in text
    assert "still open" not in text
    assert "0 of 1 questions" not in text


def test_more_than_tolerated_that_is_no_fail():
    seen = shares({"a": (180, 300), "b": (45, 100)})
    text = audited(seen, policy="parity").summary()
    assert "perhaps by chance" not in text
    assert "Only whether it exceeds the tolerance is open." in text
    assert "8 of 10 audits would FAIL, if the true gap is as large as the observed one" in text
    near = audited(shares({"a": (180, 300), "b": (58, 100)}), policy="parity").summary()
    assert "Chance alone could explain the gap between b and a" in near


def test_one_group_is_no_comparison():
    data = shares({"a": (200, 400), "b": (1, 5)}, "worker")
    audit = audited(data, policy="parity")
    assert "people in tested groups: worker 0.0 %" in audit.summary()
    lines = [line for line in str(audit).splitlines() if line.startswith("  worker")]
    assert lines
    assert all(line.count("a: 50.0 % of 400") <= 1 for line in lines)


def test_undecided_beside_a_fail_have_a_line_of_their_own():
    data = shares({"a": (2_700, 3_000), "b": (600, 3_000)}, "race")
    side = np.where(np.arange(6_000) % 120, "left", "right")
    data["sensitive_features"]["side"] = side
    text = audited(data, policy="parity").summary()
    assert "Besides, 1 question is open:\n- side, share of positive" in text


def test_other_lenses_are_one_line():
    audit = audited(people(), policy=policy({"metric": "tpr", "tolerance": 0.1}))
    [line] = [text for text in audit.warnings if "not run" in text]
    assert line.startswith("not run: projection by ")
    assert line.endswith("individual; influence; extremes; the table of findings has the reasons")


def test_everybody_is_everybody():
    most = audited(shares({"a": (900, 2_000), "b": (900, 2_000), "c": (1, 1)}), policy="parity")
    assert most.summary().startswith("PASS. ")
    assert "people in tested groups: group more than 99.9 %." in most.summary()
    few = audited(shares({"a": (900, 2_000), "b": (900, 2_000), "c": (10, 20)}), policy="parity")
    assert few.summary().startswith("PASS for the groups that could be measured, not for all.")
    assert "people in tested groups: group 99.5 %." in few.summary()
    every = audited(shares({"a": (900, 2_000), "b": (900, 2_000)}), policy="parity")
    assert "people in tested groups: group 100.0 %." in every.summary()


def test_why_there_are_no_numbers_stands_beside_the_verdict():
    text = str(audited(shares({"a": (900, 2_000), "b": (900, 2_000)}), policy="parity"))
    [line] = [line for line in text.splitlines() if "accuracy" in line]
    [head] = [line for line in text.splitlines() if line.startswith("  attribute")]
    assert line.index("the data hold no labels") == head.index("lowest")


def test_an_undecided_ratio_says_that_the_groups_differ():
    """67.5 % of 197 against 90.8 % of 1,681: nine standard deviations, p = 4e-17."""
    audit = audited(shares({"f": (133, 197), "m": (1_526, 1_681)}, "sex"), policy="four_fifths")
    text = audit.summary()
    assert audit.verdict == "inconclusive"
    assert "perhaps by chance" not in text
    assert "Chance alone does not explain the gap between f and m" in text
    assert "Only whether it exceeds the tolerance is open." in text
    row = audit.findings.row(0, named=True)
    assert row["pvalue_equal"] < 1e-15
    assert row["adjusted_pvalue"] > 0.05
    [pair] = audit.to_frame("pairs")["p_equal"].to_list()[:1]
    assert pair == row["pvalue_equal"]


def test_the_p_value_of_equality_is_the_two_sided_score_test():
    audit = audited(shares({"a": (180, 300), "b": (45, 100)}), policy="parity")
    p, q, pooled = 180 / 300, 45 / 100, 225 / 400
    z = (p - q) / np.sqrt(pooled * (1 - pooled) * (1 / 300 + 1 / 100))
    test = audit.questions[0].pairs[0].test
    # Not smaller than that of the score; the correction for skewness can raise it a little.
    assert 2 * stats.norm.sf(z) * (1 - 1e-9) <= test.p_equal <= 2 * stats.norm.sf(z) * 1.2


def test_the_table_shows_the_true_extremes_and_what_decides():
    """A 50 %, B 54 %, C 53 % of few: the bound is that of C, the extremes are A and B."""
    counts = {"A": (2_000, 4_000), "B": (2_160, 4_000), "C": (53, 100)}
    audit = audited(shares(counts), policy=policy({"metric": "selection_rate", "tolerance": 0.1}))
    [line] = [line for line in str(audit).splitlines() if "selection_rate  inconclusive" in line]
    assert "A: 50.0 % of 4,000" in line
    assert "B: 54.0 % of 4,000" in line
    assert "A, C" in line
    text = audit.summary()
    assert "the observed gap is 3.0 points (A: 50.0 % of 4,000; C: 53.0 % of 100)" in text
    assert "the largest observed gap is 4.0 points, between A (50.0 %) and B (54.0 %)." in text


def test_the_reference_group_is_never_what_is_open():
    counts = {"White": (3_000, 5_000), "Black": (600, 1_000), "Asian": (22, 40)}
    own = policy(
        {
            "metric": "selection_rate",
            "ratio": 0.8,
            "reference": "White",
            "attributes": ["race"],
        }
    )
    text = audited(shares(counts, "race"), policy=own).summary()
    assert " (99.3 % of people) every gap" in text
    assert "Comparisons with Asian are open." in text
    few = {"White": (330, 500), "Black": (22, 40), "Asian": (22, 40)}
    assert "Comparisons with White" not in audited(shares(few, "race"), policy=own).summary()


def test_every_sentence_is_in_the_table():
    """Written sentences are read back: the name of the sentence, and all its parts."""
    for counts in (
        {"a": (4_000, 4_500), "b": (800, 900)},
        {"a": (180, 300), "b": (45, 100)},
        {"a": (2_700, 3_000), "b": (600, 3_000)},
        {"A": (2_000, 4_000), "B": (2_160, 4_000), "C": (53, 100)},
        {"a": (3, 10), "b": (5, 10)},
    ):
        for name in ("parity", "four_fifths"):
            _, *lines = audited(shares(counts), policy=name).summary().splitlines()
            for line in lines:
                found = read_sentence(line.strip() if line.startswith("  ") else line)
                assert found is not None, line
                for part in PARTS.keys() & found[1].keys():
                    assert not found[1][part] or read_part(part, found[1][part]), line


def test_another_pair_that_differs_is_named():
    """A and B differ beyond doubt; the pair that is undecided is that of C, which has few rows."""
    counts = {"A": (20_000, 40_000), "B": (21_600, 40_000), "C": (53, 100)}
    audit = audited(shares(counts), policy=policy({"metric": "selection_rate", "tolerance": 0.1}))
    text = audit.summary()
    assert (
        "Chance alone could explain the gap between A and C, but not that between A and B" in text
    )


@pytest.mark.parametrize("metric", ["selection_rate", "fnr", "tpr", "rejection_rate"])
@pytest.mark.parametrize("worse", [True, False])
def test_the_p_value_of_equality_has_two_sides_whatever_the_reference(metric, worse):
    """A ratio to a fixed reference counts in one direction, equality in both."""
    counts = {"a": (58, 200), "b": (100, 200)}
    data = shares(counts if worse else dict(zip("ab", reversed(counts.values()), strict=True)))
    data["y_true"] = np.ones(400, dtype=int)
    own = policy({"metric": metric, "ratio": 0.8, "reference": "b", "attributes": ["group"]})
    z = 0.21 / np.sqrt(158 / 400 * 242 / 400 * 2 / 200)
    [pair] = audited(data, policy=own).questions[0].pairs
    assert pair.test.p_equal == pytest.approx(2 * stats.norm.sf(z), rel=0.1)


def test_a_pass_with_a_reference_is_about_that_reference():
    counts = {"a": (700, 1_000), "b": (500, 1_000), "c": (300, 1_000)}
    own = policy(
        {"metric": "selection_rate", "tolerance": 0.3, "reference": "b", "attributes": ["group"]}
    )
    text = audited(shares(counts), policy=own).summary()
    assert text.startswith("PASS")
    assert "every gap to b is within the tolerated 30.0 points" in text


def test_all_passes_are_counted():
    features = {"sex": np.tile(["f", "m"], 4_000), "side": np.repeat(["l", "r"], 4_000)}
    data = {"y_pred": np.tile([0, 0, 1, 1], 2_000), "sensitive_features": features}
    assert "1 more question passes; see the table." in audited(data, policy="parity").summary()
