"""Verdicts in the validity atlas: how often audits fail and pass where a gap is at its tolerance.

`python benches/python/atlas_audit.py` measures what is not measured yet (some ten minutes on one
core) and writes docs/atlas/audits.md. Families of questions are in
atlas_audit_families.py, single pairs in atlas_audit_pairs.py, of low rates in atlas_audit_rates.py
and, of few clusters, in atlas_audit_clusters.py, what other lenses say in atlas_audit_lenses.py and
atlas_audit_tails.py, references, intersections and weights in atlas_audit_policies.py, the lines of
the four-fifths rule in atlas_audit_rules.py. Results are kept in target/atlas_audit.jsonl.
"""

import argparse
import os

import numpy as np

import atlas_audit_clusters as clusters
import atlas_audit_families as families
import atlas_audit_lenses as lenses
import atlas_audit_pairs as pairs
import atlas_audit_policies as policies
import atlas_audit_rates as rates
import atlas_audit_rules as rules
import atlas_audit_tails as tails
from atlas_tools import ALPHA, LEVELS, ROOT, band, load, run, section, write

RESULTS = ROOT / "target" / "atlas_audit.jsonl"


def scenarios():
    parts = (families, pairs, rates, clusters, policies, lenses, tails, rules)
    return [scenario for part in parts for scenario in part.scenarios()]


def measure(scenario):
    return scenario.measure()


def told(entry):
    return f"of {entry['audits']:,}: {entry['counts']}"


# --- judging ------------------------------------------------------------------------------------


def by_level(counts):
    """Return (level, count) of each level; a single count is that at 5 %."""
    return list(zip(LEVELS, np.atleast_1d(counts).tolist(), strict=False))


def too_often(counts, audits):
    """Return the levels that a rule exceeds by more than chance allows one time in a million."""
    return [level for level, n in by_level(counts) if n / audits > band(audits, level)[1]]


def share(counts, audits, judged=True):
    """Return counts by level as percentages; bold where they are too many."""
    too_many_at = too_often(counts, audits) if judged else []
    texts = []
    for level, n in by_level(counts):
        text = f"{100 * n / audits:.{1 if level == ALPHA else 2}f}"
        texts.append(f"**{text}**" if level in too_many_at else text)
    return " / ".join(texts)


def errors(scenario, entry):
    """The counts of an entry that are errors of ours; none where there is no gap to miss."""
    counts = entry["counts"]
    if isinstance(scenario, families.WithoutGaps):
        return {"fail": counts.get("fail", 0)}
    if isinstance(scenario, lenses.NoStandIn):
        return {"found": counts["found"]}
    if isinstance(scenario, rules.EqualGroups):
        return {word: counts[word] for word in ("flag", "ruled out")}
    if isinstance(scenario, tails.UnlikeTails) and not scenario.gap:
        # Equal levels lie within the tolerance: to pass is right.
        return {"fail": counts["fail"]}
    if isinstance(scenario, pairs.RaisedFloor):
        # One group is beyond the tolerance: to fail is right.
        return {"pass": counts["pass"]}
    words = getattr(scenario, "wrong", ("fail", "pass"))
    found = {word: counts[word] for word in words if word in counts}
    return found | {f"pass of {name}": n for name, n in entry.get("passes", {}).items()}


def known(measured):
    """Return the scenarios that are measured, with their entries."""
    return [
        (scenario, measured[scenario.key]) for scenario in scenarios() if scenario.key in measured
    ]


def too_many(measured):
    """Return (scenario, word, level, share) of all errors that are too many."""
    found = []
    for scenario, entry in known(measured):
        for word, counts in errors(scenario, entry).items():
            over = too_often(counts, entry["audits"])
            found += [
                (scenario, word, level, n / entry["audits"])
                for level, n in by_level(counts)
                if level in over
            ]
    return found


def broken(scenario, entry):
    """The counts of an entry that are errors of rules that do not hold."""
    if isinstance(scenario, families.WithoutGaps):
        return {}
    if isinstance(scenario, lenses.NoStandIn):
        return {"directions of noise": entry["counts"]["without the rule"]}
    ours = ("fail", "pass", "flag", "ruled out")
    found = {word: n for word, n in entry["counts"].items() if word not in ours}
    if "quiet" in entry:
        found["quiet"] = max(entry["quiet"].values())
    return found


def caught(measured):
    """Return in how many scenarios each invalid rule errs too often at 5 %, and of how many.

    A rule that is never caught would say that the scenarios prove nothing.
    """
    counts = {}
    for scenario, entry in known(measured):
        for rule, found in broken(scenario, entry).items():
            hits, of = counts.get(rule, (0, 0))
            counts[rule] = (hits + (ALPHA in too_often(found, entry["audits"])), of + 1)
    return counts


# --- the page -----------------------------------------------------------------------------------


class UnmeasuredError(LookupError):
    """A table has scenarios that are not measured."""


def page(measured, before=()):
    """Return the section; tables that are not measured in full stay as they are in ``before``."""

    def of(kind):
        found = [scenario for scenario in scenarios() if isinstance(scenario, kind)]
        if any(value.key not in measured for value in found):
            raise UnmeasuredError
        return [(value, measured[value.key]) for value in found]

    def lines_of(table):
        lines = table(of)
        heading = next(lines)
        try:
            return [heading, *lines]
        except UnmeasuredError:
            return kept(before, heading)

    yield (
        "Measured by `benches/python/atlas_audit.py` through `fa.audit` (custom functions, which "
        "no policy can name, by the test that decides). Gaps lie exactly at their tolerance unless "
        "stated otherwise, so **fail** and **pass** are errors, and a valid rule makes them in at "
        "most 5 % of audits. Figures such as 4.1 / 0.90 / 0.08 are the shares at the levels 5 %, "
        "1 % and 0.1 %, counted on the same audits; 0.1 % only for closed forms and tests with at "
        "least 3,999 replicates. Bold shares are above the level by more than chance allows one "
        "time in a million. Beside them stand rules that are not valid, on the same data."
    )
    yield ""
    yield from found(measured)
    for table in (
        family_table, passes_table, rates_table, pairs_table, clusters_table, skewed_table,
        floor_table, policies_table, lenses_table, growth_table, persons_table, tails_table,
        rules_table,
    ):  # fmt: skip
        yield from lines_of(table)


def kept(before, heading):
    """Return the lines of a table of the page; none where it has no such heading."""
    if heading not in before:
        return []
    start = before.index(heading)
    ends = [i for i, line in enumerate(before) if i > start and line.startswith("### ")]
    return before[start : min(ends, default=len(before))]


def found(measured):
    judged = [entry for _, entry in known(measured)]
    n_left = len(scenarios()) - len(judged)
    over = too_many(measured)
    yield (
        f"- {len(judged)} scenarios, {sum(e['audits'] for e in judged):,} audits; {len(over)} of "
        "their error shares are above the band of their level"
        + "".join(
            f"; {value}, {word} at {100 * level:g} %: {100 * p:.2f} %"
            for value, word, level, p in over
        )
        + "."
    )
    if n_left:
        yield (
            f"- {n_left} scenarios are not measured with this version of the package. Their tables "
            "are older, with single figures at 5 %."
        )
    rules = "; ".join(
        f"{CALLED.get(rule, rule)} {hits} of {of}" for rule, (hits, of) in caught(measured).items()
    )
    yield f"- In how many of their scenarios the rules that are not valid exceed 5 %: {rules}."
    yield ""


#: What rules that do not hold are called in a sentence.
CALLED = {
    "point": "the estimate",
    "quiet": "not significant, so pass",
    "logarithm": "logarithm of the ratio",
    "ignored": "design ignored",
    "delta": "delta method",
    "without the rule": "a raised floor",
    "highest alone": "a pass against the observed highest group alone",
    "two sides": "a fixed reference with two sides",
    "two attributes": "intersections of two attributes alone",
    "coverage by rows": "coverage by rows",
    "permuted": "whole clusters permuted",
    "fitted": "intervals of fits",
    "fitted fails": "a fitted metric (fails)",
    "fitted passes": "a fitted metric (passes)",
    "unadjusted flag": "an unadjusted flag",
    "unadjusted confidence": "an unadjusted confidence",
    "wilson": "limits made of Wilson's",
}


def family_table(of):
    yield "### Families of 50 comparisons"
    yield ""
    questions = len(families.METRICS) * len(families.ATTRIBUTES)
    yield (
        f"One population, attributes of 2, 3 and 2 groups, the smallest with 10 % of the people; "
        f"{len(families.METRICS)} metrics, so {questions} questions, each with its true gap as its "
        f"tolerance: 40 pairs lie exactly at it. {families.AUDITS:,} audits each. **Comparisons**: "
        "how many groups with enough rows make, on average. **Pass of a question**: of that which "
        "passes most often. Rules that do not hold: **unadjusted** fails by any p of at most 5 %, "
        "**point** by any estimate beyond the tolerance, **delta** takes the variances that are "
        "seen (adjusted); **not significant** passes a question in which no two groups differ "
        "significantly (of that which passes most often)."
    )
    yield ""
    yield (
        "| rows | comparisons | fail, % | pass, % | pass of a question, % | unadjusted, % | "
        "point, % | delta, % | not significant, % |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for value, entry in of(families.AtTheTolerance):
        n, counts = entry["audits"], entry["counts"]
        cells = [
            f"{value.n:,}",
            f"{entry['pairs']:.0f}",
            share(counts["fail"], n),
            share(counts["pass"], n),
            share(max(entry["passes"].values()), n),
            *(share(counts[rule], n) for rule in ("unadjusted", "point", "delta")),
            share(max(entry["quiet"].values()), n),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def passes_table(of):
    yield "### A model without gaps"
    yield ""
    yield (
        "The same population, and a model that is the same for all: how many rows does a pass "
        f"take? {families.AUDITS_OF_PASSES:,} audits each; a fail is an error, to pass is right. "
        "**Not significant** passes an audit in which no two groups differ significantly, however "
        "few the rows."
    )
    yield ""
    yield "| tolerated | rows | pass, % | inconclusive, % | fail, % | not significant, % |"
    yield "|---|---|---|---|---|---|"
    for value, entry in of(families.WithoutGaps):
        n, counts = entry["audits"], entry["counts"]
        shares = [
            share(counts.get(word, 0), n, judged=word == "fail")
            for word in ("pass", "inconclusive", "fail", "quiet")
        ]
        yield f"| {value.policy} | {value.n:,} | {' | '.join(shares)} |"
    yield ""


def rates_table(of):
    yield "### Ten rates of few rows"
    yield ""
    yield (
        f"Five small groups, each compared with {pairs.LARGE:,} rows by true and false positive "
        f"rates (0.85 and 0.6 there), above and below in turn. {pairs.AUDITS:,} audits each."
    )
    yield ""
    yield "| eligible rows | tolerance | fail, % | unadjusted, % | delta, % |"
    yield "|---|---|---|---|---|"
    for value, entry in of(pairs.TenRates):
        shares = [share(entry["counts"][rule], entry["audits"]) for rule in value.counted]
        yield f"| {value.rows} | {value.tolerance:g} | {' | '.join(shares)} |"
    yield ""


def pairs_table(of):
    yield "### One pair of groups"
    yield ""
    yield (
        f"Tolerance {pairs.TOLERANCE:g} (four fifths: a ratio of 0.8), the first group above and "
        "below. Strata are mixed unequally, weights depend on decisions, clusters are two rows "
        "(rates) or five (F1, AUC); mean residuals compare scores of two laws."
    )
    yield ""
    kinds = (
        pairs.OnePair, pairs.FourFifths, pairs.OfDesign, pairs.InClusters, pairs.Residual,
        pairs.Function,
    )  # fmt: skip
    yield from pair_lines(of, kinds)


def clusters_table(of):
    yield "### Few clusters"
    yield ""
    yield (
        f"Selection rates in clusters of {clusters.SIZE} rows that vary differently in the two "
        f"groups, tolerance {pairs.TOLERANCE:g}, {clusters.N_RESAMPLES} replicates. In a test of "
        "equality a fail is a rejection. The rule that is not valid permutes whole clusters."
    )
    yield ""
    yield from pair_lines(of, (clusters.EqualRates, clusters.GapInFewClusters))


def pair_lines(of, kinds):
    yield "| what | groups | audits | fail, % | pass, % | a rule that does not hold, % |"
    yield "|---|---|---|---|---|---|"
    for value, entry in (both for kind in kinds for both in of(kind)):
        n, counts = entry["audits"], entry["counts"]
        others = [
            f"{CALLED[rule]}: {share(counts[rule], n)}"
            for rule in value.counted
            if rule not in ("fail", "pass")
        ]
        cells = [
            value.label,
            value.groups,
            f"{n:,}",
            share(counts["fail"], n),
            share(counts["pass"], n) if "pass" in counts else "-",
            "; ".join(others),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def skewed_table(of):
    yield "### Low rates and few rows of a label"
    yield ""
    yield (
        f"Gaps at the tolerance where laws are skewed, {rates.AUDITS:,} audits each (balanced "
        f"accuracy: {rates.AUDITS_OF_LABELS:,}; weighted or clustered rates: "
        f"{rates.AUDITS_OF_ROWS:,}) by the closed forms of the library; the first "
        f"{rates.CHECKED} of each design are compared with `fa.audit`. Beside them stands the rule "
        "that was there before: the score alone (fails), the variance at the estimate within "
        "strata (passes; ratios within strata were not measurable before), no strata (fails), "
        "limits of balanced accuracy made of Wilson's (fails)."
    )
    yield ""
    yield "| what | groups | fail, % | pass, % | a rule that does not hold, % |"
    yield "|---|---|---|---|---|"
    kinds = (rates.LowRates, rates.WithinStrata, rates.RatioOfRows, rates.FewOfEachLabel)
    for kind in kinds:
        for value, entry in of(kind):
            n, counts = entry["audits"], entry["counts"]
            cells = [value.label, value.groups, share(counts["fail"], n), share(counts["pass"], n)]
            old = value.counted[2]
            yield f"| {' | '.join(cells)} | {CALLED.get(old, old)} {share(counts[old], n)} |"
    yield ""


def floor_table(of):
    yield "### A raised floor buys no pass"
    yield ""
    yield (
        "Groups of 70, 20, 6 and 4 %; the smallest is selected at 0.3, the others at 0.5, "
        f"tolerance 0.1: every pass is an error. {pairs.AUDITS_BY_REPLICATES:,} audits each. "
        "Without the rule that a group which could be tested counts, an audit passes when its "
        "remaining pairs do."
    )
    yield ""
    yield "| rows | floor | fail, % | pass, % | passes without the rule, % |"
    yield "|---|---|---|---|---|"
    for value, entry in of(pairs.RaisedFloor):
        n, counts = entry["audits"], entry["counts"]
        cells = [
            f"{value.rows:,}",
            str(value.floor),
            share(counts["fail"], n, judged=False),
            share(counts["pass"], n),
            share(counts["without the rule"], n),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def policies_table(of):
    yield "### References, intersections, people by weight"
    yield ""
    yield (
        "What the audit does, and what the rule before did with the same data. Shares of right "
        "answers are not judged. With a group at 0.8 times a fixed reference both rules agree: "
        "that design shows the size of ours alone."
    )
    yield ""
    yield "| what | audits | fail, % | pass, % | a rule that does not hold, % |"
    yield "|---|---|---|---|---|"
    kinds = (policies.Highest, policies.Favoured, policies.Parity, policies.ByWeight)
    for value, entry in (both for kind in kinds for both in of(kind)):
        n, counts = entry["audits"], entry["counts"]
        *_, old = value.counted
        cells = [
            value.label,
            f"{n:,}",
            *(share(counts[word], n, judged=word in value.wrong) for word in ("fail", "pass")),
            f"{CALLED[old]}: {share(counts[old], n)}",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def lenses_table(of):
    yield "### The individual lens beside a verdict"
    yield ""
    yield (
        f"{lenses.ROWS:,} rows, a model that uses one feature which goes with neither attribute; "
        "sex goes with another feature, race with none. How often is the loss of people who differ "
        f"in little else shown to grow more than {lenses.TOO_MUCH:g} times? {lenses.AUDITS:,} "
        "audits each. Without the rule, attributes that go with nothing have a direction, too."
    )
    yield ""
    yield "| features | found, % | without the rule, % |"
    yield "|---|---|---|"
    for value, entry in of(lenses.NoStandIn):
        shares = [share(entry["counts"][rule], entry["audits"]) for rule in value.counted]
        yield f"| {value.n_features} | {' | '.join(shares)} |"
    yield ""


def growth_table(of):
    yield "### A binding individual lens"
    yield ""
    yield (
        "The growth of the loss is the tolerance, under the metric of all people. The policy gives "
        f"that metric ({lenses.AUDITS_GIVEN:,} audits each), or the profile of the fitted "
        f"direction decides ({lenses.AUDITS_OF_PROFILES:,} audits each). *Fitted*: the metric that "
        "is fitted to the rows decides as it is."
    )
    yield ""
    yield "| design | metric | fail, % | pass, % | fitted fails, % | fitted passes, % |"
    yield "|---|---|---|---|---|---|"
    for value, entry in of(lenses.AtTheGrowth):
        shares = [share(entry["counts"][rule], entry["audits"]) for rule in value.counted]
        metric = "given" if value.given else "profile"
        yield f"| {value.design} | {metric} | {' | '.join(shares)} |"
    yield ""


def persons_table(of):
    yield "### A binding projection and rows of persons"
    yield ""
    yield (
        f"Equal groups of {tails.PersonsProjected.persons:,} people, tolerance "
        f"{tails.PersonsProjected.tolerance:g}. {tails.AUDITS_OF_PERSONS:,} audits each. With "
        "people as clusters the lens is not run."
    )
    yield ""
    yield "| rows of a person | fail, % | clusters ignored, % |"
    yield "|---|---|---|"
    for value, entry in of(tails.PersonsProjected):
        shares = [share(entry["counts"][rule], entry["audits"]) for rule in value.counted]
        yield f"| {value.each} | {' | '.join(shares)} |"
    yield ""


def tails_table(of):
    yield "### Binding extremes and two populations in a tail"
    yield ""
    yield (
        f"A smooth tail and one with a share of other people, levels of one row in "
        f"{tails.HORIZON:,} that are equal (tolerance {tails.UnlikeTails.tolerance:g}; a pass is "
        f"right) or differ by exactly the tolerance. {tails.AUDITS:,} audits each. **Intervals of "
        "fits**: the interval of the test fails what lies beyond it, whatever it rests on. With "
        "4,000 rows in both groups the levels are measured at 5 %, so that the test rests on order "
        "statistics, too, and both rules agree: no share of other people that was tried (0.1 to 2 "
        "%) makes the old one fail. At 1 % levels take more rows, and fits decide again."
    )
    yield ""
    yield "| other people | rows | gap | fail, % | pass, % | intervals of fits, % |"
    yield "|---|---|---|---|---|---|"
    for value, entry in of(tails.UnlikeTails):
        n, counts = entry["audits"], entry["counts"]
        cells = [
            f"{100 * value.share:g} %",
            f"{value.sizes[0]:,} + {value.sizes[1]:,}",
            f"{value.gap:g}",
            share(counts["fail"], n),
            share(counts["pass"], n, judged=value.gap > 0),
            share(counts["fitted"], n),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def rules_table(of):
    yield from rules.table(of, share)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--page", action="store_true", help="only write the tables that are measured in full"
    )
    options = parser.parse_args()
    if not options.page:
        run(RESULTS, scenarios(), measure, told, options.processes)
    write("audits", list(page(load(RESULTS), section("audits"))))


if __name__ == "__main__":
    main()
