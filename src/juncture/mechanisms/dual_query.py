"""DualQuery: records that answer well whatever queries an adversary draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from juncture.domain import Clique, Domain
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.estimation import estimate
from juncture.factor import Factor
from juncture.layout import Vector
from juncture.mechanisms.counted_records import CountedRecords
from juncture.mechanisms.hdmm import Estimation
from juncture.mechanisms.outcome import Outcome
from juncture.oracles.propagation import Propagation
from juncture.plan import Plan
from juncture.privacy.accounting import rho_of_epsilon
from juncture.query import Operator
from juncture.solvers.accelerated import Accelerated
from juncture.solvers.problem import Solver
from juncture.watch import Watch, steps, unwatched
from juncture.workload import Workload, refuse_other_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.privacy.curator import Door

# How much a random number, added to break ties, may count against a drawn query.
_TIE_BREAK = 1e-6
# The likelihood is so much larger than what is left to gain that a usual tolerance ends too early.
_TOLERANCE = 1e-6
# Coordinate searches from random records, where the exact search does not fit.
_STARTS, _SWEEPS = 8, 4


@dataclass(frozen=True)
class Round:
    """What a round leaves behind: all of it may be known."""

    before: Vector
    """For each query, how many of the records before this round satisfy it."""
    drawn: Vector
    """For each query, how often it was drawn, less how often its complement was."""
    n_before: int


@dataclass(frozen=True, kw_only=True)
class DualQuery:
    """Rounds in which queries are drawn privately and a record is found that satisfies them.

    Privacy (replaced records; the number of records m is public). Only the draws look at data. In
    round t a query q or its complement is drawn with a probability that goes as the exponential of
    eta times the sum, over the t - 1 records x so far, of q(D) - q(x). A replaced record moves
    q(D) by at most 1 / m, so this is the exponential mechanism with epsilon = 2 eta (t - 1) / m,
    of which each draw costs rho = epsilon^2 / 8 = eta^2 (t - 1)^2 / (2 m^2) of zCDP. With s draws
    in each of T rounds, rho = s eta^2 (T - 1) T (2 T - 1) / (12 m^2): T is the largest that the
    budget allows (`rho`, or `epsilon` with `delta`). The first round's draws look at nothing. What
    is not spent because T is whole stays in the budget.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    eta: float = 2.0
    draws: int = 50
    estimation: Estimation = Estimation.MODEL
    """The model of greatest likelihood of all draws; `LOCAL` is the original: the records found."""
    seed: int | None = None
    """Of the search for records: that is post-processing."""
    solver: Solver = field(default_factory=Accelerated)
    max_steps: int = 300

    def run(self, curator: Door, workload: Workload, *, watch: Watch = unwatched) -> Outcome:
        """Draw and find, round after round; then estimate."""
        refuse_other_domain(curator.domain, workload)
        m = self._checked(curator, workload)
        before = len(curator.ledger.events)
        n_rounds = self.rounds(m)
        search = RecordSearch(curator.domain, workload, np.random.default_rng(self.seed))
        rounds: list[Round] = []
        records: list[dict[str, int]] = []
        satisfied = np.zeros(workload.n_queries)
        for t in range(n_rounds):
            drawn = self._drawn(curator, workload, satisfied, t, search.rng)
            rounds.append(Round(satisfied, drawn, t))
            records.append(search.best(drawn))
            satisfied = satisfied + search.answers(records[-1])
            watch("drawing queries", t + 1, n_rounds)
        events = curator.ledger.events[before:]
        statistics: dict[str, Any] = {"rounds": n_rounds, "records": records}
        if self.estimation is Estimation.LOCAL:
            columns = {name: np.array([r[name] for r in records]) for name in curator.domain}
            found = CountedRecords(curator.domain, columns, m / len(records))
            return Outcome(found.project, ledger=events, statistics=statistics)
        likelihood = DrawLikelihood(curator.domain, workload, rounds, self.eta, self.draws, m)
        fit = estimate(
            curator.domain, [], cliques=workload.cliques, total=float(m), loss=likelihood,
            solver=self.solver, max_steps=self.max_steps, tolerance=_TOLERANCE,
            watch=steps(watch, "fitting the model"),
        )  # fmt: skip
        return Outcome(
            fit.model.project, model=fit.model, ledger=events,
            statistics={**fit.statistics.summary(), "rounds": n_rounds},
        )  # fmt: skip

    def rounds(self, n_records: int) -> int:
        """As many as the budget allows, at least the first, which is free."""
        unit = self.draws * (self.eta / n_records) ** 2 / 12.0
        rho, t = self._rho(), 1
        while unit * t * (t + 1) * (2 * t + 1) <= rho * (1.0 - 1e-9):
            t += 1
        return t

    def _rho(self) -> float:
        given = (self.epsilon is not None, self.delta is not None, self.rho is not None)
        if given == (False, False, True):
            return float(self.rho or 0.0)
        if given == (True, True, False):
            return rho_of_epsilon(float(self.epsilon or 0.0), float(self.delta or 0.0))
        raise InvalidInput(
            "`rho`, or `epsilon` with `delta`, must be given. Choose one of the two."
        )

    def _checked(self, curator: Door, workload: Workload) -> int:
        if not workload.tasks:
            raise InvalidInput("`workload` must have a task; got none. Add at least one.")
        if not (self._rho() > 0.0 and self.eta > 0.0 and self.draws >= 1):
            raise InvalidInput(
                "`rho`, `eta` and `draws` must be positive; got others. Try eta 2 and 50 draws."
            )
        m = curator.public_n_records
        if not m:
            raise InvalidInput(
                "`curator` must know the number of records, and at least one. Use a ledger whose "
                "neighbours replace one record."
            )
        return m

    def _drawn(
        self, curator: Door, workload: Workload, satisfied: Vector, t: int, rng: np.random.Generator
    ) -> Vector:
        """How often each query was drawn, less how often its complement was."""
        n = workload.n_queries
        if t == 0:
            places = rng.integers(0, 2 * n, self.draws)
        else:
            tasks = [(task.clique, task.query) for task in workload.tasks]
            places = curator.draw_queries(
                tasks, satisfied, n_before=t, eta=self.eta, draws=self.draws
            )
        drawn = np.bincount(places, minlength=2 * n).astype(np.float64)
        return drawn[:n] - drawn[n:]


class RecordSearch:
    """The record that satisfies most of the drawn queries."""

    def __init__(self, domain: Domain, workload: Workload, rng: np.random.Generator) -> None:
        self.domain, self.workload, self.rng = domain, workload, rng
        self._operators = [task.operator(domain) for task in workload.tasks]
        self._ends = np.cumsum([operator.n_rows for operator in self._operators])[:-1]
        try:
            self._oracle: Propagation | None = Propagation(Plan.build(domain, workload.cliques))
        except ModelTooLarge:
            self._oracle = None

    def best(self, drawn: Vector) -> dict[str, int]:
        """By max-product on the workload's junction tree; ties and free attributes at random.

        Where the tree does not fit into memory, the best of a few searches, one attribute at a time
        from random records.
        """
        tables = self._tables(drawn)
        noise = [
            Factor(t.domain, t.values + _TIE_BREAK * self.rng.random(t.values.shape))
            for t in tables
        ]
        if self._oracle is None:
            return self._searched(noise)
        peak = self._oracle.maximum(self._oracle.layout.pack(noise)).record
        for name in self._oracle.plan.free_attributes:
            peak[name] = int(self.rng.integers(self.domain[name]))
        return peak

    def _tables(self, drawn: Vector) -> list[Factor]:
        """For each task, how much each cell adds."""
        parts = zip(self.workload.tasks, self._operators, np.split(drawn, self._ends), strict=True)
        return [
            Factor(self.domain.project(task.clique), _shaped(operator, part))
            for task, operator, part in parts
        ]

    def _searched(self, tables: Sequence[Factor]) -> dict[str, int]:
        best, highest = dict[str, int](), -math.inf
        for _ in range(_STARTS):
            record = {name: int(self.rng.integers(size)) for name, size in self.domain.items()}
            for _ in range(_SWEEPS):
                for name in self.domain:
                    gains = np.zeros(self.domain[name])
                    for table in (t for t in tables if name in t.domain):
                        cell = tuple(slice(None) if n == name else record[n] for n in table.domain)
                        gains += table.values[cell]
                    record[name] = int(gains.argmax())
            score = math.fsum(float(t.values[tuple(record[n] for n in t.domain)]) for t in tables)
            if score > highest:
                best, highest = record, score
        return best

    def answers(self, record: Mapping[str, int]) -> Vector:
        """Which queries a record satisfies."""
        found = []
        for task, operator in zip(self.workload.tasks, self._operators, strict=True):
            one = np.zeros(operator.shape)
            one[tuple(record[name] for name in task.clique)] = 1.0
            found.append(operator.apply(one))
        return np.concatenate(found)


def _shaped(operator: Operator, part: Vector) -> Vector:
    return np.asarray(operator.adjoint(part).reshape(operator.shape))


class DrawLikelihood:
    """The negative logarithm of the probability of all draws, as a function of the marginals.

    With y the answers as shares and A the sums over earlier records, round t has the exponents
    g = eta ((t - 1) y - A) for queries and -g for complements, so the loss is the sum over rounds
    of s log(sum of exp(g) + exp(-g)) - <drawn, g>: convex, with the gradient
    eta (t - 1) (s (p - p') - drawn), p and p' being the probabilities of queries and complements.
    """

    def __init__(
        self, domain: Domain, workload: Workload, rounds: Sequence[Round], eta: float, draws: int,
        total: int,
    ) -> None:  # fmt: skip
        self._domain, self._workload, self._rounds = domain, workload, rounds
        self._eta, self._draws, self._total = eta, draws, total
        self._operators = [task.operator(domain) for task in workload.tasks]
        self._ends = np.cumsum([operator.n_rows for operator in self._operators])[:-1]

    def __call__(self, marginals: Mapping[Clique, Factor]) -> tuple[float, dict[Clique, Factor]]:
        """The loss and its gradient with respect to the marginals."""
        tasks = self._workload.tasks
        pairs = list(zip(tasks, self._operators, strict=True))
        answers = [o.apply(marginals[task.clique].values) / self._total for task, o in pairs]
        value, slope = self.of_answers(np.concatenate(answers))
        gradient: dict[Clique, Factor] = {}
        for (task, operator), part in zip(pairs, np.split(slope, self._ends), strict=True):
            table = Factor(self._domain.project(task.clique), _shaped(operator, part / self._total))
            known = gradient.get(task.clique)
            gradient[task.clique] = table if known is None else known + table
        return value, gradient

    def of_answers(self, answers: Vector) -> tuple[float, NDArray[np.float64]]:
        """The loss and its gradient with respect to the answers, as shares."""
        value, slope = 0.0, np.zeros_like(answers)
        for each in self._rounds:
            if each.n_before == 0:
                continue
            g = self._eta * (each.n_before * answers - each.before)
            peak = float(np.abs(g).max())
            up, down = np.exp(g - peak), np.exp(-g - peak)
            whole = float(up.sum() + down.sum())
            value += self._draws * (peak + math.log(whole)) - float(each.drawn @ g)
            weight = self._eta * each.n_before
            slope += weight * (self._draws * (up - down) / whole - each.drawn)
        return value, slope
