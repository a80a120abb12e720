"""What every engine refuses: missing columns, and values that the schema calls errors.

The messages give the column and the number of such values, and never show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from juncture.errors import InvalidInput
from juncture.private.sources.encoding import expected_value
from juncture.private.sources.mismatches import Mismatch
from juncture.tables.columns import Column
from juncture.tables.schema import Schema

# What to do about each of a mismatch's counts.
_HINTS = (
    "list in `missing_values` the texts that stand for a missing value",
    "set `outside` to 'code' or 'nearest'",
    "set `missing` to true",
)


def refuse_absent(schema: Schema, columns: Sequence[str]) -> None:
    """Refuse a table without some column of the schema."""
    absent = [name for name in schema.used_columns if name not in columns]
    if absent:
        raise InvalidInput(
            f"`table` must have every column of the schema; got none for {', '.join(absent)}. "
            "Correct the names in one of the two. A CSV file must begin with a line of names; "
            "if it does not, say so by --no-header or TableFile(path, header=False)."
        )


def refuse_errors(schema: Schema, mismatches: Mapping[str, Mismatch]) -> None:
    """Refuse values that the schema calls errors, those of all columns at once."""
    refused = {name: each.refused(schema.columns[name]) for name, each in mismatches.items()}
    listed = [
        f"{n_rows:,} rows of {name!r} that are {what}"
        for name, mismatch in refused.items()
        for n_rows, what in zip(mismatch, _describe(schema.columns[name]), strict=True)
        if n_rows
    ]
    if listed:
        totals = [sum(counts) for counts in zip(*refused.values(), strict=True)]
        advice = [hint for n_rows, hint in zip(totals, _HINTS, strict=True) if n_rows]
        raise InvalidInput(
            f"`table` must agree with the schema; got {_join(listed, 'and')}. Correct the schema, "
            f"or for such a column {_join(advice, 'or')}."
        )


def _describe(column: Column) -> tuple[str, str, str]:
    return f"not {expected_value(column)}", "outside its domain", "missing"


def _join(parts: Sequence[str], word: str) -> str:
    *first, last = parts
    return f"{', '.join(first)} {word} {last}" if first else last
