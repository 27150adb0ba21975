"""Reads the lines of a rule, and computes their numbers with SciPy."""

import re

import numpy as np
from scipy import stats

from fairaudit_rs.auditing.sentences import read_part

from .words import fisher, least_expected, pooled_z
from .words_lines import Lines, number


def near(text, value, digits):
    """Return whether a text is a number with so many decimals."""
    return abs(float(text.replace(",", "")) - value) <= 0.5 * 10.0**-digits * (1 + 1e-6) + 1e-12


def is_p(text, value):
    """Return whether a text is a p-value."""
    found = re.fullmatch(r"p = ([\d.e-]+)", text)
    if found is None:
        return value < 1e-300
    wanted = float(found[1])
    return abs(wanted - value) <= 5.1e-5 if value >= 1e-4 else abs(wanted / value - 1) < 0.06


class RuleReader(Lines):
    """The lines of rules."""

    def rule_line(self, line):
        self.line, policy = line, self.world.policy
        if line in (policy.status, policy.is_not):
            return
        found = read_part("rule_line", line)
        of_attribute = found is not None and found[1]["attribute"] in self.world.attributes
        if policy.rule == "nyc_ll144" or not of_attribute:
            self.sentence(line, line)
            return
        if found is None:
            self.check(False, "no template fits")
            return
        parts = found[1]
        self.without(parts["without"])
        self.attribute = parts["attribute"]
        self.sentence(parts["line"], line)

    @property
    def unused(self):
        world = self.world
        there = {"weights": world.weighted, "strata": world.strata}
        there["clusters"] = world.clusters is not None
        return [name for name, has in there.items() if has]

    def without(self, text):
        parts = read_part("without", text)
        names = [] if parts is None else re.split(", | and ", parts[1]["parts"])
        self.check(names == self.unused, f"not used are {self.unused}")

    def on_rule_counts(self, unused):
        parts = read_part("unused", unused)
        names = [] if parts is None else re.split(", | and ", parts[1]["parts"])
        self.check(names == self.unused, f"not used are {self.unused}")

    def on_rule_source(self, rule, since, as_of, source):
        policy = self.world.policy
        self.check((rule, as_of, source) == (policy.rule, policy.as_of, policy.source), "source")
        self.check(since == (f"in force since {policy.in_force}; " * bool(policy.in_force)), "date")

    def rated(self, group, rate, n, what="rate"):
        """The positive decisions of a group and its rows, as a line has them."""
        counts = self.world.counts(self.attribute)
        if group not in counts:
            self.check(False, f"{group} is no group")
            return 0, 1
        x, total = counts[group]
        self.check(int(n.replace(",", "")) == total, f"{group} has {total} rows")
        self.check(near(rate.removesuffix(" %"), 100 * x / total, 1), f"{what} {x / total:.4f}")
        return x, total

    def of_best(self, text):
        found = re.fullmatch(r"(.+) \(([\d.]+ %) of ([\d,]+)\)", text)
        x, n = self.rated(*found.groups())
        highest = max(a / b for a, b in self.world.counts(self.attribute).values())
        self.check(x / n >= highest - 1e-12, f"the highest rate is {highest:.4f}")
        return x, n

    def on_highest_rate(self, best):
        self.of_best(best)

    @property
    def n_pairs(self):
        sizes = [len(self.world.counts(name)) for name in self.world.attributes]
        return sum(k * (k - 1) // 2 for k in sizes if k > 1)

    @property
    def n_others(self):
        return sum(max(len(self.world.counts(name)) - 1, 0) for name in self.world.attributes)

    def few(self, text, *groups):
        """Which groups are below our own minimum."""
        counts, floor = self.world.counts(self.attribute), self.world.policy.floor
        small = {name: counts[name][1] for name in groups if counts[name][1] < floor}
        parts = read_part("too_few", text)
        found = {} if parts is None else dict(
            re.findall(r"(?:^|and )(.+?) has ([\d,]+) rows", parts[1]["groups"])
        )  # fmt: skip
        found = {name: int(n.replace(",", "")) for name, n in found.items()}
        self.check(found == small, f"below the minimum: {small}")

    def on_impact_ratio(self, group, rate, n, ratio, best, words, test, more, rules_out,
                        confidence, adjusted, too_few):  # fmt: skip
        x, total = self.rated(group, rate, n)
        y, m = self.of_best(best)
        share = (x / total) / (y / m)
        self.check(near(ratio, share, 3), f"ratio is {share:.4f}")
        name, found = read_part("test", test)
        exact = bool(least_expected(x, total, y, m) < 5)
        z = pooled_z(x, total, y, m)
        p = fisher(x, total, y, m) if exact else 2 * stats.norm.sf(abs(z))
        self.check(near(found["z"], z, 2) and is_p(found["p"], p), f"z {z:.3f}, p {p:.5f}")
        self.check(("Fisher" in found["method"]) is exact, "test")
        if name == "test_of_several":
            k = int(found["n_tests"])
            self.check(k == self.n_pairs, f"comparisons: {self.n_pairs}")
            self.check(is_p(found["adjusted_p"], min(1, k * p)), "adjusted p")
        flagged, significant = 5 * x * m < 4 * y * total, bool(min(1, self.n_pairs * p) <= 0.05)
        self.check(("not below four fifths" in words) is not flagged, "four fifths")
        self.check(("do not differ significantly" in words) is not significant, "significant")
        missing = max(int(np.ceil(0.8 * y / m * total - 1e-9)) - x, 0)
        found = read_part("more", more)
        said = int(found[1]["k"].replace(",", "")) if found else 0
        self.check(said == missing, f"missing selections: {missing}")
        self.check(not (rules_out == "rule" and not flagged), "rules out what it has")
        self.check(confidence == "95 % confidence", "confidence")
        best_name = re.fullmatch(r"(.+) \([\d.]+ % of [\d,]+\)", best)[1]
        self.few(too_few, group, best_name)

    def on_nobody_selected(self, group, too_few):
        counts = self.world.counts(self.attribute)
        self.check(all(x == 0 for x, _ in counts.values()), "somebody is selected")

    def on_no_reference(self):
        names = [n for criterion in self.world.policy.criteria for n in criterion.attributes or ()]
        self.check(self.attribute not in names, "there is a reference")

    def how(self, text):
        _, found = read_part("how", text)
        n = int(found.get("n_tests", "1").replace(",", ""))
        self.check(n == self.n_others, f"comparisons: {self.n_others}")
        return found["method"], found["p"]

    def _impact(self, group, rate, n, reference, reference_rate, reference_n, too_few):
        self.few(too_few, group, reference)
        return *self.rated(group, rate, n), *self.rated(reference, reference_rate, reference_n)

    def on_adverse_impact(self, ratio, flagged, why, favourable_more, **parts):
        x, n, y, m = self._impact(**parts)
        share = (x / n) / (y / m)
        self.check(near(ratio, share, 3), f"ratio is {share:.4f}")
        name, found = read_part("why", why)
        method, p_said = self.how(found["how"])
        exact = n + m < 1_000
        z = pooled_z(x, n, y, m)
        p = fisher(x, n, y, m) if exact else 2 * stats.norm.sf(abs(z))
        self.check(is_p(p_said, p) and ("Fisher" in method) is exact, f"p is {p:.5f}")
        significant, low = bool(p <= 0.05), 5 * x * m < 4 * y * n
        wanted = "flagged" if low and significant else "not_significant" if low else "not_low"
        wanted = "favoured" if x * m > y * n else wanted
        self.check(name == wanted, f"why is {wanted}")
        self.check(flagged == ("Flagged" if wanted == "flagged" else "Not flagged"), "flag")
        differ = found.get("differ_significantly")
        self.check(differ is None or (differ == "differ significantly") is significant, "differ")
        missing = max(-(-y * n // m) - x, 0)
        found = read_part("favourable_more", favourable_more)
        said = int(found[1]["k"].replace(",", "")) if found else 0
        self.check(said == missing, f"missing decisions: {missing}")

    def on_no_adverse_impact(self, **parts):
        *_, y, _ = self._impact(**parts)
        self.check(y == 0, "the reference group has it")

    def on_mean_difference(self, group, mean, n, reference, reference_mean, reference_n, smd,
                           spread, differ_significantly, side, how, flag_of_means):  # fmt: skip
        s, groups = self.world.s, self.world.people[self.attribute]
        one, two = s[groups[group]], s[groups[reference]]
        # Groups of one row have no spread of their own, and take no part.
        known = np.concatenate([s[rows] for rows in groups.values() if rows.sum() > 1])
        gap = one.mean() - two.mean()
        self.check(abs(float(mean) - one.mean()) < 6e-4, f"mean {one.mean():.4f}")
        self.check(abs(float(reference_mean) - two.mean()) < 6e-4, f"mean {two.mean():.4f}")
        self.check((int(n.replace(",", "")), int(reference_n.replace(",", "")))
                   == (len(one), len(two)), "rows")  # fmt: skip
        wanted = gap / known.std(ddof=1)
        self.check(near(smd, wanted, 3) and spread == "all people", f"difference {wanted:.4f}")
        p = stats.ttest_ind(one, two, equal_var=False).pvalue
        method, p_said = self.how(how)
        self.check(is_p(p_said, p) and method.startswith("Welch"), f"p is {p:.5f}")
        self.check((differ_significantly == "differ significantly") is bool(p <= 0.05), "differ")
        better = bool(gap > 0) is not self.world.policy.punitive
        found = read_part("side", side)
        word = ("advantage" if better else "disadvantage") if p <= 0.05 else None
        self.check((found and found[0]) == word, f"side is {word}")
        self.check(found is None or found[1]["group"] == group, "group")
        self.check(flag_of_means == "No threshold is set, so nothing is flagged", "flag")

    @property
    def known(self):
        """Rows of the groups of an attribute."""
        return {name: int(rows.sum()) for name, rows in self.world.people[self.attribute].items()}

    @property
    def reference(self):
        """The group that a lender compares all others of an attribute with."""
        [one] = [
            criterion
            for criterion in self.world.policy.criteria
            if criterion.covers(self.attribute)
        ]
        [name] = [name for name in self.known if self.world.plain(name) == one.reference]
        return name

    def on_no_decisions(self):
        self.check(self.world.p is None, "there are decisions")

    def on_one_group(self):
        self.check(len(self.known) < 2, f"groups are {self.known}")

    def on_no_mean_of_group(self, group):
        self.check(self.known.get(group) == 1, f"groups are {self.known}")

    def on_no_means_of_few(self):
        others = [n for name, n in self.known.items() if name != self.reference]
        few = self.known[self.reference] == 1 or set(others) == {1}
        self.check(few, f"groups are {self.known}")

    def on_means_refused(self, reason):
        self.check("s" in self.world.roles and "y_score" in reason, "no scores that are refused")

    def on_bias_audit(self, made, source_of_data):
        options = self.world.policy.rule_options
        made, source = read_part("made", made), read_part("source_of_data", source_of_data)
        self.check((made and made[1]["date"]) == options.get("date"), f"made: {options}")
        self.check((source and source[1]["source"]) == options.get("data"), f"data: {options}")

    def on_no_means(self):
        self.check(self.world.s is None, "scores were given")

    def on_approval_gap(self, size, how, looks, **parts):
        x, n, y, m = self._impact(**parts)
        name, found = read_part("size", size)
        gap = y / m - x / n
        self.check(near(found["gap"], 100 * abs(gap), 1), f"gap is {gap:.4f}")
        exact = least_expected(x, n, y, m) < 5
        z = pooled_z(x, n, y, m)
        p = fisher(x, n, y, m) if exact else 2 * stats.norm.sf(abs(z))
        _, p_said = self.how(how)
        self.check(is_p(p_said, p), f"p is {p:.5f}")
        reaches = 20 * (y * n - x * m) >= n * m
        wanted = "five_and_significant" if p <= 0.05 else "five"
        wanted = "in_favour" if gap < 0 else wanted if reaches else "below_five"
        self.check(name == wanted, f"size is {wanted}")
        self.check(("not" in looks) is (wanted != "five_and_significant"), "looks")

    # -- Local Law 144 -----------------------------------------------------------------------

    def of_category(self, by):
        """The attribute of a table of categories; intersections have both."""
        names = {"sex": "sex", "race or ethnicity": "race"}
        return " and ".join(names[part] for part in by.split(" and "))

    def category_counts(self, by, rate_name):
        world, attribute = self.world, self.of_category(by)
        groups = world.people.get(attribute)
        if groups is None:
            # The rule names sex first, whatever the order of the attributes.
            turned = world.people[" and ".join(reversed(attribute.split(" and ")))]
            groups = {" & ".join(reversed(k.split(" & "))): rows for k, rows in turned.items()}
        chosen = world.p if rate_name == "selection rate" else world.s > np.median(world.s)
        return {name: (int(chosen[rows].sum()), int(rows.sum())) for name, rows in groups.items()}

    def category_table(self, lines):
        """Sentences, then a table of categories: applicants, rates and impact ratios."""
        head = next(i for i, line in enumerate(lines) if "number of applicants" in line)
        for line in lines[:head]:
            self.rule_line(line.strip())
        names = re.split("  +", lines[head].strip())
        self.categories(names, [re.split("  +", line.strip()) for line in lines[head + 1 :]])

    def categories(self, head, rows):
        """Check the rows of a table of categories."""
        by, _, rate_name, *_ = head
        counts = self.category_counts(by, rate_name)
        highest = max(a / b for a, b in counts.values())
        has_both = any(name.startswith("impact ratio ") for name in head)
        self.check({row[0] for row in rows} == set(counts), f"categories: {sorted(counts)}")
        for group, n, rate, *rest in rows:
            self.line = "  ".join((group, n, rate, *rest))
            x, total = counts[group]
            self.check(number(n) == total, f"{group} has {total} applicants")
            self.check(near(rate, x / total, 3), f"rate is {x / total:.4f}")
            ratio = rest[0] if rest else ""
            if re.fullmatch(r"[\d.]+", ratio):
                self.check(near(ratio, x / total / highest, 3), "impact ratio")
            small = 50 * total < sum(b for _, b in counts.values())
            self.check(not small or has_both or rest[-1] != ratio, "a category below 2 %")

    def on_ratios_are_to(self, by, without, group, rate_name, rate):
        counts = self.category_counts(by, rate_name)
        x, n = counts[group]
        self.check(near(rate, max(a / b for a, b in counts.values()), 3), "highest rate")
        self.check(near(rate, x / n, 3), "rate")

    def on_unknown_category(self, by, people, same_by, are):
        names = self.of_category(by).split(" and ")
        known = [np.any(list(self.world.people[name].values()), axis=0) for name in names]
        n = self.world.n - int(np.all(known, axis=0).sum())
        self.check(int(people.split()[0].replace(",", "")) == n and by == same_by, f"unknown: {n}")

    def on_small_highest(self, by, small_note):
        _, found = read_part("small_note", small_note)
        counts = self.category_counts(by, found["rate_name"])
        x, n = counts[found["group"]]
        self.check(near(found["rate"], x / n, 3), "rate")
        n_all = sum(b for _, b in counts.values())
        self.check((int(found["n"]), int(found["n_all"].replace(",", ""))) == (n, n_all), "people")

    def on_impact_of_selection(self):
        self.check("p" in self.world.roles, "no decisions")

    def on_impact_of_scoring(self):
        self.check("s" in self.world.roles, "no scores")

    def on_bias_columns(self, columns):
        wanted = [
            f"{what} is column {name!r}"
            for what, name in (("sex", "sex"), ("race or ethnicity", "race"))
            if name in self.world.attributes
        ]
        self.check(columns.split("; ") == wanted, f"columns are {wanted}")

    def on_missing(self, what):
        known = (
            "the tables with sex",
            "the tables with race",
            "scoring rates",
            "the date",
            "the so",
        )
        self.check(what.startswith(known), "what is missing")
        options = self.world.policy.rule_options
        self.check(not (what.startswith("the date") and "date" in options), "there is a date")
        self.check(not (what.startswith("the so") and "data" in options), "there is a source")

    def on_no_threshold(self):
        self.check(not self.world.policy.binding, "the policy binds")
