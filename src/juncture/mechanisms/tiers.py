"""Tiers: single columns, then the pairs that depend, then the triples that pairs do not explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from juncture._util.watch import Watch
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import choose_oracle, needs_tree
from juncture.engine.oracle_names import OracleName
from juncture.engine.particles import Particles
from juncture.errors import InvalidInput
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.mechanisms.mechanism import Findings, Mechanism, Run, refuse_empty, refuse_useless
from juncture.mechanisms.mwem_state import find_total
from juncture.mechanisms.spending import Spending
from juncture.mechanisms.tier_tables import (
    TierCandidates,
    combine,
    divide_by_need,
    expect_error,
    find_pair_tables,
    find_triple_tables,
)
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# Pairs that are measured at most, for each column.
_PAIRS_PER_COLUMN = 8
# A pair is measured if it is off by more than this share of what measuring it would leave; a triple
# must be off by all of it, since the pairs are not known exactly yet.
_PAIR_PENALTY, _TRIPLE_PENALTY = 0.6, 1.0
# A choice whose own noise is more than this share of the records is not worth its price.
_MAX_CHOICE_NOISE = 0.05
# A triple is looked at if measuring it would leave at most this share of the records in the dark.
_MAX_DARK = 0.25
# The records of a first fit, those that answer for it, and those of the last fit: so many for each
# record of the table, within limits; all records together have at most so many values.
_FIRST_RECORDS, _ANSWERING_RECORDS = 50_000, 400_000
_LAST_RECORDS, _MAX_RECORDS, _MAX_VALUES = 10.0, 1_000_000, 30_000_000
# A share of the price that is not worth an event; and what rounding might add to a sum of shares.
_NEGLIGIBLE, _ROUNDING = 1e-6, 1e-12


@dataclass(frozen=True)
class Tiers(Mechanism):
    """Single columns, then the pairs that depend, then the triples that pairs do not explain.

    1. Every column of the workload is measured, for equal parts of `single_share` of the price.
    2. Of the pairs below the workload's tasks, those are chosen, all at once, that independence
       gets wrong by more than noise would. They are measured with most of the budget, for shares
       by how many of their counts stand above the noise, and a model is fitted.
    3. Of the triples below them, those are chosen that this model gets wrong by more than noise
       would, and measured. What they do not need buys less noise for the pairs.

    The model need not have a small tree: where it has none, records take its place (`oracle`). So
    nothing is left out because a model could not hold it. The last fit stops at the noise.

    A choice is skipped where its own noise would hide what it looks for; all pairs are measured
    then, and no triples.

    Privacy: measurements and choices go through the curator, each for a price that `Spending` gives
    out, a filter that never gives more than the budget's price in all. Prices depend on public
    facts and on earlier outcomes only; by fully adaptive composition (see `Spending`) the run costs
    at most the budget. A choice of k of the candidates is k exponential mechanisms for equal parts
    of its price (`Curator.select_many`), on scores that a record moves by at most 1, or 2 where one
    is replaced (`MarginalError`); the score is not monotonic, so a choice pays for both directions.

    >>> from juncture.tables.domain import Domain
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
    """The share of the price for the first measurement of pairs, where triples may follow."""
    pair_choice_share: float = 0.02
    triple_choice_share: float = 0.03
    max_pairs: int | None = None
    """How many pairs are measured at most; by default 8 for each column."""
    oracle: OracleFactory | str = "auto"
    """What fits the model: "exact", "records", or "auto" for the first where it is fast enough and
    the tree has at most `max_tree_cells` cells."""
    max_tree_cells: int = 4_000_000
    max_steps: int = 2000
    """The most steps of each of the two fits."""

    def prepare(
        self,
        workload: Workload,
        neighbours: Neighbours,
        n_records: int | None = None,  # noqa: ARG002
    ) -> Run:
        """List the candidates. The data decides what is measured, but not what it costs in all."""
        refuse_empty(workload)
        self._check()
        candidates = TierCandidates.of_workload(workload)
        if not candidates.singles:
            raise InvalidInput("`workload` must have a task about a column; got none.")
        if needs_tree(self.oracle):  # whatever is chosen must fit: refuse before anything is paid
            choose_oracle(self.oracle, workload.domain, [*candidates.pairs, *candidates.triples])
        whole = self.budget.price
        share = self._single_share(candidates)
        single = whole.share(share / len(candidates.singles))
        refuse_useless(single.cell_stddev(neighbours))
        costs = [single.cost] * len(candidates.singles)
        facts = [("every single column", f"measured first, each for {single}")]
        stddev = single.cell_stddev(neighbours)
        if candidates.pairs:
            rest, max_pairs = whole.share(1.0 - share), self._max_pairs(candidates)
            # A choice and the pairs; with triples, another choice, they, and the pairs again.
            n_triples = min(max_pairs, len(candidates.triples))
            n_events = 1 + max_pairs + (1 + n_triples + max_pairs if n_triples else 0)
            costs += [rest.share((1.0 - _ROUNDING) / n_events).cost] * n_events
            stddev = refuse_useless(rest.share(1.0 / max_pairs).cell_stddev(neighbours))
            facts.append(("pairs", f"at most {max_pairs} of {len(candidates.pairs)} are measured"))
            if n_triples:
                many = f"at most {n_triples} of {len(candidates.triples)} are measured"
                facts.append(("triples", many))
            facts.append(
                ("noise on a count of a pair", f"standard deviation {stddev:.3g}, or less")
            )
        return Run(
            mechanism=self.name,
            workload=workload,
            budget=self.budget,
            neighbours=neighbours,
            costs=tuple(costs),
            costs_are_exact=False,
            cell_stddev=stddev,
            execute=lambda curator, watch: _Execution(self, curator, candidates, watch).run(),
            facts=tuple(facts),
        )

    def _check(self) -> None:
        shares = (
            self.single_share, self.pair_share, self.pair_choice_share, self.triple_choice_share,
        )  # fmt: skip
        if not (all(0.0 < share < 1.0 for share in shares) and sum(shares) < 1.0):
            raise InvalidInput(
                "`single_share`, `pair_share`, `pair_choice_share` and `triple_choice_share` must "
                f"be above 0, and below 1 together; got {', '.join(map(str, shares))}."
            )
        if self.max_pairs is not None and self.max_pairs < 1:
            raise InvalidInput(f"`max_pairs` must be at least 1; got {self.max_pairs}.")

    def _single_share(self, candidates: TierCandidates) -> float:
        return self.single_share if candidates.pairs else 1.0

    def _max_pairs(self, candidates: TierCandidates) -> int:
        most = self.max_pairs or _PAIRS_PER_COLUMN * len(candidates.singles)
        return min(most, len(candidates.pairs))


class _Execution:
    """One run: what was measured, and what is left of the price."""

    def __init__(
        self, settings: Tiers, curator: Curator, candidates: TierCandidates, watch: Watch
    ) -> None:
        self.settings, self.curator, self.candidates = settings, curator, candidates
        self.watch, self.whole = watch, settings.budget.price
        self.spending, self.left = Spending(self.whole), 1.0
        self.measurements: list[Measurement] = []
        self.triples: list[Clique] = []

    def run(self) -> Findings:
        """All tiers, then the last fit."""
        singles: list[Clique] = [(name,) for name in self.candidates.singles]
        share = self.settings._single_share(self.candidates)
        self.measure(dict.fromkeys(singles, share / len(singles)))
        model = self.fit(_FIRST_RECORDS).model
        tables = find_pair_tables(model, self.candidates.pairs)
        pairs = self.choose_pairs(tables, model.total) if tables else []
        if pairs:
            self.measure_pairs({pair: tables[pair] for pair in pairs}, model.total)
        elif tables:
            self.measure(dict.fromkeys(singles, self.left / len(singles)))
        wanted = int(_LAST_RECORDS * model.total)
        fit = self.fit(min(max(wanted, _ANSWERING_RECORDS), _MAX_RECORDS))
        details = {
            "pairs": len(pairs),
            "triples": [list(triple) for triple in self.triples],
        }
        return Findings(fit.model.project, fit.model, self.measurements, fit.summary, details)

    def measure_pairs(self, tables: Mapping[Clique, Vector], total: float) -> None:
        """Measure pairs, then triples that they do not explain, then the pairs again."""
        weights = self.candidates.pairs
        noise = self.noise_of(self.left / len(tables))
        shares = divide_by_need(
            {pair: weights[pair] * expect_error(t, noise) for pair, t in tables.items()}
        )
        choice = self.settings.triple_choice_share
        if self.candidates.triples and self.can_tell(choice, len(tables), total):
            self.watch("measuring pairs", 1, 4)
            first = min(self.settings.pair_share, self.left)
            self.measure({pair: first * share for pair, share in shares.items()})
            self.watch("fitting pairs", 2, 4)
            model = _answer_by_more(self.fit(_FIRST_RECORDS).model)
            self.measure_triples(model, tables)
            self.watch("fitting all", 3, 4)
        self.measure({pair: self.left * share for pair, share in shares.items()})

    def choose_pairs(self, tables: Mapping[Clique, Vector], total: float) -> list[Clique]:
        """The pairs that independence gets wrong, or all where a choice could not tell."""
        choice = self.settings.pair_choice_share
        max_pairs = min(self.settings._max_pairs(self.candidates), len(tables))
        if len(tables) <= max_pairs and not self.can_tell(choice, max_pairs, total):
            return list(tables)
        noise = self.noise_of((self.left - choice) / max_pairs)
        penalties = {p: _PAIR_PENALTY * expect_error(t, noise) for p, t in tables.items()}
        return self.choose(tables, penalties, self.candidates.pairs, max_pairs, choice)

    def measure_triples(self, model: Model, pairs: Mapping[Clique, Vector]) -> None:
        """Choose and measure the triples that the pairs do not explain."""
        choice = self.settings.triple_choice_share
        each = (self.left - choice) / len(pairs)
        noise = self.noise_of(each)
        tables = find_triple_tables(model, self.candidates.triples, pairs)
        errors = {triple: expect_error(table, noise) for triple, table in tables.items()}
        clear = {t: table for t, table in tables.items() if errors[t] <= _MAX_DARK * model.total}
        if clear:
            penalties = {triple: _TRIPLE_PENALTY * errors[triple] for triple in clear}
            n = min(len(pairs), len(clear))
            self.triples = self.choose(clear, penalties, self.candidates.triples, n, choice)
            self.measure(dict.fromkeys(self.triples, each))

    def choose(
        self,
        tables: Mapping[Clique, Vector],
        penalties: Mapping[Clique, float],
        weights: Mapping[Clique, float],
        n: int,
        share: float,
    ) -> list[Clique]:
        """At most n tables that are off by more than their penalties, for a share of the price."""
        chosen = {clique: weights[clique] for clique in tables}
        score = MarginalError(
            tables, penalties=penalties, weights=None if min(chosen.values()) == 1.0 else chosen
        )
        self.left -= share
        price = self.spending.take(self.whole.share(share))
        return self.curator.select_many(score, n, price, floor=0.0)

    def can_tell(self, share: float, n: int, total: float) -> bool:
        """Whether the noise of n choices for a share of the price is small beside the records."""
        moves = 1.0 if self.curator.neighbours is Neighbours.ADD_OR_REMOVE else 2.0
        epsilon = self.whole.share(share / n).selection_epsilon
        return 2.0 * moves / epsilon <= _MAX_CHOICE_NOISE * total

    def noise_of(self, share: float) -> float:
        """The mean absolute noise on a count that is measured for a share of the price."""
        price = self.whole.share(share)
        return price.noise.mean_absolute(price.cell_stddev(self.curator.neighbours))

    def measure(self, shares: Mapping[Clique, float]) -> None:
        """Measure tables, each for a share of the price."""
        if sum(shares.values()) < _NEGLIGIBLE:
            return
        requests = [
            Request(clique, self.spending.take(self.whole.share(share)))
            for clique, share in shares.items()
        ]
        self.left -= sum(shares.values())
        self.measurements = combine([*self.measurements, *self.curator.measure_all(requests)])

    def fit(self, n_records: int) -> Estimate:
        """Fit everything so far, with about so many records where it takes records."""
        domain, total = self.curator.domain, find_total(self.curator, self.measurements)
        cliques = [each.clique for each in self.measurements]
        choice = choose_oracle(self.settings.oracle, domain, cliques)
        is_large = choice.plan.has_tree and choice.plan.cells > self.settings.max_tree_cells
        if self.settings.oracle == OracleName.AUTO and is_large:
            choice = choose_oracle(OracleName.RECORDS, domain, cliques)
        factory = choice.factory
        if isinstance(factory, Particles) and factory.n_records is None:
            most = max(_FIRST_RECORDS, _MAX_VALUES // len(domain))
            factory = replace(factory, n_records=min(n_records, most))
        return estimate(
            domain, self.measurements, total=total, plan=choice.plan, oracle=factory,
            solver=EarlyStopping(), max_steps=self.settings.max_steps,
        )  # fmt: skip


def _answer_by_more(model: Model) -> Model:
    """The model with more records, if it has any: few leave too much of a triple to chance."""
    distribution = model.distribution
    if not isinstance(distribution, RecordDistribution):
        return model
    return Model(distribution.renew(_ANSWERING_RECORDS), model.total)
