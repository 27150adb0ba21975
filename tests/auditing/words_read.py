"""Reads the text of an audit back, sentence by sentence, and compares it with a `World`.

`errors_of(world, text)` returns what is false. Each sentence of the table in
`auditing/sentences.py` has one method here, named after it; a line that no template fits, and a
sentence that has no method, are errors.
"""

from fairaudit_rs.auditing.sentences import read_sentence

from .words_lens_read import LensReader
from .words_lines import WORDS
from .words_request import RequestReader
from .words_rules import RuleReader
from .words_tables import NoteReader, TableReader
from .words_verdict import VerdictReader

#: What descriptions of policies promise, with the columns that it takes and its sentences.
PROMISES = {
    "standardized mean differences": ("s", {"mean_difference", "no_means_of_few"}),
    "Adverse impact ratios": ("p", {"adverse_impact", "no_adverse_impact"}),
    "test of equal rates": ("p", {"impact_ratio", "nobody_selected"}),
    "Impact ratios of Local Law 144": ("p", {"impact_of_selection", "missing"}),
    "approvals that differ significantly": ("p", {"approval_gap"}),
}
#: The first words of the titles of the tables of Local Law 144.
RATE_TITLES = ("Selection rate by ", "Scoring rate by ")


class Reader(RequestReader, VerdictReader, LensReader, NoteReader, TableReader, RuleReader):
    """The lines of a text, and what is wrong with them."""

    def __init__(self, world, text):
        self.world, self.errors, self.line = world, [], ""
        #: The sentences that were read, by name, and the comparisons that they are about.
        self.read, self.told, self.known_p = set(), {}, {}
        #: The rows of the table of questions: the verdict, and the groups that decide.
        self.rows, self.crossed_rows = {}, []
        #: Verdicts of lenses in that table, and those that have a sentence.
        self.lens_rows, self.told_lenses = {}, []
        self._lines(text)

    # -- parts of the text -------------------------------------------------------------------

    def _lines(self, text):
        summary, *blocks = text.split("\n\n")
        self.summary = [line for line in summary.splitlines() if line[:6] != "Note: "]
        # Sentences are compared with the table, so it comes first.
        for block in [block for block in blocks if block.startswith("Questions:")]:
            self.block(*block.splitlines())
        for line in self.summary:
            self.sentence(line.removeprefix("  "), line)
        for block in [block for block in blocks if not block.startswith("Questions:")]:
            self.block(*block.splitlines())
        self.line = "the whole text"
        self.promises()
        self.all_are_told()
        self.all_lenses_are_told()
        self.request_is_whole()

    def block(self, title, *lines):
        """Read the lines under a title, or the notes, which have none."""
        if title == "Questions:":
            self.table(lines)
        elif title.startswith("Strata: "):
            self.stratum_table([title.removeprefix("Strata: "), *lines])
        elif title == "What the rule says:":
            for line in lines:
                self.rule_line(line.strip())
        elif title.startswith(RATE_TITLES):
            self.category_table(lines)
        else:
            for line in (title, *lines):
                self.sentence(line.removeprefix("Note: ").removesuffix("."), line)

    def sentence(self, text, line):
        self.line = line
        found = read_sentence(text, WORDS)
        if found is None:
            self.check(False, "no template fits")
            return
        name, parts = found
        self.read.add(name)
        method = getattr(self, f"on_{name}", None)
        if method is None:
            self.check(False, f"the sentence {name} is not checked")
            return
        method(**parts)

    def promises(self):
        """All that the description of a policy promises is there."""
        for words, (role, names) in PROMISES.items():
            if words in self.world.policy.description and role in self.world.roles:
                self.check(names & self.read, f"promised and missing: {words}")


def errors_of(world, text):
    """Return what is false in the text of an audit."""
    return Reader(world, text).errors
