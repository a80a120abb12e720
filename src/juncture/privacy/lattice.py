"""Queries whose answers on whole counts are exact in floating point.

A query with whole entries answers whole counts with whole numbers, and doubles hold those exactly
up to 2^53. Other entries are first rounded to multiples of a power of two, with few enough bits
that products over several attributes stay within `BITS`. The rounded query is what is measured, and
the measurement states it. So a computed answer is the true answer of the query as stated: no
rounding error depends on the private table.
"""

from __future__ import annotations

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.queries.blocks import (
    AllRanges,
    Block,
    Buckets,
    Identity,
    Matrix,
    Moments,
    OneRow,
    Prefix,
    Subset,
    Total,
    WeightedSum,
)
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

BITS = 24
"""The largest number of binary places after the point of an answer."""
MAX_UNITS = 2.0**52
"""Larger answers, in units of the lattice, count as this; up to here they are exact."""
_MIN_BITS = 3

COUNTING = (Identity, Total, Prefix, AllRanges, Subset, Buckets)
"""Blocks of zeros and ones."""


def round_to_lattice(query: Query, domain: Domain) -> tuple[Query, int]:
    """The query with its entries rounded where needed, and the binary places of its answers."""
    match query:
        case Block():
            return _round_block(query, domain.size, BITS)
        case Kron():
            rough = [n for n, b in query.blocks.items() if _needed_places(b, domain[n], BITS) > 0]
            each = BITS // max(1, len(rough))
            if each < _MIN_BITS:
                raise InvalidInput(
                    f"`query` must have fractions on at most {BITS // _MIN_BITS} attributes; got "
                    f"them on {len(rough)}. Use whole entries on the others."
                )
            pairs = {n: _round_block(b, domain[n], each) for n, b in query.blocks.items()}
            return Kron({n: b for n, (b, _) in pairs.items()}), sum(p for _, p in pairs.values())
        case Stack():
            rounded = [round_to_lattice(each, domain) for each in query.queries]
            return Stack([each for each, _ in rounded]), max(places for _, places in rounded)
        case Scaled():
            if query.weight != round(query.weight):
                raise InvalidInput(
                    f"`weight` must be a whole number for a query that is measured; got "
                    f"{query.weight}. Scale the answers afterwards, or write a Matrix."
                )
            inner, places = round_to_lattice(query.query, domain)
            return Scaled(query.weight, inner), places


def _round_block(block: Block, size: int, bits: int) -> tuple[Block, int]:
    places = _needed_places(block, size, bits)
    if places == 0:
        return block, 0
    unit = 2.0**-bits
    matrix = np.round(block.matrix(size) / unit) * unit
    if not matrix.any(axis=1).all():
        raise InvalidInput(
            f"`query` must have entries of at least {unit:g}; got a row that vanishes when "
            "rounded to that. Scale the row up."
        )
    return Matrix(matrix), _count_places(matrix, bits)


def _needed_places(block: Block, size: int, bits: int) -> int:
    """The binary places that a block's entries need, at most `bits`."""
    if isinstance(block, COUNTING):
        return 0
    if not isinstance(block, OneRow | WeightedSum | Moments | Matrix):
        return bits
    return _count_places(block.matrix(size), bits)


def _count_places(matrix: np.ndarray, bits: int) -> int:
    for places in range(bits):
        scaled = matrix * 2.0**places
        if (scaled == np.round(scaled)).all():
            return places
    return bits
