"""Charts as Vega-Lite specifications."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..writing import check_target, write_file, write_text

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


@dataclass(frozen=True)
class Chart:
    """A picture of a result, shown in notebooks or saved as JSON, SVG, PNG or HTML."""

    spec: dict[str, Any]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": self.spec}

    def save(self, path: str | Path) -> None:
        """Write the chart in the format of the file ending: .json, .svg, .png or .html.

        All formats but .json need the package ``vl-convert-python`` (the extra ``charts``).
        """
        kind = picture_kind("path", path)
        check_target("path", path)
        if kind == ".json":
            write_text("path", path, json.dumps(self.spec, indent=1))
            return
        import vl_convert

        if kind == ".png":
            picture = vl_convert.vegalite_to_png(self.spec, scale=2)
            write_file("path", path, lambda file: file.write(picture))
        elif kind == ".svg":
            write_text("path", path, vl_convert.vegalite_to_svg(self.spec))
        else:
            write_text("path", path, vl_convert.vegalite_to_html(self.spec, bundle=True))


def picture_kind(name: str, path: str | Path) -> str:
    """Return the ending of a path, after checking that charts can be saved in this format."""
    kind = Path(path).suffix.lower()
    if kind not in (".json", ".svg", ".png", ".html"):
        raise ArgumentError(
            f"{name} is {str(path)!r}; accepted: .json, .svg, .png or .html", argument=name
        )
    if kind != ".json" and find_spec("vl_convert") is None:
        raise ArgumentError(
            f"{name} is {str(path)!r}, which needs vl-convert-python. Save as .json, or "
            "install fairaudit-rs[charts].",
            argument=name,
        )
    return kind
