"""Private values: the threshold is safe by OpenDP's own map, and audits catch broken ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
import pytest

from audit import lower_bound
from juncture.errors import InvalidInput
from juncture.privacy.accounting import Cost, Neighbours, compose_epsilon, epsilon_of_rho
from juncture.privacy.budget import Budget
from juncture.privacy.events import Event
from juncture.privacy.guarantee import Guarantee
from juncture.privacy.ledger import Ledger
from juncture.privacy.price import ZCDP, Pure
from juncture.privacy.threshold import Threshold
from juncture.private.curator import Curator
from juncture.private.simulated import SeededSampler, SimulatedCurator
from juncture.private.sources.read import read_table
from juncture.tables.columns import OpenCategorical
from juncture.tables.noise import Noise
from juncture.tables.person import Person
from juncture.tables.schema import Schema

ADD, REPLACE = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE
SCHEMA = Schema({"city": OpenCategorical()})


def values(counts: dict[str, int]) -> Any:
    """A table with so many records of each value."""
    return read_table(pa.table({"city": [v for v, n in counts.items() for _ in range(n)]}), SCHEMA)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("rho", [0.5, 0.01, 1e-4])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_opendp_states_no_more(rho: float, delta: float, rows: int) -> None:
    """OpenDP's own map looks at counts from 1 on: for it, the threshold is lower by the others."""
    neighbours = ADD.of(Person("who", max_rows=rows)) if rows > 1 else ADD
    found = Threshold.of(ZCDP(rho), delta, neighbours)
    mechanism: Any = dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i32")),
        dp.l02inf_distance(dp.absolute_distance(T="i32")),
        scale=found.scale, threshold=found.value - (found.least - 1),
    )  # fmt: skip
    stated_rho, stated_delta = mechanism.map((rows, rows, rows))
    assert stated_rho <= rho * (1 + 1e-9)
    assert stated_delta <= delta


def test_the_least_count_is_small_beside_the_threshold() -> None:
    """What pruning costs in the threshold is a few per cent of it."""
    for rho in (0.5, 1e-2, 1e-4, 1e-6):
        found = Threshold.of(ZCDP(rho), 1e-7, ADD)
        assert 1 <= found.least <= 0.06 * found.value + 1


def test_deltas_add_up() -> None:
    """What events take of a delta is not there for the conversion of their rhos."""
    some = Cost(epsilon=float("inf"), rho=0.01, delta=4e-7)
    assert compose_epsilon([some, some], 1e-6) == pytest.approx(epsilon_of_rho(0.02, 2e-7))
    assert compose_epsilon([some, some, some], 1e-6) == float("inf")
    assert Budget(rho=1.0).compose([some]) == float("inf")
    assert not Budget(epsilon=5.0).allows([Cost(epsilon=1.0, rho=0.5, delta=1e-9)])


def test_the_ledger_keeps_deltas(tmp_path: Path) -> None:
    """In its lines, its totals and the guarantee; for a group of records both figures grow."""
    budget = Budget(epsilon=1.0, delta=1e-6)
    ledger = Ledger.create(tmp_path / "x.ledger", budget)
    cost = Cost(epsilon=float("inf"), rho=0.001, delta=1e-7)
    ledger.spend(Event("values of city", "a threshold", cost, {}))
    again = Ledger(tmp_path / "x.ledger")
    assert [entry.cost for entry in again.events] == [cost]
    assert again.spent == pytest.approx(epsilon_of_rho(0.001, 9e-7))
    guarantee = Guarantee.from_json(Guarantee(tuple(again.events), ADD, budget).to_json())
    assert guarantee.costs == (cost,)
    one, two = guarantee.state(100.0), guarantee.state(100.0, group_size=2)
    assert two.epsilon == pytest.approx(2 * one.epsilon)
    assert two.delta > 2 * one.delta


def test_values_become_known_above_the_threshold_only(tmp_path: Path) -> None:
    """With real noise; the price is paid, and another threshold than its own is refused."""
    budget = Budget(epsilon=2.0, delta=1e-6)
    source = values({"Basel": 900, "Zürich": 800, "rare": 3, **{f"name {i}": 1 for i in range(99)}})
    curator = Curator(source, Ledger.create(tmp_path / "x.ledger", budget))
    threshold = Threshold.of(ZCDP(0.02), 1e-7, ADD)
    found, counts = curator.find_values("city", threshold)
    assert found == ["Basel", "Zürich"]
    np.testing.assert_allclose(counts, [900, 800], atol=6 * threshold.scale)
    assert curator.events[0].cost == threshold.cost
    with pytest.raises(InvalidInput, match="`threshold` must be that of its price"):
        curator.find_values("city", replace(threshold, value=1))
    with pytest.raises(InvalidInput, match="must be a rho of zCDP"):
        Threshold.of(Pure(1.0), 1e-7, ADD)
    assert len(curator.events) == 1


class Broken(SeededSampler):
    """Half the noise."""

    def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
        """See `Sampler.add_noise`."""
        return super().add_noise(values, noise, 0.5 * scale)


def outcomes(
    source: Any, sampler: type[SeededSampler], threshold: Threshold, folder: Path, seed: int
) -> np.ndarray:
    """The noisy count of one value in many runs; 0 where it did not become known."""
    ledger = Ledger.create(folder / f"{sampler.__name__}{seed}.ledger", Budget(rho=1.0))
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(seed))
    curator._sampler = sampler(np.random.default_rng(seed))
    groups = list(source.exact_groups("city", threshold.least))  # counted once, for all runs
    curator._source.exact_groups = lambda name, least: iter(groups)  # type: ignore[method-assign]  # noqa: ARG005
    curator._access = lambda events, look: look()  # type: ignore[method-assign]  # noqa: ARG005
    found = [dict(zip(*curator.find_values("city", threshold), strict=True)) for _ in range(4000)]
    return np.array([float(each.get("x", 0)) for each in found])


@pytest.mark.slow
def test_the_audit_of_counts_catches_half_the_noise(tmp_path: Path) -> None:
    """A value far above the threshold, of which neighbours have one record more."""
    threshold = Threshold.of(ZCDP(0.5), 1e-3, ADD)
    epsilon = epsilon_of_rho(0.5, 1e-3)

    def audit(sampler: type[SeededSampler]) -> float:
        sides = [
            outcomes(values({"x": 40 + more}), sampler, threshold, tmp_path, more)
            for more in (0, 1)
        ]
        return lower_bound(*sides)

    honest = audit(SeededSampler)
    assert honest <= epsilon
    # Far apart events are rare under Gaussian noise; an audit of 4,000 runs sees this much less.
    assert audit(Broken) > 0.55 * epsilon
    assert honest < 0.55 * epsilon


@pytest.mark.slow
def test_the_audit_of_the_threshold_catches_half_of_it(tmp_path: Path) -> None:
    """A value of which one table has as many as are looked at, and its neighbour one fewer."""
    threshold = Threshold.of(ZCDP(0.5), 1e-2, ADD)
    source, other = values({"x": threshold.least}), values({"y": threshold.least})
    known = (outcomes(source, SeededSampler, threshold, tmp_path, 0) > 0).mean()
    assert known <= 2.0 * threshold.delta
    assert not outcomes(other, SeededSampler, threshold, tmp_path, 1).any()

    class Low(SeededSampler):
        """As if the threshold were half as far away."""

        def add_noise(self, values: Any, noise: Noise, scale: float) -> Any:
            """See `Sampler.add_noise`."""
            return super().add_noise(
                values + (threshold.value - threshold.least) // 2, noise, scale
            )

    assert (outcomes(source, Low, threshold, tmp_path, 2) > 0).mean() > 2.0 * threshold.delta
