"""Answers with intervals: lower, upper, and what each of them rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from juncture.fit.basis import Basis, Grades
from juncture.model.sql.answer import SqlAnswer
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector

NO_CHECK = (
    "An assumed answer without an interval has none because its columns were never measured "
    "together: no measurement tells how far it may be off. A release with a check (check=0.05, "
    "--check 0.05) has intervals for such answers."
)
PROVED = (
    "The interval of an answer that is assumed is what the mechanism's own choice proves: a table "
    "that is further off would have been chosen. It is wide. A release with a check (check=0.05, "
    "--check 0.05) has shorter ones."
)


@dataclass(frozen=True, eq=False)
class IntervalAnswer:
    """Answers to a query, each with an interval and with what it rests on.

    The interval covers the table's own answer, over the noise: in `level` of all releases it holds
    what the table says. With `population`, it covers what other tables of the same population would
    say, too.

    >>> from juncture import Domain, Measurement, Release, estimate
    >>> counts = Measurement(("age",), [60.0, 40.0], stddev=2.0)
    >>> fit = estimate(Domain({"age": 2}), [counts])
    >>> release = Release(model=fit.model, measurements=[counts], fit=fit.summary)
    >>> ages = release.project(("age",), interval=0.95)
    >>> [str(each) for each in ages.bases], bool((ages.lower < ages.answer).all())
    (['measured', 'measured'], True)
    """

    answer: Vector
    lower: Vector
    """Not a number where there is no interval."""
    upper: Vector
    grades: Grades = field(repr=False)
    """What each answer rests on, as numbers: see `bases`."""
    level: float
    population: bool = False
    notes: tuple[str, ...] = ()
    """Why there is no interval, where there is none."""
    table: Factor | None = field(default=None, repr=False)
    """The marginal that was asked for, with the names of its cells; None for other queries."""

    @property
    def half_width(self) -> Vector:
        """Half of the distance between lower and upper."""
        return (self.upper - self.lower) / 2.0

    @property
    def plus_minus(self) -> Vector:
        """How far the further end is from the answer: an answer plus or minus this holds both."""
        return np.maximum(self.answer - self.lower, self.upper - self.answer)

    @property
    def bases(self) -> list[Basis]:
        """What each answer rests on, in the order of the flat answers."""
        return [Basis(int(grade)) for grade in self.grades.reshape(-1)]

    def to_sql_answer(self) -> IntervalSqlAnswer:
        """A marginal as rows, a column for each attribute and one for the count."""
        assert self.table is not None, "only a marginal has names for its cells"
        made = self.table.to_arrow()
        rows = tuple(zip(*made.to_pydict().values(), strict=True))
        n_keys = len(made.column_names) - 1
        cells = zip(
            self.lower.reshape(-1).tolist(),
            self.upper.reshape(-1).tolist(),
            self.bases,
            strict=True,
        )
        intervals = tuple((*[None] * n_keys, CellInterval(*each)) for each in cells)
        return IntervalSqlAnswer(
            tuple(made.column_names), rows, intervals=intervals, level=self.level,
            reasons=self.notes, population=self.population,
        )  # fmt: skip


class CellInterval(NamedTuple):
    """The interval of one value: not a number at both ends where there is none."""

    lower: float
    upper: float
    basis: Basis

    @property
    def half_width(self) -> float:
        """Half of the distance between the ends."""
        return (self.upper - self.lower) / 2.0

    def find_plus_minus(self, answer: float) -> float:
        """How far the further end is from the answer.

        >>> CellInterval(1.5, 5.0, Basis.MEASURED).find_plus_minus(2.5)
        2.5
        """
        return max(answer - self.lower, self.upper - answer)

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.upper - self.lower)


@dataclass(frozen=True, repr=False)
class IntervalSqlAnswer(SqlAnswer):
    """The rows of an answer, with an interval for each number that is made of counts.

    >>> rows = (("f", 2.5), ("m", 1.5))
    >>> some = (None, CellInterval(1.5, 3.5, Basis.MEASURED))
    >>> print(IntervalSqlAnswer(("sex", "n"), rows, intervals=(some, some), level=0.95))
    sex    n  +-     basis
      f  2.5   1  measured
      m  1.5   2  measured
    """

    intervals: tuple[tuple[CellInterval | None, ...], ...] = ()
    """For each row, the interval of each column; None for groups."""
    level: float = 0.95
    reasons: tuple[str, ...] = ()
    """Why there is no interval, where there is none."""
    population: bool = False

    @property
    def bases(self) -> list[Basis]:
        """The weakest basis of each row."""
        found = ([each.basis for each in row if each is not None] for row in self.intervals)
        return [max(bases, default=Basis.MEASURED) for bases in found]

    @property
    def plain(self) -> SqlAnswer:
        """The answer without its intervals."""
        return SqlAnswer(**{each.name: getattr(self, each.name) for each in fields(SqlAnswer)})

    @property
    def with_columns(self) -> SqlAnswer:
        """The answer with a column after each number, for its further end, and the bases."""
        shown = [i for i in range(len(self.columns)) if any(row[i] for row in self.intervals)]
        if not shown:
            return self.plain
        titles = list[str]()
        for index, name in enumerate(self.columns):
            more = "+-" if len(shown) == 1 else f"+- {name}"
            titles += [name, more] if index in shown else [name]
        rows = [
            (*_widen(row, cells, shown), str(basis))
            for row, cells, basis in zip(self.rows, self.intervals, self.bases, strict=True)
        ]
        return SqlAnswer((*titles, "basis"), tuple(rows), self.notes)

    def __str__(self) -> str:
        return str(self.with_columns)


def _widen(
    row: Iterable[Any], cells: Iterable[CellInterval | None], shown: list[int]
) -> list[object]:
    """A row with how far the further end of each interval is after its number."""
    wide = list[object]()
    for index, (value, cell) in enumerate(zip(row, cells, strict=True)):
        wide.append(value)
        if index in shown:
            wide.append(cell.find_plus_minus(value) if cell is not None and cell.is_known else None)
    return wide
