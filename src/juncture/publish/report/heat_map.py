"""A pair of attributes as a heat map: how one is distributed for each value of the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from juncture._util.html import Markup, join, tag
from juncture.publish.report.axis import draw_text, draw_ticks
from juncture.publish.report.charts import svg
from juncture.publish.report.groups import (
    Group,
    combine_noise,
    group_values,
    is_only_noise,
    is_ordered,
    sum_groups,
)
from juncture.publish.report.words import (
    Labels,
    describe_count,
    format_percent,
    shorten_all,
    truncate,
)
from juncture.tables.layout import Vector

WIDTH = 340.0
_MAX_GROUPS, _LEFT, _NAMED, _LABEL, _GAP = 24, 106.0, 16, 15, 5.0


def draw_heat_map(
    rows: tuple[str, Labels],
    columns: tuple[str, Labels],
    table: Vector,
    *,
    stddevs: Vector | None = None,
    row_stddevs: Vector | None = None,
) -> Markup:
    """A chart of a table: the stronger a cell's colour, the larger its share of the row.

    - `rows` and `columns`: the names of the attributes with the labels of their values.
    - `stddevs`: the noise of every cell, where it is known.
    - `row_stddevs`: the noise of the sum of every row, where it is known. A row that may hold
      nothing but noise is pale.
    """
    across, down = find_heat_groups(rows[1], columns[1], table)
    masses = sum_groups(down, sum_groups(across, table).T).T
    sums = masses.sum(axis=1, keepdims=True)
    shares = np.divide(masses, sums, out=np.zeros_like(masses), where=sums > 0)
    cell_noise = combine_noise(across, stddevs)
    if cell_noise is not None:
        noise = combine_noise(down, cell_noise.T)
        cell_noise = None if noise is None else noise.T
    pale = is_only_noise(sums[:, 0], combine_noise(across, row_stddevs))
    if cell_noise is not None:
        pale |= is_only_noise(masses, cell_noise).all(axis=1)
    grid = _Grid(across, down, masses, shares, cell_noise, pale)
    foot = _draw_column_labels(grid, columns[1])
    largest = "; ".join(_describe_largest(grid))
    label = (
        f"Heat map: the distribution of {columns[0]} for each value of {rows[0]}. "
        f"Largest cells: {largest}."
    )
    bottom = grid.floor + foot[1]
    return svg(
        WIDTH, bottom + 22, label,
        grid.draw_ground(), grid.draw_cells(), _draw_row_labels(grid), foot[0],
        _draw_legend(grid.peak, bottom + 8),
    )  # fmt: skip


def find_heat_groups(
    rows: Labels, columns: Labels, table: Vector
) -> tuple[list[Group], list[Group]]:
    """The values that share a row, and those that share a column."""
    down = group_values(columns, table.sum(axis=0), _max_groups(columns))
    return group_values(rows, table.sum(axis=1), _max_groups(rows)), down


def _max_groups(labels: Labels) -> int:
    return _MAX_GROUPS if is_ordered(labels.coding) else _NAMED


class _Grid:
    """The cells of a heat map, and where they go; values apart from an axis after a gap."""

    def __init__(
        self, across: Sequence[Group], down: Sequence[Group], masses: Vector, shares: Vector,
        stddevs: Vector | None, pale: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        self.across, self.down, self.masses, self.shares = across, down, masses, shares
        self._stddevs, self.pale = stddevs, pale
        self.peak = float(shares[~pale].max(initial=0.0)) or float(shares.max()) or 1.0
        self.high = min(22.0, max(12.0, 200.0 / len(across)))
        self._gaps = [_has_gap(groups) for groups in (across, down)]
        self.wide = (WIDTH - _LEFT - _GAP * self._gaps[1]) / len(down)
        self.floor = 4.0 + self.high * len(across) + _GAP * self._gaps[0]

    def x(self, j: int) -> float:
        """The left edge of a column."""
        return _LEFT + j * self.wide + _GAP * (self._gaps[1] and self.down[j].apart)

    def y(self, i: int) -> float:
        """The upper edge of a row."""
        return 4.0 + i * self.high + _GAP * (self._gaps[0] and self.across[i].apart)

    @property
    def axis_end(self) -> float:
        """The right edge of the last column on the axis."""
        return _LEFT + self.wide * sum(not group.apart for group in self.down)

    def draw_ground(self) -> Markup:
        """What the cells lie on."""
        return tag(
            "rect", x=_LEFT, y=4, width=WIDTH - _LEFT, height=self.floor - 4, class_="ground"
        )

    def draw_cells(self) -> Markup:
        """All cells, a group for each row."""
        return join(
            tag(
                "g",
                [self._draw_cell(i, j) for j in range(len(self.down))],
                class_="pale" if self.pale[i] else None,
            )
            for i in range(len(self.across))
        )

    def _draw_cell(self, i: int, j: int) -> Markup:
        row, column = self.across[i].label, self.down[j].label
        noise = None if self._stddevs is None else float(self._stddevs[i, j])
        share = float(self.shares[i, j])
        described = describe_count(float(self.masses[i, j]), share, noise)
        only = "; this row may be nothing but noise" if self.pale[i] else ""
        return tag(
            "rect", tag("title", f"{row} · {column}: {described} of {row}{only}"),
            x=self.x(j), y=self.y(i), width=self.wide, height=self.high,
            fill_opacity=shade(min(1.0, share / self.peak)) * (0.3 if self.pale[i] else 1.0),
            class_="cell",
        )  # fmt: skip


def _has_gap(groups: Sequence[Group]) -> bool:
    return len({group.apart for group in groups}) == 2


def shade(share: float) -> float:
    """The opacity of a cell: the square root shows small shares too; the legend uses it as well."""
    return round(math.sqrt(max(0.0, share)), 2)


def _draw_row_labels(grid: _Grid) -> Markup:
    names = [group.label for group in grid.across]
    return join(
        draw_text(
            shown, name, x=_LEFT - 7, y=grid.y(i) + 0.5 * grid.high + 4,
            class_="end quiet" if grid.pale[i] or grid.across[i].apart else "end",
        )
        for i, (name, shown) in enumerate(zip(names, shorten_all(names, _LABEL), strict=True))
    )  # fmt: skip


def _draw_column_labels(grid: _Grid, values: Labels) -> tuple[Markup, float]:
    """Labels under the columns, slanted where they would not fit, and the height they take."""
    names, floor, wide = [group.label for group in grid.down], grid.floor, grid.wide
    if _has_ticks(grid.down):
        ticks = draw_ticks(values, _LEFT, grid.axis_end, floor + 15)
        apart = " · ".join(group.label for group in grid.down if group.apart)
        if not apart:
            return ticks, 20.0
        shown = truncate(apart, 36)
        below = draw_text(shown, apart, x=WIDTH, y=floor + 29, class_="quiet end")
        return join([ticks, below]), 34.0
    fits = int(wide / 6.6)
    if all(len(name) <= fits for name in names):
        level = [
            tag("text", name, x=grid.x(j) + 0.5 * wide, y=floor + 15, class_="quiet middle")
            for j, name in enumerate(names)
        ]
        return join(level), 20.0
    slope = 38 if wide >= 20.0 else 62
    short = shorten_all(names, _LABEL)
    slanted = [_draw_slanted(grid, j, names[j], short[j], slope) for j in range(len(names))]
    longest = max(map(len, short))
    return join(slanted), 16.0 + 6.4 * math.sin(math.radians(slope)) * longest


def _has_ticks(groups: Sequence[Group]) -> bool:
    """Whether columns are so many that only some of them are labelled."""
    axis = [group for group in groups if not group.apart]
    return len(axis) > _NAMED or any(len(g.codes) > 1 and " to " in g.label for g in axis)


def _draw_slanted(grid: _Grid, j: int, full: str, shown: str, slope: int) -> Markup:
    x, y = grid.x(j) + 0.5 * grid.wide + 4, grid.floor + 12
    turn = f"rotate({-slope} {x:.1f} {y:.1f})"
    return draw_text(shown, full, x=x, y=y, class_="quiet end", transform=turn)


def list_shortened_cells(rows: Labels, columns: Labels, table: Vector) -> list[tuple[str, str]]:
    """The labels that a heat map shows cut, each with its full text."""
    across, down = find_heat_groups(rows, columns, table)
    shown = [group.label for group in across], [group.label for group in down]
    kept = [shown[0], [] if _has_ticks(down) else shown[1]]
    pairs = [pair for names in kept for pair in zip(shorten_all(names, _LABEL), names, strict=True)]
    return [(short, name) for short, name in dict.fromkeys(pairs) if short != name]


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


def _describe_largest(grid: _Grid) -> list[str]:
    """The three cells with the most records, in words."""
    indices = np.argsort(-grid.masses, axis=None, kind="stable")[:3]
    cells = [divmod(int(index), grid.masses.shape[1]) for index in indices]
    return [
        f"{format_percent(grid.shares[i, j])} of {grid.across[i].label} are {grid.down[j].label}"
        for i, j in cells
    ]
