"""Long work tells whoever watches how far it has come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
