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
    """Texts in order, each for a period of time."""


def display_of(coding: Coding) -> Display:
    """The display that the meanings of codes suggest.

    >>> display_of(Coding((1, 2, 5, None)))
    <Display.NUMBERS: 'numbers'>
    """
    meanings = [m for m in coding.meanings if m is not None and not isinstance(m, Special)]
    kinds = {type(meaning) for meaning in meanings}
    if kinds == {tuple}:
        intervals = [m for m in meanings if isinstance(m, tuple)]
        ordered = all(a < b for a, b in pairwise(intervals))
        return Display.INTERVALS if ordered else Display.TEXTS
    if kinds and kinds <= {int, float}:
        numbers = [m for m in meanings if isinstance(m, int | float)]
        return Display.NUMBERS if numbers == sorted(numbers) else Display.TEXTS
    return Display.TEXTS
