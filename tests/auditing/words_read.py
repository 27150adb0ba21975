"""Reads the text of an audit back, sentence by sentence, and compares it with a `World`.

`errors_of(world, text)` returns what is false. Each sentence of the table in
`auditing/sentences.py` has one method here, named after it; a line that no template fits, and a
sentence that has no method, are errors.
"""

import re

import numpy as np

from fairaudit_rs import __version__
from fairaudit_rs.auditing.sentences import read_part, read_sentence

from .words import METRICS, SAME_GAPS, WORSE, Asked, breslow_day
from .words_rules import RuleReader

BY_WORDS = {one.words: name for name, one in METRICS.items()}
#: What a sentence may call a metric.
WORDS = (*BY_WORDS, *METRICS)
_SIZE = re.compile(r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)( %| points|)")
HEADLINES = {
    "FAIL": "fail",
    "INCONCLUSIVE (not a pass)": "inconclusive",
    "NOT MEASURABLE (not a pass)": "not measurable",
    "NOT ASKED": "not asked",
    "PASS": "pass",
    "PASS for the groups that could be measured, not for all": "pass",
    "NO FAIL (the policy knows no pass)": "no fail",
}
#: Verdicts of the table, the worst one first.
WORST = ["fail", "inconclusive", "not measurable", "pass", "no fail", "not asked"]
#: What descriptions of policies promise, with the columns that it takes and its sentences.
PROMISES = {
    "standardized mean differences": ("s", {"mean_difference"}),
    "Adverse impact ratios": ("p", {"adverse_impact", "no_adverse_impact"}),
    "test of equal rates": ("p", {"impact_ratio", "nobody_selected"}),
    "Impact ratios of Local Law 144": ("p", {"category", "missing"}),
    "approvals that differ significantly": ("p", {"approval_gap"}),
}


def number(text):
    return float(text.replace(",", ""))


def says(text, value):
    """Whether a number with its unit is a value, rounded to the digits that it has."""
    found = _SIZE.fullmatch(text)
    if found is None or np.isnan(value):
        return False
    digits, unit = found.groups()
    value *= 100 if unit else 1
    mantissa, _, power = digits.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(power or 0)
    return abs(number(digits) - value) <= 0.5 * 10.0**-decimals * (1 + 1e-6) + 1e-12


def names_in(text):
    """The names of a list: a, b and c."""
    return [name for part in text.split(", ") for name in part.split(" and ")]


class Reader(RuleReader):
    """The lines of a text, and what is wrong with them."""

    def __init__(self, world, text):
        self.world, self.errors, self.line = world, [], ""
        #: The sentences that were read, by name, and the comparisons that they are about.
        self.read, self.told = set(), {}
        #: The rows of the table of questions: the verdict, and the groups that decide.
        self.rows = {}
        self._lines(text)

    def check(self, holds, message):
        if not holds:
            self.errors.append(f"{message}: {self.line}")

    # -- parts of the text -------------------------------------------------------------------

    def _lines(self, text):
        body, _, rule = text.partition("\n\nWhat the rule says:\n")
        summary, *tables = body.split("\n\n")
        notes = [line for part in tables for line in part.splitlines() if line[:6] == "Note: "]
        if not tables:
            notes = [line for line in summary.splitlines() if line[:6] == "Note: "]
            summary = "\n".join(line for line in summary.splitlines() if line[:6] != "Note: ")
        for part in tables:
            lines = [line for line in part.splitlines() if line[:6] != "Note: "]
            if lines and lines[0].startswith("  attribute"):
                self.table(lines)
            elif lines:
                self.stratum_table(lines)
        for line in summary.splitlines():
            self.sentence(line.removeprefix("  "), line)
        for line in notes:
            self.sentence(line.removeprefix("Note: ").removesuffix("."), line)
        for line in rule.splitlines():
            self.rule_line(line.strip())
        self.line = "the whole text"
        self.promises()
        self.request_is_whole()

    def sentence(self, text, line):
        self.line = line
        found = read_sentence(text, WORDS)
        if found is None:
            self.check(False, "no template fits")
            return
        name, parts = found
        self.read.add(name)
        method = getattr(self, f"on_{name}", None)
        if method is None:
            self.check(False, f"the sentence {name} is not checked")
            return
        method(**parts)

    def promises(self):
        """All that the description of a policy promises is there."""
        for words, (role, names) in PROMISES.items():
            if words in self.world.policy.description and role in self.world.roles:
                self.check(names & self.read, f"promised and missing: {words}")

    # -- the request -------------------------------------------------------------------------

    def on_headline(self, verdict, n_rows, policy, covered):
        world = self.world
        self.check(number(n_rows) == world.n, "number of rows")
        words = [self.rows[i][0] for i in range(len(world.binding)) if i in self.rows]
        worst = min(words, key=WORST.index, default="not asked")
        self.check(HEADLINES.get(verdict) == worst, f"verdict of the table: {worst}")
        self.check(f'policy "{world.policy.name}"' in policy, "policy")
        for one in world.policy.binding:
            text = f"{one.metric} ({METRICS[one.metric].words}), "
            at_least = one.tolerance is None
            text += f"ratios of at least {one.ratio:g}" if at_least else ""
            text += "" if at_least else f"differences up to {one.tolerance:g}"
            self.check(text in policy, f"criterion {text}")
            if one.reference is not None:
                self.check(f"to {'the ' * (one.reference in ('highest', 'best'))}{one.reference}"
                           in policy, "reference")  # fmt: skip
        covered = read_part("covered", covered)
        shares = {}
        if covered:
            texts = re.findall(r"(.+?) (more than 99\.9 %|[\d.]+ %)(?:, |$)", covered[1]["shares"])
            shares = dict(texts)
        binding = dict.fromkeys(one.attribute for one in world.binding)
        self.check(set(shares) == set(binding), "attributes of coverage")
        for name, text in shares.items():
            least = world.coverage(name)
            near = 0.9995 <= least < 1 if text.startswith("more") else says(text, least)
            self.check(near, f"coverage of {name} is {least:.5f}")
        partial = min(map(world.coverage, binding), default=1) < world.policy.strict_coverage - 1e-9
        self.check(verdict != "PASS" or not partial, "a pass for all, though people are left out")

    def on_asked_data(self, data, rows, version):
        self.check(data == self.world.data, f"data are {self.world.data}")
        self.check(number(rows.split()[0]) == self.world.n, "number of rows")
        self.check(version == __version__, "version")

    def on_asked_filter(self, **parts):
        world = self.world
        kept = f"{world.n:,} of {world.n_before:,} rows are kept, where {world.where}"
        self.check(parts["filter"] == kept, f"filter is: {kept}")

    def on_asked_columns(self, columns):
        kinds = {"p": "decisions", "y": "labels", "s": "scores"}
        arguments = {"p": "y_pred", "y": "y_true", "s": "y_score", "w": "sample_weight"}
        names = self.world.names or arguments
        wanted = {f"{kinds[role]} {names[role]}" for role in self.world.roles}
        wanted |= {f"weights {names['w']}"} if self.world.weighted else set()
        *found, attributes = columns.split("; ")
        self.check(set(found) == wanted, f"columns are {sorted(wanted)}")
        found = names_in(attributes.removeprefix("attributes "))
        self.check(found == list(self.world.attributes), "attributes")

    def on_asked_strata(self, strata):
        self.check(names_in(strata) == list(self.world.strata), "strata")

    def on_asked_clusters(self, clusters):
        name = (self.world.names or {}).get("clusters", "clusters")
        self.check(self.world.clusters is not None and clusters == name, "clusters")

    def on_asked_favourable(self, favourable):
        world = self.world
        names = world.names or {"p": "y_pred", "y": "y_true"}
        value = world.values[0 if world.policy.punitive else 1]
        wanted = {f"{names[role]} = {value}" for role in "py" if role in world.roles}
        self.check(set(favourable.split(", ")) == wanted, f"favourable is {wanted}")

    def on_asked_excluded(self, excluded):
        for text in excluded.split("; "):
            who, name = text.rsplit(" without a known ", 1)
            known = sum(rows.sum() for rows in self.world.groups[name].values())
            self.check(number(who.split()[0]) == self.world.n - known, f"people without {name}")
            if self.world.weighted:
                inside = sum(self.world.w[r].sum() for r in self.world.groups[name].values())
                share = re.search(r"\(([\d.]+ %) of people by weight\)", who)
                self.check(share and says(share[1], 1 - inside / self.world.w.sum()), "share")

    def request_is_whole(self):
        """Strata, clusters, a filter and people without a group are named."""
        world = self.world
        known = [sum(r.sum() for r in world.groups[name].values()) for name in world.attributes]
        for name, there in (
            ("data", True), ("columns", True), ("favourable", True), ("strata", world.strata),
            ("clusters", world.clusters is not None), ("filter", world.where),
            ("excluded", min(known) < world.n),
        ):  # fmt: skip
            self.check(not there or f"asked_{name}" in self.read, f"the request lacks {name}")

    # -- comparisons -------------------------------------------------------------------------

    def asked(self, attribute, metric, scale, binding=True):
        """The question that a sentence is about."""
        name = BY_WORDS.get(metric, metric)
        for one in self.world.questions:
            about = one.attribute, one.metric, one.scale, one.criterion.binding
            if about == (attribute, name, scale, binding):
                return one
        self.check(False, f"no such question: {attribute}, {metric}, {scale}")
        return None

    def beyond(self, asked, size):
        return size > asked.tolerance if asked.scale == "difference" else size < asked.tolerance

    def on_comparison(self, scale, attribute, metric, low_group, low_value, low_n, high_group,
                      high_value, high_n, within, gap, tolerance):  # fmt: skip
        """Two groups with their values, rows and gap; the gap is returned with the question."""
        asked, world = self.asked(attribute, metric, scale), self.world
        groups = world.groups[attribute]
        if asked is None or not {low_group, high_group} <= set(groups):
            self.check(False, "groups")
            return None
        found = world.compared(asked.metric, attribute, low_group, high_group)
        self.check(says(low_value, found.first), f"value of {low_group} is {found.first:.4f}")
        self.check(says(high_value, found.second), f"value of {high_group} is {found.second:.4f}")
        for group, n in ((low_group, low_n), (high_group, high_n)):
            eligible = world.n_eligible(asked.metric, groups[group])
            self.check(number(n) == eligible, f"eligible rows of {group} are {eligible}")
        if scale == "difference" or not world.one_sided(asked):
            self.check(found.first <= found.second + 1e-12, "the lower value comes first")
        size = world.size(asked, low_group, high_group)
        self.check(says(gap, size), f"the gap is {size:.4f}")
        self.check(says(tolerance, asked.tolerance), f"tolerated is {asked.tolerance}")
        self.within(asked, within, low_group, high_group, found)
        self.told[asked] = {low_group, high_group}
        return asked, size, found

    def within(self, asked, text, low, high, found):
        """Strata, people outside of them, and what the order is without them."""
        world = self.world
        if not world.strata:
            self.check(text == "", "strata that are not there")
            return
        part = read_part("within", text)
        if part is None:
            self.check(False, "strata are not named")
            return
        _, parts = part
        self.check(names_in(parts["strata"]) == list(world.strata), "strata")
        has = found.outside > 1e-12
        self.check(("outside" in parts) is has, f"people outside: {found.outside:.4f}")
        self.check(not has or says(parts.get("outside", "0"), found.outside), "share outside")
        groups = world.groups[asked.attribute]
        crude = {name: world.value(asked.metric, groups[name]) for name in (low, high)}
        lower, higher = (low, high) if found.first <= found.second else (high, low)
        turned = crude[lower] > crude[higher] + 1e-12
        self.check(("first" in parts) is turned, f"crude values {crude}")
        if "first" in parts and turned:
            for name in ("first", "second"):
                value = crude.get(parts[name], np.nan)
                self.check(says(parts[f"{name}_crude"], value), f"crude value {value:.4f}")

    def confident(self, text):
        of_all = " for all comparisons" if self.world.n_tests > 1 else ""
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(
            text == f"{level}{of_all}, before the verdict was known", "the confidence of a bound"
        )

    def worse(self, asked, text, low, high, found):
        """Who is worse off: the lower value of a good decision, the higher one of a bad one."""
        wanted = WORSE.get(asked.metric)
        if wanted and self.world.policy.punitive:
            wanted = {"lower": "higher", "higher": "lower"}[wanted]
        part = read_part("worse", text)
        lower, higher = (low, high) if found.first <= found.second else (high, low)
        who = {"lower": lower, "higher": higher, None: None}[wanted]
        self.check((part and part[1]["group"]) == who, f"worse off is {who}")

    def _fail(self, scale, bound, confidence, worse, **parts):
        known = self.on_comparison(scale, **parts)
        if known is None:
            return
        asked, size, found = known
        self.check(self.beyond(asked, size), "a fail within the tolerance")
        least, limit = read_bound(bound), asked.tolerance
        between = limit <= least <= size if scale == "difference" else size <= least <= limit
        self.check(between or says(bound, size) or says(bound, limit), "bound of a fail")
        self.confident(confidence)
        self.worse(asked, worse, parts["low_group"], parts["high_group"], found)
        self.check(self.verdict(asked) == "fail", "the table has no fail")

    def on_fail_difference(self, **parts):
        self._fail("difference", **parts)

    def on_fail_ratio(self, **parts):
        self._fail("ratio", **parts)

    def _undecided(self, scale, differ, bound, required, **parts):
        known = self.on_comparison(scale, **parts)
        if known is None:
            return
        asked, size, _ = known
        self.check(self.verdict(asked) == "inconclusive", "the table is decided")
        name, found = read_part("differ", differ) or ("", {})
        if name in ("they_differ", "only_tolerance_open"):
            is_open = name == "only_tolerance_open"
            self.check(self.beyond(asked, size) is is_open, "beyond the tolerance")
            self.confident(found["confidence"])
        self.check(name != "", "whether groups differ")
        name, found = read_part("required", required) or ("", {})
        self.check(name != "", "required rows")
        if name in ("rows_to_pass", "rows_to_fail"):
            self.check(self.beyond(asked, size) is (name == "rows_to_fail"), "pass or fail")
            n = {
                group: self.world.n_eligible(
                    asked.metric, self.world.groups[asked.attribute][group]
                )
                for group in self.told[asked]
            }
            now = number(found["n_now"])
            self.check(n.get(found["group"]) == min(n.values()) == now, f"smaller group: {n}")
            times = number(found["n_rows"]) / now
            self.check(abs(times - number(found["factor"])) <= 0.06 + 1 / now, "times as many rows")
        if name == "reason":
            self.why_open(asked, found["reason"])

    def why_open(self, asked, text):
        name, found = read_part("why_open", text[:1].lower() + text[1:]) or ("", {})
        self.check(name != "", "no template fits the reason")
        if "first" in found:
            self.check({found["first"], found["second"]} == self.told[asked], "groups")
        if name == "few_covered":
            share = self.world.coverage(asked.attribute)
            self.check(number(found["share"]) <= number(found["needed"]), "enough people")
            able = self.world.tested(asked.metric, asked.attribute)
            groups = self.world.groups[asked.attribute]
            share = sum(self.world.w[groups[one]].sum() for one in able) / self.world.w.sum()
            self.check(says(f"{found['share']} %", share), f"covered are {share:.4f}")
        if name == "withheld":
            self.check(self.world.policy.floor > 30, "no floor was raised")

    def on_undecided_difference(self, **parts):
        self._undecided("difference", **parts)

    def on_undecided_ratio(self, **parts):
        self._undecided("ratio", **parts)

    def _pass(self, scale, attribute, metric, tolerance, bound, first, second, confidence, within,
              differ):  # fmt: skip
        asked = self.asked(attribute, metric, scale)
        if asked is None:
            return
        self.check(self.verdict(asked) == "pass", "the table has no pass")
        self.check(says(tolerance, asked.tolerance), f"tolerated is {asked.tolerance}")
        found = self.world.compared(asked.metric, attribute, first, second)
        self.within(asked, within, first, second, found)
        self.told[asked] = {first, second}
        sizes = [self.world.size(asked, *pair) for pair in self.world.pairs(asked)]
        self.check(not any(self.beyond(asked, size) for size in sizes), f"gaps are {sizes}")
        most, size = read_bound(bound), self.world.size(asked, first, second)
        outer = most >= size - 5e-4 if scale == "difference" else most <= size + 5e-3
        self.check(outer and not self.beyond(asked, most), "bound of a pass")
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(confidence == level, "confidence")
        self.check(not differ or read_part("differ", differ)[0] == "small_gap", "differ")

    def on_pass_difference(self, **parts):
        self._pass("difference", **parts)

    def on_pass_ratio(self, **parts):
        self._pass("ratio", **parts)

    def _observed(
        self, scale, attribute, metric, gap, low_group, low_value, high_group, high_value
    ):
        asked = self.asked(attribute, metric, scale)
        if asked is None:
            return
        (low, a), (high, b) = self.world.extremes(asked)
        self.check((low_group, high_group) == (low, high), f"extremes are {low} and {high}")
        self.check(says(low_value, a) and says(high_value, b), f"values are {a:.4f} and {b:.4f}")
        self.check(says(gap, b - a if scale == "difference" else a / b), "size")

    def on_largest_observed(self, **parts):
        self._observed("difference", **parts)

    def on_smallest_observed(self, **parts):
        self._observed("ratio", **parts)

    # -- how many ----------------------------------------------------------------------------

    def verdict(self, asked):
        return self.rows.get(self.world.questions.index(asked), ("",))[0]

    def n_of(self, word):
        return sum(self.rows.get(i, ("",))[0] == word for i in range(len(self.world.binding)))

    def n_told(self, word):
        return sum(self.verdict(asked) == word for asked in self.told)

    def on_more_fail(self, n):
        self.check(number(n) == self.n_of("fail") - 3, "number of fails")

    def on_one_more_fails(self):
        self.on_more_fail("1")

    def on_more_pass(self, n):
        passed = [a for a in self.world.binding if self.verdict(a) == "pass"]
        kinds = {(one.metric, one.scale) for one in passed}
        self.check(number(n) == len(kinds) - 3, "number of passes")

    def on_one_more_passes(self):
        self.on_more_pass("1")

    def on_more_undecided(self, n):
        self.check(number(n) == self.n_of("inconclusive") - 3, "number of undecided questions")

    def on_one_more_undecided(self):
        self.on_more_undecided("1")

    def on_besides(self, n):
        self.check(number(n) == self.n_of("inconclusive"), "number of undecided questions")

    def on_besides_one(self):
        self.on_besides("1")

    def on_some_pass(self, n, n_all):
        self.check(number(n) == self.n_of("pass"), "number of passes")
        self.check(number(n_all) == len(self.world.binding), "number of questions")

    def on_fail_is(self):
        self.check(self.n_of("fail"), "nothing fails")

    def on_pass_is(self):
        self.check(self.n_of("pass") == len(self.world.binding), "not all pass")

    def on_neither(self):
        self.check(self.n_of("inconclusive"), "no question is undecided")

    def on_no_verdict(self, n, n_all):
        self.check(number(n) == self.n_of("not measurable"), "number of untested questions")
        self.check(number(n_all) == len(self.world.binding), "number of questions")

    def on_not_binding(self, what):
        names = [
            f"{one.metric} by {one.attribute}"
            for one in self.world.questions
            if not one.criterion.binding and self.verdict(one) == "fail"
        ]
        for name in names_in(what):
            crossed = " by " in name and name.partition(" by ")[2] not in self.world.attributes
            known = name in names or crossed or re.fullmatch(r"\d+ more", name)
            self.check(known or name in self.world.attributes, f"{name} is not beyond")

    def on_pairs_shown(self, attribute, metric, n, n_all):
        sizes = {
            len(self.world.pairs(one))
            for one in self.world.binding
            if (one.attribute, METRICS[one.metric].words) == (attribute, metric)
        }
        self.check(number(n_all) in sizes and number(n) <= number(n_all), f"pairs: {sizes}")

    def on_people_shown(self, attribute, metric, share, groups):
        names, name = names_in(groups), BY_WORDS[metric]
        if names[-1].endswith(" more"):
            return
        able = self.world.tested(name, attribute)
        self.check(set(names) <= set(able), "groups")
        rows = self.world.groups[attribute]
        shown = sum(self.world.w[rows[one]].sum() for one in able if one not in names)
        self.check(says(share, shown / self.world.w.sum()), "share of people")

    def on_not_measurable(self, attribute, metric, reason):
        named = [one for one in self.world.binding if one.attribute == attribute]
        named = [one for one in named if METRICS[one.metric].words == metric]
        self.check(any(self.verdict(one) == "not measurable" for one in named), "measurable")
        self.check(any(not self.world.pairs(one) for one in named), "there are groups to compare")
        for name in self.world.groups[attribute]:
            found = re.search(rf"(?<!\w){re.escape(name)}: (.+)", reason)
            self.lack(named[0].metric, attribute, name, found[1] if found else "")

    def lack(self, metric, attribute, name, text):
        """What a group has too little of."""
        found = re.match(r"([\d,]+) rows? that counts?(, worth ([\d.]+) rows)?", text)
        rows = self.world.groups[attribute].get(name)
        if rows is None:
            self.check(False, f"{name} is no group")
        elif found:
            n = self.world.n_eligible(metric, rows)
            self.check(number(found[1]) == n, f"eligible rows of {name} are {n}")

    # -- notes -------------------------------------------------------------------------------

    def on_not_tested(self, groups, attribute, metric):
        untested = set(self.world.groups[attribute]) - set(self.world.tested(metric, attribute))
        found = re.findall(r"(?:^|, | and )([^(),]+?) \(([^()]*)\)", groups)
        self.check({name for name, _ in found} == untested, f"not tested are {untested}")
        for name, text in found:
            self.lack(metric, attribute, name, text)

    def on_own_minimum(self, attribute, groups, has, floor, rule):
        counts, policy = self.world.counts(attribute), self.world.policy
        small = {name for name, (_, n) in counts.items() if n < policy.floor}
        self.check(set(names_in(groups)) == small, f"below the minimum are {small}")
        self.check((has == "has") is (len(small) == 1), "verb")
        self.check((floor, rule) == (str(policy.floor), policy.rule), "minimum")

    def on_table_is(self, confidence):
        self.check(confidence == f"{100 * (1 - self.world.policy.alpha):g} % confidence", "level")

    def on_errors_are(self, tests, rate, pass_rate, together):
        self.check(rate == pass_rate == f"{100 * self.world.policy.alpha:g} %", "rates")
        _, found = read_part("tests", tests)
        n = number(found.get("n", "1"))
        self.check(n == self.world.n_tests, f"comparisons: {self.world.n_tests}")
        self.check(("together" in together) == (n > 1), "together")

    def on_flag(self, attribute, same_attribute, yes, no):
        values = set(self.world.attributes[attribute])
        self.check(attribute == same_attribute and (yes, no) == ("1", "0"), "flag")
        self.check(values == {0, 1}, "values of the attribute")

    def on_several_flags(self):
        flags = [c for c in self.world.attributes.values() if set(c) == {0, 1}]
        self.check(len(flags) > 1, "flags")

    def on_decides_alike(self, share):
        p = self.world.p
        self.check(says(share, max(p.mean(), 1 - p.mean())), "share that is decided alike")

    def _refusals(self, attribute, refused, who, who_share, other, other_share, metric, times=None):
        one = self.asked(attribute, metric, "ratio")
        if one is None:
            return
        value = {}
        if self.world.strata:
            found = self.world.compared(one.metric, attribute, who, other)
            value = {who: found.first, other: found.second}
        else:
            value = {
                name: self.world.value(one.metric, self.world.groups[attribute][name])
                for name in (who, other)
            }
        left, right = 1 - value[who], 1 - value[other]
        self.check(says(who_share, left) and says(other_share, right), f"{left:.4f}, {right:.4f}")
        self.check(times is None or says(times, left / right), "times")
        of_decisions = refused == "negative decisions are"
        self.check(of_decisions is (one.metric == "selection_rate"), "what is refused")

    def on_refusals(self, **parts):
        self._refusals(**parts)

    def on_refusals_of_one(self, **parts):
        self._refusals(**parts)

    def on_base_rates_differ(self, attribute, low_rate, low, high_rate, high, policy, asked):
        rows = self.world.groups[attribute]
        for name, text in ((low, low_rate), (high, high_rate)):
            rate = self.world.y[rows[name]].mean()
            self.check(says(text, rate), f"base rate of {name} is {rate:.4f}")
        self.check(policy == self.world.policy.name, "policy")
        for one in self.world.policy.binding:
            self.check(METRICS[one.metric].words in asked, "what is asked")

    def on_small_intersections(self, n, groups):
        small = self.small_intersections()
        self.check(number(n) == len(small), f"small intersections: {len(small)}")
        found = re.findall(
            r"(?:^|, | and )([^(),]+? & [^(),]+?) \(([^()]+)\): (no value|[\d,]+)", groups
        )
        for name, attribute, n_rows in found:
            wanted = small.get((attribute, name))
            holds = wanted in (0, 1) if n_rows == "no value" else number(n_rows) == wanted
            self.check(holds, f"eligible rows of {name} are {wanted}")

    def on_small_intersection(self, n, groups):
        self.on_small_intersections(n, groups)

    def small_intersections(self):
        """The fewest eligible rows of the intersections that some metric does not compare."""
        small, world = {}, self.world
        for attribute in world.groups.keys() - world.attributes.keys():
            for one in world.policy.criteria:
                parts = attribute.split(" and ")
                if one.is_fixed_reference or not all(map(one.covers, parts)):
                    continue
                if not set(METRICS[one.metric].needs) <= world.roles:
                    continue
                for name, rows in world.groups[attribute].items():
                    if not world.is_large(one.metric, rows):
                        n = world.n_eligible(one.metric, rows)
                        key = attribute, name
                        small[key] = min(n, small.get(key, n))
        return small

    def on_lenses_silent(self, lenses):
        self.check(lenses == "individual; influence; extremes", "lenses")

    def on_folded(self, note, groups, n):
        self.sentence(note, note)
        self.check(number(n) > 2, "notes of a kind")

    def on_known_range(self, metric, low, high, reason):
        self.check(metric in METRICS, "metric")
        self.check((low, high) in {("0", "1"), ("-1", "1")} or metric == "mean_residual", "range")

    def on_few_events(self, metric):
        self.check(metric == "mean_residual", "metric")

    def on_few_clusters(self, groups, metric, low, high):
        self.check(metric in METRICS, "metric")
        for name, n in re.findall(r"(?:^|, )([^(),]+?) \(([\d,]+) clusters", groups):
            rows = [r[name] for r in self.world.groups.values() if name in r]
            counts = {len(set(self.world.clusters[r])) for r in rows}
            eligible = {len(set(self.world.clusters[self.world.eligible(metric, r)])) for r in rows}
            self.check(number(n) in counts | eligible, f"clusters of {name}: {counts}")

    def _homogeneity(self, about, tested_by=None, reason=None):
        attribute, metric, who = about.split(", ", 2)
        asked = next((a for a in self.told if (a.attribute, a.metric) == (attribute, metric)), None)
        names = set(names_in(who))
        decided = [row[1] for row in self.rows.values()]
        self.check(names in decided, f"groups that decide: {decided}")
        world = self.world
        simple = not world.weighted and world.clusters is None and METRICS[metric].is_share
        if tested_by is None or not simple or not names <= set(world.groups[attribute]):
            return
        del asked
        first, second = names
        strata = world.compared(metric, attribute, first, second).strata.values()
        p = breslow_day([(a * n, n, b * m, m) for a, n, b, m, _ in strata if n and m])
        found = re.search(r"p = ([\d.e-]+)", tested_by)
        self.check(found and says(found[1], p), f"p of homogeneity is {p:.5f}")

    def on_gap_differs(self, **parts):
        self._homogeneity(**parts)

    def on_gap_may_be_one(self, **parts):
        self._homogeneity(**parts)

    def on_gap_not_tested(self, **parts):
        self._homogeneity(**parts)

    # -- tables ------------------------------------------------------------------------------

    def table(self, lines):
        """The table of questions: one row for each, in the order of the policy."""
        heads, rows = cells_of(lines)
        for place, row in enumerate(rows):
            self.line = "  ".join(row)
            if place < len(self.world.questions):
                asked = self.world.questions[place]
            else:
                asked = self.crossed(row)
            if asked is None or row[:2] != [asked.attribute, asked.metric]:
                self.check(False, f"row {place} is about {asked}")
                continue
            self.row(place, asked, row)
        self.check(len(rows) >= len(self.world.questions), "rows of the table")
        del heads

    def crossed(self, row):
        """The question about an intersection that does not bind and fails."""
        for one in self.world.policy.criteria:
            if one.metric == row[1] and row[0] in self.world.groups:
                scale = "difference" if one.ratio is None else "ratio"
                is_points = "points" in row[6] or not METRICS[one.metric].is_share
                if (scale == "difference") == is_points:
                    return Asked(one, row[0])
        return None

    def row(self, place, asked, row):
        world, word = self.world, row[2].removesuffix(", not binding")
        binding = asked.criterion.binding and asked.attribute in world.attributes
        self.check((", not binding" in row[2]) is not binding, "binding")
        pairs = world.pairs(asked)
        decided = set(row[5].split(", ")) if len(row) == 10 else set()
        self.rows[place] = word, decided
        if not pairs:
            self.check(word in ("not measurable", "not asked"), "nothing can be compared")
            return
        if len(row) < 10:
            self.check(not binding, "a binding question that has groups was not tested")
            return
        (low, a), (high, b) = world.extremes(asked)
        for text, name, value in ((row[3], low, a), (row[4], high, b)):
            _, found = read_part("cell", text) or ("", {"group": "", "value": "", "n": "0"})
            same = found["group"] == name or says(found["value"], value)
            self.check(same and says(found["value"], value), f"extreme is {name} {value:.4f}")
            rows = world.groups[asked.attribute].get(found["group"])
            n = -1 if rows is None else world.n_eligible(asked.metric, rows)
            self.check(number(found["n"]) == n, f"eligible rows are {n}")
        ordered = tuple(decided) if len(decided) == 2 else (low, high)
        size = world.size(asked, *ordered)
        self.check(says(row[6], size), f"the gap of {decided} is {size:.4f}")
        limit = asked.tolerance
        bound = read_bound(row[7].lstrip("<> "))
        sizes = [world.size(asked, *pair) for pair in pairs]
        if word == "fail":
            self.check(self.beyond(asked, size), "a fail within the tolerance")
            inner = bound >= limit - 1e-9 if asked.scale == "difference" else bound <= limit + 1e-9
            self.check(inner, "bound of a fail")
        if word == "pass":
            self.check(not any(self.beyond(asked, one) for one in sizes), f"gaps are {sizes}")
            self.check(not self.beyond(asked, bound), "bound of a pass")
        self.check(word != "no fail" or not world.policy.has_pass, "a policy that knows a pass")
        self.check(word != "not asked", "a question with a test that was not asked")
        at_most = (word == "fail") != (asked.scale == "difference")
        self.check(row[7].startswith("<" if at_most else ">"), "sign of the bound")

    def stratum_table(self, lines):
        """Eligible rows, values and gap of two groups in each stratum."""
        title, *lines = lines
        self.line = title
        found = re.match(r"(.+?), (\w+): (.+?) and (.+?) in each stratum", title)
        self.check(found is not None, "title of a table of strata")
        if found is None:
            return
        attribute, metric, first, second = found.groups()
        pair = self.world.compared(metric, attribute, first, second)
        _, rows = cells_of(lines)
        many = len(pair.strata) > 12
        self.check(len(rows) == (12 if many else len(pair.strata)), "number of strata")
        for name, one, two, gap, weight in rows:
            self.line = "  ".join((name, one, two, gap, weight))
            if name not in pair.strata:
                self.check(False, "no such stratum")
                continue
            a, n, b, m, k = pair.strata[name]
            for text, value, count in ((one, a, n), (two, b, m)):
                wanted = re.match(r"(.+) of ([\d,]+)$", text)
                if np.isnan(value):
                    self.check(text == f"no value ({count:,})", "no value")
                    continue
                holds = wanted and says(wanted[1], value) and number(wanted[2]) == count
                self.check(holds, f"value is {value:.4f} of {count}")
            self.check((gap == "" and np.isnan(a - b)) or says(gap, a - b), f"gap is {a - b:.4f}")
            self.check(says(weight, k), f"weight is {k:.4f}")


def cells_of(lines):
    """Heads and rows of aligned columns; a row that ends in a text has fewer cells."""
    heads = re.split(r"\s{2,}", lines[0].strip())
    starts = [lines[0].index(f"  {head}") + 2 for head in heads]
    # A head can be a part of another one.
    for i in range(1, len(starts)):
        starts[i] = lines[0].index(f"  {heads[i]}", starts[i - 1]) + 2
    rows = []
    for line in lines[1:]:
        ends = [*starts[1:], None]
        cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        whole = all(line[a - 2 : a].strip() == "" for a in starts)
        rows.append(cells if whole and (len(heads) < 7 or cells[6]) else cells[:3])
    return heads, rows


def read_bound(text):
    if text == "any size":
        return np.inf
    found = _SIZE.fullmatch(text)
    return np.nan if found is None else number(found[1]) / (100 if found[2] else 1)


def errors_of(world, text):
    """Return what is false in the text of an audit."""
    return Reader(world, text).errors


#: Other names of gaps, for readers of this module.
__all__ = ["SAME_GAPS", "Reader", "errors_of"]
