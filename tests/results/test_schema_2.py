"""Results that the layout before this one stored are read, with their notes."""

import json
from pathlib import Path

import pytest

import fairaudit_rs as fa

STORED = json.loads(Path(__file__).with_name("schema_2.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("content", STORED, ids=lambda content: content["kind"])
def test_a_stored_result_is_read(content):
    result = fa.from_dict(content)
    assert type(result).__name__ == content["kind"]
    texts = content.get("notes", content.get("warnings"))
    assert [note.text for note in result.notes] == texts
    assert {note.code for note in result.notes} <= {"unnamed"}
    assert texts == list(result.warnings)
    again = result.to_dict()
    assert again["schema_version"] == 3
    assert fa.from_dict(json.loads(json.dumps(again))) == result
    old = {"schema_version", "summary", "notes", "warnings", "others", "results", "feasibility"}
    same = content.keys() - old
    assert {name: again[name] for name in same} == {name: content[name] for name in same}
    for text in texts:
        assert text in str(result)


def test_notes_of_every_kind_are_there():
    """The corpus has notes to read."""
    assert sum(bool(content.get("notes", content.get("warnings"))) for content in STORED) >= 3


def test_other_versions_are_refused():
    content = {**STORED[0], "schema_version": 1}
    with pytest.raises(fa.errors.DataError, match="schema_version is 1; accepted: 3"):
        fa.from_dict(content)
