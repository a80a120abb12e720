"""The levels of a program run by NumPy: what `kernels.cu` does, tile by tile, without a card.

Every index is computed as on a card: from the number of the tile, the lanes of its threads and the
loops of its operation. So tests without a card check all but the kernels' own lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from juncture._util.memory import free_memory_bytes
from juncture.engine.gpu.levels import LevelProgram
from juncture.engine.gpu.opcodes import (
    FIRST_LOOP,
    KEPT_CELLS,
    KEPT_LANES,
    KIND,
    LEFT_AT,
    N_KEPT,
    N_SUMMED,
    REPEATS,
    RESULT_AT,
    RESULT_SLOT,
    RIGHT_AT,
    SPLITS,
    SUM_LANES,
    SUMMED_CELLS,
    TOP_AT,
    Kind,
    Outcome,
    Read,
    Semiring,
)  # fmt: skip
from juncture.engine.gpu.runner import TINY, Array, Modules, Runner, Verdict

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class NumpyDevice:
    """A stand-in for a card, for tests and for looking at what a card would do."""

    name: str = "numpy"
    busy_blocks: int = 264

    @property
    def free_bytes(self) -> int:
        """See `Device.free_bytes`."""
        return free_memory_bytes()

    @property
    def modules(self) -> Modules:
        """See `Device.modules`."""
        return Modules(np, "scipy.sparse")

    def load(self, program: LevelProgram, *, single: bool = False) -> Runner:
        """See `Device.load`."""
        return NumpyRunner(program, np.float32 if single else np.float64)


@dataclass
class _Tables:
    """The arrays of one run."""

    semiring: Semiring
    potentials: NDArray[np.floating]
    out: NDArray[np.floating]
    work: NDArray[np.floating]
    total: float
    shifts: Numbers
    """The largest potential of each given table."""
    high: Numbers
    low: Numbers
    floor: Numbers


class NumpyRunner:
    """See `Runner`."""

    def __init__(self, program: LevelProgram, dtype: type[np.floating] = np.float64) -> None:
        self.program, self.dtype = program, np.dtype(dtype)

    def put(self, vector: Numbers) -> Array:
        """See `Runner.put`."""
        return vector.astype(self.dtype)

    def fetch(self, array: Array) -> Numbers:
        """See `Runner.fetch`."""
        return np.asarray(array, dtype=np.float64)

    def make(self, cells: int) -> Array:
        """See `Runner.make`."""
        return np.full(cells, np.nan, dtype=self.dtype)

    def run(
        self, semiring: Semiring, potentials: Array, out: Array | None, total: float
    ) -> Verdict:
        """See `Runner.run`."""
        program, n_slots = self.program, self.program.n_slots
        ordinary = semiring is Semiring.ORDINARY
        work = np.full(program.workspace_cells, np.nan, self.dtype if ordinary else np.float64)
        if np.isnan(potentials).any() or np.isposinf(potentials).any():
            return Verdict(math.nan, Outcome.INVALID)
        shifts, floors = self._survey(potentials)
        marginals = np.empty(0) if out is None else out
        tables = _Tables(
            semiring, potentials, marginals, work, total, shifts,
            np.zeros(n_slots), np.full(n_slots, np.inf), np.full(n_slots, np.inf),
        )  # fmt: skip
        levels = program.levels[: program.n_forward if out is None else None]
        with np.errstate(all="ignore"):
            for tiles in levels:
                for operation, tile in tiles:
                    self._run_tile(tables, program.operations[operation], int(tile))
            return self._summarise(tables, floors)

    def _survey(self, potentials: Array) -> tuple[Numbers, Numbers]:
        """The largest and the smallest finite potential of every given table."""
        parts = [potentials[at : at + cells] for at, cells in self.program.given]
        highest = [float(part.max()) for part in parts]
        lowest = [float(np.min(part, where=part > -np.inf, initial=np.inf)) for part in parts]
        return np.array(highest), np.array(lowest)

    def _run_tile(self, tables: _Tables, row: Integers, tile: int) -> None:
        # Logarithms are read from the potentials themselves, and peaks have no marginals.
        if tables.semiring is not Semiring.ORDINARY and row[KIND] == Kind.STORE:
            return
        if tables.semiring is Semiring.PEAKS and row[KIND] == Kind.ABSORB:
            return
        kept_lanes, sum_lanes, splits = row[KEPT_LANES], row[SUM_LANES], row[SPLITS]
        split = tile % splits
        kept = np.arange(kept_lanes * row[REPEATS]) + (tile // splits) * kept_lanes * row[REPEATS]
        kept = kept[kept < row[KEPT_CELLS]]
        part = -(-row[SUMMED_CELLS] // splits)
        end = min((split + 1) * part, row[SUMMED_CELLS])
        begin = min(split * part, end)
        # Each lane takes every so manieth term; in which order they are added is not checked here.
        terms = np.concatenate(
            [np.arange(begin + lane, end, sum_lanes) for lane in range(sum_lanes)]
        )
        first, n_kept, n_summed = row[FIRST_LOOP], row[N_KEPT], row[N_SUMMED]
        at = _locate(kept, self.program.loops[first : first + n_kept])
        more = _locate(terms, self.program.loops[first + n_kept : first + n_kept + n_summed])
        a, b, c = (x[:, None] + y[None, :] for x, y in zip(at, more, strict=True))
        ordinary = tables.semiring is Semiring.ORDINARY
        left = self._read(tables, row[LEFT_AT:], a)
        if row[KIND] == Kind.STORE:
            tables.out[row[LEFT_AT] + a] = left
            return
        right = self._read(tables, row[RIGHT_AT:], b)
        if row[KIND] == Kind.CONTRACT:
            product, written = left * right if ordinary else left + right, at[2]
        else:
            top = self._read(tables, row[TOP_AT:], c)
            product, written = left * top if ordinary else left + top, at[1]
            marginal = product * right if ordinary else np.exp(product + right)
            tables.out[row[LEFT_AT] + a] = marginal * tables.total
        if row[RESULT_AT] < 0:
            return
        sums = _add_up(tables.semiring, product).astype(tables.work.dtype)
        if splits > 1:
            written = split * row[KEPT_CELLS] + kept
        tables.work[row[RESULT_AT] + written] = sums
        slot = row[RESULT_SLOT]
        if ordinary and slot >= 0:
            tables.high[slot] = max(tables.high[slot], sums.max())
            tables.low[slot] = min(tables.low[slot], sums.min())
            least = np.min(sums, where=sums > 0, initial=np.inf)
            tables.floor[slot] = min(tables.floor[slot], least)

    def _read(self, tables: _Tables, operand: Integers, offsets: Integers) -> Numbers:
        """The numbers of an operand, an array of the shape of the offsets."""
        start, read, scale = operand[:3]
        at = start + offsets
        ordinary = tables.semiring is Semiring.ORDINARY
        if read == Read.ONE:
            return np.full(at.shape, 1.0 if ordinary else 0.0)
        if read == Read.ROOT:
            root = 1.0 / tables.high[scale] if ordinary else -tables.work[start]
            return np.full(at.shape, root)
        if not ordinary:
            return np.asarray((tables.work if read == Read.WORK else tables.potentials)[at], float)
        if read == Read.WORK:
            high = tables.high[scale] if scale >= 0 else 1.0
            return np.asarray(tables.work[at] / high, dtype=np.float64)
        if read == Read.STORED:
            return np.asarray(tables.out[at], dtype=np.float64)
        given = np.asarray(tables.potentials[at], np.float64)
        return np.asarray(np.exp(given - tables.shifts[scale]))

    def _summarise(self, tables: _Tables, floors: Numbers) -> Verdict:
        if tables.semiring is not Semiring.ORDINARY:
            total = float(tables.work[self.program.roots].sum())
            impossible = not total > -np.inf
            return Verdict(total, Outcome.IMPOSSIBLE if impossible else Outcome.DONE)
        tiny = TINY[self.dtype.itemsize]
        # One more entry, for the number one.
        floor = np.append(np.repeat(tables.floor / tables.high, [1] * len(tables.floor)), 1.0)
        floor[: len(floors)] = np.exp(floors - tables.shifts)
        results, left, right = self.program.forward.T
        last = len(floor) - 1
        smallest = floor[np.minimum(left, last)] * floor[np.minimum(right, last)]
        high = tables.high[results]
        lost = (tables.low[results] < tiny) & (smallest < tiny)
        fine = (high > 0) & (high < np.inf)
        marginals = tables.out if len(tables.out) else np.zeros(1)
        whole = fine.all() and not lost.any() and np.isfinite(tables.shifts).all()
        outcome = (
            Outcome.DONE if whole and np.isfinite(marginals).all() else Outcome.NEEDS_LOGARITHMS
        )
        return Verdict(float(np.log(high).sum() + tables.shifts.sum()), outcome)


def _locate(cells: Integers, loops: Integers) -> tuple[Integers, Integers, Integers]:
    """The offsets of cells of nested loops in three tables; the last loop is the fastest."""
    offsets = [np.zeros(len(cells), dtype=np.int64) for _ in range(3)]
    rest = np.asarray(cells, dtype=np.int64)
    for index in range(len(loops) - 1, -1, -1):
        extent, *strides = loops[index]
        following = rest // extent if index else np.zeros_like(rest)
        ticks = rest - following * extent
        offsets = [at + ticks * stride for at, stride in zip(offsets, strides, strict=True)]
        rest = following
    return offsets[0], offsets[1], offsets[2]


def _add_up(semiring: Semiring, terms: Numbers) -> Numbers:
    """The sum of every row, or what stands for it."""
    if semiring is Semiring.ORDINARY:
        return np.asarray(terms.sum(axis=1))
    peaks = terms.max(axis=1, initial=-np.inf)
    if semiring is Semiring.PEAKS:
        return np.asarray(peaks)
    safe = np.where(peaks > -np.inf, peaks, 0.0)
    return np.asarray(safe + np.log(np.exp(terms - safe[:, None]).sum(axis=1)))
