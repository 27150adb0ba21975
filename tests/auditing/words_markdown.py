"""Reads the Markdown of an audit back: the same sentences, tables and notes as its text has."""

import re

import numpy as np

from .words_lines import number, says
from .words_read import RATE_TITLES, Reader

_ESCAPED = re.compile(r"\\([\\`*_{}\[\]<>|#])")
#: Headings that an audit may have, besides those of strata.
PARTS = (
    "Questions",
    "Intersections within their tolerances, not binding",
    "Groups",
    "Other lenses",
    "Notes",
    "What the rule says",
    *RATE_TITLES,
)


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
        other = self.read ^ of_text.read
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
        elif name.startswith("Intersections"):
            for row in cells_of(body.splitlines()[2:]):
                self.hidden_intersection(row)
        elif name.startswith(("What the rule says", *RATE_TITLES)):
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

    # -- tables ------------------------------------------------------------------------------

    def questions_table(self, body):
        """The same rows as in the text; a reason that replaces numbers comes after the verdict."""
        _, _, *lines = body.splitlines()
        self.question_rows([row if row[6] else row[:3] for row in cells_of(lines)])

    def hidden_intersection(self, row):
        """A question about an intersection that does not bind, and does not fail."""
        self.line = "  ".join(row)
        self.check(row[2].endswith(", not binding"), "an intersection that binds")
        self.check(not row[2].startswith("fail"), "it fails")

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
