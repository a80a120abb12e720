"""The brute-force definition of marginals, which every exact oracle must equal."""

from __future__ import annotations

import numpy as np

from juncture.engine.oracle import IMPOSSIBLE_MESSAGE, Beliefs, Peak, check_call
from juncture.engine.plan import Plan
from juncture.engine.plan_text import format_count
from juncture.errors import ImpossibleModel, InvalidInput
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector

# Brute force is for small problems; more cells than this would take minutes and gigabytes.
_MAX_CELLS = 10**7


class Reference:
    """The oracle by definition: it forms the whole table, then sums it onto each clique."""

    is_exact = True

    def __init__(self, plan: Plan) -> None:
        if plan.domain.size > _MAX_CELLS:
            raise InvalidInput(
                f"`plan` must have at most {_MAX_CELLS:,} cells in its full table for brute "
                f"force; got {format_count(plan.domain.size)}. Use Propagation."
            )
        self.plan = plan
        self.layout = Layout(plan.domain, plan.cliques)

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """See `Oracle.marginals`."""
        call = check_call(self.layout, potentials, total, out)
        joint = self._joint(call.potentials)
        log_partition = float(joint.logsumexp())
        mass = (joint - _check_possible(log_partition)).exp() * call.total
        call.out[:] = self.layout.pack(mass.project(clique) for clique in self.layout.cliques)
        return Beliefs(call.out, log_partition)

    def maximum(self, potentials: Vector) -> Peak:
        """See `Oracle.maximum`."""
        joint = self._joint(potentials)
        best = np.unravel_index(np.argmax(joint.values), joint.values.shape)
        record = {name: int(code) for name, code in zip(joint.domain, best, strict=True)}
        return Peak(record, _check_possible(float(joint.max())))

    def _joint(self, potentials: Vector) -> Factor:
        joint = Factor.full(self.layout.domain, 0.0)
        for clique in self.layout.cliques:
            joint = joint + self.layout.factor(potentials, clique)
        return joint


def _check_possible(log_mass: float) -> float:
    if log_mass == -np.inf:
        raise ImpossibleModel(IMPOSSIBLE_MESSAGE)
    return log_mass
