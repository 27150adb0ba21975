"""The sentences of an audit: nothing that reads as its opposite, nothing that hides another."""

import numpy as np

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
    assert "Every gap of the share of positive decisions is shown to be within" in text
    assert "Every ratio of the share of positive decisions is shown to be at least 0.8" in text
    assert "b and a by group" in text or "a and b by group" in text
    hidden = shares({"a": (8_910, 9_000), "b": (4_650, 5_000)})
    told = audited(hidden, policy="four_fifths").summary()
    assert told.startswith("PASS.")
    assert "Beyond tolerance, but not binding: rejection_rate by group." in told
    assert "Beyond" not in audited(data, policy="four_fifths").summary()


def test_many_that_hold_it_up_are_told_as_pairs():
    counts = {"most": (9_500, 10_000), "few": (1_600, 1_800), "rest": (4_130, 4_600)}
    own = policy({"metric": "selection_rate", "tolerance": 0.05})
    text = audited(shares(counts), policy=own).summary()
    assert "1 of 3 pairs of groups is shown to be within the tolerance" in text
    assert "most holds it up" not in text
    assert "0 of 1 questions" not in text


def test_more_than_tolerated_that_is_no_fail():
    seen = shares({"a": (180, 300), "b": (45, 100)})
    text = audited(seen, policy="parity").summary()
    assert "More is seen than tolerated, perhaps by chance. If the gap stays as it is" in text
    assert "would show a FAIL" in text
    near = audited(shares({"a": (180, 300), "b": (58, 100)}), policy="parity").summary()
    assert "More is seen" not in near


def test_one_group_is_no_comparison():
    data = shares({"a": (200, 400), "b": (1, 5)}, "worker")
    audit = audited(data, policy="parity")
    assert "people in tested groups: worker 0.0 %" in audit.summary()
    lines = [line for line in str(audit).splitlines() if line.startswith("  worker")]
    assert lines
    assert all(line.count("a 50.0 % of 400") <= 1 for line in lines)


def test_undecided_beside_a_fail_have_a_line_of_their_own():
    data = shares({"a": (2_700, 3_000), "b": (600, 3_000)}, "race")
    side = np.where(np.arange(6_000) % 120, "left", "right")
    data["sensitive_features"]["side"] = side
    text = audited(data, policy="parity").summary()
    assert "Besides, 1 question is not decided:\n- side, share of positive" in text


def test_other_lenses_are_one_line():
    audit = audited(people(), policy=policy({"metric": "tpr", "tolerance": 0.1}))
    [line] = [text for text in audit.warnings if "other lenses" in text]
    assert line.endswith("individual; influence; extremes): the findings have the reasons")
    assert "not run" not in line


def test_everybody_is_everybody():
    few = audited(shares({"a": (900, 2_000), "b": (900, 2_000), "c": (1, 1)}), policy="parity")
    assert few.summary().startswith("PASS for the groups that could be measured, not for all.")
    assert "people in tested groups: group more than 99.9 %." in few.summary()
    every = audited(shares({"a": (900, 2_000), "b": (900, 2_000)}), policy="parity")
    assert "people in tested groups: group 100.0 %." in every.summary()


def test_why_there_are_no_numbers_stands_beside_the_verdict():
    text = str(audited(shares({"a": (900, 2_000), "b": (900, 2_000)}), policy="parity"))
    [line] = [line for line in text.splitlines() if "accuracy" in line]
    [head] = [line for line in text.splitlines() if "adjusted p" in line]
    assert line.index("the data hold no labels") == head.index("lowest")
