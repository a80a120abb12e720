"""Which attributes a distribution knows nothing about."""

from __future__ import annotations

import numpy as np

from juncture.engine.plan import Plan
from juncture.tables.domain import Clique
from juncture.tables.layout import Layout, Vector


def find_unmeasured(plan: Plan, layout: Layout, potentials: Vector) -> Clique:
    """The attributes of which nothing is known but which values are possible."""
    silent = set(plan.free_attributes)
    linked = {name for clique in plan.cliques if len(clique) > 1 for name in clique}
    for clique in plan.cliques:
        if len(clique) == 1 and clique[0] not in linked:
            table = layout.view(potentials, clique)
            known = table[table > -np.inf]
            if len(known) < table.size and (known == known[0]).all():
                silent.add(clique[0])
    return tuple(name for name in plan.domain if name in silent)
