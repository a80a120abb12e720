"""Whether a ledger is the one that has paid for a release, and whether it is complete.

A ledger that lost its last lines, or was put back from an old copy, is in itself without fault. A
release that was paid from it tells: it has the hash of its last event, and the ledger that paid has
the same hash at the same event.
"""

from __future__ import annotations

from enum import StrEnum

from juncture.errors import UnreadableFile
from juncture.privacy.guarantee import Guarantee
from juncture.privacy.ledger_state import State


class Evidence(StrEnum):
    """What shows that a ledger has paid for a release."""

    HASH = "the hash of its last event is the ledger's"
    EVENTS = "its events are in the ledger; it has no hash that could prove more"


def find_payment(state: State, guarantee: Guarantee, release: object) -> Evidence:
    """How a ledger shows that it has paid for a release; refuses one that has not.

    - `release`: its name, for the error.
    """
    if not guarantee.events:
        raise _refuse(state, release, "the release states no events")
    last = guarantee.events[-1].number
    if last > len(state.entries):
        raise _refuse(
            state,
            release,
            f"it ends with event {len(state.entries)}, and the release was paid for up to event "
            f"{last}: it was cut off or put back from an old copy, or it is another ledger",
        )
    paid = state.entries[last - 1]
    if guarantee.ledger_hash and paid.hash:
        if guarantee.ledger_hash != paid.hash:
            raise _refuse(
                state,
                release,
                f"its event {last} is another one: it is another ledger, or a copy of the right "
                "one that went its own way",
            )
        return Evidence.HASH
    for event in guarantee.events:
        own = state.entries[event.number - 1]
        if (own.what, own.mechanism, own.cost) != (event.what, event.mechanism, event.cost):
            raise _refuse(state, release, f"its event {event.number} is another one")
    return Evidence.EVENTS


def _refuse(state: State, release: object, why: str) -> UnreadableFile:
    return UnreadableFile(
        f"`FILE` must be the ledger that has paid for {release}; got {state.path}: {why}. Find the "
        "ledger that has it, and spend nothing from this one."
    )
