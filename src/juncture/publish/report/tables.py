"""Tables with captions, collapsed where they are long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from juncture._util.html import Child, Markup, tag
from juncture._util.text import count_noun

_LONG = 16


def render_table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    numbers: Iterable[int] = (),
    pale: Iterable[bool] | None = None,
) -> Markup:
    """A table that scrolls sideways in its own box.

    - `numbers`: the columns that are aligned right.
    - `pale`: for each row, whether it counts for little.
    """
    content = [tuple(row) for row in rows]
    right = set(numbers)
    kinds = [
        "n" if index in right else _column_class(content, index) for index in range(len(heads))
    ]
    head = [tag("th", h, scope="col", class_=k) for h, k in zip(heads, kinds, strict=True)]
    quiet = [False] * len(content) if pale is None else pale
    body = [_row(row, kinds, pale=bool(q)) for row, q in zip(content, quiet, strict=False)]
    element = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
    )
    return tag("div", element, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _column_class(rows: Sequence[Sequence[Child]], column: int) -> str | None:
    """The class of a column that is not numbers: long texts get more room."""
    texts = [row[column] for row in rows]
    return "t" if any(isinstance(t, str) and len(t) > 28 for t in texts) else None


def _row(row: Sequence[Child], kinds: Sequence[str | None], *, pale: bool) -> Markup:
    first = tag("th", row[0], scope="row", class_=kinds[0])
    rest = [tag("td", c, class_=k) for c, k in zip(row[1:], kinds[1:], strict=True)]
    return tag("tr", first, rest, class_="pale" if pale else None)


def fold(summary: str, *content: Child) -> Markup:
    """Content that is hidden until its summary line is clicked or activated by key."""
    return tag("details", tag("summary", summary), *content)


def render_long_table(
    rows: Sequence[Sequence[Child]],
    caption: str,
    heads: Sequence[str],
    *,
    noun: str,
    numbers: Iterable[int] = (),
) -> Markup:
    """A table, collapsed if it is long."""
    rendered = render_table(caption, heads, rows, numbers=numbers)
    return (
        rendered
        if len(rows) <= _LONG
        else fold(f"Show all {count_noun(len(rows), noun)}", rendered)
    )
