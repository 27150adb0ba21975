"""Columns of every kind: what they are read as, and what is refused by name."""

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import errors

N = 1_200


def make():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(N) < 0.5, "t", "other")
    flag = rng.random(N) < 0.4
    text = rng.choice(np.array(["u", "missing", None], dtype=object), N)
    return group, flag, text, rng.random(N) < np.where(flag, 0.3, 0.6)


def audit(X, **options):
    group, _, _, decided = make()
    given = {"sensitive_features": group, "target": "t", "n_draws": 39, "rng": 1}
    return fa.influence_audit(y_pred=decided, X=X, metric="selection_rate", **given | options)


class TestArguments:
    @pytest.mark.parametrize(
        ("X", "options", "words"),
        [
            ({}, {}, "X has no columns. Pass at least one feature"),
            ({"a": np.zeros(N), "b": np.zeros(3)}, {}, "X has 3 rows; the labels and scores have"),
            ({"a": np.zeros(N)}, {"features": []}, "features is empty; accepted: column names"),
            ({"a": np.zeros(N)}, {"sets": {"s": 3}}, r"sets\['s'\] is 3; accepted: a list of col"),
            ({"a": np.zeros(N)}, {"sets": {"s": []}}, r"sets\['s'\] is empty; accepted: a list"),
            ({"a": np.zeros(N)}, {"sets": {"s": "a"}}, r"sets\['s'\] is 'a'; accepted: a list of"),
            (
                {"a": np.arange(N) % 2, "b": np.arange(N) % 3 < 1, "c": np.arange(N)},
                {"sets": {"c": ["a", "b"]}},
                "sets has the key 'c', which is the name of a feature",
            ),
        ],
    )
    def test_bad_columns(self, X, options, words):
        with pytest.raises(errors.FairAuditError, match=words):
            audit(X, **options)

    @pytest.mark.parametrize(
        ("name", "column", "words"),
        [
            ("text", np.arange(N), "feature 'text' holds numbers where text"),
            ("flag", np.full(N, 0.5), "feature 'flag' holds numbers where booleans"),
            ("number", np.full(N, "q"), "feature 'number' holds text where numbers are"),
        ],
    )
    def test_later_rows_of_another_kind(self, name, column, words):
        group, flag, text, _ = make()
        X = {"text": text, "flag": flag, "number": 1.0 * flag}
        repair = audit(X).repair(rng=1)
        with pytest.raises(errors.DataError, match=words):
            repair.transform(X | {name: column}, group)


class TestKnownValues:
    def test_a_level_called_missing_is_not_a_missing_value(self):
        group, _, text, _ = make()
        result = audit({"text": text})
        inside, psi = text[group == "t"], result.influence
        names = {"u": "u", "missing": "missing", None: "(missing)"}
        means = {shown: psi[inside == level].mean() for level, shown in names.items()}
        scores = {score.levels: score.estimate for score in result.proxy_scores}
        assert len(scores) == 3
        for (first, second), estimate in scores.items():
            assert estimate == pytest.approx(means[first] - means[second], abs=1e-12)

    def test_a_missing_value_that_was_not_seen_is_no_level_called_missing(self):
        _, flag, text, _ = make()
        known = np.where([value is None for value in text], "u", text)
        repair = audit({"text": known, "flag": flag}).repair(rng=1)
        later = {"text": np.array(["missing", None], dtype=object), "flag": [True, True]}
        assert repair.transform_report(later, ["t", "t"]).unseen.tolist() == [False, True]

    @pytest.mark.parametrize("kind", [np.float16, np.longdouble])
    def test_floats_of_any_width(self, kind):
        _, flag, _, _ = make()
        number = (np.arange(N) % 7).astype(kind)
        assert audit({"a": flag.astype(kind), "b": number}).to_dict() == (
            audit({"a": 1.0 * flag, "b": number.astype(float)}).to_dict()
        )
