"""Progress bars on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from juncture._util.pace import Pace
from juncture._util.watch import Watch, ignore_progress

if TYPE_CHECKING:
    from rich.progress import TaskID


@contextmanager
def show_progress() -> Iterator[Watch]:
    """A watch that draws bars on the terminal, one for each piece of work.

    Beside each stands what is done, what is left, and how long that will take.
    """
    if not sys.stderr.isatty():
        yield ignore_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(24),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, tuple[TaskID, Pace]] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total, pace=""), Pace(first_done=done)
            task, pace = tasks[what]
            words = pace.describe(done, total)
            progress.update(task, completed=done, total=total, pace=words)

        yield watch
