"""Public grids: the fine cells in which numbers are counted before their bins are known.

A grid is made from public bounds alone. It has up to ten thousand cells of one width, or a thousand
whose widths grow, for numbers that are spread over several powers of ten.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput

MAX_CELLS = 10_000
"""A grid of one width has at most so many cells."""
_LOG_CELLS = 1_024
# Of numbers that may be 0, those below this share of the range are not told apart by a log grid.
_SMALLEST = 1e-6


class Scale(StrEnum):
    """How the cells of a grid grow."""

    LINEAR = "linear"
    LOG = "log"


def parse_scale(text: str) -> Scale:
    """The scale that a text names."""
    try:
        return Scale(text)
    except ValueError:
        raise InvalidInput(f"`scale` must be one of {', '.join(Scale)}; got {text!r}.") from None


def round_width(span: float, unit: float, max_cells: int = MAX_CELLS) -> float:
    """The smallest of 1, 2, 5, 10, 20 and so on units that divides a span into few enough cells.

    >>> round_width(74, 1), round_width(100_000, 1), round_width(1.0, 0.01)
    (1, 10, 0.01)
    """
    factor = 1
    while span / (factor * unit) > max_cells * (1.0 + 1e-9):
        first = int(str(factor)[0])
        factor = factor * 5 // 2 if first == 2 else factor * 2
    return factor * unit


def log_edges(low: float, high: float, unit: float | None = None) -> NDArray[np.float64]:
    """Edges of a grid whose cells grow with the distance from 0, or from `low` if that is above 0.

    - `unit`: the smallest width near 0; by default a millionth of the range.

    >>> log_edges(1.0, 1e6)[[0, 512, 1024]].round(6)
    array([1.e+00, 1.e+03, 1.e+06])
    """
    if low > 0.0:
        edges = np.geomspace(low, high, _LOG_CELLS + 1)
    elif high < 0.0:
        edges = -np.geomspace(-low, -high, _LOG_CELLS + 1)
    else:
        smallest = unit or (high - low) * _SMALLEST
        ends = [math.copysign(math.log1p(abs(end) / smallest), end) for end in (low, high)]
        ways = np.linspace(ends[0], ends[1], _LOG_CELLS + 1)
        edges = np.sign(ways) * np.expm1(np.abs(ways)) * smallest
        edges = np.union1d(edges, [0.0])
    edges[0], edges[-1] = low, high
    return np.asarray(edges)
