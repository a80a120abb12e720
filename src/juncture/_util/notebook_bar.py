"""A progress bar in a notebook, made of HTML alone: it needs no widgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from juncture._util.html import Markup, tag
from juncture._util.pace import Pace
from juncture._util.watch import Watch, ignore_progress

# Work that is over sooner needs no bar, and nobody reads one that changes more often.
_PATIENCE, _INTERVAL = 0.5, 0.25
# A notebook shows the name of an object whose HTML is empty.
_NOTHING = "<span></span>"


@contextmanager
def show_in_notebook() -> Iterator[Watch]:
    """A watch that draws bars below the running cell of a notebook; elsewhere, one that does not.

    The bars are gone when the work is done.
    """
    if not in_notebook():
        yield ignore_progress
        return
    bars = _Bars()
    try:
        yield bars.watch
    finally:
        bars.close()


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class _Bars:
    """One bar for each piece of work, in the order in which they began."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, int, Pace]] = {}
        self._begun = self._drawn = time.monotonic()
        self._place: Any = None

    def watch(self, what: str, done: int, total: int) -> None:
        """Take note of progress, and draw it if it was not drawn a moment ago."""
        pace = self._rows[what][2] if what in self._rows else Pace(first_done=done)
        self._rows[what] = (done, total, pace)
        now = time.monotonic()
        if now - self._begun >= _PATIENCE and now - self._drawn >= _INTERVAL:
            self._drawn = now
            self._draw(str(tag("div", [self._row(what, *row) for what, row in self._rows.items()])))

    def close(self) -> None:
        """Take the bars away."""
        if self._place is not None:
            self._draw(_NOTHING)

    def _draw(self, html: str) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415

        if self._place is None:
            self._place = display(HTML(html), display_id=True)
        else:
            self._place.update(HTML(html))

    def _row(self, what: str, done: int, total: int, pace: Pace) -> Markup:
        bar = tag("progress", value=done, max=max(total, 1), style="width:16em", aria_label=what)
        words = f"{what}: {pace.describe(done, total)}"
        return tag("div", [bar, " ", words], style="font-variant-numeric:tabular-nums")
