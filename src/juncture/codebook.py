"""What the codes of attributes stand for: values, or intervals of numbers.

Conditions in the user's words become weights on codes. An interval that a condition only partly
covers counts in proportion, as if the numbers in it were spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from juncture.domain import Domain
from juncture.errors import InvalidInput
from juncture.layout import Vector

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

    >>> Coding.of_bins([0, 18, 65, 120]).below(40).round(2)
    array([1.  , 0.47, 0.  ])
    """

    meanings: tuple[Meaning, ...]

    def __post_init__(self) -> None:
        if len({(type(m), m) for m in self.meanings}) != len(self.meanings):
            raise InvalidInput(
                "`meanings` must differ from code to code; got some twice. Give each code its own."
            )
        for meaning in self.meanings:
            if isinstance(meaning, tuple) and not (
                len(meaning) == 2 and -math.inf < meaning[0] < meaning[1] < math.inf
            ):
                raise InvalidInput(
                    f"`meanings` must be values or pairs of a lower and a higher number; "
                    f"got {meaning!r}. Bound open intervals by the least and the largest number."
                )

    @classmethod
    def of_bins(cls, edges: Sequence[float]) -> Coding:
        """The intervals between edges."""
        return cls(tuple(zip(map(float, edges[:-1]), map(float, edges[1:]), strict=True)))

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.meanings)

    @property
    def labels(self) -> tuple[Value, ...]:
        """Each code in words: intervals as '[low, high)'."""
        return tuple(_label(meaning) for meaning in self.meanings)

    @property
    def values(self) -> tuple[Value | tuple[float, float], ...]:
        """Each code as conditions see it: None where no comparison is true."""
        return tuple(None if isinstance(m, Special) else m for m in self.meanings)

    @property
    def numbers(self) -> Vector:
        """Each code as a number, intervals by their middle; not-a-number where it is none."""
        low, high = self._ends
        return 0.5 * (low + high)

    def below(self, number: float, *, inclusive: bool = False) -> Vector:
        """The share of each code's records that are less than a number."""
        low, high = self._ends
        unknown = np.array([value is None for value in self.values])
        if np.isnan(low[~unknown]).any():
            raise InvalidInput(
                f"`values` must be numbers to be compared by size; got {self.labels[0]!r} and "
                "others. Compare with = or IN instead."
            )
        point = np.where(low <= number if inclusive else low < number, 1.0, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.clip((number - low) / (high - low), 0.0, 1.0)
        return np.where(np.isnan(low), 0.0, np.where(low == high, point, part))

    def equal(self, value: Value) -> Vector:
        """One at the code of a value; refuses values that no code stands for alone."""
        found = np.array([float(_same(meaning, value)) for meaning in self.values])
        if not found.any():
            inside = any(isinstance(m, tuple) for m in self.meanings) and isinstance(value, Real)
            hint = (
                "Numbers here come in intervals: ask for a range."
                if inside
                else f"The values are {_listed(self.labels)}."
            )
            raise InvalidInput(f"`value` must be one that a code stands for; got {value!r}. {hint}")
        return found

    @property
    def _ends(self) -> tuple[Vector, Vector]:
        """Lower and higher end of each code; the same for a single number."""
        pairs = [m if isinstance(m, tuple) else (m, m) for m in self.values]
        ends = [[_number(low), _number(high)] for low, high in pairs]
        return np.array(ends).reshape(-1, 2)[:, 0], np.array(ends).reshape(-1, 2)[:, 1]


def _label(meaning: Meaning) -> Value:
    if isinstance(meaning, tuple):
        return f"[{meaning[0]:g}, {meaning[1]:g})"
    return str(meaning) if isinstance(meaning, Special) else meaning


def _number(value: object) -> float:
    return float(value) if isinstance(value, Real) else math.nan


def _same(meaning: object, value: Value) -> bool:
    if isinstance(meaning, bool) or isinstance(value, bool):
        return meaning is value
    return not isinstance(meaning, tuple) and meaning is not None and meaning == value


def _listed(labels: Sequence[Value], most: int = 12) -> str:
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"


@dataclass(frozen=True, eq=False)
class Codebook:
    """The coding of some attributes; the codes of all others stand for themselves."""

    codings: Mapping[str, Coding]

    def checked(self, domain: Domain) -> Codebook:
        """The codebook itself, if it fits the domain."""
        for name, coding in self.codings.items():
            if coding.size != domain[name]:
                raise InvalidInput(
                    f"`codebook` must have {domain[name]} meanings for {name!r}; got "
                    f"{coding.size}. Give one for each code."
                )
        plain = {name: Coding(tuple(range(domain[name]))) for name in domain}
        return Codebook(plain | dict(self.codings))

    def __getitem__(self, attribute: str) -> Coding:
        return self.codings[attribute]

    def numbers(self, attribute: str) -> Vector:
        """The numbers that an attribute's codes stand for."""
        numbers = self.codings[attribute].numbers
        if np.isnan(numbers).any():
            raise InvalidInput(
                f"`attribute` must have numbers for values; got {attribute!r}, whose values are "
                f"{_listed(self.codings[attribute].labels)}. Give `values`."
            )
        return numbers

    @classmethod
    def plain(cls, domain: Domain) -> Codebook:
        """Every code stands for itself."""
        return cls({}).checked(domain)


def values_in(given: object) -> Iterable[object]:
    """The values of evidence: several if it is a collection, else itself alone."""
    return given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
