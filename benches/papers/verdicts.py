"""Verdicts of `audit` on the public data sets, with ordinary models and every named policy.

Half of the rows train a logistic regression and gradient boosting, the other half is audited.
"""

import argparse
import os
import textwrap
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import fairaudit_rs as fa
from fairaudit_rs.auditing.findings import QuestionFinding
from fairaudit_rs.auditing.presets import OWN_PRESETS

from .data import Matrix, prepare
from .reproduction import table, write_section
from .verdicts_data import DATA_SETS, AuditRows
from .verdicts_text import OUTPUTS_TEXT, QUESTIONS_TEXT, SETTINGS, SHARES_TEXT, VERDICTS_TEXT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdicts.md"
POLICIES = tuple(str(record["name"]) for record in OWN_PRESETS)
MODELS = ("logistic regression", "gradient boosting")
VERDICTS = ("fail", "pass", "inconclusive", "not_measurable")
SEED, MOST_ROWS, THRESHOLD, WIDTH = 2026, 30_000, 0.5, 100


@dataclass(frozen=True)
class Model:
    """Labels, decisions and scores of the rows that had no part in the training."""

    name: str
    rows: AuditRows
    scores: np.ndarray

    def audit(self, policy: fa.Policy) -> fa.Audit:
        """The verdict of a policy; 1 is favourable, also where the policy accuses."""
        return fa.audit(
            self.rows.label,
            (self.scores >= THRESHOLD).astype(np.int64),
            y_score=None if policy.punitive else self.scores,
            sensitive_features=dict(self.rows.attributes),
            policy=replace(policy, favourable=1),
            evidence="none",
            rng=SEED,
        )


@dataclass(frozen=True)
class Audited:
    """An audit, and of what."""

    data: str
    model: str
    policy: str
    audit: fa.Audit


def models(rows: AuditRows) -> Iterator[Model]:
    """Fit both models to half of the rows, at most 30,000 of them."""
    rng = np.random.default_rng([SEED, zlib.crc32(rows.name.encode())])
    order = rng.permutation(len(rows.label))[:MOST_ROWS]
    half = len(order) // 2
    train, held_out = rows.take(order[:half]), rows.take(order[half:])
    filled = prepare(train.features, held_out.features)
    logistic = LogisticRegression(max_iter=2_000).fit(filled[0], train.label)
    yield Model(MODELS[0], held_out, _scores(logistic, filled[1]))
    boosting = HistGradientBoostingClassifier(random_state=SEED).fit(train.features, train.label)
    yield Model(MODELS[1], held_out, _scores(boosting, held_out.features))


def _scores(
    model: LogisticRegression | HistGradientBoostingClassifier, features: Matrix
) -> np.ndarray:
    return np.asarray(model.predict_proba(features))[:, 1]


def audited(model: Model, policies: Sequence[str] = POLICIES) -> list[Audited]:
    """Hold a model to every policy."""
    return [
        Audited(model.rows.name, model.name, name, model.audit(fa.Policy.preset(name)))
        for name in policies
    ]


# -- why -----------------------------------------------------------------------------------------


def reason(audit: fa.Audit) -> str:
    """Why an audit has its verdict: what is commonest among the questions that made it."""
    told = [
        _why(question)
        for question in audit.questions
        if question.binding and question.verdict == audit.verdict
    ]
    return Counter(told).most_common(1)[0][0] if told else ""


def _why(finding: QuestionFinding) -> str:
    pair, tolerance = finding.telling_pair, finding.tolerance
    if finding.verdict == "not_measurable" or pair is None or tolerance is None:
        return "fewer than two groups with enough eligible rows"
    if finding.verdict == "fail":
        return f"a gap between groups of {finding.attribute}"
    if finding.verdict == "pass":
        return "every gap is shown to be small"
    if finding.reason:
        return "too many people in groups that could not be tested"
    seen = pair.test.estimate
    is_gap = tolerance.scale == "difference"
    if seen > tolerance.value if is_gap else seen < tolerance.value:
        return "a gap seen beyond the tolerance may be chance"
    return "a gap seen within the tolerance, too few rows to show it"


# -- tables --------------------------------------------------------------------------------------


def share_table(found: Sequence[Audited]) -> str:
    """Audits by policy: percentages of each verdict, and the commonest reason of it."""
    rows = []
    for policy in dict.fromkeys(value.policy for value in found):
        audits = [value.audit for value in found if value.policy == policy]
        rows.append(
            [
                f"`{policy}`",
                *shares(audit.verdict for audit in audits),
                _commonest(audits, "fail"),
                _commonest(audits, "inconclusive", "not_measurable"),
            ]
        )
    heads = [word.replace("_", " ") for word in VERDICTS]
    return table(["policy", *heads, "most fail for", "most are undecided for"], rows)


def question_table(found: Sequence[Audited]) -> str:
    """Binding questions by policy: percentages of each verdict."""
    rows = []
    for policy in dict.fromkeys(value.policy for value in found):
        asked = [
            question.verdict
            for value in found
            if value.policy == policy
            for question in value.audit.questions
            if question.binding
        ]
        rows.append([f"`{policy}`", f"{len(asked)}", *shares(asked)])
    return table(["policy", "questions", *(word.replace("_", " ") for word in VERDICTS)], rows)


def shares(verdicts: Iterable[str]) -> list[str]:
    """Percentages of the verdicts."""
    counts = Counter(verdicts)
    return [f"{100 * counts[word] / counts.total():.0f}" for word in VERDICTS]


def _commonest(audits: Sequence[fa.Audit], *verdicts: str) -> str:
    told = Counter(reason(audit) for audit in audits if audit.verdict in verdicts)
    if not told:
        return "-"
    text, n = told.most_common(1)[0]
    return f"{text} ({n} of {told.total()})"


def verdict_table(found: Sequence[Audited]) -> str:
    """The verdict of every audit."""
    policies = list(dict.fromkeys(value.policy for value in found))
    rows: dict[tuple[str, str], list[str]] = {}
    for value in found:
        word = {"pass": "**pass**", "inconclusive": "-", "not_measurable": "none"}
        verdict = word.get(value.audit.verdict, value.audit.verdict)
        first = [value.data, f"{value.audit.n_rows:,}", value.model.split()[-1]]
        rows.setdefault((value.data, value.model), first).append(verdict)
    return table(["data", "rows", "model", *(f"`{name}`" for name in policies)], rows.values())


# -- outputs -------------------------------------------------------------------------------------

BOTH = fa.Policy(
    name="outcome_and_opportunity",
    criteria=[
        fa.Criterion(metric="positive_predictive_value", tolerance=0.1),
        fa.Criterion(metric="true_positive_rate", tolerance=0.1),
    ],
)
STRICT_PARITY = fa.Policy(
    name="strict_parity", criteria=[fa.Criterion(metric="selection_rate", tolerance=0.05)]
)
# What is printed: the data, the model, the policy, and why it is shown.
OUTPUTS: tuple[tuple[str, int, str | fa.Policy, str], ...] = (
    ("german", 0, "opportunity", "few rows, and a group that is too small"),
    ("student", 1, "opportunity", "all but one group is shown"),
    ("student", 0, "four_fifths", "a ratio, and few rows"),
    ("compas", 0, "error_balance", "many fails"),
    ("adult", 1, "four_fifths", "ratios that fail"),
    ("bank", 0, "opportunity", "a gap at the tolerance"),
    ("default", 1, STRICT_PARITY, "a tolerance of 5 points"),
    ("default", 0, "four_fifths", "a pass, and what it does not see"),
    ("meps15", 0, BOTH, "two criteria, and a group without positive decisions"),
    ("adult", 1, "error_balance", "many rows, and small groups"),
)


def output(model: Model, policy: str | fa.Policy, why: str) -> str:
    """An audit as it is printed, with lines that fit on a page."""
    audit = model.audit(fa.Policy.preset(policy) if isinstance(policy, str) else policy)
    lines = [
        part
        for line in str(audit).splitlines()
        for part in (
            textwrap.wrap(line, WIDTH, break_on_hyphens=False)
            if not line.startswith("  ")
            else [line]
        )
        or [""]
    ]
    name = policy if isinstance(policy, str) else policy.name
    text = "\n".join(lines)
    return f"### {model.rows.name}, {model.name}, `{name}`: {why}\n\n```text\n{text}\n```\n"


def main() -> None:
    """Run, print and perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/verdicts.md")
    arguments = parser.parse_args()
    found: list[Audited] = []
    printed: dict[int, str] = {}
    for load in DATA_SETS:
        rows = load()
        for model in models(rows):
            found += audited(model)
            for i, (name, which, policy, why) in enumerate(OUTPUTS):
                if name == rows.name and MODELS[which] == model.name:
                    printed[i] = output(model, policy, why)
    tables = [share_table(found), question_table(found), verdict_table(found)]
    texts = [printed[i] for i in range(len(OUTPUTS))]
    print(*tables, *texts, sep="\n")
    if arguments.write:
        n_models = len(found) // len(POLICIES)
        parts = [SETTINGS.format(n_models=n_models, n_sets=len(DATA_SETS))]
        heads = SHARES_TEXT, QUESTIONS_TEXT, VERDICTS_TEXT
        parts += [part for pair in zip(heads, tables, strict=True) for part in pair]
        parts += [OUTPUTS_TEXT, *texts]
        write_section("verdicts", "\n".join(parts), PAGE)


if __name__ == "__main__":
    main()
