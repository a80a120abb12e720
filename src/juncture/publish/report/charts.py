"""Charts as SVG: bars for few values, columns for many, heat maps for pairs.

They are drawn about as wide as a phone screen, so letters keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from juncture._util.html import Child, Markup, format_number, join, tag
from juncture.publish.report.axis import draw_ticks
from juncture.publish.report.words import Labels, format_count, format_percent, truncate
from juncture.tables.layout import Vector

WIDTH = 272.0
MAX_BARS = 16
_MAX_COLUMNS = 160
# The width of the columns; the labels of the grid lines stand to their right.
_PLOT = WIDTH - 34.0


def svg(width: float, height: float, label: str, *children: Child, class_: str = "") -> Markup:
    """A drawing that scales with the space it has, with a label for screen readers."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {format_number(width)} {format_number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=class_ or None,
    )


def draw_distribution(name: str, labels: Labels, masses: Vector) -> Markup:
    """One attribute's distribution, its values in the order of their codes."""
    shares = masses / (masses.sum() or 1.0)
    top = int(shares.argmax())
    label = (
        f"Distribution of {name} over {len(labels)} values; "
        f"the most frequent is {labels[top]} with {format_percent(shares[top])}."
    )
    draw = _draw_bars if len(labels) <= MAX_BARS else _draw_columns
    return draw(label, labels, masses, shares)


def _draw_bars(label: str, labels: Sequence[str], masses: Vector, shares: Vector) -> Markup:
    """Horizontal bars, one for each value."""
    row, left, right = 20.0 if len(labels) <= 8 else 17.0, 105.0, 42.0
    unit = (WIDTH - left - right) / (float(shares.max()) or 1.0)
    lines = []
    for index, (value, mass, share) in enumerate(zip(labels, masses, shares, strict=True)):
        y = index * row
        lines.append(
            tag(
                "g",
                tag("title", f"{value}: {format_count(mass)} records, {format_percent(share)}"),
                tag("rect", x=0, y=y, width=WIDTH, height=row, class_="hit"),
                tag("text", truncate(value, 14), x=left - 8, y=y + row / 2 + 4, class_="end"),
                tag("rect", x=left, y=y + 2.5, width=share * unit, height=row - 5, class_="bar"),
                tag("text", format_percent(share).replace("below ", "<").replace("above ", ">"),
                    x=left + share * unit + 6, y=y + row / 2 + 4, class_="quiet"),
            )
        )  # fmt: skip
    base = tag("line", x1=left, y1=0, x2=left, y2=len(labels) * row, class_="axis")
    return svg(WIDTH, len(labels) * row, label, lines, base)


def _draw_columns(label: str, labels: Labels, masses: Vector, shares: Vector) -> Markup:
    """Columns side by side; adjacent values share one where there are very many."""
    height, top, foot = 146.0, 14.0, 22.0
    groups, names = group_labels(labels, _MAX_COLUMNS)
    sums = np.add.reduceat(shares, groups[:-1])
    counts = np.add.reduceat(masses, groups[:-1])
    peak = float(sums.max()) or 1.0
    wide, floor = _PLOT / len(names), height - foot
    columns = []
    for index, (value, count, share) in enumerate(zip(names, counts, sums, strict=True)):
        high = (floor - top) * share / peak
        x, gap = index * wide, min(1.0, wide * 0.2)
        columns.append(
            tag(
                "g",
                tag("title", f"{value}: {format_count(count)} records, {format_percent(share)}"),
                tag("rect", x=x, y=top, width=wide, height=floor - top, class_="hit"),
                tag("rect", x=x, y=floor - high, width=wide - gap, height=high, class_="bar"),
            )
        )
    base = tag("line", x1=0, y1=floor, x2=_PLOT, y2=floor, class_="axis")
    return svg(
        WIDTH, height, label, _draw_grid(peak, floor, top), columns, base,
        draw_ticks(labels, 0.0, _PLOT, height - 7),
    )  # fmt: skip


def _draw_grid(peak: float, floor: float, top: float) -> Markup:
    """Grid lines at two or three round shares."""
    step = 10.0 ** math.floor(math.log10(peak))
    step = next(s for s in (step, 0.5 * step, 0.25 * step) if peak / s >= 2.0)
    step = step * math.ceil(peak / step / 4)
    lines = []
    for multiple in range(1, math.floor(peak / step + 1e-9) + 1):
        y = floor - (floor - top) * multiple * step / peak
        mark = f"{100 * multiple * step:g}%"
        lines += [
            tag("line", x1=0, y1=y, x2=_PLOT, y2=y, class_="grid"),
            tag("text", mark, x=_PLOT + 5, y=y + 3, class_="quiet small"),
        ]
    return join(lines)


def group_labels(labels: Sequence[str], max_groups: int) -> tuple[list[int], list[str]]:
    """Where groups of adjacent values begin (and the end), and the label of each group."""
    size = len(labels)
    count = math.ceil(size / math.ceil(size / max_groups))
    groups = [size * index // count for index in range(count + 1)]
    names = [
        labels[low] if high - low == 1 else f"{labels[low]} to {labels[high - 1]}"
        for low, high in pairwise(groups)
    ]
    return groups, names
