"""Numbers, labels and the strength of dependences as texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, chain, takewhile
from unicodedata import east_asian_width

from juncture.engine.plan_text import format_count as format_large_count
from juncture.tables.codebook import Codebook, Coding, Value

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_STRENGTHS = ((0.5, "very strong"), (0.2, "strong"), (0.05, "moderate"), (0.01, "weak"))


def format_count(value: float) -> str:
    """An expected number of records: whole, unless it is small."""
    if value >= 1e15:
        return f"{value:.3g}"
    if value >= 99.95 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.05 else "below 0.1"


def format_noise(stddev: float) -> str:
    """The noise of a count: to two digits, as it is itself only roughly known."""
    return f"±{format_count(float(f'{stddev:.2g}'))}"


def describe_count(count: float, share: float, stddev: float | None) -> str:
    """A number of records with its noise, where that is known, and its share."""
    known = stddev is not None and math.isfinite(stddev)
    noise = f" {format_noise(stddev)}" if known and stddev is not None else ""
    return f"{format_count(count)}{noise} records, {format_percent(share)}"


def format_percent(share: float) -> str:
    """A share of the whole in percent."""
    if 0.0 < share < 0.0005:
        return "below 0.1%"
    if 0.9995 <= share < 1.0:
        return "above 99.9%"
    return f"{100.0 * share:.0f}%" if share in (0.0, 1.0) else f"{100.0 * share:.1f}%"


def format_number(value: float) -> str:
    """A number of any size, to four digits."""
    if not math.isfinite(value):
        return "not bounded"
    if value == 0.0:
        return "0"
    if abs(value) >= 1_000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3e}"
    return f"{value:.4g}"


def format_large(count: int) -> str:
    """A whole number of any size: in full while it is short, else as a power of ten."""
    if count < 10**9:
        return f"{count:,}"
    digits, power = format_large_count(count).split("e")
    return f"{digits} × 10{power.translate(_RAISED)}"


def join_names(names: Sequence[str], limit: int = 8) -> str:
    """The first few names, and how many there are beyond them."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def truncate(name: str, max_width: int) -> str:
    """A name cut to a width in characters; East Asian wide ones count twice."""
    widths = list(accumulate(map(_char_width, name)))
    if not widths or widths[-1] <= max_width:
        return name
    fitting = sum(width < max_width for width in widths)
    return name[: max(1, fitting)].rstrip() + "…"


def shorten_all(names: Sequence[str], max_width: int) -> list[str]:
    """Names cut to a width, so that those that differ can still be told apart.

    A name loses its end, unless another one begins the same way: then it loses its middle, or, if
    the names differ only there, what comes before.

    >>> shorten_all(["north", "school of arts, first year", "school of arts, third year"], 14)
    ['north', 'school…st year', 'school…rd year']
    """
    shown = [truncate(name, max_width) for name in names]
    for n_last in range(max_width // 2, max_width - 2):
        for index in chain.from_iterable(_find_alike(names, shown)):
            shown[index] = _cut_middle(names[index], max_width, n_last)
    for same in _find_alike(names, shown):
        letters = zip(*(names[index] for index in same), strict=False)
        start = sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, letters))
        for index in same:
            shown[index] = truncate("…" + names[index][start:], max_width)
    for same in _find_alike(names, shown):
        for number, index in enumerate(same, start=1):
            shown[index] = f"{truncate(names[index], max_width - 5)} #{number}"
    return shown


def _find_alike(names: Sequence[str], shown: Sequence[str]) -> list[list[int]]:
    """The indices of names that differ and are shown alike, in groups."""
    alike = dict[str, list[int]]()
    for index, text in enumerate(shown):
        alike.setdefault(text, []).append(index)
    return [same for same in alike.values() if len({names[index] for index in same}) > 1]


def _cut_middle(name: str, max_width: int, n_last: int) -> str:
    """The beginning and the last characters of a name."""
    last = name[-n_last:].lstrip()
    width = sum(map(_char_width, last))
    if width > max_width - 2:
        return truncate(name, max_width)
    return truncate(name, max_width - width).rstrip("…") + "…" + last


def _char_width(letter: str) -> int:
    return 2 if east_asian_width(letter) in "WF" else 1


class Labels(list[str]):
    """What the codes of an attribute stand for, as texts, beside what they mean."""

    def __init__(self, coding: Coding) -> None:
        super().__init__(_format_label(value) for value in coding.labels)
        self.coding = coding

    def join(self, first: int, last: int) -> str:
        """What adjacent codes stand for together, by the first and the last of them.

        >>> Labels(Coding.of_bins([0, 10, 20, 50])).join(0, 2)
        '[0, 50)'
        """
        ends = self.coding.meanings[first], self.coding.meanings[last]
        match ends:
            case ((low, _), (_, high)) if self.coding.period is None:
                return _format_label(Coding(((low, high),)).labels[0])
        return self[first] if first == last else f"{self[first]} to {self[last]}"


def format_labels(codebook: Codebook, attribute: str) -> Labels:
    """What the codes of an attribute stand for, as texts."""
    return Labels(codebook[attribute])


def _format_label(value: Value) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def describe_strength(share: float) -> str:
    """How strong a dependence is that removes this share of an attribute's uncertainty."""
    return next((word for least, word in _STRENGTHS if share >= least), "very weak")
