"""HTML and SVG as Python calls: plain text is always escaped.

Names of attributes and labels of values come from files that anyone may have written. So there is
one way to make markup, `tag`, and it escapes every text that is not markup already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

# No document may hold these: controls, halves of surrogate pairs, and non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "link", "meta"})
_SHAPES = frozenset({"circle", "line", "path", "rect"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
Attribute = str | float | bool | None


def text(plain: str) -> Markup:
    """Escape a text, so that it reads as written; markup stays as it is."""
    if isinstance(plain, Markup):
        return plain
    return Markup(escape(_UNFIT.sub("\ufffd", plain)))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element. In attribute names, a last underscore is dropped and others become hyphens.

    >>> tag("p", "a < b ", tag("b", "bold"), class_="note", hidden=None)
    '<p class="note">a &lt; b <b>bold</b></p>'
    """
    start = name + "".join(_format_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{start}>")
    inside = join(children)
    if not inside and name in _SHAPES:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{inside}</{name}>")


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Join children, opening lists among them and leaving out None."""
    parts = [_render_child(child) for child in children if child is not None]
    return Markup(text(between).join(parts))


def format_number(value: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def _render_child(child: Child) -> Markup:
    if isinstance(child, str):
        return text(child)
    return join(child or ())


def _format_attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{text(value if isinstance(value, str) else format_number(value))}"'
