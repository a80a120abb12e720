"""The pairs that a run of `Tiers` measures with Gaussian noise: chosen in rounds of falling noise.

A round chooses some pairs that the model gets more wrong than measuring would leave them, and
measures them; then a model is fitted. Noise is large at first, so that only what stands out is
chosen, and what it explains is left alone. A round that finds fewer than it might is followed by
one with half the variance, until an even share of what is left would not buy less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from juncture.mechanisms.tier_state import TierState
from juncture.mechanisms.tier_tables import expect_error, find_joint_share
from juncture.model.model import Model
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

# A pair must be off by this share of what measuring would leave, and by so much of what noise
# lifts the best of m candidates: its scale times the logarithm of m.
_PENALTY, PAIR_LIFT = 0.75, 0.5
# A pair of the first rounds gets this part of a column's even share, later ones twice as much.
_FIRST_PART, _GROWTH = 1.0 / 16.0, 2.0
# A choice costs this part of a measurement of a whole table: its noise is three times as large.
_CHOICE_PART = 1.0 / 9.0
# A round spends at most this part of what is left.
_MAX_ROUND_PART = 0.9
# A round chooses so many pairs for each column, or for each pair that was chosen before.
_PER_COLUMN, _PER_PAIR = 0.5, 1.0


def count_rounds(max_pairs: int, n_columns: int) -> int:
    """How many rounds there are at most: each chooses a pair, or the next one pays more.

    >>> count_rounds(15, 6)
    22
    """
    n_levels = math.ceil(math.log(n_columns / _FIRST_PART, _GROWTH))
    return max_pairs + n_levels


class PairRounds:
    """The rounds of one run.

    - `part`: of what is left after all rounds, the part that pairs and columns will share.
    """

    def __init__(self, state: TierState, max_pairs: int, part: float) -> None:
        self.state, self.max_pairs, self.part = state, max_pairs, part

    def choose(self, tables: Mapping[Clique, Vector], model: Model) -> list[Clique]:
        """The pairs that are worth measuring, measured once.

        - `tables`: what they would be if their columns were independent.
        """
        n = min(self.max_pairs, len(tables))
        chosen, n_columns = list[Clique](), len(self.state.candidates.singles)
        share, said, is_fitted = _FIRST_PART / n_columns, dict(tables), True
        for index in count(1):
            if not said or len(chosen) >= n or share > self.find_even_share(chosen):
                break
            if not is_fitted:
                model = self.state.fit_answering()
                answers = map(self.state.merging.count, model.project_many(list(said)))
                said, is_fitted = dict(zip(said, answers, strict=True)), True
            batch = math.ceil(max(_PER_COLUMN * n_columns, _PER_PAIR * len(chosen)))
            batch = min(batch, len(said), n - len(chosen), self.count_affordable(share))
            if batch == 0:
                break
            taken = self.choose_round(index, said, tables, model, share, batch)
            if taken:
                chosen, is_fitted = chosen + taken, False
                self.state.measure({pair: share * self.find_cost(pair) for pair in taken})
                said = {pair: said[pair] for pair in said if pair not in set(taken)}
            if len(taken) < batch:
                share *= _GROWTH
        return chosen

    def find_even_share(self, pairs: Sequence[Clique]) -> float:
        """What a pair could still get if columns and pairs shared what is left for them evenly."""
        n_tables = sum(map(self.find_cost, pairs))
        return self.part * self.state.left / (n_tables + len(self.state.candidates.singles))

    def find_cost(self, pair: Clique) -> float:
        """What a pair gets in a round, beside a whole table of weight 1.

        Contrasts cost a part of it. The best shares go by the roots of needs, so of weights.
        """
        weight = self.state.candidates.pairs[pair]
        return find_joint_share(self.state.curator.domain, pair) * math.sqrt(weight)

    def count_affordable(self, share: float) -> int:
        """How many pairs may be chosen and measured for a share each, so that something is left."""
        return int(_MAX_ROUND_PART * self.state.left / (share * (1.0 + _CHOICE_PART)))

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
        doubts, weights = self.state.find_pair_doubts(said, model), self.state.candidates.pairs
        noise_of = self.state.noise_of
        noise = {weight: noise_of(share * math.sqrt(weight)) for weight in set(weights.values())}
        left = {
            pair: expect_error(tables[pair], noise[weights[pair]])
            * math.sqrt(find_joint_share(model.domain, pair))
            for pair in said
        }
        penalties = {p: math.hypot(_PENALTY * left[p], doubts[p]) for p in said}
        # No pair is further from its columns than one that follows them wholly.
        sizes = {pair: min(model.domain[name] for name in pair) for pair in said}
        open_ones = [p for p in said if penalties[p] < 2.0 * model.total * (1.0 - 1.0 / sizes[p])]
        if not open_ones:
            return []
        n = min(n, len(open_ones))
        price = self.state.take_price(n * _CHOICE_PART * share)
        lift = PAIR_LIFT * self.state.find_scale(price.share(1.0 / n)) * math.log(len(open_ones))
        penalties = {pair: penalties[pair] + min(lift, left[pair]) for pair in open_ones}
        open_tables = {pair: said[pair] for pair in open_ones}
        taken = self.state.choose(open_tables, penalties, weights, n, price)
        if len(taken.cliques) < n and taken.last is not None:
            # Only a choice that ends by itself says something of what it leaves. Which round is the
            # last of that kind is an outcome: the i-th gets the part 1 / (i (i + 1)) of what may go
            # wrong, so all of them together go wrong no more often.
            n_candidates = taken.last.n_candidates * index * (index + 1)
            self.state.choices = [replace(taken.last, n_candidates=n_candidates)]
        return taken.cliques
