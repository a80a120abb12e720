"""Which rows count: at most so many of each person, chosen at random inside the engine.

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

Example, two rows for each person:

    patient  draw      counted
    ann      0.71      no
    ann      0.02      yes
    ann      0.35      yes
    bob      0.90      yes
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import IntEnum

from juncture.errors import InvalidInput
from juncture.private.sources.encoding import EngineDialect, listed_missing
from juncture.tables.columns import RawColumn
from juncture.tables.person import Person

# Columns beside the codes; no column of a schema can have these names by accident.
_PERSON, _DRAW = "juncture person", "juncture draw"
FATE = "juncture row"
"""The column that says what becomes of a row."""


class RowFate(IntEnum):
    """What becomes of a row."""

    COUNTED = 0
    BEYOND_LIMIT = 1
    """Its person has enough other rows that count."""
    WITHOUT_PERSON = 2


@dataclass(frozen=True)
class RowLimit:
    """The SQL that limits the rows of each person, in one window."""

    person: Person
    dialect: EngineDialect

    def raw_columns(self, *, is_float: bool) -> list[str]:
        """What must be computed from a raw row, beside its codes."""
        quote = self.dialect.quote_name
        raw = RawColumn(quote(self.person.column))
        text = self.dialect.cast_to_text(raw.sql)
        missing = [raw.is_null, f"trim({text}) = ''"]
        # By way of the text: by the statistics of Parquet files, DuckDB takes no number for NaN.
        missing += [f"lower({text}) = 'nan'"] if is_float else []
        listed = listed_missing(self.person.missing_values, raw, self.dialect)
        condition = " OR ".join([*missing, *([listed] if listed else [])])
        draw = self.dialect.draw(secrets.randbits(63))
        return [
            f"CASE WHEN {condition} THEN NULL ELSE {text} END AS {quote(_PERSON)}",
            f"{draw} AS {quote(_DRAW)}",
        ]

    @property
    def fate(self) -> str:
        """SQL for the `RowFate` of a row with those columns."""
        person, draw = self.dialect.quote_name(_PERSON), self.dialect.quote_name(_DRAW)
        number = f"row_number() OVER (PARTITION BY {person} ORDER BY {draw})"
        return (
            f"CAST(CASE WHEN {person} IS NULL THEN {int(RowFate.WITHOUT_PERSON)} "
            f"WHEN {number} <= {self.person.max_rows} THEN {int(RowFate.COUNTED)} "
            f"ELSE {int(RowFate.BEYOND_LIMIT)} END AS TINYINT) AS {self.dialect.quote_name(FATE)}"
        )

    @property
    def is_counted(self) -> str:
        """SQL for whether a row counts."""
        return f"{self.dialect.quote_name(FATE)} = {int(RowFate.COUNTED)}"

    def refuse_without_person(self, n_rows: int) -> None:
        """Refuse rows that are nobody's."""
        if n_rows:
            raise InvalidInput(
                f"`table` must say whose row it is in every row; got {n_rows:,} without a value in "
                f"{self.person.column!r}, the column of [person]. Fill them in, or leave these "
                "rows out of the table: nobody can be protected by a row that is nobody's."
            )
