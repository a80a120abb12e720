"""What every engine refuses: missing columns, and values that the schema calls errors.

The messages give the column and the number of such values, and never show them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from juncture.errors import InvalidInput
from juncture.private.sources.encoding import expected_value
from juncture.private.sources.mismatches import Mismatch
from juncture.private.sources.source import Source
from juncture.tables.columns import Column, Date, OpenBins
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


def refuse_all_outside(
    source: Source, find_mismatches: Callable[[list[str]], Mapping[str, Mismatch]]
) -> None:
    """Refuse a column with private bins of which no value lies between the public bounds.

    The raw values are only looked at again where all lie in the first or the last cell.
    """
    columns = {} if source.schema is None else source.schema.open_columns
    bins = {name: each for name, each in columns.items() if isinstance(each, OpenBins)}
    suspects = list[str]()
    for name, table in zip(bins, source.exact_counts([(name,) for name in bins]), strict=True):
        counts, cells = table.values, bins[name].cells
        inner = sum(float(counts[cell.code]) for cell in cells[2:-2])
        if (
            inner == 0.0
            and counts.sum() > counts[bins[name].n_regular :][: bins[name].missing].sum()
        ):
            suspects.append(name)
    mismatches = find_mismatches(suspects) if suspects else {}
    for name in suspects:
        n_rows = source.exact_n_records - mismatches[name].missing
        if mismatches[name].outside + mismatches[name].unreadable >= n_rows:
            raise InvalidInput(
                f"`low` and `high` must have values of the column between them; got a column "
                f"{name!r} without any. Correct the bounds in the schema."
            )


def _describe(column: Column) -> tuple[str, str, str]:
    example = ", as 2024-01-31" if isinstance(column, Date) else ""
    return f"not {expected_value(column)}{example}", "outside its domain", "missing"


def _join(parts: Sequence[str], word: str) -> str:
    *first, last = parts
    return f"{', '.join(first)} {word} {last}" if first else last
