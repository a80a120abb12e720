"""Juncture joins noisy answers about a table into one distribution, a graphical model.

Names are imported when they are first used, so that a program which needs one of them, or only
says how it is called, does not wait for all.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from juncture.engine.plan import Plan
    from juncture.engine.propagation import Propagation
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
    from juncture.fit.estimation import Estimate, estimate
    from juncture.fit.solvers.accelerated import Accelerated
    from juncture.fit.solvers.dual_averaging import DualAveraging
    from juncture.fit.solvers.early_stopping import EarlyStopping
    from juncture.fit.solvers.interior_gradient import InteriorGradient
    from juncture.fit.solvers.lbfgs import LBFGS
    from juncture.fit.solvers.mirror_descent import MirrorDescent
    from juncture.fit.solvers.proximal import Proximal
    from juncture.fit.solvers.sequential import Sequential
    from juncture.fit.solvers.smoothed import Smoothed
    from juncture.fit.summary import FitSummary, Status
    from juncture.model.model import Model
    from juncture.publish.release import Release, load
    from juncture.tables.codebook import Codebook, Coding
    from juncture.tables.columns import Boolean, Categorical, Date, Integer, Number
    from juncture.tables.domain import Domain
    from juncture.tables.factor import Factor
    from juncture.tables.layout import Layout
    from juncture.tables.measurement import Measurement
    from juncture.tables.queries.blocks import (
        AllRanges,
        Buckets,
        Identity,
        Matrix,
        Moments,
        Point,
        Prefix,
        Range,
        Subset,
        Total,
        WeightedSum,
    )
    from juncture.tables.queries.products import Kron, Scaled, Stack
    from juncture.tables.schema import Schema
    from juncture.tables.schema_toml import read_schema

__all__ = [
    "LBFGS",
    "Accelerated",
    "AllRanges",
    "Boolean",
    "Buckets",
    "BudgetExceeded",
    "Categorical",
    "Codebook",
    "Coding",
    "Date",
    "Domain",
    "DualAveraging",
    "EarlyStopping",
    "Estimate",
    "Factor",
    "FitSummary",
    "Identity",
    "ImpossibleModel",
    "Integer",
    "InteriorGradient",
    "InvalidInput",
    "JunctureError",
    "Kron",
    "Layout",
    "Matrix",
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
    "Release",
    "Scaled",
    "Schema",
    "Sequential",
    "Smoothed",
    "Stack",
    "Status",
    "Subset",
    "Total",
    "UnknownAttribute",
    "UnreadableFile",
    "WeightedSum",
    "estimate",
    "load",
    "read_schema",
]

_HOMES = {
    "Accelerated": "fit.solvers.accelerated",
    "AllRanges": "tables.queries.blocks",
    "Boolean": "tables.columns",
    "Buckets": "tables.queries.blocks",
    "BudgetExceeded": "errors",
    "Categorical": "tables.columns",
    "Codebook": "tables.codebook",
    "Coding": "tables.codebook",
    "Date": "tables.columns",
    "LBFGS": "fit.solvers.lbfgs",
    "Domain": "tables.domain",
    "DualAveraging": "fit.solvers.dual_averaging",
    "Estimate": "fit.estimation",
    "Factor": "tables.factor",
    "FitSummary": "fit.summary",
    "Identity": "tables.queries.blocks",
    "ImpossibleModel": "errors",
    "Integer": "tables.columns",
    "InteriorGradient": "fit.solvers.interior_gradient",
    "InvalidInput": "errors",
    "JunctureError": "errors",
    "Kron": "tables.queries.products",
    "Layout": "tables.layout",
    "Matrix": "tables.queries.blocks",
    "WeightedSum": "tables.queries.blocks",
    "Measurement": "tables.measurement",
    "MirrorDescent": "fit.solvers.mirror_descent",
    "Model": "model.model",
    "ModelTooLarge": "errors",
    "Moments": "tables.queries.blocks",
    "NotPublic": "errors",
    "Number": "tables.columns",
    "Plan": "engine.plan",
    "Point": "tables.queries.blocks",
    "Prefix": "tables.queries.blocks",
    "Propagation": "engine.propagation",
    "Proximal": "fit.solvers.proximal",
    "Range": "tables.queries.blocks",
    "Sequential": "fit.solvers.sequential",
    "Release": "publish.release",
    "Scaled": "tables.queries.products",
    "Schema": "tables.schema",
    "Smoothed": "fit.solvers.smoothed",
    "Stack": "tables.queries.products",
    "Status": "fit.summary",
    "EarlyStopping": "fit.solvers.early_stopping",
    "Subset": "tables.queries.blocks",
    "Total": "tables.queries.blocks",
    "UnknownAttribute": "errors",
    "UnreadableFile": "errors",
    "estimate": "fit.estimation",
    "load": "publish.release",
    "read_schema": "tables.schema_toml",
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
