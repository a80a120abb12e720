"""The groups of a SELECT on their way to the rows of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.aggregates import Mask
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.attributes import is_special, labels_by_rank
from juncture.model.sql.engine import read_values
from juncture.model.sql.notes import Range
from juncture.model.sql.question import Question
from juncture.model.sql.ranges import Bounds
from juncture.model.sql.syntax import AGGREGATES, Expr, clause_expressions, is_windowed, write
from juncture.tables.layout import Vector

# Digits of an aggregate that count: those beyond come from rounding, and would split ties.
_DIGITS = 12


@dataclass(frozen=True)
class GroupTable:
    """A row for each group: its keys, its aggregates, and which keys it leaves out."""

    keys: list[Any]
    aggregates: list[Any]
    left_out: list[Any]
    """For grouping sets, for each key whether the group is of all its values: 1 or 0."""

    n_rows: int
    bounds: Sequence[Bounds | None] = ()
    """For each aggregate, what it can be at least and at most; none where no bin matters."""
    cells: NDArray[np.intp] | None = None
    """Where groups lie on a grid, the index of each row's group there."""


def _to_range(bounds: Bounds | None, group: int) -> Range | None:
    """The range in one group; None where both ends are the same but for rounding."""
    if bounds is None:
        return None
    low, high = float(bounds.low[group]), float(bounds.high[group])
    return None if high - low <= 1e-9 * abs(high) else Range(low, high)


def round_off(values: Vector) -> Vector:
    """Numbers without their last digits: counts that are equal but for rounding are ties."""
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        unit = 10.0 ** (_DIGITS - size)
        rounded = np.round(values * unit) / unit
    result: Vector = np.where(np.isfinite(rounded), rounded, values)
    return result


def known_column(values: Vector, known: Mask) -> pa.Array:
    """A column of numbers, missing where they are not known."""
    return pa.array(values, pa.float64(), mask=~known)


class Outputs:
    """What a SELECT makes of its groups: HAVING, windows, outputs, order and limits."""

    def __init__(self, question: Question, groups: GroupTable) -> None:
        self._question, self._groups = question, groups
        self._aggregate_index = {text: i for i, text in enumerate(question.aggregates)}
        # Of keys that go by rank, the labels.
        self._labels: dict[int, list[Any]] = {}
        for index, node in enumerate(question.keys):
            if isinstance(node, exp.Column) and is_special(question.codebook[node.name]):
                self._labels[index] = labels_by_rank(question.codebook[node.name])

    def answer(self) -> SqlAnswer:
        """The rows of the answer."""
        return self.select()[0]

    def evaluate(self) -> list[pa.ChunkedArray | None]:
        """The outputs of every group, in the order of the groups; None where others matter."""
        nodes = self._question.outputs
        plain = [i for i, node in enumerate(nodes) if not node.find(exp.Window)]
        items = [f"{self._write(nodes[i], ranked=True)} AS o{i}" for i in plain]
        text = f"SELECT {', '.join([*items, 'r'])} FROM groups ORDER BY r"
        rows = self._question.engine.run(text, groups=self._table)
        return [rows[f"o{i}"] if i in plain else None for i in range(len(nodes))]

    def select(self) -> tuple[SqlAnswer, list[int]]:
        """The rows of the answer, and which group each of them is."""
        question, tree = self._question, self._question.tree
        outputs = [self._write(node, ranked=True) for node in question.outputs]
        items = ", ".join(f"{text} AS o{i}" for i, text in enumerate(outputs))
        text = f"SELECT {items}, r FROM groups{self._clause('having', 'WHERE')}"
        text += self._clause("qualify", "QUALIFY")
        ordered = [*map(self._write_order, clause_expressions(tree, "order")), "r"]
        if tree.args.get("distinct"):
            names = ", ".join(f"o{i}" for i in range(len(outputs)))
            text = f"SELECT {names}, MIN(r) AS r FROM ({text}) GROUP BY {names}"
            ordered = [*self._order_of_distinct(outputs), "r"]
        limits = "".join(self._limit(clause) for clause in ("limit", "offset"))
        rows = question.engine.run(
            f"{text} ORDER BY {', '.join(ordered)}{limits}", groups=self._table
        )
        columns = [self._read(node, rows[f"o{i}"]) for i, node in enumerate(question.outputs)]
        order = rows["r"].to_pylist()
        ranges = self._ranges(order)
        return SqlAnswer(question.titles, tuple(zip(*columns, strict=True)), ranges=ranges), order

    def _ranges(self, groups: list[int]) -> tuple[tuple[Range | None, ...], ...]:
        """For each row, the range of each output that is an aggregate with bounds."""
        bounds: list[Bounds | None] = []
        for node in self._question.outputs:
            index = self._aggregate_index.get(write(node.unnest()))
            known = index is not None and index < len(self._groups.bounds)
            bounds.append(self._groups.bounds[index] if known else None)  # type: ignore[index]
        if not any(bounds):
            return ()
        return tuple(tuple(_to_range(b, group) for b in bounds) for group in groups)

    @property
    def _table(self) -> pa.Table:
        groups = self._groups
        columns = {"r": pa.array(np.arange(groups.n_rows))}
        columns |= {f"a{i}": column for i, column in enumerate(groups.aggregates)}
        columns |= {f"g{i}": column for i, column in enumerate(groups.left_out)}
        for index, column in enumerate(groups.keys):
            columns[f"k{index}"] = column
            if index in self._labels:
                labels = [None if label is None else str(label) for label in self._labels[index]]
                values = [None if rank is None else labels[rank] for rank in column.to_pylist()]
                columns[f"k{index}"] = pa.array(values, pa.string())
                columns[f"rank{index}"] = column
        return pa.table(columns)

    def _clause(self, name: str, keyword: str) -> str:
        node = self._question.tree.args.get(name)
        return f" {keyword} {self._write(node.this)}" if node else ""

    def _write_order(self, ordered: Expr) -> str:
        plain = ordered.copy()
        plain.set("this", self._rewrite(self._question.resolve(ordered.this), ranked=True))
        return write(plain)

    def _order_of_distinct(self, outputs: list[str]) -> list[str]:
        """DISTINCT rows can only be ordered by what they show."""
        order = []
        for ordered in clause_expressions(self._question.tree, "order"):
            text = self._write(self._question.resolve(ordered.this), ranked=True)
            if text not in outputs:
                raise InvalidInput(
                    f"`sql` must order DISTINCT rows by their columns; got {ordered.this.sql()}."
                )
            plain = ordered.copy()
            plain.set("this", exp.column(f"o{outputs.index(text)}"))
            order.append(write(plain))
        return order

    def _limit(self, clause: str) -> str:
        node = self._question.tree.args.get(clause)
        if node is None:
            return ""
        plain = None if node.args.get("limit_options") else node.expression
        if not (isinstance(plain, exp.Literal) and str(plain.this).isdigit()):
            raise InvalidInput(
                f"`sql` must have a whole number after {clause.upper()}; got {node.sql().strip()}. "
                "Write the number out."
            )
        return f" {clause.upper()} {plain.this}"

    def _write(self, node: Expr, *, ranked: bool = False) -> str:
        return write(self._rewrite(node, ranked=ranked))

    def _rewrite(self, node: Expr, *, ranked: bool) -> Expr:
        """An expression over the columns of the groups."""
        if ranked and (index := self._question.key_index(node)) in self._labels:
            return exp.column(f"rank{index}")
        return node.copy().transform(self._replace, copy=False)

    def _replace(self, node: Expr) -> Expr:
        question = self._question
        if isinstance(node, (*AGGREGATES, exp.Filter)) and not is_windowed(node):
            return exp.column(f"a{self._aggregate_index[write(node)]}")
        if isinstance(node, exp.Grouping):
            return self._write_grouping(node)
        if isinstance(node, exp.Func | exp.Binary | exp.Unary | exp.Column | exp.Condition):
            index = question.key_index(node)
            if index is not None:
                ranked = index in self._labels and isinstance(node.parent, exp.Ordered)
                return exp.column(f"rank{index}" if ranked else f"k{index}")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            raise InvalidInput(
                f"`sql` must group by every column outside an aggregate; got {node.sql()}. "
                "Add it to GROUP BY, or take its SUM or AVG."
            )
        return node

    def _write_grouping(self, node: Expr) -> Expr:
        indices = [self._question.key_index(each) for each in node.expressions]
        if None in indices or not indices:
            raise InvalidInput(f"`sql` must have groups in GROUPING; got {node.sql()}.")
        if not self._groups.left_out:
            return exp.Literal.number(0)
        bits = [f"g{index} * {1 << bit}" for bit, index in enumerate(reversed(indices))]
        return exp.maybe_parse(f"CAST({' + '.join(bits)} AS BIGINT)", dialect="duckdb")

    def _read(self, node: Expr, column: pa.ChunkedArray) -> list[Any]:
        index, values = self._question.key_index(node), read_values(column)
        if index in self._labels:
            labels = self._labels[index]
            return [None if rank is None else labels[rank] for rank in values]
        return values
