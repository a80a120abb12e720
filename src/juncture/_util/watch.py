"""Telling whoever watches how far long work has come."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is at most."""


def ignore_progress(_what: str, _done: int, _maximum: int) -> None:
    """The watch of those who gave none."""


def watch_steps(watch: Watch, what: str) -> Callable[[int, int], None]:
    """A watch of one piece of work alone."""
    return lambda done, maximum: watch(what, done, maximum)
