"""MWEM: in each round, measure what the estimate gets most wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import needs_tree
from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.fit.selection_proof import Choice
from juncture.mechanisms.mechanism import Assignment, Findings, Mechanism, Outline, refuse_useless
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mwem_state import ModelState, State, WeightState, find_total, limit_cells
from juncture.mechanisms.rare_forecast import RareTerms
from juncture.mechanisms.rare_values import Merging
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError, RowError
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import AllRanges, Block, Identity, Point, Prefix, Range, Total
from juncture.tables.queries.blocks import Matrix as MatrixBlock
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Task, Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# Rounds that would put more noise than this on a measured cell are left out: they would measure
# little else. The number of rounds matters little around it.
_MAX_STDDEV = 150.0
# Of the price, for all single columns: see docs/mechanisms.md.
_SINGLE_SHARE = 0.4
# With fewer rounds a model says too little, however exact.
_MIN_ROUNDS = 16
# Its fits follow every count. Tables of many cells are not chosen for their noise.
_RARE_TERMS = RareTerms(stops_at_noise=False, max_cells=20_000)


class Update(StrEnum):
    """How the estimate is updated after each round."""

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


@dataclass(frozen=True)
class MWEM(Mechanism):
    """In each round, a marginal that the estimate gets wrong is chosen privately, then measured.

    `Tiers` and `AIM` choose better; this one stays for a pure epsilon and wide tables, for queries
    other than counts, and as the paper's.

    Privacy: each of the rounds chooses by the exponential mechanism on a score of the curator's (a
    single counting query moves it by 1 between neighbours, a marginal by 1, or 2 where a record is
    replaced), and measures the chosen query through the curator. With T rounds and a fraction f for
    measuring, a round costs (1 - f) / T and f / T of what is left of the budget's price after every
    single column was measured, for equal parts of `single_share` of it. Without that, where the
    number of records is private, `total_share` of the price is spent on it first. Sequential
    composition gives the budget. The query that was scored is the one that is measured.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 1)
    >>> run = MWEM(Budget(epsilon=1.0), rounds=2).prepare(workload, Neighbours.REPLACE)
    >>> dict(run.facts)["rounds"]
    '2: each chooses one marginal of 2, measures it'
    """

    name: ClassVar[str] = "mwem"

    budget: Budget
    _: KW_ONLY
    rounds: int | None = None
    """The number of rounds; by default, see `count_rounds`."""
    selection: Selection = Selection.MARGINAL
    update: Update = Update.MODEL
    measured_fraction: float = 0.5
    """The fraction of a round's price that is spent on measuring; the rest is spent on choosing."""
    single_share: float | None = None
    """The share of the price that is spent on every single column first; by default 0.4 where a
    model is fitted to marginals, and none for the original forms. A column that no round chooses
    is then known at least by itself."""
    total_share: float = 0.05
    """The share of the price that is spent on the number of records, if that is private and no
    single columns are measured, which tell it too."""
    max_model_cells: int = 4_000_000
    """Choices that would make the model larger are not offered; the limit grows with the rounds,
    and is lower for more than 50 columns (see `limit_cells`). With records for an oracle, only
    tables that are larger by themselves are left out."""
    passes: int = 100
    """The passes of multiplicative weights over all measurements, after each round."""
    max_table_bytes: int | None = None
    """The limit for dense tables of multiplicative weights; by default half of the free memory."""
    max_steps: int = 1000
    """The most steps of the model's fit after each round."""
    oracle: OracleFactory | str = "exact"
    """What computes the model's marginals: "exact", "records" for choices of any tree-width, or
    "auto" for exact fits while the tree is small and fast."""
    merge_rare: str = "auto"
    """Whether values that are rare by the noise of a round share counts in what it measures (see
    `rare_values`): "on", "off", or "auto" where that is expected to leave less error. Only where a
    model is fitted to marginals and single columns are measured first."""

    def outline(self, assignment: Assignment) -> Outline:
        """Divide the budget. The data decides what is measured, but not what it costs."""
        workload, neighbours = assignment.workload, assignment.neighbours
        self._check()
        if workload.is_weighted and self.selection is Selection.QUERY:
            raise InvalidInput(
                "`selection` must be marginal for a workload with weights; got query, whose "
                "choices know single queries alone."
            )
        rounds, facts = self.count_rounds(workload, neighbours), list[tuple[str, str]]()
        prices = self.prices(rounds, workload.domain, neighbours)
        stddev = refuse_useless(prices.measurement.cell_stddev(neighbours))
        costs = (prices.choice.selection_cost, prices.measurement.cost) * rounds
        if prices.single is not None:
            refuse_useless(prices.single.cell_stddev(neighbours))
            costs = (prices.single.cost,) * len(workload.domain) + costs
            facts.append(("every single column", f"measured first, each for {prices.single}"))
        if prices.total is not None:
            costs = (prices.total.cost, *costs)
            facts.append(("the number of records", f"measured first, for {prices.total}"))
        return Outline(
            costs=costs,
            cell_stddev=stddev,
            max_chosen=rounds,
            execute=lambda curator, watch: self._execute(curator, workload, rounds, watch),
            facts=(
                ("rounds", f"{rounds}: each chooses one marginal of {len(workload.tasks)}, "
                 "measures it"),
                ("a choice costs", str(prices.choice)),
                ("a measurement costs", str(prices.measurement)),
                ("noise on a measured cell", f"standard deviation {stddev:.3g}"),
                *facts,
                *self._parse_switch().list_facts(),
            ),
        )  # fmt: skip

    def _execute(self, curator: Curator, workload: Workload, rounds: int, watch: Watch) -> Findings:
        """Choose, measure and update, round after round."""
        prices = self.prices(rounds, curator.domain, curator.neighbours)
        total, measurements = _measure_first(curator, prices)
        state = self._make_state(curator, total)
        if prices.single is not None:
            state.update(measurements)
        merging = Merging(curator.domain, self._parse_switch(), _RARE_TERMS)
        choices: tuple[Choice, ...] = ()
        for done in range(1, rounds + 1):
            limit = self.max_model_cells
            if needs_tree(self.oracle):
                limit = limit_cells(limit, len(curator.domain)) * done // rounds
            merging = self._find_rare(merging, state, prices, curator.neighbours)
            terms = _Terms(prices, limit, merging)
            clique, query, choices = self._choose(curator, workload, state, terms)
            measurements.append(curator.measure(clique, prices.measurement, query))
            state.update(measurements, is_last=done == rounds)
            watch("choosing and measuring", done, rounds)
        details = {"rounds": rounds, **merging.describe(measurements)}
        return Findings(
            state.project, state.model, measurements, state.fit, details, choices=choices
        )

    def _make_state(self, curator: Curator, total: float) -> State:
        zeros = PublicFacts.find_constraints(curator.schema)
        if self.update is Update.MODEL:
            return ModelState(curator.domain, total, self.max_steps, self.oracle, constraints=zeros)
        return WeightState(
            curator.domain, total, passes=self.passes, factored=self.update is Update.FACTORED,
            max_bytes=self.max_table_bytes, constraints=zeros,
        )  # fmt: skip

    @property
    def _knows_columns(self) -> bool:
        """Whether single columns are known when tables are chosen: else nothing is rare."""
        chooses_marginals = self.selection is Selection.MARGINAL
        return chooses_marginals and self.update is Update.MODEL and self._single_share > 0.0

    def _parse_switch(self) -> MergeRare:
        choice = MergeRare.parse(self.merge_rare)
        if choice is MergeRare.ON and not self._knows_columns:
            raise InvalidInput(
                "`merge_rare` must be off or auto where no model is fitted to marginals, or no "
                "single columns are measured first, which say what is rare; got on."
            )
        return choice if self._knows_columns else MergeRare.OFF

    @staticmethod
    def _find_rare(
        merging: Merging, state: State, prices: Prices, neighbours: Neighbours
    ) -> Merging:
        """The values that are rare by the noise of a round, as the estimate has them."""
        if not isinstance(state, ModelState):
            return merging
        stddev = prices.measurement.cell_stddev(neighbours)
        noise = prices.measurement.noise.mean_absolute(stddev)
        return merging.find_rare(state.one_ways(), stddev, noise)

    def _check(self) -> None:
        self._parse_switch()
        needs_tree(self.oracle)  # refuses an unknown name
        if self.rounds is not None and self.rounds < 1:
            raise InvalidInput(f"`rounds` must be at least 1; got {self.rounds}.")
        if not (0.0 < self.measured_fraction < 1.0 and 0.0 < self.total_share < 1.0):
            raise InvalidInput(
                "`measured_fraction` and `total_share` must lie between 0 and 1; got "
                f"{self.measured_fraction} and {self.total_share}."
            )
        if self.single_share is not None and not 0.0 <= self.single_share < 1.0:
            raise InvalidInput(
                f"`single_share` must lie between 0 and 1; got {self.single_share}. 0 measures no "
                "single columns first."
            )

    def count_rounds(self, workload: Workload, neighbours: Neighbours) -> int:
        """How many rounds there will be: `rounds`, or what the budget allows; no data is asked.

        One for each attribute, or fewer where the noise on a measured cell would have a standard
        deviation above 150; but 16 at least (or as many as there are attributes), and, where single
        columns are not measured first, enough for each attribute to be measured once.

        >>> wide = Workload.all_marginals(Domain({f"column {i}": 2 for i in range(86)}), 2)
        >>> budgets = [Budget(epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)]
        >>> [MWEM(each).count_rounds(wide, Neighbours.ADD_OR_REMOVE) for each in budgets]
        [16, 31, 86]
        """
        if self.rounds is not None:
            return self.rounds
        n_attributes = len(workload.domain)
        widest = max(1, *map(len, workload.cliques))
        rounds, least = n_attributes, _MIN_ROUNDS
        if self._single_share == 0.0:
            least = max(least, math.ceil(n_attributes / widest))
        while rounds > least and (
            self.prices(rounds, workload.domain, neighbours).measurement.cell_stddev(neighbours)
            > _MAX_STDDEV
        ):
            rounds -= 1
        return rounds

    @property
    def _single_share(self) -> float:
        if self.single_share is not None:
            return self.single_share
        chooses_marginals = self.selection is Selection.MARGINAL
        return _SINGLE_SHARE if chooses_marginals and self.update is Update.MODEL else 0.0

    def prices(self, rounds: int, domain: Domain, neighbours: Neighbours) -> Prices:
        """What the first measurements, a choice and a measurement cost in so many rounds."""
        whole, single, total = self.budget.price, None, None
        if self._single_share > 0.0:
            single = whole.share(self._single_share / len(domain))
            whole = whole.share(1.0 - self._single_share)
        elif not neighbours.n_records_is_public:
            total, whole = whole.share(self.total_share), whole.share(1.0 - self.total_share)
        choice = whole.share((1.0 - self.measured_fraction) / rounds)
        return Prices(choice, whole.share(self.measured_fraction / rounds), single, total)

    def _choose(
        self,
        curator: Curator,
        workload: Workload,
        state: State,
        terms: _Terms,
    ) -> tuple[Clique, Kron | None, tuple[Choice, ...]]:
        prices, merging = terms.prices, terms.merging
        fitting = state.which_fit([task.clique for task in workload.tasks], terms.max_cells)
        tasks = [*compress(workload.tasks, fitting)]
        tasks = tasks or [min(workload.tasks, key=lambda task: state.cells_with(task.clique))]
        tables = state.project_all([task.clique for task in tasks])
        if self.selection is Selection.QUERY:
            answers = [
                task.operator(curator.domain).apply(table.values)
                for task, table in zip(tasks, tables, strict=True)
            ]
            score = RowError([(task.clique, task.query) for task in tasks], answers)
            index, row = curator.select(score, prices.choice)
            return tasks[index].clique, extract_row(tasks[index], curator.domain, row), ()
        stddev = prices.measurement.cell_stddev(curator.neighbours)
        noise = prices.measurement.noise.mean_absolute(stddev)
        estimates = {
            task.clique: merging.count(table) for task, table in zip(tasks, tables, strict=True)
        }
        far = MarginalError(
            estimates,
            penalties={clique: noise * len(counts) for clique, counts in estimates.items()},
            weights=_weigh(workload, estimates),
            queries=merging.queries(estimates),
        )
        chosen = curator.select(far, prices.choice)
        query = merging.query(chosen)
        if query is not None:  # a distance of merged tables proves nothing of whole ones
            return chosen, query, ()
        whole = {c: counts for c, counts in estimates.items() if merging.query(c) is None}
        scale = far.find_noise_scale(prices.choice.selection_epsilon, curator.neighbours)
        choice = Choice(whole, far.penalties, far.weights, scale, len(estimates), chosen)
        return chosen, None, (choice,)


class _Terms(NamedTuple):
    """On which terms a round chooses."""

    prices: Prices
    max_cells: int
    merging: Merging


class Prices(NamedTuple):
    """What the events of a run cost."""

    choice: Price
    measurement: Price
    single: Price | None
    """The price of each single column, if they are measured first."""
    total: Price | None
    """The price of the number of records, if that is private and not told by single columns."""


def _measure_first(curator: Curator, prices: Prices) -> tuple[float, list[Measurement]]:
    """The number of records, and what was measured before the first round."""
    measured: list[Measurement] = []
    if prices.single is not None:
        requests = [Request((name,), prices.single) for name in curator.domain]
        measured = curator.measure_all(requests)
    elif prices.total is not None:
        measured = [curator.measure((), prices.total)]
    return find_total(curator, measured), measured


def _weigh(workload: Workload, cliques: Iterable[Clique]) -> dict[Clique, float] | None:
    """The weights of cliques, the largest 1; none where all count the same."""
    sums = workload.clique_weights
    largest = max(sums.values())
    own = {clique: sums[workload.domain.canonical(clique)] / largest for clique in cliques}
    return own if workload.is_weighted else None


def extract_row(task: Task, domain: Domain, row: int) -> Kron:
    """One row of a task's query, as a query of its own."""
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
