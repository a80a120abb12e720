"""What a marginal oracle is, and the brute-force definition that every oracle must equal."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from juncture.engine.plan import Plan
from juncture.engine.plan_text import format_count
from juncture.errors import ImpossibleModel, InvalidInput
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector

# Brute force is for small problems; more cells than this would take minutes and gigabytes.
_MAX_CELLS = 10**7


class Beliefs(NamedTuple):
    """The marginals of all measured cliques, scaled to the total, and log Z."""

    marginals: Vector
    log_partition: float


class Peak(NamedTuple):
    """The most probable record, as a code per attribute, and its sum of potentials."""

    record: dict[str, int]
    score: float


class Call(NamedTuple):
    """The arguments of `Oracle.marginals` once they have been found good."""

    potentials: Vector
    total: float
    out: Vector


class Oracle(Protocol):
    """Potentials on the measured cliques of a plan -> marginals on the same cliques.

    Potentials are logarithms, one flat vector in the order of `layout`; the model gives a
    record the probability exp(sum of its potentials - log_partition). Minus infinity excludes
    a cell.
    """

    @property
    def plan(self) -> Plan:
        """The plan that the oracle runs."""

    @property
    def layout(self) -> Layout:
        """Where each clique's table lies in a vector."""

    def marginals(
        self, potentials: Vector, total: float = 1.0, *, out: Vector | None = None
    ) -> Beliefs:
        """Marginals that sum to the total, and the log-partition function.

        `out` receives the marginals when given; it must not overlap `potentials`.
        """

    def maximum(self, potentials: Vector) -> Peak:
        """The record with the largest sum of potentials."""


def check_call(layout: Layout, potentials: Vector, total: float, out: Vector | None) -> Call:
    """The arguments of `Oracle.marginals`, or a clear error."""
    vector = layout.as_vector(potentials)
    if not 0.0 < total < np.inf:
        raise InvalidInput(
            f"`total` must be positive and finite; got {total}. "
            "Give the number of records that the marginals shall add up to."
        )
    if out is None:
        return Call(vector, float(total), np.empty(layout.size))
    if layout.as_vector(out) is not out or np.may_share_memory(out, vector):
        raise InvalidInput(
            "`out` must be a writable, contiguous float64 array apart from `potentials`; "
            "got another kind. Make it with numpy.empty(layout.size)."
        )
    return Call(vector, float(total), out)


class Reference:
    """The definition: form the whole table, then add it up."""

    def __init__(self, plan: Plan) -> None:
        if plan.domain.size > _MAX_CELLS:
            raise InvalidInput(
                f"`plan` must have at most {_MAX_CELLS:,} cells in its full table for brute "
                f"force; got {format_count(plan.domain.size)}. Use juncture.engine.propagation."
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


IMPOSSIBLE_MESSAGE = (
    "`potentials` must leave at least one record possible; got minus infinity for every one. "
    "Remove a structural zero: together they contradict each other."
)
