"""Kept rows as figures: medians, spreads, tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from store import Row


def of(rows: Iterable[Row], **wanted: str) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def values(rows: Iterable[Row], column: str) -> list[float]:
    """The numbers of a column, where there are any."""
    return [float(row[column]) for row in rows if row.get(column)]


def medians(rows: Iterable[Row], column: str) -> float | None:
    """The median, where there is anything to take it of."""
    found = values(rows, column)
    return statistics.median(found) if found else None


def number(value: float | None) -> float:
    """A number for a plot: not a number where there is none."""
    return float("nan") if value is None else value


def spread(rows: Sequence[Row], column: str) -> str:
    """The median, and how far trials lie apart."""
    found = values(rows, column)
    if not found:
        return "cannot run" if any(row.get("reason") for row in rows) else ""
    middle = statistics.median(found)
    if len(found) == 1:
        return f"{middle:.4g}"
    return f"{middle:.4g} ({min(found):.4g} to {max(found):.4g})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; everything but the first column to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    lines += [f"| {' | '.join('' if c is None else str(c) for c in row)} |" for row in rows]
    return "\n".join(lines)
