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

import numpy as np

from juncture.mechanisms.merge_rare import MergeRare
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Buckets, Identity
from juncture.tables.queries.products import Kron, bind

RARE = 3.0
"""Values with a noisy count below so many standard deviations are rare."""


MAX_WHOLE_CELLS = 10_000
"""Tables with more cells would be nearly all noise: only with rare values together are they known.
"""


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

    @classmethod
    def of_columns(cls, columns: Iterable[Measurement]) -> RareValues:
        """The values of measured columns with counts of less than three standard deviations."""
        blocks = dict[str, Buckets]()
        for column in columns:
            block = merge_values(column.values, RARE * float(np.max(column.stddev)))
            if block is not None:
                blocks[column.clique[0]] = block
        return cls(blocks)

    def query(self, clique: Clique) -> Kron | None:
        """What counts rare values of a clique together; None where it has none."""
        if not any(name in self.blocks for name in clique):
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


@dataclass(frozen=True)
class Merging:
    """In which tables rare values share counts, and in which none do.

    >>> rare = RareValues.of_counts({"zip": np.array([99.0, 2.0, 2.0, 2.0])}, limit=3.0)
    >>> Merging(Domain({"zip": 4, "sex": 2}), MergeRare.AUTO, rare).queries([("zip", "sex")])
    {}
    >>> Merging(Domain({"zip": 4, "sex": 2}), MergeRare.ON, rare).count_cells(("zip", "sex"))
    4
    """

    domain: Domain
    choice: MergeRare
    rare: RareValues = field(default_factory=RareValues)

    def find_rare(self, counts: Mapping[str, Vector], stddev: float) -> Merging:
        """The same for values that are rare by their counts, where noise has a deviation."""
        if self.choice is MergeRare.OFF:
            return self
        return replace(self, rare=RareValues.of_counts(counts, RARE * stddev))

    def rare_in(self, clique: Clique) -> RareValues:
        """The rare values that share counts in the table of a clique; none in a single column."""
        is_small = self.domain.size_of(clique) <= MAX_WHOLE_CELLS
        if len(clique) < 2 or (self.choice is MergeRare.AUTO and is_small):
            return RareValues()
        return self.rare

    def count(self, table: Factor) -> Vector:
        """The counts of a table that are measured."""
        return self.rare_in(table.domain.attributes).merge(table.domain, table.values)

    def count_cells(self, clique: Clique) -> int:
        """The number of counts that are measured of a clique."""
        return math.prod(self.rare_in(clique).shape_of(self.domain.project(clique)))

    def query(self, clique: Clique) -> Kron | None:
        """What is measured of a clique; None where it is every count."""
        return self.rare_in(clique).query(clique)

    def queries(self, cliques: Iterable[Clique]) -> dict[Clique, Kron]:
        """What is measured of the cliques of which it is not every count."""
        asked = ((clique, self.query(clique)) for clique in cliques)
        return {clique: query for clique, query in asked if query is not None}

    def list_merged(self, measurements: Iterable[Measurement]) -> list[str]:
        """The columns whose rare values share counts in what was measured."""
        cliques = {each.clique for each in measurements}
        return sorted({n for c in cliques for n in self.rare_in(c).blocks if n in c})


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
