"""The replicas of a release as plain data for its file: the recipe, and their tables where kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from juncture.fit.replicas import N_PARENTS, ReplicaRecipe, Replicas
from juncture.model.model import Model
from juncture.publish.archive import Document
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement

_TABLES = ("fitted", "counted", "parents", "child_fitted", "child_counted")


def write_replicas(replicas: ReplicaRecipe | Replicas, arrays: list[Vector]) -> Document:
    """The recipe as data; tables that are kept are appended to the arrays."""
    recipe = replicas.recipe if isinstance(replicas, Replicas) else replicas
    entry: Document = {
        "seed": recipe.seed,
        "n_replicas": recipe.n_replicas,
        "n_children": recipe.n_children,
        "tables": None,
    }
    if isinstance(replicas, Replicas):
        entry["tables"] = len(arrays)
        arrays += [getattr(replicas, name).astype(np.float64).reshape(-1) for name in _TABLES]
    return entry


def read_replicas(
    entry: Document, model: Model, measurements: Sequence[Measurement], arrays: list[Vector]
) -> ReplicaRecipe | Replicas:
    """The replicas that `write_replicas` wrote."""
    recipe = ReplicaRecipe(entry["seed"], entry["n_replicas"], entry["n_children"])
    first = entry["tables"]
    if first is None:
        return recipe
    layout = Layout(model.domain, [each.clique for each in measurements])
    lead = {"fitted": (recipe.n_replicas,), "counted": (recipe.n_replicas,)}
    lead["parents"] = (N_PARENTS,)
    children = (N_PARENTS, recipe.n_children)
    shapes: dict[str, tuple[int, ...]] = {
        **lead,
        "child_fitted": children,
        "child_counted": children,
    }
    tables = {
        name: arrays[first + index].reshape(*shapes[name], layout.size).astype(np.float32)
        for index, name in enumerate(_TABLES)
    }
    return Replicas(recipe, layout, model.total, **tables)
