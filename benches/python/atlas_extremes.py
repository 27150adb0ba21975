"""The extremes lens in the validity atlas: return levels, shapes and tests of equal levels.

`python benches/python/atlas_extremes.py` measures what is not measured yet (about an hour on two
cores) and writes docs/atlas/extremes.md. What is simulated stands in
atlas_extremes_levels.py, _pairs.py and _rows.py, what is counted in _counts.py, the tables in
_tables.py, the laws in tests/reference/extremes_designs.py. Results are kept in
target/atlas_extremes.jsonl.
"""

import argparse
import os
from collections import Counter
from dataclasses import asdict

import atlas_extremes_levels as levels
import atlas_extremes_pairs as pairs
import atlas_extremes_rows as rows
import atlas_extremes_tables as tables
from atlas_extremes_levels import PROMISED_SIZES
from atlas_extremes_pairs import NEAR_UNIFORM, SMOOTH
from atlas_extremes_tables import (
    LEAST,
    OTHERS_PROMISED,
    PROMISED,
    coverage,
    of_part,
    ratio,
    sides,
    size,
    spread,
    variant,
)
from atlas_tools import ROOT, load, percent, run, write
from tests.reference.extremes_designs import INDEX, LAWS, MIXTURES, OTHERS

#: Of samples: designs in which more have a fit are those that are meant for one.
MOST = 0.9
RESULTS = ROOT / "target" / "atlas_extremes.jsonl"


def scenarios():
    yield from levels.scenarios()
    yield from pairs.scenarios()
    yield from rows.scenarios()


# --- the page -----------------------------------------------------------------------------------

#: Title, parts that it needs, and table of what follows the findings.
SECTIONS = (
    ("Return levels by the fit", ("levels",), tables.levels),
    ("Other cuts and thresholds", ("levels", "bootstrap-t"), tables.variants),
    ("What a user gets", ("primary",), tables.primary),
    ("Tails that no fit holds", ("primary",), tables.free),
    ("Shapes and types", ("shapes",), tables.shapes),
    ("Tests of equal return levels", ("size",), tables.sizes),
    ("Power", ("power",), tables.power),
    ("Permuted groups", ("permuted",), tables.permuted),
    ("Several groups, small groups", ("several",), tables.several),
    ("Rows scored both ways", ("paired",), tables.paired),
    ("Scores on a grid", ("grid",), tables.grid),
    ("Copied rows", ("copies",), tables.copies),
    ("Several rows of one person, by the fit", ("clusters",), tables.clusters),
    ("Bounds of rows", ("row bounds",), tables.row_bounds),
)


def page(entries):
    """Findings and tables of the parts that are measured in full."""
    wanted = Counter(scenario.part for scenario in scenarios())
    found = Counter(entry["part"] for entry in entries)
    known = {part for part in wanted if found[part] == wanted[part]}
    entries = [entry for entry in entries if entry["part"] in known]
    yield from introduction()
    yield from ["", "### What was found", ""]
    for needed, finding in FINDINGS:
        if known.issuperset(needed):
            yield from finding(entries)
    for title, needed, table in SECTIONS:
        if known.issuperset(needed):
            yield from ["", f"### {title}", "", *table(entries)]


def introduction():
    yield (
        "Measured by `benches/python/atlas_extremes.py` with the cuts that are shipped, by the "
        "problems behind `fit_tail` and `extreme_test`: samples of laws whose return levels are "
        "known. An interval holds the truth where the normal score of the truth is within the "
        "cut, which costs less than the interval; of 300 samples of each design both are compared. "
        "k is the default number of exceedances, m the horizon in rows."
    )


def of_levels(entries):
    some = of_part(entries, "levels")
    promised = [e for e in some if e["law"] in LAWS and e["n"] in PROMISED_SIZES]
    cells = [cell for e in promised for cell in variant(e, "ours")]
    outside = [cell for cell in cells if not PROMISED[0] <= coverage(cell) <= PROMISED[1]]
    between = [
        c for e in some if e["law"] in LAWS and e not in promised for c in variant(e, "ours")
    ]
    others = [c for e in some if e["law"] in OTHERS for c in variant(e, "ours")]
    below = sum(coverage(finding) < OTHERS_PROMISED[0] for finding in others)
    differ = sum(e["differ"] for e in some)
    yield (
        f"- **Return levels by the fit**, five laws, n = 500 and 2,000, m = n/4, n, 4 n: intervals "
        f"cover {spread(coverage(cell) for cell in cells)} % (93 to 96.5 are promised, "
        f"{len(outside)} of {len(cells)} outside), with the truth below in "
        f"{spread(sides(cell)[0] for cell in cells)} % and above in "
        f"{spread(sides(cell)[1] for cell in cells)} %; 90 % intervals cover "
        f"{spread(coverage(cell, 0) for cell in cells)}, 99 % ones "
        f"{spread(coverage(cell, 2) for cell in cells)}, 99.8 % ones "
        f"{spread(coverage(cell, 3) for cell in cells)} %. With other n, between those to which "
        f"tabled numbers of exceedances are the default, and at 10,000: "
        f"{spread(coverage(value) for value in between)} %. Other smooth tails with a "
        f"known end at or "
        f"above theirs: {spread(coverage(finding) for finding in others)} % ({below} "
        f"of {len(others)} "
        f"below {percent(OTHERS_PROMISED[0])}). The interval and the score disagreed in {differ} "
        "samples."
    )


def of_variants(entries):
    said = []
    for part, name in tables.VARIANTS[1:]:
        found = [
            coverage(cell)
            for e in of_part(entries, part)
            if e["law"] in LAWS and e["n"] in PROMISED_SIZES
            for cell in variant(e, name)
        ]
        low = sum(value is not None and value < PROMISED[0] for value in found)
        if found:
            said.append(f"{name} {spread(found)} % ({low} of {len(found)} below 93)")
    yield f"- **Other cuts and thresholds**: {'; '.join(said)}."


def of_primary(entries):
    some = of_part(entries, "primary")
    for laws, words in ((LAWS, "the five laws"), (INDEX, "an index model of shape -2")):
        held = {"measured": [], "extrapolated": []}
        for e in some:
            for cell in e["cells"] if e["law"] in laws else ():
                if cell["standing"] != "refused":
                    held[cell["standing"]].append(coverage(cell["primary"]))
        fit = [
            coverage(cell["fit"])
            for e in some
            if e["law"] in laws
            for cell in e["cells"]
            if cell["standing"] == "measured"
        ]
        yield (
            f"- **What a user gets**, {words}: measured levels hold in {spread(held['measured'])} "
            f"% (the fit alone {spread(fit)}), extrapolated ones in {spread(held['extrapolated'])} "
            "%."
        )
    cells = [
        c for e in some if e["law"] in MIXTURES for c in e["cells"] if c["standing"] != "refused"
    ]
    far = [c for c in cells if c["standing"] == "extrapolated"]
    every = [c for e in some for c in e["cells"]]
    above = [ratio(c["free"]["low"], c["free"]["of"]) for c in every]
    yield (
        "- **Two populations in the tail** are not seen: extrapolated intervals hold in "
        f"{spread(coverage(c['primary']) for c in far)} %, their lower limit is above the truth in "
        f"{spread(ratio(c['fit']['low'], c['fit']['of']) for c in far)} % of samples, that of "
        "`at_least` in "
        f"{spread(ratio(c['at least']['low'], c['at least']['of']) for c in far)} %. `lower_free` "
        f"is above the truth in at most {percent(max(above))} % over all laws (2.5 % are promised "
        "but for the noise of the samples)."
    )


def of_shapes(entries):
    some = of_part(entries, "shapes")
    known = [e for e in some if e["known_end"]]
    others = [e for e in some if not e["known_end"]]
    heavy = [e for e in known if e["law"] == "t4"]
    light = [e for e in known if e["law"] != "t4"]
    yield (
        f"- **Types**: the interval of the shape covers {spread(coverage(e) for e in light)} % "
        "where the shape is 0; such a tail is of type I in "
        f"{spread(e['types']['I'] / e['audits'] for e in light)} % of samples. t4 (0.25) is of "
        f"type II in {spread(e['types']['II'] / e['audits'] for e in heavy)} %, and of type III in "
        f"{spread(e['types']['III'] / e['audits'] for e in heavy)} %; bounded laws without a known "
        f"end are of type III in {spread(e['types']['III'] / e['audits'] for e in others)} %: with "
        "few rows the type is often I, because 0 cannot be ruled out."
    )


def of_sizes(entries):
    some = of_part(entries, "size")
    fitted = [e for e in some if e["laws"] in SMOOTH and e["method"] == "fit"]
    uniform = [e for e in some if e["laws"] in NEAR_UNIFORM and e["method"] == "fit"]
    index = [
        e
        for e in some
        if e["laws"] not in SMOOTH and e["laws"] not in NEAR_UNIFORM and e["method"] == "fit"
    ]
    counted = [e for e in some if e["method"] == "order statistics"]
    half = [e for e in some if e["method"] == "order statistics and fit"]
    low, high = tables.SIZE_PROMISED
    missed = [
        f"{e['laws']}, {' / '.join(tables.designs(e))}: {percent(size(e['test']))}"
        for e in some
        if size(e["test"]) > high or (e in fitted and size(e["test"]) < low)
    ]
    yield (
        "- **Tests of equal levels** at 5 %: smooth tails, both by the fit, "
        f"{spread(size(e['test']) for e in fitted)} % (3.5 to 6.5 are promised), at 1 % "
        f"{spread(size(e['test'], 1) for e in fitted)}, at 0.1 % "
        f"{spread(size(e['test'], 2) for e in fitted)}; near-uniform tails "
        f"{spread(size(e['test']) for e in uniform)}, with an index model "
        f"{spread(size(e['test']) for e in index)}; one group by order statistics "
        f"{spread(size(e['test']) for e in half)}, both {spread(size(e['test']) for e in counted)} "
        f"%. Outside are {len(missed)} of {len(some)}"
        f"{' (' + '; '.join(missed) + ')' if missed else ''}. The raw likelihood ratio rejects "
        f"{spread(size(e['raw']) for e in fitted + uniform)} %."
    )


def of_power(entries):
    some = [e for e in of_part(entries, "power") if e["laws"] in SMOOTH]
    said = []
    for wanted in (1.2, 1.5):
        for design, words in (
            ((2_000, 2_000, 1_000), "2,000 rows each"),
            ((500, 100, 400), "500 and 100"),
        ):
            found = [
                size(e["test"])
                for e in some
                if e["ratio"] == wanted and tables.design_of(e) == design
            ]
            said.append(f"{wanted:g} with {words} {spread(found)} %")
    yield f"- **Power**, smooth tails: a ratio of {'; '.join(said)}."


def of_permuted(entries):
    found = [size(e["test"]) for e in of_part(entries, "permuted")]
    yield (
        f"- **Permuted groups** with equal levels and other laws: {spread(found)} % at 5 %. They "
        "test equal laws."
    )


def of_several(entries):
    some = of_part(entries, "several")
    many = [e for e in some if e["n_pairs"] > 1]
    two = [e for e in some if e["n_pairs"] == 1]
    yield (
        f"- **Four groups**: Holm finds a pair in {spread(size(e['holm']) for e in many)} % of "
        f"samples, unadjusted p-values in {spread(size(e['alone']) for e in many)} %. **A group "
        f"of 2 %** of 10,000 rows: {spread(size(e['holm']) for e in two)} %."
    )


def of_paired(entries):
    some = of_part(entries, "paired")
    opposite = [size(e["test"]) for e in some if e["correlation"] <= 0]
    alike = [size(e["test"]) for e in some if e["correlation"] > 0]
    yield (
        f"- **Rows scored both ways**: {spread(opposite)} % at correlations up to 0, "
        f"{spread(alike)} % above: the more alike the two, the less the test rejects."
    )


def by_order(cells):
    """Return the coverage of order statistics."""
    return spread(
        coverage(c["primary"]) for c in cells if c["rows_over_horizon"] > rows.LEAST_MEASURED
    )


def of_grid(entries):
    some = [
        (c, c["ours"]["of"] / e["audits"]) for e in of_part(entries, "grid") for c in e["cells"]
    ]
    most = [c for c, share in some if share > MOST]
    few = [(c, share) for c, share in some if share <= MOST and coverage(c["ours"]) is not None]
    yield (
        f"- **Scores on a grid**: cells cover {spread(coverage(c['ours']) for c in most)} % in "
        f"designs of which more than {100 * MOST:g} % of samples have a fit, each value by itself "
        f"{spread(coverage(c['alone']) for c, _ in some)} %. Where fewer have one "
        f"({spread(share for _, share in few)} % of samples) it is the samples with values far out "
        f"that have, and they cover {spread(coverage(c['ours']) for c, _ in few)} %. Order "
        f"statistics hold in {by_order(c for c, _ in some)} %."
    )


def of_copies(entries):
    some = of_part(entries, "copies")
    said = []
    for name in rows.COPIES:
        cells = [c for e in some if e["copies"] == name for c in e["cells"]]
        given = [c["ours"]["of"] / (c["ours"]["of"] + c["ours"]["refused"]) for c in cells]
        fitted = [coverage(c["ours"]) for c in cells]
        held = f", which covers {spread(fitted)} %" if any(fitted) else ""
        said.append(
            f"{name}: a fit in {spread(given)} % of samples{held} (each value by itself "
            f"{spread(coverage(c['alone']) for c in cells)}); order statistics {by_order(cells)}"
        )
    yield f"- **Copied rows**: {'; '.join(said)}."


def of_clusters(entries):
    said = []
    for wanted in (0.0, 0.5, 0.9, 1.0):
        some = of_part(entries, "clusters", correlation=wanted)
        cells = [c for e in some for c in e["cells"]]
        tests = [size(test) for e in some for test in e["tests"]]
        said.append(
            f"at a correlation of {wanted:g} intervals of the fit cover "
            f"{spread(coverage(c['alone']) for c in cells)} %, order statistics "
            f"{by_order(cells)}, and "
            f"the test rejects {spread(tests)}"
        )
    yield (
        "- **Three rows of each person**, taken for rows of their own, each value by itself: "
        f"{'; '.join(said)}. Equal rows are tied and have no fit, but order statistics are given. "
        "Nothing is promised of such rows: pass one row of each person."
    )


def of_row_bounds(entries):
    cells = [c for e in of_part(entries, "row bounds") for c in e["cells"]]
    missed = sum(coverage(c["primary"]) < LEAST[0] for c in cells)
    yield (
        "- **Bounds of rows**: levels of the share of the room are covered in "
        f"{spread(coverage(c['primary']) for c in cells)} % ({missed} of {len(cells)} below 93)."
    )


FINDINGS = (
    (("levels",), of_levels),
    (("levels", "bootstrap-t"), of_variants),
    (("primary",), of_primary),
    (("shapes",), of_shapes),
    (("size",), of_sizes),
    (("power",), of_power),
    (("permuted",), of_permuted),
    (("several",), of_several),
    (("paired",), of_paired),
    (("grid",), of_grid),
    (("copies",), of_copies),
    (("clusters",), of_clusters),
    (("row bounds",), of_row_bounds),
)


def measure(scenario):
    named = {"key": scenario.key, "part": scenario.part, **asdict(scenario)}
    return {**named, "audits": scenario.audits, **scenario.measure()}


def told(entry):
    """Return the printed line of an entry."""
    return f"{entry['audits']:,} audits"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--parts", nargs="*", help="only these parts")
    options = parser.parse_args()
    if not options.page:
        wanted = [s for s in scenarios() if not options.parts or s.part in options.parts]
        run(RESULTS, wanted, measure, told, options.processes)
    measured = load(RESULTS)
    entries = [measured[s.key] for s in scenarios() if s.key in measured]
    if not entries:
        raise SystemExit(f"nothing is measured in {RESULTS.relative_to(ROOT)}: the page stays")
    write("extremes", list(page(entries)))


if __name__ == "__main__":
    main()
