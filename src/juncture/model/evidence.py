"""Conditioning: the potentials of the records that agree with what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.tables.codebook import Codebook, values_in
from juncture.tables.layout import Layout, Vector

Evidence = Mapping[str, object]


def allowed_codes(codebook: Codebook, evidence: Evidence) -> dict[str, list[int]]:
    """The codes that evidence leaves possible for each of its attributes."""
    allowed: dict[str, list[int]] = {}
    for name in codebook.domain.project(evidence):
        coding, codes = codebook[name], set[int]()
        for value in values_in(evidence[name], coding):
            codes.update(map(int, np.flatnonzero(coding.match(value))))
        if not codes:
            raise InvalidInput(
                f"`evidence` must leave a value of {name!r} possible; got none. "
                "Give at least one value."
            )
        allowed[name] = sorted(codes)
    return allowed


def apply_evidence(
    plan: Plan, potentials: Vector, codes: Mapping[str, Iterable[int]]
) -> tuple[Plan, Vector]:
    """Plan and potentials of the records whose attributes have these codes.

    A clique that mentions the attribute takes the evidence in; one is added where none does.
    """
    new = [(name,) for name in codes if name in plan.free_attributes]
    grown = Plan.build(plan.domain, [*plan.cliques, *new]) if new else plan
    layout = Layout(plan.domain, grown.cliques)
    moved = np.concatenate([potentials, np.zeros(layout.size - len(potentials))])
    for name, allowed in codes.items():
        holding = [clique for clique in grown.cliques if name in clique]
        clique = min(holding, key=plan.domain.size_of)
        impossible = np.ones(plan.domain[name], dtype=np.bool_)
        impossible[list(allowed)] = False
        table = np.moveaxis(layout.view(moved, clique), clique.index(name), 0)
        table[impossible] = -np.inf
    return grown, moved
