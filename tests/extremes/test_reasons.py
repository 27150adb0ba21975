"""Notes with reasons: three or more are printed as one only if their reasons are of one kind."""

from fairaudit_rs.extremes.reasons import notes_with_reasons
from fairaudit_rs.report.notes import Note, fold_notes

FEW = ("12 rows; a tail needs at least 20", "8 rows; a tail needs at least 20")
EQUAL = "the 50 largest values are all 0.1"


def noted(reasons):
    return [
        (Note("group-not-compared", f"{name} is not compared: {reason}", (name,)), reason)
        for name, reason in zip("abc", reasons, strict=True)
    ]


def test_reasons_that_differ_in_numbers_are_printed_as_one():
    notes = notes_with_reasons(noted((*FEW, FEW[0])))
    assert [note.subject for note in notes] == [("a",), ("b",), ("c",)]
    [text] = fold_notes(notes)
    assert text == f"a is not compared: {FEW[0]}; the same of b and c (3 notes of this kind)"


def test_other_reasons_are_printed_one_by_one():
    notes = notes_with_reasons(noted((*FEW, EQUAL)))
    assert fold_notes(notes) == [note.text for note in notes]
    assert [note.text for note in notes] == [note.text for note, _ in noted((*FEW, EQUAL))]


def test_each_code_has_its_own_reasons():
    other = Note("no-tail-fit", f"d: no fit: {EQUAL}", ("d",))
    notes = notes_with_reasons([*noted((*FEW, FEW[0])), (other, EQUAL)])
    assert [note.subject for note in notes] == [("a",), ("b",), ("c",), ("d",)]
