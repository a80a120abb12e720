"""The groups of a SELECT, from its tables to the rows of its answer."""

from __future__ import annotations

from functools import cmp_to_key, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.attributes import Key
from juncture.model.sql.scalar import Expr, Value, evaluate
from juncture.model.sql.syntax import AGGREGATES, ALIAS, strip_filter
from juncture.tables.layout import Vector

# Groups with a smaller share of all records than this do not appear.
_MIN_SHARE = 1e-12


class Tables(Protocol):
    """What groups need from their SELECT."""

    total: float
    grouped: dict[str, list[Expr]]
    """For each attribute that is grouped by, the expressions in GROUP BY."""

    def groups_of(self, name: str) -> list[Key]:
        """The groups of an attribute."""

    def tables_of(self, node: Expr) -> tuple[Vector, Vector | None]:
        """The shares of records behind an aggregate; the sums where it is not a count itself."""

    def resolve_alias(self, name: str) -> Expr:
        """The expression that an alias stands for."""


class Groups:
    """Some groups of a SELECT, in some order, by their indices in its tables."""

    def __init__(self, tables: Tables, indices: NDArray[np.intp]) -> None:
        self._tables, self._indices = tables, indices
        self._keys: dict[str, list[Any]] = {}
        grouped = [(nodes, tables.groups_of(name)) for name, nodes in tables.grouped.items()]
        shape = [len(keys) for _, keys in grouped]
        axes = np.unravel_index(indices, [1, *shape])[1:]  # a table without axes has one entry
        for (nodes, keys), axis in zip(grouped, axes, strict=True):
            for position, node in enumerate(nodes):
                values = [key[position] for key in keys]
                self._keys[node.sql()] = [values[index] for index in axis.tolist()]

    @classmethod
    def with_records(cls, tables: Tables, shares: Vector) -> Groups:
        """The groups that have records; without GROUP BY, the one group of all records."""
        if not tables.grouped:
            return cls(tables, np.zeros(1, dtype=np.intp))
        return cls(tables, np.flatnonzero(shares > _MIN_SHARE))

    def where(self, condition: Expr) -> Groups:
        """The groups for which a condition holds."""
        return self._take([row for row, holds in enumerate(self.column(condition)) if holds])

    def sort(self, nodes: list[Expr], order: list[exp.Ordered]) -> Groups:
        """The same groups in the order that the values of expressions give."""
        columns = ([_round_off(value) for value in self.column(node)] for node in nodes)
        keys = list(zip(*columns, strict=True))

        def compare(left: int, right: int) -> int:
            return _compare_rows(keys[left], keys[right], order)

        return self._take(sorted(range(len(keys)), key=cmp_to_key(compare)))

    def slice(self, first: int, limit: int | None) -> Groups:
        """The groups from index `first` on, at most `limit` of them."""
        end = None if limit is None else first + limit
        return Groups(self._tables, self._indices[first:end])

    def _take(self, rows: list[int]) -> Groups:
        return Groups(self._tables, self._indices[np.array(rows, dtype=np.intp)])

    def column(self, node: Expr) -> list[Value]:
        """An expression's value in each group."""
        # Large answers consist of these two kinds, and one row at a time would be slow.
        if isinstance(node, exp.Placeholder):
            return self._keys[str(node.this)]
        if isinstance(node, (*AGGREGATES, exp.Filter)):
            return self._aggregate(node, self._indices)
        rows = range(len(self._indices))
        return [evaluate(node, partial(self._look_up, row)) for row in rows]

    def _look_up(self, row: int, node: Expr) -> Value:
        """The value of a column or an aggregate in one group."""
        if isinstance(node, exp.Placeholder):
            return self._keys[str(node.this)][row]
        if not isinstance(node, exp.Column):
            return self._aggregate(node, self._indices[row : row + 1])[0]
        if node.table == ALIAS:
            return evaluate(self._tables.resolve_alias(node.name), partial(self._look_up, row))
        raise InvalidInput(
            f"`sql` must group by every column outside an aggregate; got {node.sql()}. "
            "Add it to GROUP BY, or take its SUM or AVG."
        )

    def _aggregate(self, node: Expr, indices: NDArray[np.intp]) -> list[float | None]:
        all_shares, all_sums = self._tables.tables_of(node)
        shares, total = all_shares.reshape(-1)[indices], self._tables.total
        if all_sums is None:
            return list((total * shares).tolist())
        known = shares > _MIN_SHARE
        values = all_sums.reshape(-1)[indices]
        # A mean is a ratio of shares: it does not depend on how many records there are.
        is_mean = isinstance(strip_filter(node), exp.Avg)
        values = values / np.where(known, shares, 1.0) if is_mean else total * values
        pairs = zip(values.tolist(), known.tolist(), strict=True)
        return [value if there else None for value, there in pairs]


def _round_off(value: Value) -> Value:
    """A number without its last digits: counts that differ by rounding alone are ties."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _are_numbers(left: Value, right: Value) -> bool:
    return isinstance(left, int | float) and isinstance(right, int | float)


def _compare_rows(left: Key, right: Key, order: list[exp.Ordered]) -> int:
    """Which of two rows comes first; missing values come last unless asked otherwise."""
    for a, b, each in zip(left, right, order, strict=True):
        if a is None or b is None:
            if (a is None) != (b is None):
                first = -1 if each.args.get("nulls_first") else 1
                return first if a is None else -first
        elif a != b:
            below = a < b if type(a) is type(b) or _are_numbers(a, b) else str(a) < str(b)
            return -1 if below != bool(each.args.get("desc")) else 1
    return 0
