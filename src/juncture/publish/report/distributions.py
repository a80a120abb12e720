"""The sections on single attributes and on the strongest pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.model.information import entropy
from juncture.model.model import Model
from juncture.publish.report.charts import FEW, distribution
from juncture.publish.report.heat_map import heat_map
from juncture.publish.report.tables import folded, table
from juncture.publish.report.words import clipped, counted, labels_of, percent, plural, strength
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector

_MOST_CARDS, _MOST_LETTERS = 48, 60
_TOP_PAIRS, _MOST_PAIRS, _MOST_VALUES = 6, 5000, 400
# Up to so many cells, tables between all attributes take no time, and those of cliques little.
_SMALL_TREE, _LARGE_TREE, _SMALL_PAIRS = 100_000, 20_000_000, 2_000_000
_SEEN = 0.005


def single_attributes(model: Model) -> Markup:
    """A chart for every attribute, with its numbers in a table."""
    free = set(model.plan.free_attributes)
    cards = [_card(model, name, measured=name not in free) for name in model.domain]
    first = tag("div", cards[:_MOST_CARDS], class_="cards")
    if len(cards) <= _MOST_CARDS:
        return first
    rest = tag("div", cards[_MOST_CARDS:], class_="cards")
    return join([first, folded(f"Show {plural(len(cards) - _MOST_CARDS, 'attribute')} more", rest)])


def _card(model: Model, name: str, *, measured: bool) -> Markup:
    labels = labels_of(model.codebook, name, model.domain[name])
    masses = model.one_way(name)
    note = None if measured else tag("p", "Not measured: all values count alike.", class_="hint")
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", clipped(name, _MOST_LETTERS), title=name),
            tag("span", plural(len(labels), "value"), class_="hint"),
        ),
        distribution(name, labels, masses),
        note or _frequent(labels, masses),
        _numbers(name, labels, masses),
        class_="card" if measured else "card free",
    )


def _frequent(labels: Sequence[str], masses: Vector) -> Markup | None:
    """The largest values in words, where the chart does not name them."""
    if len(labels) <= FEW:
        return None
    order = np.argsort(-masses, kind="stable")[:3]
    total = masses.sum() or 1.0
    words = ", ".join(f"{labels[place]} ({percent(masses[place] / total)})" for place in order)
    return tag("p", f"Most frequent: {words}", class_="hint")


def _numbers(name: str, labels: Sequence[str], masses: Vector) -> Markup:
    total = masses.sum() or 1.0
    rows = [
        (label, counted(mass), percent(mass / total))
        for label, mass in islice(zip(labels, masses, strict=True), _MOST_VALUES)
    ]
    left = len(labels) - len(rows)
    more = tag("p", f"And {plural(left, 'value')} more.", class_="hint") if left else None
    heads = ("Value", "Records", "Share")
    made = table(f"Estimated records by {name}", heads, rows, numbers=(1, 2))
    return folded("Numbers", made, more)


def strongest_pairs(model: Model) -> Markup:
    """Heat maps of the pairs of attributes that tell most about each other."""
    pairs, words = _pairs(model)
    scored = [(_information(joint), joint) for joint in _tables(model, pairs)]
    best = sorted(scored, key=lambda found: -found[0])[:_TOP_PAIRS]
    cards = [_pair_card(model, bits, joint) for bits, joint in best if bits > _SEEN]
    if not cards:
        return tag("p", "No two attributes depend on each other in this model to speak of.")
    return join([tag("p", _introduction(words)), tag("div", cards, class_="cards pairs")])


def _introduction(words: str) -> str:
    return (
        "Pairs are ranked by mutual information: how many bits one attribute tells about the "
        f"other. {words} In each picture a row adds up to 100%: the stronger the colour of a cell, "
        "the larger its share of the row. Point at a cell for its numbers."
    )


def _pairs(model: Model) -> tuple[list[Clique], str]:
    """The pairs to look at, and in words which they are."""
    domain, plan = model.domain, model.plan
    cells = sum(domain.shape) ** 2 // 2
    if plan.cells <= _SMALL_TREE and cells <= _SMALL_PAIRS:
        return list(islice(combinations(domain, 2), _MOST_PAIRS)), "All pairs were compared."
    if plan.cells <= _LARGE_TREE:
        cliques: Iterator[Clique] = (node.clique for node in plan.nodes)
        words = "Pairs within a clique of the tree were compared."
    else:
        cliques, words = iter(plan.cliques), "Pairs that were measured together were compared."
    inside = (domain.canonical(pair) for clique in cliques for pair in combinations(clique, 2))
    return list(islice(dict.fromkeys(inside), _MOST_PAIRS)), words


def _tables(model: Model, pairs: Sequence[Clique]) -> Iterator[Factor]:
    """The joint tables: measured ones as they are, the others by sharing work."""
    if model.plan.cells > _LARGE_TREE:
        return (model.project(pair) for pair in pairs)
    return model.project_many(pairs)


def _information(joint: Factor) -> float:
    """Mutual information of a two-attribute table, in bits."""
    table = joint.values
    parts = entropy(table.sum(axis=0)) + entropy(table.sum(axis=1))
    return max(0.0, parts - entropy(table)) / float(np.log(2.0))


def _pair_card(model: Model, bits: float, joint: Factor) -> Markup:
    fewer, more = sorted(joint.domain, key=lambda name: joint.domain[name])
    labels = {name: labels_of(model.codebook, name, model.domain[name]) for name in (fewer, more)}
    drawn = heat_map(
        (fewer, labels[fewer]), (more, labels[more]), joint.project((fewer, more)).values
    )
    return tag(
        "figure",
        tag("figcaption", _heading(fewer, more)),
        tag("p", _strength_words(fewer, more, bits, joint), class_="hint"),
        drawn,
        tag("p", _origin(model, (fewer, more)), class_="hint"),
        class_="card",
    )


def _heading(one: str, other: str) -> Markup:
    shown = [clipped(name, _MOST_LETTERS) for name in (one, other)]
    between = tag("span", " and ", class_="and")
    return tag("h3", shown[0], between, shown[1], title=f"{one} and {other}")


def _strength_words(one: str, other: str, bits: float, joint: Factor) -> str:
    """How much is known of one attribute by the other, for the one of which more is known."""
    known = {name: entropy(joint.project((name,)).values) / np.log(2.0) for name in (one, other)}
    told = min(known, key=lambda name: known[name])
    teller = other if told == one else one
    share = min(1.0, bits / known[told]) if known[told] > 0 else 0.0
    return (
        f"{strength(share).capitalize()}: knowing {clipped(teller, _MOST_LETTERS)} removes "
        f"{percent(share)} of the uncertainty about {clipped(told, _MOST_LETTERS)} "
        f"({bits:.2f} bits)."
    )


def _origin(model: Model, pair: Clique) -> str:
    together = any(set(pair) <= set(clique) for clique in model.cliques)
    return (
        "Measured together." if together else "Never measured together: inferred from other pairs."
    )
