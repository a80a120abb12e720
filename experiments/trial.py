"""One simulated run of a mechanism, and its error as the paper measures it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
from paper_data import DataSet

from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.hdmm import HDMM
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.result import RunResult
from juncture.mechanisms.strategy import Strategy
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import bind
from juncture.tables.workload import workload_error

# Of the 2019 experiments' drivers.
HDMM_SEEDS = (468130658, 1928512456, 804613545, 1106580885, 1713056646)
PRIVBAYES_SEEDS = (162672562, 35172897, 1330747486, 1511511086, 3455968)
DUAL_QUERY_SEEDS = (1137248860, 1582439880, 319854320, 242657693, 525881409)
MWEM_SEEDS = (2457026461, 2643031147, 2094276510, 2378741324, 1961979125)


def simulate(mechanism: Mechanism, data: DataSet, seed: int) -> RunResult:
    """A run on simulated noise, with a ledger that allows no more than the mechanism's budget."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger", mechanism.budget, Neighbours.REPLACE)
        curator = SimulatedCurator(data.source, ledger, rng=np.random.default_rng(seed))
        return mechanism.run(curator, data.workload)


def error_of(result: RunResult, data: DataSet) -> float:
    """The paper's workload error."""
    return workload_error(data.truth, result.answers(data.workload))


def build_strategy(data: DataSet, epsilon: float = 1.0) -> Strategy:
    """What HDMM measures for the workload."""
    return HDMM(Budget(epsilon=epsilon)).build_strategy(data.workload, Neighbours.REPLACE)


def recorded_measurements(
    data: DataSet, seed: int, epsilon: float = 1.0, strategy: Strategy | None = None
) -> list[Measurement]:
    """HDMM's measurements with the noise of the 2019 driver: one stream, block after block."""
    chosen = strategy or build_strategy(data, epsilon)
    rng, measurements = np.random.RandomState(seed), list[Measurement]()
    cliques = [part.clique for part in chosen.queries]
    for part, table in zip(chosen.queries, data.source.exact_counts(cliques), strict=True):
        operator = bind(part.query or Identity(), data.domain.project(part.clique))
        scale = 2.0 * len(chosen.queries) / epsilon
        noisy = operator.apply(table.values) + rng.laplace(0.0, scale, operator.n_rows)
        measurements.append(
            Measurement(
                part.clique, noisy, stddev=scale * 2.0**0.5, query=part.query, noise="laplace"
            )
        )
    return measurements


def fitted(
    data: DataSet,
    measurements: list[Measurement],
    solver: Solver,
    *,
    loss: Literal["l1", "l2"] = "l2",
    max_steps: int = 5000,
    tolerance: float = 1e-4,
) -> Estimate:
    """A model of the measurements, with the number of records known."""
    return estimate(
        data.domain, measurements, total=float(data.n_records), solver=solver, loss=loss,
        max_steps=max_steps, tolerance=tolerance,
    )  # fmt: skip


def to_the_end(data: DataSet, measurements: list[Measurement]) -> Estimate:
    """Fitted until further steps change the error in its fourth digit at most."""
    return fitted(data, measurements, Accelerated(), tolerance=1e-4, max_steps=1000)
