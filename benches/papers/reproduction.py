"""docs/reproduction.md: one section per lens, each between its own two marker comments."""

from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"
HEAD = """# Published experiments, run again

What the papers behind the lenses print, beside what this package gives on the same public data.
Written by `make papers`, one section per lens. Where a paper leaves something open, the section
says which choice was made and why; where the numbers differ, it says so.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write_section(lens: str, text: str, path: Path = PAGE) -> None:
    """Put the text between the markers of the lens; the rest of the page stays as it is."""
    begin, end = f"<!-- {lens}: begin -->\n", f"<!-- {lens}: end -->\n"
    page = path.read_text(encoding="utf-8") if path.exists() else HEAD
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2] if found else ""
    if not found:
        before = before.rstrip("\n") + "\n\n"
    path.write_text(f"{before}{begin}{text.strip()}\n{end}{after}", encoding="utf-8")
