"""What a kind may look at when it drafts itself from data.

A summary is private: it holds exact bounds and values of the table. `juncture.private.draft` makes
it, and marks every schema drafted from it as not public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_DRAFT_VALUES = 200
"""A draft gives a column of texts at most this many regular codes."""


class RawType(StrEnum):
    """What the engine holds in a column."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TEXT = "text"


@dataclass(frozen=True)
class ColumnSummary:
    """One column of a private table: its type, its bounds, and on request its values."""

    raw_type: RawType
    low: Any
    """The smallest value: a bool, int, float, date or str, depending on `raw_type`."""
    high: Any
    """The largest value."""
    has_missing: bool
    list_values: Callable[[int], tuple[str, ...] | None]
    """All distinct values as sorted texts, or None if there are more than the number given."""
    quantiles: tuple[float, ...] = ()
    """Of numbers: evenly spaced quantiles of a sample, the smallest and the largest included."""
