"""Made-up tables: what a mechanism would do, tried on records that nobody has.

They are drawn from public knowledge alone, the columns' sizes and a number of records, with a fixed
seed: the same on every machine, whatever the private table holds.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain

_SEED = 20_190_101
# Groups of records that are alike, and how unlike each other they are: the smaller, the more.
_GROUPS, _SPREAD = 12, 0.6


class Dependence(StrEnum):
    """How the columns of a made-up table hang together."""

    NONE = "independent"
    """Each column is drawn by itself, all values of it as likely."""
    GROUPS = "dependent"
    """Records come in a dozen groups, and each column has other likely values in each group."""


@lru_cache(maxsize=4)
def imagine(domain: Domain, n_records: int, dependence: Dependence) -> CodedTable:
    """A made-up table with these columns.

    >>> table = imagine(Domain({"age": 5, "sex": 2}), 1000, Dependence.NONE)
    >>> table.exact_n_records
    1000
    """
    rng = np.random.default_rng(_SEED)
    group = rng.integers(0, _GROUPS, n_records)
    columns = {}
    for name, size in domain.items():
        if dependence is Dependence.NONE:
            columns[name] = rng.integers(0, size, n_records)
        else:
            shares = rng.dirichlet(np.full(size, _SPREAD), _GROUPS)
            columns[name] = _draw(shares, group, rng)
    return CodedTable(domain, columns)


def _draw(
    shares: NDArray[np.float64], group: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A value for each record by the shares of its group."""
    ends = np.cumsum(shares, axis=1)
    drawn = np.empty(len(group), dtype=np.int64)
    for each in range(len(shares)):
        inside = np.flatnonzero(group == each)
        found = np.searchsorted(ends[each], rng.random(len(inside)), side="right")
        drawn[inside] = np.minimum(found, shares.shape[1] - 1)
    return drawn
