"""What mechanisms share that measure a fixed list of queries once, and fit one model to it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import OracleChoice, choose_oracle
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.mechanisms.mechanism import Findings, MarginalForecast, Run, refuse_useless
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.request import Request
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import bind
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator


@dataclass(frozen=True, kw_only=True)
class MeasuredOnce:
    """A list of requests, known beforehand, and how a model is fitted to their answers."""

    name: str
    """The mechanism's name."""
    budget: Budget
    workload: Workload
    neighbours: Neighbours
    requests: Sequence[Request]
    """Their prices add up to the budget's."""
    oracle: OracleFactory | str
    max_steps: int

    @property
    def stddevs(self) -> list[float]:
        """The standard deviation of the noise on the answers of each request."""
        return [
            find_stddev(self.workload.domain, request, self.neighbours) for request in self.requests
        ]

    def prepare(self, marginals: Sequence[MarginalForecast] = ()) -> Run:
        """Plan the model; refuses one that does not fit, and noise that makes answers useless."""
        cliques = [request.clique for request in self.requests]
        choice = choose_oracle(self.oracle, self.workload.domain, cliques)
        return Run(
            mechanism=self.name,
            workload=self.workload,
            budget=self.budget,
            neighbours=self.neighbours,
            costs=tuple(request.price.cost for request in self.requests),
            execute=lambda curator, watch: self._execute(curator, choice, watch),
            plan=choice.plan,
            oracle=choice,
            marginals=tuple(marginals),
            cell_stddev=statistics.median(map(refuse_useless, self.stddevs)),
        )

    def _execute(self, curator: Curator, choice: OracleChoice, watch: Watch) -> Findings:
        watch("measuring", 0, len(self.requests))
        measurements = curator.measure_all(self.requests)
        fit = estimate(
            self.workload.domain, measurements, total=curator.public_n_records, plan=choice.plan,
            solver=EarlyStopping(), max_steps=self.max_steps, oracle=choice.factory,
            watch=watch,
        )  # fmt: skip
        return Findings(fit.model.project, fit.model, measurements, fit.summary)


def find_stddev(domain: Domain, request: Request, neighbours: Neighbours) -> float:
    """The standard deviation of the noise on the answers of a request."""
    operator = bind(request.query or Identity(), domain.project(request.clique))
    return request.price.stddev(operator, neighbours)
