"""What the codes of attributes stand for: values, or intervals of numbers.

Conditions on values become weights on codes. An interval that a condition only partly covers counts
in proportion, as if the numbers in it were spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Domain

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

    >>> Coding(("female", "male", None)).labels
    ('female', 'male', None)

    >>> Coding.of_bins([0, 18, 65, 120]).share_below(40).round(2)
    array([1.  , 0.47, 0.  ])
    """

    meanings: tuple[Meaning, ...]

    def __post_init__(self) -> None:
        plain = tuple(m.item() if isinstance(m, np.generic) else m for m in self.meanings)
        object.__setattr__(self, "meanings", plain)
        if not len(set(plain)) == len(set(self.labels)) == len(plain):
            raise InvalidInput("`meanings` must differ from code to code; got some twice.")
        for meaning in self.meanings:
            if isinstance(meaning, tuple) and not (
                len(meaning) == 2 and -math.inf < meaning[0] < meaning[1] < math.inf
            ):
                raise InvalidInput(
                    f"`meanings` must be values or pairs of a lower and a higher number; "
                    f"got {meaning!r}. Bound open intervals by the smallest and largest value."
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
    def labels(self) -> tuple[Value, ...]:
        """The label of each code: intervals as '[low, high)'."""
        return tuple(label_of(meaning) for meaning in self.meanings)

    @property
    def values(self) -> tuple[Value | tuple[float, float], ...]:
        """Each code as conditions see it: None where no comparison is true."""
        return tuple(None if isinstance(m, Special) else m for m in self.meanings)

    @property
    def numbers(self) -> Vector:
        """Each code as a number, an interval as its middle; not-a-number for other values."""
        low, high = self._ends
        return 0.5 * (low + high)

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
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip((number - low) / (high - low), 0.0, 1.0)
        return np.where(np.isnan(low), 0.0, np.where(low == high, point, share))

    def match(self, value: object) -> Vector:
        """Ones at the codes that a value names, which may be a label or a number in an interval."""
        plain = value.item() if isinstance(value, np.generic) else value
        weights = np.array([float(_matches(meaning, plain)) for meaning in self.meanings])
        if not weights.any():
            return self.match_exact(plain)  # type: ignore[arg-type]
        return weights

    def match_exact(self, value: Value) -> Vector:
        """A one at the code of a value; refuses values that no code stands for alone."""
        weights = np.array([float(_is_equal(meaning, value)) for meaning in self.values])
        if not weights.any():
            inside = any(isinstance(m, tuple) for m in self.meanings) and isinstance(value, Real)
            hint = (
                "Numbers here come in intervals: ask for a range."
                if inside
                else f"The values are {_abbreviate(self.labels)}."
            )
            raise InvalidInput(f"`value` must be one that a code stands for; got {value!r}. {hint}")
        return weights

    @property
    def _ends(self) -> tuple[Vector, Vector]:
        """The lower and the higher end of each code; equal for a single number."""
        pairs = [m if isinstance(m, tuple) else (m, m) for m in self.values]
        ends = [[_to_number(low), _to_number(high)] for low, high in pairs]
        return np.array(ends).reshape(-1, 2)[:, 0], np.array(ends).reshape(-1, 2)[:, 1]


def label_of(meaning: Meaning) -> Value:
    """The label of a meaning; a value is its own label."""
    if isinstance(meaning, tuple):
        return f"[{_format_number(meaning[0])}, {_format_number(meaning[1])})"
    return str(meaning) if isinstance(meaning, Special) else meaning


def _format_number(number: float) -> str:
    """The shortest text that stands for this number alone."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _to_number(value: object) -> float:
    return float(value) if isinstance(value, Real) else math.nan


def _is_equal(meaning: object, value: Value) -> bool:
    if isinstance(meaning, bool) or isinstance(value, bool):
        return meaning is value
    return not isinstance(meaning, tuple) and meaning is not None and meaning == value


def _matches(meaning: Meaning, value: object) -> bool:
    if isinstance(meaning, tuple):
        inside = isinstance(value, Real) and meaning[0] <= float(value) < meaning[1]
        return inside or value in (meaning, label_of(meaning))
    if meaning is None or isinstance(meaning, Special):
        return value is meaning or value == meaning
    return _is_equal(meaning, value)  # type: ignore[arg-type]


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
