"""Sources of exact counts. Everything here is private: it reads rows and adds no noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture._util.threads import run_parallel, split_range
from juncture.engine.compiled.loader import pointer, routine
from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.person import Person
from juncture.tables.schema import Schema

# Codes are kept in bytes if no attribute has more values than this.
_BYTE = 256
# Of so many records the cells are found together: they stay near the processor.
_TOGETHER = 4096
# Below this many counted records, waking a second thread costs more than it saves.
_WORTH_THREADS = 200_000


class Source(Protocol):
    """A private table, seen through counts."""

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes; public."""

    @property
    def schema(self) -> Schema | None:
        """What the codes stand for, if there is a schema; it becomes part of releases."""

    @property
    def is_public(self) -> bool:
        """Whether the domain is public knowledge, so that something may be released under it."""

    @property
    def person(self) -> Person | None:
        """Whose rows were limited: of each person, at most `max_rows` are counted here."""

    @property
    def exact_n_records(self) -> int:
        """The number of records; private unless neighbours replace a record."""

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """The count of every cell of each clique, with axes in the order given."""


GROUPS_AT_ONCE = 50_000
"""How many values leave an engine at a time, with their counts."""
Groups = Iterator[tuple[list[str], NDArray[np.int64]]]
"""Values in order, and the count of each, some at a time."""


class OpenSource(Source, Protocol):
    """A private table under an open schema, which is still to be closed."""

    def exact_groups(self, name: str, least: int) -> Groups:
        """The values of a column with private values, in order, and their counts.

        - `least`: values with fewer records stay in the engine.
        """

    def close(self, schema: Schema, codes: Mapping[str, tuple[int, ...]]) -> None:
        """Go on under the closed schema: of some columns, each code has become another one."""


class _CliqueLayout(NamedTuple):
    """What counting a clique needs."""

    domain: Domain
    size: int
    """The number of cells."""
    positions: tuple[int, ...]
    """For each attribute, the index of its row of codes."""
    strides: tuple[int, ...]
    """For each attribute, its stride in the table."""


class CodedTable:
    """A source from codes in memory: a flat array of integers for each attribute.

    `schema` says what the codes stand for. Without one they stand for themselves, and the domain is
    taken as public knowledge. `person` says that the rows of each person were limited before.

    >>> CodedTable(Domain({"sex": 2}), {"sex": [0, 1, 1]}).exact_counts([("sex",)])[0].values
    array([1., 2.])
    """

    def __init__(
        self,
        domain: Domain,
        columns: Mapping[str, ArrayLike],
        schema: Schema | None = None,
        *,
        person: Person | None = None,
    ) -> None:
        if schema is not None and schema.domain != domain:
            raise InvalidInput(
                f"`schema` must have the domain's attributes and sizes; got {schema.domain} for "
                f"{domain}."
            )
        self.domain, self.schema, self.person = domain, schema, person
        valid = [_validate_column(name, columns, size) for name, size in domain.items()]
        lengths = {len(column) for column in valid}
        if len(lengths) > 1:
            raise InvalidInput(f"`columns` must have one length; got {sorted(lengths)}.")
        self.exact_n_records = lengths.pop() if lengths else 0
        self._layouts: dict[Clique, _CliqueLayout] = {}
        self._codes = np.empty((len(valid), self.exact_n_records), dtype=code_type(domain))
        for row, column in zip(self._codes, valid, strict=True):
            row[:] = column

    @property
    def is_public(self) -> bool:
        """See `Source.is_public`."""
        return self.schema is None or self.schema.is_public

    def exact_records(self) -> dict[str, NDArray[np.int32]]:
        """The codes of every record, a column for each attribute."""
        rows = zip(self.domain, self._codes, strict=True)
        return {name: codes.astype(np.int32) for name, codes in rows}

    def exact_counts(self, cliques: Iterable[Clique]) -> list[Factor]:
        """See `Source.exact_counts`."""
        layouts = [self._layout(clique) for clique in cliques]
        sizes = [layout.size for layout in layouts]
        starts = list(accumulate((2 * size for size in sizes), initial=0))
        firsts = list(accumulate((len(each.positions) for each in layouts), initial=0))
        rows = np.array(
            [
                (f, len(p.positions), s, p.size)
                for p, f, s in zip(layouts, firsts, starts, strict=False)
            ],
            dtype=np.int64,
        ).reshape(-1, 4)
        positions = np.array([n for each in layouts for n in each.positions], dtype=np.int64)
        strides = np.array([n for each in layouts for n in each.strides], dtype=np.int64)
        tables = np.zeros(starts[-1], dtype=np.int32)
        count = routine("count_bytes" if self._codes.dtype == np.uint8 else "count_wide")

        def run(span: tuple[int, int]) -> None:
            chosen, space = rows[span[0] : span[1]].copy(), np.empty(_TOGETHER, dtype=np.int32)
            count(
                pointer(self._codes), *self._codes.shape, pointer(chosen), len(chosen),
                pointer(positions), pointer(strides), len(positions), pointer(tables), len(tables),
                pointer(space), len(space),
            )  # fmt: skip

        worth = max(1, _WORTH_THREADS // max(1, self.exact_n_records))
        run_parallel(run, split_range(len(rows), worth))
        counts = tables.astype(np.float64)
        return [
            Factor.of_finite(
                each.domain, counts[start : start + each.size].reshape(each.domain.shape)
            )
            for each, start in zip(layouts, starts, strict=False)
        ]

    def _layout(self, clique: Clique) -> _CliqueLayout:
        """The layout of a clique, made once."""
        if clique not in self._layouts:
            domain = self.domain.project(clique)
            self._layouts[clique] = _CliqueLayout(
                domain,
                domain.size,
                tuple(self.domain.positions[name] for name in domain),
                tuple(math.prod(domain.shape[axis + 1 :]) for axis in range(len(domain))),
            )
        return self._layouts[clique]


def code_type(domain: Domain) -> np.dtype[np.integer[Any]]:
    """The type in which `CodedTable` keeps codes: bytes if no attribute has too many values."""
    narrow = max(domain.shape, default=1) <= _BYTE
    return np.dtype(np.uint8 if narrow else np.int32)


def _validate_column(
    name: str, columns: Mapping[str, ArrayLike], size: int
) -> NDArray[np.integer[Any]]:
    """The column of an attribute; refuses one that does not hold its codes."""
    if name not in columns:
        raise InvalidInput(
            f"`columns` must have one for every attribute; got none for {name!r}. Add it, or take "
            "the attribute out of the domain."
        )
    column = np.asarray(columns[name])
    if column.ndim != 1 or not np.issubdtype(column.dtype, np.integer):
        raise InvalidInput(
            f"`columns` must be flat arrays of integer codes; got {column.dtype} of shape "
            f"{column.shape} for {name!r}. Encode the values with a schema first."
        )
    wrong = int(((column < 0) | (column >= size)).sum())
    if wrong:
        raise InvalidInput(
            f"`columns` must have codes from 0 to {size - 1} for {name!r}; got {wrong} others."
        )
    return column
