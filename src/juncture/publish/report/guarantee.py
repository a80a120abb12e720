"""The guarantee of a release, in words that a lawyer can follow and in symbols."""

from __future__ import annotations

import math
from dataclasses import dataclass

from juncture._util.html import Markup, join, tag
from juncture._util.text import count_noun
from juncture.privacy.accounting import Neighbours
from juncture.privacy.guarantee import Guarantee, Notion, Statement, Unit
from juncture.publish.report.words import format_number, format_percent
from juncture.tables.person import Person

# Beyond this epsilon, even odds may become more than 99 percent.
_LARGE = 5.0


@dataclass(frozen=True)
class _Words:
    """How a relation between neighbouring tables is put into words."""

    change: str
    doubt: str
    """What somebody does not know, who knows everybody else."""
    relation: str


_UNKNOWN = _Words(
    "a change of that person’s record",
    "which of two tables that differ by that person’s record is the true one",
    "The release does not say whether neighbouring tables differ by one record added or "
    "removed, or by one replaced. Ask the publisher.",
)


def _words_of(neighbours: Neighbours | None) -> _Words:
    if neighbours is None:
        return _UNKNOWN
    if neighbours.person is not None:
        return _words_of_person(neighbours, neighbours.person)
    if neighbours.replaces:
        return _Words(
            "replacing that person’s record by any other",
            "which of two records is the person’s true one",
            "Neighbouring tables differ by one record replaced; the number of records is public.",
        )
    return _Words(
        "adding that person’s record to the table or removing it",
        "whether the person is in the table at all",
        "Neighbouring tables differ by one record added or removed.",
    )


def _words_of_person(neighbours: Neighbours, person: Person) -> _Words:
    rows = count_noun(person.max_rows, "row")
    limit = (
        f" At most {rows} of each person were counted, chosen at random; the column "
        f"{person.column} says whose row it is."
    )
    if neighbours.replaces:
        return _Words(
            "replacing all rows of that person by any others",
            "which of two sets of rows is the person’s true one",
            "Neighbouring tables differ by all rows of one person, replaced by others." + limit,
        )
    return _Words(
        "adding all rows of that person to the table or removing them",
        "whether the person is in the table at all",
        "Neighbouring tables differ by all rows of one person, added or removed." + limit,
    )


def render_guarantee(guarantee: Guarantee | None, n_records: float) -> Markup:
    """The whole section, without its heading."""
    if guarantee is None:
        return _render_no_guarantee(
            "This release has no ledger.",
            "Its measurements may have been protected elsewhere, or not at all: this file does not "
            "say. Ask the publisher.",
        )
    if not guarantee.events:
        return _render_no_guarantee(
            "The ledger of this release has no events.",
            "What its measurements cost, if anything, is not known here.",
        )
    if not guarantee.holds:
        return _render_no_guarantee(
            "In the ledger of this release, some event has no valid cost.",
            "Without it no total can be stated.",
        )
    statement = guarantee.state(n_records)
    words = _render_words(guarantee, statement)
    return join([words, _render_symbols(guarantee, statement), _render_limits(guarantee)])


def _render_no_guarantee(first: str, second: str) -> Markup:
    return tag(
        "div",
        tag("p", tag("strong", "No privacy guarantee is stated."), " ", first, " ", second),
        class_="note flag",
    )


def _render_words(guarantee: Guarantee, statement: Statement) -> Markup:
    """What the statement means for one person.

    With a delta, only probabilities of sets of releases are bounded: a single release may lie
    outside, so nothing is said about those.
    """
    words = _words_of(guarantee.neighbours)
    is_person = guarantee.unit is Unit.PERSON
    others = "all rows of everybody else" if is_person else "every other record"
    best_guess = format_percent(statement.best_guess)
    return join(
        [
            tag(
                "p",
                "Every number in this release was computed from answers about the table to which "
                "random noise was added, or that were drawn at random. For any one person, ",
                tag("strong", f"{words.change} can change this release only within limits"),
                f": {_describe_bound(statement)}",
                class_="lead",
            ),
            tag(
                "p",
                f"In other words: suppose that someone knows {others} and does not know "
                f"{words.doubt}; both are equally likely to them. Whatever they "
                f"compute from a release made in this way, their guess is right at most "
                f"{best_guess} of the time. This holds against everyone, including those who will "
                "know more in the future than anyone knows today.",
            ),
            _render_warning(statement.epsilon),
        ]
    )


def _describe_bound(statement: Statement) -> str:
    ratio = _format_ratio(statement.epsilon)
    if statement.delta == 0.0:
        return (
            f"no possible release becomes more than {ratio} times likelier because of it, or that "
            "many times less likely."
        )
    return (
        "whatever someone looks for in a release, the chance of finding it becomes at most "
        f"{ratio} times as large, plus {_format_chance(statement.delta)}."
    )


def _render_warning(epsilon: float) -> Markup | None:
    """A warning where the bound allows near certainty."""
    if epsilon <= _LARGE:
        return None
    return tag(
        "p",
        tag("strong", f"This ε of {format_number(epsilon)} is large."),
        " The bound above allows near certainty about a single person. Noise was added "
        "nevertheless, but do not rely on the guarantee alone.",
        class_="note flag",
    )


def _format_ratio(epsilon: float) -> str:
    """The largest ratio of probabilities."""
    ratio = math.exp(min(epsilon, 700.0))
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}" if ratio < 1e9 else "a billion"


def _format_chance(delta: float) -> str:
    return f"one in {round(1.0 / delta):,}"


def _render_symbols(guarantee: Guarantee, statement: Statement) -> Markup:
    events = count_noun(len(guarantee.events), "event")
    return join(
        [
            tag("h3", "In symbols"),
            tag(
                "dl",
                [
                    tag("div", tag("dt", symbol), tag("dd", words))
                    for symbol, words in _list_figures(guarantee, statement)
                ],
                class_="symbols",
            ),
            tag("p", _render_formula(statement)),
            tag(
                "p",
                _words_of(guarantee.neighbours).relation,
                f" The figures are the sum over the {events} in the ledger; they hold even if "
                "later events were chosen after seeing earlier answers.",
            ),
        ]
    )


def _list_figures(guarantee: Guarantee, statement: Statement) -> list[tuple[Markup | str, str]]:
    """The figure of the budget's notion first, then what follows from it."""
    rows = list[tuple[Markup | str, str]]()
    if guarantee.is_pure:
        rows.append((f"ε = {format_number(guarantee.epsilon)}", "pure differential privacy"))
    if math.isfinite(guarantee.rho):
        rho = f"ρ = {format_number(guarantee.rho)}"
        rows.append((rho, "zero-concentrated differential privacy (zCDP)"))
    delta = statement.delta
    if delta > 0.0:
        pair = join([f"(ε, δ) = ({format_number(statement.epsilon)}, ", _format_delta(delta), ")"])
        follows = "what follows for this δ; another δ gives another ε"
        chosen = "approximate differential privacy, for the δ of the budget"
        approximate = statement.notion is Notion.APPROXIMATE
        rows.insert(0 if approximate else len(rows), (pair, chosen if approximate else follows))
    return rows


def _format_delta(delta: float) -> Markup:
    power = round(-math.log10(delta))
    if not math.isclose(delta, 10.0**-power):
        return join([f"{delta:.3g}"])
    return join(["10", tag("sup", f"−{power}")])


def _render_formula(statement: Statement) -> Markup:
    """The definition that the figures refer to."""
    common = join([tag("i", "M"), " is the mechanism that made the release, "])
    tables = join([tag("i", "D"), " and ", tag("i", "D′"), " are neighbouring tables"])
    if statement.notion is Notion.ZCDP:
        end = "(M(D) ‖ M(D′)) ≤ ρ α  for every α > 1, D being Rényi divergence,"
        line = join(["D", tag("sub", "α"), end])
    else:
        plus = " + δ" if statement.delta > 0.0 else ""
        end = f" · Pr[M(D′) ∈ S]{plus}  for every set S of releases,"
        line = join(["Pr[M(D) ∈ S] ≤ e", tag("sup", "ε"), end])
    return join([tag("code", line, class_="formula"), " where ", common, tables, "."])


def _describe_unit(guarantee: Guarantee) -> tuple[str, str]:
    """How much data of a person is protected."""
    person = None if guarantee.neighbours is None else guarantee.neighbours.person
    if person is None:
        return (
            "One record for each person.",
            "The guarantee is about records. A person with several records in the table is "
            "protected less: with k records, ε becomes k times and ρ k² times as large.",
        )
    return (
        f"At most {count_noun(person.max_rows, 'row')} of each person count.",
        "The guarantee is about persons, with all their rows. Counts are counts of rows, and "
        "where people have more rows than count, those beyond the limit are missing from every "
        f"number here. Whoever stands under two values in the column {person.column} is two "
        "persons, each protected alone.",
    )


def _render_limits(guarantee: Guarantee) -> Markup:
    earlier = guarantee.n_earlier
    points = [
        _describe_unit(guarantee),
        (
            "The schema is public.",
            "Names of attributes, their values and the edges of intervals, rules between columns "
            "and known totals are taken to be known without looking at the data. They are not "
            "protected.",
        ),
        (
            "Releases add up.",
            "Anything else that is published about the same people costs privacy too, and the "
            "costs add up."
            + (
                f" The ledger had {count_noun(earlier, 'event')} before those of this release."
                if earlier
                else ""
            ),
        ),
        (
            "Facts about groups stay visible.",
            "What is true of many people can be learned from a release, and may then be assumed "
            "of a person who is not even in the table. That is what a release is for.",
        ),
        (
            "Later use costs nothing.",
            "The model, every answer from it, synthetic records and this page were computed from "
            "the noisy numbers alone. Such post-processing cannot weaken the guarantee, no matter "
            "what is done or by whom.",
        ),
        (
            "It is only as true as the file.",
            "This page repeats what the release says about itself. Who made it, and whether the "
            "noise was drawn as stated, must be known from elsewhere.",
        ),
    ]
    return join(
        [
            tag("h3", "Its limits"),
            tag("ul", [tag("li", tag("strong", a), " ", b) for a, b in points], class_="limits"),
        ]
    )
