"""A question to a curator: what is asked, and what is paid for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, names_of
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

_MOST_PRICE = 1e100


@dataclass(frozen=True, kw_only=True)
class Request:
    """A question to a curator: a query on a clique, and what to pay for it."""

    clique: Clique
    query: Query | None = None
    epsilon: float | None = None
    """Pay in pure epsilon: Laplace noise."""
    rho: float | None = None
    """Pay in zCDP: Gaussian noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", names_of(self.clique))
        epsilon, rho = one_price(self.epsilon, self.rho)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "rho", rho)


def one_price(epsilon: float | None, rho: float | None) -> tuple[float | None, float | None]:
    """Both prices as plain numbers, one of them none."""
    if (epsilon is None) == (rho is None):
        raise InvalidInput(
            "`epsilon` or `rho` must be given, and only one of them; got "
            f"{epsilon!r} and {rho!r}. Pay in pure epsilon or in zCDP."
        )
    given = epsilon if rho is None else rho
    try:
        price = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        price = math.nan
    if not (math.isfinite(price) and 0.0 < price < _MOST_PRICE):
        raise InvalidInput(
            f"`epsilon` or `rho` must be a positive number below {_MOST_PRICE:g}; got {given!r}. "
            "Pay something."
        )
    return (price, None) if rho is None else (None, price)


def words(query: Query) -> str:
    """A query in words, for the ledger."""
    match query:
        case Identity():
            return "every count"
        case Kron():
            parts = (f"{name}: {type(b).__name__}" for name, b in query.blocks.items())
            return f"Kron({', '.join(parts)})"
        case Stack():
            return f"{len(query.queries)} queries"
        case Scaled():
            return f"{query.weight:g} times {words(query.query)}"
        case _:
            return type(query).__name__
