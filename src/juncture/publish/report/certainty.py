"""The section on how sure answers are: what intervals cover, and how the check went."""

from __future__ import annotations

import math

import numpy as np

from juncture._util.html import Markup, join, tag
from juncture.fit.check import Check
from juncture.fit.replicas import Replicas
from juncture.publish.release import Release
from juncture.publish.report.charts import svg
from juncture.publish.report.tables import render_long_table
from juncture.publish.report.words import format_count, format_labels, truncate
from juncture.publish.strongest_pairs import find_strongest_pairs

_LEVEL, _TOP_PAIRS, _MAX_LETTERS = 0.95, 6, 60
_SIZE, _MARGIN, _MAX_POINTS = 340.0, 40.0, 400


def render_certainty(release: Release) -> Markup:
    """What intervals cover, some of them where replicas are kept, and the check."""
    return join([_introduce(release), _render_intervals(release), _render_check(release)])


def _introduce(release: Release) -> Markup:
    kept = isinstance(release.replicas, Replicas)
    ask = (
        "Every answer of this release can have an interval, which covers the table's own number, "
        "over the noise: an interval of 95 % holds it in about 95 of 100 such releases. It does "
        "not cover other samples of the population, unless it is asked to, nor errors in the data. "
        "Answers are measured, implied by several measurements, or assumed: then their columns "
        "were never measured together. Intervals cost no privacy."
    )
    how = (
        None
        if kept
        else tag(
            "p",
            "This file holds the recipe for intervals, not the replicas that they come from: ",
            tag("code", "juncture query FILE --interval 0.95"),
            " makes them first.",
            class_="hint",
        )
    )
    return join([tag("p", ask), how])


def _render_intervals(release: Release) -> Markup | None:
    """The largest count of each attribute and of the strongest pairs, with its interval."""
    if not isinstance(release.replicas, Replicas):
        return None
    model = release.model
    pairs, _ = find_strongest_pairs(model, _TOP_PAIRS)
    cliques = [(name,) for name in model.domain if name not in model.unmeasured]
    rows = [
        _describe_largest(release, clique)
        for clique in [*cliques, *(tuple(pair.joint.domain) for pair in pairs)]
    ]
    return render_long_table(
        rows,
        "The largest count of each attribute, and of the strongest pairs",
        ("Columns", "Value", "Records", "95 % interval", "Basis"),
        noun="count",
        numbers=(2, 3),
    )


def _describe_largest(release: Release, clique: tuple[str, ...]) -> tuple[str, ...]:
    found = release.project(clique, interval=_LEVEL)
    index = int(found.answer.argmax())
    codes = np.unravel_index(index, found.answer.shape)
    book = release.model.codebook
    labels = [format_labels(book, name)[int(c)] for name, c in zip(clique, codes, strict=True)]
    reach = float(found.plus_minus.reshape(-1)[index])
    return (
        truncate(", ".join(clique), _MAX_LETTERS),
        truncate(", ".join(labels), _MAX_LETTERS),
        format_count(float(found.answer.reshape(-1)[index])),
        f"± {format_count(reach)}" if math.isfinite(reach) else "needs a check",
        str(found.bases[index]),
    )


def _render_check(release: Release) -> Markup:
    check = release.uncertainty.check
    if check is None:
        return tag(
            "p",
            "The release has no check, so assumed answers have no interval"
            + (" but what the mechanism's choices prove" if release.uncertainty.proofs else "")
            + ": nothing that was measured tells how far they may be off. A release with ",
            tag("code", "--check 0.05"),
            " has one.",
            class_="hint",
        )
    caption = "Predicted by the model, and checked, with the check's noise: 95 % of it as a line."
    figure = tag(
        "figure",
        tag("figcaption", tag("h3", "The check")),
        tag("p", f"It measured {check.words}", class_="hint"),
        _draw_check(check),
        tag("p", caption, class_="hint"),
        class_="card",
    )
    return tag("div", figure, class_="cards pairs")


def _draw_check(check: Check) -> Markup:
    """What was checked over what was predicted, on scales of square roots."""
    seen = check.differences
    chosen = slice(0, _MAX_POINTS)
    predicted, checked = seen.predicted[chosen], seen.checked[chosen]
    noise = 1.96 * seen.stddev[chosen]
    top = math.sqrt(max(1.0, float(predicted.max()), float((checked + noise).max())))
    plot = _SIZE - 2 * _MARGIN

    def place(count: float) -> float:
        return plot * math.sqrt(min(max(count, 0.0), top * top)) / top

    def x(count: float) -> float:
        return _MARGIN + place(count)

    def y(count: float) -> float:
        return _SIZE - _MARGIN - place(count)

    end = top * top
    parts = [
        tag("rect", x=_MARGIN, y=_MARGIN, width=plot, height=plot, class_="frame"),
        tag("line", x1=x(0), y1=y(0), x2=x(end), y2=y(end), class_="axis"),
        tag("text", "predicted", x=_SIZE / 2, y=_SIZE - 10, class_="quiet middle"),
        tag("text", "checked", x=_MARGIN, y=_MARGIN - 10, class_="quiet"),
        tag("text", format_count(end), x=_SIZE - _MARGIN, y=_SIZE - 24, class_="quiet end"),
        tag("text", "0", x=_MARGIN, y=_SIZE - 24, class_="quiet"),
    ]
    for a, b, wide in zip(predicted, checked, noise, strict=True):
        at = x(float(a))
        parts += [
            tag("line", x1=at, y1=y(b - wide), x2=at, y2=y(b + wide), class_="edge"),
            tag("circle", cx=at, cy=y(float(b)), r=3, class_="dot"),
        ]
    label = f"{len(predicted)} counts, predicted and checked"
    return svg(_SIZE, _SIZE, label, *parts)
