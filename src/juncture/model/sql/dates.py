"""Dates in questions: a column of days, months or years is a text here, and a date where asked."""

from __future__ import annotations

import datetime as dt
import re
from enum import StrEnum

from sqlglot import exp

from juncture.errors import InvalidInput
from juncture.model.sql.syntax import Expr
from juncture.tables.codebook import Codebook, Coding

_PARTS = (
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso),
    *(exp.DayOfYear, exp.Dayname, exp.Monthname, exp.Extract, exp.DateTrunc, exp.TimestampTrunc),
)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


class _Period(StrEnum):
    """How finely a column's dates are known; the value completes a label to its first day."""

    DAY = ""
    MONTH = "-01"
    YEAR = "-01-01"


_KNOWN_UNITS = {
    _Period.MONTH: {"year", "quarter", "month", "monthname"},
    _Period.YEAR: {"year"},
}


def cast_dates(tree: exp.Select, codebook: Codebook) -> exp.Select:
    """The same SELECT with columns of dates cast to dates inside functions of dates."""
    for column in list(tree.find_all(exp.Column)):
        parent: Expr = column.parent
        asked = isinstance(parent, _PARTS) or _is_date_part(parent)
        if column.name in codebook.domain and (asked or _is_compared(column)):
            period = _find_period(codebook[column.name])
            if period is None or (period is not _Period.DAY and not asked):
                continue
            known = _KNOWN_UNITS.get(period)
            if known is not None and _unit(parent) not in known:
                raise InvalidInput(
                    f"`sql` must ask for a part of {column.name} that is known; got "
                    f"{parent.sql()}. Its values are {period.name.lower()}s."
                )
            text: Expr = column.copy()
            if period.value:
                text = exp.DPipe(this=text, expression=exp.Literal.string(period.value))
            column.replace(exp.cast(text, "date"))
    return tree


def _is_date_part(node: Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in ("date_part", "datepart")


def _is_compared(column: Expr) -> bool:
    parent = column.parent
    others = (part for part in parent.iter_expressions() if part is not column)
    return isinstance(parent, _COMPARISONS) and any(
        isinstance(part, exp.Cast) and part.to.is_type("date", "timestamp") for part in others
    )


def _unit(node: Expr) -> str:
    """The name of the part that a function gives."""
    if _is_date_part(node):
        return str(node.expressions[0].name).lower()
    if isinstance(node, exp.Extract):
        return str(node.this.name).lower()
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        return str(node.args["unit"].name).lower()
    return type(node).__name__.lower()


def _find_period(coding: Coding) -> _Period | None:
    """What a coding's texts are; days must follow one another, or they may begin longer periods."""
    labels = [meaning for meaning in coding.meanings if isinstance(meaning, str)]
    if not labels or any(isinstance(m, tuple | bool | int | float) for m in coding.meanings):
        return None
    for period, pattern in ((_Period.MONTH, r"\d{4}-\d{2}"), (_Period.YEAR, r"\d{4}")):
        if all(re.fullmatch(pattern, label) for label in labels):
            return period
    try:
        days = sorted(dt.date.fromisoformat(label) for label in labels)
    except ValueError:
        return None
    follows = (days[-1] - days[0]).days == len(days) - 1
    return _Period.DAY if follows and all(len(label) == 10 for label in labels) else None
