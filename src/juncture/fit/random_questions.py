"""Random questions on a table: cells, ranges, and sets of values, drawn without looking at it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from juncture.tables.layout import Vector


class Form(StrEnum):
    """What a random question asks for, in each attribute."""

    CELL = "cell"
    """One value."""
    RANGES = "ranges"
    """Neighbouring values."""
    SETS = "sets"
    """About half of the values, or all of them."""


# How often a set has all values.
_WHOLE = 0.4


def draw_rows(shape: Sequence[int], form: Form, rng: np.random.Generator) -> list[Vector]:
    """A row of zeros and ones for each attribute; their product is the question.

    >>> [row.tolist() for row in draw_rows((2, 3), Form.CELL, np.random.default_rng(0))]
    [[0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    return [_draw_row(size, form, rng) for size in shape]


def _draw_row(size: int, form: Form, rng: np.random.Generator) -> Vector:
    row = np.zeros(size)
    if form is Form.CELL:
        row[rng.integers(size)] = 1.0
    elif form is Form.RANGES:
        low, high = sorted(rng.integers(0, size, 2))
        row[low : high + 1] = 1.0
    else:
        row[rng.random(size) < 0.5] = 1.0
        if rng.random() < _WHOLE or not row.any():
            row[:] = 1.0
    return row


def weigh(tables: Vector, rows: Sequence[Vector]) -> Vector:
    """The answers of tables to a question on their last axes.

    >>> float(weigh(np.array([[1.0, 2.0], [3.0, 4.0]]), [np.array([0.0, 1.0]), np.ones(2)]))
    7.0
    """
    for row in reversed(rows):
        tables = tables @ row
    return np.asarray(tables)
