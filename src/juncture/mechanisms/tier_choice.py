"""How a run of `Tiers` chooses tables from many: some one by one, then as many as are worth it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from juncture.mechanisms.tier_state import TierState
from juncture.privacy.price import Price
from juncture.privacy.score import GroupError
from juncture.tables.domain import Clique
from juncture.tables.layout import Vector

# The parts of the price of a choice: one by one, and many at once, of so many groups.
ONES_PART, _GROUP_PART, N_GROUPS = 0.5, 0.5, 4
# Where no group is worth anything, one in so many choices takes one all the same.
_GROUP_DOUBT = 10
# A choice whose own noise is more than this share of the records is not worth its price.
_MAX_CHOICE_NOISE = 0.05


class Offer(NamedTuple):
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


class TierChooser:
    """What chooses tables by how far the model is off, for a run's money."""

    def __init__(self, state: TierState) -> None:
        self.state = state

    def choose_two_ways(
        self, tables: Mapping[Clique, Vector], offer: Offer, n: int, max_tables: int
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

    def choose_ones(self, tables: Mapping[Clique, Vector], offer: Offer, n: int) -> list[Clique]:
        """At most n tables, one by one."""
        noise = self.state.noise_of((self.state.left - offer.share) / offer.n_sharing)
        price = self.state.take_price(ONES_PART * offer.share)
        weights = {clique: offer.weights[clique] for clique in tables}
        lift = offer.lift * self.state.find_scale(price.share(1.0 / n)) * math.log(len(tables))
        lift *= max(weights.values())
        penalties = {
            clique: self.find_penalty(clique, table, offer, noise)
            + min(lift / weights[clique], self.state.expect_joint_error(clique, table, noise))
            for clique, table in tables.items()
        }
        taken = self.state.choose(tables, penalties, weights, n, price)
        if taken.last is not None:
            self.state.choices.append(taken.last)
        return taken.cliques

    def choose_group(
        self, tables: Mapping[Clique, Vector], offer: Offer, max_tables: int
    ) -> list[Clique]:
        """As many of the tables as are worth it together: those that noise hurts least, or none.

        One by one, the noise of a choice may hide what each of hundreds would gain; their mean is
        known far better. Groups are the best eighth, quarter, ..., or all, by what measuring
        would leave of them. Where all that is known is columns, a group takes from what these get,
        and all tables rest on them: that counts against it.
        """
        weights = {clique: offer.weights[clique] for clique in tables}
        price, whole = self.state.take_price(offer.share), sum(weights.values())
        noise = self.state.noise_of(self.state.left / (offer.n_beside + len(tables)))
        errors = {c: self.state.expect_joint_error(c, table, noise) for c, table in tables.items()}
        ranked = sorted(tables, key=lambda clique: errors[clique])[:max_tables]
        sizes = sorted({math.ceil(len(ranked) / 2**half) for half in range(N_GROUPS)})
        lift = self.find_group_lift(price, N_GROUPS)
        doubt = sum(weights[clique] * offer.doubts[clique] for clique in tables)
        groups, penalties = [list[Clique]()], [0.0]
        for size in sizes:
            noise = self.state.noise_of(self.state.left / (offer.n_beside + size))
            left = [
                weights[clique] * self.find_penalty(clique, tables[clique], offer, noise)
                for clique in ranked[:size]
            ]
            groups.append(ranked[:size])
            lost = self.expect_dilution(offer, size) * doubt
            penalties.append((sum(left) + lost) / whole + lift)
        score = GroupError(
            tables, groups, penalties, weights=weights, queries=self.state.merging.queries(tables)
        )
        return groups[self.state.curator.select(score, price)]

    def find_penalty(self, clique: Clique, table: Vector, offer: Offer, noise: float) -> float:
        """How far a table must be off to be worth measuring, by what is in doubt already."""
        return math.hypot(
            offer.penalty * self.state.expect_joint_error(clique, table, noise),
            offer.doubts[clique],
        )

    def expect_dilution(self, offer: Offer, n: int) -> float:
        """How much larger doubts will be, as a share of them now, if n more tables are measured.

        With noise of deviation 8 so far, the tables beside get to 4 without and to 5 with a group:
        an eighth.
        """
        if offer.known_share == 0.0:
            return 0.0
        now, alone, shared = (
            self.state.noise_of(offer.known_share + more)
            for more in (
                0.0,
                self.state.left / offer.n_beside,
                self.state.left / (offer.n_beside + n),
            )
        )
        return (shared - alone) / now

    def find_group_lift(self, price: Price, n: int) -> float:
        """What groups are off by beyond their penalties, so that noise alone seldom takes one of n.

        Where none is worth anything, one in `_GROUP_DOUBT` choices takes one all the same.
        """
        return self.state.find_scale(price) * math.log(_GROUP_DOUBT * n)

    def count_choices(self, share: float, n: int, total: float) -> int:
        """How many choices, up to n, have little noise beside the records for a share of the price.

        The noise of each grows with their number: all are halved until it is small enough.
        """
        moves = self.state.curator.neighbours.count_moves
        while n > 0:
            epsilon = self.state.whole.share(share / n).selection_epsilon
            if 2.0 * moves / epsilon <= _MAX_CHOICE_NOISE * total:
                break
            n //= 2
        return n
