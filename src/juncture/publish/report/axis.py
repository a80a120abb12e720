"""The axis of values in order: where they lie, and which to label: round ones, never too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.publish.report.groups import find_apart, is_ordered
from juncture.publish.report.words import Labels, shorten_all
from juncture.tables.codebook import Coding, Meaning
from juncture.tables.layout import Vector

_MAX_TICKS, _LETTER = 6, 6.4
_STEPS = tuple(step * 10.0**power for power in range(-9, 16) for step in (1, 2, 5))
# Months and quarters differ in days by less than this; they still count as equal.
_MAX_RATIO = 1.2


class Tick(NamedTuple):
    """A label on an axis, at a position between 0 and the number of values on it."""

    at: float
    label: str


class Scale(NamedTuple):
    """Where the values on an axis lie."""

    codes: Sequence[int]
    low: Vector
    """The lower end of each, in the units of the axis."""
    high: Vector
    is_even: bool
    """Whether all values take the same room."""
    is_days: bool

    @property
    def size(self) -> int:
        """The number of values on the axis."""
        return len(self.codes)

    def width(self, code: int) -> float:
        """How many units a value covers."""
        index = self.codes.index(code)
        return float(self.high[index] - self.low[index])

    def position(self, code: int) -> tuple[float, float]:
        """Where a value begins and ends, between 0 and 1."""
        index = self.codes.index(code)
        if self.is_even:
            return index / self.size, (index + 1) / self.size
        low, high = self._to_share(np.array([self.low[index], self.high[index]]))
        return float(low), float(high)

    def to_position(self, numbers: Vector) -> Vector:
        """Where numbers lie between 0 and the number of values."""
        if self.is_even:
            edges = np.append(self.low, self.high[-1])
            return np.asarray(np.interp(numbers, edges, np.arange(self.size + 1)))
        return self.size * self._to_share(numbers)

    def _to_share(self, numbers: Vector) -> Vector:
        return np.asarray((numbers - self.low[0]) / (self.high[-1] - self.low[0]))


def find_scale(labels: Labels) -> Scale | None:
    """The axis of an attribute; None where its values have no order, or none is on an axis."""
    coding = labels.coding
    codes, _ = find_apart(coding)
    if not codes or not is_ordered(coding):
        return None
    ends = [_to_interval(coding.meanings[code], coding) for code in codes]
    if any(pair is None for pair in ends):
        indices = np.arange(len(codes), dtype=np.float64)
        return Scale(codes, indices, indices + 1.0, is_even=True, is_days=False)
    low, high = np.array(ends, dtype=np.float64).T
    is_even = bool((high - low).max() <= _MAX_RATIO * (high - low).min())
    return Scale(codes, low, high, is_even, coding.period is not None)


def choose_ticks(labels: Labels, max_ticks: int = _MAX_TICKS) -> list[Tick]:
    """The ticks of the axis of an attribute."""
    scale = find_scale(labels)
    if scale is None:
        codes, _ = find_apart(labels.coding)
        return _spread_ticks([labels[code] for code in codes], max_ticks)
    meanings = [labels.coding.meanings[code] for code in scale.codes]
    if any(isinstance(meaning, tuple) for meaning in meanings):
        joined = all(a == b for a, b in zip(scale.high[:-1], scale.low[1:], strict=True))
        if joined and not scale.is_days:
            return _ticks_between(scale, max_ticks)
        return _ticks_at_values(scale, [labels[code] for code in scale.codes], max_ticks)
    numbers = [meaning if type(meaning) is int else None for meaning in meanings]
    if None in numbers:
        return _spread_ticks([labels[code] for code in scale.codes], max_ticks)
    for step in _STEPS:
        indices = [index for index, n in enumerate(numbers) if n is not None and n % step == 0]
        if step >= 1 and len(indices) <= max_ticks:
            return [Tick(index + 0.5, labels[scale.codes[index]]) for index in indices]
    return []


def _to_interval(meaning: Meaning, coding: Coding) -> tuple[float, float] | None:
    if coding.whole and coding.has_intervals and type(meaning) is int:
        return (float(meaning), meaning + 1.0)
    return meaning if isinstance(meaning, tuple) else None


def _ticks_at_values(scale: Scale, labels: Sequence[str], max_ticks: int) -> list[Tick]:
    """Labels of some values, evenly spread over them."""
    spread = _spread_ticks(labels, max_ticks)
    middles = [sum(scale.position(scale.codes[int(tick.at)])) / 2 for tick in spread]
    pairs = zip(spread, middles, strict=True)
    return [Tick(scale.size * middle, tick.label) for tick, middle in pairs]


def _ticks_between(scale: Scale, max_ticks: int) -> list[Tick]:
    low, high = float(scale.low[0]), float(scale.high[-1])
    step = next((s for s in _STEPS if (high - low) / s <= max_ticks - 1), high - low)
    numbers = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    positions = scale.to_position(numbers)
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
    size = len(find_apart(labels.coding)[0])
    unit, end, marks = (right - left) / max(1, size), left - _LETTER, []
    ticks = choose_ticks(labels, max_ticks)
    shown = shorten_all([tick.label for tick in ticks], 12)
    for tick, label in zip(ticks, shown, strict=True):
        wide = len(label) * _LETTER
        x = min(max(left + tick.at * unit - wide / 2, left), right - wide)
        if x >= end + _LETTER:
            marks.append(draw_text(label, tick.label, x=x + wide / 2, y=y, class_="quiet middle"))
            end = x + wide
    return join(marks)


def draw_text(shown: str, full: str, **attributes: str | float | None) -> Markup:
    """A text in a drawing; pointing at one that is cut shows it in full."""
    title = None if shown == full else tag("title", full)
    return tag("text", title, shown, **attributes)
