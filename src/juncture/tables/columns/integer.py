"""Columns of whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Meaning
from juncture.tables.columns.base import Column, Outside, TomlTable, refuse_many_values
from juncture.tables.columns.sql import Dialect, RawColumn, number_literal
from juncture.tables.columns.summary import MAX_DRAFT_VALUES, ColumnSummary, RawType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Integer(Column):
    """Whole numbers in a range, each its own value or several in a row together: ages, counts.

        [columns.age]
        kind = "integer"
        low = 17
        high = 90
        width = 1            # 5 would put 17 to 21 together, 22 to 26, and so on
        outside = "nearest"

    >>> Integer(low=17, high=30, width=5).coding.labels
    ('[17, 22)', '[22, 27)', '[27, 31)')
    """

    kind: ClassVar[str] = "integer"

    low: int
    high: int
    """The largest number; it belongs to the range."""
    width: int = 1
    """How many numbers share a code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = all(type(n) is int for n in (self.low, self.high, self.width))
        exact = whole and -(2**53) <= self.low <= self.high <= 2**53
        if not exact or self.width < 1:
            raise InvalidInput(
                f"`low`, `high` and `width` must be whole numbers that make a range; got "
                f"{self.low} to {self.high} by {self.width}."
            )
        refuse_many_values((self.high - self.low) // self.width + 1, "width")

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """Every number, or intervals of them, of which the last may be shorter."""
        if self.width == 1:
            return tuple(range(self.low, self.high + 1))
        starts = range(self.low, self.high + 1, self.width)
        return tuple((float(s), float(min(s + self.width, self.high + 1))) for s in starts)

    def to_toml(self) -> TomlTable:
        """The range, and the width if it is not 1."""
        width = {"width": self.width} if self.width > 1 else {}
        return {"low": self.low, "high": self.high, **width}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """The index of the number's interval; fractions are outside the domain."""
        if self.outside is Outside.NEAREST:
            return self._nearest_sql(raw.as_number)
        return self._typed_sql(raw.sql) if raw.is_integer else self._number_sql(raw.as_number)

    def missing_sql(self, raw: RawColumn) -> str:
        """Whether it is NULL or not-a-number."""
        return raw.is_null_or_nan

    @property
    def arrow_type(self) -> pa.DataType:
        """Whole numbers."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.int64()

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """A random whole number of each code's interval."""
        low = self.low + np.minimum(codes, self.n_regular - 1).astype(np.int64) * self.width
        if self.width == 1:
            return np.asarray(low)
        return rng.integers(low, np.minimum(low + self.width, self.high + 1))

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for whole numbers: from the smallest to the largest."""
        if summary.raw_type is not RawType.INTEGER:
            return None
        low, high = summary.low, summary.high
        width = max(1, math.ceil((high - low + 1) / MAX_DRAFT_VALUES))
        return cls(
            low=low, high=high, width=width, missing=summary.has_missing, outside=Outside.NEAREST
        )

    def _typed_sql(self, value: str) -> str:
        """For columns that the engine holds as whole numbers: comparing them as such is faster."""
        index = f"(CAST({value} AS BIGINT) - ({self.low}))"
        index = index if self.width == 1 else f"floor({index} / {self.width})"
        inside = f"{value} BETWEEN {self.low} AND {self.high}"
        return f"CASE WHEN {inside} THEN CAST({index} AS INTEGER) END"

    def _nearest_sql(self, value: str) -> str:
        low, high = number_literal(self.low), number_literal(self.high)
        clipped = f"least(greatest({value}, {low}), {high})"
        index = f"CAST(floor(({clipped} - {low}) / {self.width}) AS INTEGER)"
        return f"CASE WHEN {value} IS NOT NULL AND NOT isnan({value}) THEN {index} END"

    def _number_sql(self, value: str) -> str:
        low, high = number_literal(self.low), number_literal(self.high)
        inside = f"{value} >= {low} AND {value} <= {high} AND {value} = floor({value})"
        index = f"CAST(floor(({value} - {low}) / {self.width}) AS INTEGER)"
        return f"CASE WHEN {inside} THEN {index} END"
