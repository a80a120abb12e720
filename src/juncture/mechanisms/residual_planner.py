"""ResidualPlanner: the Gaussian noise that is best for all marginals, and one model of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.mechanisms.measured_once import MeasuredOnce, find_stddev
from juncture.mechanisms.mechanism import Assignment, MarginalForecast
from juncture.privacy.request import Request
from juncture.tables.domain import Clique, Domain
from juncture.tables.queries.blocks import Matrix
from juncture.tables.queries.products import Kron, bind
from juncture.tables.workload import Workload

# Beyond this, the dense matrix of an attribute's contrasts is too large.
_MAX_SIZE = 1000


class Balance(StrEnum):
    """Which sum of variances the shares make least."""

    CELLS = "cells"
    """That of all cells of all marginals: large marginals count most."""
    MARGINALS = "marginals"
    """That of the mean cell of each marginal: all marginals count the same."""


@dataclass(frozen=True)
class ResidualPlanner(MeasuredOnce):
    """ResidualPlanner (Xiao, He, Zhang and Kifer 2023), with one model fitted to all answers.

    What a set of columns says that no smaller set says is measured apart, for every set below the
    workload's: its residual, by orthonormal contrasts of each column (`contrasts`). The residuals
    of different sets are orthogonal, so the variance of every cell of every marginal is a weighted
    sum of their noise variances, and the shares of the budget that make the sum of these variances
    over all cells least have a closed form. For Gaussian noise and one record more or less no
    linear queries at all do better; for Laplace noise the shares are the best for these queries.

    Privacy: each residual is measured through the curator for its share of the budget's price; the
    curator computes the sensitivity of the query, whose entries it rounds. Shares depend on the
    workload alone and add up to 1: by sequential composition all cost the budget.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 2)
    >>> run = ResidualPlanner(Budget(rho=0.5)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> len(run.costs), round(run.marginals[0].error, 3)
    (4, 1.0)
    """

    name: ClassVar[str] = "residual"

    _: KW_ONLY
    balance: Balance = Balance.CELLS
    """What the shares make least."""

    def forecast(
        self, assignment: Assignment, requests: Sequence[Request]
    ) -> list[MarginalForecast]:
        """The errors that follow from the shares."""
        domain = assignment.domain
        variances = {
            request.clique: find_stddev(domain, request, assignment.neighbours) ** 2
            for request in requests
        }
        amounts = {request.clique: request.price.amount for request in requests}
        cliques = assignment.workload.distinct_cliques
        return [_forecast(domain, clique, variances, amounts) for clique in cliques]

    def list_requests(self, assignment: Assignment) -> list[Request]:
        """A residual each, with the share of the budget that makes the total variance least.

        With weight v and sensitivity s of a residual, the total is the sum of v s^2 / share for
        Gaussian noise, and of v s^2 / share^2 for Laplace noise; so the best share is the power
        1 / 2, or 1 / 3, of v s^2.
        """
        workload, neighbours = assignment.workload, assignment.neighbours
        _refuse_large(workload.domain)
        domain, price = workload.domain, self.budget.price
        weights = weigh_residuals(workload, self.balance)
        if neighbours.n_records_is_public:
            # The number of records is public: it needs no share, unless nothing else is asked.
            weights = {clique: v for clique, v in weights.items() if clique} or weights
        queries = {clique: make_residual_query(domain, clique) for clique in weights}
        needs = {}
        for clique, weight in weights.items():
            operator = bind(queries[clique], domain.project(clique))
            sensitivity = price.sensitivity(operator, neighbours)
            needs[clique] = (weight * sensitivity**2) ** (1.0 / (4 - price.norm))
        whole = math.fsum(needs.values())
        return [
            Request(clique, price.share(need / whole), queries[clique])
            for clique, need in needs.items()
        ]


def contrasts(size: int) -> NDArray[np.float64]:
    """Orthonormal rows, one less than there are values, that are orthogonal to the total.

    They are Helmert's: each compares a value with those before it. The product of the matrix with
    its transpose is the identity, and the other way round the identity less 1 / size everywhere.

    >>> contrasts(3).round(3)
    array([[ 0.707, -0.707,  0.   ],
           [ 0.408,  0.408, -0.816]])
    """
    rows = np.tril(np.ones((size, size)))[:-1]
    rows[np.arange(size - 1), np.arange(1, size)] = -np.arange(1.0, size)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def make_residual_query(domain: Domain, clique: Clique) -> Kron:
    """The query that asks for what a set of columns says and no smaller set does."""
    return Kron({name: Matrix(contrasts(domain[name])) for name in clique})


def weigh_residuals(workload: Workload, balance: Balance = Balance.CELLS) -> dict[Clique, float]:
    """For each set below the workload's, what its noise variance adds to the sum of all.

    A column of one value has no contrast: it is left out of every set.
    """
    domain, weights = workload.domain, dict[Clique, float]()
    for clique, weight in workload.clique_weights.items():
        names = [name for name in clique if domain[name] > 1]
        n_counted = weight * (domain.size_of(clique) if balance is Balance.CELLS else 1)
        for size in range(len(names) + 1):
            for subset in combinations(names, size):
                added = n_counted * _cell_factor(domain, clique, subset)
                weights[subset] = weights.get(subset, 0.0) + added
    return weights


def _cell_factor(domain: Domain, clique: Sequence[str], subset: Sequence[str]) -> float:
    """What the noise variance of a residual adds to that of a cell of a marginal above it."""
    inside = math.prod((domain[name] - 1) / domain[name] for name in subset)
    return inside / math.prod(float(domain[name]) ** 2 for name in set(clique).difference(subset))


def _forecast(
    domain: Domain,
    clique: Clique,
    variances: Mapping[Clique, float],
    amounts: Mapping[Clique, float],
) -> MarginalForecast:
    names = domain.canonical(clique)
    subsets = (subset for size in range(len(names) + 1) for subset in combinations(names, size))
    below = [subset for subset in subsets if subset in variances]
    variance = math.fsum(
        variances[subset] * _cell_factor(domain, clique, subset) for subset in below
    )
    return MarginalForecast(
        clique,
        domain.size_of(clique),
        share=math.fsum(amounts[subset] for subset in below),
        stddev=math.sqrt(variances[clique]) if clique in variances else math.nan,
        error=math.sqrt(variance),
    )


def _refuse_large(domain: Domain) -> None:
    large = [name for name, size in domain.items() if size > _MAX_SIZE]
    if large:
        raise InvalidInput(
            f"`workload` must have columns of at most {_MAX_SIZE:,} values; got "
            f"{', '.join(large)} with more. Use hdmm, aim or direct."
        )
