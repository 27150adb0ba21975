"""Reads the Markdown of an audit back: the same sentences, tables and notes as its text has."""

import re

import numpy as np

from .words import Asked
from .words_lines import number, says
from .words_read import Reader

_ESCAPED = re.compile(r"\\([\\`*_{}\[\]<>|#])")
#: Headings that an audit may have, besides those of strata.
PARTS = ("Questions", "Groups", "Other lenses", "Notes", "What the rule says")

#: Sentences of categories, which are tables here.
OF_TABLES = {"category", "ratios_are_to", "unknown_category", "small_highest"}


def literal(text):
    """A text as it was before Markdown."""
    return _ESCAPED.sub(r"\1", text)


def cells_of(lines):
    """The rows of a table, without its head."""
    rows = [re.split(r"(?<!\\) ?\| ?", line.strip())[1:-1] for line in lines]
    return [[literal(cell).strip() for cell in row] for row in rows]


class MarkdownReader(Reader):
    """The parts of a page, and what is wrong with them."""

    def __init__(self, world, text, of_text):
        self.of_text = of_text
        super().__init__(world, text)
        self.line = "the whole page"
        self.check(self.summary == of_text.summary, "other sentences than in the text")
        self.check(self.told == of_text.told, "other comparisons than in the text")
        for place, row in self.rows.items():
            if place >= 0:
                self.check(of_text.rows.get(place) == row, f"another row than in the text: {row}")
        crossed = [row[:3] for row in self.crossed_rows]
        self.check(crossed == [row[:3] for row in of_text.crossed_rows], "other intersections")
        self.check(self.lens_rows == of_text.lens_rows, "other lenses than in the text")
        other = (self.read ^ of_text.read) - OF_TABLES
        self.check(not other, f"other sentences: {other}")

    def _lines(self, text):
        head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
        title, first, *others = head.strip().split("\n\n")
        rest = others[0].splitlines() if others else []
        self.line = title
        self.check(title.startswith("# "), "no title")
        self.summary = [f"{literal(title[2:])}. {literal(first)}", *map(literal, rest)]
        seen = []
        for section in sections:
            name, _, body = section.partition("\n\n")
            seen.append(literal(name))
            self.section(literal(name), body.strip())
        for line in self.summary:
            self.sentence(line.removeprefix("  "), line)
        self.headings(seen)
        self.promises()
        self.all_are_told()
        self.all_lenses_are_told()
        self.request_is_whole()

    def headings(self, seen):
        self.line = "the headings"
        for name in ("Questions", "Groups", "Notes"):
            self.check(any(value.startswith(name) for value in seen), f"no part {name}")
        for name in seen:
            self.check(name.startswith((*PARTS, "Strata: ")), f"no part of an audit: {name}")
        for crude in (value for value in seen if value.startswith("Groups")):
            compared = any(self.world.pairs(question) for question in self.world.questions)
            said = "crude" in crude
            self.check(not said or bool(self.world.strata), "crude values without strata")
            self.check(said or not (self.world.strata and compared), "crude values")

    def section(self, name, body):
        if name == "Questions":
            self.questions_table(body)
        elif name.startswith("Strata: "):
            title = name.removeprefix("Strata: ")
            _, _, *rows = body.splitlines()
            self.line = title
            self.strata_of(title, cells_of(rows))
        elif name.startswith("Groups"):
            self.groups_table(body)
        elif name == "Other lenses":
            self.lenses_table(body)
        elif name == "Notes":
            self.notes(body)
        elif name == "What the rule says":
            self.rule_part(body)

    def notes(self, body):
        *lines, seed = body.split("\n\n") if "\n\n" in body else ["", body]
        for line in "\n".join(lines).splitlines():
            text = literal(line.removeprefix("- "))
            self.sentence(text.removesuffix("."), f"Note: {text}")
        self.line = seed
        self.check(re.fullmatch(r"Seed: \d+", seed), "no seed")

    def rule_part(self, body):
        for line in body.splitlines():
            if line.startswith("- "):
                self.rule_line(literal(line[2:]))
        for table in re.findall(r"(?:^\|.*\n?)+", body, flags=re.MULTILINE):
            [head], rows = cells_of(table.splitlines()[:1]), cells_of(table.splitlines()[2:])
            self.categories(head, rows)
        for n, by in re.findall(r"^Not in this table: ([\d,]+) p\w+ of unknown ([^.]+?)\.?$", body,
                                flags=re.MULTILINE):  # fmt: skip
            self.line = f"{n} of unknown {by}"
            self.on_unknown_category(by, f"{n} people", by, "are")

    def categories(self, head, rows):
        """A table of categories: applicants, rates and impact ratios."""
        by, _, rate_name, *_ = head
        counts = self.category_counts(by, rate_name)
        highest = max(x / n for x, n in counts.values())
        for row in rows:
            self.line = "  ".join(row)
            x, n = counts.get(row[0], (0, 0))
            self.check(number(row[1]) == n, f"{row[0]} has {n} applicants")
            if not n:
                continue
            self.check(says(row[2], x / n), f"the rate is {x / n:.4f}")
            ratio = row[head.index("impact ratio")] if "impact ratio" in head else ""
            ratio = ratio if re.fullmatch(r"[\d.]+", ratio) else ""
            self.check(not ratio or says(ratio, x / n / highest), "impact ratio")

    # -- tables ------------------------------------------------------------------------------

    def questions_table(self, body):
        """All questions in the order of the policy, those of intersections too, then lenses."""
        _, _, *lines = body.splitlines()
        world, lenses = self.world, self.world.lenses.asked
        wanted = [
            Asked(criterion, name)
            for criterion in world.policy.criteria
            for name in world.attributes
            if criterion.metric is not None and criterion.covers(name)
        ]
        for row in cells_of(lines):
            self.line = "  ".join(row)
            # What stands in the place of numbers goes on after the verdict.
            row = row if row[6] else row[:3]
            lens = next(
                (value for value in lenses if row[:2] == [value.attribute, value.lens]), None
            )
            if lens is not None:
                self.lens_row(lens, row)
                continue
            if " and " in row[0]:
                self.crossed_row(row)
                continue
            asked = wanted.pop(0) if wanted else None
            if asked is None or row[:2] != [asked.attribute, asked.metric]:
                self.check(False, f"the row is about {asked}")
                continue
            self.row(world.questions.index(asked), asked, row)
        self.check(not wanted, f"questions without a row: {wanted}")

    def crossed_row(self, row):
        """A question about an intersection, which never binds here: those that fail are told."""
        self.check(row[2].endswith(", not binding"), "an intersection that binds")
        if row[2].startswith("fail"):
            self.crossed_rows.append(row)
            asked = self.crossed(row)
            if asked is not None:
                self.row(-len(self.crossed_rows), asked, row)

    def groups_table(self, body):
        """Rows, labels and decisions of every group, of all its rows."""
        _, _, *lines = body.splitlines()
        world = self.world
        for attribute, group, n, *people, labels, decisions in cells_of(lines):
            self.line = f"{attribute} {group} {n} {labels} {decisions}"
            rows = world.people[attribute].get(group)
            if rows is None:
                # People of an unknown group.
                continue
            self.check(number(n) == rows.sum(), f"rows are {rows.sum()}")
            self.check(len(people) == world.weighted, "people by weight")
            if people:
                self.check(says(people[0], world.w[rows].sum()), "people by weight")
            for text, column in ((labels, world.y), (decisions, world.p)):
                if column is None:
                    self.check(text == "", "there is no such column")
                else:
                    value = np.average(column[rows], weights=world.w[rows])
                    self.check(says(text, value), f"the share is {value:.4f}")

    def lenses_table(self, body):
        """Lenses that inform: their values lie between their limits."""
        _, _, *lines = body.splitlines()
        for lens, attribute, metric, estimate, low, high, _, note in cells_of(lines):
            self.line = f"{lens} {attribute} {estimate} {low} {high} {note}"
            lenses = self.world.lenses
            self.check(attribute in ("", *lenses.attributes(lens)), "attribute")
            criterion = lenses.criterion(lens, attribute)
            self.check(criterion is None or not criterion.binding, "it binds")
            if not estimate:
                self.check(note != "", "a lens without a value and without a reason")
                continue
            ends = [number(end) for end in (low, high) if end and "infinite" not in end]
            value = number(estimate)
            if lens == "individual" and self.world.y is not None:
                dropped = re.findall(r"without (\w+): no feature", note)
                growth = lenses.growth(tuple(dropped))
                close = growth is None or abs(value - growth) <= 2e-3 * growth
                self.check(close, f"growth is {growth}")
            elif lens == "influence":
                self.check(metric == lenses.rate_of(attribute), "metric")
            elif lens == "projection":
                self.check(metric == lenses.notion, "notion")
            inside = len(ends) < 2 or min(ends) - 1e-3 <= value <= max(ends) + 1e-3
            self.check(inside or lens == "projection", "the limits")


def errors_of_page(world, page, of_text):
    """Return what is false in a page of Markdown."""
    return [f"Markdown: {error}" for error in MarkdownReader(world, page, of_text).errors]
