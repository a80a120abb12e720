"""The drawings of the page: two bars for each value, errors of pairs, strengths of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from juncture._util.html import Markup, join, tag
from juncture.publish.comparison import Association, Difference
from juncture.publish.report.charts import svg
from juncture.publish.report.groups import group_values, sum_groups
from juncture.publish.report.words import Labels, format_percent, shorten_all
from juncture.tables.layout import Vector

_WIDTH, _LEFT, _RIGHT, _BAR, _ROW = 272.0, 105.0, 44.0, 7.0, 20.0
_MAX_GROUPS, _LABEL = 14, 14
_SIDE, _NAMES, _MAX_NAMED = 560.0, 110.0, 45
_SCATTER, _MARGIN = 340.0, 34.0


def draw_two_bars(name: str, labels: Labels, truth: Vector, released: Vector) -> Markup:
    """For each value two bars: above the table's share, below that of the release."""
    groups = group_values(labels, truth, _MAX_GROUPS)
    shares = [sum_groups(groups, each) / (float(each.sum()) or 1.0) for each in (truth, released)]
    peak = max(float(each.max()) for each in shares) or 1.0
    unit = (_WIDTH - _LEFT - _RIGHT) / peak
    shown = shorten_all([group.label for group in groups], _LABEL)
    rows = []
    for index, group in enumerate(groups):
        y, true, other = index * _ROW, float(shares[0][index]), float(shares[1][index])
        words = f"{group.label}: {format_percent(true)} in the table, {_percent(other)} released"
        rows.append(
            tag(
                "g",
                tag("title", words),
                tag("rect", x=0, y=y, width=_WIDTH, height=_ROW, class_="hit"),
                tag("text", shown[index], x=_LEFT - 8, y=y + 13, class_="end"),
                tag("rect", x=_LEFT, y=y + 2.5, width=max(0.0, true) * unit, height=_BAR,
                    class_="true"),
                tag("rect", x=_LEFT, y=y + 2.5 + _BAR, width=max(0.0, other) * unit, height=_BAR,
                    class_="bar"),
                tag("text", _percent(other), x=_LEFT + max(true, other, 0.0) * unit + 5, y=y + 13,
                    class_="quiet small"),
            )
        )  # fmt: skip
    axis = tag("line", x1=_LEFT, y1=0, x2=_LEFT, y2=len(groups) * _ROW, class_="axis")
    label = f"The values of {name}: their shares in the table and in the release."
    return svg(_WIDTH, len(groups) * _ROW, label, rows, axis)


def _percent(share: float) -> str:
    return format_percent(max(0.0, share)).replace("below ", "<").replace("above ", ">")


def draw_pair_errors(names: Sequence[str], pairs: Sequence[Difference]) -> Markup:
    """A square for each pair of columns: the stronger its colour, the larger its error."""
    named = len(names) <= _MAX_NAMED
    left = _NAMES if named else 4.0
    cell = min(26.0, (_SIDE - left) / max(1, len(names)))
    index = {name: position for position, name in enumerate(names)}
    peak = max((pair.error for pair in pairs), default=0.0) or 1.0
    cells = []
    for pair in pairs:
        across, down = sorted(index[name] for name in pair.clique)
        words = f"{names[down]} and {names[across]}: {format_percent(pair.error)} of the records"
        cells.append(
            tag("rect", tag("title", words), x=left + across * cell, y=down * cell,
                width=cell - 1, height=cell - 1, class_="cell",
                fill_opacity=round(0.06 + 0.94 * pair.error / peak, 3))
        )  # fmt: skip
    texts = []
    if named:
        shown = shorten_all(list(names), 16)
        for position, name in enumerate(shown):
            y = position * cell + cell / 2 + 4
            texts.append(tag("text", name, x=left - 7, y=y, class_="end"))
            x = left + position * cell + cell
            texts.append(tag("text", name, x=x + 2, y=y - 1, class_="quiet small"))
    height = len(names) * cell + 4
    width = left + len(names) * cell + (_NAMES if named else 4.0)
    label = f"Errors of {len(pairs)} pairs of columns; the largest is {format_percent(peak)}."
    return svg(width, height, label, cells, join(texts))


def draw_strengths(associations: Sequence[Association]) -> Markup:
    """A point for each pair: its strength in the table across, in the release upwards."""
    side, floor = _SCATTER - _MARGIN - 8, _SCATTER - _MARGIN
    points = [
        tag(
            "circle",
            tag("title", f"{' and '.join(a.pair)}: {a.truth:.2f} in the table, {a.other:.2f}"),
            cx=_MARGIN + side * min(1.0, a.truth), cy=floor - side * min(1.0, a.other), r=4,
            class_="point",
        )
        for a in associations
    ]  # fmt: skip
    marks = []
    for tenth in (0, 5, 10):
        at, text = side * tenth / 10, f"{tenth / 10:g}"
        marks += [
            tag("line", x1=_MARGIN, y1=floor - at, x2=_MARGIN + side, y2=floor - at, class_="grid"),
            tag("text", text, x=_MARGIN - 6, y=floor - at + 4, class_="end quiet small"),
            tag("text", text, x=_MARGIN + at, y=floor + 15, class_="middle quiet small"),
        ]
    diagonal = tag("line", x1=_MARGIN, y1=floor, x2=_MARGIN + side, y2=floor - side, class_="axis")
    words = [
        tag("text", "in the table", x=_MARGIN + side, y=floor + 29, class_="end quiet small"),
        tag("text", "in the release", x=_MARGIN + 5, y=12, class_="quiet small"),
    ]
    label = f"The strength of {len(points)} pairs, in the table and in the release."
    return svg(_SCATTER, _SCATTER + 2, label, marks, diagonal, points, words)
