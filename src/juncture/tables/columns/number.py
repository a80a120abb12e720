"""Columns of numbers in bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Coding, Meaning
from juncture.tables.columns.base import Outside, TomlTable, call_with_entries, refuse_many_values
from juncture.tables.columns.bins import Binned
from juncture.tables.columns.rounding import even_edges, uneven_edges
from juncture.tables.columns.sql import Dialect, RawColumn, number_literal, search_bin
from juncture.tables.columns.summary import ColumnSummary, RawType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Number(Binned):
    """Numbers in bins between edges; `Number.evenly` makes bins of one width.

        [columns.pay]
        kind = "number"
        edges = [0, 10000, 30000, 100000]
        special = [0]                        # optional: codes of their own, for these numbers
        means = [6200, 18500, 44000]         # optional: the mean of each bin, where it is public

    A bin reaches from its lower edge up to the next one, the last edge included. Bins of one width
    are written by their number:

        [columns.rate]
        kind = "number"
        low = 0
        high = 1
        bins = 20

    For whole numbers there is the kind `integer`, which may have edges too.

    >>> Number.evenly(0, 1, bins=4).edges
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> Number(edges=(0, 10, 100), special=(0,)).coding.labels
    (0, '[0, 10)', '[10, 100)')
    """

    kind: ClassVar[str] = "number"

    edges: tuple[float, ...]
    """The lower edge of each bin, and the upper edge of the last."""
    step: float | None = None
    """Records hold multiples of this, counted from the first edge; None for any numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None and not (math.isfinite(self.step) and self.step > 0):
            raise InvalidInput(f"`step` must be a positive number; got {self.step!r}.")
        numbers = np.asarray(self.edges, dtype=np.float64)
        if len(numbers) < 2 or not np.isfinite(numbers).all() or (np.diff(numbers) <= 0).any():
            raise InvalidInput(
                f"`edges` must be at least two finite numbers, each larger than the one before; "
                f"got {self.edges!r}."
            )
        self._check_bins()

    @classmethod
    def evenly(
        cls, low: float, high: float, bins: int, *, special: tuple[float, ...] = (),
        means: tuple[float, ...] = (), missing: bool = False, outside: Outside = Outside.ERROR,
    ) -> Self:  # fmt: skip
        """`bins` bins of the same width between two numbers."""
        if not (math.isfinite(low) and math.isfinite(high) and low < high and bins >= 1):
            raise InvalidInput(
                f"`low`, `high` and `bins` must make bins; got {low} to {high} in {bins}. "
                "Give the smallest and the largest number that the column may hold."
            )
        refuse_many_values(bins, "bins")
        edges = tuple(float(edge) for edge in np.linspace(low, high, bins + 1))
        return cls(edges=edges, special=special, means=means, missing=missing, outside=outside)

    @cached_property
    def bins(self) -> tuple[Meaning, ...]:
        """The intervals between the edges."""
        return Coding.of_bins(self.edges).meanings

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with `edges`, or with `low`, `high` and `bins`."""
        if "edges" in entries:
            edges = tuple(float(edge) for edge in entries.pop("edges"))
            return call_with_entries(cls, {**entries, "edges": edges})
        return call_with_entries(cls.evenly, entries)

    def to_toml(self) -> TomlTable:
        """The edges, without rounding; bins of one width by their number."""
        low, high, bins = self.edges[0], self.edges[-1], len(self.bins)
        step = {} if self.step is None else {"step": self.step}
        even = self.edges == tuple(np.linspace(low, high, bins + 1).tolist())
        if bins > 2 and even and self.step is None:
            return {"low": low, "high": high, "bins": bins, **super().to_toml()}
        return {"edges": list(self.edges), **step, **super().to_toml()}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """The code of a special value, or that of the number's bin."""
        value = raw.as_number
        bin_index = search_bin(self.edges, value)
        inside = f"{value} IS NOT NULL AND NOT isnan({value})"
        if self.outside is not Outside.NEAREST:
            low, high = number_literal(self.edges[0]), number_literal(self.edges[-1])
            inside = f"{value} >= {low} AND {value} <= {high}"
        return self._with_special(raw, f"CASE WHEN {inside} THEN {bin_index} END")

    @property
    def arrow_type(self) -> pa.DataType:
        """Floating-point numbers."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.float64()

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """The special value itself, or a number drawn from the code's bin, its end excluded."""
        numbers = super().draw(codes, rng)
        low, width, _ = self._ends
        indices = np.minimum(codes, self.n_regular - 1)
        if self.step is not None:
            steps = np.floor((numbers - self.edges[0]) / self.step * (1.0 + 1e-12) + 1e-9)
            whole = np.round(self.edges[0] + steps * self.step, _count_decimals(self.step))
            numbers = np.where(width[indices] > 0.0, np.maximum(whole, low[indices]), numbers)
        below = np.nextafter(low[indices] + width[indices], low[indices])
        return np.asarray(np.where(width[indices] > 0.0, np.minimum(numbers, below), numbers))

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for numbers: round edges, closer where most records are."""
        if summary.raw_type is not RawType.NUMBER:
            return None
        low, high = summary.low, summary.high
        edges = uneven_edges(low, high, summary.quantiles) or even_edges(low, high)
        return cls(edges=edges, missing=summary.has_missing, outside=Outside.NEAREST)


def _count_decimals(step: float) -> int:
    """The decimal places of multiples of a step, as people write it.

    >>> _count_decimals(0.25), _count_decimals(50.0)
    (2, 0)
    """
    return next((n for n in range(16) if math.isclose(round(step, n), step, rel_tol=1e-9)), 16)
