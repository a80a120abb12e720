"""Weighted records that stand for a distribution given by potentials, whatever its tree-width.

The records were drawn at some potentials; where these move, the weights follow: each record's
weight is multiplied by the exponential of the change at its cells. The marginals of all cliques are
weighted counts. Where too few records carry the weight, all are renewed: resampled by weight, then
moved by Gibbs sweeps at the present potentials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import SQUARE_UNIT, WEIGHT_UNIT
from juncture.engine.gibbs import EXCLUDED, Sweeper, mix_key
from juncture.engine.oracle import IMPOSSIBLE_MESSAGE
from juncture.errors import ImpossibleModel
from juncture.tables.layout import Layout, Vector
from juncture.tables.records import Codes

# Records are renewed where their effective number falls below this share.
MIN_EFFECTIVE = 0.5
# Sweeps that may be needed until no record has an excluded cell.
_MAX_REPAIRS = 50
_WORTH_THREADS = 40_000
_ONE = np.ones(1)
_NO_AXES = np.zeros(0, dtype=np.int64)


class _Scope(NamedTuple):
    """Where a clique's cells are: the rows of its attributes, and their strides."""

    axes: NDArray[np.int64]
    strides: NDArray[np.int64]
    n_cells: int


class Population:
    """Weighted records, and the potentials that they stand for.

    - `layout`: the cliques that have potentials.
    - `codes`: a row for each attribute, a column for each record.
    - `potentials`: those that the records were drawn at.
    - `key`: of all random numbers; the same key gives the same records with any number of threads.
    """

    def __init__(self, layout: Layout, codes: Codes, potentials: Vector, key: int) -> None:
        self.layout, self.potentials = layout, potentials.copy()
        self.codes, self.weights = codes, np.ones(codes.shape[1])
        self.drawn_at = self.potentials.copy()
        """The potentials at which the records were last drawn."""
        self.sweeper = Sweeper(layout)
        self.effective_share = 1.0
        self.n_renewals = 0
        self.log_mass = 0.0
        """The logarithm of the partition function, relative to that at the first potentials."""
        self._key, self._uses = key, 0
        self._scopes = [_make_scope(layout, index) for index in range(len(layout.cliques))]
        self._pending: tuple[_Scope, Vector] = (_Scope(_NO_AXES, _NO_AXES, 1), _ONE)

    @property
    def n_records(self) -> int:
        """The number of records."""
        return int(self.codes.shape[1])

    @property
    def effective_number(self) -> float:
        """How many records of equal weight would tell as much."""
        return self.effective_share * self.n_records

    def next_key(self) -> int:
        """A key for the next use of random numbers."""
        self._uses += 1
        return mix_key(self._key, self._uses)

    def table(self, clique: int) -> Vector:
        """The potentials of a clique by its index, flat and writable."""
        offsets = self.layout.offsets
        return self.potentials[offsets[clique] : offsets[clique + 1]]

    def count(self, clique: int) -> Vector:
        """The marginal of a clique by its index, flat; it adds up to one."""
        scope = self._scopes[clique]
        tables, squares = self._weigh(scope)
        counts = np.asarray(tables, dtype=np.float64)
        whole = counts.sum()
        self.effective_share = _effective_share(whole / WEIGHT_UNIT, squares, self.n_records)
        return np.asarray(counts / whole)

    def move(self, clique: int, change: Vector, shares: Vector) -> None:
        """Add a change to a clique's potentials; `shares` is its marginal as last counted.

        The weights follow when the next clique is counted. Their mean stays one.
        """
        factor = np.exp(change)
        mass = float(shares @ factor)
        self.table(clique)[:] += change
        self.log_mass += math.log(mass)
        self._flush()
        self._pending = (self._scopes[clique], np.ascontiguousarray(factor / mass))

    def marginals(self) -> Vector:
        """The marginals of all cliques as one vector; each adds up to one."""
        parts = [self.count(index) for index in range(len(self._scopes))]
        return np.concatenate(parts) if parts else np.zeros(0)

    def settle(self) -> None:
        """Bring the weights up to date with the potentials."""
        self._flush()

    def renew(self, n: int | None = None, n_sweeps: int = 1) -> None:
        """Resample the records by weight and move them by sweeps at the present potentials."""
        self._flush()
        self.codes = self.resample(self.n_records if n is None else n, self.next_key())
        self.weights = np.ones(self.n_records)
        self.sweeper.sweep(self.codes, self.potentials, self.next_key(), n_sweeps)
        self.drawn_at = self.potentials.copy()
        self.effective_share = 1.0
        self.n_renewals += 1
        self._drop_excluded()

    def resample(self, n: int, key: int) -> Codes:
        """So many of the records by weight: each as often as its share says, up to rounding."""
        ends = np.cumsum(self.weights)
        offset = np.random.default_rng(key).random()
        points = (np.arange(n) + offset) * (ends[-1] / n)
        chosen = np.minimum(np.searchsorted(ends, points, side="right"), len(ends) - 1)
        return np.asarray(np.take(self.codes, chosen, axis=1))

    def repair(self) -> None:
        """Sweep until no record has an excluded cell, where there are structural zeros."""
        if not np.isneginf(self.potentials).any():
            return
        for _ in range(_MAX_REPAIRS):
            self.sweeper.sweep(self.codes, self.potentials, self.next_key())
            if not (self.score(self.potentials) < 0.5 * EXCLUDED).any():
                break
        self._drop_excluded()

    def score(self, potentials: Vector) -> Vector:
        """The sum of potentials of each record; an excluded cell counts as a huge negative one."""
        scores = np.zeros(self.n_records)
        finite, offsets = np.maximum(potentials, EXCLUDED), self.layout.offsets
        compiled = routine("add_potentials")
        for index, scope in enumerate(self._scopes):
            table = finite[offsets[index] : offsets[index + 1]]
            if table.any():
                _run(self.codes, compiled, scores, scope, table)
        return scores

    def _drop_excluded(self) -> None:
        """Give no weight to records with an excluded cell; there is one only by a rare failure."""
        if not np.isneginf(self.potentials).any():
            return
        allowed = self.score(self.potentials) > 0.5 * EXCLUDED
        if not allowed.any():
            raise ImpossibleModel(IMPOSSIBLE_MESSAGE)
        if not allowed.all():
            self.weights *= allowed
            self.codes = self.resample(self.n_records, self.next_key())
            self.weights = np.ones(self.n_records)

    def _flush(self) -> None:
        if self._pending[1] is not _ONE:
            self._weigh(_Scope(_NO_AXES, _NO_AXES, 1))

    def _weigh(self, scope: _Scope) -> tuple[NDArray[np.int64], int]:
        """Apply what is pending, and count a clique in parts of `WEIGHT_UNIT`."""
        moved, factor = self._pending
        compiled, codes = routine("weigh_records"), self.codes

        def run(span: tuple[int, int]) -> tuple[NDArray[np.int64], int]:
            table, squares = np.zeros(scope.n_cells, dtype=np.int64), np.zeros(1, dtype=np.int64)
            compiled(
                pointer(codes), *codes.shape, pointer(self.weights), *span,
                pointer(moved.axes), pointer(moved.strides), len(moved.axes),
                pointer(factor), len(factor),
                pointer(scope.axes), pointer(scope.strides), len(scope.axes),
                pointer(table), scope.n_cells, pointer(squares),
            )  # fmt: skip
            return table, int(squares[0])

        parts = run_parallel(run, split_range(codes.shape[1], _WORTH_THREADS))
        self._pending = (_Scope(_NO_AXES, _NO_AXES, 1), _ONE)
        tables, squares = zip(*parts, strict=True)
        return sum(tables[1:], tables[0]), sum(squares)


def _run(codes: Codes, compiled: object, scores: Vector, scope: _Scope, table: Vector) -> None:
    def run(span: tuple[int, int]) -> None:
        compiled(  # type: ignore[operator]
            pointer(codes), *codes.shape, pointer(scores), *span, pointer(scope.axes),
            pointer(scope.strides), len(scope.axes), pointer(table), len(table),
        )  # fmt: skip

    run_parallel(run, split_range(codes.shape[1], _WORTH_THREADS))


def _make_scope(layout: Layout, index: int) -> _Scope:
    clique = layout.cliques[index]
    sizes = [layout.domain[name] for name in clique]
    strides = np.cumprod([1, *sizes[:0:-1]])[::-1] if sizes else _NO_AXES
    axes = [layout.domain.positions[name] for name in clique]
    return _Scope(
        np.array(axes, dtype=np.int64),
        np.array(strides, dtype=np.int64),
        layout.domain.size_of(clique),
    )


def _effective_share(whole: float, squares: int, n: int) -> float:
    """The effective number of records as a share of all."""
    return min(1.0, whole * whole / (n * squares / SQUARE_UNIT)) if squares > 0 else 0.0
