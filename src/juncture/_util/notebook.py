"""How objects show in a notebook: small pieces of HTML that suit any theme.

They use only the notebook's own text colour, more or less opaque, so they can be read on light and
dark backgrounds. All functions take plain data: this module ranks below the objects that it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture._util.html import Child, Markup, join, tag
from juncture._util.sparkline import bar_heights
from juncture._util.text import count_noun

Values = NDArray[np.float64]

_MAX_ROWS, _MAX_COLUMNS, _MAX_LINES, _MAX_BARS = 12, 10, 20, 48
_BOX = "font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto"
_CELL = "text-align:right;padding:2px 10px;border:0;font-variant-numeric:tabular-nums"
_NAME = "text-align:left;white-space:nowrap;padding:2px 10px 2px 0;border:0;font-weight:600"
_TABLE = "border-collapse:collapse;margin:0;color:inherit;font-size:inherit"
_QUIET = "opacity:.75"
_LINE = "border-bottom:1px solid;border-color:currentColor"


class Line(NamedTuple):
    """An attribute of a model: its name, its size, and the masses of its values."""

    name: str
    size: int
    masses: Values


def table_html(
    attributes: Sequence[str], values: Values, labels: Sequence[Sequence[object]] | None = None
) -> str:
    """A factor: a number, a column, or rows and columns; the first of them where there are many.

    `labels` are the names of each attribute's codes, where they are known.
    """
    names = labels or [range(size) for size in values.shape]
    sizes = " × ".join(
        f"{name} ({size})" for name, size in zip(attributes, values.shape, strict=True)
    )
    title = f"Factor over {sizes}" if attributes else "Factor without attributes"
    if values.ndim == 0:
        return _box(title, tag("div", format_numbers(values)[0]))
    if values.ndim == 1:
        heads, rows = ["value"], values[:_MAX_ROWS, None]
    else:
        flat = values.reshape(-1, values.shape[-1])[:_MAX_ROWS, :_MAX_COLUMNS]
        heads, rows = [_format_value(name) for name in names[-1][: flat.shape[1]]], flat
        if values.shape[-1] > _MAX_COLUMNS:
            heads.append("…")
    return _box(title, _grid(attributes, names, heads, rows), _rest_note(values))


def _grid(
    attributes: Sequence[str],
    labels: Sequence[Sequence[object]],
    heads: Sequence[str],
    rows: Values,
) -> Markup:
    """The rows with their codes; the last of several attributes runs across."""
    down = attributes[:-1] if len(attributes) > 1 else attributes
    sizes = [len(names) for names in labels[: len(down)]]
    last = f"{down[-1]} ↓ {attributes[-1]} →" if len(attributes) > 1 else down[-1]
    top = tag(
        "tr",
        [tag("th", name, style=f"{_NAME};{_LINE}") for name in (*down[:-1], last)],
        [tag("th", head, style=f"{_CELL};{_LINE}") for head in heads],
    )
    lines, texts, wide = [], format_numbers(rows), rows.shape[1]
    for index in range(len(rows)):
        codes = np.unravel_index(index, sizes)
        words = [_format_value(names[int(c)]) for names, c in zip(labels, codes, strict=False)]
        row = texts[index * wide : (index + 1) * wide]
        cells = [tag("td", value, style=_CELL) for value in row]
        lines.append(tag("tr", [tag("td", word, style=_NAME) for word in words], cells))
    return tag("table", tag("thead", top), tag("tbody", lines), style=_TABLE)


def _rest_note(values: Values) -> str | None:
    shown = min(_MAX_ROWS, values.size if values.ndim == 1 else values.size // values.shape[-1])
    across = 1 if values.ndim == 1 else min(_MAX_COLUMNS, values.shape[-1])
    left = values.size - shown * across
    return f"… and {left:,} cells more" if left else None


def format_numbers(values: Values) -> list[str]:
    """Numbers as texts, all with the same number of decimals if their size is ordinary."""
    flat = values.reshape(-1)
    finite = flat[np.isfinite(flat)]
    top = float(np.abs(finite).max(initial=0.0))
    if (finite == np.round(finite)).all() and top < 1e15:
        form = ",.0f"
    else:
        form = ",.1f" if 1e3 <= top < 1e12 else ".3f" if 0.1 <= top < 1e3 else ".4g"
    return [f"{value:{form}}" if np.isfinite(value) else "−∞" for value in flat]


def plan_html(description: str) -> str:
    """A plan: its headline, and the text of its drawing."""
    headline, *rest = description.split("\n")
    drawing = tag("pre", "\n".join(rest), style="margin:4px 0;background:none;color:inherit")
    return _box(headline, drawing)


def model_html(title: str, lines: Sequence[Line], n_attributes: int) -> str:
    """A model: a line for each attribute, with the shape of its distribution."""
    rows = [
        tag(
            "tr",
            tag("td", line.name, style=_NAME),
            tag("td", f"{line.size:,}", style=_CELL),
            tag("td", _sparkline(line), style="padding:2px 0;border:0;text-align:left"),
        )
        for line in lines[:_MAX_LINES]
    ]
    heads = zip(("attribute", "values", "distribution"), (_NAME, _CELL, _NAME), strict=True)
    top = tag("tr", [tag("th", head, style=f"{style};{_LINE}") for head, style in heads])
    table = tag("table", tag("thead", top), tag("tbody", rows), style=_TABLE)
    left = n_attributes - len(rows)
    return _box(title, table, f"… and {count_noun(left, 'attribute')} more" if left else None)


def max_lines() -> int:
    """How many attributes of a model, or columns of a table, are shown."""
    return _MAX_LINES


def _sparkline(line: Line) -> Markup:
    """A distribution as a small drawing."""
    heights = 18.0 * bar_heights(line.masses, _MAX_BARS)
    wide = 144.0 / len(heights)
    bars = [
        tag("rect", x=index * wide, y=18.0 - high, width=wide * 0.85, height=high)
        for index, high in enumerate(heights)
    ]
    return tag(
        "svg",
        bars,
        viewBox="0 0 144 18",
        width=144,
        height=18,
        role="img",
        aria_label=f"distribution of {line.name}",
        fill="currentColor",
        style="opacity:.75;vertical-align:middle",
    )


def rows_html(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], n_rows: int
) -> str:
    """A table of values: its first columns and rows. `n_rows` is how many rows it has in all."""
    heads = columns[:_MAX_LINES]
    top = tag("tr", [tag("th", name, style=f"{_CELL};{_LINE}") for name in heads])
    lines = [
        tag("tr", [tag("td", _format_value(value), style=_CELL) for value in row[: len(heads)]])
        for row in rows[:_MAX_LINES]
    ]
    table = tag("table", tag("thead", top), tag("tbody", lines), style=_TABLE)
    beyond = {"column": len(columns) - len(heads), "row": n_rows - len(lines)}
    left = " and ".join(count_noun(n, noun) for noun, n in beyond.items() if n)
    return _box(title, table, f"… {left} more" if left else None)


def _format_value(value: object) -> str:
    """A value as people write it: fractions short, a missing value as NULL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def list_html(title: str, points: Sequence[tuple[str, str]]) -> str:
    """A few facts under a title."""
    rows = [
        tag("tr", tag("td", name, style=_NAME), tag("td", value, style="text-align:left;border:0"))
        for name, value in points
    ]
    return _box(title, tag("table", tag("tbody", rows), style=_TABLE))


def _box(title: str, content: Child, more: str | None = None) -> str:
    end = None if more is None else tag("div", more, style=_QUIET)
    parts = join([tag("div", title, style="font-weight:600;margin-bottom:4px"), content, end])
    return str(tag("div", parts, style=_BOX))
