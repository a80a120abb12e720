"""A plan in words and a small drawing, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from juncture._util.text import count_noun

if TYPE_CHECKING:
    from juncture.engine.plan import Node, Plan

_MAX_LINES = 24
_MAX_DEPTH = 8


def describe(plan: Plan) -> str:
    """The text of `print(plan)`."""
    lines = [_headline(plan), _tree_line(plan), _cost_line(plan)]
    if plan.n_records is not None:
        lines[1] = f"  records         up to {plan.n_records:,} instead of a junction tree"
    if plan.nodes:
        lines.append(_question_line(plan))
    if plan.free_attributes:
        lines.append(f"  unmeasured      {abbreviate(plan.free_attributes)} (uniform, independent)")
    return "\n".join([*lines, *_draw_tree(plan)])


def format_bytes(size_bytes: int) -> str:
    """A number of bytes with a unit that suits it."""
    if size_bytes >= 10**21:
        return f"{format_count(size_bytes)} bytes"
    amount, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if amount >= 99.95 or unit == "bytes" else f"{amount:.1f} {unit}"


def format_count(count: int) -> str:
    """A count, in full if it is short, else in powers of ten (it may exceed any float)."""
    if count < 10**9:
        return f"{count:,}"
    power = math.floor(math.log10(count))
    tenths = round(10 ** (math.log10(count) - power + 1))
    return f"{tenths / 10:.1f}e{power}" if tenths < 100 else f"1.0e{power + 1}"


def _headline(plan: Plan) -> str:
    return (
        f"Plan for {count_noun(len(plan.domain), 'attribute')} "
        f"({_format_cells(plan.domain.size)} in the full table), "
        f"{count_noun(len(plan.cliques), 'measured clique')}"
    )


def _tree_line(plan: Plan) -> str:
    parts = sum(node.parent is None for node in plan.nodes)
    largest = format_count(plan.domain.size_of(plan.largest_clique)) if plan.nodes else "0"
    return (
        f"  junction tree   {count_noun(len(plan.nodes), 'clique')} in "
        f"{count_noun(parts, 'part')}, {_format_cells(plan.cells)}, the largest clique {largest}"
    )


def _cost_line(plan: Plan) -> str:
    return (
        f"  one oracle call {format_bytes(plan.size_bytes)}, "
        f"{format_count(plan.operations)} operations"
    )


def _question_line(plan: Plan) -> str:
    tables = format_bytes(plan.tree_bytes)
    if plan.affords_tree:
        return f"  questions       {tables} for the tables of all cliques"
    least = format_bytes(plan.size_bytes)
    return f"  questions       from {least} each; the tables of all cliques would need {tables}"


def _format_cells(count: int) -> str:
    return f"{format_count(count)} {'cell' if count == 1 else 'cells'}"


def abbreviate(names: tuple[str, ...]) -> str:
    """The first few names, and how many there are beyond them."""
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _draw_tree(plan: Plan) -> list[str]:
    """The tree from its roots down, in a limited number of lines."""
    children: dict[int | None, list[int]] = {}
    for index, node in enumerate(plan.nodes):
        children.setdefault(node.parent, []).append(index)
    rows: list[tuple[str, str]] = []
    waiting = [(root, "  ", "  ", 0) for root in reversed(children.get(None, []))]
    while waiting and len(rows) < _MAX_LINES:
        index, branch, margin, depth = waiting.pop()
        node, below = plan.nodes[index], children.get(index, [])
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
    return [*lines, f"  … and {count_noun(left, 'clique')} more"] if left else lines


def _title(node: Node) -> str:
    return ", ".join(node.clique[:6]) + (", …" if len(node.clique) > 6 else "") or "(nothing)"


def _details(plan: Plan, node: Node) -> str:
    size = plan.domain.size_of(node.clique)
    cells = f"{format_count(size):>12} {'cell' if size == 1 else 'cells'}"
    shared = f", joined over {', '.join(node.separator)}" if node.separator else ""
    hosts = {0: ", measures nothing", 1: ""}.get(
        len(node.measured), f", hosts {len(node.measured)} measured cliques"
    )
    return cells + shared + hosts
