"""What the page shows about a release before any question."""

from __future__ import annotations

from typing import Any

import numpy as np

from juncture._util.sparkline import bar_heights
from juncture.fit.summary import FitSummary, Status
from juncture.model.model import Model
from juncture.privacy.guarantee import Notion
from juncture.publish.explorer import limits
from juncture.publish.explorer.question import format_literal, quote_identifier
from juncture.publish.release import Release
from juncture.publish.strongest_pairs import Pair, find_strongest_pairs
from juncture.tables.codebook import Coding, Special
from juncture.tables.columns import Column, Display, display_of

Facts = dict[str, Any]
_SPARKS = 28
# How many pairs are proposed, and how many values of each attribute a chart of two shows well.
_MAX_PAIRS, _MAX_VALUES = 4, 200
_SHORT = {
    Status.CERTIFIED: "fit certified",
    Status.AT_NOISE: "fit stopped at the noise",
    Status.NOT_MIXED: "records have not mixed",
}
_NOTIONS = {Notion.PURE: "epsilon", Notion.ZCDP: "rho", Notion.APPROXIMATE: "delta"}


def collect_facts(release: Release, name: str) -> Facts:
    """Everything about the release that needs no question."""
    model = release.model
    columns = release.schema.columns if release.schema else {}
    return {
        "name": name,
        "total": model.total,
        "guarantee": describe_guarantee(release),
        "certificate": describe_fit(release.fit),
        "attributes": [
            _describe_attribute(model, each, columns.get(each)) for each in model.domain
        ],
        "pairs": [list(pair.joint.domain) for pair in _first_pairs(model)],
        "limits": {"records": limits.MAX_RECORDS, "cells": limits.MAX_CELLS},
    }


def _first_pairs(model: Model) -> list[Pair]:
    """Pairs to begin with, small enough for a chart."""
    return find_strongest_pairs(model, _MAX_PAIRS, max_values=_MAX_VALUES).pairs


def describe_guarantee(release: Release) -> Facts | None:
    """The guarantee of the release, in the same figures as in its report."""
    guarantee = release.guarantee
    if guarantee is None or not guarantee.holds:
        return None
    statement = guarantee.state(release.model.total)
    chosen = statement.notion is Notion.APPROXIMATE
    return {
        "notion": _NOTIONS[statement.notion],
        "symbol": statement.symbol,
        "value": statement.value,
        "delta": f"{statement.delta:g}" if chosen else None,
        "events": len(guarantee.events),
        "budget": None if guarantee.budget is None else str(guarantee.budget),
        "neighbours": None if guarantee.neighbours is None else str(guarantee.neighbours),
    }


def describe_fit(fit: FitSummary | None) -> Facts | None:
    """How the fit ended, and the most by which another model could be better."""
    if fit is None:
        return None
    advice = fit.status.advice if fit.status is Status.NOT_MIXED else ""
    sentences = (fit.status.headline, fit.status.explanation, advice, fit.record_words)
    certain = fit.loss > 0.0 <= fit.lower_bound
    return {
        "status": " ".join(filter(None, sentences)),
        "short": _SHORT.get(fit.status, "fit not certified"),
        "gap": max(0.0, fit.gap / fit.loss) if certain else None,
    }


def _describe_attribute(model: Model, name: str, column: Column | None) -> Facts:
    book, size = model.codebook, model.domain[name]
    coding = book[name]
    measured = name not in model.unmeasured
    description: Facts = {
        "name": name,
        "sql": quote_identifier(name),
        "size": size,
        "counted": measured,
    }
    if size > limits.MAX_VALUES:
        return {**description, "kind": "many", "values": [], "sparks": []}
    counts = np.asarray(model.project((name,)).values)
    kind = "codes" if name not in book.codings else _display(coding, column)
    values = [describe_value(coding, code) for code in range(size)]
    sparks = [round(float(height), 3) for height in bar_heights(counts, _SPARKS)]
    return {**description, "kind": kind, "values": values, "sparks": sparks}


def is_ordered(release: Release, name: str) -> bool:
    """Whether values of an attribute that follow each other belong together."""
    book = release.model.codebook
    column = release.schema.columns.get(name) if release.schema else None
    shown = (_display(book[name], column), display_of(book[name]))
    return name not in book.codings or Display.TEXTS not in shown


def _display(coding: Coding, column: Column | None) -> Display:
    """How to show an attribute: as its column says, unless the codebook has other meanings."""
    return column.display if column and column.coding == coding else display_of(coding)


def describe_value(coding: Coding, code: int) -> Facts:
    """A value as the page shows it, as SQL writes it, and as a number where it is one."""
    meaning, label = coding.meanings[code], coding.labels[code]
    if isinstance(meaning, tuple) and coding.period is not None:
        return {"label": label, "sql": format_literal(str(label))}
    if isinstance(meaning, tuple):
        spread, (low, high) = coding.spreads[code], meaning
        mean = 0.5 * (low + high) if spread is None else spread.mean(spread.low, spread.high)
        return {"label": label, "low": low, "high": high, "mean": mean}
    if meaning is None or isinstance(meaning, Special):
        return {"label": "missing" if meaning is None else meaning.name, "special": True}
    description: Facts = {"label": _label(meaning), "sql": format_literal(meaning)}
    if not isinstance(meaning, bool | str):
        description |= {"low": meaning, "high": meaning}
    return description


def _label(meaning: str | float | bool) -> str:
    if isinstance(meaning, float) and meaning.is_integer():
        return str(int(meaning))
    return str(meaning).lower() if isinstance(meaning, bool) else str(meaning)
