"""Charts of one attribute as SVG: bars for few values and for categories, a histogram for others.

They are drawn about as wide as a phone screen, so letters keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from juncture._util.html import Child, Markup, format_number, join, tag
from juncture.publish.report.axis import Scale, find_scale
from juncture.publish.report.groups import (
    Group,
    combine_noise,
    group_values,
    is_only_noise,
    sum_groups,
)
from juncture.publish.report.histogram import draw_histogram
from juncture.publish.report.words import (
    Labels,
    describe_count,
    format_percent,
    shorten_all,
)
from juncture.tables.layout import Vector

WIDTH = 272.0
MAX_BARS = 16
_MAX_COLUMNS = 160
_LABEL, _LEFT, _RIGHT, _ROW, _GAP = 14, 105.0, 42.0, 17.0, 9.0


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


def draw_distribution(
    name: str, labels: Labels, masses: Vector, stddevs: Vector | None = None
) -> Markup:
    """One attribute's distribution.

    - `labels`: of its values, in the order of their codes.
    - `masses`: the records of each.
    - `stddevs`: the noise of each, where it is known; what may be noise only is pale.
    """
    shares = masses / (masses.sum() or 1.0)
    top = int(shares.argmax())
    label = (
        f"Distribution of {name} over {len(labels)} values; "
        f"the most frequent is {labels[top]} with {format_percent(shares[top])}."
    )
    scale = find_scale(labels)
    if scale is None or _is_short(scale):
        groups = group_values(labels, masses, MAX_BARS)
        rows = _Rows(groups, masses, stddevs)
        row = 20.0 if len(groups) <= 8 else _ROW
        return svg(WIDTH, rows.height(row), label, rows.draw(0.0, row, rows.peak))
    groups = group_values(labels, masses, _MAX_COLUMNS)
    axis, apart = [g for g in groups if not g.apart], [g for g in groups if g.apart]
    drawn, floor = draw_histogram(labels, scale, axis, masses, stddevs, WIDTH)
    if not apart:
        return svg(WIDTH, floor, label, drawn)
    rows = _Rows(apart, masses, stddevs)
    # The bars beside an axis are as long as their share of the whole width.
    beside = rows.draw(floor + 4.0, _ROW, 1.0, track=True)
    return svg(WIDTH, floor + 4.0 + rows.height(_ROW), label, drawn, beside)


def has_bars(labels: Labels) -> bool:
    """Whether an attribute is drawn as bars with labels."""
    scale = find_scale(labels)
    return scale is None or _is_short(scale)


def _is_short(scale: Scale) -> bool:
    return scale.is_even and scale.size <= MAX_BARS


class _Rows:
    """Horizontal bars, one for each group; those apart from the axis after a gap."""

    def __init__(self, groups: Sequence[Group], masses: Vector, stddevs: Vector | None) -> None:
        self._groups = groups
        self._counts = sum_groups(groups, masses)
        self._noise = combine_noise(groups, stddevs)
        self._shares = self._counts / (float(masses.sum()) or 1.0)
        self._gaps = [int(g.apart and any(not h.apart for h in groups)) for g in groups]

    @property
    def peak(self) -> float:
        """The largest share."""
        return float(self._shares.max()) or 1.0

    def height(self, row: float) -> float:
        """The height of all rows."""
        return len(self._groups) * row + (_GAP if any(self._gaps) else 0.0)

    def draw(self, top: float, row: float, whole: float, *, track: bool = False) -> Markup:
        """The rows from the top on; a bar of the whole is as long as there is room."""
        unit = (WIDTH - _LEFT - _RIGHT) / whole
        shown = shorten_all([group.label for group in self._groups], _LABEL)
        pale = is_only_noise(self._counts, self._noise)
        lines = []
        for index, (group, share) in enumerate(zip(self._groups, self._shares, strict=True)):
            y = top + index * row + _GAP * self._gaps[index]
            noise = None if self._noise is None else float(self._noise[index])
            described = describe_count(float(self._counts[index]), float(share), noise)
            lines.append(
                tag(
                    "g",
                    tag("title", f"{group.label}: {described}"),
                    tag("rect", x=0, y=y, width=WIDTH, height=row, class_="hit"),
                    tag("text", shown[index], x=_LEFT - 8, y=y + row / 2 + 4,
                        class_="end quiet" if pale[index] or group.apart else "end"),
                    tag("rect", x=_LEFT, y=y + 2.5, width=whole * unit, height=row - 5,
                        class_="track") if track else None,
                    tag("rect", x=_LEFT, y=y + 2.5, width=share * unit, height=row - 5,
                        class_="bar"),
                    tag("text", format_percent(share).replace("below ", "<").replace("above ", ">"),
                        x=_LEFT + (whole if track else share) * unit + 6, y=y + row / 2 + 4,
                        class_="quiet"),
                    class_=_join_classes(pale=pale[index], apart=group.apart),
                )
            )  # fmt: skip
        return join([lines, self._draw_base(top, row)])

    def _draw_base(self, top: float, row: float) -> Markup:
        n_axis = sum(not group.apart for group in self._groups)
        foot = top + self.height(row)
        ends = [(top, top + n_axis * row)] if n_axis else []
        if n_axis < len(self._groups):
            ends.append((foot - (len(self._groups) - n_axis) * row, foot))
        return join(tag("line", x1=_LEFT, y1=y1, x2=_LEFT, y2=y2, class_="axis") for y1, y2 in ends)


def _join_classes(**kinds: bool) -> str | None:
    return " ".join(name for name, holds in kinds.items() if holds) or None


def list_shortened(groups: Iterable[Group]) -> list[tuple[str, str]]:
    """The labels of bars that are cut, each with its full text."""
    labels = [group.label for group in groups]
    pairs = zip(shorten_all(labels, _LABEL), labels, strict=True)
    return [(short, label) for short, label in pairs if short != label]


def list_shortened_bars(labels: Labels, masses: Vector) -> list[tuple[str, str]]:
    """The labels that a distribution shows cut, each with its full text."""
    bars = has_bars(labels)
    groups = group_values(labels, masses, MAX_BARS if bars else _MAX_COLUMNS)
    return list_shortened(g for g in groups if g.apart or bars)
