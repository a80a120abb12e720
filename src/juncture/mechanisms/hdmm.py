"""HDMM: the high-dimensional matrix mechanism, and what to make of its measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from juncture.block import Block, Identity, Total
from juncture.domain import Clique, Domain
from juncture.estimation import estimate
from juncture.factor import Factor
from juncture.layout import Vector
from juncture.measurement import Measurement
from juncture.mechanisms.multiplicative_weights import refuse_large
from juncture.mechanisms.outcome import Outcome
from juncture.mechanisms.price import price_of
from juncture.mechanisms.strategy import TaskStrategy, optimise_task, shares
from juncture.privacy.request import Request
from juncture.query import Kron
from juncture.solvers.problem import Solver
from juncture.solvers.stop_at_noise import StopAtNoise
from juncture.watch import Watch, steps, unwatched
from juncture.workload import Workload, refuse_other_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.privacy.curator import Door


class Estimation(StrEnum):
    """What is made of the measurements."""

    MODEL = "model"
    """One graphical model of all of them."""
    LOCAL = "local"
    """Least squares for each task alone: the original where the full table does not fit."""
    FULL = "full"
    """Least squares on the full table: the original."""


@dataclass(frozen=True, kw_only=True)
class HDMM:
    """Measure, for every task, a strategy that was optimised for it.

    Strategies depend on the workload alone. Privacy: the measurements go through the curator, which
    charges each its share of the budget; shares add up to 1, so by sequential composition all cost
    `epsilon` (Laplace noise) or `rho` (Gaussian noise). Estimation is post-processing.
    """

    epsilon: float | None = None
    rho: float | None = None
    estimation: Estimation = Estimation.MODEL
    equal_shares: bool = True
    """The paper divides the budget equally; otherwise for the least total squared error."""
    restarts: int = 5
    solver: Solver = field(default_factory=StopAtNoise)
    """Of the model's fit: by default one that ends where only noise is left to fit."""
    max_steps: int = 5000

    def strategies(self, workload: Workload) -> list[TaskStrategy]:
        """What would be measured: no data is looked at."""
        tasks = workload.tasks
        return [optimise_task(t, workload.domain, restarts=self.restarts) for t in tasks]

    def run(self, curator: Door, workload: Workload, *, watch: Watch = unwatched) -> Outcome:
        """Measure and estimate."""
        refuse_other_domain(curator.domain, workload)
        if self.estimation is Estimation.FULL:
            refuse_large(curator.domain, tuple(curator.domain))
        strategies = self.strategies(workload)
        requests = self.requests(strategies)
        before = len(curator.ledger.events)
        watch("measuring", 0, len(requests))
        measurements = curator.measure_all(requests)
        watch("measuring", len(requests), len(requests))
        events = curator.ledger.events[before:]
        if self.estimation is Estimation.FULL:
            table = least_squares(curator.domain, measurements)
            return Outcome(table.project, measurements=measurements, ledger=events, statistics={})
        if self.estimation is Estimation.LOCAL:
            tables = _local_tables(curator.domain, measurements)
            return Outcome(
                tables.__getitem__, measurements=measurements, ledger=events, statistics={}
            )
        fit = estimate(
            curator.domain, measurements, total=curator.public_n_records, solver=self.solver,
            max_steps=self.max_steps, watch=steps(watch, "fitting the model"),
        )  # fmt: skip
        return Outcome(
            fit.model.project, model=fit.model, measurements=measurements, ledger=events,
            statistics={**fit.statistics.summary(), "status": fit.status.name},
        )  # fmt: skip

    def requests(self, strategies: Sequence[TaskStrategy]) -> list[Request]:
        """What would be asked of the curator, with its price: no data is looked at."""
        return list(self._requests(strategies))

    def _requests(self, strategies: Sequence[TaskStrategy]) -> Iterator[Request]:
        price = price_of(self.epsilon, self.rho)
        errors = [strategy.error for strategy in strategies]
        divided = shares(errors, equal=self.equal_shares, gaussian=price.gaussian)
        for strategy, share in zip(strategies, divided, strict=True):
            clique = strategy.task.clique
            query = Kron(dict(zip(clique, strategy.blocks, strict=True)))
            plain = all(isinstance(block, Identity) for block in strategy.blocks)
            yield Request(clique=clique, query=None if plain else query, **price.part(share))


def least_squares(domain: Domain, measurements: Sequence[Measurement]) -> Factor:
    """The smallest full table, negative cells allowed, that fits the measurements best."""
    from scipy.sparse.linalg import LinearOperator, lsmr  # noqa: PLC0415  slow to import

    parts = [(m, domain.project(m.clique), m.operator(domain)) for m in measurements]
    goal = np.concatenate([m.values / m.stddev for m, _, _ in parts])
    ends = np.cumsum([operator.n_rows for _, _, operator in parts])[:-1]

    def apply(flat: Vector) -> Vector:
        table = Factor(domain, flat.reshape(domain.shape))
        answers = [o.apply(table.project(part).values) / m.stddev for m, part, o in parts]
        return np.concatenate(answers)

    def adjoint(residuals: Vector) -> Vector:
        whole = np.zeros(domain.shape)
        for (m, part, o), piece in zip(parts, np.split(residuals, ends), strict=True):
            back = Factor(part, o.adjoint(piece / m.stddev).reshape(part.shape))
            whole += back.expand(domain).values
        return whole.reshape(-1)

    shape = (len(goal), domain.size)
    system = LinearOperator(shape, matvec=apply, rmatvec=adjoint, dtype=np.float64)
    found = lsmr(system, goal, atol=1e-10, btol=1e-10, maxiter=10 * domain.size)[0]
    return Factor(domain, np.asarray(found).reshape(domain.shape))


def _local_tables(domain: Domain, measurements: list[Measurement]) -> dict[Clique, Factor]:
    """The least-squares table of every measurement alone; those of one clique are averaged."""
    found: dict[Clique, list[Vector]] = {}
    for measurement in measurements:
        found.setdefault(measurement.clique, []).append(_solved(domain, measurement))
    return {
        clique: Factor(domain.project(clique), np.mean(tables, axis=0))
        for clique, tables in found.items()
    }


def _solved(domain: Domain, measurement: Measurement) -> Vector:
    """The pseudo-inverse of a product of blocks, an attribute at a time."""
    part = domain.project(measurement.clique)
    if not isinstance(measurement.query, Kron):
        return measurement.values.reshape(part.shape)
    blocks: Mapping[str, Block] = measurement.query.blocks
    chosen = [blocks.get(name, Total()) for name in part]
    rows = [block.n_rows(size) for block, size in zip(chosen, part.shape, strict=True)]
    table = measurement.values.reshape(rows)
    for axis, (block, size) in enumerate(zip(chosen, part.shape, strict=True)):
        if not isinstance(block, Identity):
            inverse = np.linalg.pinv(block.matrix(size))
            table = np.moveaxis(np.tensordot(table, inverse, (axis, 1)), -1, axis)
    return table
