"""The number of records, estimated from the measurements themselves.

A measurement determines the total if some weights on its answers add up to the sum of all cells,
that is, if the all-ones row lies in the row space of its query. The weights that do so with
the least noise give an unbiased estimate; those of several measurements are combined by inverse
variance. This is post-processing: it spends no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables import spectrum
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement


class TotalEstimate(NamedTuple):
    """An unbiased estimate and the variance of its noise."""

    total: float
    variance: float


def estimate_total(domain: Domain, measurements: Iterable[Measurement]) -> TotalEstimate:
    """Estimate the number of records: the best unbiased combination of all measurements."""
    each = (estimate_total_from(domain, measurement) for measurement in measurements)
    estimates = [estimate for estimate in each if estimate is not None]
    if not estimates:
        raise InvalidInput(
            "`total` must be given, because no measurement determines it: none of the queries adds "
            "up to the sum of all cells; got None. Give it, or measure a marginal or a total."
        )
    precision = math.fsum(1.0 / estimate.variance for estimate in estimates)
    pull = math.fsum(estimate.total / estimate.variance for estimate in estimates)
    return TotalEstimate(pull / precision, 1.0 / precision)


def estimate_total_from(domain: Domain, measurement: Measurement) -> TotalEstimate | None:
    """The total according to one measurement, or None if it does not determine it."""
    operator = measurement.operator(domain)
    stddev = np.broadcast_to(measurement.stddev, measurement.values.shape)
    if measurement.stddev.ndim == 0:
        weights = operator.total_weights
    else:
        scaled = spectrum.total_weights(
            lambda table: operator.apply_flat(table) / stddev,
            lambda answers: operator.adjoint_flat(answers / stddev),
            operator.n_rows,
            math.prod(operator.shape),
        )
        weights = None if scaled is None else scaled / stddev
    if weights is None:
        return None
    noise = weights * stddev
    return TotalEstimate(float(weights @ measurement.values), float(noise @ noise))
