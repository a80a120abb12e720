"""A pair of attributes as a heat map: how one is distributed for each value of the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.publish.report.axis import draw_ticks
from juncture.publish.report.charts import group_labels, svg
from juncture.publish.report.words import Labels, format_count, format_percent, truncate
from juncture.tables.layout import Vector

WIDTH = 340.0
_MAX_GROUPS, _LEFT, _NAMED = 24, 106.0, 16


def draw_heat_map(rows: tuple[str, Labels], columns: tuple[str, Labels], table: Vector) -> Markup:
    """A chart of a table: the stronger a cell's colour, the larger its share of the row.

    `rows` and `columns` are the names of the attributes with the labels of their values.
    """
    row_ends, row_names = group_labels(rows[1], _MAX_GROUPS)
    column_ends, column_names = group_labels(columns[1], _MAX_GROUPS)
    masses = np.add.reduceat(np.add.reduceat(table, row_ends[:-1], 0), column_ends[:-1], 1)
    sums = masses.sum(axis=1, keepdims=True)
    shares = np.divide(masses, sums, out=np.zeros_like(masses), where=sums > 0)
    peak = float(shares.max()) or 1.0
    high = min(22.0, max(9.0, 200.0 / len(row_names)))
    floor = 4.0 + high * len(row_names)
    foot = _draw_column_labels(column_names, columns[1], floor)
    largest = "; ".join(_describe_largest(row_names, column_names, masses, shares))
    label = (
        f"Heat map: the distribution of {columns[0]} for each value of {rows[0]}. "
        f"Largest cells: {largest}."
    )
    cells = _draw_cells(row_names, column_names, masses, shares, peak, high)
    bottom = floor + foot[1]
    return svg(
        WIDTH, bottom + 22, label,
        tag("rect", x=_LEFT, y=4, width=WIDTH - _LEFT, height=floor - 4, class_="ground"),
        cells, _draw_row_labels(row_names, high), foot[0],
        _draw_legend(peak, bottom + 8),
    )  # fmt: skip


def _draw_cells(
    rows: Sequence[str], columns: Sequence[str], masses: Vector, shares: Vector,
    peak: float, high: float,
) -> Markup:  # fmt: skip
    wide, rects = (WIDTH - _LEFT) / len(columns), []
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            title = (
                f"{row} · {column}: {format_count(masses[i, j])} records, "
                f"{format_percent(shares[i, j])} of {row}"
            )
            rects.append(
                tag(
                    "rect", tag("title", title),
                    x=_LEFT + j * wide, y=4 + i * high, width=wide, height=high,
                    fill_opacity=shade(shares[i, j] / peak), class_="cell",
                )
            )  # fmt: skip
    return join(rects)


def shade(share: float) -> float:
    """The opacity of a cell: the square root shows small shares too; the legend uses it as well."""
    return round(math.sqrt(max(0.0, share)), 2)


def _draw_row_labels(names: Sequence[str], high: float) -> Markup:
    every = 1 if high >= 12.0 else 2
    shown = range(0, len(names), every)
    return join(
        tag("text", truncate(names[i], 15), x=_LEFT - 7, y=4 + (i + 0.5) * high + 4, class_="end")
        for i in shown
    )


def _draw_column_labels(names: Sequence[str], values: Labels, floor: float) -> tuple[Markup, float]:
    """Labels under the columns, slanted where they would not fit, and the height they take."""
    if len(names) > _NAMED or len(names) != len(values):
        return draw_ticks(values, _LEFT, WIDTH, floor + 15), 20.0
    wide = (WIDTH - _LEFT) / len(names)
    fits = int(wide / 6.6)
    if all(len(name) <= fits for name in names):
        level = [
            tag("text", name, x=_LEFT + (j + 0.5) * wide, y=floor + 15, class_="quiet middle")
            for j, name in enumerate(names)
        ]
        return join(level), 20.0
    slanted, slope = [], 38 if wide >= 20.0 else 62
    for j, name in enumerate(names):
        x, y = _LEFT + (j + 0.5) * wide + 4, floor + 12
        turn = f"rotate({-slope} {x:.1f} {y:.1f})"
        label = tag("text", truncate(name, 15), x=x, y=y, class_="quiet end", transform=turn)
        slanted.append(label)
    longest = max(min(len(name), 15) for name in names)
    return join(slanted), 16.0 + 6.4 * math.sin(math.radians(slope)) * longest


def _draw_legend(peak: float, y: float) -> Markup:
    swatches = [
        tag("rect", x=_LEFT + index * 18, y=y, width=18, height=10, class_="cell",
            fill_opacity=shade(index / 5))
        for index in range(6)
    ]  # fmt: skip
    return join(
        [
            tag("text", "0%", x=_LEFT - 7, y=y + 9, class_="quiet end small"),
            swatches,
            tag("rect", x=_LEFT, y=y, width=108, height=10, class_="frame"),
            tag(
                "text",
                f"{format_percent(peak)} of a row",
                x=_LEFT + 115,
                y=y + 9,
                class_="quiet small",
            ),
        ]
    )


def _describe_largest(
    rows: Sequence[str], columns: Sequence[str], masses: Vector, shares: Vector
) -> list[str]:
    """The three cells with the most records, in words."""
    indices = np.argsort(-masses, axis=None, kind="stable")[:3]
    cells = [divmod(int(index), masses.shape[1]) for index in indices]
    return [f"{format_percent(shares[i, j])} of {rows[i]} are {columns[j]}" for i, j in cells]
