"""Problems that no junction tree fits: all pairs of a table measured, and errors on its triples."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper_data import DataSet

from juncture.engine.particles import Particles
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.problem import Solver
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement

Table = NDArray[np.float64]

# Epsilon 1 at delta 1e-6; neighbours differ by a record.
RHO = 0.0244
MAX_CELLS, MAX_TRIPLE, MAX_TRIPLES = 10_000, 2_000_000, 500
_IPF_SWEEPS, _IPF_TOLERANCE, _IPF_LEAST = 50, 1e-4, 1e-200


def list_pairs(domain: Domain) -> list[Clique]:
    """All pairs of at most 10,000 cells."""
    return [pair for pair in combinations(domain, 2) if domain.size_of(pair) <= MAX_CELLS]


def list_triples(domain: Domain) -> list[Clique]:
    """All triples of at most two million cells, or 500 of them, drawn with a fixed seed."""
    small = [each for each in combinations(domain, 3) if domain.size_of(each) <= MAX_TRIPLE]
    chosen = np.random.default_rng(0).permutation(len(small))[:MAX_TRIPLES]
    return [small[index] for index in sorted(chosen)]


def measure(data: DataSet, cliques: Sequence[Clique], seed: int) -> list[Measurement]:
    """The tables of cliques with Gaussian noise and equal shares of the budget."""
    rng = np.random.default_rng(100 + seed)
    stddev = float(np.sqrt(len(cliques) / (2.0 * RHO)))
    return [
        Measurement(c, exact + rng.normal(0.0, stddev, exact.size), stddev=stddev)
        for c, exact in ((c, count(data, c).reshape(-1)) for c in cliques)
    ]


def count(data: DataSet, clique: Clique) -> Table:
    """The exact counts of a clique's cells."""
    (factor,) = data.source.exact_counts([clique])
    return np.asarray(factor.values, dtype=np.float64)


def find_error(
    data: DataSet, cliques: Iterable[Clique], answer: Callable[[Clique], Table]
) -> float:
    """The mean total variation distance over cliques; an answer is scaled to sum to one."""
    distances = []
    for clique in cliques:
        shares = np.maximum(answer(clique), 0.0)
        exact = count(data, clique) / data.n_records
        distances.append(0.5 * float(np.abs(exact - shares / shares.sum()).sum()))
    return float(np.mean(distances))


def find_loss(measured: Sequence[Measurement], shares: Sequence[Table], total: float) -> float:
    """The squared residuals beside the noise, over their number: noise alone makes one."""
    squares = [
        ((total * table.reshape(-1) - m.values) / m.stddev) ** 2
        for m, table in zip(measured, shares, strict=True)
    ]
    return float(np.mean(np.concatenate(squares)))


def join_tables(domain: Domain, clique: Clique, tables: Mapping[Clique, Table]) -> Table:
    """The table of maximum entropy with the given tables of pairs, by iterative fitting.

    Pseudo-marginals may belong to no joint table; then this ends near all of them. A pair that was
    not measured is left free.
    """
    shares = np.full([domain[name] for name in clique], 1.0 / domain.size_of(clique))
    pairs = [pair for pair in combinations(clique, 2) if pair in tables]
    for _ in range(_IPF_SWEEPS):
        worst = 0.0
        for pair in pairs:
            axis = next(axis for axis, name in enumerate(clique) if name not in pair)
            goal, present = tables[pair], shares.sum(axis=axis)
            worst = max(worst, 0.5 * float(np.abs(goal - present).sum()))
            ratio = np.divide(goal, present, out=np.zeros_like(goal), where=present > _IPF_LEAST)
            shares *= np.expand_dims(ratio, axis)
        if worst <= _IPF_TOLERANCE:
            break
    return shares


def answer_from(domain: Domain, tables: Mapping[Clique, Table]) -> Callable[[Clique], Table]:
    """Answers by pseudo-marginals: those of measured pairs, and triples joined from them."""

    def answer(clique: Clique) -> Table:
        return tables[clique] if clique in tables else join_tables(domain, clique, tables)

    return answer


class Timed(NamedTuple):
    """A fit, and the seconds that it took: by the clock, and of processors."""

    fit: Estimate
    wall: float
    busy: float


def time_fit(
    domain: Domain,
    measurements: list[Measurement],
    oracle: Particles | str,
    solver: Solver | None,
) -> Timed:
    """Fit, and take the time."""
    watch = Stopwatch()
    fit = estimate(domain, measurements, oracle=oracle, solver=solver)
    return Timed(fit, watch.wall, watch.busy)


@dataclass
class Stopwatch:
    """Seconds since it was made: by the clock, and of all processors."""

    _began: tuple[float, float] = field(
        default_factory=lambda: (time.perf_counter(), time.process_time())
    )

    @property
    def wall(self) -> float:
        """By the clock."""
        return time.perf_counter() - self._began[0]

    @property
    def busy(self) -> float:
        """Of all processors together: on a busy machine, what to compare."""
        return time.process_time() - self._began[1]


def find_peak_mb() -> int:
    """The largest resident memory of this process until now."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` tells on Linux may be the parent's, before this began
        lines = status.read_text().splitlines()
        peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        if peaks:
            return round(peaks[0] / 1024)
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
