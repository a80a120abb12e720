"""HDMM: the high-dimensional matrix mechanism, and what to make of its measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from juncture._util.watch import Watch, ignore_progress
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.least_squares import full_least_squares, local_least_squares
from juncture.mechanisms.marginal_strategy import optimise_marginals, residual_least_squares
from juncture.mechanisms.multiplicative_weights import refuse_large
from juncture.mechanisms.outcome import Outcome
from juncture.mechanisms.price import price_of
from juncture.mechanisms.strategy import Shares, Strategy, optimise_union
from juncture.model.model import Model
from juncture.privacy.accounting import (
    Neighbours,
    gaussian_stddev,
    l1_sensitivity,
    l2_sensitivity,
    laplace_scale,
)
from juncture.privacy.request import Request
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import bind
from juncture.tables.workload import Workload, check_same_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.private.door import Door


class Template(StrEnum):
    """What kind of strategy is optimised."""

    UNION = "union"
    """A product for each clique of the workload: the paper's."""
    MARGINALS = "marginals"
    """Weighted marginals on all sets of attributes below the workload's cliques."""
    BEST = "best"
    """Whichever of the two promises the smaller total squared error by least squares."""


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
    """Measure a strategy that was optimised for the workload.

    Strategies depend on the workload alone. Privacy: the measurements go through the curator, which
    charges each its share of the budget; shares add up to 1, so by sequential composition all cost
    `epsilon` (Laplace noise) or `rho` (Gaussian noise). Estimation is post-processing.
    """

    epsilon: float | None = None
    rho: float | None = None
    estimation: Estimation = Estimation.MODEL
    template: Template = Template.UNION
    shares: Shares = Shares.EQUAL
    """How a union divides the budget; weighted marginals have shares of their own."""
    restarts: int = 5
    solver: Solver = field(default_factory=EarlyStopping)
    """Of the model's fit: by default one that ends where only noise is left to fit."""
    max_steps: int = 5000

    def build_strategy(self, workload: Workload) -> Strategy:
        """What would be measured: no data is looked at."""
        gaussian = price_of(self.epsilon, self.rho).gaussian
        if self.template is Template.MARGINALS:
            return optimise_marginals(workload, gaussian=gaussian, restarts=self.restarts)
        union = optimise_union(
            workload, gaussian=gaussian, restarts=self.restarts, rule=self.shares
        )
        if self.template is Template.UNION:
            return union
        marginals = optimise_marginals(workload, gaussian=gaussian, restarts=self.restarts)
        both: list[Strategy] = [union, marginals]
        return min(both, key=lambda each: math.fsum(self._expected_errors(workload, each)))

    def expected_squared_errors(
        self, workload: Workload, neighbours: Neighbours = Neighbours.REPLACE
    ) -> list[float]:
        """By task, over all its answers by least squares: known before anything is spent."""
        return self._expected_errors(workload, self.build_strategy(workload), neighbours)

    def _expected_errors(
        self,
        workload: Workload,
        strategy: Strategy,
        neighbours: Neighbours = Neighbours.REPLACE,
    ) -> list[float]:
        requests = self.make_requests(strategy)
        return strategy.expected_squared_errors(
            [noise_stddev(workload.domain, request, neighbours) for request in requests]
        )

    def run(self, curator: Door, workload: Workload, *, watch: Watch = ignore_progress) -> Outcome:
        """Measure and estimate."""
        check_same_domain(curator.domain, workload)
        if self.estimation is Estimation.FULL:
            refuse_large(curator.domain, tuple(curator.domain))
        requests = self.make_requests(self.build_strategy(workload))
        before = len(curator.ledger.events)
        watch("measuring", 0, len(requests))
        measurements = curator.measure_all(requests)
        watch("measuring", len(requests), len(requests))
        project, model, statistics = self._estimate(curator, workload, measurements, watch)
        return Outcome(
            project, model=model, measurements=measurements,
            ledger=curator.ledger.events[before:], statistics=statistics,
        )  # fmt: skip

    def _estimate(
        self,
        curator: Door,
        workload: Workload,
        measurements: Sequence[Measurement],
        watch: Watch,
    ) -> tuple[Callable[[Clique], Factor], Model | None, dict[str, Any]]:
        domain = curator.domain
        if self.estimation is Estimation.FULL:
            return full_least_squares(domain, measurements).project, None, {}
        if self.estimation is Estimation.LOCAL:
            plain = all(isinstance(m.query, Identity) for m in measurements)
            tables = (
                residual_least_squares(domain, measurements, workload.cliques)
                if self.template is not Template.UNION and plain
                else local_least_squares(domain, measurements)
            )
            return _CliqueTables(domain, tables).project, None, {}
        fit = estimate(
            domain, measurements, total=curator.public_n_records, solver=self.solver,
            max_steps=self.max_steps, watch=watch,
        )  # fmt: skip
        statistics = fit.summary.to_json()
        return fit.model.project, fit.model, statistics

    def make_requests(self, strategy: Strategy) -> list[Request]:
        """What would be asked of the curator, with its price: no data is looked at."""
        price = price_of(self.epsilon, self.rho)
        return [
            Request(clique=each.clique, query=each.query, **price.part(each.share))
            for each in strategy.queries
        ]


def noise_stddev(domain: Domain, request: Request, neighbours: Neighbours) -> float:
    """Of the noise that a request's price buys, up to the rounding of the curator's lattice."""
    operator = bind(request.query or Identity(), domain.project(request.clique))
    if request.epsilon is not None:
        scale = laplace_scale(l1_sensitivity(operator, neighbours), request.epsilon)
        return math.sqrt(2.0) * scale
    return gaussian_stddev(l2_sensitivity(operator, neighbours), request.rho or 0.0)


@dataclass(frozen=True, eq=False)
class _CliqueTables:
    """Tables of some cliques, whatever the order of their attributes."""

    domain: Domain
    tables: dict[Clique, Factor]

    def project(self, clique: Clique) -> Factor:
        names = {self.domain.canonical(known): known for known in self.tables}
        key = names.get(self.domain.canonical(clique))
        if key is None:
            raise InvalidInput(
                f"`clique` must be one of the workload's; got {clique}. Only the forms with a "
                "model or a full table answer others."
            )
        return self.tables[key].transpose(self.domain.project(clique))
