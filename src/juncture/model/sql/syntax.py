"""A SELECT as a syntax tree: parsed, checked, and taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlglot
from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.scalar import Expr, evaluate_constant
from juncture.tables.codebook import Codebook

# Columns that are aliases of outputs get this table name, which tells them from attributes.
ALIAS = "juncture_alias"
AGGREGATES = (exp.Count, exp.Sum, exp.Avg)
_REFUSED_CLAUSES = {
    "joins": "Joins are not supported: a model is one table.",
    "with_": "WITH is not supported: write one SELECT.",
    "distinct": "DISTINCT is not supported: a model has no records. Use GROUP BY instead.",
}
_REFUSED_NODES: dict[type[Any], str] = {
    exp.TableSample: "sample",
    exp.Window: "window function",
    exp.GroupingSets: "grouping sets",
    exp.Rollup: "rollup",
    exp.Cube: "cube",
}
_KNOWN_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}


def parse(sql: str) -> exp.Select:  # noqa: C901
    """The syntax tree of one SELECT that can have an answer."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if tree is not None]
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        reason = (str(error).splitlines() or ["it cannot be read"])[0].rstrip(".")
        raise InvalidInput(f"`sql` must be one SELECT; got an error: {reason}.") from None
    if len(trees) != 1:
        number = f"{len(trees)} statements" if trees else "nothing"
        raise InvalidInput(f"`sql` must be one SELECT; got {number}. Ask one question at a time.")
    (tree,) = trees
    if not isinstance(tree, exp.Select):
        raise InvalidInput(
            "`sql` must be one SELECT; got another kind of statement. A model cannot be changed."
        )
    for clause, value in tree.args.items():
        if value and clause not in _KNOWN_CLAUSES:
            reason = _REFUSED_CLAUSES.get(clause, "That is not supported.")
            name = clause.rstrip("_")
            raise InvalidInput(f"`sql` must be about one table of counts; got {name}. {reason}")
    for kind, label in _REFUSED_NODES.items():
        if tree.find(kind):
            raise InvalidInput(f"`sql` must have no {label}; got one.")
    if any(query is not tree for query in tree.find_all(exp.Query)):
        raise InvalidInput(
            "`sql` must have no subquery; got one. Run the subquery first, on its own."
        )
    if tree.find(exp.Star) and any(isinstance(e, exp.Star) for e in tree.expressions):
        raise InvalidInput(
            "`sql` must ask for counts, sums or averages; got SELECT *. A model has no records of "
            "its own: draw synthetic ones with sample()."
        )
    return tree


def clause_expressions(tree: exp.Select, clause: str) -> list[Any]:
    """The expressions of a clause; none where it is absent."""
    node = tree.args.get(clause)
    return list(node.expressions) if node else []


def conjuncts(node: Expr) -> list[Expr]:
    """The conditions that AND joins."""
    plain = node.unnest()
    return (
        [*conjuncts(plain.left), *conjuncts(plain.right)] if isinstance(plain, exp.And) else [plain]
    )


def factors(aggregate: Expr) -> Iterator[Expr]:
    """The expressions whose product an aggregate adds up; none for COUNT(*)."""
    inner = aggregate.this
    if isinstance(inner, exp.Distinct):
        raise InvalidInput(
            f"`sql` must not count distinct values; got {aggregate.sql()}. A model gives every "
            "possible value some weight."
        )
    if aggregate.expressions:
        raise InvalidInput(
            f"`sql` must have one expression in an aggregate; got {aggregate.sql()}."
        )
    if inner is None or isinstance(inner, exp.Star):
        return
    reject_aggregates(inner, "an aggregate", "arithmetic around it")
    waiting = [inner]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.Mul):
            waiting += [node.right, node.left]
        else:
            yield node


def reject_aggregates(node: Expr, clause: str, better: str) -> None:
    """Refuse counts, sums and averages where they cannot stand."""
    if node.find(*AGGREGATES):
        raise InvalidInput(
            f"`sql` must have no aggregates in {clause}; got {node.sql()}. Use {better}."
        )


def constants_in(predicate: Expr) -> Iterator[float]:
    """The numbers that a comparison compares a column with."""
    for side in predicate.iter_expressions():
        if not side.find(exp.Column, exp.Query):
            value = evaluate_constant(side)
            if isinstance(value, int | float):
                yield float(value)


def filters(tree: Expr) -> Iterator[Expr]:
    """The conditions of FILTER, and those inside expressions that are added up."""
    for node in tree.find_all(exp.Filter):
        yield node.expression.this
    for node in tree.find_all(exp.If, exp.Case):
        yield from (part for part in node.find_all(exp.Predicate))


def check_values(node: Expr, codebook: Codebook) -> None:
    """Refuse a value that no code stands for: it is a typing error, not an empty answer."""
    if isinstance(node, exp.EQ | exp.NEQ | exp.In) and isinstance(node.this, exp.Column):
        others = node.expressions if isinstance(node, exp.In) else [node.expression]
        for other in others:
            known = node.this.table != ALIAS
            if known and isinstance(other, exp.Literal | exp.Boolean | exp.Neg):
                codebook[node.this.name].match_exact(evaluate_constant(other))


def check_intervals(node: Expr, codebook: Codebook) -> None:
    """Refuse conditions that an interval cannot be cut for: only a plain comparison can."""
    for column in node.find_all(exp.Column):
        intervals = any(isinstance(m, tuple) for m in codebook[column.name].meanings)
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        alone = column is node or isinstance(around, exp.Is)
        compared = isinstance(around, exp.Binary | exp.Between) and isinstance(
            around, exp.Predicate
        )
        if intervals and not alone and not (compared and _count_columns(around) == 1):
            raise InvalidInput(
                f"`sql` must compare {column.name} as it is with constants; got {node.sql()}. "
                "Its numbers come in intervals: solve the condition for the column."
            )


def _count_columns(node: Expr) -> int:
    return sum(1 for _ in node.find_all(exp.Column))


def strip_filter(aggregate: Expr) -> Expr:
    """An aggregate without its FILTER."""
    return aggregate.this if isinstance(aggregate, exp.Filter) else aggregate


def title(output: Expr) -> str:
    """What a column of the answer is called: its alias, its attribute, or how it was written."""
    if isinstance(output, exp.Alias | exp.Column):
        return str(output.alias_or_name)
    plain = output.copy()
    for name in plain.find_all(exp.Identifier):
        name.set("quoted", False)
    return str(plain.sql())
