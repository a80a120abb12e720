"""Juncture joins noisy answers about a table into one distribution, a graphical model.

Names are imported when they are first used, so that a program which needs one of them, or only
says how it is called, does not wait for all.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
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

_HOMES = {
    "Accelerated": "solvers.accelerated",
    "AllRanges": "block",
    "Boolean": "schema",
    "Buckets": "block",
    "BudgetExceeded": "errors",
    "Categorical": "schema",
    "Codebook": "codebook",
    "Coding": "codebook",
    "Date": "schema",
    "Direct": "solvers.direct",
    "Domain": "domain",
    "DualAveraging": "solvers.dual_averaging",
    "Estimate": "estimation",
    "Factor": "factor",
    "Identity": "block",
    "ImpossibleModel": "errors",
    "Integer": "schema",
    "InteriorGradient": "solvers.interior_gradient",
    "InvalidInput": "errors",
    "JunctureError": "errors",
    "Kron": "query",
    "Layout": "layout",
    "Matrix": "block",
    "Mean": "block",
    "Measurement": "measurement",
    "MirrorDescent": "solvers.mirror_descent",
    "Model": "model",
    "ModelTooLarge": "errors",
    "Moments": "block",
    "NotPublic": "errors",
    "Number": "schema",
    "Plan": "plan",
    "Point": "block",
    "Prefix": "block",
    "Propagation": "oracles.propagation",
    "Proximal": "solvers.proximal",
    "Range": "block",
    "Relay": "solvers.relay",
    "Release": "release",
    "Scaled": "query",
    "Schema": "schema",
    "Smoothed": "solvers.smoothed",
    "Stack": "query",
    "Status": "estimation",
    "StopAtNoise": "solvers.stop_at_noise",
    "Subset": "block",
    "Total": "block",
    "UnknownAttribute": "errors",
    "UnreadableFile": "errors",
    "estimate": "estimation",
    "load": "release",
    "read_schema": "schema_text",
}

if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> object:
        """Import a public name from the module that it lives in, and keep it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """Everything public, also what nobody has used yet."""
        return sorted({*globals(), *__all__})
