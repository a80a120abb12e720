"""The section with the ledger: every event and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.privacy.guarantee import Guarantee
from juncture.publish.report.tables import render_long_table
from juncture.publish.report.words import format_number
from juncture.tables.measurement import Measurement
from juncture.tables.queries.products import Kron

_MAX_ROWS = 1000


def render_ledger(guarantee: Guarantee | None, measurements: Sequence[Measurement]) -> Markup:
    """What was asked of the private table, how, and at what cost."""
    if guarantee is None:
        return tag("p", "This release has no ledger: what was spent on it is not known here.")
    if not guarantee.events:
        return tag("p", "The ledger has no events: nothing was asked of the private table.")
    pure, unit = guarantee.is_pure, "ε" if guarantee.is_pure else "ρ"
    paid = [cost.epsilon if pure else cost.rho for cost in guarantee.costs]
    rows = [
        (
            str(entry.number),
            entry.what or "not stated",
            join(
                [
                    entry.mechanism or "not stated",
                    tag("span", _describe_parameters(entry.parameters), class_="hint under"),
                ]
            ),
            format_number(cost),
            format_number(so_far),
        )
        for entry, cost, so_far in zip(guarantee.events, paid, accumulate(paid), strict=True)
    ]
    heads = ("No.", "What was asked", "Mechanism", f"Cost in {unit}", f"So far, {unit}")
    left = len(rows) - _MAX_ROWS
    more = tag("p", f"And {count_noun(left, 'event')} more, in the file.") if left > 0 else None
    return join(
        [
            tag("p", _summarise(guarantee, unit)),
            _render_kron_hint() if any(isinstance(m.query, Kron) for m in measurements) else None,
            render_long_table(
                rows[:_MAX_ROWS], "Privacy events, in order", heads, noun="event", numbers=(3, 4)
            ),
            more,
        ]
    )


def _describe_parameters(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shorten(value)}" for name, value in parameters.items())


def _shorten(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _render_kron_hint() -> Markup:
    """How to read products of queries."""
    return tag(
        "p",
        tag("code", "Kron(…)"),
        " asks for combinations of attributes: of every value where it says ",
        tag("code", "Identity"),
        ", of sums over several values otherwise.",
        class_="hint",
    )


def _summarise(guarantee: Guarantee, unit: str) -> str:
    spent = format_number(guarantee.epsilon if guarantee.is_pure else guarantee.rho)
    when = ""
    if guarantee.days:
        first, last = guarantee.days
        when = f" on {first}" if first == last else f" from {first} to {last}"
    budget = f" The budget allowed {guarantee.budget}." if guarantee.budget else ""
    return (
        "Each line is one question to the private table. It was recorded, and paid for, before "
        f"its noise was drawn. {count_noun(len(guarantee.events), 'event')}{when} cost {unit} = "
        f"{spent} in total.{budget}"
    )
