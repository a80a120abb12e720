"""Guarantees from events as a file has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.guarantee import Guarantee, read_entries


def guarantee_of(
    events: Sequence[Mapping[str, Any]],
    budget: Budget | None = None,
    neighbours: Neighbours | None = None,
) -> Guarantee:
    """The guarantee of these events."""
    return Guarantee(read_entries(events), neighbours, budget)
