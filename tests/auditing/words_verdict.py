"""Reads the sentences of a verdict: two groups, their values, and what follows."""

import re

import numpy as np

from fairaudit_rs.auditing.sentences import read_part

from .words import METRICS
from .words_lines import BY_WORDS, Lines, names_in, number, read_bound, says
from .words_pvalues import can_tell_rows, p_equal, times_to_fail, times_to_pass


class VerdictReader(Lines):
    """The sentences about comparisons, and how many there are."""

    # -- comparisons -------------------------------------------------------------------------

    def asked(self, attribute, metric, scale, binding=True):
        """The question that a sentence is about."""
        name = BY_WORDS.get(metric, metric)
        for question in self.world.questions:
            about = question.attribute, question.metric, question.scale, question.criterion.binding
            if about == (attribute, name, scale, binding):
                return question
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
        # The ratio to a reference group whose share is 0 does not exist.
        has_none = gap == "not measurable" and np.isnan(size) and found.second < 1e-12
        self.check(has_none or says(gap, size), f"the gap is {size:.4f}")
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
        together = self.world.n_tests > 1 and self.world.policy.adjustment == "holm"
        of_all = " for all comparisons" if together else ""
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(text == f"{level}{of_all}", "the confidence of a bound")

    def worse(self, asked, text, low, high, found):
        """Who is worse off: the lower value of a good decision, the higher one of a bad one."""
        wanted = self.world.worse_off(asked.metric)
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
        if "confidence" in found:
            self.confident(found["confidence"])
        self.check(name != "", "whether groups differ")
        if {"first", "second"} <= found.keys():
            self.check({found["first"], found["second"]} == self.told[asked], "groups that differ")
        self.differs(asked, name, found)
        name, found = read_part("required", required) or ("", {})
        self.check(name != "", "required rows")
        self.check(name != "rows_to_pass" or self.world.policy.has_pass, "the policy has no pass")
        if name in ("rows_to_pass", "rows_to_no_fail", "rows_to_fail"):
            self.check(self.beyond(asked, size) is (name == "rows_to_fail"), "pass or fail")
            n = {
                group: self.world.n_eligible(
                    asked.metric, self.world.groups[asked.attribute][group]
                )
                for group in self.told[asked]
            }
            now = number(found["n_now"])
            self.check(n.get(found["group"]) == min(n.values()) == now, f"smaller group: {n}")
            self.times(asked, name, number(found["factor"]))
            times = number(found["n_rows"]) / now
            # The factor has one decimal below 10, and none above.
            rounded = 0.06 if "." in found["factor"] else 0.6
            factor = number(found["factor"])
            self.check(abs(times - factor) <= rounded + 1 / now, "times as many rows")
        if name == "reason":
            self.why_open(asked, found["reason"])

    def differs(self, asked, name, found):
        """Check whether groups differ at all: p of equal counts, by SciPy."""
        world, level = self.world, self.world.each(asked)
        own = self.p_equal(asked, *self.told[asked])
        if np.isnan(own):
            return
        known = {pair: self.p_equal(asked, *pair) for pair in world.pairs(asked)}
        if any(abs(p / level - 1) < 1e-3 for p in known.values()):
            return
        surest = min(known.values())
        wanted = "they_differ" if own <= level else "not_shown_to_differ"
        if own <= level and self.beyond(asked, world.size(asked, *self.told[asked])):
            wanted = "only_tolerance_open"
        elif own > level and surest <= level:
            wanted = "others_differ"
            pair = found.get("third", ""), found.get("fourth", "")
            p = known.get(pair, known.get(pair[::-1], np.nan))
            self.check(p <= surest * 1.001 + 1e-300, f"the surest p is {surest:.3g}")
        self.check(name == wanted, f"p of equality is {own:.4g} of {level:.4g}: {wanted}")

    def p_equal(self, asked, first, second):
        """p of equal values; NaN where it is not that of counts."""
        key = asked, frozenset((first, second))
        if key not in self.known_p:
            self.known_p[key] = p_equal(self.world, asked, first, second)
        return self.known_p[key]

    def times(self, asked, name, said):
        """How many times as many rows decide, where the values stay as they are."""
        world = self.world
        if not can_tell_rows(world, asked):
            return
        if name != "rows_to_fail":
            wanted = times_to_pass(world, asked)
        else:
            wanted = times_to_fail(world, asked, *self.told[asked])
        self.check(abs(said - wanted) <= 0.06 + 0.1 * wanted, f"{wanted:.3f} times the rows")

    def why_open(self, asked, text):
        name, found = read_part("why_open", text[:1].lower() + text[1:]) or ("", {})
        self.check(name != "", "no template fits the reason")
        if "first" in found:
            self.check({found["first"], found["second"]} == self.told[asked], "groups")
        if name == "few_covered":
            self.check(self.world.policy.has_pass, "the policy has no pass")
            share = self.world.coverage(asked.attribute)
            self.check(number(found["share"]) <= number(found["needed"]), "enough people")
            able = self.world.tested(asked.metric, asked.attribute)
            share = self.world.covered(asked.metric, asked.attribute, able)
            self.check(says(f"{found['share']} %", share), f"covered are {share:.4f}")
        if name == "withheld":
            self.check(self.world.policy.floor > 30, "no floor was raised")

    def on_undecided_difference(self, **parts):
        self._undecided("difference", **parts)

    def on_undecided_ratio(self, **parts):
        self._undecided("ratio", **parts)

    def _pass(self, scale, attribute, metric, to, tolerance, bound, first, second, confidence,
              within, differ):  # fmt: skip
        asked = self.asked(attribute, metric, scale)
        if asked is None:
            return
        self.check(self.verdict(asked) == "pass", "the table has no pass")
        self.check(says(tolerance, asked.tolerance), f"tolerated is {asked.tolerance}")
        found = self.world.compared(asked.metric, attribute, first, second)
        self.within(asked, within, first, second, found)
        self.told[asked] = {first, second}
        common = set.intersection(*map(set, self.world.pairs(asked)))
        if len(self.world.pairs(asked)) > 1 and common:
            self.check(to == f" to {common.pop()}", "reference")
        else:
            self.check(not to, "there is no reference")
        sizes = [self.world.size(asked, *pair) for pair in self.world.pairs(asked)]
        self.check(not any(self.beyond(asked, size) for size in sizes), f"gaps are {sizes}")
        most, size = read_bound(bound), self.world.size(asked, first, second)
        outer = most >= size - 5e-4 if scale == "difference" else most <= size + 5e-3
        self.check((outer or np.isnan(size)) and not self.beyond(asked, most), "bound of a pass")
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(confidence == level, "confidence")
        self.check(not differ or read_part("differ", differ)[0] == "small_gap", "differ")
        p, level = self.p_equal(asked, first, second), self.world.each(asked)
        near_it = np.isnan(p) or abs(p / level - 1) < 1e-3
        self.check(near_it or bool(differ) is bool(p <= level), f"p of equality is {p:.4g}")

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
        sizes = [self.world.size(asked, *pair) for pair in self.world.pairs_shown(asked)]
        widest = max(sizes) if scale == "difference" else min(sizes)
        size = self.world.size(asked, low_group, high_group)
        self.check(abs(size - widest) < 1e-9, f"the widest gap is {widest}")
        self.check(says(gap, size), "size")
        found = self.world.compared(asked.metric, attribute, low_group, high_group)
        self.check(says(low_value, found.first) and says(high_value, found.second), "values")

    def extremes(self, asked, shown):
        """The lowest and the highest value; ``shown`` are the texts of values by group.

        Groups may share a value. Within strata the two are those of the largest gap.
        """
        world, names = self.world, list(shown)
        (low, a), (high, b) = world.extremes(asked)
        if not set(names) <= set(world.groups[asked.attribute]) or len(names) != 2:
            self.check(False, f"extremes are {low} and {high}")
        elif world.strata:
            size = world.size(asked, *names)
            same = abs(size - world.size(asked, low, high)) < 1e-9 or (
                np.isnan(size) and set(names) == {low, high}
            )
            self.check(same, f"extremes are {low} {a:.4f} and {high} {b:.4f}")
            found = world.compared(asked.metric, asked.attribute, *names)
            a, b = found.first, found.second
        else:
            for name, value in zip(names, (a, b), strict=True):
                rows = world.groups[asked.attribute][name]
                same = abs(world.value(asked.metric, rows) - value) < 1e-9
                self.check(same, f"extreme is {low if value == a else high} {value:.4f}")
        self.check(a <= b, "the lower value comes first")
        for text, value in zip(shown.values(), (a, b), strict=True):
            self.check(says(text, value), f"an extreme value is {value:.4f}")
        return a, b

    def on_largest_observed(self, **parts):
        self._observed("difference", **parts)

    def on_smallest_observed(self, **parts):
        self._observed("ratio", **parts)

    # -- how many ----------------------------------------------------------------------------

    def verdict(self, asked):
        return self.rows.get(self.world.questions.index(asked), ("",))[0]

    def n_of(self, word):
        return sum(self.rows.get(i, ("",))[0] == word for i in range(len(self.world.binding)))

    def all_are_told(self):
        """Up to three questions that fail have a sentence, and up to three that are undecided."""
        for word in ("fail", "inconclusive"):
            told = sum(self.verdict(asked) == word for asked in self.told)
            self.check(told == min(self.n_of(word), 3), f"questions that are {word}: {told}")
        told = sum(self.verdict(asked) == "pass" for asked in self.told)
        passes = self.n_of("pass") and self.n_of_all("pass") == self.n_asked
        kinds = {(value.metric, value.scale) for value in self.world.binding}
        self.check(not passes or told == min(len(kinds), 3), f"questions that pass: {told}")

    def on_more_fail(self, n):
        self.check(number(n) == self.n_of("fail") - 3, "number of fails")

    def on_one_more_fails(self):
        self.on_more_fail("1")

    def on_more_pass(self, n):
        told = sum(self.verdict(asked) == "pass" for asked in self.told)
        self.check(number(n) == self.n_of("pass") - told, "number of passes")

    def on_one_more_passes(self):
        self.on_more_pass("1")

    def on_more_undecided(self, n):
        self.check(number(n) == self.n_of("inconclusive") - 3, "number of undecided questions")

    def on_one_more_undecided(self):
        self.on_more_undecided("1")

    def n_of_all(self, word):
        """How many binding questions and lenses have a verdict."""
        return self.n_of(word) + self.n_of_lenses(word)

    @property
    def n_asked(self):
        return len(self.world.binding) + len(self.world.lenses.binding)

    def on_besides(self, n):
        self.check(number(n) == self.n_of_all("inconclusive"), "number of undecided questions")

    def on_besides_one(self):
        self.on_besides("1")

    def on_some_pass(self, n, n_all):
        self.check(number(n) == self.n_of_all("pass"), "number of passes")
        self.check(number(n_all) == self.n_asked, "number of questions")

    def on_one_passes(self, n_all):
        self.on_some_pass("1", n_all)

    def on_fail_is(self):
        self.check(self.n_of_all("fail"), "nothing fails")

    def on_pass_is(self):
        self.check(self.n_of_all("pass") == self.n_asked, "not all pass")

    def on_neither(self):
        self.check(self.n_of_all("inconclusive"), "no question is undecided")

    def on_no_verdict(self, n, n_all):
        self.check(number(n) == self.n_of_all("not measurable"), "number of untested questions")
        self.check(number(n_all) == self.n_asked, "number of questions")

    def on_not_binding(self, what):
        names = [
            f"{question.metric} by {question.attribute}"
            for question in self.world.questions
            if not question.criterion.binding and self.verdict(question) == "fail"
        ]
        names += [f"{row[1]} by {row[0]}" for row in self.crossed_rows]
        names += [
            f"{value.lens} by {value.attribute}"
            for value, word in self.lens_rows.items()
            if not value.binding and word == "fail"
        ]
        left = what
        for name in sorted(names, key=len, reverse=True):
            left = left.replace(name, "")
        self.check(re.fullmatch(r"(, | and )*(\d+ more)?", left), f"beyond are {names}")

    def on_pairs_shown(self, attribute, metric, n, n_all):
        sizes = {
            len(self.world.pairs_shown(value))
            for value in self.world.binding
            if (value.attribute, METRICS[value.metric].words) == (attribute, metric)
        }
        self.check(number(n_all) in sizes and number(n) <= number(n_all), f"pairs: {sizes}")

    def on_people_shown(self, attribute, metric, share, shown, groups):
        names, name = names_in(groups), BY_WORDS[metric]
        if names[-1].endswith(" more") or names_in(shown)[-1].endswith(" more"):
            return
        self.check(not set(names) & set(names_in(shown)), "groups that are shown and open")
        able = self.world.tested(name, attribute)
        self.check(set(names) <= set(able), "groups")
        rows = self.world.groups[attribute]
        shown = sum(self.world.w[rows[value]].sum() for value in able if value not in names)
        self.check(says(share, shown / self.world.w.sum()), "share of people")

    def on_not_measurable(self, attribute, metric, reason):
        named = [value for value in self.world.binding if value.attribute == attribute]
        named = [value for value in named if METRICS[value.metric].words == metric]
        self.check(any(self.verdict(value) == "not measurable" for value in named), "measurable")
        self.check(
            any(not self.world.pairs(value) for value in named), "there are groups to compare"
        )
        for name in self.world.groups[attribute]:
            found = re.search(rf"(?<!\w){re.escape(name)}: (.+)", reason)
            self.lack(named[0].metric, attribute, name, found[1] if found else "")

    def on_undecided_reason(self, attribute, metric, reason):
        """A ratio of two shares of which one is 0, so that there is none."""
        named = [value for value in self.world.binding if value.attribute == attribute]
        named = [value for value in named if METRICS[value.metric].words == metric]
        found = re.match(r"\w+ is (\S+) and (\S+) in (.+) and (.+): nothing is", reason)
        if found is None:
            self.check(False, "no reason of a ratio")
            return
        first, second = found.groups()[2:]
        [one] = [value for value in named if value.scale == "ratio"]
        self.check(self.verdict(one) == "inconclusive", "it is open")
        if self.world.strata:
            pair = self.world.compared(one.metric, attribute, first, second)
            values = pair.first, pair.second
        else:
            groups = self.world.groups[attribute]
            values = tuple(self.world.value(one.metric, groups[name]) for name in (first, second))
        self.check(min(values) < 1e-12, f"values are {values}")
        for text, value in zip(found.groups()[:2], values, strict=True):
            close = abs(float(text) - value) <= 0.5e-2 * value + 1e-12
            self.check(close, f"the value is {value:.3g}")
        self.told[one] = {first, second}

    def on_not_asked(self, attribute, metric, reason):
        self.check(self.world.policy.intersections == "bind", "all questions are asked")
        names = attribute.split(" and ")
        self.check(len(names) > 1 and set(names) <= set(self.world.attributes), "attributes")

    def on_some_not_asked(self):
        self.check("not_asked" in self.read or self.world.policy.intersections == "bind", "all are")

    def lack(self, metric, attribute, name, text):
        """Return the rows or labels that a group lacks."""
        found = re.match(r"([\d,]+) rows? that counts?(, worth ([\d.]+) rows)?", text)
        rows = self.world.groups[attribute].get(name)
        if rows is None:
            self.check(False, f"{name} is no group")
        elif found:
            n = self.world.n_eligible(metric, rows)
            self.check(number(found[1]) == n, f"eligible rows of {name} are {n}")
