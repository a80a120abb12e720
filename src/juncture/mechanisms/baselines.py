"""Two plain mechanisms to hold others against: single columns only, or everything asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import ClassVar

from juncture.mechanisms.measured_once import MeasuredOnce, find_stddev
from juncture.mechanisms.mechanism import Assignment, MarginalForecast
from juncture.privacy.accounting import Neighbours
from juncture.privacy.request import Request
from juncture.tables.domain import Clique, Domain


@dataclass(frozen=True)
class Independent(MeasuredOnce):
    """Measure every single column, and nothing else: the model's columns are independent.

    Privacy: each column is measured through the curator for an equal share of the budget's price;
    by sequential composition all cost the budget.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 2)
    >>> run = Independent(Budget(epsilon=1.0)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> [cost.epsilon for cost in run.costs]
    [0.5, 0.5]
    """

    name: ClassVar[str] = "independent"

    def list_requests(self, assignment: Assignment) -> list[Request]:
        """Divide the budget equally between the columns."""
        price = self.budget.price.share(1.0 / len(assignment.domain))
        return [Request((name,), price) for name in assignment.domain]


class Division(StrEnum):
    """How the budget is divided between marginals."""

    EQUAL = "equal"
    """The same share, and so the same noise, for each of the same weight."""
    CELLS = "cells"
    """More for large ones, so that the squared errors of all cells add up to the least."""


@dataclass(frozen=True)
class Direct(MeasuredOnce):
    """Measure every marginal of the workload once, and nothing else.

    Privacy: each set of columns is measured through the curator for its share of the budget's
    price. Shares depend on the workload alone and add up to 1: by sequential composition all cost
    the budget.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2, "work": 2}), 2)
    >>> run = Direct(Budget(rho=0.3)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> [(each.clique, round(each.stddev, 2)) for each in run.marginals]
    [(('age', 'sex'), 2.24), (('age', 'work'), 2.24), (('sex', 'work'), 2.24)]
    """

    name: ClassVar[str] = "direct"

    _: KW_ONLY
    division: Division = Division.EQUAL

    def list_requests(self, assignment: Assignment) -> list[Request]:
        """Divide the budget between the workload's sets of columns."""
        domain, price = assignment.domain, self.budget.price
        shares = self._divide(domain, assignment.workload.clique_weights)
        return [Request(clique, price.share(share)) for clique, share in shares.items()]

    def forecast(
        self, assignment: Assignment, requests: Sequence[Request]
    ) -> list[MarginalForecast]:
        """Each marginal by its own measurement."""
        return [
            _forecast(assignment.domain, request, assignment.neighbours) for request in requests
        ]

    def _divide(self, domain: Domain, weights: Mapping[Clique, float]) -> dict[Clique, float]:
        """The share of each.

        The variance of a cell goes down with the share for Gaussian noise, and with its square for
        Laplace noise. The sum of weight * cells / share**p is least where the share is the product
        to the power 1 / (p + 1); for equal division, cells are left out.
        """
        power = 1.0 / (4 - self.budget.price.norm)
        by_cells = self.division is Division.CELLS
        needs = {
            clique: (weight * (domain.size_of(clique) if by_cells else 1)) ** power
            for clique, weight in weights.items()
        }
        return {clique: need / sum(needs.values()) for clique, need in needs.items()}


def _forecast(domain: Domain, request: Request, neighbours: Neighbours) -> MarginalForecast:
    stddev = find_stddev(domain, request, neighbours)
    cells, share = domain.size_of(request.clique), request.price.amount
    return MarginalForecast(request.clique, cells, share=share, stddev=stddev, error=stddev)
