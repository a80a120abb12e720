"""What events cost, how costs add up, and how much noise a cost buys.

Notions. Pure epsilon: no outcome is more than e^epsilon times likelier on one of two neighbouring
tables. zCDP with rho: the Renyi divergence of order a is at most rho * a, for every a > 1.
(epsilon, delta): no set of outcomes is more than e^epsilon times likelier, plus delta. That is
weaker than a pure epsilon that fails with probability delta; nothing here claims the latter.

Composition. Epsilons add up; so do rhos. An event of pure epsilon has rho at most epsilon^2 / 2
(Bun and Steinke 2016); selection by the exponential mechanism, whose privacy loss lies in a range
of width epsilon, at most epsilon^2 / 8 (Cesar and Rogers 2021). For (epsilon, delta) two bounds
hold, and the smaller counts: the conversion from zCDP (Canonne, Kamath and Steinke 2020) and the
sum of pure epsilons. Both hold also where events are chosen after seeing earlier answers, as the
holder of a curator may do. The composition of randomised responses, the worst that pure events can
be (Kairouz, Oh and Viswanath 2015; privacy-loss distributions by dp-accounting), is tighter, but
only for costs that are fixed beforehand: `compose_planned_epsilon` is for planning, not for
budgets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.person import Person
from juncture.tables.queries.products import Operator


class Change(StrEnum):
    """What a neighbouring table does to a record, or to all rows of a person."""

    ADD_OR_REMOVE = "add or remove"
    REPLACE = "replace"


@dataclass(frozen=True)
class Neighbours:
    """Which tables count as neighbours: what a release must not distinguish.

    Without a person, neighbours differ in one record. With one, they differ in all rows of one
    person, of which at most `person.max_rows` are counted (see `private.sources.rows`).

    >>> print(Neighbours.REPLACE)
    replace one record
    >>> print(Neighbours.ADD_OR_REMOVE.of(Person("patient", max_rows=4)))
    add or remove one person with up to 4 rows
    """

    change: Change
    person: Person | None = None

    ADD_OR_REMOVE: ClassVar[Neighbours]
    """One record more or less: the number of records is private."""
    REPLACE: ClassVar[Neighbours]
    """One record replaced: the number of records is public."""

    def of(self, person: Person | None) -> Neighbours:
        """The same change, of a person's rows or of a record."""
        return replace(self, person=person)

    @property
    def replaces(self) -> bool:
        """Whether something is replaced, rather than added or removed."""
        return self.change is Change.REPLACE

    @property
    def max_rows(self) -> int:
        """How many counted rows can be added, or removed, between neighbours."""
        return 1 if self.person is None else self.person.max_rows

    @property
    def count_moves(self) -> int:
        """How far the counts of any table lie apart between neighbours, in L1.

        A row moves one cell by 1. At most `max_rows` go, and where something is replaced as many
        come.

        >>> Neighbours.REPLACE.count_moves
        2
        """
        return self.max_rows * (2 if self.replaces else 1)

    @property
    def n_records_is_public(self) -> bool:
        """Whether neighbours have equally many records.

        A replaced person may have had four rows and have one afterwards: only where records are
        replaced does their number stay.
        """
        return self.replaces and self.person is None

    def __str__(self) -> str:
        return f"{self.change} {'one record' if self.person is None else self.person}"

    def to_json(self) -> dict[str, Any]:
        """The relation as entries of a file.

        Programs that know records only do not know the text for persons, and refuse the file.
        """
        if self.person is None:
            return {"neighbours": str(self)}
        return {"neighbours": f"{self.change} one person", "person": self.person.to_json()}

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Neighbours:
        """The relation that `to_json` wrote; refuses anything else.

        >>> print(Neighbours.from_json({"neighbours": "replace one record"}))
        replace one record
        """
        text, person = entries.get("neighbours"), entries.get("person")
        unit = "one record" if person is None else "one person"
        for change in Change:
            if text == f"{change} {unit}":
                return cls(change, None if person is None else Person.parse(dict(person)))
        raise InvalidInput(f"`neighbours` must say what is protected; got {text!r}.")


Neighbours.ADD_OR_REMOVE = Neighbours(Change.ADD_OR_REMOVE)
Neighbours.REPLACE = Neighbours(Change.REPLACE)
RECORD_NEIGHBOURS = (Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE)
"""Those that differ in one record."""


MAX_DRAW_ROUNDS, MAX_ETA = 100_000, 100.0
"""The most earlier records, and the largest eta, of weighted draws (`Curator.draw_queries`)."""


def draw_slack(eta: float, n_earlier: int) -> float:
    """Added to the epsilon of every weighted draw (`Curator.draw_queries`), for rounding.

    An exponent eta (n_earlier share - satisfied) is at most eta n_earlier in size, and is made by
    five operations that each round by at most 2^-53 of such a number, the division by log 2 among
    them; its weight is then off by a factor of at most exp(8 u eta n_earlier) with u = 2^-53, and
    by a few more u from the rounding of the weight itself, which a billionth covers. So is the sum
    of all weights, and both on either of two neighbouring tables: four times.

    >>> draw_slack(2.0, 100) < 1.1e-9
    True
    """
    return 1e-9 + 32.0 * 2.0**-53 * eta * n_earlier


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an event costs in each notion; infinite where it has no such guarantee.

    >>> Cost.pure(0.5)
    Cost(epsilon=0.5, rho=0.125)
    >>> Cost.concentrated(0.125)
    Cost(epsilon=inf, rho=0.125)
    """

    epsilon: float
    rho: float
    delta: float = 0.0
    """The probability outside of which they hold: see `juncture.privacy.threshold`."""

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("rho", self.rho)):
            if not value > 0.0:
                raise InvalidInput(f"`{name}` must be positive; got {value}.")
        if not 0.0 <= self.delta <= 1.0:
            raise InvalidInput(f"`delta` must be between 0 and 1; got {self.delta}.")

    def __repr__(self) -> str:
        delta = f", delta={self.delta}" if self.delta else ""
        return f"Cost(epsilon={self.epsilon}, rho={self.rho}{delta})"

    @classmethod
    def pure(cls, epsilon: float) -> Cost:
        """The cost of an event with pure epsilon."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 2.0)

    @classmethod
    def selection(cls, epsilon: float) -> Cost:
        """The cost of the exponential mechanism."""
        return cls(epsilon=epsilon, rho=epsilon**2 / 8.0)

    @classmethod
    def concentrated(cls, rho: float) -> Cost:
        """The cost of an event with zCDP alone."""
        return cls(epsilon=math.inf, rho=rho)


def compose_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon of these events together, for a delta.

    Deltas of events add up, and what they leave of the delta is for the conversion of the rhos (Bun
    and Steinke 2016, on approximate zCDP).
    """
    if not costs:
        return 0.0
    left = delta - math.fsum(cost.delta for cost in costs)
    if left <= 0.0:
        return math.inf
    bounds = [epsilon_of_rho(math.fsum(cost.rho for cost in costs), left)]
    if all(math.isfinite(cost.epsilon) for cost in costs):
        bounds.append(math.fsum(cost.epsilon for cost in costs))
    return min(bounds)


def compose_planned_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The epsilon of events whose costs are all fixed before the first of them."""
    bound = compose_epsilon(costs, delta)
    if not costs or not all(math.isfinite(cost.epsilon) for cost in costs):
        return bound
    return min(bound, _compose_randomised_responses([cost.epsilon for cost in costs], delta))


def _compose_randomised_responses(epsilons: Sequence[float], delta: float) -> float:
    """The composition of the worst events with these pure epsilons."""
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415  slow to import

    composed = privacy_loss_distribution.identity()
    for epsilon in epsilons:
        parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
        composed = composed.compose(privacy_loss_distribution.from_privacy_parameters(parameters))
    return float(composed.get_epsilon_for_delta(delta))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon, for a delta, that zCDP with rho gives."""
    # Logarithms of the order minus one. A grid is enough: the bound is flat at its minimum.
    logs = np.linspace(-12.0, 12.0, 4001)
    orders = 1.0 + np.exp(logs)
    bound = (
        rho * orders + np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0)
    )
    return max(0.0, float(bound.min()))


def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest rho that stays within (epsilon, delta)."""
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low


def l1_sensitivity(operator: Operator, neighbours: Neighbours) -> float:
    """The most that a neighbouring table changes the answers in L1.

    A row adds its cell's column of the query's matrix to the answers. With k counted rows in which
    neighbours may differ (1 where they differ in a record):

    - added or removed: the sum of at most k columns, so at most k times the largest norm. It is
      attained by k rows in one cell.
    - replaced: the difference of two such sums, so at most 2 k times the largest norm. For a single
      row of entries from a to b: see `_spread`.
    """
    if not neighbours.replaces:
        return neighbours.max_rows * operator.l1_sensitivity
    if operator.n_rows == 1:
        return _spread(operator, neighbours)
    return 2.0 * neighbours.max_rows * operator.l1_sensitivity


def l2_sensitivity(operator: Operator, neighbours: Neighbours) -> float:
    """The most that a neighbouring table changes the answers in L2.

    With k counted rows in which neighbours may differ (1 where they differ in a record):

    - added or removed: the sum of at most k columns, so by the triangle inequality at most k times
      the largest norm: not the square root of k, since all k rows may lie in one cell.
    - replaced: the difference of two such sums s and t, whose squared norm is |s|^2 + |t|^2 - 2 st.
      Without negative entries st is not negative, and the norm at most the square root of 2 times
      k times the largest (attained by columns without a common row, such as different cells).
    """
    if not neighbours.replaces:
        return neighbours.max_rows * operator.l2_sensitivity
    if operator.n_rows == 1:
        return _spread(operator, neighbours)
    factor = math.sqrt(2.0) if _is_nonnegative(operator) else 2.0
    return factor * neighbours.max_rows * operator.l2_sensitivity


def _spread(operator: Operator, neighbours: Neighbours) -> float:
    """How far a replacement moves a single answer.

    A replaced record takes one entry away and adds another: at most the largest minus the smallest.
    A replaced person's rows may become more or fewer, from none to k, so a row that is not there
    counts as an entry of 0; sums of k such entries differ by at most k times their range.
    """
    row = operator.adjoint(np.ones(1))
    if neighbours.person is not None:
        row = np.append(row.reshape(-1), 0.0)
    apart = float(row.max() - row.min()) or float(np.abs(row).max())
    return neighbours.max_rows * apart


def _is_nonnegative(operator: Operator) -> bool:
    """Whether no entry is negative: then columns add up to their sums of absolute values."""
    plain = operator.adjoint(np.ones(operator.n_rows))
    return bool((plain >= operator.column_sums() * (1.0 - 1e-12)).all())
