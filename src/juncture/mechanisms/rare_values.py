"""Rare values: counted together in tables of several columns, and divided again by the model.

A value whose own count is hardly above the noise says nothing in a table of two or three columns:
its row there is noise alone, and costs what any other does. So rare values share one count in such
tables, a few of them at a time, until together they stand above the noise. What is measured is a
linear query on the table itself, a `Kron` of `Buckets`, so the model keeps every value: the fit
divides a shared count by what is known of the single column, which is the choice of largest
entropy. Nothing has to be remembered for decoding.

Privacy. Which values are rare follows from noisy counts that were paid for, and from prices: it is
post-processing. Every record is in exactly one bucket of each column, so in exactly one cell of a
merged table: one record more or less moves one count by 1, a replaced one two of them, a person's
k rows k times as much. That is the sensitivity of the table that is not merged, so the same price
buys the same noise; and a score that compares a merged table with its answer in L1 moves by as
much as one that compares whole tables (`MarginalError`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.rare_forecast import ExpectedErrors, RareForecast, RareTerms
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Buckets, Identity
from juncture.tables.queries.products import Kron, bind

RARE = 3.0
"""Values with a noisy count below so many standard deviations are rare."""


@dataclass(frozen=True)
class RareValues:
    """The rare values of some columns, in buckets; columns without any are left out.

    >>> rare = RareValues.of_counts({"work": np.array([50.0, 4.0, -1.0, 40.0, 5.0])}, limit=6.0)
    >>> rare.blocks
    {'work': Buckets(assignment=(0, 1, 1, 2, 1))}
    >>> rare.shape_of(Domain({"work": 5, "sex": 2}))
    (3, 2)
    """

    blocks: Mapping[str, Buckets] = field(default_factory=dict)

    @classmethod
    def of_counts(cls, counts: Mapping[str, Vector], limit: float) -> RareValues:
        """The values with counts below a limit."""
        found = {name: merge_values(each, limit) for name, each in counts.items()}
        return cls({name: block for name, block in found.items() if block is not None})

    def is_in(self, clique: Clique) -> bool:
        """Whether a clique has a column with rare values."""
        return not self.blocks.keys().isdisjoint(clique)

    def query(self, clique: Clique) -> Kron | None:
        """What counts rare values of a clique together; None where it has none."""
        if not self.is_in(clique):
            return None
        return Kron({name: self._block(name) for name in clique})

    def shape_of(self, domain: Domain) -> tuple[int, ...]:
        """The shape of the merged table of a clique, given its domain."""
        return tuple(self._block(name).n_rows(size) for name, size in domain.items())

    def merge(self, domain: Domain, table: Vector) -> Vector:
        """The merged counts of a clique's table, given its domain; flat."""
        query = self.query(domain.attributes)
        return table.reshape(-1) if query is None else bind(query, domain).apply_flat(table)

    def _block(self, name: str) -> Block:
        return self.blocks.get(name, Identity())


_NONE = RareValues()


@dataclass(frozen=True)
class Merging:
    """In which tables rare values share counts, and in which none do.

    >>> counts = {"zip": np.array([99.0, 2.0, 2.0, 2.0]), "sex": np.array([60.0, 45.0])}
    >>> domain, terms = Domain({"zip": 4, "sex": 2}), RareTerms(stops_at_noise=False)
    >>> merging = Merging(domain, MergeRare.AUTO, terms).find_rare(counts, stddev=1.5, noise=8.0)
    >>> merging.count_cells(("zip", "sex"))
    4
    >>> merging.find_rare(counts, stddev=1.5, noise=0.1).queries([("zip", "sex")])
    {}
    """

    domain: Domain
    choice: MergeRare
    terms: RareTerms = field(default_factory=RareTerms)
    rare: RareValues = field(default_factory=RareValues)
    noise: float = 0.0
    """The mean absolute noise on a count of a table."""
    forecast: RareForecast | None = None
    """What is expected of merging, where that decides."""

    def find_rare(self, counts: Mapping[str, Vector], stddev: float, noise: float) -> Merging:
        """The same for values whose counts are below three of these standard deviations.

        - `noise`: the mean absolute noise on a count of the tables to come.

        Forecasts are about the first counts; later ones hardly differ.
        """
        if self.choice is MergeRare.OFF:
            return self
        rare, forecast = RareValues.of_counts(counts, RARE * stddev), self.forecast
        if self.choice is MergeRare.AUTO and forecast is None:
            forecast = RareForecast.of_counts(counts, self.terms)
        return replace(self, rare=rare, noise=noise, forecast=forecast)

    def rare_in(self, clique: Clique) -> RareValues:
        """The rare values that share counts in the table of a clique; none in a single column."""
        if len(clique) < 2 or not self.rare.is_in(clique):
            return _NONE
        expected = self.expect(clique)
        return self.rare if expected is None or expected.merges else _NONE

    def expect(self, clique: Clique) -> ExpectedErrors | None:
        """What is expected of merging in a table, where that decides."""
        if self.forecast is None or not self.rare.is_in(clique) or len(clique) < 2:
            return None
        if self.domain.size_of(clique) > self.terms.max_cells:
            return None
        return self.forecast.expect(clique, self.rare.blocks, self.noise)

    def count(self, table: Factor) -> Vector:
        """The counts of a table that are measured."""
        return self.rare_in(table.domain.attributes).merge(table.domain, table.values)

    def count_cells(self, clique: Clique) -> int:
        """The number of counts that are measured of a clique."""
        rare = self.rare_in(clique)
        if rare is _NONE:
            return self.domain.size_of(clique)
        return math.prod(rare.shape_of(self.domain.project(clique)))

    def query(self, clique: Clique) -> Kron | None:
        """What is measured of a clique; None where it is every count."""
        return self.rare_in(clique).query(clique)

    def queries(self, cliques: Iterable[Clique]) -> dict[Clique, Kron]:
        """What is measured of the cliques of which it is not every count."""
        asked = ((clique, self.query(clique)) for clique in cliques)
        return {clique: query for clique, query in asked if query is not None}

    def describe(self, measurements: Iterable[Measurement]) -> dict[str, Any]:
        """What a release says of it: which columns are merged, in how many tables, and why.

        Expected errors are sums over the measured tables that a forecast decided about, by their
        last noise: of records in wrong cells, had all been whole, had all been merged.
        """
        merged = {
            (each.clique, name)
            for each in measurements
            if isinstance(each.query, Kron)
            for name, block in each.query.blocks.items()
            if isinstance(block, Buckets)
        }
        measured = {each.clique for each in measurements}
        found = {} if self.forecast is None else self.forecast.found
        expected = {clique: each for (clique, _), each in found.items() if clique in measured}
        facts = {
            "merged": sorted({name for _, name in merged}),
            "merge_rare": str(self.choice),
            "merged_tables": len({clique for clique, _ in merged}),
        }
        if not expected:
            return facts
        return facts | {
            "expected_whole": round(sum(each.whole for each in expected.values()) / 2.0, 1),
            "expected_merged": round(sum(each.merged for each in expected.values()) / 2.0, 1),
        }


def merge_values(counts: Vector, limit: float) -> Buckets | None:
    """Values with counts below a limit, in buckets; None where that changes nothing.

    Buckets are filled in the order of the values, so that those of numbers hold neighbours, until
    they reach the limit; what is left at the end goes into the last one.

    >>> merge_values(np.array([1.0, 2.0, 9.0, 2.0, 1.0, 0.0]), limit=3.0)
    Buckets(assignment=(0, 0, 1, 2, 2, 2))
    """
    rare, owners = np.flatnonzero(counts < limit), np.arange(len(counts))
    masses = np.maximum(counts[rare], 0.0)
    held, left = limit, float(masses.sum())
    lead = int(rare[0]) if len(rare) else 0
    for code, mass in zip(rare.tolist(), masses.tolist(), strict=True):
        if held >= limit <= left:
            lead, held = code, 0.0
        owners[code] = lead
        held, left = held + mass, left - mass
    _, assignment = np.unique(owners, return_inverse=True)
    n_buckets = len(set(assignment.tolist()))
    return Buckets(assignment.tolist()) if 1 < n_buckets < len(counts) else None
