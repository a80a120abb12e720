"""A query as the factored ones that it is made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.layout import Vector
from juncture.tables.queries.products import Kron, Query, Scaled, Stack


def answer_parts(query: Query, ask: Callable[[Kron], Vector]) -> Vector:
    """The answers to a query, from those to its factored parts."""
    match query:
        case Kron():
            return ask(query)
        case Scaled():
            return query.weight * answer_parts(query.query, ask)
        case Stack():
            return np.concatenate([answer_parts(e, ask).reshape(-1) for e in query.queries])
        case _:
            raise InvalidInput(
                f"`query` must say which attributes it is about; got {query!r} alone. "
                "Wrap it as Kron({'attribute': block})."
            )
