"""Progress of long work: the one kind of hook that reports it."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int], None]
"""Called with the name of the work, how much of it is done, and the most that it may take."""


def ignore_progress(_what: str, _done: int, _maximum: int) -> None:
    """Do nothing: the default watch."""
