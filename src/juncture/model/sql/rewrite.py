"""Expressions as DuckDB should see them: LIKE in linear time, and values outside the domain."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.syntax import Expr

OUTSIDE_PREFIX = "juncture_outside_"
"""Before an attribute's name: the column that says whether its value is outside the domain."""
_SEES_NULL = (exp.NullSafeEQ, exp.NullSafeNEQ, exp.Greatest, exp.Least, exp.Concat)


def rewrite(tree: exp.Select, outside: Collection[str]) -> exp.Select:
    """The same SELECT for tables in which values outside the domain are NULL with a mark."""

    def change(node: Expr) -> Expr:
        if isinstance(node, exp.Escape):
            return _match(node.this, _constant_text(node.expression))
        if isinstance(node, exp.Like | exp.ILike):
            return _match(node, None)
        return node

    for like in list(tree.find_all(exp.Escape, exp.Like, exp.ILike)):
        if not isinstance(like.parent, exp.Escape):
            like.replace(change(like))
    for column in list(tree.find_all(exp.Column)):
        if column.name in outside:
            _mark_outside(column)
    return tree


def _mark_outside(column: Expr) -> None:
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


def _match(node: Expr, escape: str | None) -> Expr:
    """LIKE as a regular expression, which DuckDB matches in linear time."""
    text, pattern = node.this, _constant_text(node.expression)
    if isinstance(node, exp.ILike):
        text, pattern = exp.Lower(this=text.copy()), pattern.lower()
    matched = exp.RegexpFullMatch(
        this=text.copy(), expression=exp.Literal.string(translate_like(pattern, escape))
    )
    matched.set("options", exp.Literal.string("s"))
    return exp.not_(matched, copy=False) if node.args.get("negate") else matched


def translate_like(pattern: str, escape: str | None = None) -> str:
    """The regular expression of a LIKE pattern.

    >>> translate_like("50%_a.b")
    '50.*.a[.]b'
    >>> translate_like("50!%", "!")
    '50%'
    """
    parts, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            parts.append(_quote(next(letters, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter, _quote(letter)))
    return re.sub(r"(?:\.\*)+", ".*", "".join(parts))


def _quote(letter: str) -> str:
    if letter in "\\^":
        return f"\\{letter}"
    return f"[{letter}]" if letter and letter in ".*+?()|[]{}$" else letter


def _constant_text(node: Expr) -> str:
    plain = node.unnest()
    if not (isinstance(plain, exp.Literal) and plain.is_string):
        raise InvalidInput(
            f"`sql` must have a text as the pattern of LIKE; got {node.sql()}. Write it out."
        )
    return str(plain.this)
