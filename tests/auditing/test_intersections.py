"""Intersections: which are asked, which withhold a pass, and which are named as too small."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing import intersections


def binary(n_rows, n_attributes):
    """All combinations of some attributes of 0 and 1, equally often."""
    at = np.arange(n_rows)
    return {"abcdef"[k]: (at // 2**k) % 2 for k in range(n_attributes)}


def alternating(n_rows, n_attributes):
    """Decisions that are equally frequent in every intersection."""
    return (np.arange(n_rows) // 2**n_attributes) % 2


def own(**options):
    given = {"criteria": [fa.Criterion(metric="selection_rate", tolerance=0.2)]} | options
    return fa.Policy(name="own", intersections="bind", lenses=["permutation"], **given)


def audited(decided, features, policy):
    return fa.audit(
        None,
        decided,
        sensitive_features=features,
        policy=policy,
        pos_label=1,
        evidence="none",
        rng=1,
    )


class TestThreeAttributes:
    def test_a_gap_of_three_attributes_alone_is_found(self):
        """The audit page, 1.8: parity of three attributes, no gap in any one or two of them."""
        features = binary(8_000, 3)
        parity = sum(features.values()) % 2
        tenth = (np.arange(8_000) // 8) % 10
        decided = (tenth < np.where(parity, 3, 7)).astype(int)
        audit = audited(decided, features, own())
        words = {question.attribute: question.verdict for question in audit.questions}
        assert words.pop("a and b and c") == "fail"
        assert set(words.values()) == {"pass"}
        assert len(words) == 6
        assert audit.verdict == "fail"
        assert audit.n_comparisons == 3 + 3 * 6 + 28

    def test_equal_groups_pass(self):
        audit = audited(alternating(8_000, 3), binary(8_000, 3), own())
        assert (audit.verdict, audit.exit_code(strict=True)) == ("pass", 0)

    def test_two_attributes_alone_inform(self):
        informing = replace(own(), intersections="inform")
        audit = audited(alternating(8_000, 3), binary(8_000, 3), informing)
        assert [question.attribute for question in audit.questions][3:] == [
            "a and b",
            "a and c",
            "b and c",
        ]

    def test_what_has_fewer_than_two_groups_has_nothing_to_ask(self):
        features = binary(160, 3)
        audit = audited(alternating(160, 3), features, own(alpha=0.4))
        assert "a and b and c" not in [question.attribute for question in audit.questions]


class TestWithheld:
    def test_more_than_three_attributes(self):
        audit = audited(alternating(8_000, 4), binary(8_000, 4), own())
        assert (audit.verdict, audit.exit_code(strict=True)) == ("inconclusive", 3)
        [last] = [question for question in audit.questions if question.is_skipped]
        assert (last.attribute, last.verdict) == ("a and b and c and d", "not_asked")
        assert last.reason == "intersections of more than 3 attributes are not asked"
        assert "all questions that were asked pass, but some could not be asked" in str(audit)
        assert f"not asked: {last.reason}. Therefore there is no pass." in audit.summary()
        assert last.reason in audit.to_markdown()
        assert fa.from_dict(json.loads(json.dumps(audit.to_dict()))) == audit

    def test_four_attributes_without_rows_withhold_nothing(self):
        """Of three attributes groups have 57 rows and more, of four 29 and fewer."""
        features = binary(460, 4)
        of_four = np.unique(np.stack(list(features.values())), axis=1, return_counts=True)[1]
        assert max(of_four) < 30
        audit = audited(alternating(460, 4), features, own(alpha=0.45))
        assert not any(question.is_skipped for question in audit.questions)

    def test_attributes_of_a_criterion(self):
        criteria = [
            fa.Criterion(metric="selection_rate", tolerance=0.2, attributes=["a", "b", "c"])
        ]
        audit = audited(alternating(8_000, 4), binary(8_000, 4), own(criteria=criteria))
        assert audit.verdict == "pass"

    def test_too_many_comparisons(self, monkeypatch):
        monkeypatch.setattr(intersections, "MAX_INTERSECTION_COMPARISONS", 20)
        audit = audited(alternating(8_000, 3), binary(8_000, 3), own())
        assert audit.verdict == "inconclusive"
        assert audit.n_comparisons == 3 + 18
        [last] = [question for question in audit.questions if question.is_skipped]
        assert last.attribute == "a and b and c"
        assert last.reason == (
            "its 28 comparisons are beyond the 20 that are made of intersections"
        )

    def test_a_fixed_reference(self):
        lending = fa.Policy.preset("fair_lending", ratio=0.7, references={"a": 0, "b": 1})
        bound = replace(lending, intersections="bind")
        data = alternating(8_000, 2), binary(8_000, 2)
        assert audited(*data, lending).verdict == "pass"
        audit = audited(*data, bound)
        assert (audit.verdict, audit.exit_code(strict=True)) == ("inconclusive", 3)
        [row] = [row for row in audit.rows() if row["attribute"] == "a and b"]
        assert (row["verdict"], row["binding"]) == ("not_asked", True)
        assert row["reason"] == "criteria with a fixed reference are not asked of intersections"

    def test_a_fail_stays_a_fail(self):
        features = binary(8_000, 4)
        decided = np.where(features["a"], (np.arange(8_000) // 16) % 2, 0)
        assert audited(decided, features, own()).verdict == "fail"


class TestSmallIntersections:
    @pytest.mark.parametrize("form", [str, fa.Audit.to_markdown])
    def test_they_are_named(self, form):
        """B10: they stood in no text."""
        sizes = {("f", "x"): 100, ("f", "y"): 7, ("m", "x"): 300, ("m", "y"): 12, ("m", "z"): 200}
        rows = list(itertools.chain(*([pair] * n for pair, n in sizes.items())))
        features = {"sex": [sex for sex, _ in rows], "race": [race for _, race in rows]}
        informing = replace(own(), intersections="inform")
        text = form(audited(np.arange(len(rows)) % 2, features, informing))
        assert (
            "2 intersections of attributes are below the minimum group size of a metric and not "
            "compared by it: f & y (sex and race): 7 eligible rows and m & y (sex and race): 12 "
            "eligible rows"
        ) in text

    def test_none_is_small(self):
        informing = replace(own(), intersections="inform")
        text = str(audited(alternating(8_000, 2), binary(8_000, 2), informing))
        assert "below the minimum group size" not in text

    def test_the_first_few_of_many(self):
        group = np.repeat([f"g{k:02d}" for k in range(20)], 40)
        features = {"group": group, "half": np.arange(800) % 2}
        informing = replace(own(), intersections="inform")
        text = str(audited(np.arange(800) // 2 % 2, features, informing))
        assert "40 intersections of attributes are below" in text
        assert "20 eligible rows and 35 more" in text
