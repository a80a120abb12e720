"""The junction tree of a plan as a map: where attributes are, and the ways between them.

It holds names and indices only; the tables are in `Calibration`, which is such a tree too. So what
a question takes can be found out before any table exists.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from juncture.engine.plan import Node, Plan
from juncture.tables.domain import Clique


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


class Tour(NamedTuple):
    """The nodes in an order in which each subtree is one run."""

    first: list[int]
    """The number of each node, less than the numbers below it."""
    sizes: list[int]
    """How many nodes there are in the subtree of each."""
    children: list[list[int]]
    """The children of each node, in the order of their numbers."""
    roots: list[int]
    """The root of each node's tree."""


class CliqueTree:
    """The junction tree of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

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
    def ranks(self) -> dict[str, int]:
        """The rank of each attribute of the domain by its number of values."""
        ranked = sorted(self.plan.domain, key=self.plan.domain.__getitem__)
        return {name: rank for rank, name in enumerate(ranked)}

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The nodes that each node is joined to."""
        neighbours: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            if node.parent is not None:
                neighbours[index].append(node.parent)
                neighbours[node.parent].append(index)
        return neighbours

    @cached_property
    def _tour(self) -> Tour:
        """The nodes numbered from the roots down, so that a subtree is a range of numbers."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            if node.parent is not None:
                children[node.parent].append(index)
        sizes = [1] * len(self.nodes)
        for index, node in enumerate(self.nodes):  # children first: their sizes are final
            if node.parent is not None:
                sizes[node.parent] += sizes[index]
        first, free = [0] * len(self.nodes), 0
        roots = [0] * len(self.nodes)
        for index in reversed(range(len(self.nodes))):  # parents first
            if self.nodes[index].parent is None:
                first[index], free, roots[index] = free, free + sizes[index], index
            inside = first[index] + 1
            for child in children[index]:
                first[child], inside = inside, inside + sizes[child]
                roots[child] = roots[index]
        return Tour(first, sizes, children, roots)

    def are_joined(self, left: int, right: int) -> bool:
        """Whether two nodes lie in the same tree of the forest."""
        return self._tour.roots[left] == self._tour.roots[right]

    def step_towards(self, index: int, target: int) -> int:
        """The neighbour of a node on the way to another node of its tree."""
        first, sizes, children, _ = self._tour
        if not first[index] < first[target] < first[index] + sizes[index]:
            parent = self.nodes[index].parent
            assert parent is not None, "the target lies in the same tree, and it is another node"
            return parent
        below = children[index]
        return below[bisect_right(below, first[target], key=first.__getitem__) - 1]

    def separator_between(self, left: int, right: int) -> Clique:
        """The attributes that two neighbours share."""
        child = left if self.nodes[left].parent == right else right
        return self.nodes[child].separator

    def separator_cells(self, left: int, right: int) -> int:
        """The number of cells of a table over what two neighbours share."""
        child = left if self.nodes[left].parent == right else right
        return self._separator_cells[child]

    @cached_property
    def node_cells(self) -> list[int]:
        """The number of cells of each node's table."""
        return [self.plan.domain.size_of(node.clique) for node in self.nodes]

    @cached_property
    def _separator_cells(self) -> list[int]:
        return [self.plan.domain.size_of(node.separator) for node in self.nodes]

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
