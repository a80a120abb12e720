"""The guarantee of a release, in words that a lawyer can follow and in symbols."""

from __future__ import annotations

import math

from juncture._util.html import Markup, join, tag
from juncture.privacy.accounting import Neighbours
from juncture.publish.report.account import Account
from juncture.publish.report.words import format_number, format_percent, pluralize

# Beyond this epsilon even odds may become more than 99 percent.
_LARGE = 5.0
_CHANGE = {
    Neighbours.ADD_OR_REMOVE: "adding that person’s record to the table or removing it",
    Neighbours.REPLACE: "replacing that person’s record by any other",
    None: "a change of that person’s record",
}
_DOUBT = {
    Neighbours.ADD_OR_REMOVE: "whether the person is in the table at all",
    Neighbours.REPLACE: "which of two records is the person’s true one",
    None: "which of two tables that differ by that person’s record is the true one",
}
_RELATION = {
    Neighbours.ADD_OR_REMOVE: "Neighbouring tables differ by one record added or removed.",
    Neighbours.REPLACE: "Neighbouring tables differ by one record replaced; the number of records "
    "is public.",
    None: "The release does not say whether neighbouring tables differ by one record added or "
    "removed, or by one replaced. Ask whoever published it.",
}


def render_guarantee(account: Account | None, total: float) -> Markup:
    """The whole section, without its heading."""
    if account is None:
        return _no_guarantee(
            "This release holds no ledger.",
            "Its measurements may have been protected elsewhere, or not at all: this file does not "
            "tell. Ask whoever published it.",
        )
    if not account.entries:
        return _no_guarantee(
            "The ledger of this release holds no events.",
            "What its measurements cost, if anything, is not known here.",
        )
    if not account.holds:
        return _no_guarantee(
            "The ledger of this release has no sound cost for every event.",
            "Without it no total can be stated.",
        )
    delta = default_delta(total)
    return join([_in_words(account, delta), _in_symbols(account, delta), _limits(account)])


def default_delta(total: float) -> float:
    """A power of ten, at most a millionth and well below one in the number of records."""
    digits = math.ceil(math.log10(max(total, 1.0))) + 1
    return 10.0 ** -min(15, max(6, digits))


def _no_guarantee(first: str, second: str) -> Markup:
    return tag(
        "div",
        tag("p", tag("strong", "No privacy guarantee is stated."), " ", first, " ", second),
        class_="note flag",
    )


def _in_words(account: Account, delta: float) -> Markup:
    epsilon = account.epsilon if account.pure else account.epsilon_for(delta)
    ratio, low, high = _odds_range(epsilon)
    change = _CHANGE[account.neighbours]
    exception = (
        "" if account.pure else f" This holds but for a probability of at most {_one_in(delta)}."
    )
    return join(
        [
            tag(
                "p",
                "Every number in this release was computed from answers about the table to which "
                "random noise was added, or that were drawn at random. For any one person, ",
                tag("strong", f"{change} changes only within limits what this release may be"),
                f": no possible release becomes more than {ratio} times likelier by it, or that "
                f"much less likely.{exception}",
                class_="lead",
            ),
            tag(
                "p",
                "In other words: take somebody who knows every other record, and who doubts "
                f"{_DOUBT[account.neighbours]}, holding either to be 50% likely. After seeing this "
                f"release, and with any computation, that somebody cannot arrive at more than "
                f"{high} or less than {low}. This holds against everybody, also against those who "
                "will know more in the future than anyone knows today.",
            ),
            _weak_warning(epsilon),
        ]
    )


def _weak_warning(epsilon: float) -> Markup | None:
    """A warning where the bound allows near certainty."""
    if epsilon <= _LARGE:
        return None
    return tag(
        "p",
        tag("strong", f"This ε of {format_number(epsilon)} is large."),
        " The bound above allows near certainty about a single person. Noise was added all the "
        "same, but the guarantee alone should not be relied on.",
        class_="note flag",
    )


def _odds_range(epsilon: float) -> tuple[str, str, str]:
    """The largest ratio of probabilities, and the range that even odds can move in."""
    ratio = math.exp(min(epsilon, 700.0))
    high = ratio / (1.0 + ratio)
    shown = f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}" if ratio < 1e9 else "a billion"
    return shown, format_percent(1.0 - high), format_percent(high)


def _one_in(delta: float) -> str:
    return f"one in {round(1.0 / delta):,}"


def _in_symbols(account: Account, delta: float) -> Markup:
    rows = list[tuple[Markup | str, str]]()
    if account.pure:
        rows.append((f"ε = {format_number(account.epsilon)}", "pure differential privacy"))
    if math.isfinite(account.rho):
        rows.append(
            (f"ρ = {format_number(account.rho)}", "zero-concentrated differential privacy (zCDP)")
        )
        rows += _approximate_rows(account, delta)
    events = pluralize(len(account.entries), "event")
    return join(
        [
            tag("h3", "In symbols"),
            tag(
                "dl",
                [tag("div", tag("dt", symbol), tag("dd", meaning)) for symbol, meaning in rows],
                class_="symbols",
            ),
            tag("p", _formula(account)),
            tag(
                "p",
                _RELATION[account.neighbours],
                _evidence(account),
                f" The figures are the sum over the {events} in the ledger; they hold however "
                "later events were chosen in the light of earlier answers.",
            ),
        ]
    )


def _approximate_rows(account: Account, delta: float) -> list[tuple[Markup | str, str]]:
    """The epsilon with a delta, where it says more than the pure one."""
    epsilon = account.epsilon_for(delta)
    if epsilon >= account.epsilon:
        return []
    pair = join([f"(ε, δ) = ({format_number(epsilon)}, ", _power(delta), ")"])
    return [(pair, "what follows for this δ; another δ gives another ε")]


def _power(delta: float) -> Markup:
    return join(["10", tag("sup", f"−{round(-math.log10(delta))}")])


def _formula(account: Account) -> Markup:
    """The definition that the figures refer to."""
    common = join([tag("i", "M"), " is what made the release, "])
    tables = join([tag("i", "D"), " and ", tag("i", "D′"), " are neighbouring tables"])
    if account.pure:
        end = " · Pr[M(D′) ∈ S]  for every set S of releases,"
        line = join(["Pr[M(D) ∈ S] ≤ e", tag("sup", "ε"), end])
    else:
        end = "(M(D) ‖ M(D′)) ≤ ρ α  for every α > 1, D being Rényi divergence,"
        line = join(["D", tag("sub", "α"), end])
    return join([tag("code", line, class_="formula"), " where ", common, tables, "."])


def _evidence(account: Account) -> str:
    if account.stated or account.neighbours is None:
        return ""
    return " (The file does not state this in words; the scale of its noise shows it.)"


def _limits(account: Account) -> Markup:
    earlier = account.earlier
    points = [
        (
            "One record for each person.",
            "The guarantee is about records. Whoever has several records in the table is "
            "protected less: with k records, ε counts k times and ρ k² times.",
        ),
        (
            "The schema is public.",
            "Names of attributes, their values and the edges of intervals are taken to be known "
            "without looking at the data. They are not protected.",
        ),
        (
            "Releases add up.",
            "Whatever else is published about the same people costs too, and the costs add up."
            + (
                f" The ledger had {pluralize(earlier, 'event')} before those of this release."
                if earlier
                else ""
            ),
        ),
        (
            "Facts about groups stay visible.",
            "What is true of many people can be learned from a release, and can be held to be "
            "likely of a person who is not even in the table. That is what a release is for.",
        ),
        (
            "Later use costs nothing.",
            "The model, every answer from it, synthetic records and this page were computed from "
            "the noisy numbers alone. Such post-processing cannot weaken the guarantee, whatever "
            "is done and whoever does it.",
        ),
        (
            "It is as true as the file.",
            "This page repeats what the release says of itself. Who made it, and that the noise "
            "was drawn as stated, must be known from elsewhere.",
        ),
    ]
    return join(
        [
            tag("h3", "Its limits"),
            tag("ul", [tag("li", tag("strong", a), " ", b) for a, b in points], class_="limits"),
        ]
    )
