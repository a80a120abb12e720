"""What the codes of attributes stand for: values, or intervals of numbers or days.

Conditions on values become weights on codes. An interval that a condition only partly covers counts
in proportion, as if the numbers in it were spread evenly, or as evenly as their mean allows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.histogram import FineHistogram
from juncture.tables.periods import Period, name_period, to_date, to_day_number
from juncture.tables.spread import Spread, spread_below

if TYPE_CHECKING:
    from juncture.tables.layout import Vector

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Special:
    """The meaning of a code that stands for no value of the domain."""

    name: str

    def __str__(self) -> str:
        return f"({self.name})"


OUTSIDE = Special("outside")
Meaning = Value | tuple[float, float] | Special


@dataclass(frozen=True)
class Coding:
    """The meaning of one attribute's codes, in their order.

    A code stands for a value; for the numbers from a lower end up to (not including) a higher
    one, written as a pair; for a missing value, as None; or for all values outside the domain.
    No comparison is true of the last two.

    - `whole`: intervals hold whole numbers only: (0, 3) means 0, 1 and 2.
    - `period`: intervals are of days, counted from 1970-01-01, and are called by this period.
    - `means`: for each code that is an interval, the mean of the numbers in it, if known; else the
      middle is taken.
    - `fine`: a histogram of the numbers or days inside the intervals, if known.

    >>> Coding(("female", "male", None)).labels
    ('female', 'male', None)

    >>> Coding.of_bins([0, 18, 65, 120]).share_below(40).round(2)
    array([1.  , 0.47, 0.  ])
    """

    meanings: tuple[Meaning, ...]
    whole: bool = False
    period: Period | None = None
    means: tuple[float | None, ...] | None = None
    fine: FineHistogram | None = None

    def __post_init__(self) -> None:
        plain = tuple(m.item() if isinstance(m, np.generic) else m for m in self.meanings)
        object.__setattr__(self, "meanings", plain)
        for meaning in self.meanings:
            if isinstance(meaning, tuple):
                self._check_interval(meaning)
        if not len(set(plain)) == len(set(self.labels)) == len(plain):
            raise InvalidInput("`meanings` must differ from code to code; got some twice.")
        if self.means is not None:
            self._check_means(self.means)

    def _check_interval(self, meaning: tuple[float, float]) -> None:
        if not (len(meaning) == 2 and -math.inf < meaning[0] < meaning[1] < math.inf):
            raise InvalidInput(
                f"`meanings` must be values or pairs of a lower and a higher number; "
                f"got {meaning!r}. Bound open intervals by the smallest and largest value."
            )
        if self.counts_whole and not all(float(end).is_integer() for end in meaning):
            raise InvalidInput(
                f"`meanings` must be pairs of whole numbers where only such occur; got {meaning!r}."
            )

    def _check_means(self, means: tuple[float | None, ...]) -> None:
        if self.period is not None or len(means) != self.size:
            raise InvalidInput(
                f"`means` must have an entry for each of the {self.size} codes, which must stand "
                f"for numbers; got {len(means)}."
            )
        for meaning, mean in zip(self.meanings, means, strict=True):
            inside = isinstance(meaning, tuple) and meaning[0] <= (mean or 0.0) <= meaning[1]
            if mean is not None and not inside:
                raise InvalidInput(
                    f"`means` must lie in their intervals; got {mean!r} for {meaning!r}."
                )

    def __repr__(self) -> str:
        return f"Coding({self.size:,} codes: {list_names(map(str, self.labels))})"

    @classmethod
    def of_bins(cls, edges: Sequence[float]) -> Coding:
        """The coding whose codes stand for the intervals between edges."""
        return cls(tuple(zip(map(float, edges[:-1]), map(float, edges[1:]), strict=True)))

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.meanings)

    @property
    def counts_whole(self) -> bool:
        """Whether intervals hold whole numbers or days, which can be counted one by one."""
        return self.whole or self.period is not None

    @property
    def has_intervals(self) -> bool:
        """Whether some codes stand for intervals."""
        return any(isinstance(meaning, tuple) for meaning in self.meanings)

    @cached_property
    def labels(self) -> tuple[Value, ...]:
        """The label of each code: intervals as '[low, high)', periods as in a calendar."""
        return tuple(self._label(meaning) for meaning in self.meanings)

    def _label(self, meaning: Meaning) -> Value:
        if not isinstance(meaning, tuple):
            return str(meaning) if isinstance(meaning, Special) else meaning
        if self.period is not None:
            return name_period(to_date(meaning[0]), to_date(meaning[1] - 1), self.period)
        return f"[{_format_number(meaning[0])}, {_format_number(meaning[1])})"

    @property
    def values(self) -> tuple[Value | tuple[float, float], ...]:
        """Each code as conditions see it: None where no comparison is true."""
        return tuple(None if isinstance(m, Special) else m for m in self.meanings)

    @cached_property
    def spreads(self) -> tuple[Spread | None, ...]:
        """How the numbers of each interval are spread; None for codes of single values.

        Whole numbers reach half a unit to either side.
        """
        shift = 0.5 if self.counts_whole else 0.0
        means = self.means or (None,) * self.size
        return tuple(
            self._spread(meaning, mean, shift) if isinstance(meaning, tuple) else None
            for meaning, mean in zip(self.meanings, means, strict=True)
        )

    def _spread(self, interval: tuple[float, float], mean: float | None, shift: float) -> Spread:
        low, high = interval
        if self.fine is not None:
            edges, masses = self.fine.inside(low, high)
            return Spread.stepped(edges - shift, masses)
        if mean is None:
            return Spread(low - shift, high - shift)
        return Spread.with_mean(low - shift, high - shift, mean)

    @property
    def numbers(self) -> Vector:
        """Each code as a number, an interval as its mean; not-a-number for other values."""
        if self.period is not None:
            return np.full(self.size, np.nan)
        pairs = zip(self.values, self.spreads, strict=True)
        return np.array(
            [_to_number(value) if s is None else s.mean(s.low, s.high) for value, s in pairs]
        )

    def share_below(self, number: float, *, inclusive: bool = False) -> Vector:
        """The share of each code's records below a number; with `inclusive`, at or below it."""
        low, high = self._ends
        unknown = np.array([value is None for value in self.values])
        if np.isnan(low[~unknown]).any():
            raise InvalidInput(
                f"`values` must be numbers to be compared by size; got {self.labels[0]!r} and "
                "others. Compare with = or IN instead."
            )
        point = np.where(low <= number if inclusive else low < number, 1.0, 0.0)
        cut = number
        if self.counts_whole:
            cut = math.floor(number) + 0.5 if inclusive else math.ceil(number) - 0.5
        tilt = np.array([0.0 if each is None else each.tilt for each in self.spreads])
        with np.errstate(invalid="ignore", divide="ignore"):
            share = spread_below(np.clip((cut - low) / (high - low), 0.0, 1.0), tilt)
        for code, spread in enumerate(self.spreads):
            if spread is not None and spread.steps is not None:
                share[code] = spread.share(spread.low, min(max(cut, spread.low), spread.high))
        return np.where(np.isnan(low), 0.0, np.where(low == high, point, share))

    def match(self, value: object) -> Vector:
        """Ones at the codes that a value names: a label, or a number or day in an interval."""
        plain = value.item() if isinstance(value, np.generic) else value
        matches = [self._matches(code, plain) for code in range(self.size)]
        if not any(matches):
            return self.match_exact(plain)  # type: ignore[arg-type]
        single = [m and not isinstance(self.meanings[c], tuple) for c, m in enumerate(matches)]
        return np.array(single if any(single) else matches, dtype=np.float64)

    def match_exact(self, value: Value) -> Vector:
        """A one at the code of a value; refuses values that no code stands for alone."""
        weights = np.array([float(_is_equal(meaning, value)) for meaning in self.values])
        if not weights.any():
            inside = self.has_intervals and isinstance(value, Real)
            hint = (
                "Numbers here come in intervals: ask for a range."
                if inside
                else f"The values are {_abbreviate(self.labels)}."
            )
            raise InvalidInput(f"`value` must be one that a code stands for; got {value!r}. {hint}")
        return weights

    def _matches(self, code: int, value: object) -> bool:
        meaning = self.meanings[code]
        if isinstance(meaning, tuple):
            if value in (meaning, self.labels[code]):
                return True
            if self.period is not None:
                is_day = isinstance(value, dt.date)
                return is_day and meaning[0] <= to_day_number(value) < meaning[1]  # type: ignore[arg-type]
            return isinstance(value, Real) and meaning[0] <= float(value) < meaning[1]
        if meaning is None or isinstance(meaning, Special):
            return value is meaning or value == meaning
        return _is_equal(meaning, value)  # type: ignore[arg-type]

    @property
    def _ends(self) -> tuple[Vector, Vector]:
        """The lower and the higher end of each code's spread; equal for a single number."""
        ends = [
            [_to_number(value)] * 2 if spread is None else [spread.low, spread.high]
            for value, spread in zip(self.values, self.spreads, strict=True)
        ]
        return np.array(ends).reshape(-1, 2)[:, 0], np.array(ends).reshape(-1, 2)[:, 1]


def _format_number(number: float) -> str:
    """The shortest text that stands for this number alone."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _to_number(value: object) -> float:
    return float(value) if isinstance(value, Real) else math.nan


def _is_equal(meaning: object, value: Value) -> bool:
    if isinstance(meaning, bool) or isinstance(value, bool):
        return meaning is value
    return not isinstance(meaning, tuple) and meaning is not None and meaning == value


def _abbreviate(labels: Sequence[Value], max_labels: int = 12) -> str:
    shown = ", ".join(map(repr, labels[:max_labels]))
    return shown if len(labels) <= max_labels else f"{shown} and {len(labels) - max_labels} more"


@dataclass(frozen=True, eq=False)
class Codebook:
    """The coding of some attributes; the codes of all others stand for themselves.

    - `codings`: the coding of each attribute that has one.
    - `domain`: the attributes of the table; `bind` fills it in.

    >>> book = Codebook({"sex": Coding(("f", "m"))}).bind(Domain({"sex": 2, "age": 3}))
    >>> book["sex"].labels, book["age"].labels
    (('f', 'm'), (0, 1, 2))
    """

    codings: Mapping[str, Coding] = field(default_factory=dict)
    domain: Domain = field(default_factory=Domain)

    def __repr__(self) -> str:
        if self.is_plain:
            attributes = count_noun(len(self.domain), "attribute")
            return f"Codebook(every code stands for itself; {attributes})"
        sizes = (f"{name}: {coding.size:,}" for name, coding in self.codings.items())
        return f"Codebook(the codes of {list_names(sizes)})"

    @property
    def is_plain(self) -> bool:
        """Whether every code stands for itself."""
        return not self.codings

    def bind(self, domain: Domain) -> Codebook:
        """The codebook for a table with this domain; refuses a domain that it does not fit."""
        if self.domain is domain:
            return self
        for name, coding in self.codings.items():
            if coding.size != domain[name]:
                raise InvalidInput(
                    f"`codebook` must have {domain[name]} meanings for {name!r}; got {coding.size}."
                )
        return Codebook(self.codings, domain)

    def __getitem__(self, attribute: str) -> Coding:
        if attribute not in self.codings:
            return _plain_coding(self.domain[attribute])
        return self.codings[attribute]

    def numbers(self, attribute: str) -> Vector:
        """The numbers that an attribute's codes stand for."""
        numbers = self[attribute].numbers
        if np.isnan(numbers).any():
            raise InvalidInput(
                f"`attribute` must have numbers for values; got {attribute!r}, whose values are "
                f"{_abbreviate(self[attribute].labels)}. Give `values`."
            )
        return numbers

    @classmethod
    def plain(cls, domain: Domain) -> Codebook:
        """The codebook in which every code stands for itself."""
        return cls({}, domain)


@lru_cache(maxsize=256)
def _plain_coding(size: int) -> Coding:
    """The coding whose codes stand for themselves."""
    return Coding(tuple(range(size)))


def values_in(value: object, coding: Coding) -> Iterable[object]:
    """The values in a piece of evidence: those of a collection, or the one value."""
    interval = isinstance(value, tuple) and value in coding.meanings
    if interval or isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    return (value[()],) if isinstance(value, np.ndarray) and value.ndim == 0 else value
