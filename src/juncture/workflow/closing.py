"""From an open schema to a closed one: bins that are found privately, for a share of the budget.

Everything about it is decided without data (`plan_closing`): what is measured, what it costs, what
is left for the mechanism. Then the curator measures, and what it says makes the columns.

Privacy. Every measurement goes through the curator, which charges it to the ledger: each count of a
level of a tree changes by at most 1 between tables that differ in one record, so a level is one
measurement of disjoint counts, and levels compose. Bins, edges, fine histograms, and what these say
of the counts of the bins, are post-processing of the noisy counts. What the mechanism does
afterwards is chosen after seeing them, which adaptive composition allows: shares of one price add
up to that price.

Values that are found (`juncture.privacy.threshold`) need a delta beside their price. They get a
share of the budget's; the price of everything is what the rest of the delta allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from juncture._util.watch import Watch
from juncture.errors import InvalidInput
from juncture.mechanisms.binning import choose_bins, make_nonnegative
from juncture.mechanisms.mechanism import refuse_useless
from juncture.mechanisms.range_strategy import RangeStrategy, choose_strategy
from juncture.privacy.accounting import Cost, Neighbours, rho_of_epsilon
from juncture.privacy.budget import Budget
from juncture.privacy.price import ZCDP, Price
from juncture.privacy.request import Request
from juncture.privacy.threshold import Threshold
from juncture.publish.found import Found, FoundColumn
from juncture.tables.columns import Open, OpenBins, OpenCategorical
from juncture.tables.columns.open import Closed
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Buckets, Identity, Matrix
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from juncture.private.curator import Curator

Array = NDArray[np.float64]

# The share of the budget for each open column, and for all of them together.
_SHARE_EACH, _MAX_SHARE = 0.02, 0.2
# The share of the budget's delta for all columns with private values. A tenth makes the threshold
# hardly higher than all of it would, and leaves nearly all of it to the noise.
_DELTA_SHARE, _ROUNDING = 0.1, 1e-9


@dataclass(frozen=True)
class ClosedSchema:
    """What has become of an open schema."""

    schema: Schema
    codes: Mapping[str, tuple[int, ...]]
    """For columns with private bins, what each code of the open column has become."""
    found: tuple[FoundColumn, ...]
    measurements: tuple[Measurement, ...]
    """What is known of the closed columns: the model follows it too."""


class ClosedColumn(NamedTuple):
    """What has become of one open column."""

    closed: Closed
    found: FoundColumn
    measurement: Measurement | None = None
    """What is known of its counts, if anything is."""


class ColumnPlan(Protocol):
    """How one open column will be closed."""

    @property
    def name(self) -> str:
        """The column's."""

    @property
    def costs(self) -> list[Cost]:
        """The cost of every event."""

    @property
    def fact(self) -> str:
        """What will be measured, in words."""

    def close(self, curator: Curator) -> ClosedColumn:
        """Measure through a curator, and make a closed column of the answers."""


@dataclass(frozen=True)
class BinsPlan:
    """How the bins of one column will be found."""

    name: str
    column: OpenBins
    price: Price
    strategy: RangeStrategy

    @property
    def costs(self) -> list[Cost]:
        """See `ColumnPlan.costs`."""
        return [request.price.cost for request in self.requests]

    @property
    def fact(self) -> str:
        """See `ColumnPlan.fact`."""
        noise = f"a range is off by {self.strategy.error:.3g} records"
        return f"{self.strategy.description}, for {self.price}: {noise}"

    @property
    def order(self) -> NDArray[np.int64]:
        """All codes: the cells in the order of their numbers, then those without a place there."""
        cells = np.array([cell.code for cell in self.column.cells])
        return np.concatenate([cells, np.setdiff1d(np.arange(self.column.coding.size), cells)])

    @property
    def requests(self) -> list[Request]:
        """What to ask a curator for."""
        ranks = np.argsort(self.order)
        return [
            Request((self.name,), self.price.share(query.share), _on_codes(query.block, ranks))
            for query in self.strategy.queries
        ]

    def close(self, curator: Curator) -> ClosedColumn:
        """See `ColumnPlan.close`."""
        requests = self.requests
        measured = curator.measure_all(requests)
        estimate = self.strategy.estimate(measured)
        masses = make_nonnegative(estimate[: len(self.column.cells)])
        chosen = choose_bins(masses, self.column.max_bins, range_noise=self.strategy.error)
        closed = self.column.close(chosen.bins, chosen.pieces, masses.tolist())
        found = FoundColumn(
            name=self.name, what=Found.BINS, how=self.strategy.description,
            n_found=len(chosen.bins), noise=self.strategy.error, cost=self.price.cost,
            n_events=len(requests),
        )  # fmt: skip
        return ClosedColumn(closed, found, self._sum_up(estimate, measured, closed))

    def _sum_up(
        self, estimate: Array, measured: Sequence[Measurement], closed: Closed
    ) -> Measurement:
        """What the cells say of the counts of the bins, as answers with independent noise.

        The estimated counts of the bins have a covariance C. With L L' the inverse of C, the
        answers L'b of the counts b have noise of variance 1 each, and no covariance; for ranges of
        bins they say what the tree says, which is more than counts of the same price would. They
        are scaled to the noise of a bin, so that it can be read beside that of counts.
        """
        codes = np.asarray(closed.codes)[self.order]
        sums = np.bincount(codes, weights=estimate, minlength=closed.column.coding.size)
        covariance = self.strategy.covariance(measured, codes)
        stddev = float(np.sqrt(np.diag(covariance).mean()))
        rows = stddev * np.linalg.cholesky(np.linalg.inv(covariance)).T
        return Measurement((self.name,), rows @ sums, stddev=stddev, query=Matrix(rows))


@dataclass(frozen=True)
class ValuesPlan:
    """How the values of one column will be found."""

    name: str
    column: OpenCategorical
    threshold: Threshold

    @property
    def costs(self) -> list[Cost]:
        """See `ColumnPlan.costs`."""
        return [self.threshold.cost]

    @property
    def fact(self) -> str:
        """See `ColumnPlan.fact`."""
        price = f"{self.threshold.price}, delta {self.threshold.delta:.3g}"
        return f"values of at least {self.threshold.value:,} records by a noisy count, for {price}"

    def close(self, curator: Curator) -> ClosedColumn:
        """See `ColumnPlan.close`."""
        values, counts = curator.find_values(self.name, self.threshold)
        if len(values) > self.column.max_values:  # the most frequent ones
            ranked = np.argsort(-counts, kind="stable")[: self.column.max_values]
            values = [values[index] for index in sorted(ranked.tolist())]
        found = FoundColumn(
            name=self.name, what=Found.VALUES, how="values that enough records have",
            n_found=len(values), noise=self.threshold.scale, cost=self.threshold.cost, n_events=1,
            threshold=self.threshold.value,
        )  # fmt: skip
        return ClosedColumn(Closed(self.column.with_values(values), ()), found)


def _on_codes(block: Block, ranks: NDArray[np.int64]) -> Block:
    """A block on cells in order as one on codes, which have these ranks; its rows stay in order."""
    n_codes = len(ranks)
    match block:
        case Identity():
            in_order = bool((ranks == np.arange(n_codes)).all())
            return Identity() if in_order else Buckets(ranks.tolist())
        case Buckets():
            return Buckets(np.asarray(block.assignment)[ranks].tolist())
        case _:
            return Matrix(block.matrix(n_codes)[:, ranks])


@dataclass(frozen=True)
class ClosingPlan:
    """How the open columns of a schema will be closed: all that is known without data."""

    schema: Schema
    columns: tuple[ColumnPlan, ...]
    budget: Budget
    """Of the whole release."""
    rest: Budget
    """What is left for the mechanism."""

    @property
    def costs(self) -> list[Cost]:
        """The cost of every event, in order."""
        return [cost for column in self.columns for cost in column.costs]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """For each open column, what will be measured, in words."""
        return [(column.name, column.fact) for column in self.columns]

    def run(self, curator: Curator, watch: Watch) -> ClosedSchema:
        """Close every column, through a curator of the table under the open schema."""
        made = dict[str, ClosedColumn]()
        for index, column in enumerate(self.columns):
            watch("finding bins and values", index, len(self.columns))
            made[column.name] = column.close(curator)
        columns = {name: each.closed.column for name, each in made.items()}
        return ClosedSchema(
            replace(self.schema, columns={**self.schema.columns, **columns}),
            {name: each.closed.codes for name, each in made.items() if each.closed.codes},
            tuple(each.found for each in made.values()),
            tuple(each.measurement for each in made.values() if each.measurement is not None),
        )


def plan_closing(
    schema: Schema, budget: Budget, neighbours: Neighbours, share: float | None = None
) -> ClosingPlan:
    """How the open columns of a schema would be closed under a budget; nothing for a closed one.

    - `share`: the share of the budget for all open columns together; by default two hundredths for
      each, and at most a fifth.
    """
    n_open = len(schema.open_columns)
    if share is not None and not 0.0 < share < 1.0:
        raise InvalidInput(f"`binning_share` must be above 0 and below 1; got {share}.")
    if not n_open:
        return ClosingPlan(schema, (), budget, budget)
    _refuse_known(schema)
    _refuse_rules(schema)
    used = min(_SHARE_EACH * n_open, _MAX_SHARE) if share is None else share
    whole, delta = _divide_delta(schema, budget)
    each = whole.share(used / n_open)
    columns = tuple(
        _plan_column(name, column, each, delta, neighbours)
        for name, column in schema.open_columns.items()
    )
    return ClosingPlan(schema, columns, budget, _budget_of(whole.share(1.0 - used)))


def _refuse_known(schema: Schema) -> None:
    """Refuse known totals of columns whose bins or values nobody knows yet."""
    names = [name for each in schema.known for name in each.columns if name in schema.open_columns]
    if names:
        raise InvalidInput(
            f"`known` must not be about columns with private bins or values; got {names[0]!r}. "
            "Write its bins or values into the schema, or leave the totals out."
        )


def _divide_delta(schema: Schema, budget: Budget) -> tuple[Price, float]:
    """The price of everything, and the delta for each column with private values.

    These have a share of the budget's delta; the price is the largest rho that the rest allows.
    """
    names = [n for n, column in schema.open_columns.items() if isinstance(column, OpenCategorical)]
    if not names:
        return budget.price, 0.0
    if budget.epsilon is None or budget.delta is None:
        raise InvalidInput(
            f"`budget` must have an epsilon and a delta where values are private; got {budget} for "
            f"{names[0]!r}. Give a delta well below one in the number of records (--delta 1e-9), "
            "or list the values in the schema."
        )
    rho = rho_of_epsilon(budget.epsilon, budget.delta * (1.0 - _DELTA_SHARE))
    return ZCDP(rho), budget.delta * _DELTA_SHARE * (1.0 - _ROUNDING) / len(names)


def _refuse_rules(schema: Schema) -> None:
    """Refuse rules about values that may or may not be found."""
    names = {n for n, each in schema.open_columns.items() if isinstance(each, OpenCategorical)}
    for zeros in schema.zeros if names else ():
        found = names.intersection(zeros.clique)
        if found:
            raise InvalidInput(
                f"`never` must not be about columns with private values; got {min(found)!r}. List "
                "its values in the schema, or leave the rule out."
            )


def _plan_column(
    name: str, column: Open, price: Price, delta: float, neighbours: Neighbours
) -> ColumnPlan:
    match column:
        case OpenCategorical():
            return ValuesPlan(name, column, Threshold.of(price, delta, neighbours))
        case OpenBins():
            strategy = choose_strategy(column.coding.size, price, neighbours)
            refuse_useless(strategy.error)
            return BinsPlan(name, column, price, strategy)
        case _:
            raise InvalidInput(f"`schema` must have open columns of known kinds; got {name!r}.")


def _budget_of(price: Price) -> Budget:
    """The budget that is one price."""
    return Budget(rho=price.amount) if isinstance(price, ZCDP) else Budget(epsilon=price.amount)
