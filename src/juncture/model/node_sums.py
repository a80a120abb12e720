"""Sums of the tables of a tree's nodes, kept for the questions that come later."""

from __future__ import annotations

from juncture.model.table import BoundedStore, Table


class NodeSums:
    """Sums of nodes' tables, as many as a limit of memory has room for.

    Axes are summed out one at a time, the longest first, and what is left after each is kept. So
    questions that leave out the same long axes share most of the work.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._known = BoundedStore[tuple[int, frozenset[str]], Table](max_bytes)

    def sum_onto(self, node: int, table: Table, keep: frozenset[str]) -> Table:
        """The table of a node, summed over all axes but some."""
        if not self._max_bytes:
            return table.sum_onto(keep)
        axes = sorted(table.axes, key=table.sizes.__getitem__, reverse=True)
        gone = [name for name in axes if name not in keep]
        keys = [(node, frozenset(gone[:n])) for n in range(1, len(gone) + 1)]
        n_done = max((n for n, key in enumerate(keys, start=1) if key in self._known), default=0)
        if n_done:
            table = self._known[keys[n_done - 1]]
        for key in keys[n_done:]:
            table = table.sum_onto(set(table.axes) - key[1])
            self._known.put(key, table, table.values.nbytes)
        return table
