"""Columns of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Coding, Meaning
from juncture.tables.columns.base import (
    Outside,
    TomlTable,
    call_with_entries,
    refuse_many_values,
)
from juncture.tables.columns.bins import Binned
from juncture.tables.columns.rounding import MAX_DRAFT_BINS, round_range, uneven_edges
from juncture.tables.columns.sql import Dialect, RawColumn, number_literal, search_bin
from juncture.tables.columns.summary import ColumnSummary, RawType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Integer(Binned):
    """Whole numbers in a range, each its own value or several in a row together: ages, counts.

        [columns.age]
        kind = "integer"
        low = 17
        high = 90
        width = 1            # 5 would put 17 to 21 together, 22 to 26, and so on
        outside = "nearest"

    Bins of several widths are written by their edges, the first number of each bin and, at the
    end, the largest number (again, if it is alone in its bin); so here 0 is alone, and the last bin
    holds 3000 to 99999:

        [columns.gain]
        kind = "integer"
        edges = [0, 1, 3000, 99999]
        special = [-1]       # optional: codes of their own, for these numbers

    >>> Integer(low=17, high=30, width=5).coding.labels
    ('[17, 22)', '[22, 27)', '[27, 31)')
    >>> Integer.between([0, 1, 3000, 99999], special=(-1,)).coding.labels
    (-1, 0, '[1, 3000)', '[3000, 100000)')
    """

    kind: ClassVar[str] = "integer"

    low: int
    high: int
    """The largest number; it belongs to the range."""
    width: int = 1
    """How many numbers share a code."""
    starts: tuple[int, ...] = ()
    """The first number of each bin, where bins differ in width."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "starts", tuple(self.starts))
        if not _are_whole(self.special):
            raise InvalidInput(
                f"`special` must be a list of whole numbers; got {self.special!r}. For others, use "
                'the kind "number".'
            )
        whole = _are_whole((self.low, self.high, self.width))
        if not whole or self.low > self.high or self.width < 1:
            raise InvalidInput(
                f"`low`, `high` and `width` must be whole numbers that make a range; got "
                f"{self.low} to {self.high} by {self.width}."
            )
        if self.starts and (self.starts[0] != self.low or self.width != 1):
            raise InvalidInput("`starts` must begin with `low`, without a `width`; got others.")
        n_bins = len(self.starts) or (self.high - self.low) // self.width + 1
        refuse_many_values(n_bins, "width")
        if any(a >= b for a, b in pairwise(self._bounds)):
            raise InvalidInput(
                f"`edges` must be whole numbers, each larger than the one before; got "
                f"{[*self.starts, self.high]!r}."
            )
        for number in self.special:
            if any(low == number == high - 1 for low, high in pairwise(self._bounds)):
                raise InvalidInput(
                    f"`special` must not have a number that is a bin of its own; got {number}. "
                    "Leave it out."
                )
        self._check_bins()

    @classmethod
    def between(
        cls, edges: Sequence[int], *, special: tuple[float, ...] = (),
        means: tuple[float, ...] = (), missing: bool = False, outside: Outside = Outside.ERROR,
    ) -> Self:  # fmt: skip
        """Bins by the first number of each and, at the end, the largest number."""
        rising = _are_whole(edges) and all(a < b for a, b in pairwise(edges[:-1]))
        if not rising or len(edges) < 2 or edges[-2] > edges[-1]:
            raise InvalidInput(
                f"`edges` must be at least two whole numbers, each larger than the one before; got "
                f"{edges!r}."
            )
        common: dict[str, Any] = {"special": special, "means": means}
        starts = tuple(edges[:-1])
        return cls(
            low=edges[0], high=edges[-1], starts=starts, missing=missing, outside=outside, **common
        )

    @cached_property
    def _bounds(self) -> tuple[int, ...]:
        """The first number of each bin, and the first one after the last bin."""
        starts = self.starts or tuple(range(self.low, self.high + 1, self.width))
        return (*starts, self.high + 1)

    @cached_property
    def bins(self) -> tuple[Meaning, ...]:
        """Single numbers, and intervals, which begin after a special value and end before one."""
        bins: list[Meaning] = []
        for low, high in pairwise(self._bounds):
            first = low + (low in self.special)
            last = high - 1 - (high - 1 in self.special)
            alone = low == high - 1 or first == last
            bins.append(min(first, last) if alone else (float(first), float(last + 1)))
        return tuple(bins)

    def make_coding(self, meanings: tuple[Meaning, ...]) -> Coding:
        """The coding, whose intervals hold whole numbers."""
        return replace(super().make_coding(meanings), whole=True)

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with `edges`, or with `low`, `high` and `width`."""
        if "edges" in entries:
            return call_with_entries(cls.between, entries)
        entries.pop("starts", None)
        return call_with_entries(cls, entries)

    def to_toml(self) -> TomlTable:
        """The edges, or the range with the width if it is not 1."""
        if self.starts:
            return {"edges": [*self.starts, self.high], **super().to_toml()}
        width = {"width": self.width} if self.width > 1 else {}
        return {"low": self.low, "high": self.high, **width, **super().to_toml()}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """The code of a special value or of the number's bin; fractions are outside the domain."""
        if self.outside is Outside.NEAREST:
            bin_index = self._nearest_sql(raw.as_number)
        elif raw.is_integer and not self.starts:
            bin_index = self._typed_sql(raw.sql)
        else:
            bin_index = self._number_sql(raw.as_number)
        return self._with_special(raw, bin_index)

    @property
    def arrow_type(self) -> pa.DataType:
        """Whole numbers."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.int64()

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """The special value itself, or a random whole number of the code's bin."""
        if all(isinstance(meaning, int) for meaning in self.regular):
            numbers = np.array(self.regular, dtype=np.int64)
            return np.asarray(numbers[np.minimum(codes, self.n_regular - 1)])
        low, width, _ = self._ends
        indices = np.minimum(codes, self.n_regular - 1)
        first = np.where(width[indices] > 0.0, low[indices] + 0.5, low[indices])
        last = first + np.maximum(width[indices] - 1.0, 0.0)
        drawn = np.clip(np.floor(super().draw(codes, rng) + 0.5), first, last)
        for number in sorted(self.special):  # in a bin, it stands for its neighbour
            drawn += (drawn == number) & (width[indices] > 0.0)
        return np.asarray(drawn, dtype=np.int64)

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for whole numbers: a round range, or edges closer where most records are."""
        if summary.raw_type is not RawType.INTEGER:
            return None
        low, high = summary.low, summary.high
        common: dict[str, Any] = {"missing": summary.has_missing, "outside": Outside.NEAREST}
        edges = uneven_edges(low, high, summary.quantiles, whole=True)
        if edges is not None and high - low >= MAX_DRAFT_BINS:
            return cls.between([int(edge) for edge in edges], **common)
        low, high, width = round_range(low, high)
        return cls(low=low, high=high, width=width, **common)

    def _typed_sql(self, value: str) -> str:
        """For columns that the engine holds as whole numbers: comparing them as such is faster."""
        index = f"(CAST({value} AS BIGINT) - ({self.low}))"
        index = index if self.width == 1 else f"floor({index} / {self.width})"
        inside = f"{value} BETWEEN {self.low} AND {self.high}"
        return f"CASE WHEN {inside} THEN CAST({index} AS INTEGER) END"

    def _nearest_sql(self, value: str) -> str:
        low, high = number_literal(self.low), number_literal(self.high)
        index = self._bin_sql(f"least(greatest({value}, {low}), {high})")
        return f"CASE WHEN {value} IS NOT NULL AND NOT isnan({value}) THEN {index} END"

    def _number_sql(self, value: str) -> str:
        low, high = number_literal(self.low), number_literal(self.high)
        inside = f"{value} >= {low} AND {value} <= {high} AND {value} = floor({value})"
        return f"CASE WHEN {inside} THEN {self._bin_sql(value)} END"

    def _bin_sql(self, value: str) -> str:
        """The index of the bin of a number inside the range."""
        if self.starts:
            return search_bin(self._bounds, value)
        return f"CAST(floor(({value} - {number_literal(self.low)}) / {self.width}) AS INTEGER)"


def _are_whole(numbers: object) -> bool:
    """Whether these are a list of whole numbers that doubles hold exactly."""
    if not isinstance(numbers, Sequence) or isinstance(numbers, str):
        return False
    return all(type(n) is int and abs(n) <= 2**53 for n in numbers)
