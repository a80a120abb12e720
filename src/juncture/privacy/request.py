"""Requests to a curator: what to measure, and what to pay for it."""

from __future__ import annotations

from dataclasses import dataclass

from juncture.errors import InvalidInput
from juncture.privacy.price import Price
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

_MAX_ATTRIBUTES = 32


@dataclass(frozen=True)
class Request:
    """A measurement to ask a curator for: a query on a clique, and what to pay for it.

    >>> from juncture.privacy.price import Pure
    >>> Request(["age", "sex"], Pure(0.1)).clique
    ('age', 'sex')
    """

    clique: Clique
    price: Price
    query: Query | None = None
    """None stands for every count."""
    purpose: str = ""
    """What it is for, if it is not for the model: a word for the ledger."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", names_of(self.clique))
        if not isinstance(self.price, Price):
            raise InvalidInput(
                f"`price` must be a price such as Pure(0.1) or ZCDP(0.01); got {self.price!r}."
            )


def table_domain(domain: Domain, clique: Clique) -> Domain:
    """The domain of a clique; refuses a clique that is too large for a table."""
    subdomain = domain.project(clique)
    if len(subdomain) > _MAX_ATTRIBUTES:
        raise InvalidInput(
            f"`clique` must have at most {_MAX_ATTRIBUTES} attributes; got {len(subdomain)}."
        )
    return subdomain


def describe_query(query: Query) -> str:
    """A short description of a query for the ledger."""
    match query:
        case Identity():
            return "every count"
        case Kron():
            blocks = (f"{name}: {type(b).__name__}" for name, b in query.blocks.items())
            return f"Kron({', '.join(blocks)})"
        case Stack():
            return f"{len(query.queries)} queries"
        case Scaled():
            return f"{query.weight:g} times {describe_query(query.query)}"
        case _:
            return type(query).__name__
