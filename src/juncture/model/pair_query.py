"""Many two-attribute marginals of one tree, sharing their work.

Between two attributes lies a path of nodes. The joint table of the first attribute and a separator
on the path is that with the separator before, times a matrix that does not depend on the
attribute; so with all of these kept, a further pair costs one matrix product.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from juncture.model.calibration import Calibration
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

# Matrices between two separators have at most this many cells; beyond, pairs are asked one by one.
_MAX_CELLS = 1 << 21


class Reach(NamedTuple):
    """The tree as seen from one attribute."""

    before: dict[int, int | None]
    """For each node, the one before it on the path; None for nodes that have the attribute."""
    nearest: dict[str, int]
    """For each other attribute, the first node that has it."""


class PairQuery:
    """Two-attribute tables of a calibrated tree."""

    def __init__(self, tree: Calibration) -> None:
        self._tree = tree
        self._domain = tree.plan.domain
        self._singles: dict[str, Vector] = {}
        self._reaches: dict[str, Reach] = {}
        self._joints: dict[tuple[str, int, int], Vector] = {}
        self._transitions: dict[tuple[int, int, int], Vector] = {}
        self._ends: dict[tuple[int, int, str], Vector] = {}

    def answer(self, first: str, second: str) -> Vector | None:
        """The probabilities of a pair, or None where `TreeQuery` is better."""
        reach = self._reach(first) if first in self._tree.home else None
        if reach is None or second not in reach.nearest:  # nothing joins them
            return np.multiply.outer(self._single(first), self._single(second))
        node = reach.nearest[second]
        before = reach.before[node]
        if before is None:
            return self._node_matrix(node, (first,), (second,))
        joint = self._joint(first, before, node)
        return None if joint is None else joint @ self._end(before, node, second)

    def _single(self, attribute: str) -> Vector:
        """One attribute's probabilities: uniform where no clique mentions it."""
        if attribute not in self._singles:
            home, size = self._tree.home.get(attribute), self._domain[attribute]
            alone = None if home is None else self._node_matrix(home, (attribute,), ())
            self._singles[attribute] = np.full(size, 1.0 / size) if alone is None else alone[:, 0]
        return self._singles[attribute]

    def _reach(self, attribute: str) -> Reach:
        if attribute not in self._reaches:
            nodes, neighbours = self._tree.nodes, self._tree.neighbours
            start = self._tree.home[attribute]
            before: dict[int, int | None] = {start: None}
            nearest: dict[str, int] = {}
            for node in (waiting := [start]):
                for name in nodes[node].clique:
                    nearest.setdefault(name, node)
                for other in neighbours[node]:
                    if other not in before:
                        inside = attribute in nodes[other].clique
                        before[other] = None if inside else node
                        waiting.append(other)
            self._reaches[attribute] = Reach(before, nearest)
        return self._reaches[attribute]

    def _joint(self, attribute: str, node: int, after: int) -> Vector | None:
        """The joint table of the attribute and the separator from a node to the one after it."""
        target, before = (node, after), self._reach(attribute).before
        missing = list[tuple[int, int]]()
        while (attribute, node, after) not in self._joints:
            missing.append((node, after))
            last = before[node]
            if last is None:
                break
            node, after = last, node
        for current, following in reversed(missing):
            last, shared = before[current], self._shared(current, following)
            if last is None:
                joint = self._node_matrix(current, (attribute,), shared)
            else:
                transition = self._transition(last, current, following)
                if transition is None:
                    return None
                joint = self._joints[attribute, last, current] @ transition
            self._joints[attribute, current, following] = joint
        return self._joints[attribute, *target]

    def _transition(self, before: int, node: int, after: int) -> Vector | None:
        """The separator after a node given the one before it, as a matrix."""
        key = (before, node, after)
        if key not in self._transitions:
            known, target = self._shared(before, node), self._shared(node, after)
            size = self._domain.size_of(known) * self._domain.size_of(target)
            if size > _MAX_CELLS:
                return None
            self._transitions[key] = self._conditional(node, known, target)
        return self._transitions[key]

    def _end(self, before: int, node: int, attribute: str) -> Vector:
        """An attribute of a node given the separator before it."""
        key = (before, node, attribute)
        if key not in self._ends:
            self._ends[key] = self._conditional(node, self._shared(before, node), (attribute,))
        return self._ends[key]

    def _shared(self, left: int, right: int) -> Clique:
        other = self._tree.nodes[right].clique
        return tuple(name for name in self._tree.nodes[left].clique if name in other)

    def _conditional(self, node: int, known: Clique, target: Clique) -> Vector:
        """The target attributes given the known ones; some may be both."""
        fresh = tuple(name for name in target if name not in known)
        table = self._node_matrix(node, known, fresh)
        mass = table.sum(axis=1, keepdims=True)
        mass[mass == 0] = 1.0
        table = np.asarray(table / mass)
        if len(fresh) == len(target):
            return table
        shape = [self._domain[name] for name in (*known, *fresh)]
        codes = dict(zip((*known, *fresh), np.indices(shape), strict=True))
        rows = np.arange(len(table))[:, None]
        columns = np.zeros(shape, dtype=np.int64)
        for name in target:
            columns = columns * self._domain[name] + codes[name]
        matrix = np.zeros((len(table), self._domain.size_of(target)))
        matrix[rows, columns.reshape(table.shape)] = table
        return matrix

    def _node_matrix(self, node: int, rows: Clique, columns: Clique) -> Vector:
        """A node's probabilities as a matrix of some of its attributes by others."""
        kept, clique = (*rows, *columns), self._tree.nodes[node].clique
        table = self._tree.marginal(node)
        if len(kept) < len(clique):
            table = table.sum(axis=tuple(a for a, name in enumerate(clique) if name not in kept))
            clique = tuple(name for name in clique if name in kept)
        moved = table.transpose([clique.index(name) for name in kept])
        return np.asarray(moved.reshape(self._domain.size_of(rows), -1))
