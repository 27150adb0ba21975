"""Random audits whose every sentence is read back and compared with NumPy: see `words`."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import fairaudit_rs as fa
from fairaudit_rs.auditing import document, lens_verdicts, request, result, wording
from fairaudit_rs.auditing.findings import QuestionFinding
from fairaudit_rs.auditing.rules import report
from fairaudit_rs.auditing.sentences import SENTENCES, read_sentence
from fairaudit_rs.permutation.tolerance import ToleranceTest
from fairaudit_rs.report.notes import Note, fold_notes

from .words import World
from .words_audits import (
    LENSES,
    audit_of,
    audited,
    audited_from_file,
    lens_world,
    random_world,
)
from .words_json import DictReader
from .words_lines import WORDS
from .words_markdown import errors_of_page
from .words_read import Reader, errors_of

AUDITS = 100
#: Every tenth audit is one of a file, of the rows that a filter keeps; every third one has lenses.
OF_FILE, OF_LENSES = 10, 3
#: By seed.
OUTCOMES = {}


def errors_of_seed(seed, folder):
    """Return what is false in the words of a random audit."""
    return outcome_of(seed, folder)[0]


def outcome_of(seed, folder):
    """Return what is false in the words of a random audit, and which sentences it has."""
    if seed not in OUTCOMES:
        if seed % OF_FILE == OF_FILE - 1:
            outputs = audited_from_file(random_world(seed), seed, folder)
        else:
            world = (lens_world if seed % OF_LENSES == 0 else random_world)(seed)
            outputs = outputs_of(world, audit_of(world, seed))
        OUTCOMES[seed] = read_outputs(*outputs)
    return OUTCOMES[seed]


def outputs_of(world, audit):
    """Return an audit as text, as Markdown and as JSON."""
    return world, audit.to_text(), audit.to_markdown(), audit.to_dict()


def read_outputs(world, text, page, content):
    """Return what is false in the outputs of an audit, and which sentences it has."""
    reader = Reader(world, text)
    errors = [*reader.errors, *errors_of_page(world, page, reader)]
    return [*errors, *DictReader(reader, content).errors], reader.read


def departments(**given):
    """Men and women in A, then in B: within both, women are favoured by 20 points."""
    parts = [("A", "man", 1800, 0.7), ("A", "woman", 200, 0.9)]
    parts += [("B", "man", 200, 0.1), ("B", "woman", 1800, 0.3)]
    p = np.concatenate([np.arange(n) < round(n * rate) for *_, n, rate in parts]).astype(int)
    dept, sex = (
        np.repeat([part[i] for part in parts], [part[2] for part in parts]) for i in (0, 1)
    )
    rng = np.random.default_rng(1)
    return World(
        y=None, p=p, s=np.round(rng.random(len(p)), 3), w=np.ones(len(p)), weighted=False,
        attributes={"sex": sex.astype(object)}, strata={"dept": dept}, clusters=None,
        policy=replace(fa.Policy.preset("parity"), lenses=LENSES), **given,
    )  # fmt: skip


@pytest.mark.parametrize("first", range(0, AUDITS, 10))
def test_every_sentence_is_true(first, tmp_path):
    for seed in range(first, first + 10):
        assert errors_of_seed(seed, tmp_path) == [], seed


def test_most_sentences_are_among_them(tmp_path):
    """A template that no audit prints is not checked by them."""
    read = set()
    for seed in range(AUDITS):
        read |= outcome_of(seed, tmp_path)[1]
    assert {f"{word}_{scale}" for word in ("fail", "pass", "undecided") for scale in (
        "difference", "ratio")} <= read  # fmt: skip
    assert len(read & SENTENCES.keys()) > 60, sorted(SENTENCES.keys() - read)


def test_every_sentence_has_a_check():
    """A sentence without a method of the reader would be an error in the first audit with it."""
    assert [name for name in SENTENCES if not hasattr(Reader, f"on_{name}")] == []


def test_a_sentence_without_a_template_is_an_error():
    world = departments()
    text = audited(world, 1)
    assert errors_of(world, text) == []
    changed = text.replace("The gap of", "A gap that amounts to")
    assert any("no template fits" in error for error in errors_of(world, changed))


def town():
    """Women have lower scores; two lenses bind."""
    rng = np.random.default_rng(1)
    n = 1_500
    woman = np.arange(n) % 2 == 0
    X = pd.DataFrame({"income": rng.normal(0, 1, n) - 1.5 * woman, "hours": rng.normal(0, 1, n)})
    score = 1 / (1 + np.exp(-X["income"].to_numpy()))
    criteria = [
        fa.Criterion(metric="selection_rate", tolerance=0.3, binding=False),
        fa.Criterion(lens="influence", tolerance=0.02),
        fa.Criterion(lens="projection", tolerance=0.02),
    ]
    policy = fa.Policy(
        name="lenses", criteria=criteria, lenses=["permutation", "projection", "influence"]
    )
    return World(
        y=None, p=(score >= 0.5).astype(int), s=score, w=np.ones(n), weighted=False,
        attributes={"sex": np.where(woman, "woman", "man").astype(object)}, strata={},
        clusters=None, policy=policy, X=X, coef=(1.0, 0.0),
    )  # fmt: skip


def of_groups(sizes, preset, **given):
    """An audit of groups by sex: rows and positive decisions of each."""
    p = np.concatenate([np.arange(n) < x for x, n in sizes.values()]).astype(int)
    sex = np.repeat(np.array(list(sizes), dtype=object), [n for _, n in sizes.values()])
    policy = fa.Policy.preset(preset, **given) if isinstance(preset, str) else preset
    return replace(
        departments(), p=p, s=None, w=np.ones(len(p)), attributes={"sex": sex}, strata={},
        policy=replace(policy, lenses=LENSES),
    )  # fmt: skip


LENDING = {"ratio": 0.8, "references": {"sex": "man"}}


class TestRare:
    """Sentences that few random audits have."""

    def read(self, world):
        errors, read = read_outputs(*outputs_of(world, audit_of(world, 1)))
        assert errors == []
        return read

    @pytest.mark.parametrize(("n", "name"), [(4, "one_more_fails"), (6, "more_fail")])
    def test_more_than_three_fails(self, n, name):
        world = of_groups({"man": (900, 1_000), "woman": (500, 1_000)}, "parity")
        [column] = world.attributes.values()
        attributes = {f"attribute {i}": column for i in range(n)}
        assert name in self.read(replace(world, attributes=attributes))

    def test_a_reference_that_nobody_else_has(self):
        sizes = {"man": (0, 200), "woman": (20, 200)}
        assert "no_adverse_impact" in self.read(of_groups(sizes, "fair_lending", **LENDING))

    def test_an_attribute_without_a_reference(self):
        world = of_groups({"man": (90, 200), "woman": (80, 200)}, "fair_lending", **LENDING)
        race = np.where(np.arange(400) % 2, "a", "b").astype(object)
        world = replace(world, attributes=world.attributes | {"race": race})
        assert "no_reference" in self.read(world)

    @pytest.mark.parametrize(
        ("sizes", "name"),
        [
            ({"man": (90, 200), "woman": (80, 200), "other": (1, 1)}, "no_mean_of_group"),
            ({"man": (90, 200), "other": (1, 1)}, "no_means_of_few"),
        ],
    )
    def test_means_of_one_row(self, sizes, name):
        world = of_groups(sizes, "fair_lending", **LENDING)
        score = np.round(np.random.default_rng(1).random(world.n), 3)
        assert name in self.read(replace(world, s=score))

    def test_one_group(self):
        world = of_groups({"man": (90, 200), "woman": (80, 200)}, "us_eeoc")
        race = np.array(["a"] * 400, dtype=object)
        world = replace(world, attributes=world.attributes | {"race": race})
        assert "one_group" in self.read(world)

    def test_nobody_is_selected(self):
        sizes = {"man": (0, 200), "woman": (0, 100), "Unknown": (20, 20)}
        assert "nobody_selected" in self.read(of_groups(sizes, "us_eeoc"))

    def test_a_small_category_with_the_highest_rate(self):
        sizes = {"man": (100, 500), "woman": (90, 500), "other": (8, 9)}
        assert "small_highest" in self.read(of_groups(sizes, "nyc_ll144"))

    @pytest.mark.parametrize(
        ("make", "seed", "name"),
        [(random_world, 321, "few_events"), (lens_world, 333, "silent_lens")],
    )
    def test_a_random_audit_that_has_it(self, make, seed, name):
        world = make(seed)
        errors, read = read_outputs(*outputs_of(world, audit_of(world, seed)))
        assert errors == []
        assert name in read

    def test_notes_of_one_kind_are_folded(self):
        notes = [
            Note(
                "simulated-cuts",
                f"extremes, race: the p-value of {first} and {second} is a bound: cuts are "
                "simulated",
                (first, second),
            )
            for first, second in combinations("abc", 2)
        ]
        [line] = fold_notes(notes)
        name, _ = read_sentence(line, WORDS)
        # A warning goes on after its first words, and is read as such first.
        assert name in ("lens_warning", "folded")
        assert line.endswith("; the same of a and c and b and c (3 notes of this kind)")

    def test_gaps_that_differ_between_strata(self):
        parts = [("A", "man", 0.8), ("A", "woman", 0.4), ("B", "man", 0.4), ("B", "woman", 0.8)]
        p = np.concatenate([np.arange(500) < round(500 * rate) for *_, rate in parts]).astype(int)
        dept, sex = (np.repeat([part[i] for part in parts], 500) for i in (0, 1))
        world = replace(
            departments(), p=p, s=None, w=np.ones(2_000), attributes={"sex": sex.astype(object)},
            strata={"dept": dept},
        )  # fmt: skip
        assert "odds_differ" in self.read(world)
        w = np.round(np.random.default_rng(1).uniform(0.5, 1.5, 2_000), 3)
        assert "gap_differs" in self.read(replace(world, weighted=True, w=w))

    def test_no_decisions(self):
        """A rule about decisions, of labels alone."""
        rng = np.random.default_rng(1)
        audit = fa.audit(
            rng.integers(0, 2, 200), sensitive_features={"sex": np.repeat(["m", "f"], 100)},
            policy=replace(fa.Policy.preset("co_insurance_draft"), lenses=LENSES), rng=1,
        )  # fmt: skip
        [line] = [name for name in audit.rule_lines if name.startswith("sex")]
        assert line == "sex: no decisions were given"

    def test_intersections_that_are_not_asked(self):
        rng = np.random.default_rng(1)
        n = 4_000
        sex, race = rng.choice(["m", "f"], n), rng.choice(["a", "b"], n)
        criterion = fa.Criterion(
            metric="selection_rate", tolerance=0.3, attributes=["sex"], reference="m"
        )
        policy = fa.Policy(
            name="own", criteria=[criterion], intersections="bind", lenses=["permutation"]
        )
        audit = fa.audit(
            y_pred=rng.integers(0, 2, n), sensitive_features={"sex": sex, "race": race},
            policy=policy, rng=1,
        )  # fmt: skip
        world = World(
            y=None, p=None, s=None, w=np.ones(n), weighted=False, clusters=None, strata={},
            attributes={"sex": sex, "race": race}, policy=policy,
        )  # fmt: skip
        names = {}
        for line in audit.summary().splitlines():
            name, parts = read_sentence(line, WORDS)
            names[name] = parts
        assert {"not_asked", "some_not_asked"} <= names.keys()
        assert names["not_asked"]["attribute"] == "sex and race"
        assert "fixed reference" in names["not_asked"]["reason"]
        assert audit.verdict == "inconclusive"
        assert world.policy.intersections == "bind"


class TestPlanted:
    def test_crude_values_in_a_stratified_sentence(self, monkeypatch):
        """A1: values of all rows, size and direction from the strata."""
        world = departments()
        for name in ("first", "second"):
            crude = property(lambda test, name=name: getattr(test, name).value)
            monkeypatch.setattr(ToleranceTest, f"{name}_value", crude)
        errors = errors_of(world, audited(world, 1))
        assert any("value of man is 0.4000" in error for error in errors)
        assert any("worse off is man" in error for error in errors)

    def test_another_favourable_value(self, monkeypatch):
        """A2: the request names a value that nobody asked for."""
        world = departments(values=("fail", "pass"))
        world = replace(world, policy=replace(world.policy, favourable="pass"))
        assert errors_of(world, audited(world, 1)) == []
        monkeypatch.setattr(request, "_favourable", lambda *_: "fail")
        errors = errors_of(world, audited(world, 1))
        assert any("favourable is {'y_pred = pass'}" in error for error in errors)

    def test_a_request_without_strata(self, monkeypatch):
        """A2: the strata are not named."""
        world, lines = departments(), request.AuditRequest.lines

        def without(self, n_rows):
            return (line for line in lines(self, n_rows) if not line.startswith("Compared within"))

        monkeypatch.setattr(request.AuditRequest, "lines", without)
        assert any("lacks strata" in error for error in errors_of(world, audited(world, 1)))

    def test_extremes_of_the_comparison_that_decides(self, monkeypatch):
        """B1: 50.0 to 53.0 where the groups go from 50.0 to 54.0."""
        sizes = {"A": (2_000, 4_000), "B": (2_160, 4_000), "C": (53, 100)}
        p = np.concatenate([np.arange(n) < x for x, n in sizes.values()]).astype(int)
        group = np.repeat(list(sizes), [n for _, n in sizes.values()]).astype(object)
        world = replace(
            departments(), p=p, s=None, w=np.ones(len(p)), attributes={"race": group}, strata={}
        )
        assert errors_of(world, audited(world, 1)) == []
        deciding = property(lambda entry: entry.telling_pair.test.by_value if entry.pairs else ())
        monkeypatch.setattr(QuestionFinding, "extremes", deciding)
        errors = errors_of(world, audited(world, 1))
        assert any("extreme is B 0.5400" in error for error in errors)

    def test_a_promise_that_is_not_kept(self, monkeypatch):
        """B2: the description of fair_lending names standardized mean differences."""
        policy = fa.Policy.preset("fair_lending", ratio=0.8, references={"sex": "man"})
        world = replace(departments(), policy=replace(policy, lenses=LENSES))
        assert errors_of(world, audited(world, 1)) == []
        monkeypatch.setattr(report, "_means", lambda *_: ([], []))
        errors = errors_of(world, audited(world, 1))
        assert any("promised and missing: standardized mean" in error for error in errors)

    def test_the_groups_of_a_lens_change_places(self, monkeypatch):
        """A lens: the group with the higher rate is named as the one with the lower rate."""
        world = town()
        assert errors_of(world, audited(world, 1)) == []
        sides = lens_verdicts._sides

        def turned(entry, test):
            parts = sides(entry, test)
            return parts | {"low_group": parts["high_group"], "high_group": parts["low_group"]}

        monkeypatch.setattr(lens_verdicts, "_sides", turned)
        errors = errors_of(world, audited(world, 1))
        assert any(error.startswith("order: sex: the selection rate") for error in errors)

    def test_the_tolerance_of_a_lens(self, monkeypatch):
        world = town()
        known = lens_verdicts.LensWording._deciding_test_and_limit
        monkeypatch.setattr(
            lens_verdicts.LensWording,
            "_deciding_test_and_limit",
            lambda self, entry: (known(self, entry)[0], "0.3"),
        )
        errors = errors_of(world, audited(world, 1))
        assert any("tolerated is 2.0 points" in error for error in errors)

    def test_a_page_with_other_shares(self, monkeypatch):
        """Markdown: the table of groups has the shares of negative decisions."""
        world = departments()
        assert read_outputs(*outputs_of(world, audit_of(world, 1)))[0] == []
        percent = document._percent
        monkeypatch.setattr(document, "_percent", lambda share: percent(1 - share))
        errors, _ = read_outputs(*outputs_of(world, audit_of(world, 1)))
        assert all(error.startswith("Markdown: ") for error in errors)
        assert any("the share is 0.3600" in error for error in errors)

    def test_a_page_without_a_sentence(self, monkeypatch):
        world = departments()
        summary = result.Audit.summary

        def page(audit):
            monkeypatch.setattr(
                result.Audit, "summary", lambda self: summary(self).replace(" man.", " woman.")
            )
            text = type(audit).to_markdown(audit)
            monkeypatch.setattr(result.Audit, "summary", summary)
            return text

        audit = audit_of(world, 1)
        errors, _ = read_outputs(world, audit.to_text(), page(audit), audit.to_dict())
        assert any("Markdown: worse off is man" in error for error in errors)
        assert any("other sentences than in the text" in error for error in errors)

    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("p_fail", 0.5, "p_fail of man and woman"),
            ("p_equal", 0.5, "p of equality of man and woman"),
            ("least", 0.01, "least and p of man and woman"),
            ("estimate", 0.3, "size of man and woman"),
        ],
    )
    def test_a_number_of_the_content(self, key, value, words):
        world = departments()
        audit = audit_of(world, 1)
        content = audit.to_dict()
        content["questions"][0]["pairs"][0]["test"][key] = value
        errors, _ = read_outputs(world, audit.to_text(), audit.to_markdown(), content)
        turned = words.replace("man and woman", "woman and man")
        assert any(name in error for error in errors for name in (f"JSON: {words}", turned))

    def test_another_group_is_worse_off(self, monkeypatch):
        world = departments()
        worse = wording.Wording._worse

        def other(self, entry, pair):
            text = worse(self, entry, pair)
            return text.replace(" man", " woman")

        monkeypatch.setattr(wording.Wording, "_worse", other)
        errors = errors_of(world, audited(world, 1))
        assert any("worse off is man" in error for error in errors)


class TestMended:
    """Contradictions that the random audits found."""

    def test_refusals_are_those_within_strata(self):
        """The note gave crude refusals: of man more often, where the strata say of woman."""
        rates = {"man": (0.99, 0.9), "woman": (0.97, 0.7)}
        sizes = {"man": (200, 1_800), "woman": (1_800, 200)}
        parts = [(s, d, sizes[s][i], rates[s][i]) for s in sizes for i, d in enumerate("AB")]
        p = np.concatenate([np.arange(n) < round(n * rate) for *_, n, rate in parts]).astype(int)
        sex, dept = (np.repeat([x[i] for x in parts], [x[2] for x in parts]) for i in (0, 1))
        policy = replace(fa.Policy.preset("four_fifths"), lenses=LENSES)
        world = replace(
            departments(), p=p, s=None, attributes={"sex": sex.astype(object)},
            strata={"dept": dept}, policy=policy,
        )  # fmt: skip
        text = audited(world, 1)
        assert "negative decisions are 3.0 times as frequent for woman" in text
        assert errors_of(world, text) == []

    def test_nothing_is_covered_by_a_question_without_a_test(self):
        """AUC within strata has no test: the coverage was 100 %."""
        world = departments()
        criterion = fa.Criterion(metric="auc", tolerance=0.1)
        policy = fa.Policy(name="own", criteria=[criterion], lenses=LENSES)
        world = replace(world, policy=policy, y=(np.arange(world.n) % 3 == 0).astype(int))
        text = audited(world, 1)
        assert text.startswith("NOT MEASURABLE (not a pass). ")
        assert "people in tested groups: sex 0.0 %." in text
        assert "There is no verdict: 1 of 1 binding questions could not be tested." in text

    def test_ratios_of_weighted_rows_within_strata_are_told(self):
        """They had no test."""
        rng = np.random.default_rng(1)
        world = departments()
        policy = replace(fa.Policy.preset("four_fifths"), lenses=LENSES)
        world = replace(
            world, policy=policy, weighted=True, w=np.round(rng.uniform(0.5, 2, world.n), 3)
        )
        text = audited(world, 1)
        assert text.startswith("FAIL. ")
        assert "people in tested groups: sex 100.0 %." in text
        assert errors_of(world, text) == []

    def test_groups_without_a_value_have_no_false_number_of_rows(self):
        """One eligible row was printed as "0 eligible rows"."""
        rng = np.random.default_rng(2)
        n = 2_000
        sex = rng.choice(["f", "m"], n).astype(object)
        race = np.where(np.arange(n) == 0, "x", rng.choice(["a", "b"], n)).astype(object)
        y = (rng.random(n) < 0.5).astype(int)
        y[0] = 1
        audit = fa.audit(
            y, (rng.random(n) < 0.5).astype(int), sensitive_features={"sex": sex, "race": race},
            policy="opportunity", rng=1, evidence="none",
        )  # fmt: skip
        text = str(audit)
        assert "(sex and race): 1 eligible row" in text
        assert "0 eligible rows" not in text.replace("10 eligible rows", "")

    def test_rows_of_weight_0_are_not_eligible_in_strata(self):
        world = departments()
        w = np.ones(world.n)
        w[:100] = 0
        text = audited(replace(world, weighted=True, w=w), 1)
        assert "70.0 % of 1,800" not in text
        assert "of 1,700" in text
        assert errors_of(replace(world, weighted=True, w=w), text) == []

    def test_a_rule_without_a_pass_has_no_fail(self):
        """The table said "not asked" of a comparison with a bound."""
        world = replace(
            departments(), policy=replace(fa.Policy.preset("us_eeoc"), lenses=LENSES), strata={}
        )
        p = (np.arange(world.n) % 2).astype(int)
        text = audited(replace(world, p=p), 1)
        [row] = [line for line in text.splitlines() if line.startswith("  sex        sel")]
        assert "no fail" in row
        assert "not asked" not in row

    def test_a_lens_that_is_not_run_has_no_share_of_its_own(self):
        """The headline said "people in tested groups: sex 100.0 %,  0.0 %"."""
        world = replace(town(), X=None, coef=None)
        criteria = [
            fa.Criterion(metric="selection_rate", tolerance=0.5),
            fa.Criterion(lens="influence", tolerance=0.02),
        ]
        lenses = ["permutation", "influence"]
        world = replace(world, policy=fa.Policy(name="own", criteria=criteria, lenses=lenses))
        text = audited(world, 1)
        assert "people in tested groups: sex 0.0 %." in text
        assert "- gap of a group to all others (influence): not measurable: needs X" in text
        assert errors_of(world, text) == []

    def test_bounds_that_are_not_adjusted_hold_each_alone(self):
        """With adjustment none they were told to hold "for all comparisons"."""
        world = departments()
        rng = np.random.default_rng(1)
        attributes = world.attributes | {"race": rng.choice(["a", "b"], world.n).astype(object)}
        policy = replace(world.policy, adjustment="none")
        world = replace(world, attributes=attributes, policy=policy)
        text = audited(world, 1)
        assert "(95 % confidence)" in text
        assert "for all comparisons" not in text
        assert "for each of them alone" in text
        assert errors_of(world, text) == []

    def test_weights_that_are_rounded_leave_nobody_out(self):
        """The headline said "more than 99.9 %" where the sum of weights was rounded."""
        assert wording._covered(1 - 2e-16) == "100.0 %"
        assert wording._covered(1 - 1e-6) == "more than 99.9 %"

    def test_a_policy_without_a_pass_promises_none(self):
        """us_eeoc said how many rows "would show a PASS of this question"."""
        p = np.concatenate([np.arange(100) < 60, np.arange(100) < 55]).astype(int)
        sex = np.repeat(np.array(["man", "woman"], dtype=object), 100)
        policy = replace(fa.Policy.preset("us_eeoc"), lenses=LENSES)
        world = replace(
            departments(), p=p, s=None, w=np.ones(200), attributes={"sex": sex}, strata={},
            policy=policy,
        )  # fmt: skip
        text = audited(world, 1)
        assert (
            "8 of 10 audits would show every comparison of this question within the tolerance"
            in text
        )
        assert "would show a PASS" not in text
        assert errors_of(world, text) == []

    def test_the_level_of_the_projection_is_that_of_the_policy(self):
        """At another alpha it said "not shown" at 5 %."""
        world = next(
            value
            for value in map(lens_world, range(100, 110))
            if value.policy.alpha == 0.1 and "projection" in value.policy.lenses
            and not value.lenses.refused("projection")
        )  # fmt: skip
        found = audit_of(world, 105).results
        projected = [value for name, value in found.items() if name.startswith("projection")]
        assert {value.confidence_level for value in projected} == {0.9}

    def test_people_who_do_not_exist_are_told_with_a_value_that_informs(self):
        """A tolerance took the note away, and left "more than 1.5 times is shown"."""
        rng = np.random.default_rng(1)
        n = 600
        woman = np.arange(n) % 2 == 0
        X = pd.DataFrame({"income": rng.normal(size=n), "hours": (rng.random(n) < 0.5) * 1.0})
        criteria = [
            fa.Criterion(metric="selection_rate", tolerance=0.3),
            fa.Criterion(
                lens="individual", tolerance=1.2, binding=False,
                fair_metric={"features": ["hours"]},
            ),
        ]  # fmt: skip
        model = fa.LinearModel([1.0, 3.0], -1.0, feature_names=list(X.columns))
        audit = fa.audit(
            (rng.random(n) < 0.5).astype(int), model.decision(X).astype(int),
            sensitive_features={"sex": np.where(woman, "f", "m")}, model=model, X=X, rng=1,
            policy=fa.Policy(name="own", criteria=criteria, lenses=["permutation", "individual"]),
        )  # fmt: skip
        [line] = [name for name in audit.summary().splitlines() if name.startswith("- individual")]
        assert "out of the observed range of hours (0 to 1)" in line
