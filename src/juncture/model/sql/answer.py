"""The answer to a SELECT: columns and rows, for people and for other tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from juncture._util.notebook import rows_html
from juncture._util.text import count_noun, list_names, reveal
from juncture.model.sql.notes import Note, Range
from juncture.tables.frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True)
class SqlAnswer:
    """Named columns and rows of values; counts are expectations, so they need not be whole.

    >>> answer = SqlAnswer(("sex", "n"), (("f", 2.5), ("m", 1.5)))
    >>> print(answer)
    sex    n
      f  2.5
      m  1.5
    >>> answer
    SqlAnswer(2 rows of sex, n)
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[Note, ...] = ()
    """What the answer rests on besides the data; each is a sentence as a text."""
    ranges: tuple[tuple[Range | None, ...], ...] = ()
    """For counts, sums and means, where numbers are known by their bins: what the value can be,
    wherever in their bins they lie. A row for each row; empty where no bin matters."""

    def __str__(self) -> str:
        names = tuple(reveal(name, one_line=True) for name in self.columns)
        cells = [names, *(tuple(map(_format_cell, row)) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"SqlAnswer({count_noun(len(self.rows), 'row')} of {list_names(self.columns)})"

    def _repr_html_(self) -> str:
        title = count_noun(len(self.rows), "row")
        return rows_html(title, self.columns, self.rows, len(self.rows))

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_arrow(self) -> pa.Table:
        """The answer as an Arrow table; a column with values of several kinds becomes text."""
        import pyarrow as pa  # noqa: PLC0415  (slow to import)

        from juncture.tables.arrow import array_of  # noqa: PLC0415

        columns = [[row[index] for row in self.rows] for index in range(len(self.columns))]
        return pa.Table.from_arrays([array_of(column) for column in columns], list(self.columns))

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The table of `to_arrow` as a Polars frame."""
        return to_polars(self.to_arrow())


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "NULL" if value is None else reveal(str(value), one_line=True)
