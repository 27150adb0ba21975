"""What every result has in common: a sentence, a dict, a frame, a picture in a notebook."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.equality import equal
from ..data.groups import group_name, printable

if TYPE_CHECKING:
    import polars as pl


#: Version of the layout of `Result.to_dict`.
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """Base of all that a public function finds: a sentence, a dict, rows of a table."""

    #: Fields that hold one number per replicate: not a part of dicts and reprs.
    _bulky = frozenset({"null_distribution", "null_probabilities"})

    def __eq__(self, other: object) -> bool:
        """Whether another result says the same, replicate by replicate."""
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Result)
        return self.to_dict() == other.to_dict() and all(
            equal(getattr(self, name, None), getattr(other, name, None)) for name in self._bulky
        )

    def __hash__(self) -> int:
        return hash((type(self), self.summary()))

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        raise NotImplementedError

    def _remarks(self) -> tuple[str, ...]:
        """Return what a reader must know besides the sentence."""
        return ()

    def __str__(self) -> str:
        lines = [self.summary(), *(f"Note: {text}." for text in self._remarks())]
        return "\n".join(printable(line, kept="\n\t") for line in lines)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{entry.name}={_short(getattr(self, entry.name))}"
            for entry in fields(self)
            if entry.name in ("estimate", "statistic", "pvalue", "engine", "n_rows")
        )
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON; NaN and infinity become None."""
        content = {
            entry.name: to_plain(getattr(self, entry.name))
            for entry in fields(self)
            if entry.name not in self._bulky
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": type(self).__name__,
            **content,
            "summary": self.summary(),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the result as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the result as the rows of a table."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        import html

        rows = self.rows()
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_short(v))}</td>" for v in row.values()) + "</tr>"
            for row in rows
        )
        notes = "".join(f"<p>Note: {html.escape(text)}.</p>" for text in self._remarks())
        return (
            f"<div><p>{html.escape(self.summary())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}</div>"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Finding(Result):
    """Base of the results of all lenses: one estimate, and what a test says of it.

    Attributes
    ----------
    estimate : float
        What was measured.
    standard_error : float
        Its standard error; NaN with a reason among the warnings when it has none.
    statistic : float
        The test statistic.
    pvalue : float
        Valid by construction.
    confidence_interval : tuple of float
        (low, high).
    alternative : str
        ``"two-sided"``, ``"greater"`` or ``"less"``.
    n_rows : int
        Rows that took part.
    group_sizes : dict
        Rows of each group.
    seed : int
        Pass it as ``rng=`` to repeat the result bit for bit.
    engine : str
        How the null distribution was found.
    warnings : tuple of str
        What a reader must know besides the numbers.
    """

    estimate: float
    standard_error: float
    statistic: float
    pvalue: float
    confidence_interval: tuple[float, float]
    alternative: str
    n_rows: int
    group_sizes: dict[Any, int]
    seed: int
    engine: str
    warnings: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((type(self), self.seed, self.n_rows, self.engine))

    def _remarks(self) -> tuple[str, ...]:
        """Return what a reader must know besides the sentence."""
        return self.warnings


def to_plain(value: Any) -> Any:
    """Return a value that json.dumps(..., allow_nan=False) accepts."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        names = [group_name(key) for key in value]
        if len(set(names)) < len(names):
            # Labels that contain " & ": lists keep them apart.
            names = [json.dumps(to_plain(key)) for key in value]
        return {name: to_plain(entry) for name, entry in zip(names, value.values(), strict=True)}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        return {entry.name: to_plain(getattr(value, entry.name)) for entry in fields(value)}
    return value


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
