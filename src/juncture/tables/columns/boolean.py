"""Columns of truth values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from juncture.tables.codebook import Meaning
from juncture.tables.columns.base import Column, TomlTable
from juncture.tables.columns.sql import Dialect, RawColumn
from juncture.tables.columns.summary import ColumnSummary, RawType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """False or true: whether someone is a member, whether a bill was paid.

        [columns.member]
        kind = "boolean"
        missing = true

    The engine's own texts for truth values and the numbers 0 and 1 are read too.

    >>> Boolean(missing=True).coding.labels
    (False, True, None)
    """

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reject_nearest()

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """False, then true."""
        return (False, True)

    def to_toml(self) -> TomlTable:
        """No entries of its own."""
        return {}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:  # noqa: ARG002
        """0 for false, 1 for true; other numbers are outside the domain."""
        known = f"COALESCE({raw.as_number} IN (0, 1), TRUE)"  # a number must be one of these
        return f"CASE WHEN {known} THEN CAST(TRY_CAST({raw.sql} AS BOOLEAN) AS INTEGER) END"

    def missing_sql(self, raw: RawColumn) -> str:
        """Whether it is NULL or not-a-number."""
        return raw.is_null_or_nan

    @property
    def arrow_type(self) -> pa.DataType:
        """Truth values."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.bool_()

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for truth values."""
        if summary.raw_type is not RawType.BOOLEAN:
            return None
        return cls(missing=summary.has_missing)
