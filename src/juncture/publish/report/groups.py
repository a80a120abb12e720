"""Which values of an attribute share a bar, a column or a row of a chart, and in which order.

Values in order (numbers, intervals, dates) keep it, and adjacent ones share a column where there
are very many. Categories have no order: where they are many, the largest are shown by size and the
rest together as others. Missing values, values outside the domain, and single numbers beside
intervals are no part of the axis: they come last, apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.publish.report.words import Labels
from juncture.tables.codebook import Coding, Meaning, Special
from juncture.tables.columns import Display, display_of
from juncture.tables.layout import Vector

# A count below this many standard deviations of its noise may well be nothing else.
_MIN_DEVIATIONS = 2.0

# Of intervals beside which a single whole number still has its place on the axis.
_MAX_WIDTH = 10.0


class Group(NamedTuple):
    """Values that are drawn as one, with a label for them."""

    label: str
    codes: tuple[int, ...]
    apart: bool = False
    """Whether they are no part of the axis."""


def is_ordered(coding: Coding) -> bool:
    """Whether the values have an order that an axis can show."""
    return display_of(coding) is not Display.TEXTS


def find_apart(coding: Coding) -> tuple[list[int], list[int]]:
    """The codes on the axis, and those that are no part of it."""
    intervals = [m for m in coding.meanings if isinstance(m, tuple)]
    apart = [code for code, m in enumerate(coding.meanings) if _is_apart(m, intervals, coding)]
    return [code for code in range(coding.size) if code not in set(apart)], apart


def _is_apart(meaning: Meaning, intervals: Sequence[tuple[float, float]], coding: Coding) -> bool:
    if meaning is None or isinstance(meaning, Special):
        return True
    if not intervals or isinstance(meaning, tuple | str | bool):
        return False
    if not coding.whole or any(low <= meaning < high for low, high in intervals):
        return True
    # A whole number between intervals of them is an interval of its own; beside far wider ones its
    # density would be all that is seen.
    return min(high - low for low, high in intervals) > _MAX_WIDTH


def group_values(labels: Labels, masses: Vector, max_groups: int) -> list[Group]:
    """At most so many groups for the axis, then those that are apart from it."""
    axis, apart = find_apart(labels.coding)
    by_size = not is_ordered(labels.coding)
    groups = (
        _group_by_size(labels, axis, masses, max_groups)
        if by_size
        else group_adjacent(labels, axis, max_groups)
    )
    return groups + [Group(labels[code], (code,), apart=True) for code in apart]


def _group_by_size(
    labels: Labels, codes: Sequence[int], masses: Vector, max_groups: int
) -> list[Group]:
    """The categories as they are if they are few; else the largest, and the others together."""
    if len(codes) <= max_groups:
        return [Group(labels[code], (code,)) for code in codes]
    order = sorted(codes, key=lambda code: (-masses[code], code))
    largest, others = order[: max_groups - 1], order[max_groups - 1 :]
    return [
        *(Group(labels[code], (code,)) for code in largest),
        Group(f"{len(others)} others", tuple(others)),
    ]


def group_adjacent(labels: Labels, codes: Sequence[int], max_groups: int) -> list[Group]:
    """Adjacent values together, where there are too many."""
    size = len(codes)
    if size == 0:
        return []
    count = math.ceil(size / math.ceil(size / max_groups))
    ends = [size * index // count for index in range(count + 1)]
    return [
        Group(labels.join(codes[low], codes[high - 1]), tuple(codes[low:high]))
        for low, high in pairwise(ends)
    ]


def sum_groups(groups: Iterable[Group], masses: Vector) -> Vector:
    """The records of each group: the first axis of values becomes one of groups."""
    return np.stack([masses[list(group.codes)].sum(axis=0) for group in groups])


def combine_noise(groups: Iterable[Group], stddevs: Vector | None) -> Vector | None:
    """The noise of each group's count, as if that of its values were independent."""
    return None if stddevs is None else np.sqrt(sum_groups(groups, stddevs**2))


def is_only_noise(masses: Vector, stddevs: Vector | None) -> NDArray[np.bool_]:
    """For each count, whether its noise alone could have made it."""
    if stddevs is None:
        return np.zeros(masses.shape, dtype=bool)
    return np.asarray(np.isfinite(stddevs) & (masses < _MIN_DEVIATIONS * stddevs))
