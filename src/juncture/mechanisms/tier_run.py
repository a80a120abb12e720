"""One run of `Tiers`: what it measures and chooses, tier by tier, and the fits between."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import TYPE_CHECKING, NamedTuple

from juncture._util.watch import Watch
from juncture.fit.estimation import Estimate
from juncture.fit.selection_proof import Choice
from juncture.mechanisms.mechanism import Findings
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mwem_state import find_total
from juncture.mechanisms.rare_values import Merging
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.mechanisms.spending import Spending
from juncture.mechanisms.tier_fit import FIRST_RECORDS, TierFitter
from juncture.mechanisms.tier_tables import (
    TierCandidates,
    combine,
    divide_by_need,
    divide_what_is_left,
    expect_error,
    find_joint_share,
    find_needs,
    find_pair_tables,
    find_triple_tables,
)
from juncture.model.model import Model
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import GroupError, MarginalError
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# With Laplace noise, a pair is measured if its columns together are off by more than this share of
# what measuring would leave; a triple, with any noise, must be off by all of it.
_PAIR_PENALTY, _TRIPLE_PENALTY = 0.6, 1.0
# Noise lifts the best of m candidates by the logarithm of m times its scale: so much of that is
# asked for on top where pairs are chosen one by one, and where triples are; but no more than what
# measuring would leave, since a table that only noise has chosen does no more harm.
_PAIR_LIFT, _TRIPLE_LIFT = 0.5, 0.7
# With Gaussian noise, a pair must be off by this share of what measuring would leave.
_ROUND_PENALTY = 0.75
# A pair of the first rounds gets this part of a column's even share, later ones twice as much.
_FIRST_PART, _GROWTH = 1.0 / 16.0, 2.0
# A choice costs this part of a measurement of a whole table: its noise is three times as large.
_CHOICE_PART = 1.0 / 9.0
# A round spends at most this part of what is left.
_MAX_ROUND_PART = 0.9
# A round chooses so many pairs for each column, or for each pair that was chosen before.
_PER_COLUMN, _PER_PAIR = 0.5, 1.0
# The share of the price for choosing pairs with Laplace noise.
_PAIR_CHOICE_SHARE = 0.03
# The parts of the price of a choice: one by one, and many at once, of so many groups.
_ONES_PART, _GROUP_PART, _N_GROUPS = 0.5, 0.5, 4
# Where no group is worth anything, one in so many choices takes one all the same.
_GROUP_DOUBT = 10
# A choice whose own noise is more than this share of the records is not worth its price.
_MAX_CHOICE_NOISE = 0.05
# A triple is looked at if measuring it would leave at most this share of the records in the dark.
_MAX_DARK = 0.25
# The records that answer for a first fit, and those of the last fit: so many for each record of the
# table, within limits.
_ANSWERING_RECORDS, _LAST_RECORDS, _MAX_RECORDS = 400_000, 10.0, 1_000_000
# All values of the records that answer for a first fit are no more than this.
_ANSWERING_VALUES = 20_000_000
# What the watch calls the tiers: columns, pairs, triples, and the last fit.
_WORK = "measuring in tiers"
# A share of the price that is not worth an event.
_NEGLIGIBLE = 1e-7
# What a single column needs beside a pair: it is known from its first measurement, and from pairs.
_SINGLE_NEED = 0.5


@dataclass(frozen=True)
class TierShares:
    """The shares of the price: for single columns, pairs at first, and what chooses tables."""

    singles: float
    pairs: float
    triple_choice: float


class _Offer(NamedTuple):
    """What a choice of tables goes by, beside the tables themselves."""

    weights: Mapping[Clique, float]
    doubts: Mapping[Clique, float]
    """How far each table is off already because smaller ones are not known exactly."""
    penalty: float
    """The share of what measuring would leave that a table must be off by."""
    lift: float
    """The share of what noise lifts the best of the tables by that one must be off by on top."""
    share: float
    """The share of the price for choosing."""
    n_sharing: int
    """How many tables are expected to share what is left."""
    n_beside: int
    """How many tables are measured beside those that are chosen."""
    known_share: float = 0.0
    """The share of the price by which each of those is known already, where doubts are about no
    others; else 0: pairs tell of each other, and doubts about them overstate what is lost."""


def count_rounds(max_pairs: int, n_columns: int) -> int:
    """How many rounds there are at most: each chooses a pair, or the next one pays more.

    >>> count_rounds(15, 6)
    22
    """
    n_levels = math.ceil(math.log(n_columns / _FIRST_PART, _GROWTH))
    return max_pairs + n_levels


class TierRun:
    """One run: what was measured, and what is left of the price."""

    def __init__(
        self, curator: Curator, whole: Price, candidates: TierCandidates, shares: TierShares,
        max_pairs: int, fitter: TierFitter, watch: Watch, merge_rare: MergeRare,
    ) -> None:  # fmt: skip
        self.curator, self.whole, self.candidates = curator, whole, candidates
        self.shares, self.max_pairs, self.fitter, self.watch = shares, max_pairs, fitter, watch
        self.spending, self.left = Spending(whole), 1.0
        self.spent = dict[Clique, float]()
        """The share of the price that was spent on each table so far."""
        self.measurements: list[Measurement] = []
        self.triples: list[Clique] = []
        self.choices: list[Choice] = []
        self.merging = Merging(curator.domain, merge_rare)

    def run(self) -> Findings:
        """All tiers, then the last fit."""
        singles: list[Clique] = [(name,) for name in self.candidates.singles]
        self.measure(dict.fromkeys(singles, self.shares.singles / len(singles)))
        model = self.fit(FIRST_RECORDS).model
        self.merging = self.find_merging(model)
        self.watch(_WORK, 1, 4)
        tables = find_pair_tables(model, self.candidates.pairs, self.merging)
        pairs = list[Clique]()
        if tables:
            pairs = self.choose_pairs(tables, model)
            self.measure_tables({pair: tables[pair] for pair in pairs}, model)
        self.watch(_WORK, 3, 4)
        wanted = int(_LAST_RECORDS * model.total)
        fit = self.fit(min(max(wanted, _ANSWERING_RECORDS), _MAX_RECORDS))
        self.watch(_WORK, 4, 4)
        details = {
            "pairs": len(pairs),
            "triples": [list(triple) for triple in self.triples],
            **self.merging.describe(self.measurements),
        }
        return Findings(
            fit.model.project, fit.model, self.measurements, fit.summary, details,
            choices=tuple(self.choices),
        )  # fmt: skip

    def find_merging(self, model: Model) -> Merging:
        """The values that are rare beside the noise on the count of a pair."""
        if not self.candidates.pairs:
            return self.merging
        n_pairs = min(self.max_pairs, len(self.candidates.pairs))
        price = self.whole.share(self.left / n_pairs)
        counts = {name: model.one_way(name) for name in self.candidates.singles}
        stddev = price.cell_stddev(self.curator.neighbours)
        return self.merging.find_rare(counts, stddev, price.noise.mean_absolute(stddev))

    @property
    def by_contrasts(self) -> bool:
        """Whether tables of several columns are measured by what no smaller table tells.

        Laplace noise is measured against another norm, in which that saves little.
        """
        return self.whole.norm == 2

    def expect_joint_error(self, clique: Clique, table: Vector, noise: float) -> float:
        """How far measuring a table will leave what its columns say together and no fewer do."""
        share = find_joint_share(self.curator.domain, clique)
        return expect_error(table, noise) * (share if self.by_contrasts else math.sqrt(share))

    def find_needs(
        self, tables: Mapping[Clique, Vector], weights: Mapping[Clique, float], noise: float
    ) -> dict[Clique, float]:
        """What tables need, or what their columns say together where that alone is measured."""
        needs = find_needs(tables, weights, noise)
        if not self.by_contrasts:
            return needs
        return {c: need * find_joint_share(self.curator.domain, c) for c, need in needs.items()}

    def find_single_needs(
        self, chosen: Container[Clique], model: Model, noise: float
    ) -> dict[Clique, float]:
        """What single columns need: they alone answer pairs that do not answer for them."""
        return {
            (name,): _SINGLE_NEED * weight * expect_error(model.one_way(name), noise)
            for name, weight in self.count_uses(chosen).items()
        }

    def count_uses(self, chosen: Container[Clique]) -> dict[str, float]:
        """The weight of the pairs that each column alone answers for."""
        uses = dict[str, float]()
        for pair, weight in self.candidates.pairs.items():
            if pair not in chosen or self.by_contrasts:
                for name in pair:
                    uses[name] = uses.get(name, 0.0) + weight
        return uses

    def measure_tables(self, pairs: Mapping[Clique, Vector], model: Model) -> None:
        """Measure pairs, then triples that they do not explain, then all of these again.

        Columns of pairs that were not chosen are measured again beside them. What was spent on a
        table before counts as a part of its share.
        """
        n_tables = max(len(pairs), len(self.candidates.singles))
        noise = self.noise_of((self.left + sum(self.spent.values())) / n_tables)
        needs = self.find_needs(pairs, self.candidates.pairs, noise)
        needs |= self.find_single_needs(pairs, model, noise)
        share = _ONES_PART * self.shares.triple_choice
        n_triples = self.count_choices(share, n_tables, model.total)
        if self.candidates.triples and n_triples > 0:
            self.watch(_WORK, 2, 4)
            self.measure_by_need(needs, self.shares.pairs)
            triples = self.choose_triples(self.fit_answering(), pairs, n_triples)
            self.measure(dict.fromkeys(triples, self.left / (n_tables + len(triples))))
            needs |= self.find_needs(triples, self.candidates.triples, noise)
            self.triples = list(triples)
            self.watch(_WORK, 3, 4)
        self.measure_by_need(needs, 1.0)

    def measure_by_need(self, needs: Mapping[Clique, float], part: float) -> None:
        """Spend a part of what is left, so that all that was spent is as tables need it."""
        shares = divide_by_need(needs)
        self.measure(divide_what_is_left(shares, self.spent, part * self.left))

    def choose_pairs(self, tables: Mapping[Clique, Vector], model: Model) -> list[Clique]:
        """The pairs that are worth measuring, measured once.

        - `tables`: what they would be if their columns were independent.

        With Gaussian noise, in rounds: some pairs that the model gets more wrong than measuring
        would leave them are chosen and measured, and a model is fitted. Noise is large at first, so
        that only what stands out is chosen. A round that finds fewer than it might is followed by
        one with half the variance, until an even share of what is left would not buy less.

        With Laplace noise, measuring twice tells little more than once, and rounds would waste it:
        all pairs are measured, or where they are too many, some are chosen.
        """
        n = min(self.max_pairs, len(tables))
        if self.whole.norm == 1:
            return list(tables) if len(tables) <= n else self.choose_pairs_once(tables, model, n)
        chosen, n_columns = list[Clique](), len(self.candidates.singles)
        share, said, is_fitted = _FIRST_PART / n_columns, dict(tables), True
        for index in count(1):
            if not said or len(chosen) >= n or share > self.find_even_share(chosen):
                break
            if not is_fitted:
                model = self.fit_answering()
                answers = map(self.merging.count, model.project_many(list(said)))
                said, is_fitted = dict(zip(said, answers, strict=True)), True
            batch = math.ceil(max(_PER_COLUMN * n_columns, _PER_PAIR * len(chosen)))
            batch = min(batch, len(said), n - len(chosen), self.count_affordable(share))
            if batch == 0:
                break
            taken = self.choose_round(index, said, tables, model, share, batch)
            if taken:
                chosen, is_fitted = chosen + taken, False
                self.measure({pair: share * self.find_cost(pair) for pair in taken})
                said = {pair: said[pair] for pair in said if pair not in set(taken)}
            if len(taken) < batch:
                share *= _GROWTH
        return chosen

    def fit_answering(self) -> Model:
        """A model of everything so far, with enough records to tell how far tables are off."""
        n_records = min(_ANSWERING_RECORDS, _ANSWERING_VALUES // len(self.curator.domain))
        return self.fit(FIRST_RECORDS).model.with_records(n_records)

    def find_even_share(self, pairs: Sequence[Clique]) -> float:
        """What a pair could still get if columns and pairs shared what is left for them evenly."""
        part = self.shares.pairs if self.candidates.triples else 1.0
        n_tables = sum(map(self.find_cost, pairs))
        return part * self.left / (n_tables + len(self.candidates.singles))

    def find_cost(self, pair: Clique) -> float:
        """What a pair gets in a round, beside a whole table of weight 1.

        Contrasts cost a part of it. The best shares go by the roots of needs, so of weights.
        """
        return find_joint_share(self.curator.domain, pair) * math.sqrt(self.candidates.pairs[pair])

    def count_affordable(self, share: float) -> int:
        """How many pairs may be chosen and measured for a share each, so that something is left."""
        return int(_MAX_ROUND_PART * self.left / (share * (1.0 + _CHOICE_PART)))

    def choose_round(
        self, index: int, said: Mapping[Clique, Vector], tables: Mapping[Clique, Vector],
        model: Model, share: float, n: int,
    ) -> list[Clique]:  # fmt: skip
        """At most n pairs that are worth a share of the price each, by what the model says of them.

        - `tables`: what they would be if their columns were independent.

        A pair must be off by what measuring would leave and by what is in doubt of its columns
        already; on top, by some of what the noise of the choice lifts the best of so many, unless
        measuring it for nothing would harm less.
        """
        doubts, weights = self.find_pair_doubts(said, model), self.candidates.pairs
        noise = {
            weight: self.noise_of(share * math.sqrt(weight)) for weight in set(weights.values())
        }
        left = {
            pair: expect_error(tables[pair], noise[weights[pair]])
            * math.sqrt(find_joint_share(model.domain, pair))
            for pair in said
        }
        penalties = {p: math.hypot(_ROUND_PENALTY * left[p], doubts[p]) for p in said}
        # No pair is further from its columns than one that follows them wholly.
        sizes = {pair: min(model.domain[name] for name in pair) for pair in said}
        open_ones = [p for p in said if penalties[p] < 2.0 * model.total * (1.0 - 1.0 / sizes[p])]
        if not open_ones:
            return []
        n = min(n, len(open_ones))
        price = self.take_price(n * _CHOICE_PART * share)
        lift = _PAIR_LIFT * self.find_scale(price.share(1.0 / n)) * math.log(len(open_ones))
        penalties = {pair: penalties[pair] + min(lift, left[pair]) for pair in open_ones}
        earlier, self.choices = self.choices, []
        open_tables = {pair: said[pair] for pair in open_ones}
        taken = self.choose(open_tables, penalties, weights, n, price)
        if len(taken) == n:  # only a choice that ends by itself says something of what it leaves
            self.choices = earlier
        else:
            # Which round is the last of that kind is an outcome. The i-th gets the part
            # 1 / (i (i + 1)) of what may go wrong, so all of them together go wrong no more often.
            (last,) = self.choices
            n_candidates = last.n_candidates * index * (index + 1)
            self.choices = [replace(last, n_candidates=n_candidates)]
        return taken

    def choose_pairs_once(
        self, tables: Mapping[Clique, Vector], model: Model, n: int
    ) -> list[Clique]:
        """At most n pairs, one by one and then many at once, for one choice of each kind."""
        doubts, share = self.find_pair_doubts(tables, model), _PAIR_CHOICE_SHARE
        offer = _Offer(self.candidates.pairs, doubts, _PAIR_PENALTY, _PAIR_LIFT, share, n, 0)
        one_by_one = self.count_choices(_ONES_PART * share, n, model.total)
        return self.choose_two_ways(tables, offer, one_by_one, n)

    def find_pair_doubts(self, pairs: Iterable[Clique], model: Model) -> dict[Clique, float]:
        """How far each pair is off already because its columns are not known exactly."""
        off = self.find_single_doubts(model)
        return {pair: math.hypot(*(off[name] for name in pair)) for pair in pairs}

    def find_single_doubts(self, model: Model) -> dict[str, float]:
        """How far each column is off by all counts that were measured of it."""
        precision = dict.fromkeys(self.candidates.singles, 0.0)
        for each in self.measurements:
            if isinstance(each.query, Identity):
                n_cells = self.curator.domain.size_of(each.clique)
                for name in each.clique:
                    n_summed = n_cells // self.curator.domain[name]
                    precision[name] += 1.0 / (n_summed * float(each.stddev) ** 2)
        mean_absolute = self.whole.noise.mean_absolute
        return {
            name: expect_error(model.one_way(name), mean_absolute(known**-0.5))
            for name, known in precision.items()
        }

    def choose_triples(
        self, model: Model, pairs: Mapping[Clique, Vector], n: int
    ) -> dict[Clique, Vector]:
        """Triples that the pairs do not explain, as the model has them: n, then many at once."""
        n_tables = max(len(pairs), len(self.candidates.singles))
        tables = find_triple_tables(model, self.candidates.triples, pairs, self.merging)
        noise = self.noise_of((self.left - self.shares.triple_choice) / n_tables)
        clear = {
            triple: table
            for triple, table in tables.items()
            if expect_error(table, noise) <= _MAX_DARK * model.total
        }
        if not clear:
            return {}
        known = {pair: self.noise_of(self.spent.get(pair, _NEGLIGIBLE)) for pair in pairs}
        off = {p: self.expect_joint_error(p, table, known[p]) for p, table in pairs.items()}
        in_pairs = {name for pair in pairs for name in pair}  # these are known better from there
        singles = self.find_single_doubts(model)
        off |= {(name,): doubt for name, doubt in singles.items() if name not in in_pairs}
        doubts = {
            triple: math.hypot(
                *(off.get(part, 0.0) for n in (1, 2) for part in combinations(triple, n))
            )
            for triple in clear
        }
        offer = _Offer(
            self.candidates.triples, doubts, _TRIPLE_PENALTY, _TRIPLE_LIFT,
            self.shares.triple_choice, n_tables, n_tables,
            0.0 if pairs else sum(self.spent[(name,)] for name in singles) / len(singles),
        )  # fmt: skip
        chosen = self.choose_two_ways(clear, offer, min(n, len(clear)), len(clear))
        return {triple: clear[triple] for triple in chosen}

    def choose_two_ways(
        self, tables: Mapping[Clique, Vector], offer: _Offer, n: int, max_tables: int
    ) -> list[Clique]:
        """Tables that are off: at most n one by one, then, within the limit, many at once.

        One by one, a table must be off by what the noise of the choice lifts the best of so many,
        unless measuring it for nothing would harm less.
        """
        chosen = self.choose_ones(tables, offer, n) if n > 0 else []
        rest = {clique: table for clique, table in tables.items() if clique not in set(chosen)}
        if rest and len(chosen) < max_tables:
            share = (_GROUP_PART if n > 0 else 1.0) * offer.share
            offer = offer._replace(share=share, n_beside=offer.n_beside + len(chosen))
            chosen += self.choose_group(rest, offer, max_tables - len(chosen))
        return chosen

    def choose_ones(self, tables: Mapping[Clique, Vector], offer: _Offer, n: int) -> list[Clique]:
        """At most n tables, one by one."""
        noise = self.noise_of((self.left - offer.share) / offer.n_sharing)
        price = self.take_price(_ONES_PART * offer.share)
        weights = {clique: offer.weights[clique] for clique in tables}
        lift = offer.lift * self.find_scale(price.share(1.0 / n)) * math.log(len(tables))
        lift *= max(weights.values())
        penalties = {
            clique: self.find_penalty(clique, table, offer, noise)
            + min(lift / weights[clique], self.expect_joint_error(clique, table, noise))
            for clique, table in tables.items()
        }
        return self.choose(tables, penalties, weights, n, price)

    def find_penalty(self, clique: Clique, table: Vector, offer: _Offer, noise: float) -> float:
        """How far a table must be off to be worth measuring, by what is in doubt already."""
        return math.hypot(
            offer.penalty * self.expect_joint_error(clique, table, noise), offer.doubts[clique]
        )

    def choose_group(
        self, tables: Mapping[Clique, Vector], offer: _Offer, max_tables: int
    ) -> list[Clique]:
        """As many of the tables as are worth it together: those that noise hurts least, or none.

        One by one, the noise of a choice may hide what each of hundreds would gain; their mean is
        known far better. Groups are the best eighth, quarter, ..., or all, by what measuring
        would leave of them. Where all that is known is columns, a group takes from what these get,
        and all tables rest on them: that counts against it.
        """
        weights = {clique: offer.weights[clique] for clique in tables}
        price, whole = self.take_price(offer.share), sum(weights.values())
        noise = self.noise_of(self.left / (offer.n_beside + len(tables)))
        errors = {c: self.expect_joint_error(c, table, noise) for c, table in tables.items()}
        ranked = sorted(tables, key=lambda clique: errors[clique])[:max_tables]
        sizes = sorted({math.ceil(len(ranked) / 2**half) for half in range(_N_GROUPS)})
        lift = self.find_group_lift(price, _N_GROUPS)
        doubt = sum(weights[clique] * offer.doubts[clique] for clique in tables)
        groups, penalties = [list[Clique]()], [0.0]
        for size in sizes:
            noise = self.noise_of(self.left / (offer.n_beside + size))
            left = [
                weights[clique] * self.find_penalty(clique, tables[clique], offer, noise)
                for clique in ranked[:size]
            ]
            groups.append(ranked[:size])
            lost = self.expect_dilution(offer, size) * doubt
            penalties.append((sum(left) + lost) / whole + lift)
        score = GroupError(
            tables, groups, penalties, weights=weights, queries=self.merging.queries(tables)
        )
        return groups[self.curator.select(score, price)]

    def expect_dilution(self, offer: _Offer, n: int) -> float:
        """How much larger doubts will be, as a share of them now, if n more tables are measured.

        With noise of deviation 8 so far, the tables beside get to 4 without and to 5 with a group:
        an eighth.
        """
        if offer.known_share == 0.0:
            return 0.0
        now, alone, shared = (
            self.noise_of(offer.known_share + more)
            for more in (0.0, self.left / offer.n_beside, self.left / (offer.n_beside + n))
        )
        return (shared - alone) / now

    def find_group_lift(self, price: Price, n: int) -> float:
        """What groups are off by beyond their penalties, so that noise alone seldom takes one of n.

        Where none is worth anything, one in `_GROUP_DOUBT` choices takes one all the same.
        """
        return self.find_scale(price) * math.log(_GROUP_DOUBT * n)

    def take_price(self, share: float) -> Price:
        """A share of the whole price, which is spent now."""
        self.left -= share
        return self.spending.take(self.whole.share(share))

    def find_scale(self, price: Price) -> float:
        """The scale of the noise of a choice for that price, by scores of weight 1."""
        return 2.0 * self.curator.neighbours.count_moves / price.selection_epsilon

    def choose(
        self,
        tables: Mapping[Clique, Vector],
        penalties: Mapping[Clique, float],
        weights: Mapping[Clique, float],
        n: int,
        price: Price,
    ) -> list[Clique]:
        """At most n tables that are off by more than their penalties."""
        own = {clique: weights[clique] for clique in tables}
        score = MarginalError(
            tables,
            penalties=penalties,
            weights=None if min(own.values()) == 1.0 else own,
            queries=self.merging.queries(tables),
        )
        taken = self.curator.select_many(score, n, price, floor=0.0)
        # A distance of merged tables proves nothing of whole ones.
        whole = {c: table for c, table in tables.items() if self.merging.query(c) is None}
        if len(taken) < n or taken[-1] in whole:
            self.choices.append(self.describe_choice(score, whole, taken, (n, len(tables)), price))
        return taken

    def describe_choice(
        self, score: MarginalError, tables: Mapping[Clique, Vector], taken: list[Clique],
        numbers: tuple[int, int], price: Price,
    ) -> Choice:  # fmt: skip
        """The last of the choices: of a table, or of none, among those that were left."""
        n, n_tables = numbers
        ended = len(taken) < n
        before = taken if ended else taken[:-1]
        return Choice(
            tables,
            score.penalties,
            score.weights,
            score.find_noise_scale(price.share(1.0 / n).selection_epsilon, self.curator.neighbours),
            n_tables - len(before) + 1,
            None if ended else taken[-1],
            frozenset(before),
        )

    def count_choices(self, share: float, n: int, total: float) -> int:
        """How many choices, up to n, have little noise beside the records for a share of the price.

        The noise of each grows with their number: all are halved until it is small enough.
        """
        moves = self.curator.neighbours.count_moves
        while n > 0:
            epsilon = self.whole.share(share / n).selection_epsilon
            if 2.0 * moves / epsilon <= _MAX_CHOICE_NOISE * total:
                break
            n //= 2
        return n

    def noise_of(self, share: float) -> float:
        """The mean absolute noise on a count that is measured for a share of the price."""
        price = self.whole.share(share)
        return price.noise.mean_absolute(price.cell_stddev(self.curator.neighbours))

    def measure(self, shares: Mapping[Clique, float]) -> None:
        """Measure tables, each for a share of the price."""
        shares = {clique: share for clique, share in shares.items() if share > _NEGLIGIBLE}
        requests = [
            Request(clique, self.spending.take(self.whole.share(share)), self.find_query(clique))
            for clique, share in shares.items()
        ]
        for clique, share in shares.items():
            self.left -= share
            self.spent[clique] = self.spent.get(clique, 0.0) + share
        self.measurements = combine([*self.measurements, *self.curator.measure_all(requests)])

    def find_query(self, clique: Clique) -> Kron | None:
        """What is measured of a clique; None where it is every count."""
        merged, domain = self.merging.query(clique), self.curator.domain
        one_by_one = len(clique) < 2 or not self.by_contrasts
        if merged is not None or one_by_one or min(domain[name] for name in clique) < 2:
            return merged
        return make_residual_query(domain, clique)

    def fit(self, n_records: int) -> Estimate:
        """Fit everything so far, with about so many records where it takes records."""
        total = find_total(self.curator, self.measurements)
        domain = self.curator.domain
        return self.fitter.fit(domain, self.measurements, total, n_records, self.watch)
