"""The likelihood of DualQuery's draws as a function of the true answers, which are unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from juncture._util.threads import run_parallel
from juncture.engine.compiled.loader import pointer, routine
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.workload import Workload

# Rounds are divided between this many threads on every machine, so that sums are the same.
_THREADS = 2


@dataclass(frozen=True)
class Round:
    """The public results of a round."""

    satisfied: NDArray[np.int32]
    """For each query, how many of the records before this round satisfy it."""
    drawn: NDArray[np.int64]
    """The indices of the queries drawn; complements come after all queries."""
    n_earlier: int

    def net_draws(self, n: int) -> Vector:
        """For each query, how often it was drawn, minus how often its complement was."""
        counts = np.bincount(self.drawn, minlength=2 * n).astype(np.float64)
        return counts[:n] - counts[n:]


class DrawLikelihood:
    """The negative logarithm of the probability of all draws, as a function of the marginals.

    With y the answers as shares and A the sums over earlier records, round t has the exponents
    g = eta ((t - 1) y - A) for queries and -g for complements, so the loss is the sum over rounds
    of s log(sum of exp(g) + exp(-g)) - <drawn, g>: convex, with the gradient
    eta (t - 1) (s (p - p') - drawn), p and p' being the probabilities of queries and complements.
    The term of the draws is linear in y, and added up once.
    """

    def __init__(
        self, domain: Domain, workload: Workload, rounds: Sequence[Round], eta: float, total: int
    ) -> None:
        self._domain, self._workload = domain, workload
        self._eta, self._total = eta, total
        # The first round's draws do not depend on the answers.
        self._rounds = [each for each in rounds if each.n_earlier > 0]
        self._operators = [task.operator(domain) for task in workload.tasks]
        self._ends = np.cumsum([operator.n_rows for operator in self._operators])[:-1]
        n = workload.n_queries
        self._drawn, self._constant = np.zeros(n), 0.0
        for each in self._rounds:
            pull = each.net_draws(n)
            self._drawn += eta * each.n_earlier * pull
            self._constant += eta * float(pull @ each.satisfied)

    def __call__(self, marginals: Mapping[Clique, Factor]) -> tuple[float, dict[Clique, Factor]]:
        """The loss and its gradient with respect to the marginals."""
        tasks = self._workload.tasks
        pairs = list(zip(tasks, self._operators, strict=True))
        answers = [o.apply(marginals[task.clique].values) / self._total for task, o in pairs]
        value, slope = self.evaluate(np.concatenate(answers))
        gradient: dict[Clique, Factor] = {}
        for (task, operator), piece in zip(pairs, np.split(slope, self._ends), strict=True):
            back = operator.adjoint(piece / self._total).reshape(operator.shape)
            table = Factor(self._domain.project(task.clique), back)
            known = gradient.get(task.clique)
            gradient[task.clique] = table if known is None else known + table
        return value, gradient

    def evaluate(self, answers: Vector) -> tuple[float, Vector]:
        """The loss and its gradient with respect to the answers, as shares."""
        y = np.ascontiguousarray(answers, dtype=np.float64)
        pieces = run_parallel(
            lambda k: self._log_normalisers(y, self._rounds[k::_THREADS]), range(_THREADS)
        )
        value = math.fsum(piece[0] for piece in pieces) - float(self._drawn @ y) + self._constant
        slope = sum((piece[1] for piece in pieces), -self._drawn)
        return value, slope

    def _log_normalisers(self, answers: Vector, rounds: Sequence[Round]) -> tuple[float, Vector]:
        """The logarithms of all normalisers, and their gradient."""
        value, n = 0.0, len(answers)
        slope, work, out = np.zeros(n), np.empty(n), np.empty(2)
        weigh = routine("weigh_round")
        for each in rounds:
            draws = len(each.drawn)
            weigh(
                pointer(answers), pointer(each.satisfied), pointer(slope), pointer(work),
                pointer(out), self._eta, float(each.n_earlier),
                self._eta * each.n_earlier * draws, n,
            )  # fmt: skip
            value += draws * (float(out[0]) + math.log(float(out[1])))
        return value, slope
