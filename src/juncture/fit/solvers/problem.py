"""What a solver is given, what it yields, and the protocol that all solvers follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from juncture.engine.reference import Oracle
from juncture.fit.loss import Loss
from juncture.tables.layout import Vector


class Candidate(NamedTuple):
    """A model on the way: potentials with the marginals and the loss that are truly theirs."""

    potentials: Vector
    marginals: Vector
    log_partition: float
    loss: float


class Iterate(NamedTuple):
    """A point, and a lower bound of what any model can reach (minus infinity if unknown)."""

    candidate: Candidate
    bound: float = -math.inf


class CallCounter:
    """How many oracle calls were made, and how many may be."""

    def __init__(self, max_calls: int, watch: Callable[[int, int], None] | None = None) -> None:
        self.n_calls = 0
        self.max_calls = max_calls
        self._watch = watch

    def count(self) -> None:
        """One more call; whoever watches is told."""
        self.n_calls += 1
        if self._watch is not None:
            self._watch(self.n_calls, self.max_calls)


class Problem:
    """An oracle, a loss and a total; counts the oracle calls."""

    def __init__(self, oracle: Oracle, loss: Loss, total: float, calls: CallCounter) -> None:
        self.oracle = oracle
        self.loss = loss
        self.total = total
        self._calls = calls

    def with_loss(self, loss: Loss) -> Problem:
        """The same problem for another loss; both count their calls together."""
        return Problem(self.oracle, loss, self.total, self._calls)

    @property
    def calls(self) -> int:
        """The oracle calls so far."""
        return self._calls.n_calls

    @property
    def is_exhausted(self) -> bool:
        """Whether the allowed oracle calls are used up."""
        return self._calls.n_calls >= self._calls.max_calls

    def marginals(self, potentials: Vector, out: Vector | None = None) -> tuple[Vector, float]:
        """The marginals and the log-partition function of the potentials."""
        self._calls.count()
        beliefs = self.oracle.marginals(potentials, self.total, out=out)
        return beliefs.marginals, beliefs.log_partition

    def evaluate(self, potentials: Vector) -> Candidate:
        """The potentials with what belongs to them."""
        marginals, log_partition = self.marginals(potentials)
        return Candidate(potentials, marginals, log_partition, self.loss.value(marginals))

    def minimise_linear(self, slope: Vector, excluded: Vector) -> float:
        """The least that a linear function of the marginals can be: at one record, all mass."""
        toward = np.where(np.isneginf(excluded), -np.inf, -slope)
        return -self.total * self.oracle.maximum(toward).score


class Solver(Protocol):
    """A method: from potentials to better and better points."""

    @property
    def patience(self) -> int:
        """After how many points without progress the method may be taken to have stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterator[Iterate]:
        """The start, then better points without end; the loop decides when to stop."""
