"""Tables of the extremes atlas, as shares."""

from atlas_extremes_counts import AT
from atlas_extremes_levels import PROMISED_SIZES
from atlas_extremes_pairs import COUNTED, FITTED, HALF, NEAR_UNIFORM, SHORT, SMOOTH, TURNED
from atlas_tools import percent
from tests.reference.extremes_designs import INDEX, LAWS, MIXTURES, OTHERS

#: What is promised at 95 %: of intervals by the fit where n is in PROMISED_SIZES, of other smooth
#: tails, and of tests at 5 %.
PROMISED = (0.93, 0.965)
OTHERS_PROMISED = (0.925, 1.0)
SIZE_PROMISED = (0.035, 0.065)
LEAST = (0.93, 1.0)
#: Samples behind a share.
FEWEST = 100


# --- what was counted, as shares ----------------------------------------------------------------


def ratio(count, of):
    return count / of if of else None


def coverage(cell, at=AT):
    """Of scores, which have errors for each level, or of limits, which have one."""
    low, high = (
        values[at] if isinstance(values, list) else values for values in (cell["low"], cell["high"])
    )
    return ratio(cell["of"] - low - high, cell["of"]) if cell["of"] >= FEWEST else None


def sides(cell):
    """The share of truths below the interval, and above it."""
    low, high = (
        values[AT] if isinstance(values, list) else values for values in (cell["low"], cell["high"])
    )
    return ratio(low, cell["of"]), ratio(high, cell["of"])


def size(test, at=0):
    return ratio(test["rejected"][at], test["of"]) if test["of"] >= FEWEST else None


def marked(value, promised):
    """A share in percent, bold where it is outside of what is promised."""
    if value is None:
        return "-"
    low, high = promised
    return percent(value) if low <= value <= high else f"**{percent(value)}**"


def with_sides(cell, promised):
    if coverage(cell) is None:
        return "-"
    low, high = sides(cell)
    return f"{marked(coverage(cell), promised)} ({percent(low)}/{percent(high)})"


def spread(values):
    """The smallest and the largest."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    low, high = percent(min(known)), percent(max(known))
    return low if low == high else f"{low} to {high}"


def variant(entry, name):
    """The cells of a variant, by horizon."""
    return [cell for cell in entry["cells"] if cell.get("variant", name) == name]


def of_part(entries, part, **wanted):
    return [
        e
        for e in entries
        if e["part"] == part and all(e[k] == value for k, value in wanted.items())
    ]


def promised_of(entry):
    return PROMISED if entry["law"] in LAWS else OTHERS_PROMISED


def header(*names):
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)


def row(*values):
    return "| " + " | ".join(map(str, values)) + " |"


def ordered(entries, *keys):
    """By names of laws as they are listed, then by the rest."""
    names = [*LAWS, *OTHERS, *INDEX, *MIXTURES]

    def place(entry):
        law = names.index(entry["law"]) if entry["law"] in names else len(names)
        return (law, *(entry[key] for key in keys))

    return sorted(entries, key=place)


# --- one tail -----------------------------------------------------------------------------------


def levels(entries):
    yield (
        "Intervals by the fit with shipped cuts, samples of a law: coverage at 95 %, in brackets "
        "the truth below the interval and above it. The other levels are the smallest and the "
        "largest of the three horizons; the width is that at m = n / 4, n and 4 n, relative to the "
        "level. Bounded laws have their end, 1, known. Bold: outside of 93 to 96.5 % (other "
        "tails: below 92.5 %)."
    )
    yield ""
    yield from header(
        "law", "n", "k", "samples", "m = n/4, %", "m = n, %", "m = 4 n, %",
        "at 90 %", "at 99 %", "at 99.8 %", "width",
    )  # fmt: skip
    for e in ordered(of_part(entries, "levels"), "n"):
        cells, promised = variant(e, "ours"), promised_of(e)
        others = (spread([coverage(cell, at) for cell in cells]) for at in (0, 2, 3))
        widths = " / ".join(f"{interval['width']:.2g}" for interval in e["intervals"])
        shown = (with_sides(cell, promised) for cell in cells)
        design = (e["law"], f"{e['n']:,}", e["k"], f"{e['audits']:,}")
        yield row(*design, *shown, *others, widths)


#: Variants beside ours, by part.
VARIANTS = (
    ("levels", "ours"),
    ("levels", "chi-square on c"),
    ("levels", "chi-square on t"),
    ("bootstrap-t", "bootstrap-t"),
    ("automatic", "automatic"),
    ("levels", "half"),
    ("levels", "double"),
    ("levels", "threshold"),
)


def strokes(cells, promised=PROMISED):
    return " / ".join(marked(coverage(cell), promised) for cell in cells)


def variants(entries):
    yield (
        "Coverage at 95 % at m = n / 4, n and 4 n. *Chi-square*: the signed root without the cuts, "
        "on the scale of the values and on that of the fit. *Bootstrap-t*: samples drawn from the "
        "rows, with the standard error of the delta rule, on the scale of the fit. *Automatic*: "
        "the number of exceedances by tests of Anderson and Darling in sequence with ForwardStop, "
        "from k / 2, k, 2 k, 3 k and 4 k. *Half* and *double*: so many exceedances, chosen "
        "beforehand. *Threshold*: the k / n quantile of the law as a fixed threshold."
    )
    yield ""
    yield from header("law", "n", *(name for _, name in VARIANTS))
    for law in LAWS:
        for n in PROMISED_SIZES:
            found = []
            for part, name in VARIANTS:
                some = of_part(entries, part, law=law, n=n)
                found.append(strokes(variant(some[0], name)) if some else "-")
            yield row(law, f"{n:,}", *found)


def primary(entries):
    yield (
        "What a user gets, by rows over horizon, n / m: order statistics from 3.69 on, the fit "
        "below, with the upper limit at least the largest row from 3 on; `-` is refused (n / m "
        "below 0.2). Coverage at 95 %."
    )
    yield ""
    ratios = [cell["rows_over_horizon"] for cell in of_part(entries, "primary")[0]["cells"]]
    yield from header("law", "n", "samples", *(f"n/m = {value:g}" for value in ratios))
    for e in ordered(of_part(entries, "primary"), "n"):
        promised = LEAST if e["law"] in {**LAWS, **INDEX} else OTHERS_PROMISED
        shown = (marked(coverage(c["primary"]), promised) for c in e["cells"])
        yield row(e["law"], f"{e['n']:,}", f"{e['audits']:,}", *shown)


def free(entries):
    yield (
        "A law below the shape of any fit, and two populations in the tail (2 % or 0.5 % of the "
        "rows beta(5, 5), the rest 0.05 exponential): the interval by the fit alone, how often its "
        "lower limit is above the truth, and how often that of `lower_free` and of `at_least` is, "
        "in %. 2.5 % are promised of the free limit."
    )
    yield ""
    yield from header(
        "law", "n", "n/m", "standing", "primary", "by the fit", "fitted low above", "free above",
        "at least above",
    )  # fmt: skip
    for e in ordered(of_part(entries, "primary"), "n"):
        if e["law"] not in {**INDEX, **MIXTURES}:
            continue
        for cell in e["cells"]:
            if cell["standing"] == "refused":
                continue
            fit, limit = cell["fit"], cell["free"]
            yield row(
                e["law"], f"{e['n']:,}", f"{cell['rows_over_horizon']:g}", cell["standing"],
                marked(coverage(cell["primary"]), LEAST), marked(coverage(fit), LEAST),
                percent(ratio(fit["low"], fit["of"])),
                percent(ratio(limit["low"], limit["of"])),
                percent(ratio(cell["at least"]["low"], cell["at least"]["of"])),
            )  # fmt: skip


def shapes(entries):
    yield (
        "The interval of the shape against that of the law's tail in the limit, and the types that "
        "it makes. A known end lies infinitely far away on the scale of the fit, where bounded "
        "laws then have shape 0."
    )
    yield ""
    yield from header("law", "end", "n", "shape", "coverage, %", "I, %", "II, %", "III, %")
    for e in ordered(of_part(entries, "shapes"), "known_end", "n"):
        end = "none" if LAWS[e["law"]].upper is None else "known" if e["known_end"] else "unknown"
        types = (percent(e["types"][name] / e["audits"]) for name in ("I", "II", "III"))
        yield row(e["law"], end, f"{e['n']:,}", f"{e['shape']:.3g}", with_sides(e, (0, 1)), *types)


# --- two groups ---------------------------------------------------------------------------------


def design_of(entry):
    return (*entry["sizes"], entry["m"])


def designs(entry):
    first, second = entry["sizes"]
    return f"{first:,} / {second:,}", f"{entry['m']:,}"


def by_design(entries):
    """By laws as they are listed, then fitted, turned, half, counted."""
    laws = [*SMOOTH, *NEAR_UNIFORM, *SHORT]
    order = [*FITTED, *TURNED, *HALF, *COUNTED]
    return sorted(entries, key=lambda e: (laws.index(e["laws"]), order.index(design_of(e))))


def size_promised(entry):
    """Counted groups have discrete statistics: they may reject less."""
    if entry["laws"] in SMOOTH and entry["method"] == "fit":
        return SIZE_PROMISED
    return (0.0, SIZE_PROMISED[1])


def sizes(entries):
    yield (
        "Two laws with equal return levels at m, the second scaled: how often the test rejects, in "
        "%. A p-value below 0.1 % is given as that bound. *Raw*: the two-sample likelihood ratio "
        "against chi-square. *Interval*: coverage of the 95 % interval of the difference. On t: "
        "`upper=1`; else the fit is of the values. Bold: outside of 3.5 to 6.5 % (near-uniform "
        "tails, index models and order statistics: above 6.5 %)."
    )
    yield ""
    yield from header(
        "laws", "rows", "m", "by", "tests", "at 5 %", "at 1 %", "at 0.1 %", "raw at 5 %", "interval"
    )
    for e in by_design(of_part(entries, "size")):
        test = e["test"]
        low, high, of = e["outside"]
        yield row(
            e["laws"], *designs(e), e["method"], f"{test['of']:,}",
            marked(size(test), size_promised(e)), percent(size(test, 1)), percent(size(test, 2)),
            marked(size(e["raw"]), SIZE_PROMISED), percent(ratio(of - low - high, of)),
        )  # fmt: skip


def power(entries):
    yield (
        "The level of the second law is that of the first divided by 1.2 or 1.5: how often the "
        "test at 5 % rejects, and how often the 95 % interval of the difference holds, in % (200 "
        "tests each)."
    )
    yield ""
    yield from header("laws", "rows", "m", "by", "1.2", "1.5", "interval, 1.2", "interval, 1.5")
    found = {}
    for e in by_design(of_part(entries, "power")):
        found.setdefault((e["laws"], design_of(e)), {})[e["ratio"]] = e
    for both in found.values():
        e = both[1.2]
        powers = [percent(size(both[ratio_]["test"])) for ratio_ in (1.2, 1.5)]
        covered = []
        for ratio_ in (1.2, 1.5):
            low, high, of = both[ratio_]["outside"]
            covered.append(percent(ratio(of - low - high, of)))
        yield row(e["laws"], *designs(e), e["method"], *powers, *covered)


def permuted(entries):
    yield (
        'Permuted groups (`null="equal_laws"`) taken for a test of equal levels: two laws with '
        "equal levels, how often it rejects at 5 % and 1 %."
    )
    yield ""
    yield from header("laws", "rows", "m", "at 5 %, %", "at 1 %, %")
    for e in by_design(of_part(entries, "permuted")):
        test = e["test"]
        yield row(e["laws"], *designs(e), marked(size(test), SIZE_PROMISED), percent(size(test, 1)))


def several(entries):
    yield (
        "Groups whose levels at m = 1,000 are equal: how often one of all pairs is found at 5 % by "
        "Holm's p-values, and without an adjustment."
    )
    yield ""
    yield from header("groups", "pairs", "by", "Holm, %", "alone, %")
    for e in of_part(entries, "several"):
        yield row(
            e["groups"], e["n_pairs"], ", ".join(e["methods"]),
            marked(size(e["holm"]), (0, 0.065)), percent(size(e["alone"])),
        )  # fmt: skip


def paired(entries):
    yield (
        "Both groups are the same rows, with a Gaussian copula between the two differences: size "
        "at 5 %, in %, by its correlation. The tails are taken as independent."
    )
    yield ""
    correlations = sorted({e["correlation"] for e in of_part(entries, "paired")})
    yield from header("law", "n", "m", *(f"{correlation:g}" for correlation in correlations))
    found = {}
    for e in ordered(of_part(entries, "paired"), "n"):
        found.setdefault((e["law"], e["n"], e["m"]), {})[e["correlation"]] = size(e["test"])
    for (law, n, m), of in found.items():
        yield row(
            law,
            f"{n:,}",
            f"{m:,}",
            *(marked(of[correlation], (0, 0.065)) for correlation in correlations),
        )


# --- rows that are no sample --------------------------------------------------------------------


def standing_rows(entries, part, *names):
    """A line for each design and n / m: ours, each value by itself, what a user gets."""
    yield from header(
        *names, "n", "n/m", "fitted, %", "by the fit, %", "each value by itself, %",
        "given, %", "primary, %", "free above, %",
    )  # fmt: skip
    for e in of_part(entries, part):
        for cell in e["cells"]:
            ours, given, limit = cell["ours"], cell["primary"], cell["free"]
            yield row(
                *(e[name] for name in names), f"{e['n']:,}", f"{cell['rows_over_horizon']:g}",
                percent(ratio(ours["of"], e["audits"])), marked(coverage(ours), LEAST),
                marked(coverage(cell["alone"]), LEAST),
                percent(ratio(given["of"], e["audits"])),
                marked(coverage(given), LEAST), percent(ratio(limit["low"], limit["of"])),
            )  # fmt: skip


def grid(entries):
    yield (
        "Scores on a grid of 0.01; 30 % of rows have no difference, 35 % one below 0. Coverage of "
        "the level before rounding where the fit says something, of the level of the grid where "
        "order statistics do. *Fitted*: the share of samples with a fit; the rest has fewer than 5 "
        "distinct exceedances, or too few tied ones."
    )
    yield ""
    yield from standing_rows(entries, "grid", "law")


def copies(entries):
    yield (
        "Rows of a smooth law of which some are there twice or three times, so that exceedances "
        "are tied on no grid. From a tenth of tied exceedances on there is no fit; the order "
        "statistics do not know that rows are copies."
    )
    yield ""
    yield from standing_rows(entries, "copies", "copies", "law")


def clusters(entries):
    yield (
        "Three rows of each person, taken for rows of their own; the correlation is that of the "
        "normals behind them, 1 are equal rows. *Test*: how often two such groups with equal laws "
        "are found different at 5 %, each value by itself, at n / m = 2 (by the fit) and 8 (by "
        "order statistics)."
    )
    yield ""
    yield from standing_rows(entries, "clusters", "correlation", "law")
    yield ""
    yield from header("law", "n", "correlation", "test, n/m = 2, %", "test, n/m = 8, %")
    for e in of_part(entries, "clusters"):
        tests = (marked(size(test), (0, 0.065)) for test in e["tests"])
        yield row(e["law"], f"{e['n']:,}", f"{e['correlation']:g}", *tests)


def row_bounds(entries):
    yield (
        '`upper="row"`: the tail is that of the share that a difference takes of the room 1 - '
        "f(x, z); a tenth of the rows has no room. Levels are those of the share, n is all rows."
    )
    yield ""
    yield from standing_rows(entries, "row bounds", "shares")
