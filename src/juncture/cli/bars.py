"""Progress bars on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from juncture._util.watch import Watch, ignore_progress


@contextmanager
def show_progress() -> Iterator[Watch]:
    """A watch that draws bars on the terminal, one for each piece of work, with the time left."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, object] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield watch
