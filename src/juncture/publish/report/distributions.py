"""The sections on single attributes and on the strongest pairs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.model.information import entropy
from juncture.model.model import Model
from juncture.model.sql.notes import NeverTogether, find_dependence_notes
from juncture.publish.count_noise import CountNoise
from juncture.publish.intervals import IntervalAnswer
from juncture.publish.report.charts import draw_distribution, has_bars, list_shortened_bars
from juncture.publish.report.groups import is_only_noise
from juncture.publish.report.heat_map import draw_heat_map, list_shortened_cells
from juncture.publish.report.means import describe_mean
from juncture.publish.report.tables import fold, render_table
from juncture.publish.report.words import (
    Labels,
    describe_strength,
    format_count,
    format_labels,
    format_noise,
    format_percent,
    truncate,
)
from juncture.publish.strongest_pairs import find_strongest_pairs
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement

_MAX_CARDS, _MAX_LETTERS, _LEVEL = 48, 160, 0.95
_TOP_PAIRS, _MAX_VALUES = 6, 400


def render_attributes(
    model: Model,
    measurements: Sequence[Measurement] = (),
    find_intervals: Callable[[str], IntervalAnswer] | None = None,
) -> Markup:
    """A chart for every attribute, with its numbers in a table.

    `find_intervals` gives the intervals of the counts of an attribute, where they are known.
    """
    free, noise = set(model.unmeasured), CountNoise(model.domain, measurements)
    cards = [
        _render_card(model, name, noise, None if name in free else find_intervals, free)
        for name in model.domain
    ]
    first = tag("div", cards[:_MAX_CARDS], class_="cards")
    introduction = tag("p", _introduce_noise(measurements))
    if len(cards) <= _MAX_CARDS:
        return join([introduction, first])
    rest = tag("div", cards[_MAX_CARDS:], class_="cards")
    more = fold(f"Show {count_noun(len(cards) - _MAX_CARDS, 'attribute')} more", rest)
    return join([introduction, first, more])


def _introduce_noise(measurements: Sequence[Measurement]) -> str:
    if not measurements:
        return (
            "The release has no measurements, so how large the noise of these numbers is cannot be "
            "told from it."
        )
    return (
        "Every number is an estimate. After ± stands the standard deviation of the noise in the "
        "measurements that it comes from: as a rule the number is off by no more than twice that. "
        "What is below twice its noise is drawn pale, since it may be nothing but noise."
    )


def _render_card(
    model: Model,
    name: str,
    noise: CountNoise,
    find_intervals: Callable[[str], IntervalAnswer] | None,
    free: Collection[str],
) -> Markup:
    labels, measured = format_labels(model.codebook, name), name not in free
    masses, stddevs = model.one_way(name), noise.stddevs((name,))
    intervals = None if find_intervals is None else find_intervals(name)
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", truncate(name, _MAX_LETTERS), title=name),
            tag("span", count_noun(len(labels), "value"), class_="hint"),
        ),
        None
        if measured
        else tag("p", tag("strong", "Not measured: shown as even."), class_="hint"),
        draw_distribution(name, labels, masses, stddevs),
        _render_facts(model, name, labels, masses, noise) if measured else None,
        None if intervals is None else tag("p", _describe_intervals(intervals), class_="hint"),
        _render_full_labels(list_shortened_bars(labels, masses)),
        _render_numbers(name, labels, masses, stddevs, intervals),
        class_="card" if measured else "card free",
    )


def _render_facts(
    model: Model, name: str, labels: Labels, masses: Vector, noise: CountNoise
) -> list[Markup]:
    """The mean of numbers, the most frequent values where not all are labelled, and the noise."""
    facts = []
    if name in model.codebook.codings:
        facts.append(describe_mean(name, labels.coding, masses, noise))
    if not has_bars(labels):
        facts.append(_describe_frequent_values(labels, masses))
    facts.append(_describe_noise(masses, noise.stddevs((name,))))
    return [tag("p", fact, class_="hint") for fact in facts if fact]


def _describe_noise(masses: Vector, stddevs: Vector | None) -> str:
    if stddevs is None:
        return "The noise of these counts is not known."
    known = stddevs[np.isfinite(stddevs)]
    low, high = format_noise(float(known.min())), format_noise(float(known.max()))
    size = low if low == high else f"{low} to {high}"
    n_pale = int(is_only_noise(masses, stddevs).sum())
    pale = f"; {count_noun(n_pale, 'value')} may be nothing else" if n_pale else ""
    return f"Noise of a count: {size} records{pale}."


def _describe_intervals(intervals: IntervalAnswer) -> str:
    """How far the counts of an attribute may be off, and what they rest on."""
    known = intervals.plus_minus[np.isfinite(intervals.plus_minus)]
    basis = max(intervals.bases)
    if not len(known):
        return f"The counts are {basis}, and have no interval."
    low, high = format_noise(float(known.min())), format_noise(float(known.max()))
    size = low if low == high else f"{low} to {high}"
    return f"{intervals.level:.0%} interval of a count: {size} records ({basis})."


def _describe_frequent_values(labels: Sequence[str], masses: Vector) -> str:
    order = np.argsort(-masses, kind="stable")[:3]
    total = masses.sum() or 1.0
    listing = ", ".join(
        f"{labels[index]} ({format_percent(masses[index] / total)})" for index in order
    )
    return f"Most frequent: {listing}"


def _render_full_labels(shortened: Sequence[tuple[str, str]]) -> Markup | None:
    """What labels that are cut stand for, for paper and for fingers, which cannot point."""
    if not shortened:
        return None
    items = [tag("div", tag("dt", short), tag("dd", full)) for short, full in shortened]
    content = tag("dl", items, class_="full")
    return tag("details", tag("summary", "Labels in full"), content, class_="printed")


def _render_numbers(
    name: str, labels: Sequence[str], masses: Vector, stddevs: Vector | None,
    intervals: IntervalAnswer | None,
) -> Markup:  # fmt: skip
    total = masses.sum() or 1.0
    ends = None if intervals is None else _list_ends(intervals)
    columns = {
        "Value": labels,
        "Records": [format_count(mass) for mass in masses[:_MAX_VALUES]],
        "Noise": None if stddevs is None else [_format_known(sd) for sd in stddevs[:_MAX_VALUES]],
        f"{_LEVEL:.0%} interval": ends,
        "Share": [format_percent(mass / total) for mass in masses[:_MAX_VALUES]],
    }
    heads = [head for head, column in columns.items() if column is not None]
    rows = list(zip(*(column for column in columns.values() if column is not None), strict=False))
    left = len(labels) - len(rows)
    more = tag("p", f"And {count_noun(left, 'value')} more.", class_="hint") if left else None
    content = render_table(
        f"Estimated records by {name}", heads, rows, numbers=range(1, len(heads)),
        pale=is_only_noise(masses, stddevs),
    )  # fmt: skip
    return fold("Numbers", content, more)


def _list_ends(intervals: IntervalAnswer) -> list[str]:
    ends = zip(intervals.lower[:_MAX_VALUES], intervals.upper[:_MAX_VALUES], strict=True)
    return [
        f"{format_count(low)} to {format_count(high)}" if np.isfinite(high - low) else "not known"
        for low, high in ends
    ]


def _format_known(stddev: float) -> str:
    return format_noise(stddev) if np.isfinite(stddev) else "not known"


def render_pairs(model: Model, measurements: Sequence[Measurement] = ()) -> Markup:
    """Heat maps of the pairs of attributes that depend on each other most."""
    pairs, scope = find_strongest_pairs(model, _TOP_PAIRS)
    noise = CountNoise(model.domain, measurements)
    cards = [_render_pair_card(model, noise, pair.bits, pair.joint) for pair in pairs]
    if not cards:
        return tag("p", "In this model, no two attributes depend on each other noticeably.")
    return join([tag("p", _introduce(scope)), tag("div", cards, class_="cards pairs")])


def _introduce(scope: str) -> str:
    return (
        "Pairs are ranked by mutual information: how many bits one attribute tells about the "
        f"other. {scope} In each chart a row adds up to 100%: the stronger the colour of a cell, "
        "the larger its share of the row. Rows that may hold nothing but noise are pale. Point at "
        "a cell to see its numbers."
    )


def _render_pair_card(model: Model, noise: CountNoise, bits: float, joint: Factor) -> Markup:
    fewer, more = sorted(joint.domain, key=lambda name: joint.domain[name])
    labels = {name: format_labels(model.codebook, name) for name in (fewer, more)}
    table = joint.project((fewer, more)).values
    drawn = draw_heat_map(
        (fewer, labels[fewer]), (more, labels[more]), table,
        stddevs=noise.stddevs((fewer, more)), row_stddevs=noise.stddevs((fewer,)),
    )  # fmt: skip
    return tag(
        "figure",
        tag("figcaption", _render_heading(fewer, more)),
        tag("p", _describe_dependence(fewer, more, bits, joint), class_="hint"),
        drawn,
        tag("p", _describe_origin(model, (fewer, more)), class_="hint"),
        _render_full_labels(list_shortened_cells(labels[fewer], labels[more], table)),
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
    notes = find_dependence_notes(pair, model.cliques)
    apart = [note for note in notes if isinstance(note, NeverTogether)]
    if not apart:
        return "Measured together."
    return (
        "Never measured together: taken as independent."
        if apart[0].independent
        else "Never measured together: inferred from other pairs."
    )
