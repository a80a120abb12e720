"""Questions that span several cliques, answered by the steps of a walk up a calibrated tree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from juncture.model.calibration import Calibration
from juncture.model.node_sums import NodeSums
from juncture.model.table import BoundedStore, Table, multiply
from juncture.model.tree_walk import (
    Apply,
    Divide,
    MessageKey,
    Multiply,
    Recall,
    Step,
    Sum,
    Take,
    TreeWalk,
    Uniform,
)
from juncture.tables.layout import Vector

# NumPy's limit on the axes of an array.
_MAX_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


Messages = BoundedStore[MessageKey, Table]


class TreeQuery:
    """A walk up a calibrated tree.

    Queries that share a store of messages share what they have in common below the tops of their
    branches; that is only right for queries that put the same blocks on the same attributes. The
    walk must have been planned with the store as it is. Those that share a store of sums share the
    sums of nodes' tables, whatever their blocks.
    """

    def __init__(
        self,
        tree: Calibration,
        walk: TreeWalk,
        messages: Messages | None = None,
        sums: NodeSums | None = None,
    ) -> None:
        self._tree, self._walk = tree, walk
        self._sums = NodeSums(0) if sums is None else sums
        self._messages = BoundedStore(0) if messages is None else messages
        # What is there now may be gone when its step comes: new messages push old ones out.
        self._recalled = {
            step.key: self._messages[step.key] for step in walk.steps if isinstance(step, Recall)
        }

    def answer(self) -> Vector:
        """The share of the records, an axis for each attribute in the blocks' order.

        Where that would be more axes than an array may have, attributes with a single answer have
        none.
        """
        tables: dict[int, Table] = {}
        result = Table(self._tree.put(np.ones(())), ())
        for index, step in enumerate(self._walk.steps):
            result = tables[index] = self._run(step, tables)
            for done in self._walk.last_uses[index]:
                del tables[done]
        return self._tree.fetch(shape_answer(result, self._walk.rows))

    def _run(self, step: Step, tables: Mapping[int, Table]) -> Table:  # noqa: PLR0911
        match step:
            case Take(node):
                return Table(self._tree.marginal(node), self._tree.nodes[node].clique)
            case Recall(key):
                return self._recalled[key]
            case Uniform(name):
                size = self._tree.plan.domain[name]
                return Table(self._tree.put(np.full(size, 1.0 / size)), (name,))
            case Sum():
                return self._sum(step, tables[step.table])
            case Multiply(left, right, summed):
                return multiply(tables[left], tables[right], summed)
            case Apply(table, name):
                return self._apply(tables[table], name)
            case Divide(table, key):
                node, separator = key[0], self._tree.nodes[key[0]].separator
                divisor = Table(self._tree.separator_divisor(node), separator)
                message = tables[table].divide(divisor)
                return self._messages.put(key, message, message.values.nbytes)

    def _sum(self, step: Sum, table: Table) -> Table:
        source = self._walk.steps[step.table]
        if isinstance(source, Take):
            return self._sums.sum_onto(source.node, table, step.keep)
        return table.sum_onto(step.keep)

    def _apply(self, table: Table, name: str) -> Table:
        block, rest = self._walk.blocks[name], tuple(other for other in table.axes if other != name)
        given = self._tree.fetch(table.transpose((*rest, name)))
        answered = self._tree.put(block.apply(given))
        if self._walk.drops_axis(name):
            return Table(answered[..., 0], rest)
        return Table(answered, (*rest, name))


def shape_answer(table: Table, rows: Mapping[str, int]) -> Vector:
    """The numbers with an axis for each attribute and its answers, in this order.

    Where that would be more axes than an array may have, attributes with a single answer have none.
    """
    values = table.transpose([name for name in rows if name in table.axes])
    lengths = list(rows.values())
    return values.reshape(lengths if len(rows) <= _MAX_AXES else [n for n in lengths if n > 1])
