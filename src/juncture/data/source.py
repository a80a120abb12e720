"""Where exact counts come from. Everything here is private: it has seen rows, and adds no noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.domain import Clique, Domain
from juncture.errors import InvalidInput
from juncture.factor import Factor

Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


class Source(Protocol):
    """A private table, seen through counts."""

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes: public."""

    @property
    def is_public(self) -> bool:
        """Whether the domain is public knowledge, so that something may be released under it."""

    @property
    def exact_n_records(self) -> int:
        """The number of records: private unless neighbours replace a record."""

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """How many records each cell of each clique holds, axes in the order asked."""


class Memory:
    """Codes in memory, a column for each attribute, over a domain that is public knowledge."""

    is_public = True

    def __init__(self, domain: Domain, columns: Mapping[str, ArrayLike]) -> None:
        self.domain = domain
        self._columns = {name: _checked(name, columns, size) for name, size in domain.items()}
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise InvalidInput(
                f"`columns` must have one length; got {sorted(lengths)}. Give every record a code."
            )
        self.exact_n_records = lengths.pop() if lengths else 0

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`."""
        return [self._exact_table(self.domain.project(clique)) for clique in cliques]

    def _exact_table(self, part: Domain) -> Factor:
        cells = np.zeros(self.exact_n_records, dtype=np.int64)
        for name, size in part.items():
            cells *= size
            cells += self._columns[name]
        counts = np.bincount(cells, minlength=math.prod(part.shape))
        return Factor(part, counts.reshape(part.shape))


def _checked(name: str, columns: Mapping[str, ArrayLike], size: int) -> Codes:
    """A column of codes in the smallest type that holds them, or a clear error."""
    if name not in columns:
        raise InvalidInput(
            f"`columns` must have one for every attribute; got none for {name!r}. Add it, or take "
            "the attribute out of the domain."
        )
    column = np.asarray(columns[name])
    if column.ndim != 1 or not np.issubdtype(column.dtype, np.integer):
        raise InvalidInput(
            f"`columns` must be flat arrays of integer codes; got {column.dtype} of shape "
            f"{column.shape} for {name!r}. Encode the values with a schema first."
        )
    wrong = int(((column < 0) | (column >= size)).sum())
    if wrong:
        raise InvalidInput(
            f"`columns` must have codes from 0 to {size - 1} for {name!r}; got {wrong} others. "
            "Check how the column was encoded."
        )
    smallest: Codes = column.astype(np.min_scalar_type(max(0, size - 1)))
    return smallest
