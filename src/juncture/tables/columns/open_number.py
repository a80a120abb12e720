"""Columns of numbers whose bins are found privately: any numbers, and whole ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.columns.base import Column, Outside, TomlTable, call_with_entries
from juncture.tables.columns.grid import MAX_CELLS, Scale, log_edges, parse_scale, round_width
from juncture.tables.columns.integer import Integer
from juncture.tables.columns.number import Number
from juncture.tables.columns.open import (
    MAX_BINS,
    PRIVATE,
    Cell,
    OpenBins,
    check_bounds,
    check_max_bins,
)
from juncture.tables.columns.sql import Dialect, RawColumn, number_literal, search_bin
from juncture.tables.histogram import FineHistogram

# Numbers that are multiples of nothing known are counted in so many cells.
_CELLS = 4_096


@dataclass(frozen=True, kw_only=True)
class _OpenNumbers(OpenBins):
    """What both kinds share: bounds, a grid between them, and points with cells of their own."""

    low: Any
    high: Any
    special: tuple[Any, ...] = ()
    max_bins: int = MAX_BINS
    scale: Scale = Scale.LINEAR
    n_points: int | None = field(default=None, repr=False)
    """How many of the special values are cells of the grid; found where it is None."""

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)
        check_max_bins(self.max_bins)
        object.__setattr__(self, "scale", parse_scale(self.scale))
        self._make_grid()
        if self.n_points is None:
            points = self._find_points()
            object.__setattr__(self, "n_points", len(points))
            object.__setattr__(self, "special", (*self.special, *points))
        super().__post_init__()

    @abstractmethod
    def _make_grid(self) -> None:
        """Set the cells of the grid; refuses bounds that do not fit."""

    @abstractmethod
    def _find_points(self) -> tuple[Any, ...]:
        """The numbers that get a cell of their own."""

    @property
    def n_own(self) -> int:
        """The special values that the schema lists."""
        return len(self.special) - (self.n_points or 0)

    def _move_inside(self, raw: RawColumn) -> RawColumn:
        """The value, moved to the nearest inside the bounds where the schema says so.

        Special values and not-a-number stay.
        """
        if self.outside is not Outside.NEAREST:
            return raw
        value = raw.as_number
        own = [number_literal(number) for number in self.special[: self.n_own]]
        stays = f"isnan({value})" + (f" OR {value} IN ({', '.join(own)})" if own else "")
        near = f"least(greatest({value}, {number_literal(self.low)}), {number_literal(self.high)})"
        return RawColumn(f"(CASE WHEN {value} IS NULL OR {stays} THEN {value} ELSE {near} END)")

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with public bounds."""
        given = {key: value for key, value in entries.items() if key != "bins"}
        return call_with_entries(cls.private, given)

    @classmethod
    @abstractmethod
    def private(cls, *args: Any, **entries: Any) -> Self:  # noqa: ANN401
        """The column that the entries of a schema file describe."""

    def to_toml(self) -> TomlTable:
        """The bounds, and what is not as usual."""
        entries: TomlTable = {"low": self.low, "high": self.high, "bins": PRIVATE}
        entries |= {"max_bins": self.max_bins} if self.max_bins != MAX_BINS else {}
        entries |= {"scale": str(self.scale)} if self.scale is not Scale.LINEAR else {}
        own = list(self.special[: self.n_own])
        return {**entries, **self._step_toml(), **({"special": own} if own else {})}

    def _step_toml(self) -> TomlTable:
        """What the numbers are multiples of, if it is written."""
        return {}


@dataclass(frozen=True, kw_only=True)
class OpenNumber(_OpenNumbers, Number):
    """Numbers between public bounds, in bins that are found privately.

        [columns.pay]
        kind = "number"
        low = 0
        high = 1000000
        bins = "private"
        max_bins = 32        # optional
        scale = "log"        # optional: cells of the fine grid grow; "linear" by default
        decimals = 2         # optional, or step = 0.5: what the numbers are multiples of
        outside = "nearest"

    >>> OpenNumber(low=0, high=100, step=0.5).n_regular
    200
    """

    edges: tuple[float, ...] = field(init=False, default=(), repr=False)
    low: float
    high: float

    def _make_grid(self) -> None:
        """Edges of cells."""
        object.__setattr__(self, "edges", tuple(self._find_edges().tolist()))

    def _find_edges(self) -> np.ndarray:
        if self.scale is Scale.LOG:
            return log_edges(float(self.low), float(self.high), self.step)
        if self.step is None:
            return np.linspace(self.low, self.high, _CELLS + 1)
        if not 0 < self.step <= self.high - self.low:
            raise InvalidInput(
                f"`step` must be a positive number up to the range from `low` to `high`; got "
                f"{self.step!r}."
            )
        width = self.width
        n_cells = int(np.ceil((self.high - self.low) / width - 1e-9))
        return np.append(self.low + width * np.arange(n_cells), self.high)

    @property
    def width(self) -> float:
        """The width of the cells of a linear grid."""
        span = float(self.high) - self.low
        return span / _CELLS if self.step is None else round_width(span, self.step)

    def _find_points(self) -> tuple[float, ...]:
        """0 and the bounds, which many records often have, unless a cell is as fine as that."""
        if self.scale is Scale.LINEAR and self.step is not None and self.width == self.step:
            return ()
        points = {float(self.low), float(self.high), *({0.0} & set(self.edges))}
        return tuple(sorted(points - {float(number) for number in self.special}))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells, and the points before those that they begin, or at the end."""
        n_special = len(self.special)
        cells = [Cell(n_special + i, a, b) for i, (a, b) in enumerate(pairwise(self.edges))]
        points = [Cell(self.n_own + i, p, p) for i, p in enumerate(self.special[self.n_own :])]
        return tuple(sorted([*cells, *points], key=lambda cell: (cell.low, cell.high)))

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """The code of a special value or a point, or that of the number's cell."""
        near = self._move_inside(raw)
        value = near.as_number
        if self.scale is Scale.LOG:
            index = search_bin(self.edges, value)
        else:
            index = f"floor(({value} - {number_literal(self.low)}) / {number_literal(self.width)}"
            # A multiple of the step must not fall below its own cell by rounding.
            index = f"CAST({index} + {number_literal(1e-9)}) AS INTEGER)"
            index = f"least(greatest({index}, 0), {len(self.bins) - 1})"
        low, high = number_literal(self.low), number_literal(self.high)
        inside = f"{value} >= {low} AND {value} <= {high}"
        return self._with_special(near, f"CASE WHEN {inside} THEN {index} END")

    @property
    def widest(self) -> Number:
        """Even bins, as many as there may be."""
        n_bins = min(self.max_bins, len(self.cells))
        edges = tuple(np.linspace(self.low, self.high, n_bins + 1).tolist())
        return Number(edges=edges, special=self.special[: self.n_own], **self._common())

    def make_closed(
        self, starts: Sequence[float], points: Sequence[float], fine: FineHistogram
    ) -> Column:
        """See `OpenBins.make_closed`."""
        special = (*self.special[: self.n_own], *points)
        edges = (*starts, float(self.high))
        return Number(edges=edges, step=self.step, special=special, fine=fine, **self._common())

    @classmethod
    def private(
        cls, low: float, high: float, max_bins: int = MAX_BINS, scale: str = Scale.LINEAR,
        step: float | None = None, decimals: int | None = None,
        special: tuple[float, ...] = (), missing: bool = False, outside: Outside = Outside.ERROR,
    ) -> Self:  # fmt: skip
        """The column that the entries of a schema file describe."""
        if decimals is not None and (step is not None or type(decimals) is not int):
            raise InvalidInput(
                f"`decimals` must be a whole number, without `step`; got {decimals!r}."
            )
        if decimals is not None:
            step = 10.0**-decimals
        return cls(low=low, high=high, max_bins=max_bins, scale=Scale(parse_scale(scale)),
                   step=step, special=tuple(special), missing=missing, outside=outside)  # fmt: skip

    def _step_toml(self) -> TomlTable:
        return {"step": self.step} if self.step is not None else {}


@dataclass(frozen=True, kw_only=True)
class OpenInteger(_OpenNumbers, Integer):
    """Whole numbers between public bounds, in bins that are found privately.

        [columns.gain]
        kind = "integer"
        low = 0
        high = 99999
        bins = "private"

    >>> gain = OpenInteger(low=0, high=99999)
    >>> gain.n_regular, gain.cells[0], gain.cells[1]
    (10002, Cell(code=0, low=0.0, high=1.0), Cell(code=2, low=1.0, high=10.0))
    """

    low: int
    high: int
    width: int = field(init=False, default=1, repr=False)
    starts: tuple[int, ...] = field(init=False, default=(), repr=False)

    def _make_grid(self) -> None:
        """Cells of one width, or their starts."""
        if not type(self.low) is type(self.high) is int:
            raise InvalidInput(
                f"`low` and `high` must be whole numbers; got {self.low!r} and {self.high!r}. For "
                'others, use the kind "number".'
            )
        if self.scale is Scale.LOG:
            edges = np.round(log_edges(float(self.low), float(self.high), 1.0))
            object.__setattr__(self, "starts", tuple(np.unique(edges).astype(int)[:-1].tolist()))
        else:
            span = self.high - self.low + 1
            object.__setattr__(self, "width", round(round_width(span, 1, MAX_CELLS)))

    def _find_points(self) -> tuple[int, ...]:
        """0 and the bounds, unless they have a cell of their own, or lie in the middle of one."""
        bounds = self._bounds
        wide = [(a, b) for a, b in pairwise(bounds) if b > a + 1]
        ends = {a for a, _ in wide} | {b - 1 for _, b in wide}
        points = {self.low, self.high, *({0} if self.low <= 0 <= self.high else ())}
        return tuple(sorted((points & ends) - set(self.special)))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells and the points, in order."""
        n_special = len(self.special)
        cells = [
            Cell(n_special + index, *bin_) if isinstance(bin_, tuple)
            else Cell(n_special + index, float(bin_), bin_ + 1.0)  # type: ignore[arg-type, operator]
            for index, bin_ in enumerate(self.bins)
        ]  # fmt: skip
        points = [
            Cell(self.n_own + index, float(number), number + 1.0)
            for index, number in enumerate(self.special[self.n_own :])
        ]
        return tuple(sorted([*cells, *points], key=lambda cell: cell.low))

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:
        """The code of a special value or a point, or that of the number's cell."""
        return super().index_sql(self._move_inside(raw), dialect)

    @property
    def widest(self) -> Integer:
        """Bins of about one width, as many as there may be."""
        n_bins = min(self.max_bins, self.high - self.low + 1)
        starts = np.linspace(self.low, self.high + 1, n_bins + 1)[:-1]
        own = self.special[: self.n_own]
        # Special values may not be bins of their own; where they would be, bins are merged.
        kept = sorted({int(start) for start in starts} - {int(n) + 1 for n in own} | {self.low})
        return Integer(low=self.low, high=self.high, starts=tuple(kept),
                       special=own if n_bins < self.high - self.low + 1 else (),
                       **self._common())  # fmt: skip

    def make_closed(
        self, starts: Sequence[float], points: Sequence[float], fine: FineHistogram
    ) -> Column:
        """See `OpenBins.make_closed`."""
        assert not points  # whole numbers are intervals of one
        return Integer(low=self.low, high=self.high, starts=tuple(round(each) for each in starts),
                       special=self.special[: self.n_own], fine=fine, **self._common())  # fmt: skip

    @classmethod
    def private(
        cls, low: int, high: int, max_bins: int = MAX_BINS, scale: str = Scale.LINEAR,
        special: tuple[float, ...] = (), missing: bool = False, outside: Outside = Outside.ERROR,
    ) -> Self:  # fmt: skip
        """The column that the entries of a schema file describe."""
        return cls(low=low, high=high, max_bins=max_bins, scale=Scale(parse_scale(scale)),
                   special=tuple(special), missing=missing, outside=outside)  # fmt: skip
