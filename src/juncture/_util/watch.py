"""Progress of long work: the one kind of hook that is called with it."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is at most."""


def ignore_progress(_what: str, _done: int, _maximum: int) -> None:
    """Do nothing: the default watch."""
