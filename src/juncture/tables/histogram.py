"""Fine histograms: how the numbers of a column lie inside its bins, from noisy counts.

A column that was binned privately keeps the histogram that its bins were made from. The model says
how many records a bin holds; the histogram says where in the bin they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.tables.layout import Vector


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
