"""Write docs/command-line.md from what every command says with --help.

Run it after changing a command; a test compares the page with what it would be.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer

from juncture.cli.app import PROGRAM, WIDTH, app

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
_INTRODUCTION = f"""\
# Command line

Made from `--help` by `tools/build_cli_page.py`: change the commands, not this page.

Answers go to standard output, notes and errors to standard error. An error is one line that says
what to do. `--json`, where a command has it, prints the answer for other programs. On a terminal,
long work shows a progress bar with the time left; elsewhere only the answer is printed. Files are
written completely or not at all, and existing ones are only replaced with `--force`. Ctrl-C is safe
at any moment: what has been spent by then is in the ledger.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | a file, a value or a column is wrong |
| 2 | the command is written wrongly |
| 3 | the budget does not allow it; nothing was spent |
| 130 | interrupted |

`{PROGRAM} --install-completion` makes your shell complete commands and options.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for path in command_paths():
        parts.append(f"## {' '.join((PROGRAM, *path))}\n\n```text\n{help_text(path)}```\n")
    return "\n".join(parts)


def command_paths() -> list[tuple[str, ...]]:
    """The words of every command, groups before what is in them."""
    return [(), *_below(typer.main.get_command(app), ())]


def _below(group: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:  # noqa: ANN401
    for name, command in getattr(group, "commands", {}).items():
        yield (*path, name)
        yield from _below(command, (*path, name))


def help_text(path: tuple[str, ...]) -> str:
    """What a command says with --help, at a fixed width and without colours."""
    said = io.StringIO()
    with redirect_stdout(said):
        app([*path, "--help"], prog_name=PROGRAM, standalone_mode=False, terminal_width=WIDTH)
    return "\n".join(line.rstrip() for line in said.getvalue().rstrip().splitlines()) + "\n"


if __name__ == "__main__":
    main()
