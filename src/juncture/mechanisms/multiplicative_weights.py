"""Multiplicative weights on dense tables: the update of the original MWEM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from juncture._util.memory import free_memory_bytes
from juncture.engine.plan_text import abbreviate, format_bytes
from juncture.errors import ModelTooLarge
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.products import Operator

Constraints = Mapping[Clique, NDArray[np.bool_]]
"""For some cliques, a table that is true where no record can be."""
# A cell needs three doubles: the table, its logarithm and what is added to it.
_BYTES_PER_CELL = 24
_SHARE_OF_FREE_MEMORY = 0.5


class MultiplicativeWeights:
    """A table over all attributes, or one for each group of attributes measured together.

    A step multiplies every cell by exp(sum over measurements of Q'(y - Q x) / (2 total)) and
    normalises: entropic mirror descent on half the squared residuals, with step 1 / (2 total).
    Cells that rules exclude begin empty, and stay so; attributes of a rule are in one group.
    """

    def __init__(
        self, domain: Domain, total: float, *, factored: bool, max_bytes: int | None = None,
        constraints: Constraints | None = None,
    ) -> None:  # fmt: skip
        self._domain, self._total, self._factored = domain, total, factored
        self._max_bytes, self._constraints = max_bytes, constraints or {}
        self._tables: list[Factor] = []
        self._known: dict[Clique, tuple[list[Measurement], int, Factor]] = {}
        if not factored or self._constraints:
            self.fit([], 0)

    def fit(self, measurements: Sequence[Measurement], passes: int) -> None:
        """Start from uniform tables and pass over all measurements several times.

        A group with the same measurements as before keeps its table, which would be the same.
        """
        groups = self._groups(measurements)
        for group in groups:
            refuse_large(self._domain, group, self._max_bytes)
        fitted: dict[Clique, tuple[list[Measurement], int, Factor]] = {}
        for group in groups:
            inside = [m for m in measurements if m.clique and set(m.clique).issubset(group)]
            known = self._known.get(group)
            if known is None or known[1] != passes or not _is_same(known[0], inside):
                known = inside, passes, self._fit_group(group, inside, passes)
            fitted[group] = known
        self._known = fitted
        self._tables = [table for _, _, table in fitted.values()]

    def _groups(self, measurements: Sequence[Measurement]) -> list[Clique]:
        """Groups of attributes that measurements connect, directly or through others."""
        if not self._factored:
            return [tuple(self._domain)]
        groups: list[set[str]] = []
        for clique in [*self._constraints, *(each.clique for each in measurements)]:
            touching = [g for g in groups if g.intersection(clique)]
            joined = set(clique).union(*touching)
            groups = [g for g in groups if g not in touching] + ([joined] if joined else [])
        return [self._domain.canonical(group) for group in groups]

    def _fit_group(self, group: Clique, inside: list[Measurement], passes: int) -> Factor:
        subdomain = self._domain.project(group)
        logs = self._start(group)
        table = self._normalise(subdomain, logs)
        # Measurements of one clique share its marginal and the update of its cells.
        cliques: dict[Clique, list[tuple[Measurement, Operator]]] = {}
        for measurement in inside:
            pair = measurement, measurement.operator(self._domain)
            cliques.setdefault(measurement.clique, []).append(pair)
        for _ in range(passes):
            for clique, pairs in cliques.items():
                own = table.project(clique)
                pull = np.zeros(own.domain.shape)
                for measurement, operator in pairs:
                    residual = measurement.values - operator.apply(own.values)
                    pull += operator.adjoint(residual).reshape(pull.shape)
                logs += Factor(own.domain, pull / (2.0 * self._total)).expand(subdomain).values
            table = self._normalise(subdomain, logs)
        return table

    def _start(self, group: Clique) -> Vector:
        """The logarithms of a uniform table without the cells that rules exclude."""
        subdomain = self._domain.project(group)
        logs = np.zeros(subdomain.shape)
        for clique, excluded in self._constraints.items():
            if set(clique).issubset(group):
                zeros = Factor(self._domain.project(clique), np.where(excluded, -np.inf, 0.0))
                logs += zeros.expand(subdomain).values
        return logs

    def _normalise(self, subdomain: Domain, logs: Vector) -> Factor:
        weights = np.exp(logs - logs.max())
        return Factor(subdomain, self._total * weights / weights.sum())

    def project(self, clique: Clique) -> Factor:
        """The product of the groups' marginals; attributes without measurements are uniform."""
        subdomain = self._domain.project(clique)
        product = Factor.full(Domain(), 1.0)
        for table in self._tables:
            names = [name for name in clique if name in table.domain]
            if names:
                product = product * (table.project(names) / self._total)
        missing = [name for name in clique if name not in product.domain]
        for name in missing:
            alone = self._domain.project((name,))
            product = product * Factor.full(alone, 1.0 / alone.size)
        return (product * self._total).transpose(subdomain)


def _is_same(one: list[Measurement], other: list[Measurement]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def refuse_large(domain: Domain, group: Clique, max_bytes: int | None = None) -> None:
    """Refuse a dense table beyond a limit, by default half of the free memory."""
    needed = domain.size_of(group) * _BYTES_PER_CELL
    limit = int(_SHARE_OF_FREE_MEMORY * free_memory_bytes()) if max_bytes is None else max_bytes
    if needed > limit:
        raise ModelTooLarge(
            f"`update` must fit into memory; got a dense table over ({abbreviate(group)}) of "
            f"{format_bytes(needed)}, where {format_bytes(limit)} are allowed. "
            "Use the graphical-model form."
        )
