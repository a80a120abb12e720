"""Columns of listed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from juncture.errors import InvalidInput
from juncture.tables.codebook import Meaning
from juncture.tables.columns.base import Column, Outside, TomlTable, call_with_entries
from juncture.tables.columns.sql import Dialect, RawColumn, number_literal
from juncture.tables.columns.summary import MAX_DRAFT_VALUES, ColumnSummary, RawType

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Categorical(Column):
    """Values from a list of texts or whole numbers: cities, diagnoses, levels.

        [columns.work]
        kind = "categorical"
        values = ["employed", "self-employed", "none"]
        outside = "code"

    Every value has a code, in the order of the list. The values have no order of their own, so
    `outside` cannot be `nearest`. With `outside = "code"` the list may be empty.

    >>> Categorical(values=("employed", "none"), outside="code").coding.labels
    ('employed', 'none', '(outside)')
    """

    kind: ClassVar[str] = "categorical"

    values: tuple[str, ...] | tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reject_nearest()
        is_list = isinstance(self.values, tuple | list)
        kinds = {type(value) for value in self.values} if is_list else set()
        none_known = is_list and not self.values and self.outside is Outside.CODE
        if not none_known and (len(kinds) != 1 or not kinds <= {str, int}):
            raise InvalidInput(
                f"`values` must be texts or whole numbers, all of one kind; got {self.values!r}. "
                "List every value that the column may hold."
            )
        if len(set(self.values)) != len(self.values):
            raise InvalidInput("`values` must differ; got some twice.")
        if any(isinstance(value, int) and abs(value) > 2**53 for value in self.values):
            raise InvalidInput(
                "`values` must be whole numbers up to 2^53; got larger ones. List them as texts."
            )

    @property
    def regular(self) -> tuple[Meaning, ...]:
        """The values."""
        return self.values

    @classmethod
    def from_toml(cls, entries: TomlTable) -> Self:
        """The column with a list of values."""
        values = entries.pop("values", ())
        listed = tuple(values) if isinstance(values, list) else values
        return call_with_entries(cls, {**entries, "values": listed})

    def to_toml(self) -> TomlTable:
        """The list of values."""
        return {"values": list(self.values)}

    def index_sql(self, raw: RawColumn, dialect: Dialect) -> str:
        """The value's index in the list."""
        if not self.values:
            return "CAST(NULL AS INTEGER)"
        if self._has_texts:
            return dialect.index_of(dialect.cast_to_text(raw.sql), [str(v) for v in self.values])
        numbers = [number_literal(float(value)) for value in self.values]
        cases = " ".join(f"WHEN {each} THEN {index}" for index, each in enumerate(numbers))
        return f"CASE {raw.as_number} {cases} END"

    def missing_sql(self, raw: RawColumn) -> str:
        """Whether it is NULL or, among numbers, not-a-number."""
        return raw.is_null if self._has_texts else raw.is_null_or_nan

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values: texts or whole numbers."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.string() if self._has_texts else pa.int64()

    @classmethod
    def draft(cls, summary: ColumnSummary) -> Self | None:
        """A proposal for texts of few distinct values: all that occur."""
        if summary.raw_type is not RawType.TEXT:
            return None
        values = summary.list_values(MAX_DRAFT_VALUES)
        if values is None:
            return None
        return cls(values=values, missing=summary.has_missing, outside=Outside.CODE)

    @property
    def _has_texts(self) -> bool:
        return not self.values or isinstance(self.values[0], str)
