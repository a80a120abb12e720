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
    CPU = "cpu"
    """Exact, on the processor."""
    GPU = "gpu"
    """Exact, on an NVIDIA card; on the processor where the card's memory is too small."""


class DeviceName(StrEnum):
    """Where an exact model is computed."""

    CPU = "cpu"
    """On the processor."""
    GPU = "gpu"
    """On an NVIDIA card; on the processor where the card's memory is too small."""
