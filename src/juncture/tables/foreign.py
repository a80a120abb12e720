"""One boundary around whatever reads what a stranger wrote.

A reader checks what it knows to check; what it does not foresee ends in an exception of Python, of
Arrow, of DuckDB. Around every reader stands `refuse_foreign`, so that each of these becomes one
error of ours that names the input. What it says is the kind of the exception alone: the message of
another library may quote private values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from juncture.errors import JunctureError, UnreadableFile


@contextmanager
def refuse_foreign(argument: str, source: object, advice: str = "") -> Iterator[None]:
    """Turn every exception that is not ours into one that says what cannot be read.

    >>> with refuse_foreign("path", "people.jct"):  # doctest: +ELLIPSIS
    ...     {}["schema"]
    Traceback (most recent call last):
    juncture.errors.UnreadableFile: `path` must be a valid file; got people.jct, ... (KeyError).
    """
    try:
        yield
    except JunctureError:
        raise
    except Exception as error:
        raise UnreadableFile(
            f"`{argument}` must be a valid file; got {source}, whose parts do not fit together "
            f"({type(error).__name__}).{f' {advice}' if advice else ''}"
        ) from None
