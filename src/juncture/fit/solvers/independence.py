"""Where a fit with records begins: every attribute as measured, independent of all others.

From there only what the measurements say about attributes together is left to fit, and a fit that
stops at the noise leaves a pair independent where nothing else is certain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gibbs import draw_uniform_codes
from juncture.engine.particles import RecordOracle
from juncture.engine.population import Population
from juncture.fit.loss import FitLoss, Term
from juncture.tables.layout import Layout, Vector

Matrix = NDArray[np.float64]

# A value's share is at least this many of its own standard deviations.
_FLOOR = 0.3
# Larger queries on an attribute are left out: they would take longer than what they save.
_MAX_ENTRIES = 1_000_000
# A value that nothing was asked of is known by this share of how precisely the others are.
_UNKNOWN = 1e-3


def begin_independent(
    oracle: RecordOracle, loss: FitLoss, excluded: NDArray[np.bool_], total: float, n: int
) -> Population:
    """Records with independent attributes, as all counts together say, at their own potentials."""
    layout, shape = oracle.layout, oracle.layout.domain.shape
    shares = _estimate_shares(loss, total)
    rng = np.random.default_rng([oracle.settings.seed, 1])
    codes = draw_uniform_codes(shape, n, rng)
    potentials = np.where(excluded, -np.inf, 0.0)
    for name, share in shares.items():
        ends = np.cumsum(share)
        axis = layout.domain.positions[name]
        codes[axis] = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1]), len(share) - 1)
        _spread(layout, potentials, name, np.log(share))
    population = Population(layout, codes, potentials, oracle.settings.seed)
    population.repair()
    oracle.adopt(population)
    return population


def _estimate_shares(loss: FitLoss, total: float) -> dict[str, Vector]:
    """Each attribute's distribution, where cells with it were counted, or it alone was asked of."""
    sums: dict[str, Vector] = {}
    weights: dict[str, Vector] = {}
    for term in (term for term in loss.terms if term.counts_cells):
        domain = loss.layout.domain.project(term.clique)
        values, variance = (v.reshape(domain.shape) for v in (term.values, term.stddev**2))
        for axis, name in enumerate(domain):
            others = tuple(other for other in range(len(domain)) if other != axis)
            precision = 1.0 / variance.sum(axis=others)
            sums[name] = sums.get(name, 0.0) + precision * values.sum(axis=others)
            weights[name] = weights.get(name, 0.0) + precision
    matrices: dict[str, Matrix] = {}
    for name, rows, term in _list_others(loss):
        n = loss.layout.domain[name]
        weighted = rows / term.stddev[:, None] ** 2
        matrices[name] = matrices.get(name, np.zeros((n, n))) + rows.T @ weighted
        sums[name] = sums.get(name, 0.0) + weighted.T @ term.values
    shares = {}
    for name, pull in sums.items():
        counts, precision = _solve(weights.get(name), matrices.get(name), pull, total)
        counts = np.maximum(counts, _FLOOR / np.sqrt(precision))
        counts = np.maximum(counts, 1e-9 * total)
        shares[name] = counts / counts.sum()
    return shares


def _list_others(loss: FitLoss) -> Iterator[tuple[str, Matrix, Term]]:
    """What else was asked of one attribute alone, as a matrix of its values."""
    for term in loss.terms:
        if not term.counts_cells and len(term.clique) == 1:
            (name,), n_rows = term.clique, len(term.values)
            if n_rows * loss.layout.domain[name] <= _MAX_ENTRIES:
                rows = [term.operator.adjoint(row) for row in np.eye(n_rows)]
                yield name, np.array(rows), term


def _solve(
    counted: Vector | None, others: Matrix | None, pull: Vector, total: float
) -> tuple[Vector, Vector]:
    """The counts that fit best, and about how precisely each is known.

    Contrasts do not tell the number of records: it is known, and stands for what is missing. What
    nothing was asked of is even.
    """
    if others is None:
        assert counted is not None
        return pull / counted, counted
    precision = others if counted is None else others + np.diag(counted)
    known, even = float(precision.diagonal().mean()), np.full(len(pull), total / len(pull))
    wanted = pull - precision @ even
    apart: Vector = np.linalg.lstsq(precision + known, wanted, rcond=None)[0]
    return even + apart, np.maximum(precision.diagonal(), _UNKNOWN * known)


def _spread(layout: Layout, potentials: Vector, name: str, logarithms: Vector) -> None:
    """Divide an attribute's potentials between all cliques that have it."""
    holders = [clique for clique in layout.cliques if name in clique]
    for clique in holders:
        shape = [-1 if other == name else 1 for other in clique]
        table = layout.view(potentials, clique)
        table += logarithms.reshape(shape) / len(holders)
