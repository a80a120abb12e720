"""Conditioning: the potentials of the records that agree with what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.tables.codebook import Codebook, values_in
from juncture.tables.layout import Layout, Vector

Evidence = Mapping[str, object]


def find_allowed_codes(codebook: Codebook, evidence: Evidence) -> dict[str, list[int]]:
    """The codes that evidence leaves possible for each of its attributes."""
    allowed: dict[str, list[int]] = {}
    for name in codebook.domain.project(evidence):
        coding, codes = codebook[name], set[int]()
        for value in values_in(evidence[name], coding):
            codes.update(map(int, np.flatnonzero(coding.match(value))))
        if not codes:
            raise InvalidInput(f"`evidence` must leave a value of {name!r} possible; got none.")
        allowed[name] = sorted(codes)
    return allowed


def apply_evidence(plan: Plan, potentials: Vector, codes: Mapping[str, Iterable[int]]) -> Vector:
    """The potentials of the records whose attributes have these codes.

    The evidence on an attribute goes into the smallest clique that has it, so the plan must have
    one for each. Cliques that `potentials` does not have yet come last in the plan and begin at
    zero.
    """
    layout = Layout(plan.domain, plan.cliques)
    moved = np.concatenate([potentials, np.zeros(layout.size - len(potentials))])
    for name, allowed in codes.items():
        holding = [clique for clique in plan.cliques if name in clique]
        clique = min(holding, key=plan.domain.size_of)
        impossible = np.ones(plan.domain[name], dtype=np.bool_)
        impossible[list(allowed)] = False
        table = np.moveaxis(layout.view(moved, clique), clique.index(name), 0)
        table[impossible] = -np.inf
    return moved
