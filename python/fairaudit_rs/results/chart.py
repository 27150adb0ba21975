"""Charts as Vega-Lite specifications."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


@dataclass(frozen=True)
class Chart:
    """A picture of a result: shown in notebooks, saved as JSON, SVG, PNG or a page of its own."""

    spec: dict[str, Any]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": self.spec}

    def save(self, path: str | Path) -> None:
        """Write the chart; the ending of the name says how: .json, .svg, .png or .html.

        All but .json need the package ``vl-convert-python`` (the extra ``charts``).
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".json":
            path.write_text(json.dumps(self.spec, indent=1), encoding="utf-8")
            return
        if kind not in (".svg", ".png", ".html"):
            raise ArgumentError(f"path is {str(path)!r}; accepted: .json, .svg, .png or .html")
        try:
            import vl_convert
        except ImportError:
            raise ArgumentError(
                f"path is {str(path)!r}, and vl-convert-python is not installed; accepted: .json, "
                "or install fairaudit-rs[charts]"
            ) from None
        if kind == ".png":
            path.write_bytes(vl_convert.vegalite_to_png(self.spec, scale=2))
        elif kind == ".svg":
            path.write_text(vl_convert.vegalite_to_svg(self.spec), encoding="utf-8")
        else:
            page = vl_convert.vegalite_to_html(self.spec, bundle=True)
            path.write_text(page, encoding="utf-8")
