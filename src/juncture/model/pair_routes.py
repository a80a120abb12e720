"""The ways of pairs of attributes over a tree, before any table is made.

The smaller attribute of a pair is the one that travels, from the last node that has it to the first
that has the other one. A pair takes the same way whether it is asked alone or with others; where
others go too, they go together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from juncture.model.clique_tree import CliqueTree
from juncture.tables.domain import Clique

Edge = tuple[int, int]
"""Two neighbours of the tree, in the direction of travel."""


class Meeting(NamedTuple):
    """Where travellers are asked with an attribute that they find beyond an edge."""

    edge: Edge
    target: str
    travellers: list[str]


@dataclass
class Stop:
    """One of the two stops at a node: on the way up the tree, and on the way down."""

    node: int
    departures: dict[Edge, dict[int, list[str]]] = field(default_factory=dict)
    """The edges to cross, with the travellers that come from each node; from here, its own."""
    meetings: list[Meeting] = field(default_factory=list)
    inside: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of attributes that the node has."""
    finished: list[Edge] = field(default_factory=list)
    """The edges that nobody comes from any more after this stop."""

    @property
    def arrivals(self) -> set[Edge]:
        """The edges that travellers come from."""
        origins = {before for groups in self.departures.values() for before in groups}
        coming = {(before, self.node) for before in origins if before != self.node}
        return coming.union(meeting.edge for meeting in self.meetings)


class Routes:
    """The ways of the first pair and of as many others as `max_bytes` has room for."""

    def __init__(self, tree: CliqueTree, pairs: Iterable[Clique], max_bytes: int) -> None:
        self._tree, self._sizes = tree, tree.plan.domain
        self.apart: list[tuple[str, str]] = []
        """The pairs that nothing joins."""
        self._travellers: dict[Edge, dict[str, int]] = {}
        self._cells = Counter[Edge]()  # of the rows of all travellers over an edge
        self._meetings: dict[tuple[Edge, str], list[str]] = {}
        self._inside: dict[int, list[tuple[str, str]]] = {}
        self._left_bytes, self._is_empty = max_bytes, True
        # Those that travel the same way come together, should there not be room for all.
        by_source: dict[str, list[str]] = {}
        for first, second in pairs:
            source, target = sorted((first, second), key=tree.ranks.__getitem__)
            by_source.setdefault(source, []).append(target)
        for source, targets in by_source.items():
            for target in targets:
                self._add(source, target)

    def _add(self, source: str, target: str) -> None:
        """Plan the way of a pair, unless there is no room for it."""
        tree, start, node = self._tree, self._tree.home[source], self._tree.home[target]
        cells = self._sizes[source] * self._sizes[target]
        if not tree.are_joined(start, node):
            if self._take(cells):
                self.apart.append((source, target))
            return
        while source not in tree.nodes[node].clique:
            before = tree.step_towards(node, start)
            if target not in tree.nodes[before].clique:
                if self._travel(source, before, node, cells):
                    self._meetings.setdefault(((before, node), target), []).append(source)
                return
            node = before
        if self._take(cells):
            self._inside.setdefault(node, []).append((source, target))

    def _travel(self, source: str, node: int, after: int, cells: int) -> bool:
        """Send an attribute over all edges up to this one, as far as it does not go there yet.

        Only if there is room for it, and for as many cells more.
        """
        tree, start = self._tree, self._tree.home[source]
        steps: list[tuple[Edge, int, int]] = []
        while source not in self._travellers.get((node, after), ()):
            starts = source in tree.nodes[node].clique
            before = node if starts else tree.step_towards(node, start)
            rows = self._sizes[source] * tree.separator_cells(node, after)
            steps.append(((node, after), before, rows))
            if starts:
                break
            node, after = before, node
        if not self._take(cells + sum(rows for _, _, rows in steps)):
            return False
        for edge, before, rows in steps:
            self._travellers.setdefault(edge, {})[source] = before
            self._cells[edge] += rows
        return True

    def _take(self, cells: int) -> bool:
        """Take memory for some cells if there is enough, and for the first pair in any case."""
        enough = 8 * cells <= self._left_bytes or self._is_empty
        if enough:
            self._left_bytes -= 8 * cells
            self._is_empty = False
        return enough

    @cached_property
    def stops(self) -> list[Stop]:
        """All stops in an order in which nobody waits: from the leaves up, then down again."""
        nodes, up, down = self._tree.nodes, dict[int, Stop](), dict[int, Stop]()
        for (node, after), travellers in self._travellers.items():
            stop = _stop_at(up if nodes[node].parent == after else down, node)
            groups = stop.departures.setdefault((node, after), {})
            for name, before in travellers.items():
                groups.setdefault(before, []).append(name)
        for (edge, target), names in self._meetings.items():
            stop = _stop_at(up if nodes[edge[0]].parent == edge[1] else down, edge[1])
            stop.meetings.append(Meeting(edge, target, names))
        for node, pairs in self._inside.items():
            _stop_at(up, node).inside.extend(pairs)
        stops = [up[node] for node in sorted(up)] + [down[node] for node in sorted(down)[::-1]]
        last = {edge: stop for stop in stops for edge in stop.arrivals}
        for edge, stop in last.items():
            stop.finished.append(edge)
        return stops

    @property
    def size_bytes(self) -> int:
        """The memory for all tables that exist at the same time, copies included, at most."""
        live, peak = 0, 0
        for stop in self.stops:
            made = sum(self._cells[edge] for edge in stop.departures)
            # One table of the node is in use, and the rows that leave are put in order.
            peak = max(peak, live + self._tree.node_cells[stop.node] + 3 * made)
            live += made - sum(self._cells[edge] for edge in stop.finished)
        return 8 * peak


def _stop_at(stops: dict[int, Stop], node: int) -> Stop:
    return stops.setdefault(node, Stop(node))
