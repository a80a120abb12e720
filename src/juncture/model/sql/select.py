"""SQL answered by a model: counts, sums and averages become factored queries.

Every condition, every summed expression and every group is about one attribute, so an aggregate is
a product of functions of single attributes, which is a `Kron`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlglot import exp

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.attributes import (
    Key,
    Piece,
    constant_lookup,
    cut_codes,
    group_block,
    weighted_block,
)
from juncture.model.sql.groups import Groups
from juncture.model.sql.names import (
    attributes_in,
    find_aliases,
    group_by_attribute,
    resolve_columns,
)
from juncture.model.sql.scalar import Expr, evaluate, evaluate_constant
from juncture.model.sql.syntax import (
    AGGREGATES,
    ALIAS,
    check_intervals,
    check_values,
    clause_expressions,
    conjuncts,
    constants_in,
    factors,
    filters,
    parse,
    reject_aggregates,
    strip_filter,
    title,
)
from juncture.tables.codebook import Codebook, label_of
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Block
from juncture.tables.queries.products import Kron

Ask = Callable[[Kron], Vector]


class Source(NamedTuple):
    """What a query is answered from."""

    codebook: Codebook
    """The codebook of all attributes, with their domain."""
    total: float
    """The number of records."""
    ask: Ask
    """What answers factored queries, for one record: counts are its answers times the total."""


def run(sql: str, source: Source, max_groups: int | None = None) -> SqlAnswer:
    """The answer to a SELECT; refused before anything is computed if it has too many groups."""
    with _limit_depth():
        return _Select(parse(sql), source, max_groups).answer()


def count_groups(sql: str, source: Source, max_groups: int | None = None) -> Vector:
    """The number of records in every group of a SELECT, an axis for each grouped attribute.

    All groups are there, in the order of the codes, even those that `run` leaves out for having
    no records; no rows are made, so large tables are fast.
    """
    with _limit_depth():
        select = _Select(parse(sql), source, max_groups)
        return source.total * select.table(Aggregate((), select.conditions, is_count=True))


@contextmanager
def _limit_depth() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise InvalidInput(
            "`sql` must be nested less deeply; got more levels than can be followed. "
            "Write long lists with IN."
        ) from None


def _limit_groups(sizes: Iterable[int], max_groups: int | None) -> None:
    if max_groups is not None and (n_groups := math.prod(sizes)) > max_groups:
        raise ModelTooLarge(
            f"`sql` must make at most {max_groups:,} groups; got {n_groups:,}. Group by fewer "
            "columns, or by ranges of them."
        )


class Aggregate(NamedTuple):
    """What is added up over the records: a product of expressions of single attributes."""

    factors: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    is_count: bool
    """Count the records where the factors are not missing, instead of their product."""


class _Select:
    """One SELECT, from its syntax tree to its answer."""

    def __init__(self, tree: exp.Select, source: Source, max_groups: int | None) -> None:
        self.codebook, self.total, self.ask = source
        self.domain, self.tree = self.codebook.domain, tree
        resolve_columns(tree, self.domain)
        self.aliases = find_aliases(tree)
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
        self.grouped = group_by_attribute(self.groups, self.domain, "GROUP BY")
        _limit_groups(self._plain_sizes(), max_groups)  # before attributes are cut into pieces
        self._pieces = self._cut_attributes()
        self._keys: dict[str, list[Key]] = {}
        _limit_groups((len(self.groups_of(name)) for name in self.grouped), max_groups)
        self._tables: dict[Aggregate, Vector] = {}
        # By a node's identity; the node is kept too, so that no other can get the same identity.
        self._tables_by_node: dict[int, tuple[Expr, Vector, Vector | None]] = {}

    def answer(self) -> SqlAnswer:
        """All rows: grouped, filtered, ordered and cut."""
        having, order = self.tree.args.get("having"), clause_expressions(self.tree, "order")
        ordered = [self.mark_groups(self._resolve(each.this)) for each in order]
        outputs = [self.mark_groups(output) for output in self.outputs]
        groups = Groups.with_records(self, self.table(Aggregate((), self.conditions, True)))
        if having is not None:
            groups = groups.where(self.mark_groups(having.this))
        if order:
            groups = groups.sort(ordered, order)
        offset, limit = (self._clause_number(clause) for clause in ("offset", "limit"))
        groups = groups.slice(offset or 0, limit)
        names = tuple(title(output) for output in self.tree.expressions)
        columns = [map(label_of, groups.column(output)) for output in outputs]
        return SqlAnswer(names, tuple(zip(*columns, strict=True)))

    def _clause_number(self, clause: str) -> int | None:
        node = self.tree.args.get(clause)
        if node is None:
            return None
        value = None if isinstance(node, exp.Fetch) else evaluate_constant(node.expression)
        if type(value) is not int or value < 0 or node.args.get("limit_options"):
            raise InvalidInput(
                f"`sql` must have a whole number after {clause.upper()}; got {node.sql().strip()}."
            )
        return value

    def resolve_alias(self, name: str) -> Expr:
        """The expression that an alias stands for, with its groups marked."""
        return self.mark_groups(self.aliases[name])

    def mark_groups(self, node: Expr) -> Expr:
        """The expression with a placeholder for everything that stands in GROUP BY."""
        texts = {group.sql() for group in self.groups}

        def mark(part: Expr) -> Expr:
            text = part.unnest().sql()
            inside = part.find_ancestor(*AGGREGATES, exp.Filter)
            return exp.Placeholder(this=text) if text in texts and not inside else part

        return node.transform(mark)

    # Names.

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

    # Single attributes.

    def _cut_attributes(self) -> dict[str, list[Piece]]:
        """Every attribute of the query, cut at the numbers that it is compared with."""
        cuts: dict[str, set[float]] = {name: set() for name in attributes_in(self.tree)}
        for node in self.tree.find_all(exp.Predicate):
            if not node.find(*AGGREGATES):
                check_values(node, self.codebook)
                for name in attributes_in(node):
                    cuts[name] |= set(constants_in(node))
        for condition in (*self.conditions, *self.groups, *filters(self.tree)):
            check_intervals(condition, self.codebook)
        return {name: list(cut_codes(self.codebook[name], sorted(cuts[name]))) for name in cuts}

    def keys_of(self, name: str) -> list[Key]:
        """For each piece of an attribute, its group."""
        if name not in self._keys:
            meanings, nodes = self.codebook[name].meanings, self.grouped.get(name, [])
            self._keys[name] = [
                tuple(
                    meanings[piece.code]
                    if isinstance(node, exp.Column)
                    else evaluate(node, constant_lookup(piece.value))
                    for node in nodes
                )
                for piece in self._pieces[name]
            ]
        return self._keys[name]

    def groups_of(self, name: str) -> list[Key]:
        """The groups of an attribute, in the order of its codes."""
        return list(dict.fromkeys(self.keys_of(name)))

    def _plain_sizes(self) -> list[int]:
        """The sizes of the attributes that stand in GROUP BY by themselves."""
        plain = (
            n for n, nodes in self.grouped.items() if any(isinstance(e, exp.Column) for e in nodes)
        )
        return [self.domain[name] for name in plain]

    def _block(
        self, name: str, factors: Sequence[Expr], conditions: Sequence[Expr], is_count: bool
    ) -> Block:
        """What an aggregate asks of one attribute: an answer for each group."""
        pieces, keys, size = self._pieces[name], self.keys_of(name), self.domain[name]
        block = None if factors or conditions else group_block(pieces, keys, size)
        return block or weighted_block(pieces, keys, size, factors, conditions, is_count=is_count)

    # Aggregates.

    def table(self, aggregate: Aggregate) -> Vector:
        """An aggregate for every combination of groups, an axis for each grouped attribute."""
        if aggregate not in self._tables:
            self._tables[aggregate] = self._compute(aggregate)
        return self._tables[aggregate]

    def tables_of(self, node: Expr) -> tuple[Vector, Vector | None]:
        """The counts behind an aggregate, and the sums where it is not a count itself.

        They are computed once per node: rows are many, and comparing syntax trees is slow.
        """
        if id(node) not in self._tables_by_node:
            conditions, kind = self.conditions, strip_filter(node)
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
            if not attributes_in(factor):
                value = evaluate_constant(factor)
                constant *= 0.0 if value is None else 1.0 if aggregate.is_count else float(value)
        for condition in aggregate.conditions:
            if not attributes_in(condition):
                constant *= bool(evaluate_constant(condition))
        factors = group_by_attribute(
            filter(attributes_in, aggregate.factors), self.domain, "an aggregate"
        )
        conditions = group_by_attribute(
            filter(attributes_in, aggregate.conditions), self.domain, "WHERE"
        )
        blocks: dict[str, Block] = {
            name: self._block(
                name, factors.get(name, []), conditions.get(name, []), aggregate.is_count
            )
            for name in dict.fromkeys((*self.grouped, *factors, *conditions))
        }
        answers = constant * self.ask(Kron(blocks))
        return answers.reshape([len(self.groups_of(name)) for name in self.grouped])
