"""Whether rare values should share counts in a table: by what is expected either way, before it is.

The counts of single columns are known by then, with their noise, and what the noise on a table will
be. What is not known is how much the columns depend on each other. So three tables are made up with
these columns, as in forecasts of mechanisms: one of independent columns, and two of records in a
dozen groups, each with other likely values, or with hardly a value that another group has. On each,
what a measurement would leave is computed:

- Whole, each count is off by its noise, or by what the model had wrong before where that is less;
  a fit that does not stop at the noise is off by the noise. A table that is too large is not
  measured at all: it stays as wrong as it was.
- With rare values together, the same for the shared counts, and beside it what dividing them by
  the single columns gets wrong; or what there was wrong before, where it is not worth measuring.

Nobody knows which table is nearest to the private one, so the mean of all decides.

Privacy: all of it is arithmetic on counts that were paid for and on prices, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np

from juncture.tables.domain import Clique
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import Buckets

MAX_WHOLE_CELLS = 10_000
"""Tables with more cells would be nearly all noise: only with rare values together are they known.
"""
# Groups of records that are alike, and how unlike each other they are: the smaller, the more. The
# first is that of the made-up tables of forecasts.
_GROUPS, _SPREADS, _SEED = 12, (0.6, 0.05), 20_190_101
# Merging must be expected to leave less than this share of the error: what is hidden is certain.
_MARGIN = 0.9


class ExpectedErrors(NamedTuple):
    """What a table will be off by, in records, measured whole and with rare values together."""

    whole: float
    merged: float

    @property
    def merges(self) -> bool:
        """Whether rare values should share counts."""
        return self.merged < _MARGIN * self.whole


@dataclass(frozen=True)
class RareTerms:
    """What a mechanism does with tables, as far as it matters to rare values."""

    stops_at_noise: bool = True
    """Whether its fit stops at the noise: what it would only follow noise in, stays as it was."""
    max_whole_cells: float = MAX_WHOLE_CELLS
    """Larger tables are not measured whole."""
    max_cells: int = 150_000
    """Larger tables are not made up: their rare values share counts in any case."""


@dataclass(frozen=True)
class RareForecast:
    """What merging rare values would do to tables of columns whose counts are known.

    >>> counts = {"zip": np.array([900.0, 5.0, 5.0, 5.0, 5.0]), "sex": np.array([500.0, 420.0])}
    >>> forecast = RareForecast.of_counts(counts, RareTerms(stops_at_noise=False))
    >>> blocks = {"zip": Buckets((0, 1, 1, 1, 1))}
    >>> forecast.expect(("zip", "sex"), blocks, noise=20.0).merges
    True
    >>> forecast.expect(("zip", "sex"), blocks, noise=0.01).merges
    False
    """

    shares: tuple[Mapping[str, Vector], ...]
    """For each made-up table and column, the share of each value in each group, a row for each."""
    n_records: float
    terms: RareTerms
    found: dict[tuple[Clique, float], ExpectedErrors] = field(default_factory=dict, compare=False)
    """What was expected so far, of a table with a noise."""

    @classmethod
    def of_counts(cls, counts: Mapping[str, Vector], terms: RareTerms) -> RareForecast:
        """The forecast for columns with these counts."""
        known = {name: _find_shares(values) for name, values in counts.items()}
        rng = np.random.default_rng(_SEED)
        dependent = [
            {name: _draw_groups(shares, spread, rng) for name, shares in known.items()}
            for spread in _SPREADS
        ]
        independent = {name: shares[None, :] for name, shares in known.items()}
        n_records = max(1.0, *(float(values.sum()) for values in counts.values()))
        return cls((independent, *dependent), n_records, terms)

    def expect(self, clique: Clique, blocks: Mapping[str, Buckets], noise: float) -> ExpectedErrors:
        """What to expect of a table; the noise is the mean absolute one on a count."""
        key = (clique, noise)
        if key not in self.found:
            each = [self._expect(shares, clique, blocks, noise) for shares in self.shares]
            whole, merged = np.mean(each, axis=0).tolist()
            self.found[key] = ExpectedErrors(whole, merged)
        return self.found[key]

    def _expect(
        self,
        shares: Mapping[str, Vector],
        clique: Clique,
        blocks: Mapping[str, Buckets],
        noise: float,
    ) -> ExpectedErrors:
        axes = [shares[name] for name in clique]
        table = self.n_records * _join(axes)
        alone = self.n_records * reduce(np.multiply.outer, [each.mean(axis=0) for each in axes])
        before = _distance(table, alone)
        is_measured = table.size <= self.terms.max_whole_cells
        whole = self._leave(table, alone, noise) if is_measured else before
        merged_table, merged_alone = (_merge(each, clique, blocks) for each in (table, alone))
        ratio = merged_table / np.maximum(merged_alone, 1e-300)
        divided = alone * _spread(ratio, clique, blocks)
        merged = self._leave(merged_table, merged_alone, noise) + _distance(table, divided)
        return ExpectedErrors(whole, min(merged, before) if self.terms.stops_at_noise else merged)

    def _leave(self, table: Vector, before: Vector, noise: float) -> float:
        """What a measured table is off by."""
        if self.terms.stops_at_noise:
            return float(np.minimum(np.abs(table - before), noise).sum())
        # Counts below the noise are cut off at zero: half of it is left of an empty one.
        return float(np.minimum(noise, table + 0.5 * noise).sum())


def _find_shares(counts: Vector) -> Vector:
    """The shares of a column's values, none of them quite zero."""
    kept = np.maximum(counts, 1e-9 * max(float(counts.sum()), 1.0))
    return np.asarray(kept / kept.sum())


def _draw_groups(shares: Vector, spread: float, rng: np.random.Generator) -> Vector:
    """The shares of values in groups that are unlike each other, but have these shares in all."""
    scale = np.maximum(spread * len(shares) * shares, 1e-3)
    drawn = np.maximum(rng.gamma(scale, size=(_GROUPS, len(shares))), 1e-300)
    drawn = drawn * shares / drawn.mean(axis=0)
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _join(axes: list[Vector]) -> Vector:
    """The mean over groups of the products of their rows."""
    table, n_groups = axes[0], len(axes[0])
    for more in axes[1:-1]:
        table = (table[:, :, None] * more[:, None, :]).reshape(n_groups, -1)
    return np.asarray((table.T @ axes[-1]).reshape([len(each.T) for each in axes]) / n_groups)


def _merge(table: Vector, clique: Clique, blocks: Mapping[str, Buckets]) -> Vector:
    """The table with values of one bucket added up."""
    for axis, name in enumerate(clique):
        if name in blocks:
            owners = np.asarray(blocks[name].assignment)
            order = np.argsort(owners, kind="stable")
            starts = np.searchsorted(owners[order], np.arange(owners.max() + 1))
            table = np.add.reduceat(np.take(table, order, axis=axis), starts, axis=axis)
    return table


def _spread(table: Vector, clique: Clique, blocks: Mapping[str, Buckets]) -> Vector:
    """What a bucket has, at each of its values."""
    for axis, name in enumerate(clique):
        if name in blocks:
            table = np.take(table, np.asarray(blocks[name].assignment), axis=axis)
    return table


def _distance(one: Vector, other: Vector) -> float:
    return float(np.abs(one - other).sum())
