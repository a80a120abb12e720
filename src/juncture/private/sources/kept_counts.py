"""Exact counts that are kept, so that a candidate of every round is counted once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from juncture.errors import InvalidInput
from juncture.private.sources.source import Groups, Source
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.person import Person
from juncture.tables.schema import Schema

MAX_KEPT_BYTES = 1 << 28
"""The most memory of kept counts: a quarter of a gigabyte."""
# What a small table takes beside its cells.
_OVERHEAD_BYTES = 512


class KeptCounts:
    """A source that counts through another one and keeps the counts that were used last.

    The table must not change meanwhile. Kept counts are as private as the table: they stay inside
    the curator that owns this.

    >>> from juncture.private.sources.source import CodedTable
    >>> kept = KeptCounts(CodedTable(Domain({"sex": 2}), {"sex": [0, 1, 1]}))
    >>> kept.exact_counts([("sex",)])[0].values, kept.kept_bytes > 0
    (array([1., 2.]), True)
    """

    def __init__(self, source: Source, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._source, self._max_bytes = source, max_bytes
        self._kept: OrderedDict[Clique, Factor] = OrderedDict()
        self._kept_bytes = 0

    @property
    def domain(self) -> Domain:
        """See `Source.domain`."""
        return self._source.domain

    @property
    def schema(self) -> Schema | None:
        """See `Source.schema`."""
        return self._source.schema

    @property
    def is_public(self) -> bool:
        """See `Source.is_public`."""
        return self._source.is_public

    @property
    def person(self) -> Person | None:
        """See `Source.person`."""
        return self._source.person

    @property
    def exact_n_records(self) -> int:
        """See `Source.exact_n_records`."""
        return self._source.exact_n_records

    @property
    def kept_bytes(self) -> int:
        """The memory of what is kept."""
        return self._kept_bytes

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`; only what is not kept is counted."""
        asked = [tuple(clique) for clique in cliques]
        absent = list(dict.fromkeys(clique for clique in asked if clique not in self._kept))
        counted = dict(zip(absent, self._source.exact_counts(absent), strict=True))
        tables = [counted[c] if c in counted else self._kept[c] for c in asked]
        for clique in asked:
            if clique in self._kept:
                self._kept.move_to_end(clique)
        for clique, table in counted.items():
            self._keep(clique, table)
        return tables

    def exact_groups(self, name: str, least: int) -> Groups:
        """See `OpenSource.exact_groups`; nothing of it is kept."""
        if not hasattr(self._source, "exact_groups"):
            raise InvalidInput(
                f"`source` must be a table with the texts of {name!r}; got codes alone. Read the "
                "table under its open schema."
            )
        groups: Groups = self._source.exact_groups(name, least)
        return groups

    def _keep(self, clique: Clique, table: Factor) -> None:
        """Keep a table, and drop those that were not used for longest."""
        size = _count_bytes(table)
        if size > self._max_bytes:
            return
        # A copy: tables counted together are views of one array, which a single one would keep.
        self._kept[clique] = Factor.of_finite(table.domain, table.values.copy())
        self._kept_bytes += size
        while self._kept_bytes > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= _count_bytes(dropped)


def _count_bytes(table: Factor) -> int:
    return table.values.nbytes + _OVERHEAD_BYTES
