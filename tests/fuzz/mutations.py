"""Small damage, chosen by a generator: to texts, to bytes, and to documents of lists and names."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator
Node = Any
"""A part of a JSON document."""

NUMBERS: list[Node] = [
    *(0, 1, -1, 2, 3, 255, 256, 2**31 - 1, 2**31, 2**53, 2**63, -(2**63), 10**7, 10**12, 10**30),
    *(0.5, -0.5, 1e-9, 1e-160, 1e-300, 5e-324, 1e19, 1e154, 1e200, 1e308, -1e308, 1e-6, 1e-7),
    *(float("nan"), float("inf"), float("-inf"), -0.0),
]
TEXTS: list[Node] = [
    *(
        "",
        " ",
        "a",
        "\0",
        "\x1b[31mred",
        "\u202egnp",
        "\ud800",
        "é" * 300,
        "'",
        '"',
        "%s",
        "{}",
        "NaN",
    ),
    *("1e999", "null", "../../x", "-1", "a" * 5000, "\n", "b\r\n", "1;2", "age", "true"),
]
OTHERS: list[Node] = [None, True, False, [], {}, [[]], [None], {"": None}, [1, 2, 3], ["a", "a"]]


def choose(rng: Rng, items: list[Any]) -> Any:
    """One of some things."""
    return items[int(rng.integers(len(items)))]


def choose_value(rng: Rng) -> Node:
    """A value that few readers expect."""
    return copy.deepcopy(choose(rng, choose(rng, [NUMBERS, TEXTS, OTHERS])))


def mutate_document(rng: Rng, document: Node, n_changes: int) -> Node:
    """A document with some parts replaced, removed, doubled or exchanged."""
    changed = copy.deepcopy(document)
    for _ in range(n_changes):
        places = list(_list_places(changed))
        if places:
            holder, key = choose(rng, places)
            _change_place(rng, holder, key, places)
    return changed


def _list_places(node: Node) -> Iterator[tuple[Node, Any]]:
    """Every entry of every list and mapping: the one that holds it, and its key."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list) and len(node[key]) < 200:
            yield from _list_places(node[key])


def _change_place(rng: Rng, holder: Node, key: Any, places: list[tuple[Node, Any]]) -> None:
    match int(rng.integers(6)):
        case 0 | 1:
            holder[key] = choose_value(rng)
        case 2:
            del holder[key]
        case 3:
            other, there = choose(rng, places)
            if there in other if isinstance(other, dict) else there < len(other):
                holder[key] = copy.deepcopy(other[there])
        case 4 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 5 if isinstance(holder, dict):
            holder[choose(rng, [*TEXTS, *holder])] = holder.pop(key)
        case _:
            holder[key] = _nudge(rng, holder[key])


def _nudge(rng: Rng, value: Node) -> Node:
    """The same value, a little off."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + choose(rng, [-1, 1, 100, -value, value])
    if isinstance(value, float):
        return value * choose(rng, [-1.0, 0.0, 1 + 1e-7, 1e10, 1e-300, 1e300])
    return mutate_text(rng, value, 1) if isinstance(value, str) else [value]


def mutate_text(rng: Rng, text: str, n_changes: int) -> str:
    """A text with some stretches replaced, removed, doubled or exchanged."""
    for _ in range(n_changes):
        start = int(rng.integers(len(text) + 1))
        end = min(len(text), start + int(rng.integers(1, 12)))
        inside = text[start:end]
        match int(rng.integers(5)):
            case 0:
                inside = ""
            case 1:
                inside *= 2
            case 2:
                inside = str(choose(rng, [*TEXTS, *NUMBERS]))
            case 3:
                inside = choose(rng, list("\"'[]{}(),;=#\n\\ .-+*/<>%_0\t\x1b\xff"))
            case _:
                other = int(rng.integers(len(text) + 1))
                inside = text[other : other + int(rng.integers(1, 30))]
        text = text[:start] + inside + text[end:]
    return text


def mutate_bytes(rng: Rng, content: bytes, n_changes: int) -> list[list[int]]:
    """Places in some bytes, with what to write there; a place beyond the end cuts the content."""
    places = [int(rng.integers(len(content))) for _ in range(n_changes)]
    changes = [[place, int(rng.integers(256))] for place in places]
    if rng.random() < 0.1:
        changes.append([-1, int(rng.integers(len(content)))])
    return changes


def apply_changes(content: bytes, changes: list[list[int]]) -> bytes:
    """The bytes with what `mutate_bytes` found."""
    altered = bytearray(content)
    for place, value in changes:
        if place < 0:
            return bytes(altered[:value])
        altered[place % len(altered)] = value
    return bytes(altered)


def write_json(document: Node) -> str:
    """A document as a text that keeps what JSON has no word for."""
    return json.dumps(document, ensure_ascii=True)
