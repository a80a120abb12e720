"""The protocol that all solvers follow: what a solver is given and what it yields."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple, Protocol

import numpy as np

from juncture._util.watch import Watch, ignore_progress
from juncture.engine import vector_ops
from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.oracle import Oracle, OracleFactory, make_oracle
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.fit.loss import Loss
from juncture.fit.summary import Status
from juncture.tables.layout import Vector

# Potentials beyond this have lost the digits that tell one record from another.
_MAX_POTENTIAL = 1e10


class Candidate(NamedTuple):
    """A model during the fit: potentials with their own marginals and loss."""

    potentials: Vector
    marginals: Vector
    log_partition: float
    loss: float


class Iterate(NamedTuple):
    """A point, and a lower bound on the loss of any model (minus infinity if unknown)."""

    candidate: Candidate
    bound: float = -math.inf


Iterates = Generator[Iterate, None, Status]
"""The type of `Solver.iterates`: it yields points and returns the reason for ending."""


class CallCounter:
    """How many oracle calls were made, and how many are allowed."""

    def __init__(self, max_calls: int, watch: Watch = ignore_progress) -> None:
        self.n_calls = 0
        self.max_calls = max_calls
        self._watch, self._expected = watch, max_calls

    def expect(self, n_more: int) -> None:
        """Say how many more calls there will be, as far as a solver knows: progress shows it."""
        self._expected = min(self.n_calls + n_more, self.max_calls)

    def count(self) -> None:
        """Count one more call, and report it to the watch."""
        self.n_calls += 1
        self._watch("fitting the model", self.n_calls, max(self._expected, self.n_calls))


class Problem:
    """What a solver is given: an oracle, a loss and a total. It counts the oracle calls.

    >>> from juncture import Domain, Measurement, Plan
    >>> from juncture.engine import Propagation
    >>> from juncture.fit.loss import FitLoss
    >>> oracle = Propagation(Plan.build(Domain({"a": 2}), [("a",)]))
    >>> table = Measurement(("a",), [6.0, 4.0], stddev=1.0)
    >>> problem = Problem(oracle, FitLoss(oracle.layout, [table], "l2"), 10.0, CallCounter(100))
    >>> point = problem.evaluate(np.zeros(2))
    >>> point.marginals, point.loss, problem.calls
    (array([5., 5.]), 1.0, 1)
    """

    def __init__(
        self,
        oracle: Oracle,
        loss: Loss,
        total: float,
        calls: CallCounter,
        factory: OracleFactory = Propagation,
    ) -> None:
        self.oracle = oracle
        self.loss = loss
        self.total = total
        self._calls, self._factory = calls, factory

    def with_loss(self, loss: Loss) -> Problem:
        """The same problem for another loss; both count their calls together."""
        return Problem(self.oracle, loss, self.total, self._calls, self._factory)

    def with_plan(self, plan: Plan) -> Problem:
        """The same problem with an oracle for another plan; both count their calls together."""
        oracle = make_oracle(self._factory, plan)
        return Problem(oracle, self.loss, self.total, self._calls, self._factory)

    @property
    def calls(self) -> int:
        """The oracle calls so far."""
        return self._calls.n_calls

    @property
    def calls_left(self) -> int:
        """The oracle calls that are still allowed."""
        return max(0, self._calls.max_calls - self._calls.n_calls)

    @property
    def is_exhausted(self) -> bool:
        """Whether the allowed oracle calls are used up."""
        return self._calls.n_calls >= self._calls.max_calls

    def expect_calls(self, n_more: int) -> None:
        """See `CallCounter.expect`."""
        self._calls.expect(n_more)

    def count_call(self) -> None:
        """Count one more oracle call, which a solver has made by itself."""
        self._calls.count()

    def marginals(self, potentials: Vector, out: Vector | None = None) -> tuple[Vector, float]:
        """The marginals and the log-partition function of the potentials."""
        self._calls.count()
        beliefs = self.oracle.marginals(potentials, self.total, out=out)
        return beliefs.marginals, beliefs.log_partition

    def goes_too_far(self, potentials: Vector) -> bool:
        """Whether potentials are so large that marginals would be made of rounding errors.

        At 1e14, doubles are 0.02 apart: sums of potentials say little about probabilities, and a
        clique's marginals may add up to nothing, or to twice the total.
        """
        sizes = np.abs(potentials[np.isfinite(potentials)])
        return bool(sizes.max(initial=0.0) > _MAX_POTENTIAL)

    def evaluate(self, potentials: Vector) -> Candidate:
        """The candidate that these potentials make."""
        marginals, log_partition = self.marginals(potentials)
        return Candidate(potentials, marginals, log_partition, self.loss.value(marginals))

    def minimise_linear(self, slope: Vector, excluded: Vector) -> float:
        """The minimum of a linear function of the marginals, which has all mass at one record.

        Minus infinity if the oracle is not exact: a record that is only nearly the best would give
        a number above the minimum, and a bound made from it would certify too much.
        """
        if not self.oracle.is_exact:
            return -math.inf
        toward = np.empty_like(slope)
        vector_ops.direct_away(slope, excluded, toward)
        if isinstance(self.oracle, GpuPropagation):
            return -self.total * self.oracle.maximum_score(toward)
        return -self.total * self.oracle.maximum(toward).score


class Solver(Protocol):
    """An optimisation method: a generator that goes from potentials to better and better points.

    The loop in `estimate` takes its points and decides when to stop; a method that knows by itself
    where to end returns the reason, and the last point it yielded is then its answer (otherwise
    the answer is the point with the least loss). A wrapper that passes on the points of another
    solver passes on its reason too: `status = yield from inner.iterates(...)`.

    >>> from juncture import Domain, Measurement, estimate
    >>> class TwoSteps:
    ...     patience = 1
    ...
    ...     def iterates(self, problem, potentials):
    ...         for _ in range(3):
    ...             point = problem.evaluate(potentials)
    ...             yield Iterate(point)
    ...             _, slope = problem.loss.value_and_gradient(point.marginals)
    ...             potentials = potentials - 0.1 * slope
    ...         return Status.STALLED
    >>> table = Measurement(("a",), [6.0, 4.0], stddev=1.0)
    >>> fit = estimate(Domain({"a": 2}), [table], solver=TwoSteps(), tolerance=0.0)
    >>> fit.summary.oracle_calls
    3
    """

    @property
    def patience(self) -> int:
        """How many points without progress mean that the method has stalled."""

    def iterates(self, problem: Problem, potentials: Vector) -> Iterates:
        """The start, then better points; returns why it ends, if it ends by itself."""


def works_on_card(solver: Solver) -> bool:
    """Whether a solver takes vectors that lie on a card: if it has `works_on_card`, and it is true.

    Such a solver leaves arithmetic on whole vectors to `vector_ops` and to NumPy's own functions,
    which CuPy's arrays understand. Others are handed vectors of NumPy.
    """
    return bool(getattr(solver, "works_on_card", False))
