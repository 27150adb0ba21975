"""Tables of the influence atlas, as shares."""

import numpy as np

import atlas_influence_marginal as marginal
from atlas_influence_marginal import COMBINATIONS, LEVELS, NAMES, PREVALENCES
from atlas_influence_rows import FEATURES_OF_ONE, WEIGHTS
from atlas_tools import percent, picture

#: What is promised of coverage at 95 % and of a family of tests, and where: the guard passes here.
PROMISED = (0.93, 0.97)
MOST_FALSE = 0.07
PASSES = 0.9
#: Samples behind a share.
FEWEST = 100


# --- what was counted, as shares ----------------------------------------------------------------


class Cell:
    """Many audits of one score: what the guard said, and how often intervals held."""

    def __init__(self, entry, feature):
        self.entry, self.feature = entry, feature

    def __getitem__(self, name):
        return self.feature[name] if name in self.feature else self.entry[name]

    def share(self, said):
        """Of samples with enough events, few, or too few for a score."""
        return self[said] / self["audits"]

    @property
    def passes(self):
        return self.share("enough") >= PASSES

    def coverage(self, level=LEVELS[0]):
        """Of intervals with enough events."""
        return ratio(self["covered"][LEVELS.index(level)], self["enough"])

    @property
    def is_given(self):
        """Return whether nearly all samples have an interval, with the mark or without."""
        return self.share("enough") + self.share("few") >= PASSES

    @property
    def given(self):
        """Coverage of all intervals that are given, with few events too."""
        return ratio(self["covered"][0] + self["covered_few"], self["enough"] + self["few"])

    def unguarded(self, kind, level=LEVELS[0]):
        """Of intervals in all samples, whatever the events: "normal" or "t"."""
        return ratio(self[kind][LEVELS.index(level)], self["unguarded"])

    @property
    def words(self):
        """Return the description for a sentence."""
        parts = [self["metric"].replace("_", " "), "decisions" if self["decision"] else "scores"]
        parts += [f"n = {self['n']:,}", f"P(Y=1) = {short(self['base'])}"]
        if "prevalence" in self.feature:
            parts.append(f"P(x=1) = {short(self['prevalence'])}")
        if "dependent" in self.feature:
            parts.append("with V" if self["dependent"] else "without V")
        return ", ".join(parts)


def cells(entries, part, of="features", **wanted):
    """The cells of a part in which these values are as given."""
    found = [Cell(e, value) for e in entries if e["part"] == part for value in e[of]]
    return [cell for cell in found if all(cell[name] == value for name, value in wanted.items())]


def ratio(count, of):
    return count / of if of else None


def pooled(some, count, of):
    return ratio(sum(count(record) for record in some), sum(of(record) for record in some))


def short(value):
    """A number as it stands in the statistics: .05."""
    return f"{value:g}".removeprefix("0") or "0"


def spread(shares, low=0.0, high=1.0):
    """Smallest, mean and largest in percent; bold what lies outside of these limits."""
    known = [share for share in shares if share is not None]
    if not known:
        return "-"
    shown = (min(known), float(np.mean(known)), max(known))
    return " / ".join(bold(share, low, high) for share in shown)


def bold(share, low, high):
    inside = low <= share <= high
    return percent(share) if inside else f"**{percent(share)}**"


def coverages(some, kind=None):
    return [record.coverage() if kind is None else record.unguarded(kind) for record in some]


def promised(limits=PROMISED):
    return f"{100 * limits[0]:g} to {100 * limits[1]:g} %"


def mean(shares):
    return float(np.mean([*shares]))


# --- tables ---


def binary(entries):
    yield (
        "| P(Y=1) | n | P(x=1) | designs | passes in 90 % | coverage there, % | given in 90 % | "
        "coverage there, % | enough, % | few, % | refused, % | no guard, normal, % | "
        "no guard, t, % |"
    )
    yield "|---" * 13 + "|"
    for base, n, p in places(entries):
        some = single_rates(entries, base, n, p)
        passing = [record for record in some if record.passes]
        given = [record.given for record in some if record.is_given]
        bare = [record for record in some if record["unguarded"]]
        said = [
            percent(mean(record.share(w) for record in some)) for w in ("enough", "few", "refused")
        ]
        yield (
            f"| {short(base)} | {n:,} | {short(p)} | {len(some)} | {len(passing)} | "
            f"{spread(coverages(passing), *PROMISED)} | {len(given)} | "
            f"{spread(given, *PROMISED)} | {' | '.join(said)} | "
            f"{spread(coverages(bare, 'normal'), *PROMISED)} | "
            f"{spread(coverages(bare, 't'), *PROMISED)} |"
        )
    yield ""
    yield binary_picture(entries)


def places(entries):
    found = {(e["base"], e["n"]) for e in entries if e["part"] == "binary"}
    return [
        (base, n, p)
        for base, n in sorted(found, key=lambda at: (-at[0], at[1]))
        for p in PREVALENCES
    ]


def single_rates(entries, base, n, p):
    some = cells(entries, "binary", base=base, n=n, prevalence=p)
    return [record for record in some if record["metric"] in NAMES]


def binary_picture(entries):
    rows = []
    for base, n, p in places(entries):
        some = single_rates(entries, base, n, p)
        dots = [("#c2410c", record.unguarded("normal")) for record in some if record["unguarded"]]
        dots += [("#1a5c9a", record.coverage()) for record in some if record.passes]
        rows.append((f"P(Y=1) {short(base)}, n {n:,}, P(x=1) {short(p)}", dots))
    title = "Coverage of 95 % intervals: where the guard passes (blue), normal without one (orange)"
    return picture(rows, "influence", title, *PROMISED, (0.8, 1.0))


def levels_of_confidence(entries):
    yield "| level, % | designs | coverage, % | no guard, normal, n = 500, P(x=1) = 0.02, % |"
    yield "|---|---|---|---|"
    some = [cell for cell in cells(entries, "binary") if cell["metric"] in NAMES and cell.passes]
    bare = [cell for cell in cells(entries, "binary", n=500, prevalence=0.02) if cell["unguarded"]]
    for level in LEVELS:
        yield (
            f"| {100 * level:g} | {len(some)} | "
            f"{fine([record.coverage(level) for record in some])} | "
            f"{fine([value.unguarded('normal', level) for value in bare])} |"
        )


def fine(shares):
    """With one digit more: these are near 100 %."""
    shown = (min(shares), mean(shares), max(shares))
    return " / ".join(f"{100 * share:.2f}" for share in shown)


def combinations(entries):
    yield "| metric | n | designs | passes in 90 % | coverage there, % |"
    yield "|---|---|---|---|---|"
    for metric in COMBINATIONS:
        for n in marginal.SIZES:
            some = cells(entries, "binary", metric=metric, n=n)
            passing = [record for record in some if record.passes]
            if some:
                yield (
                    f"| {metric} | {n:,} | {len(some)} | {len(passing)} | "
                    f"{spread(coverages(passing), *PROMISED)} |"
                )


def families(entries):
    yield (
        "How often is one of thirty features found, of prevalence 0.5 to 0.02 and correlated, when "
        f"none says anything (at most {100 * MOST_FALSE:g} % are promised)? *Ours*: the adjusted "
        "p-values, in which features marked `few events` have no part; *no guard* takes all "
        "thirty, with max |Z| of the same correlations."
    )
    yield ""
    yield (
        "| metric | of | n | audits | features that take part | marked | ours, % | "
        "no guard, normal, % | no guard, t, % |"
    )
    yield "|---" * 9 + "|"
    for e in entries:
        if e["part"] != "family":
            continue
        taking = [e["taking_part"][name] / e["audits"] for name in ("ours", "marked")]
        false = [
            bold(e["false"][name] / e["audits"], 0, MOST_FALSE) for name in ("ours", "normal", "t")
        ]
        yield (
            f"| {e['metric']} | {'decisions' if e['decision'] else 'scores'} | {e['n']:,} | "
            f"{e['audits']:,} | {taking[0]:.1f} | {taking[1]:.1f} | {' | '.join(false)} |"
        )


def categorical(entries):
    yield (
        "FPR, FNR and FDR, of scores and decisions. The rarest level is a fifth of the most "
        "frequent one. *Size* is that of the test of equal levels, of a feature without V; "
        "*together* is how often the simultaneous intervals of all pairs hold; *alone* the "
        "coverage of intervals of single pairs. Levels that are put together are compared with the "
        "truth of their union."
    )
    yield ""
    yield (
        "| levels | P(Y=1) | n | designs | tested, % | put together, % | size, % | "
        "together, without V, % | together, with V, % | alone, with V, % |"
    )
    yield "|---" * 10 + "|"
    found = [e for e in entries if e["part"] == "levels"]
    for place in sorted({(e["n_levels"], -e["base"], e["n"]) for e in found}):
        some = [e for e in found if (e["n_levels"], -e["base"], e["n"]) == place]
        without, dependent = ([e[name] for e in some] for name in ("independent", "dependent"))
        both = [*without, *dependent]
        yield (
            f"| {place[0]} | {short(-place[1])} | {place[2]:,} | {len(some)} | "
            f"{percent(sum(e['tested'] for e in both) / sum(2 * e['audits'] for e in some))} | "
            f"{percent(rate(both, 'merged', 'tested'))} | "
            f"{spread(shares(without, 'rejected', 'tested'), 0, MOST_FALSE)} | "
            f"{spread(shares(without, 'covered', 'tested'), *PROMISED)} | "
            f"{spread(shares(dependent, 'covered', 'tested'), *PROMISED)} | "
            f"{spread(shares(dependent, 'alone', 'pairs'), *PROMISED)} |"
        )


def shares(some, count, of):
    """By design, where there are enough samples to say so."""
    return [ratio(record[count], record[of]) for record in some if record[of] >= FEWEST]


def rate(some, count, of):
    return ratio(sum(record[count] for record in some), sum(record[of] for record in some))


def continuous(entries):
    yield (
        "The slope per standard deviation, FPR, FNR and FDR, scores and decisions; the normal "
        "behind the feature has correlation 0 or 0.6 with V."
    )
    yield ""
    yield "| feature | correlation | P(Y=1) | n | designs | passes in 90 % | coverage there, % |"
    yield "|---|---|---|---|---|---|---|"
    some = cells(entries, "slopes")
    some.sort(
        key=lambda entry: (
            entry["law"] == "lognormal",
            entry["correlation"],
            -entry["base"],
            entry["n"],
        )
    )
    keys = ("law", "correlation", "base", "n")
    for place in dict.fromkeys(tuple(record[key] for key in keys) for record in some):
        here = [record for record in some if tuple(record[key] for key in keys) == place]
        law, share, base, n = place
        passing = [value for value in here if value.passes]
        yield (
            f"| {law} | {short(share)} | {short(base)} | {n:,} | {len(here)} | "
            f"{len(passing)} | {spread(coverages(passing), *PROMISED)} |"
        )


def weights(entries):
    laws = "; ".join(f"*{law}*: {what}" for law, what in WEIGHTS.items() if what)
    yield (
        "Not offered by `influence_audit` yet; measured with the slow reference of the tests: the "
        "same intervals with weights, the guard on Kish-effective events, (sum w a)^2 / sum w^2 a. "
        "FPR, FNR, FDR and selection rate, scores and decisions, P(Y=1) = 0.31; the truth is that "
        "of the weighted population. *Guard on rows*: where 10 events without weights are asked "
        f"for instead. {laws}."
    )
    yield ""
    yield (
        "| weights | n | P(x=1) | designs | passes in 90 % | coverage there, % | given in 90 % | "
        "coverage there, % | guard on rows, % |"
    )
    yield "|---" * 9 + "|"
    for law in WEIGHTS:
        for n in marginal.SIZES:
            for p in PREVALENCES:
                some = cells(entries, "weights", weights=law, n=n, prevalence=p)
                passing = [record for record in some if record.passes]
                given = [record.given for record in some if record.is_given]
                rows = [
                    record for record in some if record["unguarded"] >= PASSES * record["audits"]
                ]
                if some:
                    yield (
                        f"| {law} | {n:,} | {short(p)} | "
                        f"{len(some)} | {len(passing)} | {spread(coverages(passing), *PROMISED)} | "
                        f"{len(given)} | {spread(given, *PROMISED)} | "
                        f"{spread(coverages(rows, 't'), *PROMISED)} |"
                    )


def clusters(entries):
    yield (
        "Five rows a person; V and what is left of the label have an intra-class correlation of "
        ".3, the feature one of 0 (*varies*), 0.3 (*alike*) or 1 (*constant*). FPR, FNR, FDR and "
        "selection rate, scores and decisions. *Ours* takes every row for one of its own; *by "
        "person* adds up the influence values of a person first (slow reference; the guard counts "
        "effective events, those of a person in a cell as one)."
    )
    yield ""
    yield (
        "| feature | n | P(x=1) | designs | ours: passes in 90 % | coverage there, % | by person: "
        "passes in 90 % | coverage there, % |"
    )
    yield "|---" * 8 + "|"
    for kind in FEATURES_OF_ONE:
        for n in marginal.SIZES:
            for p in (0.5, 0.1):
                both = [
                    cells(entries, "clusters", of=of, feature=kind, n=n, prevalence=p)
                    for of in ("features", "by_person")
                ]
                if both[0]:
                    passing = [[record for record in some if record.passes] for some in both]
                    shown = [
                        f"{len(some)} | {spread(coverages(some), *PROMISED)}" for some in passing
                    ]
                    yield (
                        f"| {kind} | {n:,} | {short(p)} | {len(both[0])} | {' | '.join(shown)} |"
                    )
