"""HDMM: the high-dimensional matrix mechanism, with three ways to estimate from its answers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import OracleChoice, choose_oracle
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.least_squares import full_least_squares, local_least_squares
from juncture.mechanisms.marginal_strategy import optimise_marginals, residual_least_squares
from juncture.mechanisms.mechanism import (
    Assignment,
    Findings,
    MarginalForecast,
    Mechanism,
    Outline,
    refuse_useless,
)
from juncture.mechanisms.multiplicative_weights import refuse_large
from juncture.mechanisms.strategy import Shares, Strategy, optimise_union
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.request import Request
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import bind
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator


class Template(StrEnum):
    """What kind of strategy is optimised."""

    UNION = "union"
    """A product for each clique of the workload, as in the paper."""
    MARGINALS = "marginals"
    """Weighted marginals on all sets of attributes below the workload's cliques."""
    BEST = "best"
    """The one of the two with the smaller expected total squared error by least squares."""


class Estimation(StrEnum):
    """How answers are estimated from the measurements."""

    MODEL = "model"
    """One graphical model of all measurements."""
    LOCAL = "local"
    """Least squares for each task alone: the original where the full table does not fit."""
    FULL = "full"
    """Least squares on the full table: the original."""


@dataclass(frozen=True)
class HDMM(Mechanism):
    """Measure a strategy that was optimised for the workload.

    Strategies depend on the workload alone. Privacy: the measurements go through the curator, which
    charges each its share of the budget's price; shares add up to 1, so by sequential composition
    all cost the budget. Estimation is post-processing.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 1)
    >>> run = HDMM(Budget(epsilon=1.0)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> [(each.clique, round(each.stddev, 2)) for each in run.marginals]
    [(('age',), 2.83), (('sex',), 2.83)]
    """

    name: ClassVar[str] = "hdmm"

    budget: Budget
    _: KW_ONLY
    estimation: Estimation = Estimation.MODEL
    template: Template = Template.UNION
    shares: Shares = Shares.EQUAL
    """How a union divides the budget; weighted marginals have shares of their own."""
    restarts: int = 5
    """How often the strategy is optimised, each time from another start; the best is used."""
    solver: Solver = field(default_factory=EarlyStopping)
    """The solver that fits the model; the default stops when only noise is left to fit."""
    max_steps: int = 5000
    """The most steps of that solver."""
    oracle: OracleFactory | str = "exact"
    """What computes marginals: "exact", "records" for a workload of any tree-width, or "auto"."""

    def outline(self, assignment: Assignment) -> Outline:
        """Optimise the strategy, and plan the model. Forecasts are for least squares alone."""
        workload, neighbours = assignment.workload, assignment.neighbours
        if self.estimation is Estimation.FULL:
            refuse_large(workload.domain, tuple(workload.domain))
        # A union measures the workload's own cliques: refuse a large model before optimising.
        choice = self._choose(workload.domain, workload.cliques, Template.UNION)
        strategy = self.build_strategy(workload, neighbours)
        requests = self.make_requests(strategy)
        cliques = [request.clique for request in requests]
        choice = choice or self._choose(workload.domain, cliques, self.template)
        stddevs = [
            refuse_useless(_noise_stddev(workload, request, neighbours)) for request in requests
        ]
        return Outline(
            costs=tuple(request.price.cost for request in requests),
            execute=_Execution(self, workload, requests, choice),
            plan=None if choice is None else choice.plan,
            oracle=choice,
            marginals=_forecast(workload, strategy, requests, stddevs),
            cell_stddev=statistics.median(stddevs),
        )

    def _choose(
        self, domain: Domain, cliques: Sequence[Clique], when: Template
    ) -> OracleChoice | None:
        """The oracle and the plan of the model, if one is fitted and the template is `when`."""
        modelled = self.estimation is Estimation.MODEL and self.template is when
        return choose_oracle(self.oracle, domain, cliques) if modelled else None

    def build_strategy(self, workload: Workload, neighbours: Neighbours) -> Strategy:
        """What would be measured; looks at no data."""
        l2 = self.budget.price.norm == 2
        if self.template is Template.MARGINALS:
            return optimise_marginals(workload, gaussian=l2, restarts=self.restarts)
        union = optimise_union(workload, gaussian=l2, restarts=self.restarts, rule=self.shares)
        if self.template is Template.UNION:
            return union
        marginals = optimise_marginals(workload, gaussian=l2, restarts=self.restarts)
        both: list[Strategy] = [union, marginals]
        return min(
            both,
            key=lambda each: float(
                np.dot(workload.weights, self._expected_errors(workload, each, neighbours))
            ),
        )

    def expected_squared_errors(
        self, workload: Workload, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    ) -> list[float]:
        """The squared error of each task by least squares, expected before anything is spent."""
        strategy = self.build_strategy(workload, neighbours)
        return self._expected_errors(workload, strategy, neighbours)

    def _expected_errors(
        self, workload: Workload, strategy: Strategy, neighbours: Neighbours
    ) -> list[float]:
        requests = self.make_requests(strategy)
        stddevs = [_noise_stddev(workload, request, neighbours) for request in requests]
        return strategy.expected_squared_errors(stddevs)

    def make_requests(self, strategy: Strategy) -> list[Request]:
        """The requests to the curator, each with its price; looks at no data."""
        price = self.budget.price
        return [
            Request(each.clique, price.share(each.share), each.query) for each in strategy.queries
        ]


@dataclass(frozen=True, eq=False)
class _Execution:
    """The work of a prepared run."""

    options: HDMM
    workload: Workload
    requests: Sequence[Request]
    choice: OracleChoice | None

    def __call__(self, curator: Curator, watch: Watch) -> Findings:
        watch("measuring", 0, len(self.requests))
        measurements = curator.measure_all(self.requests)
        watch("measuring", len(self.requests), len(self.requests))
        domain, options = self.workload.domain, self.options
        if options.estimation is Estimation.FULL:
            table = full_least_squares(domain, measurements)
            return Findings(table.project, measurements=measurements)
        if options.estimation is Estimation.LOCAL:
            return Findings(self._local_tables(measurements).project, measurements=measurements)
        assert self.choice is not None
        fit = estimate(
            domain, measurements, total=curator.public_n_records, solver=options.solver,
            max_steps=options.max_steps, plan=self.choice.plan, oracle=self.choice.factory,
            watch=watch,
        )  # fmt: skip
        return Findings(fit.model.project, fit.model, measurements, fit.summary)

    def _local_tables(self, measurements: Sequence[Measurement]) -> _CliqueTables:
        domain = self.workload.domain
        plain = all(isinstance(m.query, Identity) for m in measurements)
        tables = (
            residual_least_squares(domain, measurements, self.workload.cliques)
            if self.options.template is not Template.UNION and plain
            else local_least_squares(domain, measurements)
        )
        return _CliqueTables(domain, tables)


def _forecast(
    workload: Workload, strategy: Strategy, requests: Sequence[Request], stddevs: Sequence[float]
) -> tuple[MarginalForecast, ...]:
    """What to expect of every task of the workload."""
    domain, results = workload.domain, []
    squared = strategy.expected_squared_errors(stddevs)
    for task, error in zip(workload.tasks, squared, strict=True):
        subdomain, n_rows = domain.project(task.clique), task.operator(domain).n_rows
        own = [
            (request.price.amount, stddev)
            for request, stddev in zip(requests, stddevs, strict=True)
            if set(request.clique) == set(task.clique)
        ]
        results.append(
            MarginalForecast(
                tuple(subdomain),
                subdomain.size,
                share=math.fsum(amount for amount, _ in own),
                stddev=min((stddev for _, stddev in own), default=math.nan),
                error=math.sqrt(error / n_rows),
            )
        )
    return tuple(results)


def _noise_stddev(workload: Workload, request: Request, neighbours: Neighbours) -> float:
    operator = bind(request.query or Identity(), workload.domain.project(request.clique))
    return request.price.stddev(operator, neighbours)


@dataclass(frozen=True, eq=False)
class _CliqueTables:
    """Tables of some cliques, found by their attributes in any order."""

    domain: Domain
    tables: dict[Clique, Factor]

    def project(self, clique: Clique) -> Factor:
        names = {self.domain.canonical(known): known for known in self.tables}
        key = names.get(self.domain.canonical(clique))
        if key is None:
            raise InvalidInput(
                f"`clique` must be one of the workload's; got {clique}. Use Estimation.MODEL "
                "or Estimation.FULL to answer others."
            )
        return self.tables[key].transpose(self.domain.project(clique))
