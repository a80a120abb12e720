"""One run of `Tiers`: what it measures, tier by tier, and the fits between."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from juncture.mechanisms.mechanism import Findings
from juncture.mechanisms.rare_values import Merging
from juncture.mechanisms.tier_choice import ONES_PART, Offer, TierChooser
from juncture.mechanisms.tier_fit import FIRST_RECORDS
from juncture.mechanisms.tier_rounds import PAIR_LIFT, PairRounds
from juncture.mechanisms.tier_state import ANSWERING_RECORDS, NEGLIGIBLE, TierState
from juncture.mechanisms.tier_tables import (
    divide_by_need,
    divide_what_is_left,
    expect_error,
    find_joint_share,
    find_needs,
    find_pair_tables,
    find_triple_tables,
)
from juncture.model.model import Model
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

# With Laplace noise, a pair is measured if its columns together are off by more than this share of
# what measuring would leave; a triple, with any noise, must be off by all of it.
_PAIR_PENALTY, _TRIPLE_PENALTY = 0.6, 1.0
# Noise lifts the best of m candidates by the logarithm of m times its scale: so much of that is
# asked for on top where triples are chosen one by one; but no more than what measuring would
# leave, since a table that only noise has chosen does no more harm.
_TRIPLE_LIFT = 0.7
# The share of the price for choosing pairs with Laplace noise.
_PAIR_CHOICE_SHARE = 0.03
# A triple is looked at if measuring it would leave at most this share of the records in the dark.
_MAX_DARK = 0.25
# The records of the last fit: so many for each record of the table, up to a limit.
_LAST_RECORDS, _MAX_RECORDS = 10.0, 1_000_000
# What the watch calls the tiers: columns, pairs, triples, and the last fit.
_WORK = "measuring in tiers"
# What a single column needs beside a pair: it is known from its first measurement, and from pairs.
_SINGLE_NEED = 0.5
# The parts of what is left that may go to the number of records.
_TOTAL_PARTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)


@dataclass(frozen=True)
class TierShares:
    """The shares of the price: for single columns, pairs at first, and what chooses tables."""

    singles: float
    pairs: float
    triple_choice: float


class TierRun:
    """One run, tier by tier."""

    def __init__(self, state: TierState, shares: TierShares, max_pairs: int) -> None:
        self.state, self.shares, self.max_pairs = state, shares, max_pairs
        self.chooser = TierChooser(state)
        self.triples: list[Clique] = []
        self.total_needs: dict[Clique, float] = {}
        """How far columns are off by the number of records, which makes contrasts counts."""

    def run(self) -> Findings:
        """All tiers, then the last fit."""
        state = self.state
        singles: list[Clique] = [(name,) for name in state.candidates.singles]
        state.measure(dict.fromkeys(singles, self.shares.singles / len(singles)))
        model = state.fit(FIRST_RECORDS).model
        state.merging = self.find_merging(model)
        state.watch(_WORK, 1, 4)
        tables = find_pair_tables(model, state.candidates.pairs, state.merging)
        pairs = list[Clique]()
        if tables:
            pairs = self.choose_pairs(tables, model)
            self.measure_tables({pair: tables[pair] for pair in pairs}, model)
        state.watch(_WORK, 3, 4)
        wanted = int(_LAST_RECORDS * model.total)
        fit = state.fit(min(max(wanted, ANSWERING_RECORDS), _MAX_RECORDS))
        state.watch(_WORK, 4, 4)
        details = {
            "pairs": len(pairs),
            "triples": [list(triple) for triple in self.triples],
            **state.merging.describe(state.measurements),
        }
        return Findings(
            fit.model.project, fit.model, state.measurements, fit.summary, details,
            choices=tuple(state.choices),
        )  # fmt: skip

    def find_merging(self, model: Model) -> Merging:
        """The values that are rare beside the noise on the count of a pair."""
        state = self.state
        if not state.candidates.pairs:
            return state.merging
        n_pairs = min(self.max_pairs, len(state.candidates.pairs))
        price = state.whole.share(state.left / n_pairs)
        counts = {name: model.one_way(name) for name in state.candidates.singles}
        stddev = price.cell_stddev(state.curator.neighbours)
        return state.merging.find_rare(counts, stddev, price.noise.mean_absolute(stddev))

    def find_needs(
        self, tables: Mapping[Clique, Vector], weights: Mapping[Clique, float], noise: float
    ) -> dict[Clique, float]:
        """What tables need, or what their columns say together where that alone is measured."""
        needs = find_needs(tables, weights, noise)
        if not self.state.by_contrasts:
            return needs
        domain = self.state.curator.domain
        return {clique: need * find_joint_share(domain, clique) for clique, need in needs.items()}

    def find_single_needs(
        self, chosen: Container[Clique], model: Model, noise: float
    ) -> dict[Clique, float]:
        """What single columns need: they alone answer pairs that do not answer for them."""
        needs = dict[Clique, float]()
        for name, weight in self.count_uses(chosen).items():
            counts, times = model.one_way(name), _SINGLE_NEED * weight
            needs[(name,)] = times * expect_error(counts, noise)
            if self.state.is_contrasted((name,)):
                needs[(name,)] *= find_joint_share(self.state.curator.domain, (name,))
                uneven = float(np.abs(counts / counts.sum() - 1.0 / len(counts)).sum())
                self.total_needs[(name,)] = times * uneven * noise
        return needs

    def count_uses(self, chosen: Container[Clique]) -> dict[str, float]:
        """The weight of the pairs that each column alone answers for."""
        uses = dict[str, float]()
        for pair, weight in self.state.candidates.pairs.items():
            if pair not in chosen or self.state.by_contrasts:
                for name in pair:
                    uses[name] = uses.get(name, 0.0) + weight
        return uses

    def measure_tables(self, pairs: Mapping[Clique, Vector], model: Model) -> None:
        """Measure pairs, then triples that they do not explain, then all of these again.

        Columns of pairs that were not chosen are measured again beside them. What was spent on a
        table before counts as a part of its share.
        """
        state = self.state
        n_tables = max(len(pairs), len(state.candidates.singles))
        noise = state.noise_of((state.left + sum(state.spent.values())) / n_tables)
        needs = self.find_needs(pairs, state.candidates.pairs, noise)
        needs |= self.find_single_needs(pairs, model, noise)
        share = ONES_PART * self.shares.triple_choice
        n_triples = self.chooser.count_choices(share, n_tables, model.total)
        if state.candidates.triples and n_triples > 0:
            state.watch(_WORK, 2, 4)
            self.measure_by_need(needs, self.shares.pairs)
            triples = self.choose_triples(state.fit_answering(), pairs, n_triples)
            state.measure(dict.fromkeys(triples, state.left / (n_tables + len(triples))))
            needs |= self.find_needs(triples, state.candidates.triples, noise)
            self.triples = list(triples)
            state.watch(_WORK, 3, 4)
        self.measure_by_need(needs, 1.0)

    def measure_by_need(self, needs: Mapping[Clique, float], part: float) -> None:
        """Spend a part of what is left, so that all that was spent is as tables need it."""
        shares, left = divide_by_need(needs), part * self.state.left
        for_total = self.find_total_share(needs, shares, left)
        self.state.measure({(): for_total})
        self.state.measure(divide_what_is_left(shares, self.state.spent, left - for_total))

    def find_total_share(
        self, needs: Mapping[Clique, float], shares: Mapping[Clique, float], left: float
    ) -> float:
        """What to spend on the number of records, which contrasts of columns do not tell.

        The columns' first counts tell it already. Where nearly all that is left goes to columns,
        these would soon be known better. Of some parts of what is left, the one is taken that
        leaves the least expected error of all tables.
        """
        if not self.total_needs:
            return 0.0
        spent, domain = self.state.spent, self.state.curator.domain
        first = self.shares.singles / len(self.state.candidates.singles)
        known = spent.get((), 0.0) + sum(first / domain[n] for n in self.state.candidates.singles)
        own = np.array([needs[clique] for clique in shares])
        by_total = np.array([self.total_needs.get(clique, 0.0) for clique in shares])
        errors = list[float]()
        for part in _TOTAL_PARTS:
            more = divide_what_is_left(shares, spent, (1.0 - part) * left)
            got = np.array([max(spent.get(c, 0.0) + x, NEGLIGIBLE) for c, x in more.items()])
            off = np.hypot(own / np.sqrt(got), by_total / math.sqrt(known + part * left))
            errors.append(float(off.sum()))
        return _TOTAL_PARTS[int(np.argmin(errors))] * left

    def choose_pairs(self, tables: Mapping[Clique, Vector], model: Model) -> list[Clique]:
        """The pairs that are worth measuring.

        - `tables`: what they would be if their columns were independent.

        With Gaussian noise they are chosen in rounds, which measure them, too. With Laplace noise,
        measuring twice tells little more than once, and rounds would waste it: all pairs are
        measured, or where they are too many, some are chosen.
        """
        n = min(self.max_pairs, len(tables))
        if self.state.whole.norm == 2:
            part = self.shares.pairs if self.state.candidates.triples else 1.0
            return PairRounds(self.state, n, part).choose(tables, model)
        return list(tables) if len(tables) <= n else self.choose_pairs_once(tables, model, n)

    def choose_pairs_once(
        self, tables: Mapping[Clique, Vector], model: Model, n: int
    ) -> list[Clique]:
        """At most n pairs, one by one and then many at once, for one choice of each kind."""
        doubts, share = self.state.find_pair_doubts(tables, model), _PAIR_CHOICE_SHARE
        offer = Offer(self.state.candidates.pairs, doubts, _PAIR_PENALTY, PAIR_LIFT, share, n, 0)
        one_by_one = self.chooser.count_choices(ONES_PART * share, n, model.total)
        return self.chooser.choose_two_ways(tables, offer, one_by_one, n)

    def choose_triples(
        self, model: Model, pairs: Mapping[Clique, Vector], n: int
    ) -> dict[Clique, Vector]:
        """Triples that the pairs do not explain, as the model has them: n, then many at once."""
        state = self.state
        n_tables = max(len(pairs), len(state.candidates.singles))
        tables = find_triple_tables(model, state.candidates.triples, pairs, state.merging)
        noise = state.noise_of((state.left - self.shares.triple_choice) / n_tables)
        clear = {
            triple: table
            for triple, table in tables.items()
            if expect_error(table, noise) <= _MAX_DARK * model.total
        }
        if not clear:
            return {}
        known = {pair: state.noise_of(state.spent.get(pair, NEGLIGIBLE)) for pair in pairs}
        off = {p: state.expect_joint_error(p, table, known[p]) for p, table in pairs.items()}
        in_pairs = {name for pair in pairs for name in pair}  # these are known better from there
        singles = state.find_single_doubts(model)
        off |= {(name,): doubt for name, doubt in singles.items() if name not in in_pairs}
        doubts = {
            triple: math.hypot(
                *(off.get(part, 0.0) for n in (1, 2) for part in combinations(triple, n))
            )
            for triple in clear
        }
        offer = Offer(
            state.candidates.triples, doubts, _TRIPLE_PENALTY, _TRIPLE_LIFT,
            self.shares.triple_choice, n_tables, n_tables,
            0.0 if pairs else sum(state.spent[(name,)] for name in singles) / len(singles),
        )  # fmt: skip
        chosen = self.chooser.choose_two_ways(clear, offer, min(n, len(clear)), len(clear))
        return {triple: clear[triple] for triple in chosen}
