"""A plan in words and a small drawing, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from juncture.engine.plan import Node, Plan

_MAX_LINES = 24
_MAX_DEPTH = 8


def describe(plan: Plan) -> str:
    """The text of `print(plan)`."""
    lines = [_headline(plan), _tree_line(plan), _cost_line(plan)]
    if plan.free_attributes:
        lines.append(f"  unmeasured      {listed(plan.free_attributes)} (uniform, independent)")
    return "\n".join([*lines, *_drawing(plan)])


def readable_bytes(size_bytes: int) -> str:
    """A number of bytes with a unit that suits it."""
    if size_bytes >= 10**15:
        return f"{readable_count(size_bytes)} bytes"
    amount, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if amount >= 99.95 or unit == "bytes" else f"{amount:.1f} {unit}"


def readable_count(count: int) -> str:
    """A count in full while it is short, else in powers of ten (it may exceed any float)."""
    if count < 10**9:
        return f"{count:,}"
    power = math.floor(math.log10(count))
    tenths = round(10 ** (math.log10(count) - power + 1))
    return f"{tenths / 10:.1f}e{power}" if tenths < 100 else f"1.0e{power + 1}"


def _headline(plan: Plan) -> str:
    return (
        f"Plan for {_plural(len(plan.domain), 'attribute')} "
        f"({_cells(plan.domain.size)} in the full table), "
        f"{_plural(len(plan.cliques), 'measured clique')}"
    )


def _tree_line(plan: Plan) -> str:
    parts = sum(node.parent is None for node in plan.nodes)
    largest = readable_count(plan.domain.size_of(plan.largest_clique)) if plan.nodes else "0"
    return (
        f"  junction tree   {_plural(len(plan.nodes), 'clique')} in {_plural(parts, 'part')}, "
        f"{_cells(plan.cells)}, the largest clique {largest}"
    )


def _cost_line(plan: Plan) -> str:
    return (
        f"  one oracle call {readable_bytes(plan.size_bytes)}, "
        f"{readable_count(plan.operations)} operations"
    )


def _cells(count: int) -> str:
    return f"{readable_count(count)} {'cell' if count == 1 else 'cells'}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: tuple[str, ...]) -> str:
    """The first few names, and how many there are beyond them."""
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _drawing(plan: Plan) -> list[str]:
    """The tree from its roots down, as far as it is pleasant to read."""
    children: dict[int | None, list[int]] = {}
    for place, node in enumerate(plan.nodes):
        children.setdefault(node.parent, []).append(place)
    rows: list[tuple[str, str]] = []
    waiting = [(place, "  ", "  ", 0) for place in reversed(children.get(None, []))]
    while waiting and len(rows) < _MAX_LINES:
        place, branch, margin, depth = waiting.pop()
        node, below = plan.nodes[place], children.get(place, [])
        rows.append((branch + _title(node), _details(plan, node)))
        if depth == _MAX_DEPTH:
            continue
        for child in below:
            last = child == below[0]
            mark, line = ("└─ ", "   ") if last else ("├─ ", "│  ")
            waiting.append((child, margin + mark, margin + line, depth + 1))
    width = max((len(title) for title, _ in rows), default=0)
    lines = [f"{title:<{width}}  {details}" for title, details in rows]
    left = len(plan.nodes) - len(rows)
    return [*lines, f"  … and {_plural(left, 'clique')} more"] if left else lines


def _title(node: Node) -> str:
    return ", ".join(node.clique[:6]) + (", …" if len(node.clique) > 6 else "") or "(nothing)"


def _details(plan: Plan, node: Node) -> str:
    size = plan.domain.size_of(node.clique)
    cells = f"{readable_count(size):>12} {'cell' if size == 1 else 'cells'}"
    shared = f", joined over {', '.join(node.separator)}" if node.separator else ""
    hosts = {0: ", measures nothing", 1: ""}.get(
        len(node.measured), f", hosts {len(node.measured)} measured cliques"
    )
    return cells + shared + hosts
