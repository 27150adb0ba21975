"""The tables of `extremes.py` for docs/reproduction.md."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .extremes_models import N_SETTINGS
from .extremes_quality import GENERATORS, MOST_ROWS, N_EPOCHS
from .extremes_text import (
    GRID_NOTES,
    GRID_TEXT,
    MITIGATION_TEXT,
    QUALITY_TEXT,
    SETTINGS,
    SUMMARY_TEXT,
    TEN_GROUPS,
    TYPES_NOTES,
    TYPES_TEXT,
)
from .reproduction import table

Found = Mapping[str, Any]
GROUPS = ("unprivileged", "privileged")
#: Types I, II, III, and none; feasible.
PUBLISHED = (14, 4, 62, 0, 76)
RULES = (
    ("paper", "the paper's rule, k = 50", "all"),
    ("values", "calibrated interval, no known end", "audited half"),
    ("bounded", "calibrated interval, known end 1 (our default)", "audited half"),
)


@dataclass(frozen=True)
class Page:
    """The measurements, and the names of their subjects."""

    found: Mapping[tuple[Any, ...], Found]
    data: Sequence[str]
    models: Sequence[str]
    mitigated: Sequence[str]
    mitigators: Sequence[str]
    n_seeds: int
    n_mitigation_seeds: int
    fewest: int

    def text(self) -> Iterator[str]:
        """The parts of the section."""
        n_cells = 2 * len(self.data) * len(self.models)
        yield SETTINGS.format(n_cells=n_cells, n_seeds=self.n_seeds)
        yield QUALITY_TEXT.format(most=MOST_ROWS, n_epochs=N_EPOCHS)
        yield self.quality()
        yield TYPES_TEXT.format(n_cells=n_cells)
        yield self.types()
        yield TYPES_NOTES.format(
            n_cells=n_cells, raw=self.passing("passes"), residual=self.passing("residual"),
            **self.moved(),
        )  # fmt: skip
        yield GRID_TEXT
        yield self.grid()
        yield self.grid_notes()
        yield MITIGATION_TEXT.format(
            fewest=self.fewest,
            lr=N_SETTINGS["logistic regression"],
            net=N_SETTINGS["network"],
        )
        for model in self.mitigated:
            yield f"#### {model.capitalize()}\n"
            yield self.after(model)
            if model == self.mitigated[0]:
                yield SUMMARY_TEXT.format(n_seeds=self.n_mitigation_seeds, **self.claims())
            yield self.summary(model)
        ten = self.found["ten_groups", 0]
        low, high = ten["interval"]
        names = {
            place: " ".join([ten[place][1], "men" if ten[place][0] == "1" else "women"])
            for place in ("first", "second")
        }
        yield TEN_GROUPS.format(**{**ten, **names}, low=low, high=high)

    # -- Table III ---------------------------------------------------------------------------------

    def quality(self) -> str:
        """The scores of every generator on every data set."""
        rows = []
        for name in self.data:
            for generator in GENERATORS:
                one = self.found.get(("generated", name, generator))
                if one is None:
                    continue
                short = name.partition(",")[0]
                if "reason" in one:
                    rows.append([short, generator, *["-"] * 4])
                    continue
                figures = ("columns", "frechet", "detection", "f1_loss")
                shown = [f"{one[figure]:.{2 if figure == 'frechet' else 3}f}" for figure in figures]
                rows.append([short, generator, *shown])
        return table(["data", "generator", "columns", "Fréchet", "detection", "F1 loss"], rows)

    # -- Table IV ----------------------------------------------------------------------------------

    def cells(self) -> list[Found]:
        """Every model of every data set and split."""
        return [
            self.found["cell", name, model, seed]
            for seed in range(self.n_seeds)
            for model in self.models
            for name in self.data
        ]

    def types(self) -> str:
        """Counts of types by rule, means over the splits."""
        rows = [["published", "all, and generated ones", *map(str, PUBLISHED)]]
        for rule, words, of in RULES:
            counts: Counter[str] = Counter()
            for cell in self.cells():
                for group in GROUPS:
                    one = cell["types"][group][rule]
                    counts[one["type"] if rule == "paper" else one] += 1
            shown = [counts[kind] / self.n_seeds for kind in ("I", "II", "III", "")]
            rows.append([words, of, *(f"{number:.0f}" for number in (*shown, shown[0] + shown[2]))])
        return table(["rule", "rows", "I", "II", "III", "no type", "feasible"], rows)

    def passing(self, which: str) -> float:
        """Tails that pass a test of coefficients of variation, mean over the splits."""
        passed = [cell["types"][group]["paper"][which] for cell in self.cells() for group in GROUPS]
        return float(sum(passed)) / self.n_seeds

    def moved(self) -> dict[str, float]:
        """Tails of type III by the paper's rule, and how many are not shown to be."""
        both = [
            (cell["types"][group]["paper"]["type"], cell["types"][group]["values"])
            for cell in self.cells()
            for group in GROUPS
        ]
        third = [ours for theirs, ours in both if theirs == "III"]
        kept = sum(ours == "III" for ours in third)
        return {
            "third": len(third) / self.n_seeds,
            "moved": (len(third) - kept) / self.n_seeds,
            "unknown": sum(not ours for ours in third) / self.n_seeds,
        }

    def grid(self) -> str:
        """The cells of the first split."""
        rows = []
        for model in self.models:
            for name in self.data:
                cell = self.found["cell", name, model, 0]
                kinds = [cell["types"][group]["bounded"] or "-" for group in GROUPS]
                row = [model, name, "{:,} / {:,}".format(*cell["sizes"])]
                row.append(f"{100 * cell['accuracy']:.1f}")
                if "ecd" in cell:
                    row += [f"{cell['acd']:+.3f}", f"{cell['cvar']:+.3f}"]
                    row += [f"{cell['horizon']:,}", interval(cell)]
                else:
                    row += ["", "", "", "0, ignored" if cell["ignores"] else "-"]
                rows.append([*row, ", ".join(kinds)])
        head = ["model", "data", "rows", "accuracy, %", "ACD", "CVaR", "horizon", "ECD", "types"]
        return table(head, rows)

    def grid_notes(self) -> str:
        """How many differences are shown, and where they lie."""
        known = [cell for cell in self.cells() if "ecd" in cell]
        above = sum(cell["low"] > 0 for cell in known)
        below = sum(cell["high"] < 0 for cell in known)
        unlike = sum(
            cell["acd"] * cell["ecd"] < 0 and (cell["low"] > 0 or cell["high"] < 0)
            for cell in known
        )
        return GRID_NOTES.format(
            measured=len(known), total=len(self.cells()), shown=above + below, above=above,
            below=below, unlike=unlike,
        )  # fmt: skip

    # -- mitigation --------------------------------------------------------------------------------

    def mitigated_data(self) -> list[str]:
        """Data sets with mitigated models."""
        known = {key[1] for key in self.found if key[0] == "mitigated"}
        return [name for name in self.data if name in known]

    def after(self, model: str) -> str:
        """ECD by data set and method, first split."""
        rows = []
        for method in self.mitigators:
            cells = [
                self.found["mitigated", name, model, method, 0] for name in self.mitigated_data()
            ]
            rows.append([method, *map(interval, cells)])
        return table(["mitigation", *self.mitigated_data()], rows)

    def before_and_after(self, model: str, method: str) -> list[tuple[Found, Found]]:
        """Cells without and with mitigation."""
        return [
            (
                self.found["mitigated", name, model, "none", seed],
                self.found["mitigated", name, model, method, seed],
            )
            for name in self.mitigated_data()
            for seed in range(self.n_mitigation_seeds)
        ]

    def summary(self, model: str) -> str:
        """Means over data sets and splits by method."""
        rows = []
        for method in self.mitigators:
            pairs = self.before_and_after(model, method)
            both = [(a, b) for a, b in pairs if measured(a) and measured(b)]
            lost = 100 * np.mean([b["accuracy"] - a["accuracy"] for a, b in both])
            odds = np.mean([abs(b["aod"]) for _, b in both])
            # A model that ignores the attribute has neither ACD nor ECD.
            mean, ecd = (
                np.mean([abs(b.get(name, 0.0)) for _, b in both]) for name in ("acd", "ecd")
            )
            row = [method, f"{len(both)} of {len(pairs)}", f"{lost:+.1f}"]
            row += [f"{odds:.3f}", f"{mean:.3f}", f"{ecd:.3f}"]
            if method == self.mitigators[0]:
                rows.append([*row, "", "", ""])
                continue
            n_smaller, n_shown = changes([(b, a) for a, b in both])
            _, n_larger_shown = changes(both)
            rows.append([*row, str(n_smaller), str(n_shown), str(n_larger_shown)])
        head = ["mitigation", "measured", "accuracy, %", "AOD", "ACD", "ECD"]
        return table([*head, "smaller", "shown", "larger, shown"], rows)

    def claims(self) -> dict[str, str]:
        """How often the tail is less fair after mitigation, of both models."""
        found = {}
        kinds = {
            "average": self.mitigators[1:5],
            "minimax": ["minimax"],
            "search": ["ecd_search"],
        }
        for kind, methods in kinds.items():
            both = [
                (a, b)
                for model in self.mitigated
                for method in methods
                for a, b in self.before_and_after(model, method)
                if measured(a) and measured(b)
            ]
            n_larger, n_shown = changes(both)
            found |= {kind: f"{n_larger} of {len(both)}", f"{kind}_shown": str(n_shown)}
        return found


def measured(cell: Found) -> bool:
    """Return whether there is an ECD; it is 0 where the model ignores the attribute."""
    return "ecd" in cell or bool(cell.get("ignores"))


def changes(pairs: Sequence[tuple[Found, Found]]) -> tuple[int, int]:
    """How many second ECDs are larger in size than the first, and with intervals apart."""
    larger = [abs(a.get("ecd", 0.0)) < abs(b.get("ecd", 0.0)) for a, b in pairs]
    shown = [sized(a)[1] < sized(b)[0] for a, b in pairs]
    return sum(larger), sum(shown)


def sized(cell: Found) -> tuple[float, float]:
    """The limits of the size of an ECD."""
    low, high = cell.get("low", 0.0), cell.get("high", 0.0)
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def interval(cell: Found) -> str:
    """An ECD with its limits."""
    if "ecd" not in cell:
        return "0, ignored" if cell.get("ignores") else "-"
    return f"{cell['ecd']:+.3f} ({cell['low']:.3f} to {cell['high']:.3f})"
