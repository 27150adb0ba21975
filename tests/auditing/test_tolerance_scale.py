"""Tolerances of shares are not for dollars, and those of dollars not for shares."""

import re

import numpy as np
import pytest

import fairaudit_rs as fa

N = 1_000
RNG = np.random.default_rng(0)
GROUP = RNG.choice(["f", "m"], N)
LABEL = RNG.integers(0, 2, N)
SCORE = np.clip(0.5 * LABEL + 0.25 + RNG.normal(0, 0.1, N), 0, 1)
DOLLARS = RNG.lognormal(10, 1, N)
SHARES = "of mean_residual is a difference of shares. Use "


def audited(policy="calibration", **data):
    return fa.audit(sensitive_features={"sex": GROUP}, policy=policy, rng=1, **data)


def own(metric, tolerance, **options):
    return fa.Policy(
        name="own", criteria=[fa.Criterion(metric=metric, tolerance=tolerance, **options)]
    )


class TestShares:
    @pytest.mark.parametrize("policy", ["calibration", None, own("mean_residual", 0.5)])
    def test_scores_in_dollars(self, policy):
        """The gap of 1.44e+03 was larger than the tolerated 0.05: FAIL."""
        words = f"y_score holds {DOLLARS[0]:g}, but the tolerance"
        with pytest.raises(fa.errors.ArgumentError, match=re.escape(words)):
            audited(policy, y_true=LABEL, y_score=DOLLARS)

    @pytest.mark.parametrize(
        "metric", ["mean_prediction", "mean_residual", "mean_absolute_error", "mean_squared_error"]
    )
    def test_every_mean(self, metric):
        words = f"of {metric} is a difference of shares. Use scores from 0 to 1, or a tol"
        with pytest.raises(fa.errors.ArgumentError, match=words):
            audited(own(metric, 0.05), y_true=LABEL, y_score=DOLLARS)

    @pytest.mark.parametrize("values", [LABEL + 1, RNG.normal(size=N), 3.0 * LABEL])
    def test_labels_that_are_no_classes(self, values):
        words = f"{SHARES}labels of 0 and 1, name the positive class with pos_label, or a tol"
        with pytest.raises(fa.errors.ArgumentError, match=words):
            audited(y_true=values, y_score=SCORE)

    def test_named_classes_are_labels(self):
        named = audited(y_true=LABEL + 1, y_score=SCORE, pos_label=2)
        assert named.questions[0].pairs == audited(y_true=LABEL, y_score=SCORE).questions[0].pairs

    def test_what_informs_is_a_row_with_the_reason(self):
        audit = audited("parity", y_true=LABEL, y_pred=LABEL, y_score=DOLLARS)
        [row] = [row for row in audit.rows() if row["metric"] == "mean_residual"]
        assert row["verdict"] == "not_measurable"
        assert SHARES in row["reason"]

    def test_ranks_have_no_scale(self):
        assert audited(own("auc", 0.1), y_true=LABEL, y_score=DOLLARS).questions[0].pairs


class TestUnits:
    def test_a_tolerance_in_dollars(self):
        policy = own("mean_absolute_error", 20_000)
        assert audited(policy, y_true=DOLLARS, y_score=DOLLARS * 1.1).verdict == "pass"

    @pytest.mark.parametrize(
        ("metric", "widest"), [("mean_absolute_error", 1), ("mean_residual", 2)]
    )
    def test_of_scores_from_0_to_1_nothing_could_fail(self, metric, widest):
        """It passed, whatever the scores."""
        words = (
            f"tolerance is 500; accepted: a number above 0 and below {widest}: the gap of {metric} "
            "cannot be larger"
        )
        with pytest.raises(fa.errors.ArgumentError, match=words):
            audited(own(metric, 500), y_true=LABEL, y_score=SCORE)
