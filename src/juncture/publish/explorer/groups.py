"""Attributes with many values, shown by fewer: ranges of what has an order, else the largest.

>>> from juncture import Coding
>>> [group.label for group in group_values(Coding(tuple(range(18, 40))), 5, None)]
['18 to 19', '20 to 24', '25 to 29', '30 to 34', '35 to 39']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from juncture._util.text import choose_name
from juncture.publish.explorer import limits
from juncture.publish.explorer.facts import describe_value
from juncture.publish.explorer.question import (
    Between,
    Condition,
    OneOf,
    condition_sql,
    format_literal,
)
from juncture.tables.codebook import Coding, Meaning, Special
from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.periods import Period
from juncture.tables.queries import Buckets

_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Group:
    """Some values of an attribute that are shown as one."""

    label: str
    codes: tuple[int, ...]
    is_special: bool = False
    """Whether it holds missing values, or those outside the domain."""
    is_rest: bool = False
    """Whether it holds all values that are not shown themselves."""


@dataclass(frozen=True)
class Axis:
    """An attribute in groups; every code is in one of them."""

    attribute: str
    groups: tuple[Group, ...]
    is_ordered: bool
    """Whether groups are ranges, in their order; otherwise the largest values, and the rest."""

    @property
    def block(self) -> Buckets:
        """The counts of the groups, in their order, as a query."""
        owners = {code: place for place, group in enumerate(self.groups) for code in group.codes}
        return Buckets(owners[code] for code in range(len(owners)))

    def __str__(self) -> str:
        shown = [group for group in self.groups if not group.is_special]
        n_values = sum(len(group.codes) for group in shown)
        if self.is_ordered:
            return f"{self.attribute} is shown in {len(shown)} ranges of its {n_values:,} values."
        rest = sum(len(group.codes) for group in shown if group.is_rest)
        return (
            f"{self.attribute} is shown by its {len(shown) - 1} largest values; the {rest:,} "
            "others are one."
        )


def choose_sizes(
    domain: Domain, attributes: Sequence[str], wanted: Sequence[int | None]
) -> dict[str, int]:
    """How many groups those attributes get that need some: few enough for one answer.

    - `wanted`: for each attribute the largest number of values, or None for as many as possible.

    The largest attributes are grouped first, and only until all combinations fit.
    """
    room = limits.GROUPS[len(attributes)]
    sizes = {name: domain[name] for name in attributes}
    chosen = {
        name: size
        for name, size in zip(attributes, wanted, strict=False)
        if size is not None and size < sizes[name]
    }
    for name in sorted(attributes, key=lambda each: -sizes[each]):
        shown = [chosen.get(each, sizes[each]) for each in attributes]
        fits = np.prod(np.array(shown, dtype=float)) <= limits.MAX_CELLS
        if (not fits and sizes[name] > room) or sizes[name] > limits.MAX_VALUES:
            chosen[name] = min(room, chosen.get(name, room))
    return chosen


def group_values(coding: Coding, n_groups: int, counts: Vector | None) -> list[Group]:
    """At most so many groups, but two of regular values at least.

    Missing values, and those outside the domain, are groups of their own.

    - `counts`: the records of each value, where values have no order.
    """
    special = _specials(coding)
    room = max(2, n_groups - len(special))
    regular = [code for code, meaning in enumerate(coding.meanings) if _is_regular(meaning)]
    if counts is not None:
        return [*_take_largest(coding, regular, counts, room), *special]
    return [*_split_in_order(coding, regular, room), *special]


def _split_in_order(coding: Coding, regular: list[int], n_groups: int) -> list[Group]:
    """Ranges with round ends where numbers are whole; dates by month or year."""
    runs = _split_dates(coding, regular, n_groups) or _split_whole(coding, regular, n_groups)
    if runs is None:
        width = -(-len(regular) // n_groups)
        parts = [regular[at : at + width] for at in range(0, len(regular), width)]
        runs = {_name_run(coding, part): part for part in parts}
    return [Group(label, tuple(codes)) for label, codes in runs.items()]


def _take_largest(coding: Coding, regular: list[int], counts: Vector, n_groups: int) -> list[Group]:
    """The values with the largest counts, in the order of their codes, and all others as one."""
    ranked = sorted(regular, key=lambda code: (-counts[code], code))
    kept = sorted(ranked if len(ranked) <= n_groups else ranked[: n_groups - 1])
    rest = tuple(sorted(ranked[len(kept) :]))
    labels = [str(describe_value(coding, code)["label"]) for code in kept]
    shown = [Group(label, (code,)) for label, code in zip(labels, kept, strict=True)]
    taken = [*labels, "missing", "outside"]
    others = [Group(choose_name("others", taken), rest, is_rest=True)] if rest else []
    return [*shown, *others]


def write_case(coding: Coding, axis: Axis) -> str:
    """The group of a value in SQL, as an expression."""
    single = coding.period is None and not coding.has_intervals
    lines = ["CASE"]
    for group in sorted(axis.groups, key=lambda each: each.is_rest):  # ELSE comes last
        label = format_literal(group.label)
        if group.is_rest:
            lines.append(f"    ELSE {label}")
            continue
        condition: Condition = OneOf(axis.attribute, group.codes)
        if axis.is_ordered and single and not group.is_special and len(group.codes) > 1:
            condition = Between(axis.attribute, **_find_ends(coding.meanings, group.codes))
        lines.append(f"    WHEN {condition_sql(condition, coding)} THEN {label}")
    return "\n".join([*lines, "  END"])


def describe_axis(axis: Axis, coding: Coding, *, with_codes: bool) -> dict[str, object]:
    """An axis as the page reads it: a label, codes and ends of each group."""
    values = []
    for group in axis.groups:
        value: dict[str, object] = {"label": group.label}
        if with_codes:
            value["codes"] = list(group.codes)
        value |= {"special": True} if group.is_special else {}
        value |= {"rest": True} if group.is_rest else {}
        if axis.is_ordered and not group.is_special and coding.period is None:
            value |= _find_ends(coding.meanings, group.codes)
        values.append(value)
    kind = "texts" if not axis.is_ordered else "intervals" if coding.period is None else "dates"
    return {"kind": kind, "values": values}


def _find_ends(meanings: Sequence[Meaning], codes: Sequence[int]) -> dict[str, float]:
    last = meanings[codes[-1]]
    high = last[1] if isinstance(last, tuple) else last
    return {"low": _start(meanings[codes[0]]), "high": _start(high)}


def _is_regular(meaning: Meaning) -> bool:
    return meaning is not None and not isinstance(meaning, Special)


def _start(meaning: Meaning) -> float:
    low = meaning[0] if isinstance(meaning, tuple) else meaning
    assert isinstance(low, int | float)
    return low


def _specials(coding: Coding) -> list[Group]:
    """Missing values, and all that is outside: SQL cannot tell those apart."""
    found: dict[str, list[int]] = {}
    for code, meaning in enumerate(coding.meanings):
        if not _is_regular(meaning):
            found.setdefault("missing" if meaning is None else "outside", []).append(code)
    taken = [meaning for meaning in coding.meanings if isinstance(meaning, str)]
    return [Group(choose_name(name, taken), tuple(c), True) for name, c in found.items()]


def _split_dates(coding: Coding, codes: list[int], n_groups: int) -> dict[str, list[int]] | None:
    """Months of days, or years, if they are few enough."""
    if coding.period is None:
        return None
    lengths = (7, 4) if coding.period is Period.DAY else (4,)
    for length in lengths:
        parts = groupby(codes, key=lambda code: str(coding.labels[code])[:length])
        runs = {label: list(part) for label, part in parts}
        if len(runs) <= n_groups:
            return runs
    return None


def _split_whole(coding: Coding, codes: list[int], n_groups: int) -> dict[str, list[int]] | None:
    """Ranges of a round width, where all values are whole numbers."""
    numbers = [coding.meanings[code] for code in codes]
    whole = [n for n in numbers if isinstance(n, int | float) and float(n).is_integer()]
    if len(whole) < len(numbers) or not whole:
        return None
    low, high = int(whole[0]), int(whole[-1])
    widths = (step * 10**power for power in range(19) for step in _STEPS)
    width = next((w for w in widths if high // w - low // w < n_groups), None)
    if width is None:
        return None
    runs: dict[str, list[int]] = {}
    for number, code in zip(whole, codes, strict=True):
        start = int(number) // width * width
        ends = max(low, start), min(high, start + width - 1)
        label = f"{ends[0]} to {ends[1]}" if ends[0] < ends[1] else f"{ends[0]}"
        runs.setdefault(label, []).append(code)
    return runs


def _name_run(coding: Coding, codes: Sequence[int]) -> str:
    """A range by its ends."""
    first, last = codes[0], codes[-1]
    if coding.period is not None:
        ends = [str(coding.labels[first]), str(coding.labels[last])]
    else:
        low, high = _find_ends(coding.meanings, codes).values()
        inside = isinstance(coding.meanings[last], tuple) and coding.counts_whole
        ends = [f"{low:.12g}", f"{high - 1 if inside else high:.12g}"]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
