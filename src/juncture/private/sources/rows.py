"""Which rows count: those that break no rule, and at most so many of each person.

Privacy. Every row draws a number of its own, and of each person the rows with the smallest numbers
count. So which rows of a person count depends on that person's rows and draws alone. Take two
tables that differ in all rows of one person, and give the rows that they share the same draws: then
the counted rows of everybody else are the same, and the counted tables differ in at most `max_rows`
rows. What follows has its guarantee for every such pair of draws, whatever is asked and in whatever
order, so also on average over them: neither e^epsilon, with or without delta, nor a Renyi
divergence becomes larger by mixing (they are quasi-convex in the pair of distributions). An
interrupted release that goes on draws anew; its first part has its guarantee given the first draws,
its second part given both, and the costs add up as always.

Two things would break this, and are refused: rows without a person, who would have to share a limit
or escape it, and limits by a lossy hash of the person, by which others' rows push one's own out.
Persons are compared by their whole values. The draws need not be secret for any of this; they are,
so that nobody can arrange which rows of theirs count.

Rows that break a rule are set aside first: whether a row does depends on that row alone, so
neighbouring tables stay neighbours. But where a record is replaced, one that counts may become one
that does not: the number of counted records is then no longer public (see `Curator`).

Example, two rows for each person:

    patient  draw      counted
    ann      0.71      no
    ann      0.02      yes
    ann      0.35      yes
    bob      0.90      yes
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput
from juncture.private.sources.encoding import EngineDialect, listed_missing
from juncture.tables.columns import RawColumn
from juncture.tables.person import Person
from juncture.tables.rules import Broken, Zeros
from juncture.tables.schema import Schema

# Columns beside the codes; no column of a schema can have these names by accident.
_PERSON, _DRAW = "juncture person", "juncture draw"
FATE = "juncture row"
"""The column that says what becomes of a row."""


class RowFate(IntEnum):
    """What becomes of a row; from `BREAKS_RULE` on, that it breaks a rule of that index."""

    COUNTED = 0
    BEYOND_LIMIT = 1
    """Its person has enough other rows that count."""
    WITHOUT_PERSON = 2
    SET_ASIDE = 3
    BREAKS_RULE = 10


@dataclass(frozen=True)
class RowLimit:
    """The SQL that decides which rows count; in one window, where people have several."""

    person: Person | None
    zeros: tuple[Zeros, ...]
    dialect: EngineDialect
    shift: int = 0
    """What the engine adds to every code."""

    @classmethod
    def of_schema(cls, schema: Schema, dialect: EngineDialect, shift: int = 0) -> RowLimit | None:
        """What a schema asks for; nothing where all rows count."""
        if schema.person is None and not schema.rules:
            return None
        return cls(schema.person, schema.zeros, dialect, shift)

    def raw_columns(self, floats: Sequence[str] = ()) -> list[str]:
        """What must be computed from a raw row, beside its codes.

        - `floats`: the columns that the engine holds as floating-point numbers.
        """
        if self.person is None:
            return []
        quote = self.dialect.quote_name
        raw = RawColumn(quote(self.person.column))
        text = self.dialect.cast_to_text(raw.sql)
        missing = [raw.is_null, f"trim({text}) = ''"]
        # By way of the text: by the statistics of Parquet files, DuckDB takes no number for NaN.
        missing += [f"lower({text}) = 'nan'"] if self.person.column in floats else []
        listed = listed_missing(self.person.missing_values, raw, self.dialect)
        condition = " OR ".join([*missing, *([listed] if listed else [])])
        draw = self.dialect.draw(secrets.randbits(63))
        return [
            f"CASE WHEN {condition} THEN NULL ELSE {text} END AS {quote(_PERSON)}",
            f"{draw} AS {quote(_DRAW)}",
        ]

    @property
    def fate(self) -> str:
        """SQL for the `RowFate` of a row with its codes and those columns."""
        person = self.dialect.quote_name(_PERSON)
        cases, aside = list[str](), list[str]()
        if self.person is not None:
            cases.append(f"WHEN {person} IS NULL THEN {int(RowFate.WITHOUT_PERSON)}")
        for index, each in enumerate(self.zeros):
            if not each.excluded.any():
                continue
            names = [self.dialect.quote_name(name) for name in each.clique]
            breaks = write_cells(names, each.excluded, self.shift)
            is_error = each.rule.broken is Broken.ERROR
            fate = RowFate.BREAKS_RULE + index if is_error else RowFate.SET_ASIDE
            cases.append(f"WHEN {breaks} THEN {int(fate)}")
            aside += [] if is_error else [breaks]
        if self.person is not None:
            # Rows that are set aside take no place of those that count.
            groups = ", ".join([person, *aside])
            draw = self.dialect.quote_name(_DRAW)
            number = f"row_number() OVER (PARTITION BY {groups} ORDER BY {draw})"
            cases.append(f"WHEN {number} > {self.person.max_rows} THEN {int(RowFate.BEYOND_LIMIT)}")
        chosen = f"CASE {' '.join(cases)} ELSE {int(RowFate.COUNTED)} END" if cases else "0"
        return f"CAST({chosen} AS TINYINT) AS {self.dialect.quote_name(FATE)}"

    @property
    def is_counted(self) -> str:
        """SQL for whether a row counts."""
        return f"{self.dialect.quote_name(FATE)} = {int(RowFate.COUNTED)}"

    def refuse_rows(self, exact_fates: Mapping[int, int]) -> None:
        """Refuse a table by how many rows have which fate; never shows one."""
        nobodys = exact_fates.get(RowFate.WITHOUT_PERSON, 0)
        if self.person is not None and nobodys:
            raise InvalidInput(
                f"`table` must say whose row it is in every row; got {nobodys:,} without a value "
                f"in {self.person.column!r}, the column of [person]. Fill them in, or leave these "
                "rows out of the table: nobody can be protected by a row that is nobody's."
            )
        for index, each in enumerate(self.zeros):
            n_rows = exact_fates.get(RowFate.BREAKS_RULE + index, 0)
            if n_rows:
                raise InvalidInput(
                    f"`table` must have no row that breaks a rule; got {n_rows:,} of which it is "
                    f"true that {each.rule.never}. Correct them, or write broken = "
                    f'"{Broken.SET_ASIDE}" into that [[rule]].'
                )


def write_cells(names: Sequence[str], chosen: NDArray[np.bool_], shift: int = 0) -> str:
    """SQL for whether the codes of a row lie in chosen cells: some boxes, most often very few.

    Codes of the first column with the same cells in the others are taken together.

    >>> write_cells(["a", "b"], np.array([[True, False], [False, False], [True, False]]))
    '((a IN (0, 2) AND (b IN (0))))'
    """
    if len(names) == 1:
        codes = ", ".join(str(code + shift) for code in np.flatnonzero(chosen))
        return f"({names[0]} IN ({codes}))"
    rows, owners = np.unique(chosen.reshape(len(chosen), -1), axis=0, return_inverse=True)
    boxes = []
    for index, row in enumerate(rows):
        if row.any():
            codes = ", ".join(str(c + shift) for c in np.flatnonzero(owners.reshape(-1) == index))
            inner = write_cells(names[1:], row.reshape(chosen.shape[1:]), shift)
            boxes.append(f"({names[0]} IN ({codes}) AND {inner})")
    return f"({' OR '.join(boxes)})"
