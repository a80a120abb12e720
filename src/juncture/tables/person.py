"""Whose rows a table has: the column that says it, and how many rows of a person count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from juncture.errors import InvalidInput
from juncture.tables.columns.base import call_with_entries, parse_missing_values

MAX_ROWS = 10_000
"""The most rows of a person that may count: noise grows with this number."""


@dataclass(frozen=True)
class Person:
    """The column that says whose row it is, and how many rows of one person count at most.

    The column itself is read only to tell people apart: it never becomes an attribute.

    >>> print(Person("patient", max_rows=4))
    one person with up to 4 rows
    """

    column: str
    max_rows: int
    missing_values: tuple[str | float, ...] = field(default=(), compare=False)
    """Texts and numbers that stand for a missing value; they say nothing about protection."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidInput(
                f"`column` must be the name of the column that says whose row it is; got "
                f"{self.column!r}."
            )
        whole = isinstance(self.max_rows, int) and not isinstance(self.max_rows, bool)
        if not whole or not 1 <= self.max_rows <= MAX_ROWS:
            raise InvalidInput(
                f"`max_rows` must be a whole number from 1 to {MAX_ROWS:,}; got "
                f"{self.max_rows!r}. The noise grows with it: choose what most people need."
            )
        object.__setattr__(self, "missing_values", parse_missing_values(self.missing_values))

    def __str__(self) -> str:
        return f"one person with up to {self.max_rows:,} {'row' if self.max_rows == 1 else 'rows'}"

    def to_toml(self) -> dict[str, Any]:
        """The entries of the table [person] in a schema file."""
        listed = {"missing_values": list(self.missing_values)} if self.missing_values else {}
        return {**self.to_json(), **listed}

    def to_json(self) -> dict[str, Any]:
        """What is protected, as plain data: for ledgers and releases."""
        return {"column": self.column, "max_rows": self.max_rows}

    @classmethod
    def parse(cls, entries: object, missing_values: tuple[str | float, ...] = ()) -> Person:
        """The person that a table of TOML or JSON describes.

        - `missing_values`: the default of the whole table.
        """
        try:
            if not isinstance(entries, dict):
                raise InvalidInput(f"`person` must be a table; got {entries!r}. Write [person].")
            return call_with_entries(cls, {"missing_values": missing_values, **entries})
        except InvalidInput as error:
            raise InvalidInput(f"[person]: {error}") from None
