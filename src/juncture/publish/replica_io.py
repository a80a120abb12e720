"""The replicas of a release as plain data for its file: the recipe, and their tables where kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from juncture.fit.replicas import ReplicaRecipe, Replicas
from juncture.model.model import Model
from juncture.publish.archive import Document
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement


def write_replicas(replicas: ReplicaRecipe | Replicas, arrays: list[Vector]) -> Document:
    """The recipe as data; tables that are kept are appended to the arrays."""
    recipe = replicas.recipe if isinstance(replicas, Replicas) else replicas
    entry: Document = {"seed": recipe.seed, "n_replicas": recipe.n_replicas, "tables": None}
    if isinstance(replicas, Replicas):
        entry["tables"] = len(arrays)
        kept = (replicas.fitted, replicas.counted)
        arrays += [rows.astype(np.float64).reshape(-1) for rows in kept]
    return entry


def read_replicas(
    entry: Document, model: Model, measurements: Sequence[Measurement], arrays: list[Vector]
) -> ReplicaRecipe | Replicas:
    """The replicas that `write_replicas` wrote."""
    recipe = ReplicaRecipe(entry["seed"], entry["n_replicas"])
    first = entry["tables"]
    if first is None:
        return recipe
    layout = Layout(model.domain, [each.clique for each in measurements])
    fitted, counted = (
        arrays[first + index].reshape(recipe.n_rows, layout.size).astype(np.float32)
        for index in range(2)
    )
    return Replicas(recipe, layout, model.total, fitted, counted)
