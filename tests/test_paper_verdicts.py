"""docs/verdicts.md has the tables that its script makes of audits, and all of them."""

import re
from pathlib import Path

import numpy as np
import pytest

import fairaudit_rs as fa

verdicts = pytest.importorskip("benches.papers.verdicts", reason="needs scikit-learn")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "verdicts.md"


def cells(text):
    """The rows of the first table of a text, without its head."""
    lines = text[text.index("| ") :].split("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


@pytest.fixture(scope="module")
def found():
    """A small data set: 3 groups, of which one is approved less often and one is tiny."""
    rng = np.random.default_rng(0)
    n = 1_600
    group = rng.choice(["a", "b", "c"], n, p=[0.55, 0.44, 0.01])
    merit = rng.normal(0, 1, n) - 1.5 * (group == "b")
    rows = verdicts.AuditRows(
        "small",
        np.column_stack([merit, rng.normal(0, 1, n)]),
        (merit + rng.normal(0, 0.5, n) > 0).astype(int),
        {"group": group, "side": np.where(rng.random(n) < 0.5, "left", "right")},
    )
    model = next(iter(verdicts.models(rows)))
    return model, verdicts.audited(model)


def test_shares_are_those_of_the_audits(found):
    model, audits = found
    table = cells(verdicts.share_table(audits))
    assert [row[0] for row in table] == [f"`{name}`" for name in verdicts.POLICIES]
    for row, audit in zip(table, audits, strict=True):
        # What the script audits is what the package says of the same decisions.
        again = fa.audit(
            model.rows.label,
            (model.scores >= 0.5).astype(int),
            y_score=model.scores,
            sensitive_features=dict(model.rows.attributes),
            policy=audit.policy,
            evidence="none",
            rng=1,
        )
        if audit.policy != "punitive":
            assert again.verdict == audit.audit.verdict
        expected = ["100" if audit.audit.verdict == word else "0" for word in verdicts.VERDICTS]
        assert row[1:5] == expected
    words = {audit.policy: audit.audit.verdict for audit in audits}
    assert words["parity"] == words["four_fifths"] == "fail"
    assert verdicts.reason(audits[3].audit) == "a gap between groups of group"
    assert table[3][5] == "a gap between groups of group (1 of 1)"


def test_an_accusation_is_the_other_decision(found):
    model, audits = found
    punitive = audits[verdicts.POLICIES.index("punitive")].audit
    turned = fa.audit(
        1 - model.rows.label,
        (model.scores < 0.5).astype(int),
        sensitive_features=dict(model.rows.attributes),
        policy="punitive",
        evidence="none",
        rng=1,
    )
    for question, other in zip(punitive.questions, turned.questions, strict=True):
        assert (question.metric, question.verdict) == (other.metric, other.verdict)
        assert [g.value for g in question.groups] == pytest.approx(
            [g.value for g in other.groups], nan_ok=True
        )


def test_questions_are_counted(found):
    _, audits = found
    for row, audit in zip(cells(verdicts.question_table(audits)), audits, strict=True):
        asked = [q for q in audit.audit.questions if q.binding]
        assert row[1] == str(len(asked))
        n_pass = sum(q.verdict == "pass" for q in asked)
        assert row[3] == f"{100 * n_pass / len(asked):.0f}"


def test_the_page_agrees_with_itself():
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## Shares of verdicts")[2]
    shares, every = cells(section), cells(section.partition("## Every audit")[2])
    words = {"fail": 0, "**pass**": 1, "-": 2, "none": 3}
    for column, row in enumerate(shares):
        counts = np.bincount([words[line[3 + column]] for line in every], minlength=4)
        expected = [f"{100 * n / len(every):.0f}" for n in counts]
        assert row[1:5] == expected, row[0]
    assert [row[0] for row in shares] == [f"`{name}`" for name in verdicts.POLICIES]
    assert {row[0] for row in every} == {load.__name__ for load in verdicts.DATA_SETS}
    outputs = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(outputs) == len(verdicts.OUTPUTS) == 10
    assert all(output.startswith(("FAIL", "PASS", "INCONCLUSIVE", "NOT")) for output in outputs)
