"""Notes of permutation results: codes, subjects and scopes."""

from __future__ import annotations

import numpy as np

import fairaudit_rs as fa
from fairaudit_rs.report.codes import NOTE_CODES
from fairaudit_rs.report.notes import Note, fold_notes


def rows(n, groups, seed=1):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 2, n) for name in ("y_true", "y_pred")}
    return columns | {"sensitive_features": rng.choice(groups, n)}


def test_notes_of_groups_name_them():
    result = fa.permutation_test(**rows(60, list("abcd")), metric="f1", n_resamples=99, rng=1)
    few = [note for note in result.notes if note.code.startswith("few-true")]
    assert few
    assert all(note.text.startswith(f"{note.subject[0]} has only") for note in few)
    assert {note.code for note in result.notes} <= set(NOTE_CODES)
    assert fa.from_dict(result.to_dict()).notes == result.notes


def test_notes_of_components_have_their_scope():
    data = rows(40, ["a", "b"])
    data["y_pred"][data["sensitive_features"] == "a"] = 1
    result = fa.permutation_test(**data, metric="equalized_odds", n_resamples=99, rng=1)
    scopes = {note.scope for note in result.notes}
    assert scopes <= {"", "true_positive_rate", "false_positive_rate"}


def test_notes_with_reasons_of_different_kinds_are_not_folded():
    def noted(*kinds):
        return [
            Note("no-pvalue", f"no p-value: {kind} {i}", (f"g{i}",), reason=kind)
            for i, kind in enumerate(kinds)
        ]

    assert len(fold_notes(noted("low", "low", "low"))) == 1
    assert len(fold_notes(noted("low", "high", "low"))) == 3
