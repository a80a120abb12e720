"""DualQuery: records that answer well whatever queries an adversary draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from juncture._util.watch import Watch, ignore_progress
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.counted_records import CountedRecords
from juncture.mechanisms.draw_likelihood import DrawLikelihood, Round
from juncture.mechanisms.hdmm import Estimation
from juncture.mechanisms.outcome import Outcome
from juncture.mechanisms.record_search import RecordSearch
from juncture.privacy.accounting import rho_of_epsilon
from juncture.tables.workload import Workload, check_same_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.private.door import Door

# The likelihood is so much larger than what is left to gain that a usual tolerance ends too early.
_TOLERANCE = 1e-6


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
    max_rounds: int | None = None
    """Rounds to do at most; by default as many as the budget allows."""
    random_ties: bool = True
    """Of several best records, one at random; otherwise that of the first values, which repeats a
    published comparison and is worse."""
    solver: Solver = field(default_factory=Accelerated)
    max_steps: int = 300

    def run(self, curator: Door, workload: Workload, *, watch: Watch = ignore_progress) -> Outcome:
        """Draw and find, round after round; then estimate."""
        check_same_domain(curator.domain, workload)
        m = self._require_n_records(curator, workload)
        before = len(curator.ledger.events)
        n_rounds = self.count_rounds(m)
        rng = np.random.default_rng(self.seed)
        search = RecordSearch(curator.domain, workload, rng, random_ties=self.random_ties)
        rounds: list[Round] = []
        records: list[dict[str, int]] = []
        n = workload.n_queries
        satisfied = np.zeros(n, dtype=np.int32)
        for t in range(n_rounds):
            rounds.append(Round(satisfied, self._draw(curator, workload, satisfied, t, rng), t))
            records.append(search.find_best(rounds[-1].net_draws(n)))
            satisfied = satisfied + search.answers(records[-1]).astype(np.int32)
            watch("drawing queries", t + 1, n_rounds)
        events = curator.ledger.events[before:]
        statistics: dict[str, Any] = {"rounds": n_rounds, "records": records}
        if self.estimation is Estimation.LOCAL:
            columns = {name: np.array([r[name] for r in records]) for name in curator.domain}
            synthetic = CountedRecords(curator.domain, columns, m / len(records))
            return Outcome(synthetic.project, ledger=events, statistics=statistics)
        likelihood = DrawLikelihood(curator.domain, workload, rounds, self.eta, m)
        fit = estimate(
            curator.domain, [], cliques=workload.cliques, total=float(m), loss=likelihood,
            solver=self.solver, max_steps=self.max_steps, tolerance=_TOLERANCE,
            watch=watch,
        )  # fmt: skip
        return Outcome(
            fit.model.project, model=fit.model, ledger=events,
            statistics={**fit.summary.to_json(), "rounds": n_rounds},
        )  # fmt: skip

    def count_rounds(self, n_records: int) -> int:
        """As many as the budget and `most_rounds` allow, at least the first, which is free."""
        unit = self.draws * (self.eta / n_records) ** 2 / 12.0
        rho, t = self._rho(), 1
        limit = math.inf if self.max_rounds is None else self.max_rounds
        while t < limit and unit * t * (t + 1) * (2 * t + 1) <= rho * (1.0 - 1e-9):
            t += 1
        return t

    def _rho(self) -> float:
        is_given = (self.epsilon is not None, self.delta is not None, self.rho is not None)
        if is_given == (False, False, True):
            return float(self.rho or 0.0)
        if is_given == (True, True, False):
            return rho_of_epsilon(float(self.epsilon or 0.0), float(self.delta or 0.0))
        raise InvalidInput(
            "`rho`, or `epsilon` with `delta`, must be given. Choose one of the two."
        )

    def _require_n_records(self, curator: Door, workload: Workload) -> int:
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

    def _draw(
        self,
        curator: Door,
        workload: Workload,
        satisfied: NDArray[np.int32],
        t: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """The places of the queries drawn."""
        if t == 0:
            return rng.integers(0, 2 * workload.n_queries, self.draws)
        tasks = [(task.clique, task.query) for task in workload.tasks]
        return curator.draw_queries(tasks, satisfied, n_before=t, eta=self.eta, draws=self.draws)
