"""MWEM: measure what the estimate gets most wrong, again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from juncture._util.watch import Watch, ignore_progress
from juncture.engine.plan import Plan
from juncture.errors import InvalidInput
from juncture.fit.estimation import Estimate, estimate
from juncture.mechanisms.multiplicative_weights import MultiplicativeWeights
from juncture.mechanisms.outcome import Outcome
from juncture.mechanisms.price import Price, price_of
from juncture.model.model import Model
from juncture.privacy.accounting import Neighbours
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import AllRanges, Block, Identity, Point, Prefix, Range, Total
from juncture.tables.queries.blocks import Matrix as MatrixBlock
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Task, Workload, check_same_domain

if TYPE_CHECKING:  # what a mechanism knows of the curator is what it is handed
    from juncture.private.door import Door


class Update(StrEnum):
    """What is made of the measurements after each round."""

    MODEL = "model"
    """A graphical model, refitted from the last one."""
    FACTORED = "factored"
    """Multiplicative weights on a table for each group of attributes measured together."""
    FULL = "full"
    """Multiplicative weights on the full table: the original."""


class Selection(StrEnum):
    """What is chosen in each round."""

    MARGINAL = "marginal"
    """A whole marginal of the workload's cliques: the authors' enhanced version."""
    QUERY = "query"
    """A single query of the workload: the original."""


@dataclass(frozen=True, kw_only=True)
class MWEM:
    """Rounds of private choice and measurement.

    Privacy: each of the rounds chooses by the exponential mechanism on the curator's own score (a
    single counting query moves it by 1 between neighbours, a marginal by 1, or 2 where a record is
    replaced), and measures the chosen query through the curator. With T rounds and a fraction f for
    measuring, a round costs (1 - f) epsilon / T and f epsilon / T; where the number of records is
    private, `total_share` of epsilon is spent on it first. Sequential composition gives epsilon;
    with `rho` in its place, zCDP. The same query is measured that was scored.
    """

    epsilon: float | None = None
    rho: float | None = None
    rounds: int | None = None
    """By default as many as attributes."""
    selection: Selection = Selection.MARGINAL
    update: Update = Update.MODEL
    measured_fraction: float = 0.5
    total_share: float = 0.05
    max_model_cells: int = 4_000_000
    """Choices that would make the model larger are not offered; the limit grows with the rounds."""
    passes: int = 100
    """Of multiplicative weights over all measurements, after each round."""
    max_table_bytes: int | None = None
    """Of the dense tables of multiplicative weights; by default half of the free memory."""
    max_steps: int = 1000

    def run(self, curator: Door, workload: Workload, *, watch: Watch = ignore_progress) -> Outcome:
        """Choose, measure and update, round after round."""
        self._check(workload)
        check_same_domain(curator.domain, workload)
        before = len(curator.ledger.events)
        prices, total, measurements = self._start(curator)
        state: _State = (
            _ModelState(curator.domain, total, self.max_steps)
            if self.update is Update.MODEL
            else _WeightState(curator.domain, total, self)
        )
        rounds = self.count_rounds(len(curator.domain))
        for done in range(1, rounds + 1):
            limit = self.max_model_cells * done // rounds
            chosen = self._choose(curator, workload, state, limit, prices)
            clique, query = chosen
            measurements.append(curator.measure(clique, query, **prices[1]))
            state.update(measurements)
            watch("choosing and measuring", done, rounds)
        return Outcome(
            state.project,
            model=state.model,
            measurements=measurements,
            ledger=curator.ledger.events[before:],
            statistics={"rounds": rounds},
        )

    def _check(self, workload: Workload) -> None:
        price_of(self.epsilon, self.rho)
        if not workload.tasks or (self.rounds is not None and self.rounds < 1):
            raise InvalidInput(
                f"`workload` and `rounds` must not be empty; got {len(workload.tasks)} tasks and "
                f"{self.rounds} rounds. Ask for at least one of each."
            )
        if not (0.0 < self.measured_fraction < 1.0 and 0.0 < self.total_share < 1.0):
            raise InvalidInput(
                "`measured_fraction` and `total_share` must lie between 0 and 1; got "
                f"{self.measured_fraction} and {self.total_share}. Try 0.5 and 0.05."
            )

    def count_rounds(self, n_attributes: int) -> int:
        """How many rounds there will be."""
        return self.rounds or n_attributes

    def prices(
        self, n_attributes: int, *, total_is_public: bool
    ) -> tuple[dict[str, float], dict[str, float]]:
        """What choosing and measuring cost in each round."""
        whole = price_of(self.epsilon, self.rho)
        if not total_is_public:
            whole = Price(whole.kind, whole.amount * (1.0 - self.total_share))
        fraction, rounds = self.measured_fraction, self.count_rounds(n_attributes)
        return whole.part((1.0 - fraction) / rounds), whole.part(fraction / rounds)

    def _start(
        self, curator: Door
    ) -> tuple[tuple[dict[str, float], dict[str, float]], float, list[Measurement]]:
        """What choosing and measuring cost in each round, the total, and its measurement."""
        whole = price_of(self.epsilon, self.rho)
        measured: list[Measurement] = []
        total = curator.public_n_records
        if total is None:
            measured.append(curator.measure((), None, **whole.part(self.total_share)))
            total = max(1, round(float(measured[0].values[0])))
        prices = self.prices(
            len(curator.domain), total_is_public=curator.public_n_records is not None
        )
        return prices, float(total), measured

    def _choose(
        self,
        curator: Door,
        workload: Workload,
        state: _State,
        limit: int,
        prices: tuple[dict[str, float], dict[str, float]],
    ) -> tuple[Clique, Kron | None]:
        tasks = [task for task in workload.tasks if state.cells_with(task.clique) <= limit]
        tasks = tasks or [min(workload.tasks, key=lambda task: state.cells_with(task.clique))]
        tables = state.project_all([task.clique for task in tasks])
        if self.selection is Selection.QUERY:
            answers = [
                task.operator(curator.domain).apply(table.values)
                for task, table in zip(tasks, tables, strict=True)
            ]
            index, row = curator.select_row_by_error(
                [(task.clique, task.query) for task in tasks], answers, **prices[0]
            )
            return tasks[index].clique, single_row(tasks[index], curator.domain, row)
        noise = self._expected_noise(curator, prices[1])
        estimates = {task.clique: table.values for task, table in zip(tasks, tables, strict=True)}
        penalties = {clique: noise * curator.domain.size_of(clique) for clique in estimates}
        return curator.select_by_marginal_error(estimates, penalties=penalties, **prices[0]), None

    def _expected_noise(self, curator: Door, price: dict[str, float]) -> float:
        """The mean absolute noise of a measured cell."""
        replaced = curator.neighbours is Neighbours.REPLACE
        if "epsilon" in price:
            return (2.0 if replaced else 1.0) / price["epsilon"]
        stddev = math.sqrt(2.0 if replaced else 1.0) / math.sqrt(2.0 * price["rho"])
        return stddev * math.sqrt(2.0 / math.pi)


class _State:
    """An estimate that takes measurements in."""

    model: Model | None = None

    def update(self, measurements: Sequence[Measurement]) -> None:
        raise NotImplementedError

    def project(self, clique: Clique) -> Factor:
        raise NotImplementedError

    def project_all(self, cliques: Sequence[Clique]) -> list[Factor]:
        return [self.project(clique) for clique in cliques]

    def cells_with(self, clique: Clique) -> int:
        raise NotImplementedError


class _ModelState(_State):
    """The graphical-model form."""

    def __init__(self, domain: Domain, total: float, max_steps: int) -> None:
        self._total, self._max_steps = total, max_steps
        self.model = Model.of_potentials(domain, [], total)

    def update(self, measurements: Sequence[Measurement]) -> None:
        assert self.model is not None
        fit: Estimate = estimate(
            self.model.domain, measurements, total=self._total, start=self.model,
            max_steps=self._max_steps,
        )  # fmt: skip
        self.model = fit.model

    def project(self, clique: Clique) -> Factor:
        assert self.model is not None
        return self.model.project(clique)

    def project_all(self, cliques: Sequence[Clique]) -> list[Factor]:
        assert self.model is not None
        return list(self.model.project_many(cliques))

    def cells_with(self, clique: Clique) -> int:
        assert self.model is not None
        plan: Plan = self.model.plan
        return plan.cells_with(clique)


class _WeightState(_State):
    """The forms by multiplicative weights."""

    def __init__(self, domain: Domain, total: float, options: MWEM) -> None:
        self._domain, self._passes = domain, options.passes
        self._weights = MultiplicativeWeights(
            domain, total, factored=options.update is Update.FACTORED,
            max_bytes=options.max_table_bytes,
        )  # fmt: skip

    def update(self, measurements: Sequence[Measurement]) -> None:
        self._weights.fit(measurements, self._passes)

    def project(self, clique: Clique) -> Factor:
        return self._weights.project(clique)

    def cells_with(self, clique: Clique) -> int:
        return self._domain.size_of(clique)


def single_row(task: Task, domain: Domain, row: int) -> Kron:
    """One query of a task's, as a query of its own."""
    sizes = [domain[name] for name in task.clique]
    rows = [block.n_rows(size) for block, size in zip(task.blocks, sizes, strict=True)]
    indices = np.unravel_index(row, rows)
    blocks = {
        name: _row_block(block, size, int(index))
        for name, block, size, index in zip(task.clique, task.blocks, sizes, indices, strict=True)
    }
    return Kron(blocks)


def _row_block(block: Block, size: int, index: int) -> Block:
    match block:
        case Identity():
            return Point(index)
        case Prefix():
            return Range(0, index)
        case Total():
            return block
        case AllRanges():
            row = np.flatnonzero(block.matrix(size)[index])
            return Range(int(row[0]), int(row[-1]))
        case _:
            return MatrixBlock(block.matrix(size)[index : index + 1])
