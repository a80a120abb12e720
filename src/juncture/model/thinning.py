"""Few records of a larger pool, so that their tables are the pool's: see `halving`."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from juncture.model.halving import Halver, WeightedRecords, choose_tables
from juncture.tables.domain import Clique, Domain
from juncture.tables.records import Codes

# Passes over the records in the last halving and in the one before; a first pass is in all.
_PASSES = (6, 1)
_MAX_HALVINGS = 6
# Cells that are looked up: for each pass over the first pool, and for each over the records.
_MAX_POOL_CELLS, _MAX_CELLS = 3e8, 1e8
_MAX_TABLES = 5_000
# Keys of a sort are whole numbers below this.
_MAX_KEY = 1 << 62


class Thinner:
    """What makes few records of many, for one model.

    - `measured`: the cliques that were measured.
    - `expected`: see `Halver`; without them, measured tables count more.
    """

    def __init__(
        self, domain: Domain, measured: tuple[Clique, ...], expected: WeightedRecords | None = None
    ) -> None:
        self._domain, self._measured, self._expected = domain, measured, expected
        self._tables: dict[int, tuple[Clique, ...]] = {}
        self._halvers: dict[tuple[Clique, ...], Halver] = {}

    def choose_halvings(self, n: int, max_pool: float) -> int:
        """How often a pool can be halved to `n` records: it is as large as there is time."""
        n_tables = len(self._choose_tables(n))
        if not n_tables:
            return 0
        enough = min(max_pool, _MAX_POOL_CELLS / n_tables)
        return int(np.clip(np.log2(max(enough / max(n, 1), 1.0)), 0, _MAX_HALVINGS))

    def thin(self, pool: Codes, n_halvings: int, rng: np.random.Generator) -> Codes:
        """What is left of the records after so many halvings, in random order.

        Similar records should be neighbours: see `sort_similar`.
        """
        n, codes = pool.shape[1] >> n_halvings, pool
        for left in reversed(range(n_halvings)):
            n_passes = _PASSES[left] if left < len(_PASSES) else 0
            codes = self._make_halver(n).halve(codes, rng, n_passes)
        return np.take(codes, rng.permutation(n), axis=1)

    def _choose_tables(self, n: int) -> tuple[Clique, ...]:
        """The tables to watch while so many records are made."""
        max_tables = int(min(_MAX_TABLES, _MAX_CELLS / max(n, 1)))
        if max_tables not in self._tables:
            chosen = choose_tables(self._domain, self._measured, max_tables)
            self._tables = {max_tables: tuple(chosen)}
        return self._tables[max_tables]

    def _make_halver(self, n: int) -> Halver:
        """What halves pools; it is kept, since to count its tables takes long."""
        tables = self._choose_tables(n)
        if tables not in self._halvers:
            stressed = self._canonical if self._expected is None else frozenset()
            halver = Halver(self._domain, tables, measured=stressed, expected=self._expected)
            self._halvers = {tables: halver}
        return self._halvers[tables]

    @cached_property
    def _canonical(self) -> frozenset[Clique]:
        return frozenset(self._domain.canonical(clique) for clique in self._measured)


def sort_similar(codes: Codes) -> NDArray[np.intp]:
    """An order in which similar records are neighbours: the attribute with most values decides.

    Attributes are put together into keys of whole numbers, which are sorted faster.
    """
    spread = [np.count_nonzero(np.bincount(column)) for column in codes]
    keys, room = [np.zeros(codes.shape[1], dtype=np.int64)], 1
    for axis in np.argsort(spread):
        size = int(codes[axis].max(initial=0)) + 1
        if room * size > _MAX_KEY:
            keys.append(np.zeros(codes.shape[1], dtype=np.int64))
            room = 1
        keys[-1] += room * codes[axis].astype(np.int64)
        room *= size
    return np.lexsort(keys)
