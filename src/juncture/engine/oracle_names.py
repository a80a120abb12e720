"""The oracles that have a name: nothing here is slow to import, so commands may list them."""

from __future__ import annotations

from enum import StrEnum


class OracleName(StrEnum):
    """The oracles that have a name."""

    EXACT = "exact"
    """Message passing on a junction tree."""
    RECORDS = "records"
    """Weighted records: see `Particles`."""
    AUTO = "auto"
    """Exact where the tree fits into memory and is not far slower, records elsewhere."""
