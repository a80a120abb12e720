"""The problems of which one iteration is timed."""

from __future__ import annotations

from typing import Any

from juncture.private.samples import adult_domain

Report = dict[str, Any]

NINE_TRIPLES = """
race capital-loss income>50K | marital-status capital-gain income>50K
race native-country income>50K | workclass sex hours-per-week
fnlwgt marital-status relationship | workclass education-num occupation
age relationship sex | occupation sex hours-per-week | occupation relationship income>50K
"""
PAPER_TRIPLES = """
occupation race capital-loss | occupation sex native-country
marital-status relationship income>50K | age education-num sex
workclass education-num occupation | marital-status occupation income>50K
race native-country income>50K | occupation capital-gain income>50K
marital-status hours-per-week income>50K | workclass race capital-gain
marital-status relationship capital-gain | workclass education-num capital-gain
education-num relationship race | fnlwgt hours-per-week income>50K
workclass sex native-country
"""


def problems() -> dict[str, Report]:
    """The problems by name."""
    adult = {name: size for name, size in adult_domain().items() if name != "education"}
    found = {f"chain-{n}": chain(n) for n in (100, 1000, 10_000)}
    found["adult-9"] = problem(adult, triples(NINE_TRIPLES))
    found["adult-15"] = problem(adult, triples(PAPER_TRIPLES))
    return found


def chain(n_attributes: int) -> Report:
    """Every adjacent triple of attributes with ten values."""
    names = [f"x{place}" for place in range(n_attributes)]
    cliques = [names[place : place + 3] for place in range(n_attributes - 2)]
    return problem(dict.fromkeys(names, 10), cliques)


def triples(text: str) -> list[list[str]]:
    """Cliques written as words between bars and line ends."""
    return [part.split() for line in text.strip().splitlines() for part in line.split("|")]


def problem(domain: dict[str, int], cliques: list[list[str]]) -> Report:
    """A problem file's content."""
    return {"domain": domain, "cliques": cliques, "seed": 0, "total": 50_000.0}
