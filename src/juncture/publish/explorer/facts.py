"""What a release is, in the words and numbers that the page shows first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from juncture._util.sparkline import bar_heights
from juncture.model.model import Model
from juncture.publish.explorer import limits
from juncture.publish.explorer.question import format_literal, quote_identifier
from juncture.publish.release import Release
from juncture.publish.report.account import account_of
from juncture.publish.strongest_pairs import Pair, find_strongest_pairs
from juncture.tables.codebook import Coding, Meaning, Special
from juncture.tables.schema import Date

Facts = dict[str, Any]
_NOTHING: Mapping[str, Any] = {}
_SPARKS = 28
# How many pairs are proposed, and the most values that a picture of two attributes shows well.
_MAX_PAIRS, _MAX_PICTURE = 4, 200
_STATUS = {
    "CERTIFIED": "The fit is certified: it is as close to the measurements as any model can be.",
    "STALLED": "The fit ended where further steps hardly helped.",
    "AT_NOISE": "The fit stopped where only noise was left to fit.",
    "OUT_OF_STEPS": "The fit used up its steps before it had settled.",
}
_SHORT = {"CERTIFIED": "fit certified", "AT_NOISE": "fit stopped at the noise"}


def collect_facts(release: Release, name: str) -> Facts:
    """Everything about the release that needs no question."""
    model = release.model
    columns = release.schema.columns if release.schema else {}
    dated = {each for each, column in columns.items() if isinstance(column, Date)}
    return {
        "name": name,
        "total": model.total,
        "guarantee": describe_guarantee(release.ledger, release.statistics),
        "certificate": describe_certificate(release.statistics),
        "attributes": [_describe_attribute(model, each, each in dated) for each in model.domain],
        "pairs": [list(pair.joint.domain) for pair in _first_pairs(model)],
        "limits": {"records": limits.MAX_RECORDS, "cells": limits.MAX_CELLS},
    }


def _first_pairs(model: Model) -> list[Pair]:
    """Pairs to begin with, small enough for a picture."""
    return find_strongest_pairs(model, _MAX_PAIRS, max_values=_MAX_PICTURE).pairs


def describe_guarantee(
    ledger: Sequence[Mapping[str, Any]] | None, statistics: Mapping[str, Any] = _NOTHING
) -> Facts | None:
    """What the events cost together, in the notion of the budget where the release states one.

    Epsilons add up, and so do rhos; with the delta of a budget, all events are composed under it.
    """
    account = account_of(ledger or (), statistics)
    if not account.holds:
        return None
    delta = _parse_delta(account.budget)
    known = {
        "events": len(account.entries),
        "budget": account.budget,
        "neighbours": str(account.neighbours) if account.stated else None,
        "delta": None if delta is None else f"{delta:g}",
    }
    if delta is not None:
        value = account.epsilon_for(delta)
        return {"notion": "delta", "symbol": "ε", "value": value, **known}
    if account.pure and not str(account.budget).startswith("rho"):
        return {"notion": "epsilon", "symbol": "ε", "value": account.epsilon, **known}
    return {"notion": "rho", "symbol": "ρ", "value": account.rho, **known}


def _parse_delta(budget: str | None) -> float | None:
    """The delta in the words of a budget, where there is a sound one."""
    match = re.search(r"\bdelta (\S+)$", budget or "")
    try:
        delta = float(match[1]) if match else 0.0
    except ValueError:
        return None
    return delta if 0.0 < delta < 1.0 else None


def describe_certificate(statistics: Mapping[str, Any]) -> Facts | None:
    """How the fit ended, and by how much the best model could at most be better."""
    status = statistics.get("status")
    loss, bound = statistics.get("loss"), statistics.get("lower_bound")
    gap = None
    if isinstance(loss, int | float) and isinstance(bound, int | float) and loss > 0.0 <= bound:
        gap = max(0.0, (loss - bound) / loss)
    sentence = _STATUS.get(str(status))
    if sentence is None and gap is None:
        return None
    return {"status": sentence, "short": _SHORT.get(str(status), "fit not certified"), "gap": gap}


def _describe_attribute(model: Model, name: str, dated: bool) -> Facts:
    book, size = model.codebook, model.domain[name]
    coding = book[name]
    measured = name not in model.plan.free_attributes
    description: Facts = {
        "name": name,
        "sql": quote_identifier(name),
        "size": size,
        "counted": measured,
    }
    if size > limits.MAX_VALUES:
        return {**description, "kind": "many", "values": [], "sparks": []}
    counts = np.asarray(model.project((name,)).values)
    kind = "dates" if dated else _display_kind(coding, plain=name not in book.codings)
    values = [_describe_value(meaning) for meaning in coding.meanings]
    sparks = [round(float(height), 3) for height in bar_heights(counts, _SPARKS)]
    return {**description, "kind": kind, "values": values, "sparks": sparks}


def _display_kind(coding: Coding, *, plain: bool) -> str:
    """How an attribute is drawn and asked about."""
    kinds = {type(m) for m in coding.meanings if m is not None and not isinstance(m, Special)}
    if plain:
        return "codes"
    if kinds == {tuple}:
        ordered = all(a < b for a, b in pairwise(m for m in coding.meanings if type(m) is tuple))
        return "intervals" if ordered else "texts"
    if kinds and kinds <= {int, float}:
        numbers = [m for m in coding.meanings if isinstance(m, int | float)]
        return "numbers" if numbers == sorted(numbers) else "texts"
    return "texts"


def _describe_value(meaning: Meaning) -> Facts:
    """A value as the page shows it, as SQL writes it, and as a number where it is one."""
    if isinstance(meaning, tuple):
        low, high = meaning
        label = Coding((meaning,)).labels[0]
        return {"label": label, "low": low, "high": high}
    if meaning is None or isinstance(meaning, Special):
        return {"label": "missing" if meaning is None else meaning.name, "special": True}
    description: Facts = {"label": _label(meaning), "sql": format_literal(meaning)}
    if not isinstance(meaning, bool | str):
        description |= {"low": meaning, "high": meaning}
    return description


def _label(meaning: str | float | bool) -> str:
    return str(meaning).lower() if isinstance(meaning, bool) else str(meaning)
