"""A model as a tree of probability tables, one for each maximal clique.

The distribution is the marginal of any one node, times what every other node adds given its
separator from it. All entries are probabilities, so sums over branches of the tree need no
normalising and no logarithms, however far the potentials were spread.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from juncture.engine.oracle import OracleFactory, make_oracle
from juncture.engine.plan import Node, Plan
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector


class Branch(NamedTuple):
    """A connected piece of one tree of the forest: the index of its top node, and all its nodes."""

    top: int
    nodes: tuple[int, ...]
    """Children before their parents; the top is the last."""


class Visit(NamedTuple):
    """A node on the way down from a root."""

    node: int
    known: Clique
    """The attributes that its clique shares with the node before."""
    added: Clique
    """The attributes that it is the first to have."""


class Calibration:
    """The marginals of all maximal cliques, and the tree between them."""

    def __init__(
        self,
        plan: Plan,
        potentials: Vector,
        probabilities: Vector,
        oracle: OracleFactory,
    ) -> None:
        self._source, self._oracle = (plan, potentials), oracle
        grown = _with_maximal_cliques(plan, potentials, probabilities, oracle)
        self.plan, self._probabilities = grown
        self._layout = Layout(self.plan.domain, self.plan.cliques)
        self._marginals: dict[int, Vector] = {}
        self._conditionals: dict[int, Vector] = {}

    def with_clique(self, attributes: Iterable[str]) -> Calibration:
        """A tree of the same distribution with a node that holds all of these attributes."""
        plan, potentials = self._source
        names = self.plan.domain.canonical(name for name in attributes if name in self.home)
        if any(set(names).issubset(node.clique) for node in self.nodes):
            return self
        return Calibration(*_grow(plan, potentials, [names], self._oracle), self._oracle)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The junction tree: every child before its parent."""
        return self.plan.nodes

    @cached_property
    def home(self) -> dict[str, int]:
        """For each attribute of the tree, its node nearest to the root."""
        return {
            name: index
            for index, node in enumerate(self.nodes)
            for name in node.clique
            if name not in node.separator
        }

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The nodes that each node is joined to."""
        neighbours: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            if node.parent is not None:
                neighbours[index].append(node.parent)
                neighbours[node.parent].append(index)
        return neighbours

    def marginal(self, index: int) -> Vector:
        """The probabilities of a node's cells, an axis for each attribute of its clique."""
        if index not in self._marginals:
            table = self._layout.view(self._probabilities, self.nodes[index].clique)
            self._marginals[index] = table
        return self._marginals[index]

    def conditional(self, index: int) -> Vector:
        """The node's probabilities given its separator: zero where the separator has no mass."""
        if index not in self._conditionals:
            node = self.nodes[index]
            self._conditionals[index] = conditional(
                self.marginal(index), node.clique, node.separator
            )
        return self._conditionals[index]

    def branches(self, attributes: Iterable[str]) -> list[Branch]:
        """For each tree that holds some of the attributes, the smallest branch that holds them.

        Each attribute is taken where it is nearest to the root; paths from there upwards meet at
        the top of the branch. For example, in the chain ab - bc - cd with cd as its root:

            asked a, d    home ab and cd; paths meet at cd     branch ab, bc, cd, top cd
            asked a, c    home ab and cd; paths meet at cd     branch ab, bc, top bc

        In the second case the top is asked only for c, which its one child below has too: the
        child's own marginal says the same about c, so the top is left out, and so on downwards.
        """
        homes: dict[int, dict[int, None]] = {}
        names = set(attributes)
        paths = {self.home[name]: self._path(self.home[name]) for name in names}
        for home, path in paths.items():
            homes.setdefault(path[-1], {})[home] = None
        return [self._branch([paths[h] for h in group], names) for group in homes.values()]

    def _path(self, index: int) -> list[int]:
        """The nodes from one to its root."""
        path = [index]
        while (parent := self.nodes[path[-1]].parent) is not None:
            path.append(parent)
        return path

    def _branch(self, paths: list[list[int]], names: set[str]) -> Branch:
        shared = set.intersection(*map(set, paths))
        top = min(shared)  # children come before their parents, so this is the lowest common node
        inside = sorted({p for path in paths for p in path if p <= top and p not in shared})
        while True:
            below = [index for index in inside if self.nodes[index].parent == top]
            if len(below) != 1:
                break
            needed = names.intersection(self.nodes[top].clique)
            if not needed.issubset(self.nodes[below[0]].separator):
                break
            top = below[0]
            inside.remove(top)
        return Branch(top, (*inside, top))

    def walk_down(self, root: int | None = None) -> list[Visit]:
        """All nodes, each after its neighbour nearer to the root; `root` begins its own tree."""
        tops = [p for p in reversed(range(len(self.nodes))) if self.nodes[p].parent is None]
        starts = tops if root is None else [root, *tops]
        visits, seen = list[Visit](), set[int]()
        for start in starts:
            waiting: list[tuple[int, Clique]] = [(start, ())]
            while waiting:
                index, known = waiting.pop()
                if index in seen:
                    continue
                seen.add(index)
                clique = self.nodes[index].clique
                added = tuple(name for name in clique if name not in known)
                visits.append(Visit(index, known, added))
                for other in self.neighbours[index]:
                    shared = set(self.nodes[other].clique).intersection(clique)
                    waiting.append((other, tuple(n for n in clique if n in shared)))
        return visits


def conditional(table: Vector, axes: Clique, given: Clique) -> Vector:
    """A table of probabilities given some of its axes."""
    summed = tuple(axis for axis, name in enumerate(axes) if name not in given)
    mass = table.sum(axis=summed, keepdims=True)
    return np.asarray(np.divide(table, mass, out=np.zeros_like(table), where=mass > 0))


def _with_maximal_cliques(
    plan: Plan, potentials: Vector, probabilities: Vector, factory: OracleFactory
) -> tuple[Plan, Vector]:
    """A plan that measures every maximal clique, and the probabilities of all of them.

    Measuring them adds no edge to the graph, so the new plan has the same maximal cliques.
    """
    unmeasured = {node.clique for node in plan.nodes}.difference(plan.cliques)
    if not unmeasured:
        return plan, probabilities
    grown, _, known = _grow(plan, potentials, sorted(unmeasured), factory)
    return grown, known


def _grow(
    plan: Plan, potentials: Vector, cliques: Iterable[Clique], factory: OracleFactory
) -> tuple[Plan, Vector, Vector]:
    """The plan, potentials and probabilities with more cliques measured.

    The tables of maximal cliques are stored in full, so the plan must fit into memory with any
    oracle: `Plan.build` checks that.
    """
    grown = Plan.build(plan.domain, [*plan.cliques, *cliques])
    oracle, old = make_oracle(factory, grown), Layout(plan.domain, plan.cliques)
    start = oracle.layout.pack(old.factor(potentials, clique) for clique in plan.cliques)
    return grown, start, oracle.marginals(start).marginals
