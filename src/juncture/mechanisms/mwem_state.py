"""The estimates that mechanisms update after each round: a model, or multiplicative weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import OracleChoice, choose_oracle, needs_tree
from juncture.engine.oracle_names import OracleName
from juncture.engine.plan import Plan
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.accelerated import Accelerated
from juncture.fit.solvers.raking import Raking
from juncture.fit.summary import FitSummary
from juncture.fit.total import estimate_total
from juncture.mechanisms.multiplicative_weights import Constraints, MultiplicativeWeights
from juncture.model.model import Model
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# The columns up to which a model may have as many cells as its limit says.
_USUAL_COLUMNS = 50
# The records and the accuracy of all rounds but the last, whose models only serve to choose.
_ROUND_RECORDS, _ROUND_TOLERANCE = 50_000, 0.02
# The oracle calls of the first cycle of such a fit, for more than the usual columns.
_WIDE_CYCLE = 20


def limit_cells(max_cells: int, n_columns: int) -> int:
    """The most cells of a model that is fitted round after round, for so many columns.

    A round asks the model about every pair, and what a pair takes grows with the way between its
    columns; there are more rounds, too. So beyond 50 columns the limit falls with their cube, and
    the time of all rounds together stays about what it is there.

    >>> [limit_cells(4_000_000, n) for n in (15, 50, 100)]
    [4000000, 4000000, 500000]
    """
    return int(max_cells * min(1.0, _USUAL_COLUMNS / max(1, n_columns)) ** 3)


def choose_round_solver(n_columns: int) -> Accelerated:
    """What fits the models of all rounds but the last, for so many columns.

    Such a fit begins at the model of the round before, which one more measurement changes little,
    and it only serves to choose: beyond 50 columns, where there are hundreds, its cycles are
    shorter.

    >>> [choose_round_solver(n).first_cycle for n in (15, 50, 100)]
    [50, 50, 20]
    """
    return Accelerated(first_cycle=_WIDE_CYCLE) if n_columns > _USUAL_COLUMNS else Accelerated()


class State:
    """An estimate that can be updated by measurements."""

    model: Model | None = None
    fit: FitSummary | None = None

    def update(self, measurements: Sequence[Measurement], *, is_last: bool = False) -> None:
        """Fit all measurements so far; the last fit is the one that is released."""
        raise NotImplementedError

    def project(self, clique: Clique) -> Factor:
        """The estimated counts of a clique."""
        raise NotImplementedError

    def project_all(self, cliques: Sequence[Clique]) -> list[Factor]:
        """The estimated counts of many cliques."""
        return [self.project(clique) for clique in cliques]

    def cells_with(self, clique: Clique) -> int:
        """How large the estimate would be with a clique measured."""
        raise NotImplementedError

    def which_fit(self, cliques: Sequence[Clique], max_cells: int) -> list[bool]:
        """Whether it would have at most so many cells, for each of them measured alone."""
        return [self.cells_with(clique) <= max_cells for clique in cliques]


class ModelState(State):
    """The graphical-model form; cells that rules exclude are empty in it from the beginning."""

    def __init__(
        self, domain: Domain, total: float, max_steps: int,
        oracle: OracleFactory | str = "exact", tolerance: float = 2e-3,
        constraints: Constraints | None = None, round_solver: Accelerated | None = None,
    ) -> None:  # fmt: skip
        self._total, self._max_steps, self._tolerance = total, max_steps, tolerance
        self._oracle = oracle
        self._round_solver = round_solver or Accelerated()
        self._needs_tree = needs_tree(oracle)
        self._constraints = constraints or {}
        zeros = [
            Factor(domain.project(clique), np.where(excluded, -np.inf, 0.0))
            for clique, excluded in self._constraints.items()
        ]
        self.model = Model.of_potentials(domain, zeros, total)
        # What rules need is there whatever is chosen: no limit on choices counts it.
        self._rule_cells = self.model.plan.cells if zeros else 0

    def update(
        self,
        measurements: Sequence[Measurement],
        *,
        is_last: bool = False,
        total: float | None = None,
    ) -> None:
        """See `State.update`; `total` is the number of records, if it is known better by now."""
        assert self.model is not None
        self._total = self._total if total is None else total
        domain = self.model.domain
        cliques = [*(each.clique for each in measurements), *self._constraints]
        choice = choose_oracle(self._oracle, domain, cliques)
        if choice.name == OracleName.RECORDS:
            self._fit_records(measurements, choice, is_last)
            return
        # A round's fit is only the start of the next: a proof that it is the best would be wasted.
        result: Estimate = estimate(
            domain, measurements, total=self._total, start=self.model, max_steps=self._max_steps,
            solver=Accelerated() if is_last else self._round_solver, tolerance=self._tolerance,
            plan=choice.plan, oracle=choice.factory, constraints=self._constraints,
        )  # fmt: skip
        self.model, self.fit = result.model, result.summary

    def _fit_records(
        self, measurements: Sequence[Measurement], choice: OracleChoice, is_last: bool
    ) -> None:
        """A fit with records begins anew: its path from independence is as short."""
        assert self.model is not None
        solver = Raking() if is_last else Raking(tolerance=_ROUND_TOLERANCE)
        taken = choice if is_last else choice.with_records(_ROUND_RECORDS)
        result = estimate(
            self.model.domain, measurements, total=self._total, solver=solver,
            max_steps=self._max_steps, plan=taken.plan, oracle=taken.factory,
            constraints=self._constraints,
        )  # fmt: skip
        self.model, self.fit = result.model, result.summary

    def project(self, clique: Clique) -> Factor:
        """See `State.project`."""
        assert self.model is not None
        return self.model.project(clique)

    def project_all(self, cliques: Sequence[Clique]) -> list[Factor]:
        """See `State.project_all`."""
        assert self.model is not None
        return list(self.model.project_many(cliques))

    def one_ways(self) -> dict[str, Vector]:
        """The estimated counts of every column."""
        assert self.model is not None
        return {name: self.model.one_way(name) for name in self.model.domain}

    def cells_with(self, clique: Clique) -> int:
        """See `State.cells_with`."""
        assert self.model is not None
        if not self._needs_tree:
            return self.model.domain.size_of(clique)
        plan: Plan = self.model.plan
        return plan.cells_with(clique)

    def which_fit(self, cliques: Sequence[Clique], max_cells: int) -> list[bool]:
        """See `State.which_fit`."""
        assert self.model is not None
        if not self._needs_tree:
            return super().which_fit(cliques, max_cells)
        return self.model.plan.which_fit(cliques, max_cells + self._rule_cells)


class WeightState(State):
    """The forms with multiplicative weights."""

    def __init__(
        self, domain: Domain, total: float, *, passes: int, factored: bool, max_bytes: int | None,
        constraints: Constraints | None = None,
    ) -> None:  # fmt: skip
        self._domain, self._passes = domain, passes
        self._weights = MultiplicativeWeights(
            domain, total, factored=factored, max_bytes=max_bytes, constraints=constraints
        )

    def update(self, measurements: Sequence[Measurement], *, is_last: bool = False) -> None:  # noqa: ARG002
        """See `State.update`."""
        self._weights.fit(measurements, self._passes)

    def project(self, clique: Clique) -> Factor:
        """See `State.project`."""
        return self._weights.project(clique)

    def cells_with(self, clique: Clique) -> int:
        """See `State.cells_with`."""
        return self._domain.size_of(clique)


def find_total(curator: Curator, measurements: Sequence[Measurement]) -> float:
    """The number of records: the public one, or what the measurements say, at least 1."""
    if curator.public_n_records is not None:
        return float(curator.public_n_records)
    return max(1.0, float(round(estimate_total(curator.domain, measurements).total)))
