"""Between tables per clique, as the references speak of them, and an oracle's flat vector.

Written with offsets and transposition alone, so that a fault of `Layout.pack` or `Layout.view`
cannot cancel itself out.
"""

from __future__ import annotations

import math

import numpy as np

from brute import Array, Clique, Sizes, Tables
from juncture.engine.plan import Plan
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout


def plan_of(sizes: Sizes, tables: Tables) -> Plan:
    """The plan whose measured cliques are those of the tables."""
    return Plan.build(Domain(sizes), tables)


def pack(layout: Layout, tables: Tables) -> Array:
    """The vector of these tables; tables on the same attributes add up."""
    vector = np.zeros(layout.offsets[-1])
    for clique, table in tables.items():
        canonical, order = _canonical(layout, clique)
        start = layout.offsets[layout.cliques.index(canonical)]
        vector[start : start + table.size] += table.transpose(order).ravel()
    return vector


def unpack(layout: Layout, vector: Array, clique: Clique) -> Array:
    """The clique's table with its axes in the clique's own order."""
    canonical, order = _canonical(layout, clique)
    shape = [layout.domain[name] for name in canonical]
    start = layout.offsets[layout.cliques.index(canonical)]
    table = vector[start : start + math.prod(shape)].reshape(shape)
    return table.transpose(np.argsort(order))


def _canonical(layout: Layout, clique: Clique) -> tuple[Clique, list[int]]:
    """The clique in the domain's order, and the places of its names in the clique given."""
    names = list(layout.domain)
    order = sorted(range(len(clique)), key=lambda place: names.index(clique[place]))
    return tuple(clique[place] for place in order), order
