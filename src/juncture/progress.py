"""Progress bars for people who watch. They need `rich` (the extra `progress`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from juncture.errors import JunctureError
from juncture.estimation import Callback, Statistics


@contextmanager
def progress_bar(max_steps: int = 5000) -> Iterator[Callback]:
    """A bar that shows steps, loss and certified bound; hand what it gives to `callback`.

    >>> from juncture import estimate
    >>> with progress_bar() as show:  # doctest: +SKIP
    ...     estimate(domain, measurements, callback=show)
    """
    with _bar("fitting", max_steps) as move:

        def show(so_far: Statistics) -> None:
            move(so_far.oracle_calls, f"{so_far.oracle_calls} steps, loss {so_far.loss:,.1f}")

        yield show


@contextmanager
def records_bar(n: int) -> Iterator[Callable[[int, int], None]]:
    """A bar that shows records being written; hand what it gives to `callback`."""
    with _bar("writing records", n) as move:
        yield lambda done, _all: move(done, f"{done:,}")


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    try:
        from rich.progress import (  # noqa: PLC0415  optional
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        raise JunctureError(
            "The progress bar needs the package rich; it is not installed. "
            "Install juncture[progress], or leave the bar out."
        ) from None
    words = TextColumn("{task.description}")
    with Progress(TextColumn(what), BarColumn(), words, TimeRemainingColumn()) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, text: progress.update(task, completed=done, description=text)
