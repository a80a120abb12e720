"""The paper's Algorithm 2 as its 2019 code ran it: a fixed number of steps, and averaged marginals.

Its constant is the largest eigenvalue over the tables of maximal cliques, which is large where
cliques are much larger than what was measured on them; so on Adult 10,000 steps do not converge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from paper_data import DataSet

from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.fit.loss import FitLoss
from juncture.fit.solvers.dual_averaging import clique_constant
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement


def averaged_marginals(
    data: DataSet, measured: list[Measurement], steps: int
) -> Callable[[Clique], Factor]:
    """What the average of all steps says of each measured clique."""
    oracle = Propagation(Plan.build(data.domain, [m.clique for m in measured]))
    loss, total = FitLoss(oracle.layout, measured, "l2"), float(data.n_records)
    constant = clique_constant(loss, oracle.plan)
    own = oracle.marginals(oracle.layout.zeros(), total).marginals.copy()
    average, slopes = own.copy(), np.zeros_like(own)
    for step in range(1, steps + 1):
        share = 2.0 / (step + 1)
        _, slope = loss.value_and_gradient((1.0 - share) * average + share * own)
        slopes = (1.0 - share) * slopes + share * slope
        scale = step * (step + 1) / (4.0 * constant * total)
        own = oracle.marginals(-scale * slopes, total).marginals.copy()
        average = (1.0 - share) * average + share * own
    return lambda clique: oracle.layout.factor(average, clique)
