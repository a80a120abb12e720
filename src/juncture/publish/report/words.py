"""Numbers, labels and strengths in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from unicodedata import east_asian_width

from juncture.engine.plan_text import readable_count
from juncture.tables.codebook import Codebook, Value

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_STRENGTHS = ((0.5, "very strong"), (0.2, "strong"), (0.05, "moderate"), (0.01, "weak"))


def counted(value: float) -> str:
    """An expected number of records: whole, unless it is small."""
    if value >= 1e15:
        return f"{value:.3g}"
    if value >= 99.95 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.05 else "below 0.1"


def percent(share: float) -> str:
    """A share of the whole, with as many digits as it deserves."""
    if 0.0 < share < 0.0005:
        return "below 0.1%"
    if 0.9995 <= share < 1.0:
        return "above 99.9%"
    return f"{100.0 * share:.0f}%" if share in (0.0, 1.0) else f"{100.0 * share:.1f}%"


def figure(value: float) -> str:
    """A number of any size, to four digits."""
    if not math.isfinite(value):
        return "not bounded"
    if value == 0.0:
        return "0"
    if abs(value) >= 1_000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3e}"
    return f"{value:.4g}"


def large(count: int) -> str:
    """A whole number of any size: in full while it is short, else as a power of ten."""
    if count < 10**9:
        return f"{count:,}"
    digits, power = readable_count(count).split("e")
    return f"{digits} × 10{power.translate(_RAISED)}"


def plural(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first few names, and how many there are beyond them."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def clipped(name: str, most: int) -> str:
    """A name of at most so many characters; wide ones count twice."""
    widths = list(accumulate(map(_width, name)))
    if not widths or widths[-1] <= most:
        return name
    fitting = sum(width < most for width in widths)
    return name[: max(1, fitting)].rstrip() + "…"


def _width(letter: str) -> int:
    return 2 if east_asian_width(letter) in "WF" else 1


def labels_of(codebook: Codebook | None, attribute: str, size: int) -> list[str]:
    """What the codes of an attribute stand for, as texts."""
    if codebook is None:
        return [str(code) for code in range(size)]
    return [_label(value) for value in codebook[attribute].labels]


def _label(value: Value) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def strength(share: float) -> str:
    """How strong a relation is that removes this share of an attribute's uncertainty."""
    return next((word for least, word in _STRENGTHS if share >= least), "very weak")
