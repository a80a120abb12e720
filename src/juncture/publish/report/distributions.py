"""The sections on single attributes and on the strongest pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.model.information import entropy
from juncture.model.model import Model
from juncture.publish.report.charts import MAX_BARS, draw_distribution
from juncture.publish.report.heat_map import draw_heat_map
from juncture.publish.report.tables import fold, render_table
from juncture.publish.report.words import (
    describe_strength,
    format_count,
    format_labels,
    format_percent,
    truncate,
)
from juncture.publish.strongest_pairs import find_strongest_pairs
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector

_MAX_CARDS, _MAX_LETTERS = 48, 60
_TOP_PAIRS, _MAX_VALUES = 6, 400


def render_attributes(model: Model) -> Markup:
    """A chart for every attribute, with its numbers in a table."""
    free = set(model.plan.free_attributes)
    cards = [_render_card(model, name, measured=name not in free) for name in model.domain]
    first = tag("div", cards[:_MAX_CARDS], class_="cards")
    if len(cards) <= _MAX_CARDS:
        return first
    rest = tag("div", cards[_MAX_CARDS:], class_="cards")
    return join(
        [first, fold(f"Show {count_noun(len(cards) - _MAX_CARDS, 'attribute')} more", rest)]
    )


def _render_card(model: Model, name: str, *, measured: bool) -> Markup:
    labels = format_labels(model.codebook, name)
    masses = model.one_way(name)
    unmeasured = "Not measured: all values are taken to be equally likely."
    note = None if measured else tag("p", unmeasured, class_="hint")
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", truncate(name, _MAX_LETTERS), title=name),
            tag("span", count_noun(len(labels), "value"), class_="hint"),
        ),
        draw_distribution(name, labels, masses),
        note or _render_frequent_values(labels, masses),
        _render_numbers(name, labels, masses),
        class_="card" if measured else "card free",
    )


def _render_frequent_values(labels: Sequence[str], masses: Vector) -> Markup | None:
    """The most frequent values in words, where the chart does not label all."""
    if len(labels) <= MAX_BARS:
        return None
    order = np.argsort(-masses, kind="stable")[:3]
    total = masses.sum() or 1.0
    listing = ", ".join(
        f"{labels[index]} ({format_percent(masses[index] / total)})" for index in order
    )
    return tag("p", f"Most frequent: {listing}", class_="hint")


def _render_numbers(name: str, labels: Sequence[str], masses: Vector) -> Markup:
    total = masses.sum() or 1.0
    rows = [
        (label, format_count(mass), format_percent(mass / total))
        for label, mass in islice(zip(labels, masses, strict=True), _MAX_VALUES)
    ]
    left = len(labels) - len(rows)
    more = tag("p", f"And {count_noun(left, 'value')} more.", class_="hint") if left else None
    heads = ("Value", "Records", "Share")
    content = render_table(f"Estimated records by {name}", heads, rows, numbers=(1, 2))
    return fold("Numbers", content, more)


def render_pairs(model: Model) -> Markup:
    """Heat maps of the pairs of attributes that depend on each other most."""
    pairs, scope = find_strongest_pairs(model, _TOP_PAIRS)
    cards = [_render_pair_card(model, pair.bits, pair.joint) for pair in pairs]
    if not cards:
        return tag("p", "In this model, no two attributes depend on each other noticeably.")
    return join([tag("p", _introduce(scope)), tag("div", cards, class_="cards pairs")])


def _introduce(scope: str) -> str:
    return (
        "Pairs are ranked by mutual information: how many bits one attribute tells about the "
        f"other. {scope} In each chart a row adds up to 100%: the stronger the colour of a cell, "
        "the larger its share of the row. Point at a cell to see its numbers."
    )


def _render_pair_card(model: Model, bits: float, joint: Factor) -> Markup:
    fewer, more = sorted(joint.domain, key=lambda name: joint.domain[name])
    labels = {name: format_labels(model.codebook, name) for name in (fewer, more)}
    drawn = draw_heat_map(
        (fewer, labels[fewer]), (more, labels[more]), joint.project((fewer, more)).values
    )
    return tag(
        "figure",
        tag("figcaption", _render_heading(fewer, more)),
        tag("p", _describe_dependence(fewer, more, bits, joint), class_="hint"),
        drawn,
        tag("p", _describe_origin(model, (fewer, more)), class_="hint"),
        class_="card",
    )


def _render_heading(one: str, other: str) -> Markup:
    shown = [truncate(name, _MAX_LETTERS) for name in (one, other)]
    between = tag("span", " and ", class_="and")
    return tag("h3", shown[0], between, shown[1], title=f"{one} and {other}")


def _describe_dependence(one: str, other: str, bits: float, joint: Factor) -> str:
    """How much of the uncertainty about one attribute the other removes.

    Of the two attributes, the sentence is about the less uncertain one, where the share is larger.
    """
    unknown = {name: entropy(joint.project((name,)).values) / np.log(2.0) for name in (one, other)}
    target = min(unknown, key=lambda name: unknown[name])
    source = other if target == one else one
    share = min(1.0, bits / unknown[target]) if unknown[target] > 0 else 0.0
    return (
        f"{describe_strength(share).capitalize()}: knowing {truncate(source, _MAX_LETTERS)} "
        f"removes {format_percent(share)} of the uncertainty about "
        f"{truncate(target, _MAX_LETTERS)} ({bits:.2f} bits)."
    )


def _describe_origin(model: Model, pair: Clique) -> str:
    together = any(set(pair) <= set(clique) for clique in model.cliques)
    return (
        "Measured together." if together else "Never measured together: inferred from other pairs."
    )
