"""What columns of numbers in bins share: special values, means of bins, and drawing from bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Coding, Meaning
from juncture.tables.columns.base import Column, TomlTable
from juncture.tables.columns.sql import RawColumn, number_literal
from juncture.tables.histogram import FineHistogram
from juncture.tables.spread import Spread, Steps, draw_shares, infer_means

# With fewer bins than this there is no slope to follow.
_MIN_BINS = 3
# Digits of a mean after the first of its bin's width.
_DIGITS = 3


@dataclass(frozen=True, kw_only=True)
class Binned(Column):
    """A column of numbers in bins; a kind says what its bins are."""

    special: tuple[float, ...] = ()
    """Numbers that get codes of their own, before the bins: 0 for "nothing", -1 for "unknown"."""
    means: tuple[float, ...] = field(default=(), kw_only=True)
    """The mean of the numbers in each bin, where it is public; by default, bins are even."""
    fine: FineHistogram | None = field(default=None, kw_only=True, repr=False)
    """How the numbers lie inside the bins, where the bins were found privately."""

    def _check_bins(self) -> None:
        """Refuse special values and means that do not fit the bins."""
        for name in ("special", "means"):
            numbers = getattr(self, name)
            if not isinstance(numbers, Sequence) or not all(
                isinstance(n, int | float) and not isinstance(n, bool) and np.isfinite(n)
                for n in numbers
            ):
                raise InvalidInput(f"`{name}` must be a list of numbers; got {numbers!r}.")
            object.__setattr__(self, name, tuple(numbers))
        if len(set(self.special)) != len(self.special):
            raise InvalidInput(f"`special` must differ; got some twice in {self.special!r}.")
        if self.means and len(self.means) != len(self.bins):
            raise InvalidInput(
                f"`means` must have one number for each of the {len(self.bins)} bins; got "
                f"{len(self.means)}."
            )
        _ = self.coding  # which checks that each mean lies in its bin

    @property
    def bins(self) -> tuple[Meaning, ...]:
        """What the codes after the special ones stand for: intervals, or single numbers."""
        raise NotImplementedError

    @cached_property
    def regular(self) -> tuple[Meaning, ...]:
        """The special values, then the bins."""
        return (*self.special, *self.bins)

    def make_coding(self, meanings: tuple[Meaning, ...]) -> Coding:
        """The coding, with the means of the bins, or what is known of the numbers in them."""
        if self.fine is not None or not self.means:
            return Coding(meanings, fine=self.fine)
        n_after = len(meanings) - self.n_regular
        means = [m if isinstance(b, tuple) else None for b, m in zip(self.bins, self.means)]  # noqa: B905
        return Coding(meanings, means=(*[None] * len(self.special), *means, *[None] * n_after))

    def with_likely_spread(self, counts: NDArray[np.float64], floor: float) -> Self:
        """The column with its numbers spread inside bins as the counts of its codes suggest.

        A fine histogram follows the counts. Without one, bins get likely means, unless their means
        are public: only bins that touch each other tell about each other; a single value beside
        them does not.
        """
        if self.fine is not None:
            ends = [each if isinstance(each, tuple) else _cell(each) for each in self.bins]
            inside = counts[len(self.special) : self.n_regular]
            whole = self.coding.counts_whole
            return replace(self, fine=self.fine.follow_counts(ends, inside, whole=whole))
        spreads = self.coding.spreads[len(self.special) : self.n_regular]
        if self.means or sum(spread is not None for spread in spreads) < _MIN_BINS:
            return self
        bins = zip(spreads, self.bins, counts[len(self.special) :], strict=False)
        means = [float(b) if s is None else s.mean(s.low, s.high) for s, b, _ in bins]  # type: ignore[arg-type]
        for first, stop in _touching(spreads):
            run = [spread for spread in spreads[first:stop] if spread is not None]
            edges = [run[0].low, *(spread.high for spread in run)]
            inside = counts[len(self.special) + first : len(self.special) + stop]
            means[first:stop] = infer_means(edges, inside.tolist(), floor)
        rounded = (
            m if s is None else _round_inside(m, s) for m, s in zip(means, spreads, strict=True)
        )
        return replace(self, means=tuple(rounded))

    def to_toml(self) -> TomlTable:
        """The special values and the means, where there are any."""
        special = {"special": list(self.special)} if self.special else {}
        return {**special, **({"means": list(self.means)} if self.means else {})}

    def missing_sql(self, raw: RawColumn) -> str:
        """Whether it is NULL or not-a-number."""
        return raw.is_null_or_nan

    def _with_special(self, raw: RawColumn, bin_index: str) -> str:
        """SQL for the code, from SQL for the index of the bin."""
        if not self.special:
            return bin_index
        cases = (
            f"WHEN {number_literal(number)} THEN {code}" for code, number in enumerate(self.special)
        )
        shifted = f"{len(self.special)} + {bin_index}"
        return f"CASE {raw.as_number} {' '.join(cases)} ELSE {shifted} END"

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """The special value itself, or a number drawn from the code's bin."""
        low, width, tilt = self._ends
        indices = np.minimum(codes, self.n_regular - 1)
        uniform = rng.random(len(codes))
        if self.fine is not None:
            return draw_stepped(self.coding.spreads[: self.n_regular], low, indices, uniform)
        shares = draw_shares(uniform, tilt[indices])
        return np.asarray(low[indices] + width[indices] * shares)

    @cached_property
    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The lower end, the width and the tilt of each regular code."""
        rows = [
            (float(meaning), 0.0, 0.0)  # type: ignore[arg-type]
            if spread is None
            else (spread.low, spread.high - spread.low, spread.tilt)
            for meaning, spread in zip(self.regular, self.coding.spreads, strict=False)
        ]
        low, width, tilt = np.array(rows).T
        return low, width, tilt


def draw_stepped(
    spreads: Sequence[Spread | None],
    low: NDArray[np.float64],
    indices: NDArray[np.integer[Any]],
    uniform: NDArray[np.float64],
) -> NDArray[np.float64]:
    """A number of each code's spread, from even numbers in [0, 1); `low` where it has none.

    The ways through all spreads lie one after another: code 3 has those from 3 to 4.
    """
    ways, numbers = list[float](), list[float]()
    for code, spread in enumerate(spreads):
        if spread is None:
            ways += [float(code), code + 1.0]
            numbers += [float(low[code])] * 2
            continue
        steps = spread.steps or Steps((spread.low, spread.high), (0.0, 1.0))
        ways += [code + share for share in steps.below]
        numbers += steps.edges
    return np.asarray(np.interp(indices + uniform, ways, numbers))


def _cell(number: Any) -> tuple[float, float]:  # noqa: ANN401
    """The cell of a whole number that has a bin of its own."""
    return float(number), float(number) + 1.0


def _touching(spreads: Sequence[Spread | None]) -> list[tuple[int, int]]:
    """Where intervals follow each other without a gap: the first of each run, and its end."""
    breaks = [
        index
        for index, (one, other) in enumerate(pairwise(spreads), start=1)
        if one is None or other is None or one.high != other.low
    ]
    runs = pairwise([0, *breaks, len(spreads)])
    return [(first, stop) for first, stop in runs if stop - first >= _MIN_BINS]


def _round_inside(mean: float, spread: Spread) -> float:
    """A mean rounded to about a thousandth of its bin's width."""
    return round(mean, _DIGITS - math.floor(math.log10(spread.high - spread.low)))
