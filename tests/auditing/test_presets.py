"""Presets bind what their tables say, and say what they are not."""

from typing import get_args

import pytest

import fairaudit_rs as fa
from fairaudit_rs import literals
from fairaudit_rs.auditing.presets import PRESETS, RULES
from fairaudit_rs.errors import ArgumentError

LENDING = {"ratio": 0.8, "references": {"race": "white", "sex": "male"}}
NAMES = get_args(literals.PresetName)


def preset(name):
    return fa.Policy.preset(name, **(LENDING if name == "fair_lending" else {}))


#: What binds and what informs, as the tables have it.
TABLE = {
    "opportunity": ("true_positive_rate .1", "selection_rate false_positive_rate "
                    "positive_predictive_value accuracy mean_residual"),
    "error_balance": ("true_positive_rate .1, false_positive_rate .1", "selection_rate "
                      "positive_predictive_value accuracy mean_residual"),
    "punitive": ("false_positive_rate .1", "false_negative_rate positive_predictive_value"),
    "parity": ("selection_rate .1", "true_positive_rate false_positive_rate "
               "positive_predictive_value negative_predictive_value accuracy mean_residual auc"),
    "four_fifths": ("selection_rate >.8", "selection_rate rejection_rate"),
    "predictive": ("positive_predictive_value .1, negative_predictive_value .1", "base_rate"),
    "calibration": ("mean_residual .05", "calibration_error auc"),
    "performance": ("auc .05, accuracy .05", ""),
    "us_eeoc": ("selection_rate >.8 highest", ""),
    "nyc_ll144": ("", "selection_rate"),
    "fair_lending": ("selection_rate >.8 white, selection_rate >.8 male", ""),
    "co_insurance_draft": ("", "selection_rate"),
}  # fmt: skip


def written(criterion):
    limit = f"{criterion.tolerance:g}" if criterion.ratio is None else f">{criterion.ratio:g}"
    words = [criterion.metric, limit.replace("0.", "."), criterion.reference or ""]
    return " ".join(words).strip()


@pytest.mark.parametrize("name", NAMES)
def test_criteria_are_those_of_the_table(name):
    binds, informs = TABLE[name]
    one = preset(name)
    assert one.name == name
    assert ", ".join(map(written, one.binding)) == binds
    assert [c.metric for c in one.informative] == informs.split()


def test_every_preset_has_its_word():
    assert set(NAMES) == set(TABLE) == set(PRESETS)
    assert set(get_args(literals.RuleName)) == {rule["name"] for rule in RULES}


@pytest.mark.parametrize("name", NAMES)
def test_texts_promise_nothing(name):
    one = preset(name)
    texts = [one.description, one.source, one.status, one.is_not, one.describe()]
    assert one.description
    assert one.source
    assert one.is_not
    for text in texts:
        for word in ("complian", "complies", "lawful", "legal ", "unbiased"):
            assert word not in text.lower()


@pytest.mark.parametrize("name", get_args(literals.RuleName))
def test_rules_say_since_when_and_how_they_stand(name):
    one = preset(name)
    assert one.rule == name
    assert one.as_of == "2026-11-20"
    assert one.status
    assert "not advice" in one.is_not
    assert bool(one.in_force) == (name in ("us_eeoc", "nyc_ll144"))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("us_eeoc", ["RIN 3046-AB43", "rescission pending", "no final rule was found"]),
        ("nyc_ll144", ["2025-12-02", "State Comptroller"]),
        ("fair_lending", ["N.J.A.C. 13:16", "Earnest", "removed the effects test"]),
    ],
)
def test_rules_say_what_changed_lately(name, texts):
    for text in texts:
        assert text in preset(name).status


def test_rules_have_no_pass_that_their_text_does_not_have():
    assert [name for name in NAMES if not preset(name).has_pass] == [
        "us_eeoc", "nyc_ll144", "co_insurance_draft",
    ]  # fmt: skip
    assert "nothing passes or fails" in preset("nyc_ll144").describe()
    assert "there is no pass" in preset("us_eeoc").describe()
    assert "draft" in preset("co_insurance_draft").status.lower()


def test_punishments_are_positive_decisions():
    assert [name for name in NAMES if preset(name).punitive] == ["punitive"]
    assert (
        preset("punitive")
        .describe()
        .endswith("negative decision (the positive one is the punishment)")
    )


class TestArguments:
    def test_a_name_that_there_is_not(self):
        with pytest.raises(ArgumentError, match="name is 'eeoc'; accepted: 'opportunity'"):
            fa.Policy.preset("eeoc")

    def test_lenders_choose_threshold_and_references(self):
        with pytest.raises(ArgumentError, match="ratio is None, and fair_lending needs it"):
            fa.Policy.preset("fair_lending", references={"race": "white"})
        with pytest.raises(ArgumentError, match="references is None; accepted for fair_lending"):
            fa.Policy.preset("fair_lending", ratio=0.8)
        with pytest.raises(ArgumentError, match=r"ratio is 1.2; accepted: a number strictly"):
            fa.Policy.preset("fair_lending", ratio=1.2, references={"race": "white"})

    def test_others_take_none(self):
        with pytest.raises(ArgumentError, match=r"ratio is 0\.9, but the preset four_fifths"):
            fa.Policy.preset("four_fifths", ratio=0.9)
