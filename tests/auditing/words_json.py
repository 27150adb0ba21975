"""Reads the JSON of an audit, and compares it with a `World` and with the text that was read."""

import json
import math

import numpy as np

from .words import METRICS, Asked, named
from .words_pvalues import Compared, adjusted

WORDS = {
    "not_measurable": "not measurable", "not_asked": "not asked", "pass": "pass", "fail": "fail",
    "inconclusive": "inconclusive", "no_fail": "no fail",
}  # fmt: skip
#: Those with closed forms that the references have.
SCORES = ("score", "mantel-haenszel")


def nan(value):
    return math.nan if value is None else float(value)


def close(a, b, rel=1e-9, absolute=1e-12):
    return (math.isnan(a) and math.isnan(b)) or abs(a - b) <= rel * abs(b) + absolute


class DictReader:
    """The content of an audit, and what is wrong with it."""

    def __init__(self, reader, content):
        self.world, self.reader, self.errors = reader.world, reader, []
        self.content = json.loads(json.dumps(content))
        self.whole()
        self.all_questions()
        self.all_lenses()

    def check(self, holds, message):
        if not holds:
            self.errors.append(f"JSON: {message}")

    # -- the audit ---------------------------------------------------------------------------

    def whole(self):
        world, content, reader = self.world, self.content, self.reader
        self.check(content["n_rows"] == world.n, "number of rows")
        self.check(content["n_comparisons"] == world.n_tests, f"comparisons: {world.n_tests}")
        self.check(content["attributes"] == list(world.attributes), "attributes")
        self.check(content["summary"].splitlines() == reader.summary, "the summary is another one")
        words = [word for word, _ in self.of_binding(reader.rows)]
        words += [word for entry, word in reader.lens_rows.items() if entry.binding]
        order = ["fail", "inconclusive", "not measurable", "pass", "no fail", "not asked"]
        worst = min(words, key=order.index, default="not asked")
        self.check(WORDS[content["verdict"]] == worst, f"verdict: {worst}")
        request = content["request"]
        self.check((request["strata"] or []) == list(world.strata), "strata of the request")
        self.check(bool(request["clusters"]) == (world.clusters is not None), "clusters")
        self.check(("sample_weight" in request["columns"]) == world.weighted, "weights")
        value = str(world.values[0 if world.policy.punitive else 1])
        self.check(set(request["favourable"].values()) == {value}, f"favourable: {value}")
        shares = [world.coverage(criterion.attribute) for criterion in world.binding]
        if shares and not world.lenses.binding:
            said = nan(content["coverage"])
            tested = all(world.pairs(criterion) for criterion in world.binding)
            self.check(not tested or close(said, min(shares), 1e-6), f"coverage: {min(shares)}")
        passes = content["verdict"] == "pass"
        self.check((content["passes_for"] is not None) is passes, "for whom it passes")
        for rate in content["base_rates"]:
            self.base_rate(rate)

    def of_binding(self, rows):
        return [rows[i] for i in range(len(self.world.binding)) if i in rows]

    def base_rate(self, entry):
        world = self.world
        name = named(entry["group"], entry["attribute"])
        rows = world.people[entry["attribute"]].get(name)
        if rows is None:
            # People of an unknown group have base rates, too.
            return
        self.check(entry["n_rows"] == rows.sum(), f"rows of {name}")
        people = world.w[rows].sum() if world.weighted else math.nan
        self.check(close(nan(entry["weight"]), people), f"people of {name}")
        for key, column in (("base_rate", world.y), ("selection_rate", world.p)):
            wanted = math.nan if column is None else np.average(column[rows], weights=world.w[rows])
            self.check(close(nan(entry[key]), wanted), f"{key} of {name} is {wanted}")

    # -- questions ---------------------------------------------------------------------------

    def all_questions(self):
        world = self.world
        wanted = [
            Asked(criterion, name)
            for criterion in world.policy.criteria
            for name in world.attributes
            if criterion.metric is not None and criterion.covers(name)
        ]
        found = [
            question
            for question in self.content["questions"]
            if question["attribute"] in world.attributes
        ]
        self.check(len(found) == len(wanted), "number of questions")
        family = {}
        for value, asked in zip(found, wanted, strict=False):
            self.question(value, asked)
            if value["binding"] and value["pairs"] and value["same_as"] is None:
                family[len(family)] = value["pairs"]
        self.adjustment(list(family.values()))

    def adjustment(self, family):
        """The p-values of fails are adjusted for all comparisons of the audit."""
        pairs = [pair for of_question in family for pair in of_question]
        wanted = adjusted(self.world, [pair["test"]["p_fail"] for pair in pairs])
        for pair, p in zip(pairs, wanted, strict=True):
            self.check(close(pair["adjusted"], p, 1e-9), f"adjusted p is {p}")

    def question(self, entry, asked):
        world = self.world
        about = f"{asked.metric} by {asked.attribute}"
        self.check((entry["metric"], entry["attribute"]) == (asked.metric, asked.attribute), about)
        self.check(entry["binding"] is asked.criterion.binding, f"binding of {about}")
        self.check(entry["description"] == METRICS[asked.metric].words, f"words of {about}")
        self.check(entry["worse_off"] == world.worse_off(asked.metric), f"direction of {about}")
        limit = entry["tolerance"]
        if asked.tolerance is not None:
            wanted = {"value": asked.tolerance, "scale": asked.scale}
            self.check(limit == wanted, f"tolerance of {about}")
        word, _ = self.reader.rows.get(world.questions.index(asked), ("", ""))
        self.check(WORDS[entry["verdict"]] == word, f"the text says {word} of {about}")
        for group in entry["groups"]:
            name = named(group["group"], asked.attribute)
            rows = world.groups[asked.attribute].get(name)
            if rows is None or (group["value"] is None and group["reason"]):
                # Where a group has no value, nothing was counted.
                self.check(rows is not None, f"{name} is no group")
                continue
            n = world.n_eligible(asked.metric, rows)
            self.check(group["n_counted"] == n, f"eligible rows of {name} are {n}, {about}")
            if METRICS[asked.metric].above is not None and n:
                wanted = world.value(asked.metric, rows)
                self.check(close(nan(group["value"]), wanted), f"value of {name}, {about}")
        if not entry["pairs"]:
            return
        is_equality = asked.tolerance is None
        shown = world.pairs_of_tested(asked) if is_equality else world.pairs_shown(asked)
        pairs = {frozenset(pair) for pair in shown}
        found = {frozenset(self.names(pair, asked)) for pair in entry["pairs"]}
        self.check(found == pairs, f"pairs of {about}")
        able = world.tested(asked.metric, asked.attribute)
        share = world.covered(asked.metric, asked.attribute, able)
        self.check(close(nan(entry["coverage"]), share, 1e-6), f"coverage of {about} is {share}")
        for pair in entry["pairs"]:
            self.pair(pair, asked, entry, about)
        if asked.tolerance is not None:
            self.follows(entry, about)

    @staticmethod
    def names(pair, asked):
        ends = (pair["test"][end]["group"] for end in ("first", "second"))
        return [named(end, asked.attribute) for end in ends]

    def pair(self, pair, asked, entry, about):
        """Values, size, p-values and bounds of two groups."""
        world, test = self.world, pair["test"]
        names = self.names(pair, asked)
        about = f"{' and '.join(names)}, {about}"
        size = world.size(asked, *names)
        self.check(close(nan(test["estimate"]), size, 1e-9), f"size of {about} is {size}")
        found = world.compared(asked.metric, asked.attribute, *names)
        within = test["within"]
        if within is not None:
            said = nan(within["first_value"]), nan(within["second_value"])
            holds = close(said[0], found.first) and close(said[1], found.second)
            self.check(holds, f"values within strata of {about}")
            self.check(close(within["share_outside"], found.outside, 1e-9), f"outside of {about}")
        if asked.scale == "difference" or not world.one_sided(asked):
            high, low = (found.first, found.second)
            if asked.scale == "ratio":
                high, low = low, high
            self.check(np.isnan(high) or high >= low - 1e-12, f"order of {about}")
        self.bounds(pair, asked, entry, about)
        if test["method"] not in SCORES or not Compared.is_known(world, asked):
            return
        known = Compared(world, asked, *names)
        if asked.tolerance is None:
            self.equality(known, test, about)
        elif test["reason"] is None:
            p_fail, p_pass = known.pvalues(asked.tolerance)
            p_fail = p_fail if test["can_fail"] else 1.0
            for name, wanted in (("p_fail", p_fail), ("p_pass", p_pass)):
                said = nan(test[name])
                self.check(close(said, wanted, 1e-4, 1e-9), f"{name} of {about} is {wanted}")
            self.equality(known, test, about)
            self.at_bounds(known, pair, asked, entry, about)

    def equality(self, known, test, about):
        """Check the p-value of equal values."""
        wanted, said = known.p_equal, nan(test["p_equal"])
        unknown = math.isnan(wanted) and not said < 1
        holds = unknown or close(said, wanted, 1e-4, 1e-9)
        self.check(holds, f"p of equality of {about}: {wanted}")

    def bounds(self, pair, asked, entry, about):
        """Check that bounds and p-values reject the same."""
        test, alpha, limit = pair["test"], self.world.policy.alpha, asked.tolerance
        if test["reason"] is not None or limit is None:
            return
        is_gap = asked.scale == "difference"
        least, most = nan(test["least"]), nan(test["most"])
        beyond = least >= limit - 1e-12 if is_gap else least <= limit + 1e-12
        inside = most <= limit + 1e-12 if is_gap else most >= limit - 1e-12
        rejects = nan(test["p_fail"]) <= self.world.each(asked) * (1 + 1e-9)
        rejects = rejects or pair["adjusted"] <= alpha * (1 + 1e-9)
        self.check(beyond is rejects, f"least and p of {about}: {least}, {test['p_fail']}")
        shows = nan(test["p_pass"]) <= alpha * (1 + 1e-9)
        # The score within strata is not monotone: a bound may end at the tolerance.
        inside = shows if abs(most - limit) < 1e-12 else inside
        self.check(inside is shows, f"most and p of {about}: {most}, {test['p_pass']}")

    def at_bounds(self, known, pair, asked, entry, about):
        """At a bound its p-value is the level."""
        test, alpha = pair["test"], self.world.policy.alpha
        ends = 0.0 if asked.scale == "difference" else 1.0
        for name, at, level in (("least", 0, self.world.each(asked)), ("most", 1, alpha)):
            said = nan(test[name])
            free = asked.scale == "difference" and said >= 1 - 1e-9
            free |= asked.scale == "ratio" and (said < 1e-6 or self.world.one_sided(asked))
            if said in (ends, asked.tolerance) or free or not test["can_fail"]:
                continue
            p = known.pvalues(said)[at]
            self.check(close(p, level, 1e-2), f"p at {name} of {about}: {p} for {level}")

    def follows(self, entry, about):
        """The verdict of a question follows from its comparisons."""
        policy = self.world.policy
        wanted = "inconclusive"
        withheld = any(group["withheld"] for group in entry["groups"])
        if any(pair["adjusted"] <= policy.alpha * (1 + 1e-9) for pair in entry["pairs"]):
            wanted = "fail"
        elif all(nan(pair["test"]["p_pass"]) <= policy.alpha for pair in entry["pairs"]):
            covered = entry["coverage"] >= policy.min_coverage - 1e-9 and not withheld
            wanted = "pass" if covered else wanted
            wanted = wanted if policy.has_pass else "no_fail"
        self.check(entry["verdict"] == wanted, f"the verdict of {about} is {wanted}")

    # -- lenses ------------------------------------------------------------------------------

    def all_lenses(self):
        asked = {(value.lens, value.attribute): value for value in self.world.lenses.asked}
        told = [
            value
            for value in self.content["others"]
            if (value["lens"], value["attribute"]) in asked
        ]
        self.check(len(told) == len(asked), "lenses that have a verdict")
        for found in told:
            one = asked[found["lens"], found["attribute"]]
            about = f"{one.lens} by {one.attribute}"
            word = self.reader.lens_rows.get(one, "")
            self.check(WORDS[found["verdict"]] == word, f"the text says {word} of {about}")
            self.check(found["tolerance"]["value"] == one.tolerance, f"tolerance of {about}")
            self.check(found["binding"] is one.binding, f"binding of {about}")
            for test in found["tests"]:
                if test["reason"] is None and one.lens in ("projection", "influence"):
                    self.gap(one, test, about)
            share = nan(found["coverage"])
            wanted = self.world.lenses.coverage(one)
            if one.lens != "projection" and word != "not measurable":
                self.check(close(share, wanted, 1e-6), f"coverage of {about} is {wanted}")

    def gap(self, entry, test, about):
        names = {test["first"], test["second"]}
        [gap] = [gap for gap in self.world.lenses.gaps(entry) if {gap.high, gap.low} == names]
        said = [nan(test[key]) for key in ("first_value", "second_value", "estimate")]
        wanted = gap.high_value, gap.low_value, gap.size
        same = all(close(a, b, 1e-9, 1e-9) for a, b in zip(said, wanted, strict=True))
        self.check(same, f"values of {about}: {wanted}")
        self.check(close(nan(test["p_fail"]), gap.p_fail, 1e-3, 1e-9), f"p of {about}")
        if not math.isnan(gap.p_pass):
            self.check(close(nan(test["p_pass"]), gap.p_pass, 1e-3, 1e-9), f"p_pass of {about}")
