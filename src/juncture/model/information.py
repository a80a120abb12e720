"""Entropy, mutual information and log-probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout, Vector


def entropy(masses: Vector) -> float:
    """The entropy of a table of masses, in nats."""
    shares = masses[masses > 0] / masses.sum()
    return -float((shares * np.log(shares)).sum())


def mutual_information(joint: Factor, left: Iterable[str], right: Iterable[str]) -> float:
    """The mutual information between two sets of attributes of a table, in nats; at least zero."""
    parts = entropy(joint.project(left).values) + entropy(joint.project(right).values)
    return max(0.0, parts - entropy(joint.values))


def log_probability(
    layout: Layout,
    potentials: Vector,
    log_partition: float,
    records: Mapping[str, ArrayLike],
) -> Vector:
    """The logarithm of each record's probability: its summed potentials, normalised."""
    columns = check_columns(layout.domain, records, layout.domain)
    length = len(next(iter(columns.values()))) if columns else 1
    result = np.full(length, -log_partition)
    for clique in layout.cliques:
        cells = tuple(columns[name] for name in clique)
        result += layout.view(potentials, clique)[cells]
    return result


def check_columns(
    domain: Domain, records: Mapping[str, ArrayLike], needed: Iterable[str]
) -> dict[str, NDArray[np.int64]]:
    """The columns as arrays of codes, all of one length and within their sizes, or an error."""
    columns = {}
    for name in needed:
        if name not in records:
            raise InvalidInput(
                f"`records` must have a column for every attribute; got none for {name!r}."
            )
        column = np.atleast_1d(np.asarray(records[name]))
        if column.ndim != 1 or not np.issubdtype(column.dtype, np.integer):
            raise InvalidInput(
                f"`records` must be columns of integer codes; got {column.dtype} of shape "
                f"{column.shape} for {name!r}. Encode the values first."
            )
        if column.size and not 0 <= column.min() <= column.max() < domain[name]:
            raise InvalidInput(
                f"`records` must have codes from 0 to {domain[name] - 1} for {name!r}; got "
                f"{column.min()} to {column.max()}. Check how the column was encoded."
            )
        columns[name] = column.astype(np.int64)
    if len({len(column) for column in columns.values()}) > 1:
        lengths = {name: len(column) for name, column in columns.items()}
        raise InvalidInput(f"`records` must have columns of one length; got {lengths}.")
    return columns
