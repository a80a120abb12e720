"""What a mechanism will spend, and how far off it will be, before any data is read.

Strategies, rounds, prices and noise scales follow from the workload, the budget and, for some
mechanisms, the public number of records. So a person can choose before spending, and a run that a
ledger could not pay to its end can be refused before its first event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.errors import InvalidInput
from juncture.mechanisms.dual_query import DualQuery
from juncture.mechanisms.hdmm import HDMM, noise_stddev
from juncture.mechanisms.mwem import MWEM
from juncture.mechanisms.price import price_of
from juncture.mechanisms.privbayes import PrivBayes
from juncture.privacy.accounting import (
    DRAW_SLACK,
    Budget,
    Cost,
    Neighbours,
    gaussian_stddev,
    laplace_scale,
    rho_of_epsilon,
)
from juncture.privacy.request import Request
from juncture.tables.domain import Clique
from juncture.tables.workload import Workload

Mechanism = HDMM | MWEM | PrivBayes | DualQuery
Price = dict[str, float]
# Noise beyond this drowns any table, and the samplers' integers would not hold more much longer.
_MOST_NOISE = 1e8


@dataclass(frozen=True)
class MarginalForecast:
    """What is known of one marginal of the workload before it is measured."""

    clique: Clique
    cells: int
    share: float
    """What it may cost, in the unit of the price."""
    stddev: float
    """Of the noise on each answer that is measured; not a number where none is on this clique."""
    error: float
    """The root of the expected mean squared error of a query, by least squares alone."""


@dataclass(frozen=True)
class Forecast:
    """All that is known before."""

    costs: tuple[Cost, ...]
    """Of every event, in order."""
    marginals: tuple[MarginalForecast, ...] = ()
    """Where the mechanism measures the whole workload, whatever the data."""
    facts: tuple[tuple[str, str], ...] = ()
    """Where it chooses by the data: what is known all the same, in words."""


def mechanism_for(name: str, budget: Budget) -> Mechanism:
    """The graphical-model form of a mechanism that spends a budget.

    An epsilon alone buys Laplace noise. A rho, or the largest rho within an epsilon and a delta,
    buys Gaussian noise.
    """
    if name == "dualquery":
        if budget.delta is None and budget.rho is None:
            raise InvalidInput(
                "`budget` must be a rho, or an epsilon with a delta, for dualquery; got an epsilon "
                "alone. Add a delta, below one in the number of records."
            )
        return DualQuery(epsilon=budget.epsilon, delta=budget.delta, rho=budget.rho)
    epsilon, rho = budget.epsilon, budget.rho
    if budget.delta is not None:
        epsilon, rho = None, rho_of_epsilon(budget.epsilon or 0.0, budget.delta)
    kinds = {"hdmm": HDMM, "mwem": MWEM, "privbayes": PrivBayes}
    if name not in kinds:
        raise InvalidInput(
            f"`mechanism` must be one of {', '.join(kinds)}, dualquery; got {name!r}. Choose one."
        )
    made: Mechanism = kinds[name](epsilon=epsilon, rho=rho)
    return made


def forecast(
    mechanism: Mechanism,
    workload: Workload,
    neighbours: Neighbours,
    n_records: int | None = None,
) -> Forecast:
    """What the mechanism will cost, and what it will measure with how much noise.

    `n_records` is the public number of records; PrivBayes and DualQuery cannot go without.
    """
    match mechanism:
        case HDMM():
            return _hdmm(mechanism, workload, neighbours)
        case MWEM():
            return _mwem(mechanism, workload, neighbours)
        case PrivBayes():
            return _privbayes(mechanism, workload, _known(n_records, neighbours))
        case DualQuery():
            return _dual_query(mechanism, workload, _known(n_records, neighbours))


def _known(n_records: int | None, neighbours: Neighbours) -> int:
    if neighbours is not Neighbours.REPLACE:
        raise InvalidInput(
            "`neighbours` must be those that replace one record for this mechanism: it needs the "
            "number of records as public knowledge. Choose `replace`, or take hdmm or mwem."
        )
    if n_records is None or n_records < 1:
        raise InvalidInput(
            "`n_records` must be the public number of records for this mechanism; got "
            f"{n_records}. Say how many there are, about."
        )
    return n_records


def _hdmm(mechanism: HDMM, workload: Workload, neighbours: Neighbours) -> Forecast:
    domain, strategy = workload.domain, mechanism.build_strategy(workload)
    requests = mechanism.make_requests(strategy)
    stddevs = [_bearable(noise_stddev(domain, request, neighbours)) for request in requests]
    squared = strategy.expected_squared_errors(stddevs)
    found = []
    for task, error in zip(workload.tasks, squared, strict=True):
        part, rows = domain.project(task.clique), task.operator(domain).n_rows
        own = [
            (_price(request), stddev)
            for request, stddev in zip(requests, stddevs, strict=True)
            if set(request.clique) == set(task.clique)
        ]
        share = math.fsum(sum(price.values()) for price, _ in own)
        least = min((stddev for _, stddev in own), default=math.nan)
        root = math.sqrt(error / rows)
        found.append(MarginalForecast(tuple(part), part.size, share, least, root))
    costs = tuple(_measured(_price(request)) for request in requests)
    return Forecast(costs, marginals=tuple(found))


def _price(request: Request) -> Price:
    pairs = (("epsilon", request.epsilon), ("rho", request.rho))
    return {kind: amount for kind, amount in pairs if amount}


def _mwem(mechanism: MWEM, workload: Workload, neighbours: Neighbours) -> Forecast:
    known = neighbours is Neighbours.REPLACE
    attributes = len(workload.domain)
    rounds = mechanism.count_rounds(attributes)
    choice, measure = mechanism.prices(attributes, total_is_public=known)
    total = price_of(mechanism.epsilon, mechanism.rho).part(mechanism.total_share)
    first = [] if known else [_measured(total)]
    facts = [
        ("rounds", f"{rounds}: each chooses one marginal of {len(workload.tasks)}, measures it"),
        ("a choice costs", _worded(choice)),
        ("a measurement costs", _worded(measure)),
        ("noise on a measured cell", f"standard deviation {_cell(neighbours, measure):.3g}"),
    ]
    if not known:
        facts.append(("the number of records", f"measured first, for {_worded(total)}"))
    return Forecast((*first, *(_chosen(choice), _measured(measure)) * rounds), facts=tuple(facts))


def _privbayes(mechanism: PrivBayes, workload: Workload, n_records: int) -> Forecast:
    attributes = len(workload.domain)
    choice, measure = mechanism.prices(attributes)
    cells = mechanism.cell_limit(attributes, n_records)
    facts = (
        ("choices", f"{attributes - 1}: the parents of every attribute but the first"),
        ("a choice costs", _worded(choice)),
        ("joint tables", f"{attributes}, of at most {max(1, int(cells)):,} cells each"),
        ("a joint table costs", _worded(measure)),
        (
            "noise on a measured cell",
            f"standard deviation {_cell(Neighbours.REPLACE, measure):.3g}",
        ),
        ("the workload", "has no say in what is measured"),
    )
    costs = [_chosen(choice)] * (attributes - 1) + [_measured(measure)] * attributes
    return Forecast(tuple(costs), facts=facts)


def _dual_query(mechanism: DualQuery, workload: Workload, n_records: int) -> Forecast:
    rounds, draws = mechanism.count_rounds(n_records), mechanism.draws
    prices = [2.0 * mechanism.eta * t / n_records + DRAW_SLACK for t in range(1, rounds)]
    costs = [Cost(epsilon=draws * e, rho=draws * e**2 / 8.0) for e in prices]
    facts = (
        ("rounds", f"{rounds}: as many as the budget allows"),
        ("a round", f"{draws} draws from {2 * workload.n_queries:,} queries and complements"),
        ("a draw costs", f"epsilon {prices[-1] if prices else 0.0:.3g} in the last round"),
        ("noise", "none is added; how often queries are drawn is the noise"),
    )
    return Forecast(tuple(costs), facts=facts)


def _measured(price: Price) -> Cost:
    return Cost.pure(price["epsilon"]) if "epsilon" in price else Cost.concentrated(price["rho"])


def _chosen(price: Price) -> Cost:
    if "epsilon" in price:
        return Cost.pure(price["epsilon"])
    return Cost.selection(math.sqrt(8.0 * price["rho"]))


def _cell(neighbours: Neighbours, price: Price) -> float:
    """The standard deviation of the noise on a cell of a table with at least two."""
    replaced = neighbours is Neighbours.REPLACE
    if "epsilon" in price:
        laplace = laplace_scale(2.0 if replaced else 1.0, price["epsilon"])
        return _bearable(math.sqrt(2.0) * laplace)
    return _bearable(gaussian_stddev(math.sqrt(2.0) if replaced else 1.0, price["rho"]))


def _bearable(stddev: float) -> float:
    """Refuse, before anything is spent, what could not tell anything."""
    if stddev > _MOST_NOISE:
        raise InvalidInput(
            f"`budget` must buy noise of a standard deviation below {_MOST_NOISE:g}; got "
            f"{stddev:.3g}. Spend more, or ask for less."
        )
    return stddev


def _worded(price: Price) -> str:
    return ", ".join(f"{kind} {amount:.4g}" for kind, amount in price.items())
