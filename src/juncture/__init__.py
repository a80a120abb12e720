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
from juncture.codebook import Codebook, Coding
from juncture.domain import Domain
from juncture.errors import (
    BudgetExceeded,
    ImpossibleModel,
    InvalidInput,
    JunctureError,
    ModelTooLarge,
    NotPublic,
    UnknownAttribute,
    UnreadableFile,
)
from juncture.estimation import Estimate, Status, estimate
from juncture.factor import Factor
from juncture.layout import Layout
from juncture.measurement import Measurement
from juncture.model import Model
from juncture.oracles.propagation import Propagation
from juncture.plan import Plan
from juncture.query import Kron, Scaled, Stack
from juncture.release import Release, load
from juncture.schema import Boolean, Categorical, Date, Integer, Number, Schema
from juncture.schema_text import read_schema
from juncture.solvers.accelerated import Accelerated
from juncture.solvers.direct import Direct
from juncture.solvers.dual_averaging import DualAveraging
from juncture.solvers.interior_gradient import InteriorGradient
from juncture.solvers.mirror_descent import MirrorDescent
from juncture.solvers.proximal import Proximal
from juncture.solvers.relay import Relay
from juncture.solvers.smoothed import Smoothed
from juncture.solvers.stop_at_noise import StopAtNoise

__all__ = [
    "Accelerated",
    "AllRanges",
    "Boolean",
    "Buckets",
    "BudgetExceeded",
    "Categorical",
    "Codebook",
    "Coding",
    "Date",
    "Direct",
    "Domain",
    "DualAveraging",
    "Estimate",
    "Factor",
    "Identity",
    "ImpossibleModel",
    "Integer",
    "InteriorGradient",
    "InvalidInput",
    "JunctureError",
    "Kron",
    "Layout",
    "Matrix",
    "Mean",
    "Measurement",
    "MirrorDescent",
    "Model",
    "ModelTooLarge",
    "Moments",
    "NotPublic",
    "Number",
    "Plan",
    "Point",
    "Prefix",
    "Propagation",
    "Proximal",
    "Range",
    "Relay",
    "Release",
    "Scaled",
    "Schema",
    "Smoothed",
    "Stack",
    "Status",
    "StopAtNoise",
    "Subset",
    "Total",
    "UnknownAttribute",
    "UnreadableFile",
    "estimate",
    "load",
    "read_schema",
]
