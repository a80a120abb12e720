"""What mechanisms share that measure a fixed list of queries once, and fit one model to it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import OracleChoice, choose_oracle
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.mechanisms.mechanism import (
    Assignment,
    Findings,
    MarginalForecast,
    Mechanism,
    Outline,
    refuse_useless,
)
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.request import Request
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import bind

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator


@dataclass(frozen=True)
class MeasuredOnce(Mechanism):
    """A mechanism that lists its requests beforehand, and fits one model to their answers."""

    budget: Budget
    _: KW_ONLY
    oracle: OracleFactory | str = "auto"
    """What computes marginals: "exact", "records", or, by default, the one that is fast."""
    max_steps: int = 5000
    """The most steps of the fit, which stops when only noise is left to fit."""

    def list_requests(self, assignment: Assignment) -> list[Request]:
        """What is measured; the prices add up to the budget's."""
        raise NotImplementedError

    def forecast(
        self,
        assignment: Assignment,  # noqa: ARG002
        requests: Sequence[Request],  # noqa: ARG002
    ) -> list[MarginalForecast]:
        """What to expect of each marginal, where it is known."""
        return []

    def outline(self, assignment: Assignment) -> Outline:
        """Plan the model; refuses one that does not fit, and noise that makes answers useless."""
        requests, domain = self.list_requests(assignment), assignment.domain
        choice = choose_oracle(self.oracle, domain, [request.clique for request in requests])
        stddevs = [find_stddev(domain, request, assignment.neighbours) for request in requests]
        return Outline(
            costs=tuple(request.price.cost for request in requests),
            execute=lambda curator, watch: self._execute(curator, requests, choice, watch),
            plan=choice.plan,
            oracle=choice,
            marginals=tuple(self.forecast(assignment, requests)),
            cell_stddev=statistics.median(map(refuse_useless, stddevs)),
        )

    def _execute(
        self, curator: Curator, requests: Sequence[Request], choice: OracleChoice, watch: Watch
    ) -> Findings:
        watch("measuring", 0, len(requests))
        measurements = curator.measure_all(requests)
        fit = estimate(
            curator.domain, measurements, total=curator.public_n_records, plan=choice.plan,
            solver=EarlyStopping(), max_steps=self.max_steps, oracle=choice.factory, watch=watch,
        )  # fmt: skip
        return Findings(fit.model.project, fit.model, measurements, fit.summary)


def find_stddev(domain: Domain, request: Request, neighbours: Neighbours) -> float:
    """The standard deviation of the noise on the answers of a request."""
    operator = bind(request.query or Identity(), domain.project(request.clique))
    return request.price.stddev(operator, neighbours)
