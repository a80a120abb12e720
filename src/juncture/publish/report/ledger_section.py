"""The section with the ledger: every event and what it cost."""

from __future__ import annotations

from juncture._util.html import Markup, join, tag
from juncture.publish.report.account import Account
from juncture.publish.report.tables import render_long_table
from juncture.publish.report.words import format_number, pluralize

_MAX_ROWS = 1000


def render_ledger(account: Account | None) -> Markup:
    """What was asked of the private table, how, and at what cost."""
    if account is None:
        return tag("p", "This release holds no ledger: what was spent on it is not known here.")
    if not account.entries:
        return tag("p", "The ledger holds no events: nothing was asked of the private table.")
    unit = "ε" if account.pure else "ρ"
    rows = [
        (
            str(entry.number or index),
            entry.what,
            join([entry.mechanism, tag("span", entry.details, class_="hint under")]),
            format_number(paid),
            format_number(so_far),
        )
        for index, (entry, paid, so_far) in enumerate(
            zip(account.entries, account.paid, account.running, strict=True), start=1
        )
    ]
    heads = ("No.", "What was asked", "Mechanism", f"Cost in {unit}", f"So far, {unit}")
    left = len(rows) - _MAX_ROWS
    more = tag("p", f"And {pluralize(left, 'event')} more, in the file.") if left > 0 else None
    return join(
        [
            tag("p", _summary(account, unit)),
            _kron_hint(account),
            render_long_table(
                rows[:_MAX_ROWS], "Privacy events, in order", heads, noun="event", numbers=(3, 4)
            ),
            more,
        ]
    )


def _kron_hint(account: Account) -> Markup | None:
    """How to read products of queries, where there are any."""
    if not any(entry.what.startswith("Kron(") for entry in account.entries):
        return None
    return tag(
        "p",
        tag("code", "Kron(…)"),
        " asks for combinations: of every value of an attribute where it says ",
        tag("code", "Identity"),
        ", of sums over several of its values otherwise.",
        class_="hint",
    )


def _budget_sentence(account: Account) -> str:
    return f" The budget allowed {account.budget}." if account.budget else ""


def _summary(account: Account, unit: str) -> str:
    spent = format_number(account.epsilon if account.pure else account.rho)
    when = ""
    if account.dates:
        first, last = account.dates
        when = f" on {first}" if first == last else f" from {first} to {last}"
    return (
        "Each line is one question to the private table. It was written down, and paid for, before "
        f"its noise was drawn. {pluralize(len(account.entries), 'event')}{when} cost {unit} = "
        f"{spent} "
        f"together.{_budget_sentence(account)}"
    )
