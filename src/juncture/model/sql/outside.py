"""Values outside the domain as DuckDB should see them."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.syntax import Expr

OUTSIDE_PREFIX = "juncture_outside_"
"""Before an attribute's name: the column that says whether its value is outside the domain."""
_SEES_NULL = (exp.NullSafeEQ, exp.NullSafeNEQ, exp.Greatest, exp.Least, exp.Concat)


def mark_outside(tree: exp.Select, outside: Collection[str]) -> exp.Select:
    """The same SELECT for tables in which values outside the domain are NULL with a mark."""
    for column in list(tree.find_all(exp.Column)):
        if column.name in outside:
            _mark_column(column)
    return tree


def _mark_column(column: Expr) -> None:
    """A value outside the domain is not missing, though nothing else is known of it."""
    parent = column.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    mark = exp.column(f"{OUTSIDE_PREFIX}{column.name}", quoted=True)
    if isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null):
        missing = parent.copy()
        parent.replace(exp.paren(exp.and_(missing, exp.not_(mark)), copy=False))
    elif isinstance(parent, exp.Coalesce):
        whole = parent.copy()
        parent.replace(exp.Case(ifs=[exp.If(this=exp.not_(mark), true=whole)]))
    elif isinstance(parent, _SEES_NULL):
        raise InvalidInput(
            f"`sql` must not treat {column.name} as missing where it is outside the domain; got "
            f"{parent.sql()}. Compare it with = or IS NULL."
        )
