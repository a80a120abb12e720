"""SQL answered by a model: counts, sums and averages become factored queries.

Every condition, every summed expression and every group is about one attribute, so an aggregate is
a product of functions of single attributes, which is a `Kron`. An attribute whose codes stand for
intervals is cut at the numbers that the query compares it with, so that a condition counts the
right share of an interval, and a sum takes the middle of that share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.scalar import Expr, Value, evaluate, evaluate_constant
from juncture.model.sql.syntax import (
    AGGREGATES,
    ALIAS,
    check_values,
    clause_expressions,
    columns_in,
    conjuncts,
    constants_in,
    factors,
    filters,
    parse,
    reject_aggregates,
    title,
)
from juncture.tables.codebook import Codebook, Coding, Special, label_of
from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block, Matrix
from juncture.tables.queries.products import Kron

Ask = Callable[[Kron], Vector]
Key = tuple[Any, ...]

# Groups with a smaller share of all records than this do not appear.
_MIN_SHARE = 1e-12


@dataclass(frozen=True)
class SqlAnswer:
    """Named columns and rows of values; counts are expectations, so they need not be whole."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        cells = [self.columns, *(tuple(map(_format_cell, row)) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join(lines)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def _format_cell(value: object) -> str:
    return "NULL" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def run(sql: str, domain: Domain, codebook: Codebook, total: float, ask: Ask) -> SqlAnswer:
    """The answer to a SELECT; `ask` answers factored queries."""
    with _limit_depth():
        return _Select(parse(sql), domain, codebook, total, ask).answer()


def count_groups(sql: str, domain: Domain, codebook: Codebook, total: float, ask: Ask) -> Vector:
    """The number of records in every group of a SELECT, an axis for each grouped attribute.

    All groups are there, in the order of the codes, also those that `run` leaves out for having
    no records; no rows are made, so large tables come fast.
    """
    with _limit_depth():
        select = _Select(parse(sql), domain, codebook, total, ask)
        return select.table(Aggregate((), select.conditions, is_count=True))


@contextmanager
def _limit_depth() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidInput(
            "`sql` must not be nested so deeply; got more levels than can be followed. "
            "Write long lists with IN."
        ) from None


class Piece(NamedTuple):
    """A part of a code: all of it, or a stretch of its interval."""

    code: int
    share: float
    value: Any


class Aggregate(NamedTuple):
    """What is added up over the records: a product of expressions of single attributes."""

    factors: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    is_count: bool
    """Count the records where the factors are not missing, instead of their product."""


class _Select:
    """One SELECT on its way to its answer."""

    def __init__(
        self, tree: exp.Select, domain: Domain, codebook: Codebook, total: float, ask: Ask
    ) -> None:
        self.domain, self.codebook, self.total, self.ask = domain, codebook, total, ask
        self.tree = tree
        named = [e.alias.lower() for e in tree.expressions if isinstance(e, exp.Alias)]
        self._name_columns(set(named))
        self.aliases = {
            e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)
        }
        self.outputs = [output.unalias() for output in tree.expressions]
        self.groups = [self._resolve(node).unnest() for node in clause_expressions(tree, "group")]
        where = tree.args.get("where")
        self.conditions = tuple(conjuncts(where.this)) if where else ()
        for node in (*self.groups, *self.conditions):
            reject_aggregates(node, "WHERE and GROUP BY", "SELECT or HAVING")
        if not self.groups and not any(output.find(*AGGREGATES) for output in self.outputs):
            raise InvalidInput(
                "`sql` must ask for counts, sums or averages; got records. A model has no records "
                "of its own: add COUNT(*) and GROUP BY, or draw synthetic ones with sample()."
            )
        self.grouped = self._group_by_attribute(self.groups, "GROUP BY")
        self._pieces = self._cut_attributes()
        self._tables: dict[Aggregate, Vector] = {}
        # By a node's identity; the node is kept too, so that no other gets its identity.
        self._tables_by_node: dict[int, tuple[Expr, Vector, Vector | None]] = {}

    def answer(self) -> SqlAnswer:
        """All rows: grouped, filtered, ordered and cut."""
        having, order = self.tree.args.get("having"), clause_expressions(self.tree, "order")
        condition = None if having is None else self.mark_groups(having.this)
        ordered = [self.mark_groups(self._resolve(each.this)) for each in order]
        outputs = [self.mark_groups(output) for output in self.outputs]
        rows: list[tuple[tuple[Any, ...], list[Any]]] = []
        for group in self._all_groups():
            if condition is None or group.value(condition):
                keys = [group.value(each) for each in ordered]
                values = (group.value(output) for output in outputs)
                rows.append((tuple(map(label_of, values)), keys))

        def precedence(left: tuple[Any, list[Any]], right: tuple[Any, list[Any]]) -> int:
            return _compare_rows(left[1], right[1], order)

        rows.sort(key=cmp_to_key(precedence))
        offset, limit = (self._clause_number(clause) for clause in ("offset", "limit"))
        first = offset or 0
        kept = rows[first:] if limit is None else rows[first : first + limit]
        names = tuple(title(output) for output in self.tree.expressions)
        return SqlAnswer(names, tuple(row for row, _ in kept))

    def _clause_number(self, clause: str) -> int | None:
        node = self.tree.args.get(clause)
        if node is None:
            return None
        value = None if isinstance(node, exp.Fetch) else evaluate_constant(node.expression)
        if type(value) is not int or value < 0 or node.args.get("limit_options"):
            raise InvalidInput(
                f"`sql` must have a whole number after {clause.upper()}; got {node.sql().strip()}. "
                "Write the number out."
            )
        return value

    def mark_groups(self, node: Expr) -> Expr:
        """The expression with everything that is grouped by marked, wherever it stands."""
        texts = {group.sql() for group in self.groups}

        def mark(part: Expr) -> Expr:
            text = part.unnest().sql()
            inside = part.find_ancestor(*AGGREGATES, exp.Filter)
            return exp.Placeholder(this=text) if text in texts and not inside else part

        return node.transform(mark)

    # Names.

    def _name_columns(self, aliases: set[str]) -> None:
        """Give every column the exact name of its attribute; aliases stay what they are.

        In ORDER BY an alias comes before an attribute of the same name, elsewhere after it.
        """
        ordered = {id(each.this) for each in clause_expressions(self.tree, "order")}
        known = {name.lower() for name in self.domain}
        for column in list(self.tree.find_all(exp.Column)):
            lower = column.name.lower()
            first = id(column) in ordered and not column.table
            if lower in aliases and (first or lower not in known):
                column.set("this", exp.to_identifier(lower, quoted=False))
                column.set("table", exp.to_identifier(ALIAS))
                continue
            alike = [name for name in self.domain if name.lower() == lower]
            exact = column.name in self.domain or len(alike) != 1
            name = self.domain.project([column.name if exact else alike[0]]).attributes[0]
            column.replace(exp.column(exp.to_identifier(name, quoted=True)))

    def _resolve(self, node: Expr) -> Expr:
        """What an alias, or a position in the list of outputs, stands for."""
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(str(node.this)) if str(node.this).isdigit() else 0
            if not 1 <= position <= len(self.outputs):
                raise InvalidInput(
                    f"`sql` must give positions from 1 to {len(self.outputs)}; got {node.sql()}. "
                    "Name the column instead."
                )
            return self.outputs[position - 1]
        if isinstance(node, exp.Column) and node.table == ALIAS:
            return self.aliases[node.name]
        return node

    def _columns(self, node: Expr) -> set[str]:
        columns = node.find_all(exp.Column)
        return {column.name for column in columns if column.table != ALIAS}

    def _group_by_attribute(self, nodes: Iterable[Expr], clause: str) -> dict[str, list[Expr]]:
        """Expressions by the one attribute that each is about."""
        by_attribute: dict[str, list[Expr]] = {}
        for node in nodes:
            names = self._columns(node)
            if len(names) != 1 or not names.issubset(self.domain):
                about = ", ".join(sorted(names)) or "no attribute"
                raise InvalidInput(
                    f"`sql` must have one attribute in each part of {clause}; got {node.sql()}, "
                    f"about {about}. Conditions on several attributes may be joined by AND only."
                )
            by_attribute.setdefault(names.pop(), []).append(node)
        return by_attribute

    # Single attributes.

    def _cut_attributes(self) -> dict[str, list[Piece]]:
        """Every attribute of the query, cut at the numbers that it is compared with."""
        cuts: dict[str, set[float]] = {name: set() for name in self._columns(self.tree)}
        for node in self.tree.find_all(exp.Predicate):
            if not node.find(*AGGREGATES):
                check_values(node, self.codebook)
                for name in self._columns(node):
                    cuts[name] |= set(constants_in(node))
        for condition in (*self.conditions, *self.groups, *filters(self.tree)):
            self._check_intervals(condition)
        return {name: list(_cut(self.codebook[name], sorted(cuts[name]))) for name in cuts}

    def _check_intervals(self, node: Expr) -> None:
        """Numbers known by their interval can only be compared as they are, with constants."""
        for column in node.find_all(exp.Column):
            intervals = any(isinstance(m, tuple) for m in self.codebook[column.name].meanings)
            around = column.parent
            while isinstance(around, exp.Paren):
                around = around.parent
            alone = column is node or isinstance(around, exp.Is)
            compared = isinstance(around, exp.Binary | exp.Between) and isinstance(
                around, exp.Predicate
            )
            if intervals and not alone and not (compared and len(list(columns_in(around))) == 1):
                raise InvalidInput(
                    f"`sql` must compare {column.name} as it is with constants; got {node.sql()}. "
                    "Its numbers come in intervals: solve the condition for the column."
                )

    def _keys(self, name: str) -> list[Key]:
        """For each piece of an attribute, its group."""
        meanings, nodes = self.codebook[name].meanings, self.grouped.get(name, [])
        return [
            tuple(
                meanings[piece.code]
                if isinstance(node, exp.Column)
                else evaluate(node, _constant_lookup(piece.value))
                for node in nodes
            )
            for piece in self._pieces[name]
        ]

    def _groups_of(self, name: str) -> list[Key]:
        return list(dict.fromkeys(self._keys(name)))

    def _block(
        self, name: str, factors: Sequence[Expr], conditions: Sequence[Expr],
        is_count: bool,
    ) -> Matrix:  # fmt: skip
        """One attribute's part of an aggregate: a row for each group, a column for each code."""
        rows = {key: row for row, key in enumerate(self._groups_of(name))}
        matrix = np.zeros((len(rows), self.domain[name]))
        for piece, key in zip(self._pieces[name], self._keys(name), strict=True):
            lookup = _constant_lookup(piece.value)
            if all(evaluate(condition, lookup) for condition in conditions):
                values = [evaluate(factor, lookup) for factor in factors]
                outside = any(isinstance(value, Special) for value in values)
                if None not in values and (is_count or not outside):
                    weight = 1.0 if is_count else math.prod(map(_as_number, values))
                    matrix[rows[key], piece.code] += piece.share * weight
        return Matrix(matrix)

    # Aggregates.

    def table(self, aggregate: Aggregate) -> Vector:
        """An aggregate for every combination of groups, an axis for each grouped attribute."""
        if aggregate not in self._tables:
            self._tables[aggregate] = self._compute(aggregate)
        return self._tables[aggregate]

    def tables_of(self, node: Expr) -> tuple[Vector, Vector | None]:
        """The counts behind an aggregate, and the sums where it is not a count itself.

        Found once for a node: rows are many, and comparing syntax trees takes long.
        """
        if id(node) not in self._tables_by_node:
            conditions, kind = self.conditions, _strip_filter(node)
            if kind is not node:
                conditions = (*conditions, *conjuncts(node.expression.this))
            added_up = tuple(factors(kind))
            counts = self.table(Aggregate(added_up, conditions, True))
            is_count = isinstance(kind, exp.Count)
            sums = None if is_count else self.table(Aggregate(added_up, conditions, False))
            self._tables_by_node[id(node)] = (node, counts, sums)
        return self._tables_by_node[id(node)][1:]

    def _compute(self, aggregate: Aggregate) -> Vector:
        constant = 1.0
        for factor in aggregate.factors:
            if not self._columns(factor):
                value = evaluate_constant(factor)
                constant *= 0.0 if value is None else 1.0 if aggregate.is_count else float(value)
        for condition in aggregate.conditions:
            if not self._columns(condition):
                constant *= bool(evaluate_constant(condition))
        factors = self._group_by_attribute(filter(self._columns, aggregate.factors), "an aggregate")
        conditions = self._group_by_attribute(filter(self._columns, aggregate.conditions), "WHERE")
        blocks: dict[str, Block] = {
            name: self._block(
                name, factors.get(name, []), conditions.get(name, []), aggregate.is_count
            )
            for name in dict.fromkeys((*self.grouped, *factors, *conditions))
        }
        answers = constant * self.ask(Kron(blocks))
        return answers.reshape([len(self._groups_of(name)) for name in self.grouped])

    def _all_groups(self) -> Iterator[_Group]:
        """The groups that have records; without GROUP BY, the one group of all records."""
        records = self.table(Aggregate((), self.conditions, is_count=True))
        axes = [self._groups_of(name) for name in self.grouped]
        texts = [node.sql() for nodes in self.grouped.values() for node in nodes]
        for index in product(*(range(len(axis)) for axis in axes)):
            if not self.groups or records[index] > _MIN_SHARE * self.total:
                values = (value for axis, i in zip(axes, index, strict=True) for value in axis[i])
                yield _Group(self, index, dict(zip(texts, values, strict=True)))


class _Group:
    """One row in the making: what columns and aggregates stand for in it."""

    def __init__(self, select: _Select, index: tuple[int, ...], keys: dict[str, Any]) -> None:
        self._select, self._index, self._keys = select, index, keys

    def value(self, node: Expr) -> Value:
        """An expression's value in the group."""
        return evaluate(node, self._lookup)

    def _lookup(self, node: Expr) -> Value:
        if isinstance(node, exp.Placeholder):
            return self._keys[str(node.this)]
        if not isinstance(node, exp.Column):
            return self._aggregate(node)
        if node.table == ALIAS:
            return self.value(self._select.mark_groups(self._select.aliases[node.name]))
        raise InvalidInput(
            f"`sql` must group by every column outside an aggregate; got {node.sql()}. "
            "Add it to GROUP BY, or take its SUM or AVG."
        )

    def _aggregate(self, node: Expr) -> float | None:
        counts, sums = self._select.tables_of(node)
        count = float(counts[self._index])
        if sums is None:
            return count
        if count <= _MIN_SHARE * self._select.total:
            return None
        added = float(sums[self._index])
        return added / count if isinstance(_strip_filter(node), exp.Avg) else added


def _strip_filter(aggregate: Expr) -> Expr:
    """An aggregate without its FILTER."""
    return aggregate.this if isinstance(aggregate, exp.Filter) else aggregate


def _cut(coding: Coding, cuts: Sequence[float]) -> Iterator[Piece]:
    """The codes; those that stand for intervals are cut at numbers inside them."""
    for code, meaning in enumerate(coding.meanings):
        if isinstance(meaning, tuple):
            low, high = meaning
            ends = [low, *(cut for cut in cuts if low < cut < high), high]
            for left, right in pairwise(ends):
                yield Piece(code, (right - left) / (high - low), 0.5 * (left + right))
        else:
            yield Piece(code, 1.0, meaning)


def _constant_lookup(value: Value) -> Callable[[Expr], Value]:
    """The only column of an expression, at one of its values."""
    return lambda _column: value


def _as_number(value: object) -> float:
    if not isinstance(value, int | float):
        raise InvalidInput(
            f"`sql` must add up numbers; got {value!r}. Count texts with COUNT(*) and WHERE."
        )
    return float(value)


def _are_numbers(left: Value, right: Value) -> bool:
    return isinstance(left, int | float) and isinstance(right, int | float)


def _compare_rows(left: list[Any], right: list[Any], order: list[exp.Ordered]) -> int:
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
