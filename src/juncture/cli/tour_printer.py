"""How the demo prints: headings, small tables and bars on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from juncture._util.text import reveal
from juncture.cli.console import Rows, format_table, say

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 88
_BAR = 22
_INDENT = "   "


class TourPrinter:
    """Prints numbered steps, with colours and bars only if standard output is a terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self._step, self._gap = 0, True

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    @cached_property
    def _width(self) -> int:
        return min(_WIDTH, self._console.width - 1) if self.is_terminal else _WIDTH

    def title(self, text: str) -> None:
        """Print the title of the tour."""
        self._print(text, "bold")

    def heading(self, text: str) -> None:
        """Begin the next step."""
        self._step += 1
        self.gap()
        self._print(f"{self._step}  {text}", "bold cyan")
        self.gap()

    def gap(self) -> None:
        """Print an empty line, unless the last line is empty."""
        if not self._gap:
            say()
        self._gap = True

    def text(self, text: str, style: str | None = None) -> None:
        """Print a paragraph."""
        self._print(self._wrap(text, _INDENT), style)

    def quote(self, text: str) -> None:
        """Print something that a user would type, with its lines as they are."""
        self._print(textwrap.indent(text, _INDENT + "  "), "green")

    def reply(self, text: str) -> None:
        """Print the output of a program."""
        self._print(self._wrap(text, _INDENT + "  "), "yellow")

    def drawing(self, text: str) -> None:
        """Print lines that must not be wrapped; long ones are cut."""
        max_width = self._width - len(_INDENT)
        cut = [
            line if len(line) <= max_width else f"{line[: max_width - 1]}…"
            for line in text.splitlines()
        ]
        self._print(textwrap.indent("\n".join(cut), _INDENT))

    def table(self, columns: Sequence[str], rows: Rows, bars: Sequence[float] = ()) -> None:
        """Print a small table; on a terminal with a bar for each row, where there is room."""
        lines = format_table(columns, rows).splitlines()
        width = max(map(len, lines))
        room = self._width - len(_INDENT) - width - 2
        drawn = (
            self._draw_bars(bars)
            if bars and self.is_terminal and room >= _BAR
            else [""] * len(rows)
        )
        self.gap()
        self._print(_INDENT + lines[0], "bold")
        self._print(_INDENT + lines[1], "dim")
        for line, bar in zip(lines[2:], drawn, strict=True):
            self._row(f"{_INDENT}{line:<{width}}  " if bar else _INDENT + line, bar)
        self.gap()

    def _wrap(self, text: str, indent: str) -> str:
        return textwrap.fill(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )

    def _draw_bars(self, values: Sequence[float]) -> list[str]:
        sign = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
        largest = max(*values, 1e-300)
        return [sign * max(1, round(_BAR * max(value, 0.0) / largest)) for value in values]

    def _row(self, line: str, bar: str) -> None:
        if not bar:
            self._print(line)
            return
        from rich.text import Text

        self._console.print(Text(reveal(line)).append(bar, style="cyan"))

    def _print(self, text: str, style: str | None = None) -> None:
        self._gap = False
        if self.is_terminal:
            self._console.print(reveal(text), style=style)
        else:
            say(text)
