"""DualQuery: records that answer well any queries that an adversary draws."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from juncture._util.randomness import Random
from juncture._util.watch import Watch
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.estimation import estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.problem import Solver
from juncture.mechanisms.counted_records import CountedRecords
from juncture.mechanisms.draw_likelihood import DrawLikelihood, Round
from juncture.mechanisms.hdmm import Estimation
from juncture.mechanisms.mechanism import (
    Assignment,
    Findings,
    Mechanism,
    Outline,
    require_n_records,
)
from juncture.mechanisms.record_search import RecordSearch
from juncture.privacy.accounting import MAX_DRAW_ROUNDS, MAX_ETA, Cost, draw_slack
from juncture.privacy.budget import Budget
from juncture.privacy.price import ZCDP
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# The likelihood is far larger than what is left to gain: a usual tolerance would stop too early.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class DualQuery(Mechanism):
    """In each round, queries are drawn privately and a record is sought that satisfies them.

    Privacy (replaced records; the number of records m is public). Only the draws look at data. In
    round t a query q or its complement is drawn with a probability proportional to the exponential
    of eta times the sum, over the t - 1 records x so far, of q(D) - q(x). A replaced record moves
    q(D) by at most 1 / m, so this is the exponential mechanism with epsilon = 2 eta (t - 1) / m,
    of which each draw costs rho = epsilon^2 / 8 = eta^2 (t - 1)^2 / (2 m^2) of zCDP. With s draws
    in each of T rounds, rho = s eta^2 (T - 1) T (2 T - 1) / (12 m^2), and a little more for
    rounding (`draw_slack`): T is the largest that the budget allows (a rho, or an epsilon with a
    delta). The first round's draws do not look at data.
    What is not spent because T is a whole number stays in the budget.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 1)
    >>> mechanism = DualQuery(Budget(epsilon=1.0, delta=1e-6), max_rounds=5)
    >>> run = mechanism.prepare(workload, Neighbours.REPLACE, n_records=1000)
    >>> dict(run.facts)["a round"]
    '50 draws from 10 queries and complements'
    """

    name: ClassVar[str] = "dualquery"

    budget: Budget
    _: KW_ONLY
    eta: float = 2.0
    """How strongly draws prefer queries that the records so far answer badly."""
    draws: int = 50
    """The queries drawn in each round."""
    estimation: Estimation = Estimation.MODEL
    """`MODEL` fits the model that makes all draws most likely; `LOCAL` is the original, which
    answers from the records of the rounds."""
    rng: Random = 0
    """The randomness of the search for records, which is post-processing and may be repeated."""
    max_rounds: int | None = None
    """The most rounds to do; by default the budget alone decides."""
    random_ties: bool = True
    """Whether to choose among several best records at random; if not, the one with the first values
    is chosen, which repeats a published comparison and is worse."""
    solver: Solver = field(default_factory=Accelerated)
    max_steps: int = 300

    def outline(self, assignment: Assignment) -> Outline:
        """Find how many rounds the budget allows, and plan the model."""
        workload = assignment.workload
        if not (0.0 < self.eta <= MAX_ETA and self.draws >= 1):
            raise InvalidInput(
                f"`eta` must be positive and at most {MAX_ETA:g}, and `draws` positive; got "
                f"{self.eta} and {self.draws}."
            )
        self._rho()  # refuses a budget without a rho before anything else
        n_public = require_n_records(self.name, assignment)
        rounds, modelled = self.count_rounds(n_public), self.estimation is Estimation.MODEL
        plan = Plan.build(workload.domain, workload.cliques) if modelled else None
        epsilons = [self._draw_epsilon(t, n_public) for t in range(1, rounds)]
        last = epsilons[-1] if epsilons else 0.0
        return Outline(
            n_records=n_public,
            costs=tuple(
                Cost(epsilon=self.draws * e, rho=self.draws * e**2 / 8.0) for e in epsilons
            ),
            execute=lambda curator, watch: self._execute(
                curator, assignment, plan, watch
            ),
            plan=plan,
            facts=(
                ("rounds", f"{rounds}: the most that the budget allows"),
                ("a round",
                 f"{self.draws} draws from {2 * workload.n_queries:,} queries and complements"),
                ("a draw costs", f"epsilon {last:.3g} in the last round"),
                ("noise", "none is added; how often queries are drawn is the noise"),
            ),
        )  # fmt: skip

    def _execute(
        self, curator: Curator, assignment: Assignment, plan: Plan | None, watch: Watch
    ) -> Findings:
        """Draw queries and search for a record, round after round; then estimate."""
        domain, workload = curator.domain, assignment.workload
        m, n = require_n_records(self.name, assignment), workload.n_queries
        n_rounds, rng = self.count_rounds(m), np.random.default_rng(self.rng)
        search = RecordSearch(domain, workload, rng, random_ties=self.random_ties)
        rounds: list[Round] = []
        records: list[dict[str, int]] = []
        satisfied = np.zeros(n, dtype=np.int32)
        for t in range(n_rounds):
            rounds.append(Round(satisfied, self._draw(curator, workload, satisfied, t, rng), t))
            records.append(search.find_best(rounds[-1].net_draws(n)))
            satisfied = satisfied + search.answers(records[-1]).astype(np.int32)
            watch("drawing queries", t + 1, n_rounds)
        if self.estimation is Estimation.LOCAL:
            columns = {name: np.array([r[name] for r in records]) for name in domain}
            synthetic = CountedRecords(domain, columns, m / len(records))
            details = {"rounds": n_rounds, "records": records}
            return Findings(synthetic.project, details=details)
        fit = estimate(
            domain, [], cliques=workload.cliques, total=float(m), solver=self.solver,
            loss=DrawLikelihood(domain, workload, rounds, self.eta, m), plan=plan,
            max_steps=self.max_steps, tolerance=_TOLERANCE, watch=watch,
        )  # fmt: skip
        return Findings(fit.model.project, fit.model, (), fit.summary, {"rounds": n_rounds})

    def count_rounds(self, n_records: int) -> int:
        """The most rounds that the budget and `max_rounds` allow; the first is free."""
        left, t = self._rho() * (1.0 - 1e-9), 1
        most = MAX_DRAW_ROUNDS + 1
        limit = most if self.max_rounds is None else min(self.max_rounds, most)
        while t < limit:
            left -= self.draws * self._draw_epsilon(t, n_records) ** 2 / 8.0
            if left < 0.0:
                break
            t += 1
        return t

    def _draw_epsilon(self, n_earlier: int, n_records: int) -> float:
        """The epsilon of each draw in the round after so many others."""
        return 2.0 * self.eta * n_earlier / n_records + draw_slack(self.eta, n_earlier)

    def _rho(self) -> float:
        price = self.budget.price
        if not isinstance(price, ZCDP):
            raise InvalidInput(
                "`budget` must be a rho, or an epsilon with a delta, for dualquery; got an epsilon "
                "alone. Add a delta, below one in the number of records."
            )
        return price.rho

    def _draw(
        self,
        curator: Curator,
        workload: Workload,
        satisfied: NDArray[np.int32],
        t: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Draw queries for round `t`; gives their indices."""
        if t == 0:
            return rng.integers(0, 2 * workload.n_queries, self.draws)
        tasks = [(task.clique, task.query) for task in workload.tasks]
        return curator.draw_queries(tasks, satisfied, n_earlier=t, eta=self.eta, draws=self.draws)
