"""AIM: single columns first, then, round by round, what the model gets most wrong for its price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations, compress
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from juncture._util.watch import Watch
from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.fit.selection_proof import Choice
from juncture.mechanisms.mechanism import Assignment, Findings, Mechanism, Outline, refuse_useless
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mwem_state import (
    ModelState,
    choose_round_solver,
    find_total,
    limit_cells,
)
from juncture.mechanisms.rare_forecast import RareTerms
from juncture.mechanisms.rare_values import Merging
from juncture.mechanisms.spending import Spending
from juncture.privacy.accounting import Cost
from juncture.privacy.budget import Budget
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# First rounds for each column, as the authors have them, up to so many columns; beyond, all rounds
# after the columns fall with this power of them.
_ROUNDS_PER_COLUMN, _USUAL_COLUMNS, _POWER = 16, 50, 2.5
# How well a round's fit must be: closer ones take longer and choose no better.
_TOLERANCE = 5e-3
# Rounds are many, and so are tables of three columns: larger ones are not made up to decide.
_RARE_TERMS = RareTerms(max_cells=20_000)


@dataclass(frozen=True)
class AIM(Mechanism):
    """AIM (McKenna, Mullins, Sheldon and Miklau 2022), through a curator.

    Every column of the workload is measured first. Each round then chooses a set of columns below
    one of the workload's, and measures it. Its score is how far the model is from the true table,
    less the error that measuring it would have, times how much the workload has in common with it.
    Sets whose measurement would have more error than there are records, twice, are left out: their
    scores would be far below zero on any table. Where a measurement moves the model by no more than
    its own noise, rounds become four times as dear (twice, for a pure epsilon): half the noise. The
    last round takes all that is left.

    Privacy: measurements and choices go through the curator, each for a price that `Spending` gives
    out, a filter that never gives more than the budget's price in all. Prices depend on earlier
    outcomes only; by fully adaptive composition (see `Spending`) the run costs at most the budget.
    The score is not monotonic (a record more brings a table nearer to the model, or takes it
    further away), so a choice pays for both directions. Which sets are looked at, and which fit,
    depends on the model and the noise alone.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2}), 2)
    >>> run = AIM(Budget(rho=0.1)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> len(run.costs), round(sum(cost.rho for cost in run.costs), 12)
    (62, 0.1)
    """

    name: ClassVar[str] = "aim"

    budget: Budget
    _: KW_ONLY
    rounds: int | None = None
    """The budget of a first round is the whole over this; by default, see `count_first_rounds`."""
    measured_fraction: float = 0.9
    """The fraction of a round's price that is spent on measuring; the rest is spent on choosing."""
    max_model_cells: int = 4_000_000
    """Choices that would make the model larger are not made; the limit grows with the spending, and
    is lower for more than 50 columns (see `limit_cells`)."""
    max_steps: int = 1000
    """The most steps of the model's fit after each round."""
    merge_rare: str = "auto"
    """Whether values that are rare by the noise of a round share counts in what it measures (see
    `rare_values`): "on", "off", or "auto" where that is expected to leave less error."""

    def outline(self, assignment: Assignment) -> Outline:
        """List the candidates, and bound the costs: without dearer rounds there are the most."""
        weights = weigh_candidates(assignment.workload)
        merges = MergeRare.parse(self.merge_rare)
        schedule = self._schedule(weights)
        stddev = refuse_useless(schedule.measurement.cell_stddev(assignment.neighbours))
        costs = tuple(schedule.list_costs())
        n_rounds = (len(costs) - len(schedule.columns)) // 2
        return Outline(
            costs=costs,
            costs_are_exact=False,
            cell_stddev=stddev,
            max_chosen=n_rounds,
            execute=lambda curator, watch: self._execute(curator, weights, watch),
            facts=(
                ("every single column", f"measured first, each for {schedule.measurement}"),
                ("rounds", f"at most {n_rounds}: each chooses one marginal of {len(weights)}, "
                 "measures it"),
                ("a first choice costs", str(schedule.choice)),
                ("a first measurement costs", str(schedule.measurement)),
                ("noise on a measured cell", f"standard deviation {stddev:.3g} at first"),
                *merges.list_facts(),
            ),
        )  # fmt: skip

    def _schedule(self, weights: dict[Clique, float]) -> _Schedule:
        columns = [clique for clique in weights if len(clique) == 1]
        rounds = count_first_rounds(len(columns)) if self.rounds is None else self.rounds
        if rounds <= len(columns):
            raise InvalidInput(
                f"`rounds` must be more than the {len(columns)} columns, which are measured first; "
                f"got {rounds}."
            )
        if not 0.0 < self.measured_fraction < 1.0:
            raise InvalidInput(
                f"`measured_fraction` must lie between 0 and 1; got {self.measured_fraction}."
            )
        whole = self.budget.price
        return _Schedule(whole, columns, whole.share(1.0 / rounds), self.measured_fraction)

    def _execute(self, curator: Curator, weights: dict[Clique, float], watch: Watch) -> Findings:
        """Choose, measure and fit, until the budget is spent."""
        schedule = self._schedule(weights)
        measurements = curator.measure_all(schedule.take_columns())
        total = find_total(curator, measurements)
        state = ModelState(
            curator.domain, total, self.max_steps, tolerance=_TOLERANCE,
            constraints=PublicFacts.find_constraints(curator.schema),
            round_solver=choose_round_solver(len(curator.domain)),
        )  # fmt: skip
        state.update(measurements)
        chosen, proving = list[Clique](), tuple[Choice, ...]()
        merging = Merging(curator.domain, MergeRare.parse(self.merge_rare), _RARE_TERMS)
        max_cells = limit_cells(self.max_model_cells, len(curator.domain))
        while not schedule.spending.is_over:
            choice, measurement = schedule.take_round()
            limit = int(max_cells * schedule.spending.spent_share)
            stddev = measurement.cell_stddev(curator.neighbours)
            noise = measurement.noise.mean_absolute(stddev)
            merging = merging.find_rare(state.one_ways(), stddev, noise)
            terms = _Terms(choice, noise, limit, schedule.spending.is_over, merging)
            clique, before, proving = _choose(curator, state, weights, terms, measurements)
            measurements.append(curator.measure(clique, measurement, merging.query(clique)))
            chosen.append(clique)
            is_last = schedule.spending.is_over
            state.update(measurements, is_last=is_last, total=find_total(curator, measurements))
            moved = np.abs(merging.count(state.project(clique)) - before).sum()
            if moved <= noise * len(before):
                schedule.make_dearer()
            watch("choosing and measuring", round(1000 * schedule.spending.spent_share), 1000)
        details = {
            "rounds": len(chosen),
            "chosen": [list(clique) for clique in chosen],
            **merging.describe(measurements),
        }
        return Findings(
            state.project, state.model, measurements, state.fit, details, choices=proving
        )


class _Schedule:
    """What the columns and the rounds of one run cost."""

    def __init__(
        self, whole: Price, columns: Sequence[Clique], one_round: Price, measured: float
    ) -> None:
        self.spending, self.columns = Spending(whole), columns
        self._whole, self._round, self._measured = whole, one_round, measured

    @property
    def measurement(self) -> Price:
        """What a measurement of the next round costs."""
        return self._round.share(self._measured)

    @property
    def choice(self) -> Price:
        """What the next choice costs."""
        return self._round.share(1.0 - self._measured)

    def take_columns(self) -> list[Request]:
        """Measure every column, each for the measurement of a first round."""
        return [Request(clique, self.spending.take(self.measurement)) for clique in self.columns]

    def take_round(self) -> tuple[Price, Price]:
        """The prices of the next choice and measurement."""
        whole = self.spending.take_round(self._round)
        return whole.share(1.0 - self._measured), whole.share(self._measured)

    def make_dearer(self) -> None:
        """Halve the noise of later rounds."""
        self._round = self._round.share(2.0**self._round.norm)

    def list_costs(self) -> Iterator[Cost]:
        """The costs of a run whose rounds never become dearer, the one with the most events."""
        plain = _Schedule(self._whole, self.columns, self._round, self._measured)
        for request in plain.take_columns():
            yield request.price.cost
        while not plain.spending.is_over:
            choice, measurement = plain.take_round()
            yield choice.selection_cost
            yield measurement.cost


def count_first_rounds(n_columns: int) -> int:
    """How many rounds the whole budget is divided into, the measurements of columns among them.

    16 for each column, as the authors have it. A round asks the model about all pairs, so beyond 50
    columns there are fewer rounds, each with less noise: hundreds instead of the 1,500 that would
    take hours. Fewer rounds cost accuracy where the model could hold more pairs.

    >>> [count_first_rounds(n) for n in (15, 50, 86, 100)]
    [240, 800, 279, 232]
    """
    after = (_ROUNDS_PER_COLUMN - 1) * min(n_columns, _USUAL_COLUMNS)
    return n_columns + max(1, int(after * min(1.0, _USUAL_COLUMNS / n_columns) ** _POWER))


def weigh_candidates(workload: Workload) -> dict[Clique, float]:
    """Every set of columns below one of the workload's, and how much the workload overlaps it.

    The weight of a set is the sum of the numbers of columns that it has in common with each task,
    times the weight of the task, over the largest such sum.

    >>> from juncture.tables.domain import Domain
    >>> workload = Workload.of_marginals(Domain({"age": 3, "sex": 2}), [("age", "sex"), ("sex",)])
    >>> weigh_candidates(workload)
    {('age',): 0.3333333333333333, ('sex',): 0.6666666666666666, ('age', 'sex'): 1.0}
    """
    domain = workload.domain
    cliques = workload.clique_weights
    uses = dict[str, float]()
    for clique, weight in cliques.items():
        for name in clique:
            uses[name] = uses.get(name, 0.0) + weight
    below = {
        subset
        for clique in cliques
        for size in range(1, len(clique) + 1)
        for subset in combinations(clique, size)
    }
    if not below:
        raise InvalidInput("`workload` must have a task about a column; got none.")
    position = domain.positions
    ordered = sorted(below, key=lambda each: (len(each), [position[name] for name in each]))
    # Summing |r & s| over all tasks s is adding, for each column of r, the tasks that have it.
    sums = {clique: sum(uses[name] for name in clique) for clique in ordered}
    largest = max(sums.values())
    return {clique: overlap / largest for clique, overlap in sums.items()}


def leave_out_hopeless(n_counts: Mapping[Clique, int], max_counts: float) -> list[Clique]:
    """The sets of which at most so many counts would be measured; all, where none has so few.

    With noise s on each count of n records, more than 2 n / s counts would be off by more than 2 n
    in all. No table is that far from the model, so its score is far below zero on any data; to ask
    the model about it would be for nothing.

    >>> leave_out_hopeless({("age",): 80, ("sex",): 2, ("age", "sex"): 160}, 2.0 * 500 / 10.0)
    [('age',), ('sex',)]
    """
    return [clique for clique, n in n_counts.items() if n <= max_counts] or list(n_counts)


class _Terms(NamedTuple):
    """On which terms a round chooses."""

    price: Price
    noise: float
    """The expected error of a count that is measured then."""
    max_cells: int
    is_last: bool
    merging: Merging


def _choose(
    curator: Curator,
    state: ModelState,
    weights: dict[Clique, float],
    terms: _Terms,
    measured: Sequence[Measurement],
) -> tuple[Clique, Vector, tuple[Choice, ...]]:
    """A set of columns that fits, what the model says of it, and what the last choice proves."""
    assert state.model is not None
    plan, domain, merging = state.model.plan, curator.domain, terms.merging
    # What is in the model already fits, whatever the limit.
    max_cells = max(terms.max_cells, plan.cells)
    small = [clique for clique in weights if domain.size_of(clique) <= max_cells]
    cells = {clique: merging.count_cells(clique) for clique in small}
    small = leave_out_hopeless(cells, 2.0 * state.model.total / terms.noise)
    # What fits is public: the model is not asked about the rest, which is most of it at the end.
    small = [*compress(small, plan.which_fit(small, max_cells))]
    tables = zip(small, state.project_all(small), strict=True)
    answers = {clique: merging.count(table) for clique, table in tables}
    score = MarginalError(
        answers,
        penalties={clique: terms.noise * len(answers[clique]) for clique in small},
        weights={clique: weights[clique] for clique in small},
        queries=merging.queries(small),
    )
    chosen = curator.select(score, terms.price)
    # A distance of merged tables proves nothing of whole ones.
    if not terms.is_last or merging.query(chosen) is not None:
        return chosen, answers[chosen], ()
    held = [frozenset(each.clique) for each in measured]
    left = {
        clique: table
        for clique, table in answers.items()
        if clique == chosen
        or (merging.query(clique) is None and not any(map(frozenset(clique).issubset, held)))
    }
    scale = score.find_noise_scale(terms.price.selection_epsilon, curator.neighbours)
    proving = Choice(left, score.penalties, score.weights, scale, len(small), chosen)
    return chosen, answers[chosen], (proving,)
