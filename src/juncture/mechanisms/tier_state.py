"""What a run of `Tiers` has measured, chosen and spent so far, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from juncture._util.watch import Watch
from juncture.fit.estimation import Estimate
from juncture.fit.selection_proof import Choice
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.mwem_state import find_total
from juncture.mechanisms.rare_values import Merging
from juncture.mechanisms.residual_planner import make_residual_query
from juncture.mechanisms.spending import Spending
from juncture.mechanisms.tier_fit import FIRST_RECORDS, TierFitter
from juncture.mechanisms.tier_tables import (
    TierCandidates,
    combine,
    expect_error,
    find_joint_share,
)
from juncture.model.model import Model
from juncture.privacy.price import Price
from juncture.privacy.request import Request
from juncture.privacy.score import MarginalError
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron

if TYPE_CHECKING:  # a mechanism never makes a curator: it is given one
    from juncture.private.curator import Curator

# The records that answer for a fit between choices, and all values of these are no more than that.
ANSWERING_RECORDS, _ANSWERING_VALUES = 400_000, 20_000_000
NEGLIGIBLE = 1e-7
"""A share of the price that is not worth an event."""
# Of a column with more values, all but the number of records costs hardly less than all counts.
_MAX_CONTRASTED = 100


class Taken(NamedTuple):
    """The tables that a choice took, one by one."""

    cliques: list[Clique]
    last: Choice | None
    """What its last step bounds, if that is anything."""


class TierState:
    """What was measured and chosen, what it cost, and what is left of the price."""

    def __init__(
        self, curator: Curator, whole: Price, candidates: TierCandidates, fitter: TierFitter,
        watch: Watch, merge_rare: MergeRare,
    ) -> None:  # fmt: skip
        self.curator, self.whole, self.candidates = curator, whole, candidates
        self.fitter, self.watch = fitter, watch
        self.spending, self.left = Spending(whole), 1.0
        self.spent = dict[Clique, float]()
        """The share of the price that was spent on each table so far."""
        self.measurements: list[Measurement] = []
        self.choices: list[Choice] = []
        """What the choices bound, where they bound anything."""
        self.merging = Merging(curator.domain, merge_rare)

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

    def find_pair_doubts(self, pairs: Iterable[Clique], model: Model) -> dict[Clique, float]:
        """How far each pair is off already because its columns are not known exactly."""
        off = self.find_single_doubts(model)
        return {pair: math.hypot(*(off[name] for name in pair)) for pair in pairs}

    def find_single_doubts(self, model: Model) -> dict[str, float]:
        """How far each column is off by all that was measured of it."""
        precision = dict.fromkeys(self.candidates.singles, 0.0)
        for each in self.measurements:
            if len(each.clique) == 1 or isinstance(each.query, Identity):
                n_cells = self.curator.domain.size_of(each.clique)
                for name in each.clique:
                    n_summed = n_cells // self.curator.domain[name]
                    precision[name] += 1.0 / (n_summed * float(each.stddev) ** 2)
        mean_absolute = self.whole.noise.mean_absolute
        return {
            name: expect_error(model.one_way(name), mean_absolute(known**-0.5))
            for name, known in precision.items()
        }

    def take_price(self, share: float) -> Price:
        """A share of the whole price, which is spent now."""
        self.left -= share
        return self.spending.take(self.whole.share(share))

    def find_scale(self, price: Price) -> float:
        """The scale of the noise of a choice for that price, by scores of weight 1."""
        return 2.0 * self.curator.neighbours.count_moves / price.selection_epsilon

    def noise_of(self, share: float) -> float:
        """The mean absolute noise on a count that is measured for a share of the price."""
        price = self.whole.share(share)
        return price.noise.mean_absolute(price.cell_stddev(self.curator.neighbours))

    def measure(self, shares: Mapping[Clique, float]) -> None:
        """Measure tables, each for a share of the price."""
        shares = {clique: share for clique, share in shares.items() if share > NEGLIGIBLE}
        requests = [
            Request(clique, self.spending.take(self.whole.share(share)), self.find_query(clique))
            for clique, share in shares.items()
        ]
        for clique, share in shares.items():
            self.left -= share
            self.spent[clique] = self.spent.get(clique, 0.0) + share
        self.measurements = combine([*self.measurements, *self.curator.measure_all(requests)])

    def find_query(self, clique: Clique) -> Kron | None:
        """What is measured of a clique; None where it is every count.

        Every column's counts tell the number of records, too. All columns together tell it well
        enough the first time: what is measured of a column again is how its values differ.
        """
        merged, domain = self.merging.query(clique), self.curator.domain
        if not self.by_contrasts or merged is not None or 1 in domain.project(clique).shape:
            return merged
        if len(clique) == 1 and not self.is_contrasted(clique):
            return None
        return make_residual_query(domain, clique)

    def is_contrasted(self, single: Clique) -> bool:
        """Whether measuring a column again asks for all but the number of records."""
        is_known = self.curator.public_n_records is not None  # then it costs as much as all counts
        few = self.curator.domain.size_of(single) <= _MAX_CONTRASTED
        return self.by_contrasts and not is_known and few and single in self.spent

    def fit(self, n_records: int) -> Estimate:
        """Fit everything so far, with about so many records where it takes records."""
        total = find_total(self.curator, self.measurements)
        domain = self.curator.domain
        return self.fitter.fit(domain, self.measurements, total, n_records, self.watch)

    def fit_answering(self) -> Model:
        """A model of everything so far, with enough records to tell how far tables are off."""
        n_records = min(ANSWERING_RECORDS, _ANSWERING_VALUES // len(self.curator.domain))
        return self.fit(FIRST_RECORDS).model.with_records(n_records)

    def choose(
        self,
        tables: Mapping[Clique, Vector],
        penalties: Mapping[Clique, float],
        weights: Mapping[Clique, float],
        n: int,
        price: Price,
    ) -> Taken:
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
        last = None
        if len(taken) < n or taken[-1] in whole:
            last = self.describe_choice(score, whole, taken, (n, len(tables)), price)
        return Taken(taken, last)

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
