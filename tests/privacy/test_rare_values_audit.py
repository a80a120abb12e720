"""Runs that merge rare values, on neighbouring tables: exact losses, and broken copies caught."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from juncture.mechanisms.aim import AIM
from juncture.mechanisms.mechanism import Mechanism
from juncture.mechanisms.mst import MST
from juncture.mechanisms.mwem import MWEM
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import RECORD_NEIGHBOURS, Neighbours
from juncture.privacy.budget import Budget
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload
from scribe import find_transcript

DOMAIN = Domain({"a": 12, "b": 2, "c": 2})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)
SLACK, N_RECORDS, MAX_PAIRS = 1e-5, 120, 40
MECHANISMS: dict[str, Callable[[Budget], Mechanism]] = {
    "aim": lambda budget: AIM(budget, rounds=6, max_steps=5, merge_rare="on"),
    "mst": lambda budget: MST(budget, max_steps=5, merge_rare="on"),
    "mwem": lambda budget: MWEM(budget, rounds=3, max_steps=5, merge_rare="on"),
    "tiers": lambda budget: Tiers(budget, max_steps=5, merge_rare="on", max_pairs=2),
}


def make_tables(seed: int, neighbours: Neighbours) -> tuple[CodedTable, CodedTable]:
    """Two frequent values and ten rare ones; the first record, which differs, has a rare one."""
    rng = np.random.default_rng(seed)
    a = np.where(
        rng.random(N_RECORDS) < 0.9, rng.integers(0, 2, N_RECORDS), 2 + rng.integers(0, 10)
    )
    a[0] = 2 + seed % 10
    columns = {"a": a, "b": a % 2, "c": rng.integers(0, 2, N_RECORDS)}
    if neighbours is Neighbours.REPLACE:
        other = {name: column.copy() for name, column in columns.items()}
        other["a"][0], other["b"][0] = seed % 2, 1 - other["b"][0]
    else:
        other = {name: column[1:] for name, column in columns.items()}
    return CodedTable(DOMAIN, columns), CodedTable(DOMAIN, other)


def worst(name: str, neighbours: Neighbours, n_pairs: int, **broken: float) -> tuple[float, float]:
    """The largest share of what was charged that a measurement, and a choice, has told."""
    measured, chosen = 0.0, 0.0
    for seed in range(n_pairs):
        tables = make_tables(seed, neighbours)
        found = find_transcript(
            MECHANISMS[name](Budget(rho=20.0)), WORKLOAD, tables, neighbours, **broken
        )
        measured = max(measured, *found.measured)
        chosen = max(chosen, *found.chosen, 0.0)
        if max(measured, chosen) > 1.0 + SLACK:
            break
    return measured, chosen


@pytest.mark.parametrize("neighbours", RECORD_NEIGHBOURS, ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_merged_runs_tell_no_more_than_they_were_charged(name: str, neighbours: Neighbours) -> None:
    """Nor does half the noise go unnoticed."""
    assert max(worst(name, neighbours, 5)) <= 1.0 + SLACK
    assert worst(name, neighbours, MAX_PAIRS, noise_factor=0.5)[0] > 1.0 + SLACK


@pytest.mark.parametrize("name", ["aim", "mwem", "tiers"])
def test_a_doubled_exponent_is_caught(name: str) -> None:
    """In choices among merged tables."""
    assert worst(name, Neighbours.ADD_OR_REMOVE, MAX_PAIRS, exponent_factor=2.0)[1] > 1.0 + SLACK
