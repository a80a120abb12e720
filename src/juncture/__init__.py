"""Juncture joins noisy answers about a table into one distribution, a graphical model."""

from juncture.domain import Domain
from juncture.errors import (
    ImpossibleModel,
    InvalidInput,
    JunctureError,
    ModelTooLarge,
    UnknownAttribute,
)
from juncture.factor import Factor
from juncture.layout import Layout
from juncture.oracles.propagation import Propagation
from juncture.plan import Plan

__all__ = [
    "Domain",
    "Factor",
    "ImpossibleModel",
    "InvalidInput",
    "JunctureError",
    "Layout",
    "ModelTooLarge",
    "Plan",
    "Propagation",
    "UnknownAttribute",
]
