"""A histogram: columns side by side; where intervals are unequal, their areas are the shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.publish.report.axis import Scale, draw_ticks, format_compact
from juncture.publish.report.groups import Group, combine_noise, is_only_noise, sum_groups
from juncture.publish.report.words import Labels, describe_count
from juncture.tables.layout import Vector

_HEIGHT, _TOP, _FOOT, _RIGHT = 146.0, 14.0, 22.0, 34.0
_MIN_WIDE = 0.8


def draw_histogram(
    labels: Labels,
    scale: Scale,
    groups: Sequence[Group],
    masses: Vector,
    stddevs: Vector | None,
    width: float,
) -> tuple[Markup, float]:
    """Columns for groups of adjacent values in order, and the height that they take.

    A column is as high as its share; where intervals are unequal it is as wide as they are and as
    high as its share of a unit, so that its area tells the share.
    """
    total, plot = float(masses.sum()) or 1.0, width - _RIGHT
    counts, noise = sum_groups(groups, masses), combine_noise(groups, stddevs)
    shares, pale = counts / total, is_only_noise(counts, noise)
    left, right = _place(scale, groups, plot)
    unit = None if scale.is_even else _choose_unit(scale)
    heights = shares if unit is None else shares * unit / _measure(scale, groups)
    peak, floor = float(heights.max()) or 1.0, _HEIGHT - _FOOT
    columns = []
    for index, group in enumerate(groups):
        x, wide = float(left[index]), float(right[index] - left[index])
        high, gap = (floor - _TOP) * float(heights[index]) / peak, min(1.0, wide * 0.2)
        sd = None if noise is None else float(noise[index])
        described = describe_count(float(counts[index]), float(shares[index]), sd)
        per = "" if unit is None else f"; {_format_density(float(heights[index]), unit, scale)}"
        columns.append(
            tag(
                "g",
                tag("title", f"{group.label}: {described}{per}"),
                tag("rect", x=x, y=_TOP, width=wide, height=floor - _TOP, class_="hit"),
                tag("rect", x=x, y=floor - high, width=max(_MIN_WIDE, wide - gap), height=high,
                    class_="bar"),
                class_="pale" if pale[index] else None,
            )
        )  # fmt: skip
    caption = None
    if unit is not None:
        per = f"share per {_format_unit(unit, scale)}"
        caption = tag("text", per, x=width, y=8, class_="quiet small end")
    base = tag("line", x1=0, y1=floor, x2=plot, y2=floor, class_="axis")
    drawn = [
        _draw_grid(peak, floor, plot), columns, base, caption,
        draw_ticks(labels, 0.0, plot, _HEIGHT - 7),
    ]  # fmt: skip
    return join(drawn), _HEIGHT


def _place(scale: Scale, groups: Sequence[Group], plot: float) -> tuple[Vector, Vector]:
    """Where each column begins and ends."""
    first = np.array([scale.position(group.codes[0])[0] for group in groups])
    last = np.array([scale.position(group.codes[-1])[1] for group in groups])
    return plot * first, plot * last


def _measure(scale: Scale, groups: Sequence[Group]) -> Vector:
    """How many units of the axis the values of each group cover."""
    return np.array([sum(scale.width(code) for code in group.codes) for group in groups])


def _choose_unit(scale: Scale) -> float:
    """A round width, of which no column can hold more than all records."""
    if scale.is_days:
        return 1.0
    return float(10.0 ** math.floor(math.log10(float((scale.high - scale.low).min()))))


def _format_unit(unit: float, scale: Scale) -> str:
    return "day" if scale.is_days else format_compact(unit)


def _format_density(density: float, unit: float, scale: Scale) -> str:
    return f"{100 * density:.3g}% per {_format_unit(unit, scale)}"


def _draw_grid(peak: float, floor: float, plot: float) -> Markup:
    """Grid lines at two or three round shares."""
    step = 10.0 ** math.floor(math.log10(peak))
    step = next(s for s in (step, 0.5 * step, 0.25 * step) if peak / s >= 2.0)
    step = step * math.ceil(peak / step / 4)
    lines = []
    for multiple in range(1, math.floor(peak / step + 1e-9) + 1):
        y = floor - (floor - _TOP) * multiple * step / peak
        mark = f"{100 * multiple * step:.3g}%"
        lines += [
            tag("line", x1=0, y1=y, x2=plot, y2=y, class_="grid"),
            tag("text", mark, x=plot + 5, y=y + 3, class_="quiet small"),
        ]
    return join(lines)
