"""How the answers to queries vary together, in the distribution of a junction tree.

The derivative of the marginals with respect to the potentials is the covariance of the indicators
of cells, so a second-order method needs the mean product of any two answers. Within a maximal
clique its own table tells. Between two of them, the attributes in which they meet separate them:
what the first says about the second goes through the tables on the way,

    P(x, y) = sum over s of P(x, s) P(y | s)

one separator s after another. Everything is a sum of probabilities and a product of matrices, with
a row for each answer: a table of all pairs of cells would be far larger where the queries are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from juncture.engine.plan import Plan
from juncture.fit.solvers.rows import Block, Matrix
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector

# A table of pairs of cells is made where it has at most so many entries for each cell of a node.
_MAX_PAIRS = 8


class TreeCovariance:
    """The covariance matrix of answers, from the marginals of a plan.

    - `plan`: one that measures all of its maximal cliques.
    - `blocks`: the queries, on cliques of the plan.
    """

    def __init__(self, plan: Plan, blocks: Sequence[Block]) -> None:
        self._layout = Layout(plan.domain, plan.cliques)
        ends = np.cumsum([0, *(len(block.goal) for block in blocks)])
        numbers = [np.arange(*pair) for pair in pairwise(ends)]
        self._n_rows = int(ends[-1])
        self._nodes = []
        for node in plan.nodes:
            measured = set(node.measured)
            hosted = [i for i, block in enumerate(blocks) if block.clique in measured]
            rows = [numbers[i] for i in hosted]
            table = _NodeTable(self._layout, node.clique, [blocks[i] for i in hosted], rows)
            self._nodes.append(table)
        for index, node in enumerate(plan.nodes):
            if node.parent is not None:
                self._nodes[index].join(node.parent, node.separator)
                self._nodes[node.parent].join(index, node.separator)

    def matrix(self, marginals: Vector, total: float) -> Matrix:
        """The covariance of the answers, for a record drawn `total` times."""
        mean = np.zeros(self._n_rows)
        for node in self._nodes:
            node.load(self._layout.view(marginals, node.clique).reshape(-1) / total)
            mean[node.rows] = node.mean()
        independent = np.outer(mean, mean)
        joint = independent.copy()  # what holds between trees, which are independent
        for source in range(len(self._nodes)):
            self._fill(joint, source)
        joint -= independent
        joint *= total
        return joint

    def _fill(self, joint: Matrix, source: int) -> None:
        """The mean products of the answers of a node and those of all nodes after it."""
        start = self._nodes[source]
        if not start.rows.size:
            return
        start.fill_own_pairs(joint)
        waiting = [(n, source, s, start.given(s)) for n, s in start.neighbours.items()]
        while waiting:
            index, origin, separator, given = waiting.pop()
            node = self._nodes[index]
            if index > source and node.rows.size:
                block = given @ node.sum_onto(separator).T
                joint[np.ix_(start.rows, node.rows)] = block
                joint[np.ix_(node.rows, start.rows)] = block.T
            waiting += [
                (n, index, s, given @ node.step(separator, s))
                for n, s in node.neighbours.items()
                if n != origin
            ]


class _NodeTable:
    """A maximal clique's table, and the sums of it that the way through the tree needs."""

    def __init__(
        self,
        layout: Layout,
        clique: Clique,
        blocks: Sequence[Block],
        rows: Sequence[NDArray[np.intp]],
    ) -> None:
        self.clique, self._domain, self._blocks, self._rows = clique, layout.domain, blocks, rows
        self.neighbours: dict[int, Clique] = {}
        self.rows = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
        """Which of all rows it hosts."""
        self._addresses: dict[Clique, NDArray[np.intp]] = {}
        self._pairs: dict[tuple[Clique, Clique], Matrix] = {}

    def join(self, neighbour: int, separator: Clique) -> None:
        """Make another node a neighbour."""
        self.neighbours[neighbour] = separator

    def load(self, table: Vector) -> None:
        """Take the probabilities of the cells."""
        self._table = table
        self._pairs.clear()

    def mean(self) -> Vector:
        """The mean answers of its rows."""
        means = [block.apply(self._mass(block.clique)) for block in self._blocks]
        return np.concatenate(means) if means else np.zeros(0)

    def fill_own_pairs(self, joint: Matrix) -> None:
        """The mean products of any two of its rows."""
        order = sorted(range(len(self._blocks)), key=lambda i: len(self._blocks[i].goal))
        for position, i in enumerate(order):
            for j in order[position:]:  # fewer rows first: their sums are the smaller table
                sums = self._sum_block(self._blocks[i], self._blocks[j].clique)
                pairs = self._blocks[j].multiply(sums.T)
                joint[np.ix_(self._rows[j], self._rows[i])] = pairs
                joint[np.ix_(self._rows[i], self._rows[j])] = pairs.T

    def sum_onto(self, scope: Clique) -> Matrix:
        """For each row, the mean of its answer times the indicator of each cell of a scope."""
        return np.vstack([self._sum_block(block, scope) for block in self._blocks])

    def given(self, separator: Clique) -> Matrix:
        """The mean answers of its rows, given the cell of a separator."""
        return _divide(self.sum_onto(separator), self._mass(separator))

    def step(self, separator: Clique, following: Clique) -> Matrix:
        """The probabilities of a separator's cells, given those of the next one."""
        return _divide(self._pair(separator, following), self._mass(following))

    def _sum_block(self, block: Block, scope: Clique) -> Matrix:
        if block.counts_cells:
            return block.multiply(self._pair(block.clique, scope))
        if block.clique == scope:
            return np.asarray(block.matrix * self._mass(scope))
        size = self._domain.size_of(scope)
        if self._domain.size_of(block.clique) * size <= _MAX_PAIRS * len(self._table):
            return block.multiply(self._pair(block.clique, scope))
        own, goal = self._address(block.clique), self._address(scope)
        return np.array([_add_up(goal, row[own] * self._table, size) for row in block.matrix])

    def _mass(self, scope: Clique) -> Vector:
        return _add_up(self._address(scope), self._table, self._domain.size_of(scope))

    def _pair(self, left: Clique, right: Clique) -> Matrix:
        """The table summed onto the cells of two scopes at once."""
        if (left, right) not in self._pairs:
            if (right, left) in self._pairs:
                return self._pairs[right, left].T
            shape = self._domain.size_of(left), self._domain.size_of(right)
            address = self._address(left) * shape[1] + self._address(right)
            sums = _add_up(address, self._table, shape[0] * shape[1])
            self._pairs[left, right] = sums.reshape(shape)
        return self._pairs[left, right]

    def _address(self, scope: Clique) -> NDArray[np.intp]:
        """For each cell of the node, the cell of the scope that it belongs to."""
        if scope not in self._addresses:
            sizes = [self._domain[name] if name in scope else 1 for name in self.clique]
            numbers = np.arange(self._domain.size_of(scope)).reshape(sizes)
            shape = [self._domain[name] for name in self.clique]
            self._addresses[scope] = np.broadcast_to(numbers, shape).reshape(-1)
        return self._addresses[scope]


def _add_up(address: NDArray[np.intp], values: Vector, size: int) -> Vector:
    """The sum of the values that have each address."""
    return np.asarray(np.bincount(address, values, size), dtype=np.float64)


def _divide(sums: Matrix, mass: Vector) -> Matrix:
    """Means given each cell of a scope; zero where that has no mass."""
    return np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)
