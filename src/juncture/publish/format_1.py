"""Release files of format 1, read as format 2.

Format 1 kept everything about privacy and fit in one mapping, `statistics`, beside the bare events
of the ledger: the budget as a text of names and numbers, the neighbours by their name, the workload
as cliques with commas between the names. What is not stated there stays unknown. Its
marginals are numbers of records; those of format 2 are probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from juncture.errors import InvalidInput
from juncture.fit.summary import FitSummary
from juncture.privacy.accounting import RECORD_NEIGHBOURS
from juncture.privacy.budget import Budget
from juncture.privacy.guarantee import Unit
from juncture.publish.archive import Document
from juncture.tables.layout import Vector

_FIT = ("status", "loss", "lower_bound", "oracle_calls", "seconds")
_CONTEXT = ("budget", "spent", "neighbours", "mechanism", "workload")


def upgrade_arrays(document: Document, arrays: Sequence[Vector]) -> list[Vector]:
    """The arrays of a format-1 file as those of format 2: marginals as probabilities."""
    potentials, marginals, *others = arrays
    total = float(document["total"])
    if not total > 0.0:
        raise ValueError(total)
    return [potentials, marginals / total, *others]


def upgrade(document: Document) -> Document:
    """The document of a format-1 file as a document of format 2."""
    statistics = dict(document["statistics"])
    events = document["ledger"]
    guarantee = None
    if events is not None:
        guarantee = {
            "budget": _read_budget(statistics.get("budget")),
            "neighbours": _read_neighbours(statistics.get("neighbours")),
            "unit": str(Unit.RECORD),
            "events": list(events),
        }
    kept = {name: document[name] for name in document if name not in ("statistics", "ledger")}
    return {
        **kept,
        "version": 2,
        "log_share": 0.0,
        "guarantee": guarantee,
        "fit": _read_fit(statistics),
        "mechanism": statistics.get("mechanism"),
        "workload": _read_workload(statistics.get("workload"), document["domain"]),
        "details": {n: v for n, v in statistics.items() if n not in (*_FIT, *_CONTEXT)},
    }


def _read_budget(text: object) -> dict[str, float] | None:
    """A budget as format 1 wrote it, such as "epsilon 1, delta 1e-09"; None for anything else."""
    if not isinstance(text, str):
        return None
    pairs = [part.split(" ") for part in text.split(", ")]
    try:
        stated = {name: float(value) for name, value in pairs}
        return Budget(**stated).to_json()
    except (ValueError, TypeError, InvalidInput):
        return None


def _read_neighbours(text: object) -> str | None:
    return next((str(each) for each in RECORD_NEIGHBOURS if str(each) == text), None)


def _read_fit(statistics: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the fit ended; format 1 of most mechanisms does not say."""
    try:
        return FitSummary.from_json(statistics).to_json()
    except InvalidInput:
        return None


def _read_workload(cliques: object, domain: list[tuple[str, int]]) -> list[list[str]]:
    """Cliques as format 1 wrote them; none where a name with a comma in it makes them unclear."""
    texts = cliques if isinstance(cliques, list) else []
    names, split = {name for name, _ in domain}, [str(text).split(", ") for text in texts]
    return split if all(names.issuperset(clique) for clique in split) else []
