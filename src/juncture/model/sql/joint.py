"""The other way: expressions that tie attributes together are evaluated on their joint table.

The table has a row for each cell of the joint marginal, weighted by its expected number of records;
attributes with intervals are in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.sql.aggregates import MIN_SHARE, Aggregate, Term, Total, compute
from juncture.model.sql.attributes import Interval, Pieces, collides, make_pieces
from juncture.model.sql.engine import MAX_CELLS
from juncture.model.sql.factored import AttributePart, key_text, known_text
from juncture.model.sql.groups import GroupTable, known_column, round_off
from juncture.model.sql.question import Question
from juncture.model.sql.ranks import read_rank, write_rank
from juncture.model.sql.syntax import Expr, write
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Identity
from juncture.tables.queries.products import Kron

_WEIGHT, _ROW = "juncture_weight", "juncture_row"


class Joint:
    """The groups of a question, from the joint table of all attributes that it ties together."""

    def __init__(self, question: Question, ask: Callable[[Kron], Vector], n_records: float) -> None:
        self._question, self._ask, self._n_records = question, ask, n_records
        late = [
            a for each in question.aggregates.values() for a in (*each.arguments, *self._own(each))
        ]
        tied = [node for node in question.conditions if len(question.attributes(node)) != 1]
        self._names = question.attributes_of_all([*question.keys, *late, *tied])
        self._folded: dict[str, list[Expr]] = {}
        self._conditions: list[Expr] = []
        for node in question.conditions:
            names = question.attributes(node)
            if len(names) == 1 and names[0] not in self._names:
                self._folded.setdefault(names[0], []).append(node)
            else:
                self._conditions.append(node)
        if collides(self._names):
            raise InvalidInput(
                "`sql` must not tie together attributes whose names differ in letter case only; "
                f"got {', '.join(self._names)}."
            )
        self._pieces = {name: self._cut(name) for name in self._names}
        self._limit_cells()

    def _own(self, aggregate: Aggregate) -> tuple[Expr, ...]:
        """The conditions of an aggregate's FILTER."""
        return aggregate.conditions[len(self._question.conditions) :]

    def _cut(self, name: str) -> Pieces:
        interval = self._question.intervals.get(name, Interval())
        return make_pieces(name, self._question.codebook[name], interval)

    def _limit_cells(self) -> None:
        sizes = {name: len(pieces.codes) for name, pieces in self._pieces.items()}
        if math.prod(sizes.values()) > MAX_CELLS:
            listed = ", ".join(f"{name} ({size:,})" for name, size in sizes.items())
            raise ModelTooLarge(
                f"`sql` must tie together at most {MAX_CELLS:,} combinations of values; got "
                f"{math.prod(sizes.values()):,} of {listed}. Ask about fewer attributes at once, "
                "or join conditions on single attributes by AND."
            )

    def make_query(self) -> Kron:
        """The factored query whose answers are the joint table."""
        blocks: dict[str, Block] = {name: Identity() for name in self._names}
        for name, conditions in self._folded.items():
            part = AttributePart(name, self._question, ())
            blocks[name] = part.block(Total(conditions=tuple(conditions)))
        return Kron(blocks)

    def _weigh(self, shares: Vector) -> Vector:
        """The share of records in each cell, an axis for each attribute's pieces."""
        shape = [self._question.codebook.domain[name] for name in self._names]
        weights = shares.reshape(shape)
        for axis, pieces in enumerate(self._pieces.values()):
            shares = pieces.shares.reshape([-1, *[1] * (len(shape) - axis - 1)])
            weights = weights.take(pieces.codes, axis=axis) * shares
        return weights

    def _cells(self, weights: Vector, rows: NDArray[np.intp]) -> pa.Table:
        """Some cells as a table: the values of their attributes, and their weights."""
        columns = {_ROW: pa.array(rows), _WEIGHT: pa.array(weights.reshape(-1)[rows])}
        indices = np.unravel_index(rows, [1, *weights.shape])[1:]
        for pieces, index in zip(self._pieces.values(), indices, strict=True):
            columns |= {name: column.take(index) for name, column in pieces.columns.items()}
        return pa.table(columns)

    def table(self) -> GroupTable:
        """The groups that have records, with their keys and aggregates."""
        weights = self._weigh(self._ask(self.make_query()))
        self._held = np.flatnonzero(weights > 0)
        rows = self._sum(weights)
        self._kept = self._with_records(rows)
        return self._make_table(rows.filter(self._kept))

    def table_of(self, shares: Vector) -> GroupTable:
        """The same groups as those of `table`, made before, for other shares of records."""
        return self._make_table(self._sum(self._weigh(shares)).filter(self._kept))

    def _sum(self, weights: Vector) -> pa.Table:
        """The sums of the aggregates in each group."""
        question, keys = self._question, range(len(self._question.keys))
        cells = self._cells(weights, self._held)
        sums = {total: f"t{i}" for i, total in enumerate(self._collect())}
        ranks = [each for each in question.aggregates.values() if each.is_rank]
        items = [f"juncture_k{i}" for i in keys]
        items += [f"{self._write_total(total)} AS {name}" for total, name in sums.items()]
        items += [f"{self._write_rank(each)} AS q{i}" for i, each in enumerate(ranks)]
        items += [f"COALESCE(SUM({_WEIGHT}), 0) AS n"]
        text, order = self._write_groups()
        items += [f"GROUPING(juncture_k{i}) AS g{i}" for i in keys if question.sets]
        return question.engine.run(f"SELECT {', '.join(items)} {text} {order}", cells=cells)

    def _make_table(self, rows: pa.Table) -> GroupTable:
        """The groups with their aggregates."""
        question, keys = self._question, range(len(self._question.keys))
        sums = {total: f"t{i}" for i, total in enumerate(self._collect())}
        ranks = [each for each in question.aggregates.values() if each.is_rank]
        totals = {total: rows[name].to_numpy() for total, name in sums.items()}
        ranked = iter(range(len(ranks)))
        aggregates = []
        for each in question.aggregates.values():
            if each.is_rank:
                aggregates.append(
                    read_rank(each, rows[f"q{next(ranked)}"], question, self._n_records)
                )
            else:
                values, known = compute(each, _whole, totals.__getitem__, self._n_records)
                aggregates.append(known_column(round_off(values), known))
        left_out = [rows[f"g{i}"] for i in keys if question.sets]
        return GroupTable(
            [rows[f"juncture_k{i}"] for i in keys], aggregates, left_out, rows.num_rows
        )

    def _with_records(self, rows: pa.Table) -> pa.Array:
        keep = rows["n"].to_numpy() > MIN_SHARE
        sets, n_keys = self._question.sets, len(self._question.keys)
        if sets:
            left_out = [rows[f"g{i}"].to_numpy() == 1 for i in range(n_keys)]
            keep |= np.logical_and.reduce(left_out) if left_out else True
        elif not n_keys:
            keep[:] = True
        return pa.array(keep)

    def _collect(self) -> list[Total]:
        """The sums that the aggregates are made of."""
        totals: dict[Total, None] = {}

        def note(total: Total) -> Vector:
            totals[total] = None
            return np.ones(1)

        for each in self._question.aggregates.values():
            if not each.is_rank:
                compute(each, _whole, note, self._n_records)
        return list(totals)

    def _write_groups(self) -> tuple[str, str]:
        question, n_keys = self._question, len(self._question.keys)
        keys = [f"{key_text(k, question)} AS juncture_k{i}" for i, k in enumerate(question.keys)]
        text = f"FROM (SELECT {', '.join(['*', *keys])} FROM cells"
        if self._conditions:
            text += f" WHERE {' AND '.join(f'({write(each)})' for each in self._conditions)}"
        order = f"ORDER BY MIN({_ROW})"
        if question.sets:
            listed = (", ".join(f"juncture_k{i}" for i in each) for each in question.sets)
            marks = "".join(f", GROUPING(juncture_k{i})" for i in range(n_keys))
            sets = ", ".join(f"({each})" for each in listed)
            return f"{text}) GROUP BY GROUPING SETS ({sets})", order + marks
        names = ", ".join(f"juncture_k{i}" for i in range(n_keys))
        return (f"{text}) GROUP BY {names}" if n_keys else f"{text})"), order if n_keys else ""

    def _filter(self, conditions: list[str]) -> str:
        return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""

    def _write_total(self, total: Total) -> str:
        own = total.conditions[len(self._question.conditions) :]
        columns = [name for pieces in self._pieces.values() for name in pieces.columns]
        conditions = [f"({write(each)})" for each in own]
        conditions += [known_text(each, columns, total.counts_outside) for each in total.known]
        product = " * ".join([_WEIGHT, *(f"CAST({write(f)} AS DOUBLE)" for f in total.factors)])
        return f"COALESCE(SUM({product}){self._filter(conditions)}, 0)"

    def _write_rank(self, aggregate: Aggregate) -> str:
        conditions = [f"({write(each)})" for each in self._own(aggregate)]
        conditions.append(f"{_WEIGHT} > {MIN_SHARE!r}")
        return write_rank(aggregate, self._question, _WEIGHT) + self._filter(conditions)

    def counts(self) -> Vector:
        """The share of records in every group, an axis for each grouped attribute."""
        grouped: dict[str, list[Expr]] = {}
        for node in self._question.keys:
            names = self._question.attributes(node)
            if len(names) != 1 or self._question.sets:
                raise InvalidInput(
                    f"`sql` must group by single attributes to be counted; got {node.sql()}. "
                    "Group by columns."
                )
            grouped.setdefault(names[0], []).append(node)
        weights = self._weigh(self._ask(self.make_query()))
        if self._conditions:
            cells = self._cells(weights, np.arange(weights.size))
            text = " AND ".join(f"({write(each)})" for each in self._conditions)
            text = f"SELECT COALESCE({text}, FALSE) AS value FROM cells ORDER BY {_ROW}"
            held = self._question.engine.run(text, cells=cells)["value"].to_numpy()
            weights = weights * held.reshape(weights.shape)
        for axis, name in reversed(list(enumerate(self._names))):
            if name not in grouped:
                weights = weights.sum(axis=axis)
            else:
                part = AttributePart(name, self._question, grouped[name])
                weights = part.add_up(weights, axis)
        kept = [name for name in self._names if name in grouped]
        return weights.transpose([kept.index(name) for name in grouped])


def _whole(node: Expr) -> list[Term]:
    """On the joint table there is no need to take an expression apart."""
    return [Term(1.0, (node.unnest() if isinstance(node, exp.Paren) else node,))]
