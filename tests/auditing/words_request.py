"""Reads the headline and the request of an audit."""

import re

from fairaudit_rs import __version__
from fairaudit_rs.auditing.sentences import read_part

from .words import METRICS
from .words_lines import Lines, names_in, number, says

NO_PASS = "(the policy knows no pass)"
HEADLINES = {
    "FAIL": "fail",
    "INCONCLUSIVE (not a pass)": "inconclusive",
    "NOT MEASURABLE (not a pass)": "not measurable",
    "NOT ASKED": "not asked",
    "PASS": "pass",
    "PASS for the groups that could be measured, not for all": "pass",
    f"NO FAIL {NO_PASS}": "no fail",
    f"NO FAIL for the groups that could be measured, not for all {NO_PASS}": "no fail",
}
#: Verdicts of the table, the worst one first.
WORST = ["fail", "inconclusive", "not measurable", "pass", "no fail", "not asked"]


class RequestReader(Lines):
    """The first lines."""

    # -- the request -------------------------------------------------------------------------

    def on_headline(self, verdict, n_rows, policy, covered):
        world = self.world
        self.check(number(n_rows) == world.n, "number of rows")
        words = [self.rows[i][0] for i in range(len(world.binding)) if i in self.rows]
        words += [self.lens_word(value) for value in world.lenses.binding]
        worst = min(words, key=WORST.index, default="not asked")
        self.check(HEADLINES.get(verdict) == worst, f"verdict of the table: {worst}")
        self.check(f'policy "{world.policy.name}"' in policy, "policy")
        for rule in world.policy.binding:
            if rule.lens is not None:
                self.lens_criterion(rule, policy)
                continue
            text = f"{rule.metric} ({METRICS[rule.metric].words}), "
            at_least = rule.tolerance is None
            text += f"ratios of at least {rule.ratio:g}" if at_least else ""
            text += "" if at_least else f"differences up to {rule.tolerance:g}"
            self.check(text in policy, f"criterion {text}")
            if rule.reference is not None:
                self.check(f"to {'the ' * (rule.reference in ('highest', 'best'))}{rule.reference}"
                           in policy, "reference")  # fmt: skip
        covered = read_part("covered", covered)
        shares = {}
        if covered:
            texts = re.findall(r"(.+?) (more than 99\.9 %|[\d.]+ %)(?:, |$)", covered[1]["shares"])
            shares = dict(texts)
        everything = [*world.binding, *world.lenses.binding]
        binding = dict.fromkeys(value.attribute for value in everything if value.attribute)
        self.check(set(shares) == set(binding), "attributes of coverage")
        for name, text in shares.items():
            least = world.coverage(name)
            if any(value.lens == "projection" for value in world.lenses.binding):
                # Whose law may not hold for a pair: the references do not say for which.
                self.check(number(text.split()[-2]) <= 100 * least + 0.06, f"covered {least:.5f}")
                continue
            near = 0.9995 <= least < 1 if text.startswith("more") else says(text, least)
            self.check(near, f"coverage of {name} is {least:.5f}")
        partial = min(map(world.coverage, binding), default=1) < world.policy.strict_coverage - 1e-9
        is_for_all = verdict in ("PASS", f"NO FAIL {NO_PASS}")
        self.check(not (is_for_all and partial), "a pass for all, though people are left out")

    def lens_criterion(self, entry, policy):
        """Check the tolerance of a binding lens."""
        word = "growth" if entry.lens == "individual" else "differences"
        times = " times" if entry.lens == "individual" else ""
        text = rf"{entry.lens} \([^()]+\), {word} up to {entry.tolerance:g}{times}"
        self.check(re.search(text, policy), f"criterion {text}")

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
        flips = "counterfactual scores counterfactual_score"
        wanted |= {flips} if self.world.flipped is not None else set()
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
            if text.endswith(" of weight 0"):
                n_light = int((self.world.w == 0).sum())
                self.check(number(text.split()[0]) == n_light, f"{n_light} rows of weight 0")
                continue
            found = re.fullmatch(r"([\d,]+) rows of clusters in several groups of (.+)", text)
            if found is not None:
                people, kept = (
                    sum(rows.sum() for rows in of[found[2]].values())
                    for of in (self.world.people, self.world.groups)
                )
                self.check(number(found[1]) == people - kept, f"dropped are {people - kept}")
                continue
            who, name = text.rsplit(" without a known ", 1)
            known = sum(rows.sum() for rows in self.world.people[name].values())
            self.check(number(who.split()[0]) == self.world.n - known, f"people without {name}")
            if self.world.weighted:
                inside = sum(self.world.w[r].sum() for r in self.world.people[name].values())
                share = re.search(r"\(([\d.]+ %) of people by weight\)", who)
                self.check(share and says(share[1], 1 - inside / self.world.w.sum()), "share")

    def request_is_whole(self):
        """Strata, clusters, a filter and people without a group are named."""
        world = self.world
        known = [sum(r.sum() for r in world.people[name].values()) for name in world.attributes]
        for name, there in (
            ("data", True), ("columns", True), ("favourable", True), ("strata", world.strata),
            ("clusters", world.clusters is not None), ("filter", world.where),
            ("excluded", min(known) < world.n),
        ):  # fmt: skip
            self.check(not there or f"asked_{name}" in self.read, f"the request lacks {name}")
