"""Reads the sentences and the table rows of lenses, and compares them with `words_lenses`."""

import re
from itertools import combinations

import numpy as np
from scipy import stats

from fairaudit_rs.auditing.sentences import read_part

from .words_lenses import HORIZON, NAMES
from .words_lines import Lines, names_in, number, read_bound, says

#: What stands in the place of a value that was not measured.
TITLES = {
    "projection": "departure of scores from equal rates",
    "individual": "growth of the loss between people who differ in little but their groups",
    "influence": "gap of a group to all others",
    "extremes": "worst cases of a flip",
}
SHARES = ("projection", "influence")


def plain(metric):
    return metric.replace("_", " ")


def near(text, value, rel=2e-3):
    """Return whether a number of three or more digits is a value."""
    return says(text, value) or abs(number(text) - value) <= rel * abs(value)


def cell_of(text):
    """Group, value and rows of a cell; the projection of weighted rows counts none."""
    group, value, n = re.fullmatch(r"(.+?) (-?[\d.,e-]+(?: %)?)(?: of ([\d,]+))?", text).groups()
    return {"group": group, "value": value, "n": n}


class LensReader(Lines):
    """The lines of lenses."""

    @property
    def lenses(self):
        return self.world.lenses

    def lens_asked(self, lens, attribute, binding=True):
        for value in self.lenses.asked:
            if (value.lens, value.attribute, value.binding) == (lens, attribute, binding):
                return value
        self.check(False, f"no verdict of {lens} by {attribute} was asked for")
        return None

    def lens_word(self, entry):
        return self.lens_rows.get(entry, "")

    def n_of_lenses(self, word):
        return sum(self.lens_word(value) == word for value in self.lenses.binding)

    def says_size(self, entry, text, value):
        """Return whether a size is told in the unit of its lens."""
        if entry.lens in SHARES:
            return text.endswith(" points") and says(text, value)
        if entry.lens == "individual":
            return text.endswith(" times") and near(text.removesuffix(" times"), value)
        return says(text, value)

    def bound_of(self, entry, text):
        return read_bound(text.removesuffix(" times"))

    def says_tolerance(self, entry, text):
        wanted = f"{entry.tolerance:g}"
        wanted = f"{wanted} times" if entry.lens == "individual" else wanted
        wanted = f"{100 * entry.tolerance:.1f} points" if entry.lens in SHARES else wanted
        self.check(text == wanted, f"tolerated is {wanted}")

    # -- verdicts, computed ------------------------------------------------------------------

    def check_verdict(self, entry, word, bound=None):
        """Return whether a verdict follows from the rows, where they say so without replicates."""
        lenses, policy = self.lenses, self.world.policy
        each = policy.alpha / lenses.n_adjusted(entry)
        if lenses.lacks(entry.lens) or lenses.refused(entry.lens):
            self.check(word == "not measurable", f"{entry.lens} cannot be run")
            return
        if entry.lens == "projection" and (word == "not measurable" or len(lenses.gaps(entry)) > 1):
            # Its law may not hold for a pair, which the references do not say.
            gaps = lenses.gaps(entry)
            self.check(word != "pass", "a projection that passes")
            fails = [gap for gap in gaps if gap.p_fail <= each * 1.005]
            self.check(word != "fail" or fails, "no pair departs")
            return
        if entry.lens in SHARES:
            gaps = lenses.gaps(entry)
            levels = [(gap.p_fail, each) for gap in gaps] + [
                (gap.p_pass, policy.alpha) for gap in gaps if not np.isnan(gap.p_pass)
            ]
            if any(abs(p / level - 1) < 5e-3 for p, level in levels):
                return
            wanted = "inconclusive" if gaps else "not measurable"
            if any(gap.p_fail <= each for gap in gaps):
                wanted = "fail"
            elif gaps and all(gap.p_pass <= policy.alpha for gap in gaps):
                covered = lenses.coverage(entry) >= policy.min_coverage - 1e-9
                wanted = "pass" if covered else wanted
            self.check(word == wanted, f"the verdict of {entry.lens} is {wanted}")
        elif entry.lens == "extremes" and lenses.flips(entry.attribute):
            pairs = self.level_pairs(entry)
            fails = [
                lenses.limits(entry.attribute, a, b, 1 - each)[0] > entry.tolerance
                for pair in pairs
                for a, b in (pair, pair[::-1])
            ]
            most = [lenses.limits(entry.attribute, *pair, 1 - policy.alpha) for pair in pairs]
            passes = [max(-low, high) < entry.tolerance for low, high in most]
            wanted = "inconclusive" if pairs else "not measurable"
            if any(fails):
                wanted = "fail"
            elif pairs and all(passes):
                covered = lenses.coverage(entry) >= policy.min_coverage - 1e-9
                wanted = "pass" if covered else wanted
            self.check(word == wanted, f"the verdict of {entry.lens} is {wanted}")

    def level_pairs(self, entry):
        groups = self.world.groups[entry.attribute]
        able = [name for name in groups if self.lenses.level(entry.attribute, name) is not None]
        return list(combinations(able, 2))

    def lens_row(self, entry, row):
        """A row of the table of questions."""
        word = row[2].removesuffix(", not binding")
        self.check((", not binding" in row[2]) is not entry.binding, "binding")
        self.lens_rows[entry] = word
        self.check_verdict(entry, word)
        if len(row) < 10:
            self.check(word == "not measurable", "a verdict without numbers")
            return
        if entry.lens != "individual":
            low, high = (cell_of(text) for text in row[3:5])
            self.check(row[5] == f"{low['group']}, {high['group']}", "groups that decide")
            names = [f"{end}_{part}" for end in ("low", "high") for part in ("group", "value", "n")]
            parts = [side[part] for side in (low, high) for part in ("group", "value", "n")]
            self.sides(entry, gap=row[6], **dict(zip(names, parts, strict=True)))
        if entry.lens == "projection":
            self.check(row[7] == "", "a bound of the projection")
        elif row[7]:
            self.check(row[7][0] == (">" if word == "fail" else "<"), "sign of the bound")
            bound = self.bound_of(entry, row[7][2:])
            beyond = bound >= entry.tolerance if word == "fail" else bound <= entry.tolerance
            self.check(beyond or word not in ("fail", "pass"), "bound of the verdict")
        if row[9] and entry.lens in SHARES:
            gap = self.gap_of(entry, {row[5].split(", ")[0], row[5].split(", ")[1]})
            wanted = min(1.0, self.lenses.n_adjusted(entry) * gap.p_fail)
            said = float(row[9])
            close = abs(said - wanted) <= 0.052 * wanted + 1e-12
            self.check(close, f"the adjusted p is {wanted:.3g}")

    # -- two groups --------------------------------------------------------------------------

    def gap_of(self, entry, names):
        found = [gap for gap in self.lenses.gaps(entry) if {gap.high, gap.low} == set(names)]
        self.check(len(found) == 1, f"no comparison of {sorted(names)}")
        return found[0] if found else None

    def sides(self, entry, low_group, low_value, low_n, high_group, high_value, high_n, gap):
        """Two groups with value and rows, the lower one first, and their gap."""
        if entry.lens == "extremes":
            self.levels(entry, gap, (high_group, high_value, high_n), (low_group, low_value, low_n))
            return
        found = self.gap_of(entry, (low_group, high_group))
        if found is None:
            return
        values = low_value, high_value
        self.check((found.low, found.high) == (low_group, high_group) or found.size == 0, "order")
        holds = says(low_value, found.low_value) and says(high_value, found.high_value)
        self.check(holds, f"values are {found.low_value:.4f} and {found.high_value:.4f}: {values}")
        if entry.lens == "influence" or not self.world.weighted:
            ns = number(low_n), number(high_n)
            self.check(ns == (found.low_n, found.high_n), f"rows: {found.low_n}, {found.high_n}")
        self.check(self.says_size(entry, gap, found.size), f"the gap is {found.size:.4f}")

    def levels(self, entry, gap, *sides):
        values = []
        for name, text, n in sides:
            rows = self.world.groups[entry.attribute].get(name)
            known = None if rows is None else self.lenses.level(entry.attribute, name)
            if known is None:
                self.check(False, f"{name} has no level")
                return
            self.check(n is None or number(n) == rows.sum(), f"rows of {name} are {rows.sum()}")
            values.append(self.near_level(name, text, known))
        off = 1e-3 + 1e-2 * abs(number(gap))
        self.check(abs(values[0] - values[1] - number(gap)) <= off, "the difference of levels")

    def near_level(self, name, text, known):
        value, (low, high) = number(text), known
        near_it = low - 1e-2 * abs(low) - 6e-4 <= value <= high + 1e-2 * abs(high) + 6e-4
        self.check(near_it, f"the level of {name} is {low:.4g} to {high:.4g}")
        return value

    # -- sentences ---------------------------------------------------------------------------

    def title(self, text):
        """The lens of a title, which names its rate where it has one."""
        name, parts = read_part("lens_title", text) or ("", {})
        lens = name.removesuffix("_of_rate")
        self.check(lens in NAMES and TITLES[lens] in text, "no such lens")
        return lens, parts

    def rate(self, entry, rate):
        wanted = plain(self.lenses.rate_of(entry.attribute))
        self.check(rate == wanted, f"the rate is {wanted}")

    def told_lens(self, entry, word):
        if entry is not None:
            self.told_lenses.append(entry)
            self.check(self.lens_word(entry) == word, f"the table says {self.lens_word(entry)}")

    def confident_lens(self, text):
        self.confident(text)

    def on_fail_projection(self, attribute, notion, tolerance, first, second, gap, confidence,
                           lens_note):  # fmt: skip
        one = self.lens_asked("projection", attribute)
        if one is None:
            return
        self.told_lens(one, "fail")
        self.departure(one, notion, tolerance, first, second, gap)
        self.confident_lens(confidence)

    def departure(self, entry, notion, tolerance, first, second, gap):
        self.check(notion == plain(self.lenses.notion), "notion")
        self.says_tolerance(entry, tolerance)
        found = self.gap_of(entry, (first, second))
        if found is not None:
            self.check((first, second) == (found.high, found.low) or found.size == 0, "order")
            self.check(self.says_size(entry, gap, found.size), f"the gap is {found.size:.4f}")

    def on_undecided_projection(self, attribute, lens_title, tolerance, notion, gap, first,
                                second, lens_note):  # fmt: skip
        lens, _ = self.title(lens_title)
        one = self.lens_asked(lens, attribute)
        if one is None:
            return
        self.told_lens(one, "inconclusive")
        self.departure(one, notion, tolerance, first, second, gap)

    def on_fail_individual(self, attribute, who_are, growth, tolerance, bound, confidence, of_rows,
                           lens_note):  # fmt: skip
        one = self.lens_asked("individual", attribute)
        if one is None:
            return
        self.told_lens(one, "fail")
        self.says_tolerance(one, tolerance)
        self.is_growth(growth, lens_note)
        given = one.criterion.fair_metric is not None
        self.check(("metric of this policy" in who_are) is given, "whose metric")
        self.check(bool(of_rows) is not given, "under which metrics")
        least = self.bound_of(one, bound)
        self.check(one.tolerance - 6e-4 <= least <= number(growth) + 6e-4, "bound of a fail")
        self.confident_lens(confidence)

    def is_growth(self, text, note):
        dropped = re.findall(r"without (\w+): no feature", note or "")
        value = self.lenses.growth(tuple(dropped))
        self.check(value is None or near(text, value), f"growth is {value}")

    def on_fail_gap(self, attribute, quantity, tolerance, bound, confidence, lens_note, goes_with,
                    gap, **sides):  # fmt: skip
        lens, parts = read_part("quantity", quantity)
        one = self.lens_asked(lens, attribute)
        if one is None:
            return
        self.told_lens(one, "fail")
        if lens == "influence":
            self.rate(one, parts["rate"])
        self.says_tolerance(one, tolerance)
        self.sides(one, gap=gap, **sides)
        least = self.bound_of(one, bound)
        size = number(gap.removesuffix(" points")) / (100 if lens == "influence" else 1)
        self.check(one.tolerance - 1e-9 <= least <= size + 1e-3, "bound of a fail")
        self.limit(one, (sides["high_group"], sides["low_group"]), least, 0)
        self.confident_lens(confidence)
        if goes_with:
            text = read_part("goes_with", goes_with)[1]["features"]
            self.features(text[:1].lower() + text[1:])

    def limit(self, entry, pair, said, side):
        """A limit of the difference of worst cases."""
        if entry.lens != "extremes" or np.isnan(said):
            return
        each = self.world.policy.alpha / self.lenses.n_adjusted(entry)
        confidence = 1 - (each if side == 0 else self.world.policy.alpha)
        low, high = self.lenses.limits(entry.attribute, *pair, confidence)
        wanted = max(low, 0.0) if side == 0 else max(high, -low)
        self.check(abs(said - wanted) <= 6e-4 + 1e-3 * wanted, f"the limit is {wanted:.4f}")

    def on_pass_lens(self, attribute, lens_title, bound, alone, between, same_attribute, tolerance,
                     confidence, lens_note):  # fmt: skip
        lens, parts = self.title(lens_title)
        one = self.lens_asked(lens, attribute)
        if one is None:
            return
        self.told_lens(one, "pass")
        self.check(lens != "projection" and attribute == same_attribute, "a pass")
        if lens == "influence":
            self.rate(one, parts.get("rate"))
        self.says_tolerance(one, tolerance)
        most = self.bound_of(one, bound)
        self.check(most <= one.tolerance, "bound of a pass")
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(confidence == level, "confidence")
        found = read_part("between", between)
        self.check((found is None) is (lens == "individual"), "groups of a pass")
        if found is not None and lens == "extremes":
            self.limit(one, (found[1]["first"], found[1]["second"]), most, 1)
        elif found is not None:
            gap = self.gap_of(one, found[1].values())
            self.check(gap is None or most >= gap.size - 6e-4, "bound of a pass")
        if lens == "individual":
            given = one.criterion.fair_metric is not None
            self.check(("metric of this policy" in alone) is given, "whose metric")

    def on_undecided_lens(self, attribute, lens_title, gap, seen_of, bound, alike_as, tolerance,
                          remark):  # fmt: skip
        lens, parts = self.title(lens_title)
        one = self.lens_asked(lens, attribute)
        if one is None:
            return
        self.told_lens(one, "inconclusive")
        if lens == "influence":
            self.rate(one, parts["rate"])
        self.says_tolerance(one, tolerance)
        if lens == "individual":
            self.is_growth(gap.removesuffix(" times"), remark)
            given = one.criterion.fair_metric is not None
            self.check(("metric of this policy" in alike_as) is given, "whose metric")
        else:
            sides = read_part("seen_of", seen_of)[1]
            self.sides(one, gap=gap, **sides)
            pair = sides["high_group"], sides["low_group"]
            self.limit(one, pair, self.bound_of(one, bound), 1)
        self.why_not(one, remark)

    def why_not(self, entry, text):
        """Why a lens decides nothing; other notes are those of the lens."""
        name, found = read_part("why_not_shown", text[:1].lower() + text[1:].partition("; of")[0])\
            or ("", {})  # fmt: skip
        lenses, policy = self.lenses, self.world.policy
        if name == "few_rows":
            each = policy.alpha / lenses.n_adjusted(entry)
            for key, level in (("passes", policy.alpha), ("fails", each)):
                n = int(number(found[key]))
                self.check(self.limits_of_rows(n, level), f"{n} rows are too few")
                self.check(not self.limits_of_rows(n - 1, level), f"{n} rows are too many")
        elif name == "few_people":
            share = lenses.coverage(entry)
            self.check(says(f"{found['share']} %", share), f"covered are {share:.4f}")
            self.check(number(found["needed"]) == 100 * policy.min_coverage, "needed coverage")

    @staticmethod
    def limits_of_rows(n, level):
        """Return whether two groups of n rows have limits from both sides."""
        from ..reference import extremes

        count = np.arange(200)
        each = extremes.deviance(count, n, HORIZON)
        chance = stats.binom.pmf(count, n, 1 / HORIZON)
        sums, chances = np.add.outer(each, each), np.multiply.outer(chance, chance)
        # A count of 0 leaves one side open: it must lie beyond the cut with any other count.
        order = np.argsort(-sums, axis=None)
        beyond = np.cumsum(chances.ravel()[order])
        cut = sums.ravel()[order][np.argmax(beyond > level)]
        return each[0] + each.min() > cut + 1e-9

    def on_lacking_lens(self, of_attribute, lens_title, reason):
        lens, _ = self.title(lens_title)
        about = read_part("of_attribute", of_attribute)
        one = self.lens_asked(lens, about[1]["attribute"] if about else "")
        if one is None:
            return
        self.told_lens(one, "not measurable")
        refused = self.lenses.refused(lens)
        if self.lenses.lacks(lens):
            self.check(reason.startswith("needs "), "the lens lacks something")
        elif refused:
            self.check(reason == f"takes no {' and no '.join(refused)}", f"takes no {refused}")
        else:
            self.check(not reason.startswith("takes no"), "the design is accepted")

    def on_silent_lens(self, attribute, lens, reasons):
        one = self.lens_asked(lens, attribute)
        # Which pairs the limit law suits depends on the scores near the boundary.
        is_known = lens != "projection" or "limit law" not in reasons
        compared_all = one is not None and is_known and self.lenses.coverage(one) >= 1
        self.check(not compared_all, "all groups were compared")

    def on_lens_warning(self, lens, about, warning):
        wanted = lens == "permutation" or lens in self.lenses.wanted
        self.check(wanted, "a lens that was not wanted")
        names = {" and ".join(self.world.attributes), *self.world.attributes}
        known = about in names or set(names_in(about)) <= names or lens == "permutation"
        self.check(known, "no such attribute")
        self.check(lens == "permutation" or not self.lenses.lacks(lens), "it was not run")

    # -- what informs ------------------------------------------------------------------------

    def on_others_inform(self):
        self.check(set(self.lenses.wanted) != {value.lens for value in self.lenses.binding}, "none")

    def on_lens_told(self, lens, attribute, lens_found, lens_note):
        lenses = self.lenses
        self.check(attribute in lenses.attributes(lens), "attribute")
        criterion = lenses.criterion(lens, attribute)
        self.check(criterion is None or not criterion.binding, "it binds")
        self.check(not lenses.lacks(lens) and not lenses.refused(lens), "it could not be run")
        name, found = read_part("lens_found", lens_found) or ("", {})
        self.check(name != "", "no template fits what the lens found")
        method = getattr(self, f"found_{name}", None)
        if method is not None:
            method(lens, attribute, lens_note, **found)

    def level_of(self, text):
        level = f"{100 * (1 - self.world.policy.alpha):g} % confidence"
        self.check(text == level, f"the level is {level}")

    def found_departs(self, lens, attribute, note, notion):
        self._departs(lens, attribute, notion, True)

    def found_departs_not_shown(self, lens, attribute, note, notion):
        self._departs(lens, attribute, notion, False)

    def _departs(self, lens, attribute, notion, shown):
        self.check((lens, notion) == ("projection", self.lenses.notion), "notion")
        groups = list(self.world.groups[attribute])
        p, *_ = self.lenses.projected(attribute, groups)
        alpha = self.world.policy.alpha
        self.check((p <= alpha) is shown or abs(p / alpha - 1) < 5e-3, f"p is {p:.4g}")

    def _grows(self, note, growth, likeness, level, delta, low=None, high=None):
        self.is_growth(growth, note)
        self.level_of(level)
        given = self.lenses.criterion("individual", "")
        given = given is not None and given.fair_metric is not None
        self.check(("metric of this policy" in likeness) is given, "whose metric")
        low, high = (None if end is None else number(end) for end in (low, high))
        self.check(low is None or low <= number(growth), "the lower limit")
        self.check(high is None or high >= number(growth), "the upper limit")
        return low, high, float(delta)

    def found_grows_more(self, lens, attribute, note, **parts):
        low, _, delta = self._grows(note, **parts)
        self.check(low >= delta, "more is not shown")

    def found_grows_less(self, lens, attribute, note, **parts):
        _, high, delta = self._grows(note, **parts)
        self.check(high <= delta, "less is not shown")

    def found_grows_open(self, lens, attribute, note, **parts):
        low, high, delta = self._grows(note, **parts)
        self.check(low <= delta <= high, "it is shown")

    def found_influence(self, lens, attribute, note, rate, first, second, gap, low, high, level,
                        features_found):  # fmt: skip
        metric, groups = self.lenses.rate_of(attribute), self.world.groups[attribute]
        self.check(rate == plain(metric), f"the rate is {plain(metric)}")
        self.level_of(level)
        rest = [name for name in groups if name != first]
        if first not in groups or second != self.lenses.rest(rest):
            self.check(False, "groups")
            return
        others = np.any([groups[name] for name in rest], axis=0)
        values, variance = [], 0.0
        for rows in (groups[first], others):
            value, n = self.world.value(metric, rows), self.world.n_eligible(metric, rows)
            values.append(value)
            variance += value * (1 - value) / n
        self.check(near(gap, values[0] - values[1]), f"the gap is {values[0] - values[1]:.4f}")
        half = stats.norm.ppf(1 - self.world.policy.alpha / 2) * variance**0.5
        for text, sign in ((low, -1), (high, 1)):
            end = values[0] - values[1] + sign * half
            self.check(abs(number(text) - end) <= 0.1 * half + 6e-4, f"an end is {end:.4f}")
        worst = max if self.world.worse_off(metric) == "higher" else min
        tested = self.world.tested(metric, attribute)
        extreme = worst(self.world.value(metric, groups[name]) for name in tested)
        self.check(abs(values[0] - extreme) < 1e-9, "not the group that is worst off")
        no_direction = number(low) <= 0 <= number(high)
        name, _ = read_part("features_found", features_found)
        if number(low) and number(high):
            self.check((name == "no_direction") is no_direction, "the direction")
        self.features(features_found)

    def features(self, text):
        name, found = read_part("features_found", text) or ("", {})
        self.check(name != "", "no template fits the features")
        known = set(self.world.X.columns)
        for part in found.values():
            names = set(names_in(part or ""))
            more = {value for value in names if value.endswith(" more")}
            self.check(names - more <= known, f"features are {known}")

    def _extremes(self, attribute, horizon, first, first_level, second, second_level, gap, limits,
                  level, differ_shown, note):  # fmt: skip
        self.check(number(horizon) == HORIZON, "horizon")
        self.level_of(level)
        for name, text in ((first, first_level), (second, second_level)):
            known = self.lenses.level(attribute, name)
            self.check(known is not None, f"{name} has no level")
            if known is not None:
                self.near_level(name, text, known)
        off = 1e-3 + 1e-2 * abs(number(gap))
        levels = number(first_level) - number(second_level)
        self.check(abs(levels - number(gap)) <= off, "the difference of levels")
        ends = limits.split(" to ")
        if len(ends) == 2 and "infinite" not in limits:
            low, high = map(number, ends)
            self.check(low - 1e-3 <= number(gap) <= high + 1e-3, "limits around the difference")
        self.check(differ_shown in ("shown", "not shown, which is no evidence of equality"), "word")

    def found_extremes_of_two(self, lens, attribute, note, **parts):
        self._extremes(attribute, note=note, **parts)

    def found_extremes_of_several(self, lens, attribute, note, worst, worst_level, n_groups,
                                  **parts):  # fmt: skip
        self._extremes(attribute, note=note, **parts)
        groups = self.world.groups[attribute]
        known = {name: self.lenses.level(attribute, name) for name in groups}
        known = {name: level for name, level in known.items() if level is not None}
        self.check(int(n_groups) == len(known), f"groups with a level: {sorted(known)}")
        highest = max(level[0] for level in known.values())
        self.check(known[worst][1] >= highest - 1e-3, "not the worst group")
        self.near_level(worst, worst_level, known[worst])

    def on_lenses_silent(self, lenses):
        """The lenses that inform and have nothing to say."""
        for text in lenses.split("; "):
            name = text.partition(" by ")[0]
            self.check(name in self.lenses.wanted, f"{name} was not wanted")

    def all_lenses_are_told(self):
        """Every binding lens that was asked has a line of its own, unless the audit passes less."""
        told = self.told_lenses
        self.check(len(told) == len(set(told)), "a lens is told twice")
        words = ["fail", "inconclusive", "not measurable"]
        for value in self.lenses.binding:
            if self.lens_word(value) in words and value not in told:
                self.check(False, f"nothing is said of {value.lens} by {value.attribute}")
