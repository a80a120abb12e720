"""Short texts about long things."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_LETTERS = 100
_MAX_NAME = 50
# What makes a terminal do something instead of showing a letter: controls, changes of the direction
# of writing, separators of lines; and halves of surrogate pairs, which cannot be printed at all.
_COMMANDS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_HIDDEN = re.compile(f"[{_COMMANDS}]")
_HIDDEN_IN_CELLS = re.compile(f"[\t\n{_COMMANDS}]")


def list_names(names: Iterable[str], max_letters: int = _MAX_LETTERS) -> str:
    """The names that fit, and how many more there are.

    >>> list_names(["age", "sex", "income"], max_letters=8)
    'age, sex and 1 more'
    """
    listed = list(names)
    shown: list[str] = []
    for name in (reveal(shorten(each), one_line=True) for each in listed):
        if shown and len(", ".join([*shown, name])) > max_letters:
            return f"{', '.join(shown)} and {len(listed) - len(shown):,} more"
        shown.append(name)
    return ", ".join(shown)


def shorten(text: str, max_letters: int = _MAX_NAME) -> str:
    """A text cut to at most `max_letters` letters.

    >>> shorten("hours-per-week", 9)
    'hours-pe…'
    """
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"


def reveal(text: str, *, one_line: bool = False) -> str:
    r"""A text in which what would command a terminal is shown as the code that it is.

    Names and labels come from files that anyone may have written. With `one_line`, as in a cell of
    a table, tabs and ends of lines are shown too.

    >>> reveal("\x1b[31mred")
    '\\u001b[31mred'
    """
    return (_HIDDEN_IN_CELLS if one_line else _HIDDEN).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def choose_name(name: str, taken: Iterable[str]) -> str:
    """A name that differs from those taken, also when case is ignored.

    >>> choose_name("count", ["age", "Count"])
    'count_'
    """
    used = {other.lower() for other in taken}
    while name.lower() in used:
        name += "_"
    return name


def count_noun(n: int, noun: str) -> str:
    """A number and its noun, in the plural where it needs one.

    >>> count_noun(1, "record"), count_noun(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
