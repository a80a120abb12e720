"""A set of records: a column of codes for each attribute, and what the codes stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from juncture._util.notebook import max_lines, rows_html
from juncture._util.text import count_noun, list_names
from juncture.tables.codebook import Codebook
from juncture.tables.frames import to_pandas, to_polars
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Codes = NDArray[np.int32]
# Records shown in a notebook.
_MAX_SHOWN = 10


class Records(dict[str, Codes]):
    """Records as a dictionary of columns of codes, which knows what the codes stand for.

    `to_arrow` and `to_pandas` decode them. With a schema, values are like those of the user's own
    table, with numbers and dates drawn inside their bins; `seed` fixes the draws. Without one,
    values are the codebook's labels.

    >>> from juncture import Codebook, Coding
    >>> book = Codebook({"sex": Coding(("f", "m"))})
    >>> records = Records({"sex": np.array([1, 0], dtype=np.int32)}, codebook=book)
    >>> records["sex"], records.to_arrow()["sex"].to_pylist()
    (array([1, 0], dtype=int32), ['m', 'f'])
    """

    def __init__(
        self,
        columns: Mapping[str, Codes],
        *,
        codebook: Codebook | None = None,
        schema: Schema | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(columns)
        self.codebook = Codebook() if codebook is None else codebook
        self.schema, self.seed = schema, seed

    @property
    def n_records(self) -> int:
        """The number of records; `len` gives the number of attributes."""
        return len(next(iter(self.values()), ()))

    def with_schema(self, schema: Schema | None) -> Records:
        """The same records, decoded by a schema."""
        return Records(self, codebook=self.codebook, schema=schema, seed=self.seed)

    def to_arrow(self) -> pa.Table:
        """A table of decoded values, a row for each record."""
        from juncture.tables.arrow import RecordDecoder  # noqa: PLC0415  (slow to import)

        return RecordDecoder(self, self.codebook, self.schema, seed=self.seed).decode(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table of `to_arrow` as a pandas frame."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The table of `to_arrow` as a Polars frame."""
        return to_polars(self.to_arrow())

    def __repr__(self) -> str:
        words = "schema" if self.schema else "codes" if self.codebook.is_plain else "codebook"
        return f"Records({count_noun(self.n_records, 'record')} of {list_names(self)}; {words})"

    def _repr_html_(self) -> str:
        first = {name: self[name][:_MAX_SHOWN] for name in list(self)[: max_lines()]}
        head = Records(first, codebook=self.codebook, schema=self.schema, seed=self.seed)
        rows = list(zip(*head.to_arrow().to_pydict().values(), strict=True))
        return rows_html(count_noun(self.n_records, "record"), tuple(self), rows, self.n_records)
