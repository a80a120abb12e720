"""A question to a curator: what is asked, and what is paid for it."""

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
    """A question to a curator: a query on a clique, and what to pay for it."""

    clique: Clique
    price: Price
    query: Query | None = None
    """None: every count."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", names_of(self.clique))
        if not isinstance(self.price, Price):
            raise InvalidInput(
                f"`price` must be a price such as Pure(0.1) or ZCDP(0.01); got {self.price!r}."
            )


def table_domain(domain: Domain, clique: Clique) -> Domain:
    """The domain of a clique whose table can be made, or a clear error."""
    subdomain = domain.project(clique)
    if len(subdomain) > _MAX_ATTRIBUTES:
        raise InvalidInput(
            f"`clique` must have at most {_MAX_ATTRIBUTES} attributes; got {len(subdomain)}. "
            "Measure smaller cliques."
        )
    return subdomain


def describe_query(query: Query) -> str:
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
            return f"{query.weight:g} times {describe_query(query.query)}"
        case _:
            return type(query).__name__
