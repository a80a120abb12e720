"""Tiers: what is measured of a single column, the first time and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from juncture.mechanisms import tier_run
from juncture.mechanisms.result import RunResult
from juncture.mechanisms.tier_state import TierState
from juncture.mechanisms.tiers import Tiers
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.workload import Workload

FLAGS = Domain(dict.fromkeys("abcdefgh", 2))
MIXED = Domain({"flag": 2, "few": 4, "many": 101})


def make_table(domain: Domain, n: int = 10_000) -> CodedTable:
    """Records with independent columns whose low values are more probable."""
    rng = np.random.default_rng(0)
    return CodedTable(
        domain,
        {name: np.minimum(*rng.integers(0, size, (2, n))) for name, size in domain.items()},
    )


def run(
    folder: Path,
    domain: Domain,
    budget: Budget,
    *,
    neighbours: Neighbours,
    seed: int = 0,
    source: CodedTable | None = None,
) -> RunResult:
    """A simulated run for all pairs."""
    folder.mkdir(exist_ok=True)
    ledger = Ledger.create(folder / f"{seed}", budget, neighbours)
    source = source or make_table(domain)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
    return Tiers(budget).run(curator, Workload.all_marginals(domain, 2))


def list_columns(result: RunResult) -> Iterator[tuple[str, bool, Measurement]]:
    """What was measured of each column alone, and whether it is every count."""
    for each in result.measurements:
        if len(each.clique) == 1:
            yield each.clique[0], isinstance(each.query, Identity), each


def test_a_column_is_counted_once_and_then_asked_how_its_values_differ(tmp_path: Path) -> None:
    """All but the number of records; a column of many values, where that saves little, is not."""
    result = run(tmp_path, MIXED, Budget(rho=0.05), neighbours=Neighbours.ADD_OR_REMOVE)
    found = {(name, counts): len(each.values) for name, counts, each in list_columns(result)}
    assert found == {
        ("flag", True): 2, ("flag", False): 1, ("few", True): 4, ("few", False): 3,
        ("many", True): 101,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("budget", "neighbours"),
    [
        (Budget(rho=0.05), Neighbours.REPLACE),
        (Budget(epsilon=1.0), Neighbours.ADD_OR_REMOVE),
    ],
)
def test_where_that_saves_nothing_columns_are_counted_again(
    budget: Budget, neighbours: Neighbours, tmp_path: Path
) -> None:
    """Where a record is replaced, all counts cost no more; Laplace noise has another norm."""
    result = run(tmp_path, MIXED, budget, neighbours=neighbours)
    assert all(counts for _, counts, _ in list_columns(result))


def test_the_number_of_records_is_measured_where_columns_rest_on_it(tmp_path: Path) -> None:
    """Shares of half the records follow from contrasts alone, whatever their number is."""
    rng = np.random.default_rng(0)
    even = CodedTable(FLAGS, {name: rng.permutation(10_000) % 2 for name in FLAGS})
    asked = list[bool]()
    for folder, source in (("uneven", make_table(FLAGS)), ("even", even)):
        result = run(
            tmp_path / folder, FLAGS, Budget(rho=0.001),
            neighbours=Neighbours.ADD_OR_REMOVE, source=source,
        )  # fmt: skip
        asked.append(any(each.clique == () for each in result.measurements))
    assert asked == [True, False]


def test_it_leaves_less_noise_on_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two values, one number for half of the price of two: beside counting them again.

    Where columns get nearly everything, it pays to measure the number of records as well.
    """
    whole = find_mean_error(tmp_path / "whole")
    monkeypatch.setattr(tier_run, "_TOTAL_PARTS", (0.0,))
    without_total = find_mean_error(tmp_path / "without")
    monkeypatch.setattr(TierState, "is_contrasted", lambda *_: False)
    counted = find_mean_error(tmp_path / "counted")
    assert whole < 0.97 * without_total
    assert whole < 0.93 * counted


def find_mean_error(folder: Path) -> float:
    """Over some seeds."""
    return float(np.mean([find_error(folder, seed) for seed in range(24)]))


def find_error(folder: Path, seed: int) -> float:
    """How far the shares of the flags are off, on average."""
    result = run(folder, FLAGS, Budget(rho=0.001), neighbours=Neighbours.ADD_OR_REMOVE, seed=seed)
    assert result.model is not None
    total = result.model.total
    exact = make_table(FLAGS).exact_counts([(name,) for name in FLAGS])
    shares = (result.project((name,)).values / total for name in FLAGS)
    apart = [
        abs(share[0] - truth.values[0] / 10_000) for share, truth in zip(shares, exact, strict=True)
    ]
    return float(np.mean(apart))
