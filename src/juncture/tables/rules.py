"""Rules between columns: which combinations of values no record has, as public knowledge.

A rule is a condition in SQL over a few columns. A cell of their joint table is excluded only if all
of it breaks the rule: a bin of ages from 10 to 20 is not excluded by `age < 15`. Where a condition
compares a binned column, the bin is cut at the numbers it is compared with. Between two cuts no
comparison changes, so a few probes in each piece decide it: its first value, one inside, its last.
Two binned columns that are compared with each other share their cuts, so that two pieces are either
the same, and the probes realise <, = and >, or one lies below the other.

    age < 15 over the bins [0, 10) and [10, 20): probes 0, 5, 9 | 10, 12, 14 | 15, 17, 19
    the first bin breaks it everywhere and is excluded, the second does not

What is missing, or outside the domain, breaks no rule: a condition about it is not true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.tables.codebook import Codebook, Coding, Special
from juncture.tables.domain import Clique, Domain
from juncture.tables.periods import to_date

if TYPE_CHECKING:
    from sqlglot import exp

Expr = Any
"""A node of a condition; the parser takes long to import."""

MAX_RULES = 100
MAX_CELLS = 1 << 20
"""Cells of the joint table of a rule's columns."""
_MAX_PROBES = 1 << 22
_CONFIG: dict[str, Any] = {
    "threads": "1",
    "memory_limit": "1GB",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
}


class Broken(StrEnum):
    """What happens to rows that break a rule."""

    ERROR = "error"
    """The table is refused, before anything is spent."""
    SET_ASIDE = "set aside"
    """They are counted in no table."""


@dataclass(frozen=True)
class Rule:
    """What no record does, as a condition in SQL over a few columns.

    >>> Rule("age < 15 AND married").broken
    <Broken.ERROR: 'error'>
    """

    never: str
    broken: Broken = Broken.ERROR

    def __post_init__(self) -> None:
        if not isinstance(self.never, str) or not self.never.strip():
            raise InvalidInput(
                f"`never` must be a condition in SQL; got {self.never!r}. Write it as "
                "\"age < 15 AND marital_status <> 'never-married'\"."
            )
        try:
            object.__setattr__(self, "broken", Broken(self.broken))
        except ValueError:
            raise InvalidInput(
                f"`broken` must be one of {', '.join(Broken)}; got {self.broken!r}."
            ) from None

    def to_toml(self) -> dict[str, Any]:
        """The entries of a table [[rule]] in a schema file."""
        return {"never": self.never, "broken": str(self.broken)}


@dataclass(frozen=True, eq=False)
class Zeros:
    """The cells that a rule excludes."""

    rule: Rule
    clique: Clique
    excluded: NDArray[np.bool_] = field(repr=False)
    """An axis for each attribute of the clique: true where no record can be."""


def find_zeros(rule: Rule, codebook: Codebook) -> Zeros:
    """The cells of which all breaks a rule; refuses a rule that cannot be decided by cells.

    >>> book = Codebook({"age": Coding.of_bins([0, 10, 20]), "sex": Coding(("f", "m"))})
    >>> find_zeros(Rule("age < 15 AND sex = 'f'"), book).excluded.tolist()
    [[True, False], [False, False]]
    """
    condition = _Condition(rule, codebook)
    domain = Domain({name: coding.size for name, coding in codebook.codings.items()})
    clique = domain.canonical(condition.names)
    probes = {name: list(condition.probe(name)) for name in clique}
    n_probes = math.prod(map(len, probes.values()))
    if domain.size_of(clique) > MAX_CELLS or n_probes > _MAX_PROBES:
        raise InvalidInput(
            f"`never` must be about columns with at most {MAX_CELLS:,} combinations of values; got "
            f"{domain.size_of(clique):,} of {', '.join(clique)}. Write a rule about fewer "
            "columns, or with fewer numbers."
        )
    shape = domain.project(clique).shape
    excluded = np.zeros(shape, dtype=np.bool_)
    if n_probes:
        codes = [np.array([code for code, _ in each]) for each in probes.values()]
        grid = np.meshgrid(*codes, indexing="ij")
        cells = np.ravel_multi_index([each.reshape(-1) for each in grid], shape)
        holds = condition.evaluate({name: [v for _, v in each] for name, each in probes.items()})
        probed = np.bincount(cells, minlength=excluded.size)
        broken = np.bincount(cells, weights=holds, minlength=excluded.size)
        excluded = ((probed > 0) & (broken == probed)).reshape(shape)
    if excluded.all():
        raise InvalidInput(
            f"`never` must leave some record possible; got {rule.never!r}, which excludes all."
        )
    return Zeros(rule, clique, excluded)


class _Condition:
    """A rule's condition with its columns, and where their intervals must be cut."""

    def __init__(self, rule: Rule, codebook: Codebook) -> None:
        self._codebook, self._rule = codebook, rule
        self._tree = _parse(rule.never)
        self._columns = self._resolve()
        self.names = tuple(dict.fromkeys(name for _, name in self._columns))
        self._cuts: dict[str, set[float]] = {name: set() for name in self.names}
        for column, name in self._columns:
            if codebook[name].has_intervals:
                self._cut(column, name)

    def _resolve(self) -> list[tuple[exp.Column, str]]:
        from sqlglot import exp  # noqa: PLC0415

        found = []
        known = list(self._codebook.codings)
        for column in self._tree.find_all(exp.Column):
            alike = [name for name in known if name == column.name] or [
                name for name in known if name.lower() == column.name.lower()
            ]
            if len(alike) != 1 or column.table:
                raise InvalidInput(
                    f"`never` must be about columns of the schema; got {column.sql()}. Names with "
                    "spaces stand in double quotes, texts in single ones."
                )
            found.append((column, alike[0]))
        if not found:
            raise InvalidInput(f"`never` must be about columns; got {self._rule.never!r}.")
        return found

    def _cut(self, column: exp.Column, name: str) -> None:
        """Note the numbers that an occurrence of a binned column is compared with."""
        from sqlglot import exp  # noqa: PLC0415

        node: Any = column
        while isinstance(node.parent, exp.Paren):
            node = node.parent
        compared = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is)
        if not isinstance(node.parent, compared):
            self._refuse_bins(name)
        names = {id(each): known for each, known in self._columns}
        for other in node.parent.iter_expressions():
            if other is node:
                continue
            bare = other.unnest()
            if isinstance(bare, exp.Column):
                self._cuts[name] |= _ends(self._codebook[names[id(bare)]])
            elif other.find(exp.Column):
                self._refuse_bins(name)
            elif not isinstance(bare, exp.Null):
                self._cuts[name].add(self._to_number(bare, self._codebook[name]))

    def _refuse_bins(self, name: str) -> None:
        raise InvalidInput(
            f"`never` must compare {name} as it is with constants or with columns, since its "
            f"values come in bins; got {self._rule.never!r}. Solve the condition for the column."
        )

    def _to_number(self, constant: Expr, coding: Coding) -> float:
        text = constant.sql("duckdb")
        days = f"CAST({text} AS DATE) - DATE '1970-01-01'"
        (value,) = _run(f"SELECT CAST({text if coding.period is None else days} AS DOUBLE)")[0]
        if value is None or not math.isfinite(value):
            raise InvalidInput(f"`never` must compare numbers with numbers; got {text}.")
        return float(value)

    def probe(self, name: str) -> Iterator[tuple[int, Any]]:
        """Codes, each with values that decide it; nothing for what breaks no rule."""
        coding = self._codebook[name]
        top = max((m[1] for m in coding.meanings if isinstance(m, tuple)), default=math.nan)
        for code, meaning in enumerate(coding.meanings):
            if isinstance(meaning, tuple):
                numbers = _probe_interval(*meaning, self._cuts[name], coding.counts_whole)
                # The last edge of plain numbers belongs to the last bin.
                last = [top] if meaning[1] == top and not coding.counts_whole else []
                for number in [*numbers, *last]:
                    yield code, number if coding.period is None else to_date(number)
            elif meaning is not None and not isinstance(meaning, Special):
                yield code, meaning
            else:
                yield code, None

    def evaluate(self, values: dict[str, list[Any]]) -> NDArray[np.bool_]:
        """Whether the condition holds, for every combination of values in order."""
        import pyarrow as pa  # noqa: PLC0415
        from sqlglot import exp  # noqa: PLC0415

        titles = {name: f"c{index}" for index, name in enumerate(values)}
        for column, name in self._columns:
            column.replace(exp.column(titles[name]))
        tables = {
            f"t{index}": pa.table({f"c{index}": pa.array(each), f"i{index}": range(len(each))})
            for index, each in enumerate(values.values())
        }
        order = ", ".join(f"i{index}" for index in range(len(values)))
        sql = f"SELECT COALESCE(({self._tree.sql('duckdb')}), FALSE) FROM {', '.join(tables)}"
        rows = _run(f"{sql} ORDER BY {order}", **tables)
        return np.array([row[0] for row in rows], dtype=np.bool_)


def _parse(text: str) -> Expr:
    """The condition as a tree of comparisons; refuses everything else."""
    import sqlglot  # noqa: PLC0415
    from sqlglot import exp  # noqa: PLC0415

    allowed = (
        exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
        exp.Between, exp.In, exp.Is, exp.Null, exp.Literal, exp.Boolean, exp.Neg, exp.Column,
        exp.Identifier, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast, exp.DataType,
    )  # fmt: skip
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        raise InvalidInput(
            f"`never` must be a condition in SQL; got {text!r}, which cannot be read."
        ) from None
    for node in tree.walk():
        dated = not isinstance(node, exp.Cast) or (
            node.to.is_type("date") and isinstance(node.this, exp.Literal)
        )
        if not isinstance(node, allowed) or not dated:
            raise InvalidInput(
                "`never` must be made of comparisons, AND, OR, NOT, BETWEEN, IN and IS NULL; got "
                f"{node.sql('duckdb')[:80]!r}."
            )
    return tree


def _ends(coding: Coding) -> set[float]:
    """Where another column's values begin and end."""
    numbers = set[float]()
    for meaning in coding.meanings:
        if isinstance(meaning, tuple):
            numbers |= {float(meaning[0]), float(meaning[1])}
        elif isinstance(meaning, int | float) and not isinstance(meaning, bool):
            numbers.add(float(meaning))
    return numbers


def _probe_interval(low: float, high: float, cuts: set[float], whole: bool) -> list[float]:
    """The first, a middle and the last value of every piece between two cuts."""
    if whole:
        inner = {side for c in cuts for side in (math.ceil(c), math.floor(c) + 1)}
        ends = sorted({low, high, *(c for c in inner if low < c < high)})
        pieces = [(a, (a + b - 1) // 2, b - 1) for a, b in pairwise(ends)]
    else:
        ends = sorted({low, high, *(c for c in cuts if low < c < high)})
        pieces = [(a, 0.5 * (a + b), math.nextafter(b, a)) for a, b in pairwise(ends)]
    return sorted({number for piece in pieces for number in piece})


def _run(sql: str, **tables: Any) -> Sequence[tuple[Any, ...]]:  # noqa: ANN401
    """The rows of a statement, in an engine that sees nothing but these tables."""
    import duckdb  # noqa: PLC0415

    with duckdb.connect(config=_CONFIG) as connection:
        try:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.execute(sql).fetchall()
        except duckdb.Error as error:
            kind = type(error).__name__.removesuffix("Exception")
            raise InvalidInput(
                f"`never` must compare values that can be compared; got a condition that cannot be "
                f"calculated ({kind}). Texts stand in single quotes, numbers in none."
            ) from None
