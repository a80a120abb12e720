"""What every engine refuses: missing columns, and values that the schema calls errors.

The messages give the column and the number of such values, and never show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.schema import Schema


def refuse_absent(schema: Schema, columns: Sequence[str]) -> None:
    """Refuse a table without some column of the schema."""
    absent = [name for name in schema.columns if name not in columns]
    if absent:
        raise InvalidInput(
            f"`table` must have every column of the schema; got none for {', '.join(absent)}. "
            "Correct the names in one of the two; a CSV file must begin with a line of names."
        )


def refuse_errors(domain: Domain, errors: Mapping[str, tuple[int, int]]) -> None:
    """Refuse values that the schema calls errors: outside the domain, or missing."""
    for name in domain:
        for n_rows, what, hint in zip(
            errors[name],
            ("outside its domain", "missing"),
            ("`outside` to 'code' or 'nearest'", "`missing` to true"),
            strict=True,
        ):
            if n_rows:
                raise InvalidInput(
                    f"`table` must agree with the schema; got {n_rows:,} rows of {name!r} that are "
                    f"{what}. Correct the schema, or set {hint} for the column."
                )
