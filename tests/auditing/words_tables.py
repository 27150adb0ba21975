"""Reads the notes and the tables of an audit."""

import re

import numpy as np

from fairaudit_rs.auditing.sentences import read_part

from .words import METRICS, Asked, breslow_day
from .words_lines import Lines, names_in, number, read_bound, says


class NoteReader(Lines):
    """The notes."""

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

    def on_equal_is(self):
        criteria = self.world.policy.criteria
        is_there = any(
            criterion.tolerance is None and criterion.ratio is None for criterion in criteria
        )
        self.check(is_there, "all criteria have thresholds")

    def on_table_is(self, confidence):
        self.check(confidence == f"{100 * (1 - self.world.policy.alpha):g} % confidence", "level")

    def on_errors_are(self, tests, rate, together, false_pass, labels):
        self.check(rate == f"{100 * self.world.policy.alpha:g} %", "rate")
        self.check(bool(false_pass) == self.world.policy.has_pass, "rate of a false pass")
        self.check(not false_pass or rate in false_pass, "rate of a false pass")
        self.check(bool(labels) == (self.world.y is not None), "labels")
        _, found = read_part("tests", tests)
        n = number(found.get("n", "1"))
        self.check(n == self.world.n_tests, f"comparisons: {self.world.n_tests}")
        self.check(("lens" in tests) is bool(self.world.lenses.binding), "tests of lenses")
        at_once = n > 1 and self.world.policy.adjustment == "holm"
        self.check(("together" in together) is at_once, "together")
        self.check(("alone" in together) is (n > 1 and not at_once), "alone")

    def on_flag(self, attribute, same_attribute, yes, no):
        values = set(self.world.attributes[attribute])
        self.check(attribute == same_attribute and (yes, no) == ("1", "0"), "flag")
        self.check(values == {0, 1}, "values of the attribute")

    def on_missing_texts(self, name, texts):
        column = self.world.attributes[name]
        said = {text: number(n) for text, n in re.findall(r"'(\w+)' in ([\d,]+) rows?", texts)}
        found = {text: int((column == text).sum()) for text in ("None", "nan", "NA")}
        found = {text: n for text, n in found.items() if n}
        self.check(said == found, f"missing are {found}")

    def on_several_flags(self):
        flags = [c for c in self.world.attributes.values() if set(c) == {0, 1}]
        self.check(len(flags) > 1, "flags")

    def on_decides_alike(self, share):
        positive = np.average(self.world.p, weights=self.world.w)
        self.check(says(share, max(positive, 1 - positive)), "share that is decided alike")

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
        wanted = left / right if right > 1e-9 else np.nan
        self.check(says(times, wanted) if times else np.isnan(wanted), f"{wanted:.2f} times")
        of_decisions = refused == "negative decisions are"
        self.check(of_decisions is (one.metric == "selection_rate"), "what is refused")

    def on_refusals(self, **parts):
        self._refusals(**parts)

    def on_refusals_of_one(self, **parts):
        self._refusals(**parts)

    def on_base_rates_differ(self, attribute, low_rate, low, high_rate, high, policy, asked):
        rows = self.world.groups[attribute]
        for name, text in ((low, low_rate), (high, high_rate)):
            rate = np.average(self.world.y[rows[name]], weights=self.world.w[rows[name]])
            self.check(says(text, rate), f"base rate of {name} is {rate:.4f}")
        self.check(policy == self.world.policy.name, "policy")
        for value in self.world.binding:
            self.check(METRICS[value.metric].words in asked, "what is asked")

    def on_small_intersections(self, n, groups):
        small = self.small_intersections()
        self.check(number(n) == len(small), f"small intersections: {len(small)}")
        found = re.findall(
            r"(?:^|, | and )([^(),]+? & [^(),]+?) \(([^()]+)\): (too few eligible rows|[\d,]+)",
            groups,
        )
        for name, attribute, n_rows in found:
            wanted = small.get((attribute, name))
            self.check(wanted is not None, f"{name} is large enough")
            if n_rows != "too few eligible rows":
                self.check(number(n_rows) in wanted, f"eligible rows of {name} are {wanted}")

    def on_small_intersection(self, n, groups):
        self.on_small_intersections(n, groups)

    def small_intersections(self):
        """Eligible rows of the intersections that a metric does not compare, by metric."""
        small, world = {}, self.world
        for attribute in world.groups.keys() - world.attributes.keys():
            for criterion in world.policy.criteria:
                parts = attribute.split(" and ")
                if criterion.metric is None or criterion.is_fixed_reference:
                    continue
                if not all(map(criterion.covers, parts)):
                    continue
                if not set(METRICS[criterion.metric].needs) <= world.roles:
                    continue
                for name, rows in world.groups[attribute].items():
                    if not world.is_large(criterion.metric, rows):
                        n = world.n_eligible(criterion.metric, rows)
                        small.setdefault((attribute, name), set()).add(n)
        return small

    def on_folded(self, note, groups, n):
        self.sentence(note, note)
        self.check(number(n) > 2, "notes of a kind")

    def _mixed(self, found, n_rows):
        """Clusters with rows in several groups of some attribute, and their rows."""
        world = self.world
        n_mixed, n_all = (
            number(n) for n in re.match(r"([\d,]+) of ([\d,]+) clusters", found).groups()
        )
        sizes = set()
        for name, groups in world.people.items():
            mixed = world.mixed_clusters(name)
            known = np.any(list(groups.values()), axis=0)
            inside = int((known & np.isin(world.clusters, mixed)).sum())
            sizes.add((len(mixed), len(set(world.clusters[known])), inside))
        said = n_mixed, n_all, number(n_rows)
        self.check(said in sizes, f"clusters of several groups: {sizes}")

    def on_clusters_dropped(self, found, n_rows):
        self.check(self.world.mixed == "drop", "clusters are dropped")
        self._mixed(found, n_rows)

    def on_clusters_split(self, found, n_rows):
        self.check(self.world.mixed == "split", "clusters are split")
        self._mixed(found, n_rows)

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

    def on_many_strata(self, attribute, metric, n):
        n_strata = {len(set(zip(*self.world.strata.values(), strict=True)))}
        self.check(10 <= number(n) <= max(n_strata), f"strata: {n_strata}")

    def on_effect_varies(self, **parts):
        self.on_many_strata(**parts)

    def on_gap_differs(self, **parts):
        self._homogeneity(**parts)

    def on_gap_may_be_one(self, **parts):
        self._homogeneity(**parts)

    def on_odds_differ(self, **parts):
        self.check("Breslow-Day" in parts["tested_by"], "odds ratios are what it tests")
        self._homogeneity(**parts)

    def on_odds_may_be_one(self, **parts):
        self.on_odds_differ(**parts)

    def on_gap_not_tested(self, **parts):
        self._homogeneity(**parts)


class TableReader(Lines):
    """The table of questions, and those of strata."""

    # -- tables ------------------------------------------------------------------------------

    def table(self, lines):
        """The table of questions in a text."""
        _, rows = cells_of(lines)
        self.question_rows(rows)

    def question_rows(self, rows):
        """The rows of the table of questions: binding ones first, in the order of the policy."""
        lenses = self.world.lenses.asked
        for place, row in enumerate(rows):
            self.line = "  ".join(row)
            lens = next(
                (value for value in lenses if row[:2] == [value.attribute, value.lens]), None
            )
            if lens is not None:
                self.lens_row(lens, row)
                continue
            if place < len(self.world.questions):
                asked = self.world.questions[place]
            else:
                asked = self.crossed(row)
                self.crossed_rows.append(row)
            if asked is None or row[:2] != [asked.attribute, asked.metric]:
                self.check(False, f"row {place} is about {asked}")
                continue
            self.row(place, asked, row)
        n = len(self.world.questions) + len(lenses)
        self.check(len(rows) >= n and len(self.lens_rows) == len(lenses), "rows of the table")

    def crossed(self, row):
        """The question about an intersection that does not bind and fails."""
        for criterion in self.world.policy.criteria:
            if criterion.metric == row[1] and row[0] in self.world.groups:
                scale = "difference" if criterion.ratio is None else "ratio"
                is_points = "points" in row[6] or not METRICS[criterion.metric].is_share
                if (scale == "difference") == is_points:
                    return Asked(criterion, row[0])
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
        shown = {}
        for text in row[3:5]:
            _, found = read_part("cell", text) or ("", {"group": "", "value": "", "n": "0"})
            shown[found["group"]] = found["value"]
            rows = world.groups[asked.attribute].get(found["group"])
            n = -1 if rows is None else world.n_eligible(asked.metric, rows)
            self.check(number(found["n"]) == n, f"eligible rows are {n}")
        self.extremes(asked, shown)
        if len(decided) != 2 or not decided <= set(world.groups[asked.attribute]):
            self.check(False, "the groups that decide")
            return
        size = world.size(asked, *decided)
        unknown = np.isnan(size) and row[6] == "not measurable"
        self.check(unknown or says(row[6], size), f"the gap of {decided} is {size:.4f}")
        p = np.nan if not row[8] else self.p_equal(asked, *decided)
        holds = np.isnan(p) or abs(float(row[8]) - p) <= 0.051 * p + 1e-300
        self.check(holds, f"p of equality is {p:.4g}")
        limit = asked.tolerance
        bound = read_bound(row[7].lstrip("<> "))
        sizes = [world.size(asked, *pair) for pair in pairs]
        if word == "fail":
            self.check(self.beyond(asked, size), "a fail within the tolerance")
            inner = bound >= limit - 1e-9 if asked.scale == "difference" else bound <= limit + 1e-9
            self.check(inner, "bound of a fail")
        if word == "pass":
            self.check(not any(self.beyond(asked, value) for value in sizes), f"gaps are {sizes}")
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
        self.strata_of(title, cells_of(lines)[1])

    def strata_of(self, title, rows):
        found = re.match(r"(.+?), (\w+): (.+?) and (.+?) in each stratum", title)
        attribute, metric, first, second = found.groups()
        pair = self.world.compared(metric, attribute, first, second)
        many = len(pair.strata) > 12
        self.check(len(rows) == (12 if many else len(pair.strata)), "number of strata")
        for name, row, two, gap, weight in rows:
            self.line = "  ".join((name, row, two, gap, weight))
            if name not in pair.strata:
                self.check(False, "no such stratum")
                continue
            a, n, b, m, k = pair.strata[name]
            for text, value, count in ((row, a, n), (two, b, m)):
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
