"""The stages in which records are drawn: a node's table as a matrix of rows and cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.model.clique_tree import Visit
from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

Integers = NDArray[np.int64]


class DrawStage(NamedTuple):
    """A node on the way down: rows for what is known, cells for what it adds."""

    weights: Vector
    known: Integers
    """The columns of the known attributes."""
    strides: Integers
    """For each known attribute, how many rows one more code moves by."""
    sizes: Integers
    """For each known attribute, its number of codes."""
    added: Integers
    """The columns of the added attributes."""
    decoded: Codes
    """For each added attribute, its code in every cell."""


def make_stage(domain: Domain, table: Vector, visit: Visit) -> DrawStage:
    """A node's table as rows and cells."""
    names = sorted((*visit.known, *visit.added), key=domain.positions.__getitem__)
    moved = table.transpose([names.index(name) for name in (*visit.known, *visit.added)])
    known = [domain[name] for name in visit.known]
    added = [domain[name] for name in visit.added]
    cells = np.arange(math.prod(added))
    codes = np.array(np.unravel_index(cells, added), dtype=np.int32).reshape(len(added), -1)
    return DrawStage(
        weights=np.ascontiguousarray(moved).reshape(math.prod(known), -1),
        known=_positions(domain, visit.known),
        strides=np.array([math.prod(known[i + 1 :]) for i in range(len(known))], dtype=np.int64),
        sizes=np.array(known, dtype=np.int64),
        added=_positions(domain, visit.added),
        decoded=codes,
    )


def _positions(domain: Domain, names: Iterable[str]) -> Integers:
    return np.array([domain.positions[name] for name in names], dtype=np.int64)
