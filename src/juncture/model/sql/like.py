"""LIKE as DuckDB should see it: a regular expression, which it matches in linear time.

Its own LIKE backtracks: for `'aaaa...' LIKE '%a%a...%b'` every further letter doubles the time, and
Python's lock is held meanwhile. So no LIKE is ever written: the only way from a syntax tree to a
text for DuckDB is `write` in `syntax.py`, by the dialect that is made here.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from juncture.errors import InvalidInput


def _write_like(generator: Any, node: Any) -> str:  # noqa: ANN401
    return str(generator.sql(_match(node, None)))


def _write_escape(generator: Any, node: Any) -> str:  # noqa: ANN401
    return str(generator.sql(_match(node.this, _constant_text(node.expression))))


class LinearDuckDB(DuckDB):
    """DuckDB's dialect, without LIKE."""

    class Generator(DuckDB.Generator):  # type: ignore[misc, valid-type]
        """Writes LIKE as a regular expression."""

        TRANSFORMS = {  # noqa: RUF012
            **DuckDB.Generator.TRANSFORMS,
            exp.Like: _write_like,
            exp.ILike: _write_like,
            exp.Escape: _write_escape,
        }


def _match(node: Any, escape: str | None) -> Any:  # noqa: ANN401
    text, pattern = node.this, _constant_text(node.expression)
    if isinstance(node, exp.ILike):
        text, pattern = exp.Lower(this=text.copy()), pattern.lower()
    matched = exp.RegexpFullMatch(
        this=text.copy(), expression=exp.Literal.string(translate_like(pattern, escape))
    )
    matched.set("options", exp.Literal.string("s"))
    return exp.not_(matched, copy=False) if node.args.get("negate") else matched


def translate_like(pattern: str, escape: str | None = None) -> str:
    """The regular expression of a LIKE pattern.

    >>> translate_like("50%_a.b")
    '50.*.a[.]b'
    >>> translate_like("50!%", "!")
    '50%'
    """
    parts, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            parts.append(_quote(next(letters, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter, _quote(letter)))
    return re.sub(r"(?:\.\*)+", ".*", "".join(parts))


def _quote(letter: str) -> str:
    if letter in "\\^":
        return f"\\{letter}"
    return f"[{letter}]" if letter and letter in ".*+?()|[]{}$" else letter


def _constant_text(node: Any) -> str:  # noqa: ANN401
    plain = node.unnest()
    if not (isinstance(plain, exp.Literal) and plain.is_string):
        raise InvalidInput(
            f"`sql` must have a text as the pattern of LIKE; got {node.sql()}. Write it out."
        )
    return str(plain.this)
