"""Pages of the documentation, done by a machine as a reader would do them.

Blocks are taken in order, in one folder: Python runs, `juncture ...` lines go to the command line,
and files that the text says to save are saved. What a page shows as printed must be printed,
whatever the numbers: in a `console` block below each `$ juncture ...` line; after a `python` block,
or after an `sh` block that can be pasted as it stands, in a `text` block.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from juncture.cli.main import run

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"[Ss]ave\s+this\s+as\s+`([\w.-]+)`:\n\n\Z")
_NUMBER = re.compile(r"-?\d(?:[\d,.:+eT-]*\d)?")


class Block(NamedTuple):
    """A fenced part of a page."""

    kind: str
    text: str
    file: str | None
    """The name of the file that the text before says to save it as."""


def blocks(text: str) -> Iterator[Block]:
    """The fenced parts of a page, in order."""
    for found in FENCE.finditer(text):
        saved = _SAVED.search(text[: found.start()])
        yield Block(found[1], found[2], saved[1] if saved else None)


def commands(block: str) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each command of a console block, and the lines shown below it."""
    joined = block.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        yield shlex.split(line, comments=True), [each for each in shown if each.strip()]


def script(block: str) -> Iterator[list[str]]:
    """The words of each command of ours in a block to be pasted; others are not run."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("juncture "):
            yield shlex.split(line, comments=True)


def do_page(text: str, folder: Path, printed: Callable[[], str]) -> str:
    """Do what a page says, in a folder that is the current one; gives all that was printed.

    `printed` gives what was printed since it was called last.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    everything = said = ""
    for block in blocks(text):
        if block.file is not None:
            (folder / block.file).write_text(block.text)
        elif block.kind == "text":
            hold([line for line in block.text.splitlines() if line.strip()], said)
        elif block.kind in ("python", "sh", "console"):
            said = _do_block(block, names, printed)
            everything += said
    return everything


def _do_block(block: Block, names: dict[str, object], printed: Callable[[], str]) -> str:
    """What a block prints when it is done."""
    if block.kind == "python":
        exec(compile(block.text, "page", "exec", dont_inherit=True), names)
        return printed()
    if block.kind == "sh":
        return "".join(_run(words, printed) for words in script(block.text))
    said = ""
    for words, shown in commands(block.text):
        failed = any(line.startswith("error:") for line in shown)
        answer = _run(words, printed, fails=failed)
        hold(shown, answer)
        said += answer
    return said


def _run(words: list[str], printed: Callable[[], str], *, fails: bool = False) -> str:
    """What a command prints; it must fail where the page says so, and nowhere else."""
    assert words[0] == "juncture", f"only juncture is run, not {words[0]}"
    code = run(words[1:])
    said = printed()
    assert (code != 0) == fails, f"{words} ended with {code}: {said}"
    return said


def hold(shown: list[str], said: str) -> None:
    """Hold the lines that a page shows against what was printed: all of them, in this order."""
    lines = iter([masked(line) for line in said.splitlines()])
    for line in shown:
        if line.strip() != "...":
            assert masked(line) in lines, f"{line!r} is not what is printed:\n{said}"


def masked(line: str) -> str:
    """A line without its numbers, and without the widths that depend on them."""
    return " ".join(re.sub(r"-{2,}", "--", _NUMBER.sub("#", line)).split())
