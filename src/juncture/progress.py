"""A progress bar for fits, for people who watch. Needs `rich` (the extra `progress`)."""

from __future__ import annotations

from collections.abc import Iterator
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
    try:
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415  optional
    except ImportError:
        raise JunctureError(
            "The progress bar needs the package rich; it is not installed. "
            "Install juncture[progress], or leave the bar out."
        ) from None
    columns = (TextColumn("fitting"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns) as progress:
        task = progress.add_task("", total=max_steps)

        def show(so_far: Statistics) -> None:
            words = f"{so_far.oracle_calls} steps, loss {so_far.loss:,.1f}"
            progress.update(task, completed=so_far.oracle_calls, description=words)

        yield show
