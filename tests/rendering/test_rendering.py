"""Renderers: one document as text, Markdown, HTML and JSON, with the same words and numbers."""

import html.parser
import json
import math

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs.rendering import html as html_renderer
from fairaudit_rs.rendering import json as json_renderer
from fairaudit_rs.rendering import markdown, text
from fairaudit_rs.report.columns import known_table
from fairaudit_rs.report.document import Cell, Column, Document, Remainder, Section, Table

NAN = math.nan

COLUMNS = (
    Column(key="group", heading="group"),
    Column(key="n_rows", heading="rows", kind="count"),
    Column(key="value", heading="value", kind="value", unit="USD"),
    Column(key="interval", heading="95 % interval", kind="interval"),
    Column(key="pvalue", heading="p", kind="pvalue"),
)
ROWS = (
    ("over 45", 1_200, 0.25, (0.2, 0.3), 0.5),
    ("a|b <i>", 7, NAN, (NAN, NAN), 1e-310),
    ("small", Remainder("too few rows: 3 of 10")),
    (Cell("others", "rest"), None, 1234.5, (-1.0, math.inf), NAN),
)
TABLE = Table(name="groups", columns=COLUMNS, rows=ROWS, noun="groups")
DOCUMENT = Document(
    title="FAIL",
    headline="FAIL",
    sentences=("1,207 rows.", "A gap of 5 points."),
    sections=(
        Section(title="Groups", sentences=("Crude values.",), tables=(TABLE,)),
        Section(title="More", tables=(TABLE,), is_detail=True),
    ),
    notes=("mind the gap",),
    details="two-sided test",
    facts={"Seed": "7"},
)


class TestText:
    def test_a_document(self):
        assert text.render(DOCUMENT) == (
            "FAIL. 1,207 rows.\n"
            "A gap of 5 points.\n"
            "\n"
            "Groups:\n"
            "  Crude values.\n"
            "  group     rows  value (USD)  95 % interval              p\n"
            "  over 45  1,200        0.250  0.200 to 0.300        0.5000\n"
            "  a|b <i>      7                                   < 1e-300\n"
            "  small    too few rows: 3 of 10\n"
            "  others             1.23e+03  -1.000 to infinite\n"
            "\n"
            "Note: mind the gap.\n"
            "Details: two-sided test."
        )

    def test_details(self):
        assert "More:" not in text.render(DOCUMENT)
        assert text.render(DOCUMENT, details=True).count("  over 45  1,200") == 2

    @pytest.mark.parametrize("width", [20, 40, 60])
    def test_narrow_terminals(self, width):
        lines = text.render(DOCUMENT, width=width).splitlines()
        table = lines[lines.index("  Crude values.") + 1 : lines.index("Note: mind the gap.") - 1]
        assert max(map(len, table)) <= width
        words = " ".join(" ".join(table).split())
        for cell in ("over 45 1,200", "too few rows: 3 of 10", "0.200 to 0.300"):
            assert cell in words

    def test_controls_are_escaped(self):
        document = Document(title="", sentences=("a\x1b[31mb\u202ec",))
        assert text.render(document) == "a\\x1b[31mb\\u202ec"

    def test_nothing_but_a_sentence(self):
        assert text.render(Document(title="x", sentences=("All.",))) == "All."


class Page(html.parser.HTMLParser):
    """Cells of the tables of a page, and the numbers behind them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.values, self.texts = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [value for name, value in attrs if tag == "data" and name == "value"]

    def handle_data(self, data):
        self.texts.append(data)


class TestHtml:
    def test_a_document(self):
        page = Page(html_renderer.render(DOCUMENT))
        assert page.tags.count("table") == 2
        assert set(page.values) == {
            "1200", "0.25", "0.2 0.3", "0.5", "7", "1e-310", "1234.5",
        }  # fmt: skip
        assert "i" not in page.tags
        assert "a|b <i>" in page.texts
        assert "Note: mind the gap." in page.texts
        assert 'colspan="4"' in html_renderer.render(DOCUMENT)

    def test_every_number_is_behind_its_text(self):
        page = Page(html_renderer.render(DOCUMENT))
        texts = [entry for entry in page.texts if entry == "0.250"]
        assert texts
        assert page.values[page.values.index("0.25")] == repr(0.25)


class TestMarkdown:
    def test_a_document(self):
        page = markdown.render(DOCUMENT)
        assert page.startswith("# FAIL\n\n1,207 rows.\n\nA gap of 5 points.\n\n## Groups\n")
        assert "| a\\|b \\<i\\> | 7 |  |  | \\< 1e-300 |" in page
        assert "| small | too few rows: 3 of 10 |  |  |  |" in page
        assert page.endswith("## Notes\n\n- mind the gap.\n\nDetails: two-sided test.\n\nSeed: 7\n")
        rows = [line for line in page.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


class TestJson:
    def test_a_document(self):
        content = json.loads(json.dumps(json_renderer.render(DOCUMENT), allow_nan=False))
        assert content["headline"] == "FAIL"
        [table] = content["sections"][0]["tables"]
        assert [column["kind"] for column in table["columns"]] == [
            "text", "count", "value", "interval", "pvalue",
        ]  # fmt: skip
        assert table["rows"][0] == ["over 45", 1200, 0.25, [0.2, 0.3], 0.5]
        assert table["rows"][2] == ["small", {"text": "too few rows: 3 of 10"}]
        assert table["rows"][3][0] == {"text": "others", "value": "rest"}


class TestKnownTable:
    def test_limits_become_one_column(self):
        table = known_table("pairs", [{"first": "a", "low": 0.1, "high": 0.2}], level=0.9)
        assert [column.title for column in table.columns] == ["group", "90 % interval"]
        assert table.rows == (("a", (0.1, 0.2)),)

    def test_columns_without_values_are_omitted(self):
        rows = [{"group": "a", "value": NAN, "reason": None}, {"group": "b", "value": NAN}]
        assert [column.key for column in known_table("groups", rows).columns] == ["group"]

    def test_eligible_rows_are_shown_where_they_differ(self):
        same = [{"group": "a", "n_rows": 3, "n_used": 3}]
        other = [{"group": "a", "n_rows": 3, "n_used": 2}]
        assert [c.heading for c in known_table("groups", same).columns] == ["group", "rows"]
        heads = [column.heading for column in known_table("groups", other).columns]
        assert heads == ["group", "rows", "eligible rows"]

    def test_many_rows(self):
        """Of many pairs the five with the smallest p-values are shown; the others are counted."""
        pvalues = np.random.default_rng(0).random(40).tolist()
        pvalues[3] = NAN
        rows = [{"first": f"g{i}", "adjusted_pvalue": p} for i, p in enumerate(pvalues)]
        table = known_table("pairs", rows)
        shown = [row[0] for row in table.shown_rows]
        assert shown == [f"g{i}" for i in np.argsort(pvalues)[:5]]
        assert table.n_hidden == 35
        line = text.aligned_lines(table)[-1]
        assert line == '  ... and 35 more pairs: to_frame("pairs") has them all'


def test_the_table_of_an_audit_keeps_its_numbers():
    """Gap, bound and both p-values of every question are in HTML and JSON in full."""
    group, decision = list("ab") * 300, ([1] * 3 + [0] * 3) * 100
    audit = fa.audit(y_pred=decision, sensitive_features={"sex": group}, policy="parity", rng=1)
    pair = audit.questions[0].shown_pair
    bound = pair.test.least if audit.questions[0].verdict == "fail" else pair.test.most
    numbers = [pair.test.estimate, bound, pair.test.p_equal, pair.adjusted]
    assert set(map(repr, numbers)) <= set(Page(audit._repr_html_()).values)
    [table] = json_renderer.render(audit.document())["sections"][0]["tables"]
    assert [cell["value"] for cell in table["rows"][0][-4:]] == numbers


def test_printed_text_needs_no_details():
    """Text of many groups is the same without tables that it does not contain."""
    rng = np.random.default_rng(0)
    audit = fa.audit(
        rng.integers(0, 2, 900),
        rng.integers(0, 2, 900),
        sensitive_features={"sex": rng.choice(["a", "b"], 900), "age": rng.choice([1, 2], 900)},
        rng=1,
    )
    brief, whole = audit.document(brief=True), audit.document()
    assert text.render(brief) == text.render(whole)
    assert not any(section.is_detail for section in brief.sections)
    assert any(section.is_detail for section in whole.sections)


def test_all_outputs_have_the_same_words_and_numbers():
    """A result of three groups: sentence, values, intervals and notes in every output."""
    rng = np.random.default_rng(1)
    group = rng.choice(["x", "y", "z"], 300)
    result = fa.permutation_test(
        y_pred=rng.integers(0, 2, 300),
        sensitive_features=group,
        metric="selection_rate",
        n_resamples=99,
        rng=1,
    )
    document = result.document()
    page = html_renderer.render(document)
    outputs = [result.to_text(details=True), result.to_markdown().replace("\\_", "_"), page]
    for output in outputs:
        assert result.summary() in output
        for value in result.values:
            assert f"{value.value:.3f}" in output
        assert f"{result.group_sizes['x']:,}" in output
    assert {repr(value.value) for value in result.values} <= set(Page(page).values)
    assert result._repr_html_() == page
    assert str(result) == result.to_text()
    assert "Pairs of groups" not in str(result)
