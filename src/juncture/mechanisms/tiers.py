"""Tiers: single columns, then the pairs that depend, then the triples that pairs do not explain."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import choose_oracle, needs_tree
from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.mechanisms.mechanism import (
    Assignment,
    Findings,
    Mechanism,
    Outline,
    refuse_useless,
)
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.tier_fit import TierFitter
from juncture.mechanisms.tier_rounds import count_rounds
from juncture.mechanisms.tier_run import TierRun, TierShares
from juncture.mechanisms.tier_state import TierState
from juncture.mechanisms.tier_tables import MAX_TRIPLES, TierCandidates
from juncture.privacy.budget import Budget

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# For each column, so many pairs may all be measured; where there are more, so many at most.
_ALL_PER_COLUMN, _CHOSEN_PER_COLUMN = 12, 8
# What rounding might add to a sum of shares.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Tiers(Mechanism):
    """Single columns, then the pairs that depend, then the triples that pairs do not explain.

    1. Every column of the workload is measured, for equal parts of `single_share` of the price.
    2. Pairs below the workload's tasks are chosen and measured in rounds. Each chooses some pairs
       that the model so far gets more wrong than measuring them would leave, measures these with
       large noise, and fits a model: what it explains is left alone by later rounds. Where a round
       finds few, the next one measures with half the variance. Rounds end when what is left, shared
       evenly, would not buy less noise. It then goes to all chosen pairs, and to the columns, by
       how many of their counts stand above the noise.
    3. Of the triples below them, those are chosen that this model gets wrong by more than noise
       would: some one by one, then as many together as are worth it on average. What is left of
       the budget buys less noise for everything chosen.

    With Gaussian noise, pairs and triples are measured by what their columns say together and no
    fewer do (the contrasts of `ResidualPlanner`): of two columns of two values one number, for a
    quarter of the price of four. What their columns say alone is told by the columns. These are
    counted first, which tells the number of records, too. Where that is not public, what is
    measured of a column again is how its values differ, and the number of records itself where
    that makes tables better.

    The model need not have a small tree: where it has none, records take its place (`oracle`). So
    nothing is left out because a model could not hold it. The last fit stops at the noise.

    Where the noise of a choice would hide what is looked for, fewer triples are chosen one by one,
    or none. With Laplace noise, measuring a table twice tells little more than once: there are no
    rounds, and all pairs are measured, or where they are too many, some are chosen as triples are.

    Privacy: measurements and choices go through the curator, each for a price that `Spending` gives
    out, a filter that never gives more than the budget's price in all. Prices depend on public
    facts and on earlier outcomes only; by fully adaptive composition (see `Spending`) the run costs
    at most the budget. A choice of k of the candidates is k exponential mechanisms for equal parts
    of its price (`Curator.select_many`), on scores that a record moves by at most 1, or 2 where one
    is replaced (`MarginalError`); a choice of a group is one (`GroupError`). Neither score is
    monotonic, so a choice pays for both directions. The curator computes the sensitivity of every
    query.

    >>> from juncture import Budget, Domain, Neighbours, Workload
    >>> workload = Workload.all_marginals(Domain({"age": 3, "sex": 2, "income": 2}), 3)
    >>> run = Tiers(Budget(rho=0.1)).prepare(workload, Neighbours.ADD_OR_REMOVE)
    >>> round(sum(cost.rho for cost in run.costs), 12)
    0.1
    """

    name: ClassVar[str] = "tiers"

    budget: Budget
    _: KW_ONLY
    single_share: float = 0.08
    """The share of the price for all single columns."""
    pair_share: float = 0.55
    """The share of what is left for the first pairs, and for all pairs where triples may follow."""
    triple_choice_share: float = 0.03
    max_pairs: int | None = None
    """How many pairs are measured at most; by default all, or 8 for each column where they are more
    than 12."""
    oracle: OracleFactory | str = "auto"
    """What fits the model: "exact", "records", or "auto" for the first where it is fast enough and
    the tree has at most `max_tree_cells` cells."""
    max_tree_cells: int = 4_000_000
    max_steps: int = 2000
    """The most steps of each of the two fits."""
    merge_rare: str = "auto"
    """Whether rare values share counts in pairs and triples (see `rare_values`): "on", "off", or
    "auto" where that is expected to leave less error. The fit copes with rare values that stand
    alone, so that is mostly in pairs of more than 10,000 cells, which are not measured whole."""

    def outline(self, assignment: Assignment) -> Outline:
        """List the candidates. The data decides what is measured, but not what it costs in all."""
        self._check()
        merges = MergeRare.parse(self.merge_rare)
        candidates = TierCandidates.of_workload(
            assignment.workload,
            merges=merges is not MergeRare.OFF and not needs_tree(self.oracle),
        )
        if not candidates.singles:
            raise InvalidInput("`workload` must have a task about a column; got none.")
        if needs_tree(self.oracle):  # whatever is chosen must fit: refuse before anything is paid
            all_sets = [*candidates.pairs, *candidates.triples]
            choose_oracle(self.oracle, assignment.domain, all_sets)
        whole, neighbours = self.budget.price, assignment.neighbours
        share = self.find_single_share(candidates)
        single = whole.share(share / len(candidates.singles))
        refuse_useless(single.cell_stddev(neighbours))
        costs = [single.cost] * len(candidates.singles)
        facts = [("every single column", f"measured first, each for {single}")]
        stddev, max_pairs = single.cell_stddev(neighbours), 0
        if candidates.pairs:
            rest, max_pairs = whole.share(1.0 - share), self.find_max_pairs(candidates)
            # Every round is a choice; every pair is measured when it is chosen, and again with all
            # columns and the number of records. With triples, there are two more choices, and all
            # is measured once more.
            n_triples = min(MAX_TRIPLES, len(candidates.triples))
            n_tables = max_pairs + len(candidates.singles) + n_triples + 1
            n_events = count_rounds(max_pairs, len(candidates.singles)) + max_pairs + n_tables
            n_events += 2 + n_tables if n_triples else 0
            costs += [rest.share((1.0 - _ROUNDING) / n_events).cost] * n_events
            stddev = refuse_useless(rest.share(1.0 / max_pairs).cell_stddev(neighbours))
            facts.append(("pairs", f"at most {max_pairs} of {len(candidates.pairs)} are measured"))
            if n_triples:
                many = f"at most {n_triples} of {len(candidates.triples)} are measured"
                facts.append(("triples", many))
            facts += merges.list_facts()
            facts.append(
                ("noise on a count of a pair", f"standard deviation {stddev:.3g}, or less")
            )
        return Outline(
            costs=tuple(costs),
            costs_are_exact=False,
            cell_stddev=stddev,
            max_chosen=max_pairs,
            execute=lambda curator, watch: self._execute(curator, candidates, watch),
            facts=tuple(facts),
        )

    def _execute(self, curator: Curator, candidates: TierCandidates, watch: Watch) -> Findings:
        shares = TierShares(
            self.find_single_share(candidates), self.pair_share, self.triple_choice_share
        )
        zeros = PublicFacts.find_constraints(curator.schema)
        fitter = TierFitter(self.oracle, self.max_tree_cells, self.max_steps, zeros)
        merge_rare = MergeRare.parse(self.merge_rare)
        state = TierState(curator, self.budget.price, candidates, fitter, watch, merge_rare)
        return TierRun(state, shares, self.find_max_pairs(candidates)).run()

    def _check(self) -> None:
        shares = (self.single_share, self.pair_share, self.triple_choice_share)
        if not (all(0.0 < share < 1.0 for share in shares) and sum(shares) < 1.0):
            raise InvalidInput(
                "`single_share`, `pair_share` and `triple_choice_share` must be above 0, and "
                f"below 1 together; got {', '.join(map(str, shares))}."
            )
        if self.max_pairs is not None and self.max_pairs < 1:
            raise InvalidInput(f"`max_pairs` must be at least 1; got {self.max_pairs}.")

    def find_single_share(self, candidates: TierCandidates) -> float:
        """The share for all single columns: everything, where there are no pairs."""
        return self.single_share if candidates.pairs else 1.0

    def find_max_pairs(self, candidates: TierCandidates) -> int:
        """How many pairs are measured at most."""
        n_pairs, n_columns = len(candidates.pairs), len(candidates.singles)
        if self.max_pairs is not None:
            return min(self.max_pairs, n_pairs)
        all_of_them = n_pairs <= _ALL_PER_COLUMN * n_columns
        return n_pairs if all_of_them else _CHOSEN_PER_COLUMN * n_columns
