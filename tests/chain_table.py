"""A table that several tests of mechanisms share: a chain of four columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.source import CodedTable
from juncture.tables.domain import Domain
from juncture.tables.workload import Workload

DOMAIN = Domain({"a": 4, "b": 3, "c": 2, "d": 5})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)
ONE = Budget(epsilon=1.0)


def table(n: int = 3000) -> CodedTable:
    """Records of a chain: each attribute depends on the one before."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 4, n)]
    for size in DOMAIN.shape[1:]:
        fresh = rng.integers(0, size, n)
        columns.append(np.where(rng.random(n) < 0.6, columns[-1] % size, fresh))
    return CodedTable(DOMAIN, dict(zip(DOMAIN, columns, strict=True)))


def simulate(mechanism: Any, source: CodedTable, path: Path, workload: Workload) -> Any:
    """A run on replaced records, with the mechanism's own budget."""
    ledger = Ledger.create(path, mechanism.budget, Neighbours.REPLACE)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    return mechanism.run(curator, workload)
