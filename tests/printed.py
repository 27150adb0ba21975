"""Printed audits, without parts that differ between ways to read the same data."""

_SOURCE = ("Data: ", "Read: ", "Columns: ", "Favourable: ")


def without_source(text):
    """The text of an audit without its lines about the file and its columns."""
    return "".join(line for line in text.splitlines(True) if not line.startswith(_SOURCE))


def content(audit):
    """The dict of an audit without its request, and the request's lines in its summary."""
    kept = {name: value for name, value in audit.items() if name != "request"}
    return kept | {"summary": without_source(audit["summary"])}
