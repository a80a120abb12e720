"""The relaxed oracle of "Relaxed Marginal Consistency" (McKenna et al., 2021), as a baseline.

It asks of the tables of cliques only that they agree where they overlap, not that they belong to a
distribution. Regions are the cliques and their intersections; the entropy of a distribution is
replaced by the sum of the regions' entropies times their counting numbers, which is concave where
these are positive. At potentials theta, the pseudo-marginals maximise

    sum over C of <theta_C, mu_C> + H(mu_C), plus sum over s of k_s H(mu_s)

over cliques C and intersections s, where each mu_C sums to the mu_s of the intersections that it
holds. In the dual, each clique sends each of its intersections a message. All messages to one
intersection have a closed form together, so a sweep over the intersections is block coordinate
ascent: nothing is damped. With the counting numbers of Bethe, 1 less the number of cliques, the
same sweep is belief propagation.

A fit is mirror descent: potentials go down the gradient of the squared residuals over variances,
by steps that grow while the loss falls. Plain NumPy: a reference, not a contender for speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement

Table = NDArray[np.float64]
_TINY = 1e-300
_GROWTH, _RETREAT = 1.5, 0.4
_MIN_SWEEPS, _MAX_SWEEPS = 3, 40


class _Message(NamedTuple):
    """From a clique to one of its intersections."""

    clique: int
    summed: tuple[int, ...]
    """The axes of the clique's table that the intersection does not have."""
    shape: tuple[int, ...]
    """Of the intersection's table, with axes of length one for those summed."""


class Relaxed:
    """Pseudo-marginals of cliques at potentials; messages are kept from call to call.

    - `counting`: the counting number of each intersection, above zero; None for those of Bethe,
      which make the entropy exact where the cliques form a tree.
    """

    def __init__(
        self, domain: Domain, cliques: Sequence[Clique], counting: float | None = 1.0
    ) -> None:
        self.cliques = [domain.canonical(clique) for clique in cliques]
        self.shapes = [domain.project(clique).shape for clique in self.cliques]
        shared = {
            tuple(name for name in left if name in right)
            for left, right in combinations(self.cliques, 2)
        }
        self.regions = [
            [_find_message(domain, index, clique, region) for index, clique in
             enumerate(self.cliques) if set(region) <= set(clique)]
            for region in sorted(shared - {()})
        ]  # fmt: skip
        self.counting = [1.0 - len(each) if counting is None else counting for each in self.regions]
        self.messages = [[np.zeros(m.shape) for m in each] for each in self.regions]

    def find_marginals(
        self, potentials: Sequence[Table], *, max_sweeps: int = 1000, tolerance: float = 1e-9
    ) -> list[Table]:
        """Tables that sum to one, and agree on all intersections up to the tolerance."""
        beliefs = self._start(potentials)
        for _ in range(max_sweeps):
            if self._sweep(beliefs) <= tolerance:
                break
        return [belief / belief.sum() for belief in beliefs]

    def _start(self, potentials: Sequence[Table]) -> list[Table]:
        """Each clique's table at its potentials and the messages that it sent."""
        logs = [np.array(table) for table in potentials]
        for region, sent in zip(self.regions, self.messages, strict=True):
            for message, values in zip(region, sent, strict=True):
                logs[message.clique] += values
        return [np.exp(table - table.max()) for table in logs]

    def _sweep(self, beliefs: list[Table]) -> float:
        """Renew all messages; gives the largest distance between a clique and an intersection."""
        worst = 0.0
        for region, sent, number in zip(self.regions, self.messages, self.counting, strict=True):
            sums = [beliefs[m.clique].sum(axis=m.summed, keepdims=True) for m in region]
            flat = [np.log(np.maximum(each / each.sum(), _TINY)).reshape(-1) for each in sums]
            own = [values.reshape(-1) for values in sent]
            implied = [each - values for each, values in zip(flat, own, strict=True)]
            agreed = np.sum(implied, axis=0) / (len(region) + number)
            agreed -= np.logaddexp.reduce(agreed)
            goal = np.exp(agreed)
            for index, (message, log) in enumerate(zip(region, flat, strict=True)):
                worst = max(worst, 0.5 * float(np.abs(np.exp(log) - goal).sum()))
                change = (agreed - log).reshape(message.shape)
                sent[index] += change
                beliefs[message.clique] *= np.exp(change)
        return worst


class Point(NamedTuple):
    """A point on the path of a fit."""

    step: int
    loss: float
    tables: list[Table]
    """Pseudo-marginals in shares, in the order of the measurements."""


def fit_relaxed(
    domain: Domain, measurements: Sequence[Measurement], total: float, *, tolerance: float = 1e-7
) -> Iterator[Point]:
    """The points of a fit to noisy tables of distinct cliques, one for each step, without end.

    Few sweeps do for a step, because the messages of the last one are a good start. Where the loss
    does not fall, the step may be too long or the tables may disagree: both are mended.
    """
    oracle = Relaxed(domain, [m.clique for m in measurements])
    goals, weights = [], []
    for m, clique in zip(measurements, oracle.cliques, strict=True):
        deviations = np.broadcast_to(m.stddev, m.values.shape)
        goals.append(_order_axes(m.values, domain, m.clique, clique) / total)
        weights.append(_order_axes((total / deviations) ** 2, domain, m.clique, clique))
    n_sweeps = _MIN_SWEEPS

    def evaluate(potentials: list[Table]) -> tuple[list[Table], float]:
        tables = oracle.find_marginals(potentials, max_sweeps=n_sweeps, tolerance=tolerance)
        parts = zip(tables, goals, weights, strict=True)
        return tables, 0.5 * sum(float((w * (t - g) ** 2).sum()) for t, g, w in parts)

    potentials = [np.zeros(shape) for shape in oracle.shapes]
    length = 1.0 / max(float(each.max()) for each in weights)
    tables, loss = evaluate(potentials)
    for step in count():
        yield Point(step, loss, tables)
        kept = [[values.copy() for values in sent] for sent in oracle.messages]
        parts = zip(potentials, tables, goals, weights, strict=True)
        tried = [p - length * w * (t - g) for p, t, g, w in parts]
        fresh, value = evaluate(tried)
        if value <= loss:
            potentials, tables, loss, length = tried, fresh, value, length * _GROWTH
            n_sweeps = max(n_sweeps - 2, _MIN_SWEEPS)
        else:
            n_sweeps = min(n_sweeps + 4, _MAX_SWEEPS)
            oracle.messages, length = kept, length * _RETREAT
            tables, loss = evaluate(potentials)


def _find_message(domain: Domain, index: int, clique: Clique, region: Clique) -> _Message:
    summed = tuple(axis for axis, name in enumerate(clique) if name not in region)
    shape = tuple(domain[name] if name in region else 1 for name in clique)
    return _Message(index, summed, shape)


def _order_axes(values: Table, domain: Domain, given: Clique, canonical: Clique) -> Table:
    table = values.reshape([domain[name] for name in given])
    return table.transpose([given.index(name) for name in canonical])
