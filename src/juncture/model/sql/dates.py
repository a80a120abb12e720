"""Dates in questions: names of periods, and where functions of dates change.

A column of dates holds days, so DuckDB compares it with dates and takes it apart as any other. Only
names of periods ('2024', '2024-06', '2024-Q2') are read here: compared with one, a date lies before
its first day, in it, or after its last.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.cuts import MIRRORED, ORDERED, cut_around, cut_by_comparison
from juncture.model.sql.syntax import Expr
from juncture.tables.codebook import Codebook
from juncture.tables.periods import Period, next_period, parse_period, to_date, to_day_number

# Functions and units that change only where a month begins.
_MONTHLY = (exp.Year, exp.Quarter, exp.Month, exp.Monthname)
_MONTHLY_UNITS = {"year", "quarter", "month", "decade", "century", "millennium", "era"}
_MAX_DAYS = 100_000


def read_period_names(tree: exp.Select, codebook: Codebook) -> exp.Select:
    """The same SELECT, with dates in place of the names of periods that dates are compared with."""
    for column in list(tree.find_all(exp.Column)):
        if column.name in codebook.domain and codebook[column.name].period is not None:
            node: Expr = column
            while isinstance(node.parent, exp.Paren):
                node = node.parent
            _rewrite(node, column)
    return tree


def _rewrite(node: Expr, column: Expr) -> None:
    parent = node.parent
    if isinstance(parent, exp.EQ | exp.NEQ):
        other = parent.expression if node.arg_key == "this" else parent.this
        if (span := _read_span(other, column)) is not None:
            inside = _inside(column, span)
            parent.replace(exp.not_(inside, copy=False) if isinstance(parent, exp.NEQ) else inside)
    elif isinstance(parent, exp.In) and node.arg_key == "this" and parent.expressions:
        _rewrite_list(parent, column)
    elif isinstance(parent, ORDERED):
        _rewrite_order(parent, node, column)
    elif isinstance(parent, exp.Between) and node.arg_key == "this":
        for end, index in (("low", 0), ("high", 1)):
            span = _read_span(parent.args[end], column)
            if span is not None:
                parent.set(end, _literal(span[index]))


def _rewrite_list(parent: Expr, column: Expr) -> None:
    spans = [_read_span(value, column) for value in parent.expressions]
    parts = [
        exp.EQ(this=column.copy(), expression=value.copy())
        if span is None
        else _inside(column, span)
        for value, span in zip(parent.expressions, spans, strict=True)
    ]
    if any(span is not None for span in spans):
        parent.replace(exp.paren(exp.or_(*parts, copy=False), copy=False))


def _rewrite_order(parent: Expr, node: Expr, column: Expr) -> None:
    """Before a period is before its first day; up to it includes its last day."""
    is_left = node.arg_key == "this"
    kind = type(parent) if is_left else MIRRORED[type(parent)]
    span = _read_span(parent.expression if is_left else parent.this, column)
    if span is not None:
        first, last = span
        day = first if kind in (exp.LT, exp.GTE) else last
        parent.replace(kind(this=column.copy(), expression=_literal(day)))


def _read_span(node: Expr, column: Expr) -> tuple[dt.date, dt.date] | None:
    """The days that a text stands for; None for a single day or another expression."""
    plain = node.unnest()
    if not (isinstance(plain, exp.Literal) and plain.is_string):
        return None
    text = str(plain.this)
    span = parse_period(text)
    if span is None:
        try:
            dt.datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput(
                f"`sql` must compare {column.name} with dates; got {text!r}. Write a day such as "
                "'2024-06-30', or a period: '2024', '2024-06' or '2024-Q2'."
            ) from None
        return None
    return None if span[0] == span[1] else span


def _inside(column: Expr, span: tuple[dt.date, dt.date]) -> Expr:
    low, high = map(_literal, span)
    return exp.paren(exp.Between(this=column.copy(), low=low, high=high), copy=False)


def _literal(day: dt.date) -> Expr:
    return exp.cast(exp.Literal.string(day.isoformat()), "date")


def find_date_cuts(
    column: Expr,
    root: Expr,
    bounds: tuple[float, float],
    to_day: Callable[[Expr], float | None],
    is_rank: bool,
) -> set[float]:
    """The cuts between days at which an expression of a date can change."""
    node: Expr = column
    while node is not root and isinstance(node.parent, exp.Paren):
        node = node.parent
    if node is root:
        return _every_day(column, bounds) if is_rank else set()
    parent = node.parent
    if isinstance(parent, exp.Is):
        return set()
    others = [part for part in parent.iter_expressions() if part is not node]
    compared = isinstance(parent, (*ORDERED, exp.EQ, exp.NEQ, exp.Between, exp.In))
    if compared and not any(part.find(exp.Column) for part in others):
        return cut_by_comparison(node, to_day, whole=True)
    if isinstance(parent, _MONTHLY) or _unit(parent) in _MONTHLY_UNITS:
        return _every_month(bounds)
    return _every_day(column, bounds)


def _unit(node: Expr) -> str:
    """The name of the part that a function of a date gives, if it names one."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("date_part", "datepart"):
        return str(node.expressions[0].name).lower()
    if isinstance(node, exp.Extract):
        return str(node.this.name).lower()
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        return str(node.args["unit"].name).lower()
    return ""


def _every_month(bounds: tuple[float, float]) -> set[float]:
    days, day, last = set(), to_date(bounds[0] + 0.5), to_date(bounds[1] - 0.5)
    while day <= last:
        days.add(to_day_number(day) - 0.5)
        day = next_period(day, Period.MONTH)
    return days


def _every_day(column: Expr, bounds: tuple[float, float]) -> set[float]:
    first, last = round(bounds[0] + 0.5), round(bounds[1] - 0.5)
    if last - first > _MAX_DAYS:
        raise InvalidInput(
            f"`sql` must take apart at most {_MAX_DAYS:,} days; got {last - first:,} of "
            f"{column.name}. Compare it with dates, or ask for its year or month."
        )
    return cut_around(range(first, last + 1), whole=True)
