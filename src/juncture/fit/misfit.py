"""Measurements that contradict their own noise scale.

If a measurement's noise is what it says, its squared residuals over their variances add up to
about its number of rows; the fit only makes them smaller. Far more than that means that the
stated noise is too small, that the answers belong to another clique or order, or that other
measurements, or a wrong total, force the model away from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from juncture.model.model import Model
from juncture.tables.measurement import Measurement


class Misfit(NamedTuple):
    """A measurement whose residuals are too large for its noise."""

    measurement: Measurement
    ratio: float
    """The mean squared residual over the variance: one or less for a good fit."""
    deviations: float
    """How many standard deviations the sum of squared residuals lies above its mean."""


def find_misfits(
    model: Model, measurements: Iterable[Measurement], *, deviations: float = 6.0
) -> list[Misfit]:
    """The measurements whose residuals lie this many standard deviations above their mean."""
    results = (measure_misfit(model, measurement) for measurement in measurements)
    return [misfit for misfit in results if misfit.deviations > deviations]


def measure_misfit(model: Model, measurement: Measurement) -> Misfit:
    """How one measurement's residuals compare with its noise."""
    answers = measurement.operator(model.domain).apply(model.project(measurement.clique).values)
    errors = (answers - measurement.values) / measurement.stddev
    total, rows = float(errors @ errors), measurement.n_rows
    # A squared residual of variance one has the variance kurtosis - 1.
    spread = math.sqrt((measurement.noise.kurtosis - 1.0) * rows)
    return Misfit(measurement, total / rows, (total - rows) / spread)
