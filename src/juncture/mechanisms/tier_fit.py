"""How a run of `Tiers` fits a model to what was measured so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from juncture._util.watch import Watch, ignore_progress
from juncture.engine.oracle import OracleFactory
from juncture.engine.oracle_choice import choose_oracle
from juncture.fit.estimation import Estimate, estimate
from juncture.fit.solvers.early_stopping import EarlyStopping
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement

FIRST_RECORDS = 50_000
"""The records of a first fit."""
# All records together have at most so many values.
_MAX_VALUES = 30_000_000


@dataclass(frozen=True)
class TierFitter:
    """How a run fits a model to what was measured."""

    oracle: OracleFactory | str
    max_tree_cells: int
    max_steps: int
    constraints: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    """For some cliques, a table that is true where the schema's rules leave no record."""

    def fit(
        self, domain: Domain, measurements: Sequence[Measurement], total: float, n_records: int,
        watch: Watch = ignore_progress,
    ) -> Estimate:  # fmt: skip
        """Fit everything so far, with about so many records where it takes records."""
        cliques = [*(each.clique for each in measurements), *self.constraints]
        limit = max(FIRST_RECORDS, _MAX_VALUES // len(domain))
        choice = choose_oracle(
            self.oracle, domain, cliques, max_tree_cells=self.max_tree_cells
        ).with_records(min(n_records, limit))
        return estimate(
            domain, measurements, total=total, plan=choice.plan, oracle=choice.factory,
            solver=EarlyStopping(), max_steps=self.max_steps, constraints=self.constraints,
            watch=watch,
        )  # fmt: skip
