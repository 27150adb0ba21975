"""Tables of the influence atlas for scores with all else held fixed."""

from itertools import combinations

import numpy as np

from atlas_influence_alone import GUARDS, POPULATIONS
from atlas_influence_tables import MOST_FALSE, PROMISED, bold, mean, promised, ratio, spread
from atlas_tools import percent

#: What is promised of coverage at 95 % with all else held fixed.
ALONE = (0.925, 0.98)
LABEL_METRICS = ("fpr", "fnr", "fdr")
#: Scores behind a share of scores.
FEWEST_SHOWN = 100
TOWNS = "towns"
#: A score that differs by less is the same in every sample: a value that changes no decision.
SAME = 1e-12


def named(entries, *names):
    """The entries of some populations."""
    return [e for e in entries if e["part"] == "alone" and e["name"] in names]


def share(entry, cell, what):
    """Of samples that have a score; the plug-in score, and the share shown, of all."""
    if what in ("shown", "plug_in"):
        return cell[what] / entry["audits"]
    below = {"all_ours": "all", "instead_ours": "instead"}.get(what, "shown")
    if cell["deviation"] is not None and cell["deviation"] < SAME:
        return None
    return ratio(cell[what], cell[below]) if cell[below] >= FEWEST_SHOWN else None


def shares(entries, what, metrics=LABEL_METRICS):
    """The shares of all cells of these entries and metrics."""
    return [
        share(e, cell, what) for e in entries for cell in e["cells"] if cell["metric"] in metrics
    ]


def words(entry, cell):
    """Return the description of a cell for a sentence."""
    what = "decisions" if cell["decision"] else "scores"
    return f"{entry['name']}, {cell['metric'].replace('_', ' ')}, {what}, n = {entry['n']:,}"


def outside(entries, what="ours", limits=ALONE, metrics=LABEL_METRICS):
    """The cells that do not cover as promised, for a sentence."""
    found = []
    for e in entries:
        for cell in e["cells"]:
            covered = share(e, cell, what)
            fails = covered is not None and not limits[0] <= covered <= limits[1]
            if fails and cell["metric"] in metrics:
                found.append(f"{words(e, cell)}: {percent(covered)}")
    return f"{len(found)} ({'; '.join(found)})" if found else "none"


def alone(entries):
    yield (
        "FPR, FNR and FDR, scores and decisions, of eight binary features of which the first is "
        "flipped. *Signs*: P(Y=1 | X) and P(x_1=1 | the others) are logistic with a product of the "
        "signs of two other features, which the default regressions (main effects and pairs) can "
        "say, or of three, which they cannot: *e right* says that the default is right for "
        "P(x_1=1 | the others) alone, *h right* for P(Y=1 | X) alone. *One product*: the design of "
        "the tests, a pair in each, with the default; *pairs given*: the same with ridge logistic "
        "regressions of main effects and the pair where they are right, of main effects alone "
        "where they are wrong. *Ours*: the larger of the two standard errors, with its t; *plain*: "
        "that of the influence function alone, *stacked*: with what the regressions add, both with "
        "normal quantiles; *plug-in*: the paper's score with its own error "
        f'(`compat="paper"`). {promised(ALONE)} are promised of *ours* where one of the '
        "regressions is right. *Bias* is the largest in standard deviations of the estimate. The "
        "selection rate needs no regression. P(x_1=1) is "
        f"{rare(entries, 'signs, rare')} where it is *rare*, "
        f"{rare(entries, 'signs, very rare')} where *very rare*."
    )
    yield ""
    yield (
        "| population | n | shown, % | ours, % | plain, % | stacked, % | plug-in, % | bias | "
        "selection rate, ours, % |"
    )
    yield "|---" * 9 + "|"
    for e in entries:
        if e["part"] == "alone" and e["name"] != TOWNS:
            yield row(e)


def row(e):
    cells = [spread(shares([e], "shown"))]
    cells += [spread(shares([e], what), *ALONE) for what in ("ours", "plain", "stacked", "plug_in")]
    cells += [biases(e), spread(shares([e], "ours", ("selection_rate",)), *ALONE)]
    return f"| {e['name']} | {e['n']:,} | {' | '.join(cells)} |"


def biases(e):
    known = [
        cell["bias"] / cell["deviation"]
        for cell in e["cells"]
        if cell["metric"] in LABEL_METRICS and cell["shown"] >= FEWEST_SHOWN and cell["deviation"]
    ]
    return f"{max(known, key=abs):+.2f}" if known else "-"


def bias(entries, name):
    """The largest one of a population, in standard deviations of the estimate."""
    found = [biases(e) for e in named(entries, name)]
    return max(found, key=lambda said: abs(float(said))).lstrip("+-")


def rare(entries, name):
    return f"{named(entries, name)[0]['share']:.2g}".removeprefix("0")


def guards(entries):
    yield (
        "What the guards refuse: fewer than 10 rows of a label with a value (*labels*); rows with "
        "a value that stand for less than 80 % or more than 125 % of all by the weights 1 / e "
        "(*stand for*); more than 10 % of these weights in one row (*one row*); shares of samples "
        "with FPR, FNR and FDR. *Alone* is what no other guard refuses, with the coverage that "
        "these samples would have. *Without any* is that of all samples, *with all* that of those "
        "that are shown. Where a score is refused, the *partialled-out* score in its place covers "
        "its own truth as said in the last column. Populations in which nothing is refused are "
        "left out. With *little* and *least overlap* and where it is *repeated* another feature "
        "adds 3, 5 or 8 to the logit of P(x_1=1 | the others) or takes them away; *h right*, "
        "*e right* and *none right* are with given pairs."
    )
    yield ""
    heads = ["labels, %", "stand for, %", "one row, %", "alone: labels", "stand for", "one row"]
    yield (
        f"| population | n | {' | '.join(heads)} | without any, % | with all, % | "
        "partialled-out, % |"
    )
    yield "|---" * 11 + "|"
    for e in entries:
        if e["part"] != "alone":
            continue
        some = [cell for cell in e["cells"] if cell["metric"] in LABEL_METRICS]
        refused = [percent(guard_share(e, some, name)) for name in GUARDS]
        if any(cell["shown"] < e["audits"] for cell in some):
            only = [guarded(e, some, name) for name in GUARDS]
            covered = [
                spread(shares([e], what), *ALONE) for what in ("all_ours", "ours", "instead_ours")
            ]
            yield (
                f"| {e['name']} | {e['n']:,} | {' | '.join(refused)} | {' | '.join(only)} | "
                f"{' | '.join(covered)} |"
            )


def guard_share(e, some, name, place=0):
    return mean(cell["guards"][name][place] / e["audits"] for cell in some)


def guarded(e, some, name):
    """The share of samples that one guard alone refuses, and how often intervals hold there."""
    _, only, covered = np.sum([cell["guards"][name] for cell in some], axis=0)
    if not only:
        return "0"
    said = f"{percent(guard_share(e, some, name, 1))} %"
    return f"{said}, covers {percent(covered / only)}" if only >= FEWEST_SHOWN else said


def towns(entries):
    yield (
        "A feature of three values with all else held fixed: every pair of values, FPR, FNR and "
        "FDR, scores and decisions; both regressions of main effects and pairs are right."
    )
    yield ""
    yield "| pair | n | shown, % | ours, % | plain, % | stacked, % | plug-in, % |"
    yield "|---" * 7 + "|"
    for e in entries:
        if e["part"] != "alone" or e["name"] != TOWNS:
            continue
        for place, pair in enumerate(combinations(("a", "b", "c"), 2)):
            # Three pairs of each metric, one after the other.
            some = [
                cell for cell in e["cells"][place::3] if cell["metric"] in LABEL_METRICS
            ]  # fmt: skip
            found = [
                spread([share(e, cell, what) for cell in some], *limits)
                for what, limits in (
                    ("shown", (0, 1)), ("ours", ALONE), ("plain", ALONE), ("stacked", ALONE),
                    ("plug_in", ALONE),
                )
            ]  # fmt: skip
            yield f"| {pair[1]} against {pair[0]} | {e['n']:,} | {' | '.join(found)} |"


def partialled(entries):
    yield (
        "Continuous features beside two binary and a normal one: FPR, FNR and FDR, scores and "
        "decisions; the truth is E[psi (x - e)] / E[(x - e)^2] with the true e = E[x | the "
        "others]. *Rest*: the share of the variance of x that the others leave; below 1 % a score "
        "is refused (`determined`), with the coverage that it would have. *e* is linear in the "
        "others, as the default regression has it, or has a square, which it has not."
    )
    yield ""
    yield "| rest | law of the rest | e | n | given, % | coverage, % | refused: coverage, % |"
    yield "|---" * 7 + "|"
    for e in entries:
        if e["part"] != "partialled":
            continue
        given = mean(cell["given"] / e["audits"] for cell in e["cells"])
        yield (
            f"| {100 * e['rest']:g} % | {e['law']} | {'square' if e['square'] else 'linear'} | "
            f"{e['n']:,} | {percent(given)} | {spread(covered(e, 'covered', 'given'), *PROMISED)} "
            f"| {spread(covered(e, 'bare', 'determined'), *PROMISED)} |"
        )


def covered(e, count, of):
    return [ratio(cell[count], cell[of]) for cell in e["cells"] if cell[of] >= FEWEST_SHOWN]


def families(entries):
    yield (
        "Eight binary features that the model does not use and that say nothing of the label once "
        "three others are held fixed, with which they go: every score held fixed is 0. How often "
        f"is one of the eight found by adjusted p-values (at most {100 * MOST_FALSE:g} % are "
        "promised)? *Alone*: the share of single p-values below 5 %; *marginal*: how often one of "
        "the marginal scores is found, which are not 0."
    )
    yield ""
    yield (
        "| metric | of | n | audits | held fixed | partialled-out | ours, % | alone, % | "
        "marginal, % |"
    )
    yield "|---" * 9 + "|"
    for e in entries:
        if e["part"] == "family alone":
            audits, shown = e["audits"], e["flipped"] + e["partialled"]
            yield (
                f"| {e['metric']} | {'decisions' if e['decision'] else 'scores'} | {e['n']:,} | "
                f"{audits:,} | {e['flipped'] / audits:.1f} | {e['partialled'] / audits:.1f} | "
                f"{bold(e['false'] / audits, 0, MOST_FALSE)} | {percent(e['alone'] / shown)} | "
                f"{percent(e['marginal'] / audits)} |"
            )


# --- findings ---


def of_families(entries):
    found = [e for e in entries if e["part"] == "family alone"]
    yield (
        "- **Features that say nothing once others are held fixed**: one of eight is found in "
        f"{spread([e['false'] / e['audits'] for e in found], 0, MOST_FALSE)} % of audits, a single "
        f"one in {spread([e['alone'] / (e['flipped'] + e['partialled']) for e in found])} %."
    )


def of_alone(entries):
    def said(what, *names):
        return spread(shares(named(entries, *names), what), *ALONE)

    kinds = {
        right: [f"signs, {right} right", f"pairs given, {right} right"]
        for right in ("both", "e", "h", "none")
    }
    either = [name for right in ("both", "e", "h") for name in kinds[right]]
    given = [name for name in either if name.startswith("pairs")]
    yield (
        f"- **All else held fixed** (ceteris paribus; {promised(ALONE)} are promised where one of "
        f"the regressions is right): intervals cover {said('ours', *kinds['both'])} % where both "
        f"are right, {said('ours', *kinds['e'])} % where only P(x=1 | the others) is, "
        f"{said('ours', *kinds['h'])} % where only P(Y=1 | X) is, and with the default regressions "
        f"in the design of the tests {said('ours', 'one product')} %. Outside are "
        f"{outside(named(entries, *either, 'one product'))}: the penalty that predicts best keeps "
        "P(Y=1 | X) too smooth for a score that nothing else mends, with a bias of up to "
        f"{bias(entries, 'signs, h right')} standard deviations. With given pairs outside are "
        f"{outside(named(entries, *given))}. With the plain standard error "
        f"{said('plain', *either)} %, with the stacked one {said('stacked', *either)} %. Where "
        f"*both* regressions are wrong they fail: {said('ours', *kinds['none'])} %."
    )
    yield (
        "- **The paper's plug-in score** covers "
        f"{said('plug_in', *kinds['both'], *kinds['h'], 'one product')} % where its regression is "
        f"right and {said('plug_in', *kinds['e'], *kinds['none'])} % where it is wrong."
    )
    every = spread(shares(named(entries, *POPULATIONS), "ours", ("selection_rate",)), *ALONE)
    few = named(entries, "signs, rare", "signs, very rare", "little overlap", "least overlap")
    yield (
        "- **A rare feature, or little overlap**, both regressions right: "
        f"{spread(shares(few, 'shown'))} % of samples have a score, and of these intervals cover "
        f"{said('ours', *(e['name'] for e in few))} %; outside are {outside(few)}. The selection "
        f"rate needs no regression: {every} % over all populations."
    )


def of_guards(entries):
    found = [e for e in named(entries, *POPULATIONS) if "none" not in e["name"]]
    cells = [(e, c) for e in found for c in e["cells"] if c["metric"] in LABEL_METRICS]
    total = sum(e["audits"] for e, _ in cells)
    said = []
    for name, what in zip(
        GUARDS,
        ("10 rows of a label", "rows that stand for 80 to 125 % of all", "10 % in one row"),
        strict=True,
    ):
        refused, only, held = np.sum([c["guards"][name] for _, c in cells], axis=0)
        said.append(
            f"*{what}* refuses {percent(refused / total)} % of samples, {percent(only / total)} % "
            f"alone, whose intervals would cover {percent(ratio(held, only))} %"
        )
    without, with_all = (spread(shares(found, what), *ALONE) for what in ("all_ours", "ours"))
    yield (
        "- **Guards with all else held fixed**, over the populations in which a regression is "
        f"right: {'; '.join(said)}. Without any guard intervals cover {without} %, with them "
        f"{with_all} %."
    )


def of_towns(entries):
    found = named(entries, TOWNS)
    yield (
        "- **Three values with all else held fixed**: intervals of pairs cover "
        f"{spread(shares(found, 'ours'), *ALONE)} %; outside are {outside(found)}. The plug-in "
        f"score covers {spread(shares(found, 'plug_in'), *ALONE)} %."
    )


def of_partialled(entries):
    def said(**wanted):
        some = [
            e
            for e in entries
            if e["part"] == "partialled" and all(e[k] == v for k, v in wanted.items())
        ]
        return spread([x for e in some for x in covered(e, "covered", "given")], *PROMISED)

    laws = [said(law=law, square=False) for law in ("normal", "lognormal")]
    yield (
        f"- **Partialled-out scores** of continuous features cover {laws[0]} % with a normal rest, "
        f"{laws[1]} % with a lognormal one. They are right where the regression of the feature is: "
        "where E[x | the others] has a square, which the default has not, they cover "
        f"{said(square=True)} %."
    )
