"""HDMM's third kind of strategy: every marginal below the workload's cliques, with weights.

The Gram matrix of weighted marginals has one eigenspace for each set A of attributes: tables that
vary with all of A and add up to zero along each of them. With n_i the size of attribute i, the
space of A has dimension prod over A of (n_i - 1), and the marginal B contributes its weight divided
by the size of B's table to every A within B (all divided by the size of the full table, so that
nothing overflows). The expected squared error is then the sum, over A, of dimension times the
workload's eigenvalue over the strategy's. Only subsets of the workload's cliques count, so neither
the full table nor the exponentially many sets of all attributes are formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from juncture.errors import InvalidInput
from juncture.mechanisms.attribute_strategy import Array, gram
from juncture.mechanisms.strategy import StrategyQuery
from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Task, Workload

# Marginals with smaller shares are left out, if the others are enough.
_MIN_SHARE = 1e-3
# Avoids division by zero for what is not measured at all.
_MIN_EIGENVALUE = 1e-120


@dataclass(frozen=True, eq=False)
class MarginalStrategy:
    """Marginals with shares of the budget, and the workload that they serve."""

    workload: Workload
    queries: tuple[StrategyQuery, ...]

    def expected_squared_errors(self, stddevs: Sequence[float]) -> list[float]:
        """The squared error of each task by least squares on all marginals together."""
        spaces = Spaces.of(self.workload)
        weights = np.zeros(len(spaces.sets))
        for query, stddev in zip(self.queries, stddevs, strict=True):
            weights[spaces.positions[query.clique]] += stddev**-2.0
        own = spaces.eigenvalues(weights)
        errors = []
        for task in self.workload.tasks:
            goal = spaces.dimensions * spaces.eigenvalues(spaces.weights_of([task]))
            needed = goal > 0.0
            errors.append(float((goal[needed] / own[needed]).sum()))
        return errors


@dataclass(frozen=True, eq=False)
class Spaces:
    """The sets of attributes below a workload's cliques, and the algebra of their marginals."""

    domain: Domain
    sets: tuple[Clique, ...]

    @classmethod
    def of(cls, workload: Workload) -> Spaces:
        """The spaces of all subsets of a workload's cliques."""
        domain = workload.domain
        subsets = {
            subset: None
            for clique in dict.fromkeys(domain.canonical(c) for c in workload.cliques)
            for subset in _subsets(clique)
        }
        return cls(domain, tuple(sorted(subsets, key=lambda s: (len(s), domain.canonical(s)))))

    @cached_property
    def positions(self) -> dict[Clique, int]:
        """The index of each set."""
        return {each: index for index, each in enumerate(self.sets)}

    @cached_property
    def dimensions(self) -> Array:
        """The dimension of each set's space."""
        return np.array([math.prod(self.domain[n] - 1.0 for n in each) for each in self.sets])

    @cached_property
    def _above(self) -> tuple[Array, Array, Array]:
        """All pairs of a set and a marginal that holds it, with what the marginal contributes."""
        pairs = [
            (self.positions[lower], index, 1.0 / self.domain.size_of(each))
            for index, each in enumerate(self.sets)
            for lower in _subsets(each)
        ]
        lower, upper, sizes = (np.array(column) for column in zip(*pairs, strict=True))
        return lower, upper, sizes

    def eigenvalues(self, weights: Array) -> Array:
        """The eigenvalue of the weighted marginals' Gram matrix on each set's space."""
        lower, upper, sizes = self._above
        return np.asarray(
            np.bincount(lower, sizes * weights[upper], len(self.sets)), dtype=np.float64
        )

    def adjoint(self, values: Array) -> Array:
        """The transpose of the map from weights to eigenvalues."""
        lower, upper, sizes = self._above
        return np.asarray(
            np.bincount(upper, sizes * values[lower], len(self.sets)), dtype=np.float64
        )

    def weights_of(self, tasks: Sequence[Task]) -> Array:
        """Tasks as weighted marginals with the same error under every strategy of marginals.

        Such an error depends only on the trace and the sum of a block's Gram matrix, so the matrix
        is replaced by the combination of the identity and the matrix of ones that has the same.
        """
        weights = np.zeros(len(self.sets))
        for task in tasks:
            pairs = [
                _identity_and_ones(gram(block, self.domain[name]))
                for name, block in zip(task.clique, task.blocks, strict=True)
            ]
            for kept in product((True, False), repeat=len(pairs)):
                names = [n for n, k in zip(task.clique, kept, strict=True) if k]
                weight = math.prod(p[0] if k else p[1] for p, k in zip(pairs, kept, strict=True))
                weights[self.positions[self.domain.canonical(names)]] += weight
        return weights


def optimise_marginals(
    workload: Workload, *, gaussian: bool, restarts: int = 5, seed: int = 0
) -> MarginalStrategy:
    """The best marginals and shares found: those with the smallest weighted squared error."""
    if not workload.tasks:
        raise InvalidInput("`workload` must have a task; got none.")
    spaces = Spaces.of(workload)
    tasks = [task.weight * spaces.weights_of([task]) for task in workload.tasks]
    goal = spaces.dimensions * spaces.eigenvalues(np.sum(tasks, axis=0))
    rng = np.random.default_rng(seed)
    starts = [_task_start(spaces, workload)]
    starts += [rng.normal(0.0, 2.0, len(spaces.sets)) for _ in range(restarts - 1)]
    results = [_optimise(spaces, goal, start, gaussian) for start in starts]
    best = min(results, key=lambda each: each[0])[1]
    shares = _prune(spaces, goal, best, gaussian)
    queries = tuple(
        StrategyQuery(each, None, float(share))
        for each, share in zip(spaces.sets, shares, strict=True)
        if share > 0.0
    )
    return MarginalStrategy(workload, queries)


def marginals_error(
    spaces: Spaces, goal: Array, logs: Array, *, gaussian: bool
) -> tuple[float, Array]:
    """The total error for a budget of 1, and its gradient in the logarithms of the shares."""
    amounts = np.exp(logs - logs.max())
    weights = amounts if gaussian else amounts**2
    whole = amounts.sum() if gaussian else amounts.sum() ** 2
    own = np.maximum(spaces.eigenvalues(weights), _MIN_EIGENVALUE)
    trace = float((goal / own).sum())
    by_weight = -spaces.adjoint(goal / own**2)
    if gaussian:
        return whole * trace, amounts * (trace + whole * by_weight)
    slope = 2.0 * amounts.sum() * trace + whole * by_weight * 2.0 * amounts
    return whole * trace, amounts * slope


def residual_least_squares(
    domain: Domain, measurements: Sequence[Measurement], cliques: Sequence[Clique]
) -> dict[Clique, Factor]:
    """The marginals on some cliques by least squares on all measured marginals together.

    On the space of a set A, each measured marginal that holds A gives the same table with noise of
    its own: its table summed to A, minus the mean along every attribute of A. These are averaged by
    the inverse of their variances (that of a marginal's noisiest cell, where its cells differ), and
    the spaces below a clique add up to its table. No full table is formed; cells may be negative.
    """
    known: dict[Clique, Factor] = {}
    results = {}
    for clique in cliques:
        subdomain = domain.project(clique)
        table = np.zeros(subdomain.shape)
        for lower in _subsets(domain.canonical(clique)):
            if lower not in known:
                known[lower] = _residual(domain, measurements, lower)
            spread = known[lower].expand(subdomain).values
            table += spread * (domain.size_of(lower) / subdomain.size)
        results[clique] = Factor(subdomain, table)
    return results


def _residual(domain: Domain, measurements: Sequence[Measurement], names: Clique) -> Factor:
    subdomain = domain.project(names)
    total, weight = np.zeros(subdomain.shape), 0.0
    for measured in measurements:
        if set(names) <= set(measured.clique):
            own_domain = domain.project(measured.clique)
            table = (
                Factor(own_domain, measured.values.reshape(own_domain.shape))
                .project(subdomain)
                .values
            )
            precision = domain.size_of(names) / (
                own_domain.size * float(measured.stddev.max()) ** 2
            )
            total += precision * table
            weight += precision
    if weight == 0.0:
        if math.prod(domain[name] - 1 for name in names) == 0:
            return Factor(subdomain, total)
        raise InvalidInput(f"`measurements` must hold a marginal with {names}; got none.")
    mean: Array = total / weight
    for axis in range(mean.ndim):
        mean = mean - mean.mean(axis=axis, keepdims=True)
    return Factor(subdomain, mean)


def _task_start(spaces: Spaces, workload: Workload) -> Array:
    """A start with large shares for the tasks' own cliques."""
    start = np.full(len(spaces.sets), -3.0)
    for clique in workload.cliques:
        start[spaces.positions[spaces.domain.canonical(clique)]] = 0.0
    return start


def _optimise(spaces: Spaces, goal: Array, start: Array, gaussian: bool) -> tuple[float, Array]:
    from scipy.optimize import minimize  # noqa: PLC0415  slow to import

    unit = marginals_error(spaces, goal, start, gaussian=gaussian)[0]

    def objective(logs: Array) -> tuple[float, Array]:
        value, slope = marginals_error(spaces, goal, logs, gaussian=gaussian)
        return value / unit, slope / unit

    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "ftol": 1e-12}
    )
    return float(result.fun) * unit, np.asarray(result.x)


def _prune(spaces: Spaces, goal: Array, logs: Array, gaussian: bool) -> Array:
    """The shares without the small ones, if everything in the workload is still measured."""
    amounts = np.exp(logs - logs.max())
    shares = amounts / amounts.sum()
    kept = np.where(shares >= _MIN_SHARE, shares, 0.0)
    measured = spaces.eigenvalues(kept) > 0.0
    if not measured[goal > 0.0].all():
        return np.asarray(shares)
    errors = [
        marginals_error(spaces, goal, np.log(np.maximum(each, 1e-300)), gaussian=gaussian)[0]
        for each in (shares, kept)
    ]
    return np.asarray(kept / kept.sum() if errors[1] <= errors[0] * 1.01 else shares)


def _identity_and_ones(matrix: Array) -> tuple[float, float]:
    """The weights of the identity and of the matrix of ones, with the same trace and sum."""
    size = len(matrix)
    trace, whole = float(np.trace(matrix)), float(matrix.sum())
    ones = (whole - trace) / (size * (size - 1)) if size > 1 else 0.0
    return trace / size - ones, ones


def _subsets(names: Clique) -> list[Clique]:
    return [c for k in range(len(names) + 1) for c in combinations(names, k)]
