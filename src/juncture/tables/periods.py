"""Periods of days: how finely a column of dates tells them apart, and what the periods are called.

Days are counted from 1970-01-01, so that a period is an interval of whole numbers.
"""

from __future__ import annotations

import datetime as dt
import re
from enum import StrEnum

_EPOCH = dt.date(1970, 1, 1).toordinal()


class Period(StrEnum):
    """How finely dates are distinguished."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


def to_day_number(day: dt.date) -> int:
    """The number of days from 1970-01-01 to a day."""
    return day.toordinal() - _EPOCH


def to_date(day_number: float) -> dt.date:
    """The day with a number; a fraction of a day belongs to it."""
    return dt.date.fromordinal(int(day_number // 1) + _EPOCH)


def next_period(day: dt.date, period: Period) -> dt.date:
    """The first day of the period after that of a day; weeks are counted from the day itself."""
    match period:
        case Period.DAY:
            return day + dt.timedelta(days=1)
        case Period.WEEK:
            return day + dt.timedelta(days=7)
        case Period.MONTH:
            months = day.year * 12 + day.month
        case Period.QUARTER:
            months = day.year * 12 + ((day.month - 1) // 3 + 1) * 3
        case Period.YEAR:
            months = (day.year + 1) * 12
    return dt.date(months // 12, months % 12 + 1, 1)


def name_period(first: dt.date, last: dt.date, period: Period) -> str:
    """What a period is called: by the calendar, or by its two ends where it is a week.

    >>> name_period(dt.date(2024, 4, 1), dt.date(2024, 6, 30), Period.QUARTER)
    '2024-Q2'
    >>> name_period(dt.date(2024, 4, 1), dt.date(2024, 4, 7), Period.WEEK)
    '2024-04-01/2024-04-07'
    """
    match period:
        case Period.YEAR:
            return f"{first.year:04}"
        case Period.QUARTER:
            return f"{first.year:04}-Q{(first.month - 1) // 3 + 1}"
        case Period.MONTH:
            return f"{first.year:04}-{first.month:02}"
        case Period.WEEK:
            return f"{first.isoformat()}/{last.isoformat()}"
        case Period.DAY:
            return first.isoformat()


def parse_period(text: str) -> tuple[dt.date, dt.date] | None:
    """The first and the last day of a period by its name, or of a single day; None otherwise.

    >>> parse_period("2024-Q2")
    (datetime.date(2024, 4, 1), datetime.date(2024, 6, 30))
    >>> parse_period("spring") is None
    True
    """
    try:
        if match := re.fullmatch(r"(\d{4})", text):
            return _span(dt.date(int(match[1]), 1, 1), Period.YEAR)
        if match := re.fullmatch(r"(\d{4})-Q([1-4])", text):
            return _span(dt.date(int(match[1]), 3 * int(match[2]) - 2, 1), Period.QUARTER)
        if match := re.fullmatch(r"(\d{4})-(\d{2})", text):
            return _span(dt.date(int(match[1]), int(match[2]), 1), Period.MONTH)
        first, _, last = text.partition("/")
        return dt.date.fromisoformat(first), dt.date.fromisoformat(last or first)
    except ValueError:
        return None


def _span(first: dt.date, period: Period) -> tuple[dt.date, dt.date]:
    return first, next_period(first, period) - dt.timedelta(days=1)
