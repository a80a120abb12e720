"""Juncture joins noisy answers about a table into one distribution, a graphical model."""

from juncture.block import (
    AllRanges,
    Buckets,
    Identity,
    Matrix,
    Mean,
    Moments,
    Point,
    Prefix,
    Range,
    Subset,
    Total,
)
from juncture.domain import Domain
from juncture.errors import (
    ImpossibleModel,
    InvalidInput,
    JunctureError,
    ModelTooLarge,
    UnknownAttribute,
)
from juncture.estimation import Estimate, Status, estimate
from juncture.factor import Factor
from juncture.layout import Layout
from juncture.measurement import Measurement
from juncture.model import Model
from juncture.oracles.propagation import Propagation
from juncture.plan import Plan
from juncture.query import Kron, Scaled, Stack
from juncture.solvers.stop_at_noise import StopAtNoise

__all__ = [
    "AllRanges",
    "Buckets",
    "Domain",
    "Estimate",
    "Factor",
    "Identity",
    "ImpossibleModel",
    "InvalidInput",
    "JunctureError",
    "Kron",
    "Layout",
    "Matrix",
    "Mean",
    "Measurement",
    "Model",
    "ModelTooLarge",
    "Moments",
    "Plan",
    "Point",
    "Prefix",
    "Propagation",
    "Range",
    "Scaled",
    "Stack",
    "Status",
    "StopAtNoise",
    "Subset",
    "Total",
    "UnknownAttribute",
    "estimate",
]
