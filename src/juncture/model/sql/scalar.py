"""The value of a SQL expression at one point, with SQL's third truth value for what is missing."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.tables.codebook import Special

Value = Any
Expr = Any
"""A node of the parser's syntax tree."""
Lookup = Callable[[Expr], Value]
"""Gives the value of a column or an aggregate at the point."""

# More digits than any number has, before the decimal point and after it.
_MAX_DIGITS = 300
# Every float of at least this size is whole.
_WHOLE = 2.0**53
_ARITHMETIC: dict[type[Any], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.IntDiv: lambda a, b: math.copysign(1, a) * math.copysign(1, b) * (abs(a) // abs(b)),
    exp.Mod: math.fmod,
}
_COMPARISONS: dict[type[Any], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


def evaluate(node: Expr, lookup: Lookup) -> Value:
    """The value of an expression; None where it is missing or unknown.

    A value outside the domain is not missing, but nothing else is known about it.
    """
    kind = type(node)
    if node.args.get("negate"):  # how the parser represents NOT LIKE, NOT IN and similar
        plain = node.copy()
        plain.set("negate", None)
        return _negate(evaluate(plain, lookup))
    if kind in _ARITHMETIC:
        return _arithmetic(node, lookup)
    if kind in _COMPARISONS:
        left, right = evaluate(node.left, lookup), evaluate(node.right, lookup)
        return _compare(_COMPARISONS[kind], left, right, node)
    if kind not in _RULES:
        raise InvalidInput(
            f"`sql` must use supported expressions; got {node.sql()}. "
            "Arithmetic, comparisons, CASE, COALESCE, NULLIF, ROUND, ABS and LIKE are supported."
        )
    return _RULES[kind](node, lookup)


def evaluate_constant(node: Expr) -> Value:
    """The value of a constant, or a clear error."""
    return evaluate(node, _reject_column)


def _reject_column(node: Expr) -> Value:
    raise InvalidInput(f"`sql` must have a constant here; got {node.sql()}.")


def _arithmetic(node: Expr, lookup: Lookup) -> Value:
    left, right = evaluate(node.left, lookup), evaluate(node.right, lookup)
    if _is_unknown(left) or _is_unknown(right):
        return None
    if not (_is_number(left) and _is_number(right)):
        raise InvalidInput(
            f"`sql` must calculate with numbers; got {left!r} and {right!r} in {node.sql()}. "
            "Compare texts with =, IN or LIKE instead."
        )
    if isinstance(node, exp.Div | exp.IntDiv | exp.Mod) and right == 0:
        return None
    try:
        return _ARITHMETIC[type(node)](left, right)
    except (OverflowError, ValueError):
        raise _overflow_error(node) from None


def _overflow_error(node: Expr) -> InvalidInput:
    return InvalidInput(
        f"`sql` must calculate with numbers below 1e308; got larger ones in {node.sql()}. Divide "
        "before you multiply."
    )


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float)


def _is_unknown(value: Value) -> bool:
    return value is None or isinstance(value, Special)


def _evaluate_number(node: Expr, lookup: Lookup) -> Value:
    """The value of an expression that must be a number; None where it is unknown."""
    value = evaluate(node, lookup)
    if not _is_unknown(value) and not _is_number(value):
        raise InvalidInput(
            f"`sql` must calculate with numbers; got {value!r} in {node.sql()}. "
            "Compare texts with =, IN or LIKE instead."
        )
    return None if _is_unknown(value) else value


def _negate(value: Value) -> Value:
    return None if value is None else not value


def _compare(compare: Callable[[Any, Any], bool], left: Value, right: Value, node: Expr) -> Value:
    if _is_unknown(left) or _is_unknown(right):
        return None
    if _is_number(left) != _is_number(right):
        raise InvalidInput(
            f"`sql` must compare numbers with numbers and texts with texts; got {left!r} and "
            f"{right!r} in {node.sql()}. Put texts, and only those, in single quotes."
        )
    return compare(left, right)


def _and(node: Expr, lookup: Lookup) -> Value:
    sides = [evaluate(part, lookup) for part in node.flatten()]
    if any(side is not None and not side for side in sides):
        return False
    return None if None in sides else True


def _or(node: Expr, lookup: Lookup) -> Value:
    sides = [evaluate(part, lookup) for part in node.flatten()]
    if any(sides):
        return True
    return None if None in sides else False


def _not(node: Expr, lookup: Lookup) -> Value:
    return _negate(evaluate(node.this, lookup))


def _between(node: Expr, lookup: Lookup) -> Value:
    value, low, high = (evaluate(node.args[part], lookup) for part in ("this", "low", "high"))
    above = _compare(operator.ge, value, low, node)
    below = _compare(operator.le, value, high, node)
    if above is False or below is False:
        return False
    return None if above is None or below is None else True


def _in(node: Expr, lookup: Lookup) -> Value:
    value = evaluate(node.this, lookup)
    matches = [_compare(operator.eq, value, evaluate(e, lookup), node) for e in node.expressions]
    return True if True in matches else (None if None in matches else False)


def _is(node: Expr, lookup: Lookup) -> Value:
    return evaluate(node.left, lookup) is evaluate(node.right, lookup)


def _like(node: Expr, lookup: Lookup) -> Value:
    text, pattern = evaluate(node.left, lookup), evaluate(node.right, lookup)
    if _is_unknown(text) or _is_unknown(pattern):
        return None
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in str(pattern))
    flags = re.IGNORECASE if isinstance(node, exp.ILike) else re.NOFLAG
    return re.fullmatch("".join(parts), str(text), flags | re.DOTALL) is not None


def _case(node: Expr, lookup: Lookup) -> Value:
    subject = node.this
    for branch in node.args["ifs"]:
        condition = exp.EQ(this=subject, expression=branch.this) if subject else branch.this
        if evaluate(condition, lookup):
            return evaluate(branch.args["true"], lookup)
    default = node.args.get("default")
    return None if default is None else evaluate(default, lookup)


def _if(node: Expr, lookup: Lookup) -> Value:
    chosen = "true" if evaluate(node.this, lookup) else "false"
    return evaluate(node.args[chosen], lookup) if node.args.get(chosen) else None


def _coalesce(node: Expr, lookup: Lookup) -> Value:
    values = (evaluate(part, lookup) for part in (node.this, *node.expressions))
    return next((value for value in values if value is not None), None)


def _nullif(node: Expr, lookup: Lookup) -> Value:
    value, other = evaluate(node.this, lookup), evaluate(node.expression, lookup)
    return None if _compare(operator.eq, value, other, node) else value


def _round(node: Expr, lookup: Lookup) -> Value:
    value, digits = _evaluate_number(node.this, lookup), node.args.get("decimals")
    if value is None:
        return None
    n_digits = 0 if digits is None else _evaluate_number(digits, lookup) or 0
    unit = 10.0 ** int(max(-_MAX_DIGITS, min(_MAX_DIGITS, n_digits)))
    shifted = abs(value) * unit
    if not shifted < _WHOLE:  # there are no further digits to round
        return float(value)
    return math.copysign(math.floor(shifted + 0.5) / unit, value)


def _cast(node: Expr, lookup: Lookup) -> Value:
    kind = node.args["to"]
    if kind.is_type(*exp.DataType.TEXT_TYPES):
        text = evaluate(node.this, lookup)
        return None if _is_unknown(text) else str(text)
    if kind.is_type(*exp.DataType.INTEGER_TYPES, *exp.DataType.REAL_TYPES):
        value = _evaluate_number(node.this, lookup)
        whole = kind.is_type(*exp.DataType.INTEGER_TYPES)
        if value is not None and not math.isfinite(value):
            raise _overflow_error(node)
        return None if value is None else round(value) if whole else float(value)
    raise InvalidInput(f"`sql` must cast to an integer, a real number or a text; got {node.sql()}.")


def _literal(node: Expr, _lookup: Lookup) -> Value:
    text = str(node.this)
    if node.args.get("is_string"):
        return text
    return int(text) if re.fullmatch(r"\d{1,18}", text) else float(text)


def _negative(node: Expr, lookup: Lookup) -> Value:
    value = _evaluate_number(node.this, lookup)
    return None if value is None else -value


def _absolute(node: Expr, lookup: Lookup) -> Value:
    value = _evaluate_number(node.this, lookup)
    return None if value is None else abs(value)


_RULES: dict[type[Any], Callable[[Any, Lookup], Value]] = {
    exp.Abs: _absolute,
    exp.And: _and,
    exp.Avg: lambda node, lookup: lookup(node),
    exp.Between: _between,
    exp.Boolean: lambda node, _: node.this,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Coalesce: _coalesce,
    exp.Column: lambda node, lookup: lookup(node),
    exp.Count: lambda node, lookup: lookup(node),
    exp.Filter: lambda node, lookup: lookup(node),
    exp.If: _if,
    exp.ILike: _like,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Null: lambda _node, _lookup: None,
    exp.Nullif: _nullif,
    exp.Or: _or,
    exp.Placeholder: lambda node, lookup: lookup(node),
    exp.Paren: lambda node, lookup: evaluate(node.this, lookup),
    exp.Round: _round,
    exp.Sum: lambda node, lookup: lookup(node),
}
