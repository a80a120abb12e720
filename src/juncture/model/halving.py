"""Halves of a set of records whose tables are close to what is expected of them.

Of a pool of twice as many records, similar ones next to each other, one of each two neighbours is
kept: the one that brings the watched tables nearer to half of the pool's. Then records are kept or
dropped one by one, as long as that brings the tables nearer still.

Nothing favours a record. What is kept and what is dropped are off by the same, with opposite signs,
so turning every choice around is as good; coins begin it, and either way has the same chance.
Averaged over the coins, half of every cell's records is kept, exactly.

The pool itself is off, by chance. Where it is known what the model expects of a cell, and that is
many records, this is made good too: the model's is the goal, not half of the pool's. There the pool
is off in either direction nearly alike, so averages are nearly kept: cells that expect few records
lose a percent or so. In a cell that expects one record, a pool with none could not make good what
one with two does: such cells keep half of the pool's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import WEIGHT_UNIT
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.records import Codes

# A cell's weight is this, divided by the records that it expects: gaps fit into 32 bits, since a
# gap is at most four times what the weight is divided by.
_WEIGHT = 1 << 16
# How many times more a measured table counts.
_EMPHASIS = 4.0
# Cells that expect fewer have half of the pool's records as their goal.
_MANY = 8.0
# Cells in all tables that are watched, which take some 30 bytes each.
_MAX_CELLS = 1 << 23
# Tables over more attributes are not watched themselves; the triples in them are.
_MAX_ATTRIBUTES = 4
# Sets of attributes are listed up to this number, and drawn where there are more.
_MAX_LISTED = 50_000
_WORTH_THREADS = 500_000


class WeightedRecords(NamedTuple):
    """Records that a model stands for: a row of codes for each attribute, and their weights."""

    codes: Codes
    weights: Vector


class Halver:
    """What halves sets of records of one model.

    - `cliques`: the sets of attributes whose tables are watched.
    - `measured`: those of them that count more than others.
    - `expected`: the records that the model stands for; without them, half of the pool's tables is
      the goal in every cell, and averages are kept exactly.
    """

    def __init__(
        self,
        domain: Domain,
        cliques: Sequence[Clique],
        *,
        measured: Collection[Clique] = (),
        expected: WeightedRecords | None = None,
    ) -> None:
        self._shape, n_axes = domain.shape, max(3, *map(len, cliques))
        self._axes, self._strides = np.zeros((2, n_axes, len(cliques)), dtype=np.int32)
        self._starts, self._n_cells = np.zeros(len(cliques), dtype=np.int32), 0
        emphases = list[Vector]()
        for t, clique in enumerate(cliques):
            self._starts[t], stride = self._n_cells, 1
            for j, name in enumerate(reversed(clique)):
                self._axes[j, t], self._strides[j, t] = domain.positions[name], stride
                stride *= domain[name]
            self._n_cells += stride
            emphases.append(np.full(stride, _EMPHASIS if clique in measured else 1.0))
        self._weights = _WEIGHT * np.concatenate(emphases or [np.zeros(0)])
        self._shares: Vector | None = None
        if expected is not None:
            units = expected.weights * (WEIGHT_UNIT / expected.weights.mean())
            whole = np.asarray(units, dtype=np.int64)
            self._shares = self._tally(expected.codes, whole) / int(whole.sum())

    def halve(self, codes: Codes, rng: np.random.Generator, n_passes: int) -> Codes:
        """Half of the records, in their order; their number must be even.

        Similar records should be neighbours. There are `n_passes` over all of them after the first.
        """
        n = codes.shape[1]
        pool = self._tally(codes, np.ones(n, dtype=np.int64))
        goal = 0.5 * pool if self._shares is None else self._shares * (n / 2)
        expected = np.maximum(np.maximum(goal, 0.5 * pool), 1.0)
        weights = np.maximum(np.rint(self._weights / expected), 1.0).astype(np.int32)
        off = np.where(goal >= _MANY, pool - 2.0 * goal, 0.0)
        gaps = np.rint(weights * off).astype(np.int32)
        rows, signs = np.ascontiguousarray(codes.T), np.zeros(n, dtype=np.int32)
        cells = np.zeros((2, len(self._starts)), dtype=np.int32)
        tables = (
            pointer(self._axes), pointer(self._strides), pointer(self._starts), *self._axes.shape,
            pointer(cells),
        )  # fmt: skip
        routine("deal_pairs")(
            pointer(rows), *rows.shape, pointer(signs), pointer(gaps), pointer(weights),
            self._n_cells, *tables, int(rng.integers(2**63)),
        )  # fmt: skip
        whole = np.zeros(1, dtype=np.int64)
        for _ in range(n_passes):
            routine("flip_signs")(
                pointer(rows), *rows.shape, pointer(signs), pointer(gaps), pointer(weights),
                self._n_cells, *tables, _WEIGHT, pointer(whole),
            )  # fmt: skip
        over = int(whole[0]) // 2
        signs[rng.choice(np.flatnonzero(signs == np.sign(over)), abs(over), replace=False)] *= -1
        return np.ascontiguousarray(codes[:, signs > 0])

    def _tally(self, codes: Codes, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums of the records' units in all cells; it is checked that each has a cell."""
        for column, size in zip(codes, self._shape, strict=True):
            if column.size and not 0 <= column.min() <= column.max() < size:
                raise ValueError(f"codes must be from 0 to {size - 1}")
        counts, n_tables = np.zeros(self._n_cells, dtype=np.int64), len(self._starts)
        compiled, tables = routine("tally_cells"), (self._axes, self._strides, self._starts)

        def run(span: tuple[int, int]) -> None:
            compiled(
                pointer(codes), *codes.shape, pointer(units), *map(pointer, tables),
                *self._axes.shape, *span, pointer(counts), self._n_cells,
            )  # fmt: skip

        min_tables = -(-_WORTH_THREADS // max(1, codes.shape[1]))
        run_parallel(run, split_range(n_tables, min_tables) if codes.size and n_tables else [])
        return counts


def choose_tables(domain: Domain, measured: Sequence[Clique], max_tables: int) -> list[Clique]:
    """The tables to watch: those of measured cliques, then of other pairs, then of triples.

    Where they are too many, those of a kind are chosen at random, always the same.
    """
    rng = np.random.default_rng(0)
    small = [clique for clique in measured if 0 < len(clique) <= _MAX_ATTRIBUTES]
    mixed = [small[index] for index in rng.permutation(len(small))]
    kinds = [iter(mixed), *(_mix_subsets(tuple(domain), size, rng) for size in (2, 3))]
    chosen, room = dict[Clique, None](), _MAX_CELLS
    for clique in (domain.canonical(clique) for kind in kinds for clique in kind):
        if len(chosen) == max_tables:
            break
        size = domain.size_of(clique)
        if clique not in chosen and size <= room:
            chosen[clique] = None
            room -= size
    return list(chosen)


def _mix_subsets(names: Clique, size: int, rng: np.random.Generator) -> Iterator[Clique]:
    """All sets of so many names in random order, or many of them where there are very many."""
    if math.comb(len(names), size) <= _MAX_LISTED:
        listed = list(combinations(names, size))
        yield from (listed[index] for index in rng.permutation(len(listed)))
        return
    for _ in range(_MAX_LISTED):
        drawn = rng.choice(len(names), size, replace=False)
        yield tuple(names[index] for index in drawn)
