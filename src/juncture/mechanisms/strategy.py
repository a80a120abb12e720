"""What to measure so that a workload has the smallest error: HDMM's strategies.

A strategy is a list of queries on cliques, each with its share of the budget. This module makes
those that measure a product for each clique and answer each task from its own clique;
`marginal_strategy` makes those that measure weighted marginals and answer each task from all of
them. Nothing here looks at data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from juncture.errors import InvalidInput
from juncture.mechanisms.attribute_strategy import (
    Array,
    AttributeStrategy,
    gram,
    optimise_attribute,
    optimise_gram,
)
from juncture.tables.domain import Clique, Domain
from juncture.tables.queries.blocks import Block, Identity
from juncture.tables.queries.products import Kron
from juncture.tables.workload import Task, Workload

_SWEEPS, _ENOUGH = 10, 1e-4


@dataclass(frozen=True, eq=False)
class StrategyQuery:
    """A query to measure, and its share of the budget."""

    clique: Clique
    query: Kron | None
    """None stands for every count."""
    share: float


class Shares(StrEnum):
    """How the budget is divided between the products of a union."""

    EQUAL = "equal"
    """The same share for each of the same weight, as in the paper."""
    TOTAL = "total"
    """The smallest total squared error: HDMM's own rule. Tasks of many cells get the most."""
    RELATIVE = "relative"
    """The smallest sum of relative absolute errors of all tasks: the paper's measure of error."""


class Strategy(Protocol):
    """What to measure for a workload, and what error to expect."""

    @property
    def queries(self) -> Sequence[StrategyQuery]:
        """What to measure."""

    def expected_squared_errors(self, stddevs: Sequence[float]) -> list[float]:
        """The squared error of each task by least squares, given the noise on each query."""


@dataclass(frozen=True, eq=False)
class ProductStrategy:
    """One product of blocks for some tasks on one clique."""

    clique: Clique
    tasks: tuple[int, ...]
    """The indices of the tasks in the workload."""
    blocks: tuple[Block, ...]
    errors: tuple[float, ...]
    """The squared error of each task, for noise of variance 1."""

    @property
    def error(self) -> float:
        """The squared error of all its tasks together."""
        return math.fsum(self.errors)

    def weigh_errors(self, weights: Sequence[float]) -> float:
        """The same, where each task of the workload counts by its weight."""
        pairs = zip(self.tasks, self.errors, strict=True)
        return math.fsum(weights[index] * error for index, error in pairs)

    @property
    def query(self) -> Kron | None:
        """What is measured; None stands for every count."""
        if all(isinstance(block, Identity) for block in self.blocks):
            return None
        return Kron(dict(zip(self.clique, self.blocks, strict=True)))


@dataclass(frozen=True, eq=False)
class UnionStrategy:
    """Products side by side, each answering its own tasks."""

    products: tuple[ProductStrategy, ...]
    shares: tuple[float, ...]

    @property
    def queries(self) -> list[StrategyQuery]:
        """One query for each product."""
        pairs = zip(self.products, self.shares, strict=True)
        return [StrategyQuery(product.clique, product.query, share) for product, share in pairs]

    def expected_squared_errors(self, stddevs: Sequence[float]) -> list[float]:
        """The squared error of each task by local least squares: that of its own product."""
        errors = {
            index: stddev**2 * error
            for product, stddev in zip(self.products, stddevs, strict=True)
            for index, error in zip(product.tasks, product.errors, strict=True)
        }
        return [errors[index] for index in sorted(errors)]


def optimise_union(
    workload: Workload, *, gaussian: bool, rule: Shares = Shares.EQUAL, restarts: int = 5
) -> UnionStrategy:
    """A product for each clique, or for each of its tasks where that is better."""
    if not workload.tasks:
        raise InvalidInput("`workload` must have a task; got none.")
    groups: dict[Clique, list[int]] = {}
    for index, task in enumerate(workload.tasks):
        groups.setdefault(workload.domain.canonical(task.clique), []).append(index)
    products = [
        product
        for indices in groups.values()
        for product in _choose_products(workload, indices, gaussian, restarts)
    ]
    errors = [product.weigh_errors(workload.weights) for product in products]
    sizes = [_relative_size(workload, product) for product in products]
    weights = [max(workload.weights[index] for index in product.tasks) for product in products]
    fractions = divide_budget(errors, rule, gaussian=gaussian, sizes=sizes, weights=weights)
    return UnionStrategy(tuple(products), tuple(fractions))


def _choose_products(
    workload: Workload, indices: list[int], gaussian: bool, restarts: int
) -> list[ProductStrategy]:
    """One product for all tasks of a clique, or one for each, whichever has the smaller error."""
    each = [
        optimise_product(workload, [index], gaussian=gaussian, restarts=restarts)
        for index in indices
    ]
    if len(indices) == 1:
        return each
    together = optimise_product(workload, indices, gaussian=gaussian, restarts=restarts)
    power = 2 if gaussian else 3
    apart = math.fsum(product.error ** (1 / power) for product in each) ** power
    return [together] if together.error <= apart else each


def optimise_product(
    workload: Workload, indices: Sequence[int], *, gaussian: bool, restarts: int = 5
) -> ProductStrategy:
    """Optimise one product for tasks of one clique, an attribute at a time with the others fixed.

    With c the error of a task on an attribute, the error of a task is the product of its c; so an
    attribute's best strategy is that for the sum of its Gram matrices, each weighted by the
    product of its task's other errors.
    """
    tasks = [workload.tasks[index] for index in indices]
    clique, domain = tasks[0].clique, workload.domain
    if len(tasks) == 1:
        strategies = [
            optimise_attribute(block, domain[name], gaussian=gaussian, restarts=restarts)
            for name, block in zip(clique, tasks[0].blocks, strict=True)
        ]
        error = math.prod(chosen.error for chosen in strategies)
        blocks = tuple(chosen.block for chosen in strategies)
        return ProductStrategy(clique, tuple(indices), blocks, (error,))
    grams = [[gram(block, domain[name]) for name, block in _order_blocks(t, clique)] for t in tasks]
    # Two starts: the errors of plain counts, and those that each task would have alone.
    identity_errors = [[float(np.trace(each)) for each in row] for row in grams]
    alone = [
        [optimise_gram(each, gaussian=gaussian, restarts=restarts).error for each in row]
        for row in grams
    ]
    ends = [
        _descend(clique, tuple(indices), domain, grams, np.array(start), gaussian, restarts)
        for start in (identity_errors, alone)
    ]
    return min(ends, key=lambda each: each.error)


def _order_blocks(task: Task, clique: Clique) -> list[tuple[str, Block]]:
    blocks = dict(zip(task.clique, task.blocks, strict=True))
    return [(name, blocks[name]) for name in clique]


def _descend(
    clique: Clique,
    indices: tuple[int, ...],
    domain: Domain,
    grams: list[list[Array]],
    errors: Array,
    gaussian: bool,
    restarts: int,
) -> ProductStrategy:
    chosen = [AttributeStrategy(Identity(), float(domain[name])) for name in clique]
    total = math.inf
    for _ in range(_SWEEPS):
        for axis in range(len(clique)):
            weights = errors.prod(axis=1) / errors[:, axis]
            weights = weights / weights.max()
            target = sum(w * row[axis] for w, row in zip(weights, grams, strict=True))
            better = optimise_gram(np.asarray(target), gaussian=gaussian, restarts=restarts)
            matrix = better.block.matrix(domain[clique[axis]])
            inverse = np.linalg.pinv(matrix.T @ matrix)
            chosen[axis] = better
            errors[:, axis] = [float((inverse * row[axis]).sum()) for row in grams]
        before, total = total, float(errors.prod(axis=1).sum())
        if total > before * (1.0 - _ENOUGH):
            break
    blocks = tuple(each.block for each in chosen)
    return ProductStrategy(clique, indices, blocks, tuple(errors.prod(axis=1).tolist()))


def divide_budget(
    errors: Sequence[float], rule: Shares, *, gaussian: bool, sizes: Sequence[float] = (),
    weights: Sequence[float] = (),
) -> list[float]:  # fmt: skip
    """How to divide a budget between strategies of these errors, which hold their weights.

    With Laplace noise and epsilon times a share for each, squared errors are proportional to one
    over the squared share: for the smallest sum, shares are proportional to the cube root of the
    errors. With Gaussian noise and rho times a share, they are proportional to one over the share,
    and shares to the square root. Absolute errors are proportional to the root of squared ones:
    `sizes` says how a squared error becomes a relative absolute one (see `_relative_size`), and the
    same argument gives the powers 1/4 and 1/3 of errors times sizes.
    """
    squared, absolute = (1 / 2, 1 / 3) if gaussian else (1 / 3, 1 / 4)
    if rule is Shares.EQUAL:
        needs = [weight**squared for weight in weights or [1.0] * len(errors)]
    elif rule is Shares.TOTAL:
        needs = [error**squared for error in errors]
    else:
        needs = [(error * size) ** absolute for error, size in zip(errors, sizes, strict=True)]
    return [need / math.fsum(needs) for need in needs]


def _relative_size(workload: Workload, product: ProductStrategy) -> float:
    """The factor that turns a product's squared error into a squared relative absolute one.

    A task's absolute error is about the root of its number of queries times its squared error. It
    is relative to the sum of its answers, which is about the number of records times the mean of
    its columns' sums. Nothing is read off the data: the number of records is common to all tasks,
    so it is left out.
    """
    ratios = []
    for index in product.tasks:
        task = workload.tasks[index]
        sizes = [workload.domain[name] for name in task.clique]
        matrices = [b.matrix(size) for b, size in zip(task.blocks, sizes, strict=True)]
        queries = math.prod(len(matrix) for matrix in matrices)
        ratios.append(queries / math.prod(float(m.sum(axis=0).mean()) for m in matrices) ** 2)
    return math.fsum(ratios) / len(ratios)
