"""Which values to label on an axis: round numbers where there are numbers, and never too many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.publish.report.words import Labels, truncate
from juncture.tables.codebook import Coding, Meaning

_MAX_TICKS, _LETTER = 6, 6.4
_STEPS = tuple(step * 10.0**power for power in range(-9, 16) for step in (1, 2, 5))
# Beside its regular values an attribute may have two more: missing, and outside the domain.
_MAX_SPECIAL = 2


class Tick(NamedTuple):
    """A label on an axis, at a position between 0 and the number of values."""

    at: float
    label: str


def choose_ticks(labels: Labels, max_ticks: int = _MAX_TICKS) -> list[Tick]:
    """The ticks of an axis that has a value with this label at each step."""
    edges = _interval_edges(labels.coding)
    if edges is not None:
        return _ticks_between(edges, max_ticks)
    meanings = labels.coding.meanings
    numbers = [meaning if type(meaning) is int else None for meaning in meanings]
    if sum(number is None for number in numbers) > _MAX_SPECIAL:
        return _spread_ticks(labels, max_ticks)
    for step in _STEPS:
        indices = [index for index, n in enumerate(numbers) if n is not None and n % step == 0]
        if step >= 1 and len(indices) <= max_ticks:
            return [Tick(index + 0.5, labels[index]) for index in indices]
    return []


def _interval_edges(coding: Coding) -> list[float] | None:
    """The edges of intervals that follow each other; other values may come after them.

    Beside intervals of whole numbers, a single one is an interval of its own.
    """
    if coding.period is not None or not coding.has_intervals:
        return None
    ends = [_to_interval(meaning, coding.whole) for meaning in coding.meanings]
    pairs = [pair for pair in ends if pair is not None]
    first = all(pair is not None for pair in ends[: len(pairs)])
    if not first or len(pairs) < max(2, coding.size - _MAX_SPECIAL):
        return None
    joined = all(one[1] == other[0] for one, other in pairwise(pairs))
    return [pairs[0][0], *(high for _, high in pairs)] if joined else None


def _to_interval(meaning: Meaning, whole: bool) -> tuple[float, float] | None:
    if whole and type(meaning) is int:
        return (float(meaning), meaning + 1.0)
    return meaning if isinstance(meaning, tuple) else None


def _ticks_between(edges: Sequence[float], max_ticks: int) -> list[Tick]:
    low, high = edges[0], edges[-1]
    step = next((s for s in _STEPS if (high - low) / s <= max_ticks - 1), high - low)
    numbers = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    positions = np.interp(numbers, edges, np.arange(len(edges)))
    return [
        Tick(float(at), format_compact(float(n))) for at, n in zip(positions, numbers, strict=True)
    ]


def _spread_ticks(labels: Sequence[str], max_ticks: int) -> list[Tick]:
    step = -(-len(labels) // max_ticks)
    return [Tick(index + 0.5, labels[index]) for index in range(0, len(labels), step)]


def format_compact(number: float) -> str:
    """A number on an axis: thousands and millions by a letter."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / min(size, 1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{number:.6g}"


def draw_ticks(
    labels: Labels, left: float, right: float, y: float, max_ticks: int = _MAX_TICKS
) -> Markup:
    """Labels under an axis from left to right; one that would touch another is left out."""
    unit, end, marks = (right - left) / len(labels), left - _LETTER, []
    for tick in choose_ticks(labels, max_ticks):
        label = truncate(tick.label, 12)
        wide = len(label) * _LETTER
        x = min(max(left + tick.at * unit - wide / 2, left), right - wide)
        if x >= end + _LETTER:
            marks.append(tag("text", label, x=x + wide / 2, y=y, class_="quiet middle"))
            end = x + wide
    return join(marks)
