"""What the names of a SELECT stand for: attributes, outputs, WITH, and queries in its FROM.

A query in FROM that only filters and renames becomes part of the SELECT around it; one that
aggregates is answered first, and so is a query inside an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from juncture.errors import InvalidInput, UnknownAttribute
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.syntax import (
    AGGREGATES,
    MAX_NODES,
    Expr,
    Value,
    clause_expressions,
    count_nodes,
    limit_nodes,
    title,
)

ALIAS = "juncture_alias"
"""The table of columns that are outputs of the SELECT itself."""
Ask = Callable[[exp.Select, Mapping[str, exp.Select]], SqlAnswer]
"""Answers a query inside another, which may use the queries of WITH."""


@dataclass(frozen=True)
class Flat:
    """A SELECT over the model's table alone, or over the rows of an answer."""

    tree: exp.Select
    titles: tuple[str, ...] = ()
    rows: SqlAnswer | None = None
    """What FROM stands for, where that is not the model."""


class Names:
    """The columns of a table by name, and what each stands for."""

    def __init__(self, columns: Mapping[str, Expr]) -> None:
        self.columns = dict(columns)

    @classmethod
    def of_attributes(cls, attributes: Iterable[str]) -> Names:
        """The attributes, under their own names."""
        return cls({name: exp.column(name, quoted=True) for name in attributes})

    def find(self, name: str) -> str | None:
        """The exact name of a column; letter case matters only where two differ in nothing else."""
        if name in self.columns:
            return name
        alike = [each for each in self.columns if each.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    def find_or_refuse(self, name: str) -> str:
        """The exact name of a column that must be there."""
        exact = self.find(name)
        if exact is None:
            known = ", ".join(map(_as_written, list(self.columns)[:12]))
            raise UnknownAttribute(
                f"`sql` must name columns of its table; got {name!r}. The columns are {known}"
                f"{' and more' if len(self.columns) > 12 else ''}.",
                name=name,
            )
        return exact


def _as_written(name: str) -> str:
    """A name as a query has to write it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else exp.column(name, quoted=True).sql()


def flatten(
    tree: exp.Select, attributes: Iterable[str], ask: Ask, queries: Mapping[str, exp.Select]
) -> Flat:
    """The same SELECT without queries inside it, every column by the exact attribute."""
    tree = tree.copy()
    attributes = tuple(attributes)
    queries = {**queries, **_take_with(tree)}
    source = _take_source(tree, queries)
    _answer_subqueries(tree, ask, queries)
    if not isinstance(source, exp.Select):
        return _resolve_names(tree, Names.of_attributes(attributes))
    inner = flatten(source, attributes, ask, queries) if _is_plain(source) else None
    if inner is None or inner.rows is not None:
        return Flat(tree, rows=ask(source, queries))
    return _merge(tree, inner)


def _take_with(tree: exp.Select) -> dict[str, exp.Select]:
    node, queries = tree.args.get("with_"), {}
    for query in node.expressions if node else ():
        if query.args["alias"].args.get("columns") or not isinstance(query.this, exp.Select):
            raise InvalidInput(
                f"`sql` must have a plain SELECT in WITH; got {query.sql()}. Name its columns "
                "with AS."
            )
        queries[query.alias.lower()] = query.this
    if node and node.args.get("recursive"):
        raise InvalidInput("`sql` must have no recursion; got WITH RECURSIVE. Leave it out.")
    tree.set("with_", None)
    return queries


def _take_source(tree: exp.Select, queries: Mapping[str, exp.Select]) -> Expr:
    """What FROM is about; the names by which columns may mention it are checked here."""
    node = tree.args.get("from_")
    if node is None:
        raise InvalidInput("`sql` must ask a table; got no FROM. Give it any name: FROM t.")
    source, allowed = node.this, {node.this.alias_or_name.lower()}
    if source.args.get("sample") or source.args.get("joins") or source.args.get("pivots"):
        raise InvalidInput(
            "`sql` must be about one table; got more in FROM. Joins have no answer here: a model "
            "is one table."
        )
    inner_columns = {id(c) for q in tree.find_all(exp.Subquery) for c in q.find_all(exp.Column)}
    for column in tree.find_all(exp.Column):
        if id(column) not in inner_columns:
            if column.table and column.table.lower() not in allowed:
                raise InvalidInput(
                    f"`sql` must be about one table; got {column.sql()}. A query inside another "
                    "cannot use the columns of the one around it."
                )
            column.set("table", None)
    if isinstance(source, exp.Subquery):
        return source.this
    return queries.get(source.name.lower())


def _answer_subqueries(tree: exp.Select, ask: Ask, queries: Mapping[str, exp.Select]) -> None:
    """Put the answers of queries inside expressions in their places."""
    tree.set("from_", exp.From(this=exp.to_table("t")))
    while (node := tree.find(exp.Subquery)) is not None:
        answer = ask(node.this, queries)
        parent = node.parent
        if len(answer.columns) != 1:
            raise InvalidInput(f"`sql` must have one column in a subquery; got {node.sql()}.")
        values = [_literal(row[0]) for row in answer.rows]
        if isinstance(parent, exp.In) and node.arg_key == "query":
            parent.set("query", None)
            parent.set("expressions", values or [exp.Null()])
        elif len(values) > 1:
            raise InvalidInput(f"`sql` must have one row in a subquery; got {node.sql()}.")
        else:
            node.replace(values[0] if values else exp.Null())


def _literal(value: Value) -> Expr:
    if isinstance(value, float):
        return exp.cast(exp.Literal.string(repr(value)), "double")
    return exp.convert(value)


def _is_plain(tree: exp.Select) -> bool:
    """Whether a query only filters, calculates and renames."""
    others = ("group", "having", "qualify", "distinct", "limit", "offset")
    if any(tree.args.get(clause) for clause in others):
        return False
    return not any(e.find(*AGGREGATES, exp.Window) for e in tree.expressions)


def _resolve_names(tree: exp.Select, names: Names) -> Flat:
    """Give every column its exact name; outputs of the SELECT itself become what they stand for.

    In ORDER BY an output comes before a column of the same name, elsewhere after it.
    """
    _expand_star(tree, names)
    _expand_order_by_all(tree)
    titles = tuple(_title(output, names) for output in tree.expressions)
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    ordered = {id(each.this) for each in clause_expressions(tree, "order")}
    n_nodes = 0
    for column in list(tree.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            continue
        lower, exact = column.name.lower(), names.find(column.name)
        if lower in aliases and (exact is None or id(column) in ordered):
            column.set("this", exp.to_identifier(lower, quoted=False))
            column.set("table", exp.to_identifier(ALIAS))
        else:
            meaning = names.columns[names.find_or_refuse(column.name)]
            n_nodes += count_nodes(meaning)
            limit_nodes(n_nodes)
            column.replace(_enclose(meaning))
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    return Flat(_expand_aliases(tree, aliases), titles)


def _title(output: Expr, names: Names) -> str:
    if isinstance(output, exp.Column):
        return names.find(output.name) or output.name
    return title(output)


def _enclose(node: Expr) -> Expr:
    plain = node.copy()
    return plain if isinstance(plain, exp.Column) else exp.paren(plain, copy=False)


def _expand_star(tree: exp.Select, names: Names) -> None:
    outputs: list[Expr] = []
    for output in tree.expressions:
        if not isinstance(output, exp.Star):
            outputs.append(output)
        elif any(output.args.values()):
            raise InvalidInput(f"`sql` must name its columns; got {output.sql()}.")
        else:
            outputs += [exp.column(name, quoted=True) for name in names.columns]
    tree.set("expressions", outputs)


def _expand_order_by_all(tree: exp.Select) -> None:
    order = clause_expressions(tree, "order")
    if len(order) == 1 and isinstance(order[0].this, exp.Var):
        positions = []
        for position in range(1, len(tree.expressions) + 1):
            each = order[0].copy()
            each.set("this", exp.Literal.number(position))
            positions.append(each)
        tree.args["order"].set("expressions", positions)


def _expand_aliases(tree: exp.Select, aliases: Mapping[str, Expr]) -> exp.Select:
    n_expanded = 0
    while waiting := [c for c in tree.find_all(exp.Column) if c.table == ALIAS]:
        for column in waiting:
            n_expanded += count_nodes(aliases[column.name])
            if n_expanded > MAX_NODES:
                raise InvalidInput(
                    "`sql` must not define names by each other; got a circle, or names that stand "
                    "for too much. Write out what they stand for."
                )
            column.replace(_enclose(aliases[column.name]))
    return tree


def _merge(tree: exp.Select, inner: Flat) -> Flat:
    """A SELECT over one that filters and renames: both in one."""
    columns = dict(zip(inner.titles, (e.unalias() for e in inner.tree.expressions), strict=True))
    outer = _resolve_names(tree, Names(columns))
    where, own = inner.tree.args.get("where"), outer.tree.args.get("where")
    if where:
        both = exp.and_(where.this, own.this, copy=True) if own else where.this.copy()
        outer.tree.set("where", exp.Where(this=both))
    return replace(outer)
