"""Two-attribute marginals of a tree, one or many that share their work.

Between two attributes lies a path of nodes. The first attribute given a separator on the path,
times the joint table of this separator and the next one, is the first attribute with the next
separator. What both separators have stays as it is, so that joint table is never larger than the
node's own; and it does not depend on the attribute. So all attributes that have to go from one
separator to the next go together, as the rows of one matrix. All tables that are needed of a node
are summed out together too. So asking many pairs together never takes more work than one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from juncture.model.calibration import Calibration
from juncture.model.pair_routes import Edge, Routes, Stop
from juncture.model.table import Table
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector

# For products with fewer multiplications, the number of calls matters and nothing else.
_SMALL_PRODUCT = 1 << 12
# Larger matrices are left to the linear algebra library, one product at a time.
_SMALL_MATRIX = 1 << 10
# The axis of the rows, which no attribute has.
_ROWS = ""


Departure = list[tuple[Sequence[str], Vector]]
"""Attributes with a separator, as rows: a matrix for some attributes at a time."""


class Rows(NamedTuple):
    """Attributes given a separator, or with it: a row for each value, and whose rows are where."""

    values: Vector
    spans: Mapping[str, slice]

    @classmethod
    def stack(cls, names: Sequence[str], parts: Sequence[Vector], domain: Domain) -> Rows:
        """The rows of these attributes, in this order, from matrices of one or several of them."""
        ends = [*accumulate(domain[name] for name in names)]
        spans = {n: slice(end - domain[n], end) for n, end in zip(names, ends, strict=True)}
        return cls(parts[0] if len(parts) == 1 else np.concatenate(parts), spans)

    def select(self, names: Sequence[str], domain: Domain) -> Rows:
        """The rows of some of the attributes."""
        if len(names) == len(self.spans):
            return self
        return Rows.stack(names, [self.values[self.spans[name]] for name in names], domain)


class Sums:
    """Tables that are wanted of one node, and what is to be done with each."""

    def __init__(self) -> None:
        self._uses: dict[frozenset[str], list[Callable[[Table], None]]] = {}

    def want(self, names: Iterable[str], use: Callable[[Table], None]) -> None:
        """Ask for the node's table summed onto some of its attributes."""
        self._uses.setdefault(frozenset(names), []).append(use)

    def run(self, table: Table) -> int:
        """Sum out all that is wanted, and use it; gives the number of cells read.

        Tables without a certain attribute are all summed from one without it: for n attributes of
        two values, all n one-attribute tables take four passes over the node's table, not n.
        """
        n_read = 0
        waiting = [(table, [*self._uses])]
        while waiting:
            table, wanted = waiting.pop()
            union = wanted[0].union(*wanted[1:])
            if len(union) < len(table.axes):
                n_read += table.values.size
                table = table.sum_onto(union)
            if len(wanted) == 1:
                for use in self._uses[wanted[0]]:
                    use(table)
                continue
            sizes = table.sizes
            counts = {name: sum(name in names for names in wanted) for name in sizes}
            dropped = min(
                (name for name in sizes if counts[name] < len(wanted)),
                key=lambda name: (counts[name], -sizes[name]),
            )
            waiting.append((table, [names for names in wanted if dropped in names]))
            waiting.append((table, [names for names in wanted if dropped not in names]))
        return n_read


class PairQuery:
    """Two-attribute tables of a calibrated tree."""

    def __init__(self, tree: Calibration) -> None:
        self._tree, self._domain = tree, tree.plan.domain
        self._answers: dict[Clique, Table] = {}
        self._rows: dict[Edge, Rows] = {}
        self.operations = 0
        """The cells that were read or multiplied so far."""

    def answer(self, routes: Routes) -> dict[Clique, Table]:
        """The probabilities of all pairs of the routes; the keys are in canonical order."""
        self._answers, self._rows = {}, {}
        for stop in routes.stops:
            self._visit(stop)
            for edge in stop.finished:
                del self._rows[edge]
        alone = {n: self._sum_alone(n) for n in dict.fromkeys(chain.from_iterable(routes.apart))}
        for pair in routes.apart:  # most pairs of a wide table, before much was measured
            source, target = (alone[name].values for name in pair)
            self._keep(pair, Table(source[:, None] * target, pair))
        fetch = self._tree.fetch
        return {key: Table(fetch(t.values), t.axes) for key, t in self._answers.items()}

    def _visit(self, stop: Stop) -> None:
        """Answer pairs at a node, and send travellers on."""
        tree, node, sums = self._tree, stop.node, Sums()
        for edge, target, names in stop.meetings:
            use = partial(self._meet, edge, target, names)
            sums.want((*tree.separator_between(*edge), target), use)
        for pair in stop.inside:
            sums.want(pair, partial(self._keep, pair))
        departed: dict[Edge, Departure] = {}
        for edge, groups in stop.departures.items():
            separator, departed[edge] = tree.separator_between(*edge), []
            for name in groups.get(node, ()):
                sums.want((name, *separator), partial(self._start, departed[edge], name, separator))
            for before, names in groups.items():
                if before != node:
                    known = tree.separator_between(before, node)
                    use = partial(self._carry, departed[edge], names, (before, node), separator)
                    sums.want((*known, *separator), use)
        self.operations += sums.run(Table(tree.marginal(node), tree.nodes[node].clique))
        for edge, parts in departed.items():
            names = [name for group, _ in parts for name in group]
            joint = Rows.stack(names, [values for _, values in parts], self._domain)
            parts.clear()
            given = joint.values / tree.divisor_between(*edge)
            self._rows[edge] = Rows(given, joint.spans)

    def _sum_alone(self, name: str) -> Table:
        home = self._tree.home[name]
        table = Table(self._tree.marginal(home), self._tree.nodes[home].clique)
        self.operations += table.values.size
        return table.sum_onto((name,))

    def _start(
        self,
        departed: Departure,
        name: str,
        separator: Clique,
        table: Table,
    ) -> None:
        departed.append(((name,), table.as_blocks((name,), separator)))

    def _carry(
        self,
        departed: Departure,
        names: Sequence[str],
        edge: Edge,
        target: Clique,
        table: Table,
    ) -> None:
        """Carry attributes from one separator to the next, by the joint table of both."""
        rows = self._rows[edge].select(names, self._domain)
        separator = self._tree.separator_between(*edge)
        self.operations += len(rows.values) * table.values.size
        shape = [self._domain[name] for name in separator]
        given = Table(rows.values.reshape([-1, *shape]), (_ROWS, *separator))
        departed.append(([*rows.spans], _cross(given, table, target)))

    def _meet(self, edge: Edge, target: str, names: Sequence[str], table: Table) -> None:
        """Answer the pairs of one attribute with all that it is asked with beyond an edge."""
        rows = self._rows[edge].select(names, self._domain)
        separator = self._tree.separator_between(*edge)
        joint = rows.values @ table.as_blocks(separator, (target,))
        self.operations += len(rows.values) * table.values.size
        for name in names:
            self._keep((name, target), Table(joint[rows.spans[name]], (name, target)))

    def _keep(self, names: Clique, table: Table) -> None:
        position = self._domain.positions
        key = names if position[names[0]] < position[names[1]] else names[::-1]
        self._answers[key] = table


def _cross(given: Table, table: Table, target: Clique) -> Vector:
    """Rows given a separator times its joint table with the target, as rows over the target.

    What only the separator has is summed out (inner), what only the target has is new (outer), and
    what both have stays as it is (shared).
    """
    separator, n_rows = given.axes[1:], len(given.values)
    names = (_ROWS, *table.axes)
    if n_rows * table.values.size < _SMALL_PRODUCT and len(names) <= len(ascii_letters):
        letters = dict(zip(names, ascii_letters, strict=False))
        left, right, result = (
            "".join([letters[name] for name in axes])
            for axes in (given.axes, table.axes, (_ROWS, *target))
        )
        joint: Vector = np.einsum(f"{left},{right}->{result}", given.values, table.values)
        return joint.reshape(n_rows, -1)
    inner = tuple(name for name in separator if name not in target)
    outer = tuple(name for name in target if name not in separator)
    shared = tuple(name for name in separator if name in target)
    product = _multiply_matrices(
        given.as_blocks((_ROWS,), inner, shared), table.as_blocks(inner, outer, shared)
    )
    sizes = table.sizes
    product = product.reshape([n_rows, *(sizes[name] for name in (*outer, *shared))])
    return Table(product, (_ROWS, *outer, *shared)).as_blocks((_ROWS,), target)


def _multiply_matrices(left: Vector, right: Vector) -> Vector:
    """Products of matrices, one for each index of the last axis of both."""
    if len(left) * right[..., 0].size < _SMALL_MATRIX:
        small: Vector = np.einsum("ris,ios->ros", left, right)
        return small
    product = np.matmul(np.moveaxis(left, -1, 0), np.moveaxis(right, -1, 0))
    return np.moveaxis(product, 0, -1)
