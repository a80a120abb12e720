"""Where the cliques of a junction tree go in a drawing: geometry without markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Corner(NamedTuple):
    """The upper left corner of a box."""

    x: float
    y: float


class OutlineRow(NamedTuple):
    """A line of an outline: which node, in which lane, and the row of its parent."""

    node: int
    lane: int
    parent: int | None


Children = Mapping[int | None, Sequence[int]]


def children_of(parents: Sequence[int | None]) -> dict[int | None, list[int]]:
    """The children of every node, in order; the roots under None."""
    children: dict[int | None, list[int]] = {None: []}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    return children


def depths_of(children: Children) -> dict[int, int]:
    """How far each node is from its root, roots first."""
    depths = dict.fromkeys(children[None], 0)
    waiting = list(children[None])
    while waiting:
        node = waiting.pop(0)
        below = children.get(node, ())
        depths.update(dict.fromkeys(below, depths[node] + 1))
        waiting.extend(below)
    return depths


def arrange_boxes(
    parents: Sequence[int | None],
    heights: Sequence[float],
    *,
    width: float,
    gap: float,
    level: float,
) -> tuple[list[Corner], float, float]:
    """Boxes in layers, each above the middle of its children, and the width and height in all."""
    children = children_of(parents)
    depths = depths_of(children)
    tops, y = [], 0.0
    for depth in range(max(depths.values(), default=0) + 1):
        tops.append(y)
        y += max((heights[n] for n, d in depths.items() if d == depth), default=0.0) + level
    centres: dict[int, float] = {}
    edge = 0.0
    for node in _leaves_first(children):
        below = children.get(node, ())
        if below:
            centres[node] = 0.5 * (centres[below[0]] + centres[below[-1]])
        else:
            centres[node] = edge + width / 2
            edge += width + gap
    corners = [Corner(centres[n] - width / 2, tops[depths[n]]) for n in range(len(parents))]
    return corners, max(0.0, edge - gap), max(0.0, y - level)


def _leaves_first(children: Children) -> list[int]:
    """Every node after its children, subtrees from left to right."""
    order, waiting = [], list(children[None])
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(children.get(node, ()))
    return order[::-1]


def arrange_outline(parents: Sequence[int | None]) -> list[OutlineRow]:
    """A line for each node; the largest subtree stays in its parent's lane, after the others.

    So a node's lane is the number of branches away from the main line: in any tree, at most the
    logarithm of the number of nodes.
    """
    children = children_of(parents)
    sizes: dict[int, int] = {}
    for node in _leaves_first(children):
        sizes[node] = 1 + sum(sizes[child] for child in children.get(node, ()))
    rows, at = list[OutlineRow](), dict[int, int]()
    waiting = [(root, 0) for root in reversed(children[None])]
    while waiting:
        node, lane = waiting.pop()
        parent = parents[node]
        at[node] = len(rows)
        rows.append(OutlineRow(node, lane, None if parent is None else at[parent]))
        below = sorted(children.get(node, ()), key=lambda child: (-sizes[child], child))
        waiting.extend((child, lane + (index > 0)) for index, child in enumerate(below))
    return rows
