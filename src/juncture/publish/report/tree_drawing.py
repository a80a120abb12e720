"""The junction tree of a model as a drawing, and the same as a table.

A small tree is drawn as boxes in layers; on narrow screens, and where there are many cliques, as an
outline with a line for each clique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from juncture._util.html import Markup, format_number, join, tag
from juncture._util.text import count_noun
from juncture.engine.plan import Node, Plan
from juncture.publish.report.charts import svg
from juncture.publish.report.tables import fold, render_table
from juncture.publish.report.tree_layout import Corner, arrange_boxes, arrange_outline, children_of
from juncture.publish.report.words import format_large, join_names, shorten_all

_BOX, _GAP, _LEVEL, _LINE = 190.0, 20.0, 34.0, 14.0
_BOLD, _SMALL = 7.2, 5.9
_MAX_WIDTH, _MAX_BOXES = 840.0, 24
_LANE, _OUTLINE = 16.0, 330.0
# An outline of more cliques scrolls in its own box; on paper, it is as long as it is.
_MAX_OPEN = 60


def draw_tree(plan: Plan) -> Markup:
    """A drawing for wide screens, one for narrow screens, and a table that says the same."""
    parents = [node.parent for node in plan.nodes]
    if not parents:
        return tag(
            "p", "Nothing was measured, so there is no tree: all records are equally likely."
        )
    boxes = _draw_boxes(plan, parents) if len(parents) <= _MAX_BOXES else None
    lines = tag(
        "div",
        _draw_outline(plan, parents),
        class_="tree outline"
        + (" narrow" if boxes else "")
        + (" long" if len(parents) > _MAX_OPEN else ""),
        tabindex="0",
        role="region",
        aria_label="Outline of the junction tree",
    )
    return join([boxes, lines, fold("The tree as a table", _render_tree_table(plan))])


def describe_tree(plan: Plan) -> str:
    """The tree in a sentence, for screen readers."""
    n_parts = sum(node.parent is None for node in plan.nodes)
    return (
        f"Junction tree of {count_noun(len(plan.nodes), 'clique')} in "
        f"{count_noun(n_parts, 'part')}; the largest clique is {join_names(plan.largest_clique)}."
    )


def _draw_boxes(plan: Plan, parents: Sequence[int | None]) -> Markup | None:
    """Boxes in layers, or None if they do not fit on a page."""
    room = _BOX - 20.0
    short = _shorten_names(plan, _BOLD, room), _shorten_names(plan, _SMALL, room)
    texts = [_wrap(node, *short) for node in plan.nodes]
    heights = [22.0 + _LINE * len(lines) for lines in texts]
    corners, width, height = arrange_boxes(parents, heights, width=_BOX, gap=_GAP, level=_LEVEL)
    if width > _MAX_WIDTH:
        return None
    edges = [
        _draw_edge(node, corners[node.parent], heights[node.parent], corners[child])
        for child, node in enumerate(plan.nodes)
        if node.parent is not None
    ]
    specs = zip(plan.nodes, texts, corners, heights, strict=True)
    boxes = [_draw_box(plan, *spec) for spec in specs]
    drawn = tag("g", edges, boxes, transform="translate(1 1)")
    picture = svg(width + 2, height + 2, describe_tree(plan), drawn)
    return tag(
        "div", picture, class_="tree wide", tabindex="0", role="region", aria_label="Junction tree"
    )


def _wrap(
    node: Node, bold: Mapping[str, str], small: Mapping[str, str], room: float = _BOX - 20.0
) -> list[tuple[str, str]]:
    """The lines of a clique and their classes: attributes that are new here, then shared ones."""
    shared = set(node.separator)
    new = [name for name in node.clique if name not in shared]
    lines = [(line, "strong") for line in _break_lines(new, _BOLD, room, bold)]
    below = [(line, "quiet small") for line in _break_lines(node.separator, _SMALL, room, small)]
    return (lines or [("(nothing new)", "quiet")]) + below


def _break_lines(
    names: Sequence[str], letter: float, width: float, short: Mapping[str, str]
) -> list[str]:
    """Names with commas, in lines that fit into a width."""
    max_letters, lines = int(width / letter), list[str]()
    for index, name in enumerate(names):
        word = short[name] + ("," if index + 1 < len(names) else "")
        if lines and len(lines[-1]) + 1 + len(word) <= max_letters:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def _shorten_names(plan: Plan, letter: float, width: float) -> dict[str, str]:
    """The names of all attributes, so that each fits into a width and differs from the others."""
    names = list(plan.domain)
    return dict(zip(names, shorten_all(names, int(width / letter) - 1), strict=True))


def _draw_box(
    plan: Plan, node: Node, lines: Sequence[tuple[str, str]], corner: Corner, height: float
) -> Markup:
    first = next((i for i, (_, kind) in enumerate(lines) if kind == "quiet small"), len(lines))
    drops = accumulate(
        [19.0] + [_LINE + (3.0 if i + 1 == first else 0.0) for i in range(len(lines))]
    )
    written = [
        tag("text", line, x=corner.x + 11, y=corner.y + drop, class_=kind)
        for (line, kind), drop in zip(lines, drops, strict=False)
    ]
    kind = "box" if node.parent is not None else "box root"
    return tag(
        "g",
        tag("title", _title(plan, node)),
        tag("rect", x=corner.x, y=corner.y, width=_BOX, height=height, rx=7, class_=kind),
        written,
    )


def _draw_edge(node: Node, above: Corner, height: float, below: Corner) -> Markup:
    """A curve from parent to child with the number of shared attributes on it."""
    x1, y1 = above.x + _BOX / 2, above.y + height
    x2, y2 = below.x + _BOX / 2, below.y
    middle = y2 - _LEVEL / 2
    numbers = [x1, y1, x1, middle, x2, middle, x2, y2]
    a, b, c, d, e, f, g, h = map(format_number, numbers)
    return tag(
        "g",
        tag("title", f"shared: {', '.join(node.separator)}"),
        tag("path", d=f"M{a} {b}C{c} {d} {e} {f} {g} {h}", class_="edge"),
    )


def _title(plan: Plan, node: Node) -> str:
    cells = format_large(plan.domain.size_of(node.clique))
    hosted = count_noun(len(node.measured), "measured clique")
    return f"{', '.join(node.clique)}: {cells} cells, holds {hosted}"


def _draw_outline(plan: Plan, parents: Sequence[int | None]) -> Markup:
    rows = arrange_outline(parents)
    indent = 22.0 + _LANE * max(row.lane for row in rows)
    room = max(80.0, _OUTLINE - indent)
    short = _shorten_names(plan, _BOLD, room), _shorten_names(plan, _SMALL, room)
    texts = [_list_lines(plan.nodes[row.node], *short, room) for row in rows]
    tops = list(accumulate([_LINE * len(lines) + 12.0 for lines in texts], initial=15.0))
    lines, marks = [], []
    for row, text, y in zip(rows, texts, tops, strict=False):
        x = 8 + _LANE * row.lane
        if row.parent is not None:
            lines.append(_draw_branch(8 + _LANE * rows[row.parent].lane, tops[row.parent], x, y))
        marks.append(_draw_mark(plan, plan.nodes[row.node], x, y, indent, text))
    return svg(_OUTLINE, tops[-1], describe_tree(plan), lines, marks)


def _list_lines(
    node: Node, bold: Mapping[str, str], small: Mapping[str, str], room: float
) -> list[tuple[str, str]]:
    """The lines of a clique in an outline, which say what they are."""
    lines = _wrap(node, bold, small, room - 5 * _SMALL)
    if not node.separator:
        return [*lines, ("a root of the tree", "quiet small")]
    first = next(index for index, (_, kind) in enumerate(lines) if kind == "quiet small")
    return [*lines[:first], (f"with {lines[first][0]}", "quiet small"), *lines[first + 1 :]]


def _draw_branch(x1: float, y1: float, x2: float, y2: float) -> Markup:
    a, b, c, d, bend = map(format_number, (x1, y1, x2, y2, y2 - 12))
    path = f"M{a} {b}V{d}" if x1 == x2 else f"M{a} {b}V{bend}Q{a} {d} {c} {d}"
    return tag("path", d=path, class_="edge")


def _draw_mark(
    plan: Plan, node: Node, x: float, y: float, indent: float, lines: Sequence[tuple[str, str]]
) -> Markup:
    texts = [
        tag("text", line, x=indent, y=y + 4 + _LINE * index, class_=kind)
        for index, (line, kind) in enumerate(lines)
    ]
    return tag(
        "g",
        tag("title", _title(plan, node)),
        tag("circle", cx=x, cy=y, r=4.5, class_="dot root" if node.parent is None else "dot"),
        texts,
    )


def _render_tree_table(plan: Plan) -> Markup:
    numbers = {index: len(plan.nodes) - index for index in range(len(plan.nodes))}
    rows = [
        (
            str(numbers[index]),
            ", ".join(node.clique),
            "none" if node.parent is None else str(numbers[node.parent]),
            ", ".join(node.separator) or "nothing",
            format_large(plan.domain.size_of(node.clique)),
        )
        for index, node in reversed(list(enumerate(plan.nodes)))
    ]
    heads = ("No.", "Clique", "Parent", "Shared with it", "Cells")
    return render_table("The cliques of the junction tree", heads, rows, numbers=(4,))


def count_roots(plan: Plan) -> int:
    """The number of separate trees."""
    return len(children_of([node.parent for node in plan.nodes])[None])
