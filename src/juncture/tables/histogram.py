"""Fine histograms: how the numbers of a column lie inside its bins, from noisy counts.

A column that was binned privately keeps the histogram that its bins were made from. The model says
how many records a bin holds; the histogram says where in the bin they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.tables.layout import Vector

# A spike is so many times as dense as its neighbours, and at most this share of the wider one.
_SPIKE_DENSITY, _SPIKE_WIDTH = 3.0, 0.4
# With fewer pieces than this there is no slope to follow; a piece becomes so many steps.
_MIN_PIECES, _N_STEPS = 3, 8


@dataclass(frozen=True)
class FineHistogram:
    """Masses between edges: pieces of a column's range, each with an estimated number of records.

    Edges are those of the column's intervals: the upper end of a piece does not belong to it, and
    days are counted from 1970-01-01.

    >>> fine = FineHistogram((0.0, 1.0, 10.0, 100.0), (50.0, 30.0, 20.0))
    >>> fine.inside(5.0, 100.0)
    (array([  5.,  10., 100.]), array([16.66666667, 20.        ]))
    """

    edges: tuple[float, ...]
    masses: tuple[float, ...]

    def __post_init__(self) -> None:
        edges, masses = np.asarray(self.edges), np.asarray(self.masses)
        valid = (
            edges.ndim == masses.ndim == 1
            and len(edges) == len(masses) + 1 >= 2
            and np.isfinite(edges).all()
            and np.isfinite(masses).all()
            and (np.diff(edges) > 0.0).all()
            and (masses >= 0.0).all()
        )
        if not valid:
            raise InvalidInput(
                "`edges` must rise, with one mass of at least 0 between every two; got others."
            )
        object.__setattr__(self, "edges", tuple(map(float, edges)))
        object.__setattr__(self, "masses", tuple(map(float, masses)))

    def inside(self, low: float, high: float) -> tuple[Vector, Vector]:
        """The edges and the masses of the pieces between two numbers, those at the ends cut."""
        edges, masses = np.asarray(self.edges), np.asarray(self.masses)
        kept = np.union1d(edges[(edges > low) & (edges < high)], [low, high])
        below = np.concatenate([[0.0], np.cumsum(masses)])
        return kept, np.diff(np.interp(kept, edges, below))

    def follow_counts(
        self, bins: Sequence[tuple[float, float]], counts: Vector, *, whole: bool
    ) -> FineHistogram:
        """The histogram with these counts in bins in a row, and without jumps inside them.

        The model's counts of the bins are known far better than the cells that the pieces were made
        of. So pieces are scaled to them, and inside each the density goes smoothly from that of the
        piece before to that of the piece after: the running sum is a cubic that rises (PCHIP), in a
        few steps. A spike tells nothing about its neighbours, nor they about it.

        - `whole`: whether steps end at whole numbers, as pieces of whole numbers and of days do.

        >>> flat = FineHistogram((0.0, 4.0, 8.0, 12.0), (60.0, 30.0, 10.0))
        >>> bins = [(0.0, 4.0), (4.0, 8.0), (8.0, 12.0)]
        >>> smooth = flat.follow_counts(bins, np.array([60.0, 30.0, 10.0]), whole=True)
        >>> np.round(smooth.masses).astype(int).tolist()
        [18, 16, 14, 11, 10, 9, 7, 5, 4, 3, 2, 1]
        """
        parts = [self._scale(low, high, count) for (low, high), count in zip(bins, counts)]  # noqa: B905
        edges = np.concatenate([parts[0][0][:1], *(ends[1:] for ends, _ in parts)])
        masses = np.concatenate([held for _, held in parts])
        found = [_smooth(edges[a : b + 1], masses[a:b], whole) for a, b in _chains(edges, masses)]
        return FineHistogram(
            (float(edges[0]), *np.concatenate([ends[1:] for ends, _ in found])),
            tuple(np.concatenate([held for _, held in found])),
        )

    def _scale(self, low: float, high: float, count: float) -> tuple[Vector, Vector]:
        """The pieces between two numbers, with a count in all; spread evenly if they are empty."""
        edges, masses = self.inside(low, high)
        held = masses if masses.sum() > 0.0 else np.diff(edges)
        return edges, max(float(count), 0.0) * held / held.sum()


def _chains(edges: Vector, masses: Vector) -> Iterator[tuple[int, int]]:
    """Pieces in a row without a spike between them: the first of each row, and its end.

    A spike is a row of its own.
    """
    widths = np.diff(edges)
    density, beyond = masses / widths, np.array([0.0])
    highest = np.maximum(np.append(beyond, density[:-1]), np.append(density[1:], beyond))
    widest = np.maximum(np.append(beyond, widths[:-1]), np.append(widths[1:], beyond))
    spikes = (density > _SPIKE_DENSITY * highest) & (widths <= _SPIKE_WIDTH * widest)
    cuts = np.unique(np.append(np.flatnonzero(spikes), np.flatnonzero(spikes) + 1))
    yield from pairwise(np.unique(np.concatenate([[0], cuts, [len(masses)]])).tolist())


def _smooth(edges: Vector, masses: Vector, whole: bool) -> tuple[Vector, Vector]:
    """Steps along a running sum that rises smoothly through the ends of pieces."""
    if len(masses) < _MIN_PIECES:
        return edges, masses
    from scipy.interpolate import PchipInterpolator  # noqa: PLC0415  slow to import

    steps = np.linspace(edges[:-1], edges[1:], _N_STEPS + 1).T
    ends = np.unique(np.round(steps) if whole else steps)
    below = PchipInterpolator(edges, np.append(0.0, np.cumsum(masses)))(ends)
    return ends, np.maximum(np.diff(below), 0.0)
