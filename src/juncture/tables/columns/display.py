"""How the explorer draws a column's values and lets people ask about them."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise

from juncture.tables.codebook import Coding, Special


class Display(StrEnum):
    """What the explorer treats a column's values as."""

    TEXTS = "texts"
    """Categories without an order."""
    NUMBERS = "numbers"
    """Single numbers in order."""
    INTERVALS = "intervals"
    """Intervals of numbers in order."""
    DATES = "dates"
    """Periods of days in order."""


def display_of(coding: Coding) -> Display:
    """The display that the meanings of codes suggest.

    >>> display_of(Coding((1, 2, 5, None)))
    <Display.NUMBERS: 'numbers'>
    """
    if coding.period is not None:
        return Display.DATES
    meanings = [m for m in coding.meanings if m is not None and not isinstance(m, Special)]
    kinds = {type(meaning) for meaning in meanings}
    if not kinds or not kinds <= {int, float, tuple}:
        return Display.TEXTS
    ends = [m if isinstance(m, tuple) else (float(m), float(m)) for m in meanings]
    ordered = all(a < b for a, b in pairwise(ends))
    if not ordered:
        return Display.TEXTS
    return Display.INTERVALS if tuple in kinds else Display.NUMBERS
