"""Quoting of names and texts in SQL."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """A column's name in double quotes; it may hold any characters.

    >>> quote_name("hours per week")
    '"hours per week"'
    """
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text in single quotes; it may hold any characters.

    >>> quote_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
