"""Counts of single columns by all that was measured of them, and models that follow them.

A fit that stops at the noise has each cell right as far as the noise tells. The sums of many cells,
which ranges of numbers ask for, are known better than that: by counts of the column itself, by a
tree of ranges, by the sums of tables that the column is in. All these are linear in the counts of
the column and have independent noise, so the best estimate is that of weighted least squares, with
no count below zero. A model is moved to it by iterative proportional fitting, which leaves what it
says of the column beside others as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from juncture.errors import ImpossibleModel
from juncture.fit.public_facts import PublicFacts
from juncture.model.model import Model
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Identity, Total
from juncture.tables.queries.products import Kron

Array = NDArray[np.float64]
# What the total weighs, which all counts must add up to: that of noise of a thousandth of a record.
_SURE = 1e3
# Steps of the least squares, for each count.
_MAX_STEPS = 30
# How far counts may be off in the end, as a share of themselves.
_TOLERANCE = 1e-4
# The least share of the records that a value keeps: none becomes impossible by noise.
_LEAST = 1e-7


def match_columns(model: Model, names: Iterable[str], measurements: Sequence[Measurement]) -> Model:
    """The nearest model in which columns have the counts that were measured of them."""
    tables = []
    for name in names:
        counts = estimate_counts(model.domain, name, measurements, model.total)
        shares = np.maximum(counts / model.total, _LEAST)
        tables.append(Factor(model.domain.project((name,)), model.total * shares / shares.sum()))
    facts = PublicFacts(model.domain, {}, tuple(tables))
    try:
        return facts.impose(model, _TOLERANCE)
    except ImpossibleModel:  # a rule leaves no room for them: the model stays as it was fitted
        return model


def estimate_counts(
    domain: Domain, name: str, measurements: Sequence[Measurement], total: float
) -> Array:
    """The counts of a column by least squares, from all that tells them; none below zero.

    >>> twice = [Measurement(("a",), y, stddev=1.0) for y in ([4.0, 7.0], [6.0, 3.0])]
    >>> estimate_counts(Domain({"a": 2}), "a", twice, total=10.0).round(3)
    array([5., 5.])
    """
    from scipy.optimize import nnls  # noqa: PLC0415  slow to import

    size = domain[name]
    rows, values = [np.full((1, size), _SURE)], [np.array([_SURE * total])]
    for each in measurements:
        told = _restrict(each, domain, name)
        if told is not None:
            matrix, answers, stddev = told
            rows.append(matrix / stddev)
            values.append(answers / stddev)
    matrix, goal = np.vstack(rows), np.concatenate(values)
    try:
        found, _ = nnls(matrix, goal, maxiter=_MAX_STEPS * size)
    except RuntimeError:  # the budget is spent by now: less exact counts are better than none
        found = np.maximum(np.linalg.lstsq(matrix, goal)[0], 0.0)
    return np.asarray(found)


def _restrict(each: Measurement, domain: Domain, name: str) -> tuple[Array, Array, float] | None:
    """What a measurement says of one column alone: a matrix, answers, and their noise.

    Answers about other columns are added up with the weights that give their total; None where
    there are none, and for queries that are no products.
    """
    blocks = _list_blocks(each) if name in each.clique else None
    if blocks is None:
        return None
    sizes = [domain[other] for other in each.clique]
    rows = [block.n_rows(size) for block, size in zip(blocks, sizes, strict=True)]
    table, squares = each.values.reshape(rows), 1.0
    for axis, other in reversed(list(enumerate(each.clique))):
        if other == name:
            continue
        weights = blocks[axis].total_weights(sizes[axis])
        if weights is None:
            return None
        table = np.tensordot(table, weights, axes=(axis, 0))
        squares *= float(weights @ weights)
    own = blocks[each.clique.index(name)].matrix(domain[name])
    return own, table, float(np.max(each.stddev)) * squares**0.5


def _list_blocks(each: Measurement) -> list[Block] | None:
    """The block of each column of a measurement's clique; None for queries that are no products."""
    match each.query:
        case Identity():
            return [Identity()] * len(each.clique)
        case Kron():
            return [each.query.blocks.get(name, Total()) for name in each.clique]
        case Block() if len(each.clique) == 1:
            return [each.query]
        case _:
            return None
