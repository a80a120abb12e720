"""Long work tells whoever watches how far it has come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from juncture._util.pace import Pace
from juncture.engine.particles import Particles
from juncture.fit.estimation import estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.mechanisms.registry import make_mechanism
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 3, "b": 2, "c": 2})


@pytest.mark.parametrize("solver", [None, EarlyStopping()])
def test_every_step_of_a_fit_is_told(solver: EarlyStopping | None) -> None:
    """The steps are counted one by one, up to the number that the statistics have."""
    seen: list[tuple[str, int, int]] = []
    given = [Measurement(("a", "b"), np.arange(6.0), stddev=1.0)]
    fit = estimate(
        DOMAIN, given, total=15.0, solver=solver, max_steps=700,
        watch=lambda *step: seen.append(step),
    )  # fmt: skip
    assert seen == [
        ("fitting the model", step, 700) for step in range(1, fit.summary.oracle_calls + 1)
    ]


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("hdmm", ["measuring", "fitting the model"]),
        ("mwem", ["choosing and measuring"]),
        ("privbayes", ["choosing parents", "fitting the model"]),
        ("dualquery", ["drawing queries", "fitting the model"]),
    ],
)
def test_mechanisms_tell_their_stages(name: str, stages: list[str], tmp_path: Path) -> None:
    """Every stage is told in order, never goes back, and never exceeds what was announced."""
    rng = np.random.default_rng(0)
    table = CodedTable(DOMAIN, {n: rng.integers(0, size, 200) for n, size in DOMAIN.items()})
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=0.5), Neighbours.REPLACE)
    seen: list[tuple[str, int, int]] = []
    make_mechanism(name, ledger.budget).run(
        SimulatedCurator(table, ledger, rng=rng),
        Workload.all_marginals(DOMAIN, 2),
        watch=lambda *told: seen.append(told),
    )
    assert list(dict.fromkeys(what for what, _, _ in seen)) == stages
    for stage in stages:
        done = [d for what, d, _ in seen if what == stage]
        assert done == sorted(done)
        assert all(d <= most for what, d, most in seen if what == stage)


def test_tiers_tell_their_fits(tmp_path: Path) -> None:
    """Columns, pairs and the last fit are told, and the steps of each fit, within what it takes."""
    rng = np.random.default_rng(0)
    table = CodedTable(DOMAIN, {n: rng.integers(0, size, 2000) for n, size in DOMAIN.items()})
    ledger = Ledger.create(tmp_path / "ledger", Budget(rho=0.5), Neighbours.ADD_OR_REMOVE)
    seen: list[tuple[str, int, int]] = []
    make_mechanism("tiers", ledger.budget).run(
        SimulatedCurator(table, ledger, rng=rng),
        Workload.all_marginals(DOMAIN, 2),
        watch=lambda *told: seen.append(told),
    )
    assert {what for what, _, _ in seen} == {"measuring in tiers", "fitting the model"}
    assert [done for what, done, _ in seen if what == "measuring in tiers"] == [1, 3, 4]
    assert seen[-1][:2] == ("measuring in tiers", 4)
    assert all(done <= most for _, done, most in seen)


def test_a_fit_with_records_says_how_long_it_takes() -> None:
    """What it announces is near what it takes, not the most that is allowed."""
    seen: list[tuple[str, int, int]] = []
    given = [Measurement(("a", "b"), np.arange(1.0, 7.0) * 100, stddev=5.0)]
    estimate(
        DOMAIN, given, total=2100.0, solver=EarlyStopping(), max_steps=2000,
        oracle=Particles(n_records=2_000), watch=lambda *step: seen.append(step),
    )  # fmt: skip
    assert all(done <= most < 400 for _, done, most in seen)


def test_work_that_begins_again_has_a_new_pace() -> None:
    """The time of an earlier fit does not count for the next one."""
    pace = Pace(started=0.0)
    assert pace.describe(90, 100, now=90.0).endswith("about 10 s to go")
    assert pace.describe(1, 100, now=91.0) == "1 of 100 done, 99 left"
    assert pace.describe(11, 100, now=92.0).endswith("about 9 s to go")
