"""Short texts about long things."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_LETTERS = 100
_MAX_NAME = 50


def list_names(names: Iterable[str], max_letters: int = _MAX_LETTERS) -> str:
    """The names that fit, and how many more there are.

    >>> list_names(["age", "sex", "income"], max_letters=8)
    'age, sex and 1 more'
    """
    listed = list(names)
    shown: list[str] = []
    for name in map(shorten, listed):
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
