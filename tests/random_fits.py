"""Random problems for fits, and the same problems as dense matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dense_optimum import Linear
from juncture.tables.domain import Clique, Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries import blocks as block
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
NAMES = "abcde"


class FitProblem(NamedTuple):
    """The arguments of a fit."""

    domain: Domain
    measurements: tuple[Measurement, ...]
    total: float
    loss: str
    constraints: Mapping[Clique, Mask]

    @property
    def n_answers(self) -> int:
        """The number of measured values."""
        return sum(m.n_rows for m in self.measurements)

    def __repr__(self) -> str:
        """Say in a line what kind of problem it is."""
        sizes = "x".join(map(str, self.domain.shape))
        queries = [f"{type(m.query).__name__} on {''.join(m.clique)}" for m in self.measurements]
        return (
            f"{sizes} cells, {self.loss}, total {self.total:.6g}, {', '.join(queries)}, "
            f"{len(self.constraints)} constraints"
        )


def random_problem(seed: int, *, max_cells: int = 5000, max_size: int = 10**6) -> FitProblem:
    """A problem from the whole range: small and large noise, all queries, contradictions, zeros."""
    rng = np.random.default_rng([seed, 20])
    while True:
        problem = _draw_problem(rng, max_cells)
        if problem.domain.size * problem.n_answers <= max_size:
            return problem


def _draw_problem(rng: np.random.Generator, max_cells: int) -> FitProblem:
    domain = _random_domain(rng, max_cells)
    n_records = float(10 ** rng.uniform(0.7, 7))
    truth = n_records * rng.dirichlet(np.full(domain.size, 10 ** rng.uniform(-2, 1)))
    if rng.random() < 0.7:
        truth = np.round(truth)
    truth = truth.reshape(domain.shape)
    constraints = _random_constraints(rng, domain) if rng.random() < 0.25 else {}
    if rng.random() < 0.7:
        for clique, mask in constraints.items():
            truth = np.where(_spread(domain, clique, mask), 0.0, truth)
    total = max(1.0, float(truth.sum()) * float(rng.choice([1.0, 1.0, 1.0, 0.999, 1.3])))
    scale = total * 10 ** rng.uniform(-6, 0)
    measurements = tuple(
        _random_measurement(rng, domain, truth, scale) for _ in range(rng.integers(1, 6))
    )
    loss = str(rng.choice(["l2", "l2", "l1", "likelihood"]))
    return FitProblem(domain, measurements, total, loss, constraints)


def _random_domain(rng: np.random.Generator, max_cells: int) -> Domain:
    """One to five attributes; the number of cells is about uniform on a logarithmic scale."""
    goal = 10 ** rng.uniform(0.5, math.log10(max_cells))
    n = int(rng.integers(1, 6))
    shares = rng.dirichlet(np.full(n, 4.0))
    sizes = [max(1, int(goal**share)) for share in shares]
    return Domain(dict(zip(NAMES, sizes, strict=False)))


def _random_clique(rng: np.random.Generator, domain: Domain) -> Clique:
    names = list(rng.permutation(list(domain)))
    return tuple(str(name) for name in names[: rng.integers(1, len(names) + 1)])


def _random_constraints(rng: np.random.Generator, domain: Domain) -> dict[Clique, Mask]:
    """Impossible cells that leave one record possible."""
    record = {
        name: int(rng.integers(size)) for name, size in zip(domain, domain.shape, strict=True)
    }
    masks = {}
    for _ in range(rng.integers(1, 3)):
        clique = _random_clique(rng, domain)
        mask = np.array(rng.random(domain.project(clique).shape) < rng.uniform(0.05, 0.6))
        mask[tuple(record[name] for name in clique)] = False
        masks[clique] = mask
    return masks


def _random_measurement(
    rng: np.random.Generator, domain: Domain, truth: Array, scale: float
) -> Measurement:
    clique = _random_clique(rng, domain)
    subdomain = domain.project(clique)
    query = _random_query(rng, subdomain)
    operator = bind(query, subdomain)
    summed = tuple(i for i, name in enumerate(domain) if name not in clique)
    kept = [name for name in domain if name in clique]
    table = np.transpose(truth.sum(axis=summed), [kept.index(name) for name in clique])
    answers = operator.apply(table)
    stddev = scale * 10 ** rng.uniform(-1, 1)
    each = stddev * 10 ** rng.uniform(-0.5, 0.5, len(answers))
    spread = each if rng.random() < 0.3 else np.full(len(answers), stddev)
    wrong = float(rng.choice([0.0, 0.0, 0.0, 3.0, 1000.0]))
    noise = str(rng.choice(["gaussian", "laplace"]))
    draw = (
        rng.normal(size=len(answers))
        if noise == "gaussian"
        else rng.laplace(size=len(answers)) / math.sqrt(2)
    )
    values = answers + spread * (draw + wrong * rng.normal(size=len(answers)))
    return Measurement(
        clique, values, stddev=spread if spread is each else stddev, query=query, noise=noise
    )


def _random_query(rng: np.random.Generator, domain: Domain) -> Query:
    """One of the simple queries, or two of them together, or one times a weight."""
    match int(rng.integers(9)):
        case 0:
            return Scaled(float(rng.choice([-3.0, 0.01, 0.5, 40.0])), _simple_query(rng, domain))
        case 1:
            return Stack([_simple_query(rng, domain) for _ in range(2)])
        case _:
            return _simple_query(rng, domain)


def _simple_query(rng: np.random.Generator, domain: Domain) -> Query:
    size = domain.size
    rows = int(rng.integers(1, min(2 * size, 60) + 1))
    matrix = rng.normal(size=(rows, size)) * (rng.random((rows, size)) < 0.5)
    chosen = {int(rng.integers(size)), *np.flatnonzero(rng.random(size) < 0.5).tolist()}
    blocks = {name: _random_block(rng, domain[name]) for name in domain if rng.random() < 0.8}
    queries: list[Query] = [
        block.Identity(),
        block.Identity(),
        block.Prefix(),
        block.WeightedSum(tuple(rng.normal(size=size))),
        block.Matrix(matrix),
        Kron(blocks),
        block.Subset(chosen),
    ]
    return queries[int(rng.integers(len(queries)))]


def _random_block(rng: np.random.Generator, size: int) -> block.Block:
    choices = [
        block.Identity(),
        block.Prefix(),
        block.Total(),
        block.Point(int(rng.integers(size))),
    ]
    if size <= 8:
        choices.append(block.AllRanges())
    return choices[int(rng.integers(len(choices)))]


def _spread(domain: Domain, clique: Clique, table: NDArray[np.bool_]) -> Mask:
    """The clique's table for every record."""
    cells = np.indices(domain.shape)
    return np.asarray(table[tuple(cells[domain.positions[name]] for name in clique)])


def as_linear(problem: FitProblem) -> Linear:
    """The problem on the full table, less the records that are impossible."""
    domain = problem.domain
    possible = np.ones(domain.shape, dtype=bool)
    for clique, mask in problem.constraints.items():
        possible &= ~_spread(domain, clique, mask)
    rows, goals, squared = [], [], []
    for m in problem.measurements:
        query = _matrix(m, domain)
        cells = np.indices(domain.shape)
        subdomain = domain.project(m.clique)
        address = np.ravel_multi_index(
            [cells[domain.positions[name]] for name in m.clique], subdomain.shape
        )
        stddev = np.broadcast_to(m.stddev, m.values.shape)
        rows.append(query[:, address[possible]] / stddev[:, None])
        goals.append(m.values / stddev)
        is_squared = problem.loss == "l2" or (
            problem.loss == "likelihood" and str(m.noise) == "gaussian"
        )
        squared.append(np.full(m.n_rows, is_squared))
    return Linear(np.vstack(rows), np.concatenate(goals), np.concatenate(squared), problem.total)


def _matrix(measurement: Measurement, domain: Domain) -> Array:
    """The query on the clique's own table, one cell at a time."""
    subdomain = domain.project(measurement.clique)
    operator = bind(measurement.query, subdomain)
    columns = []
    for cell in product(*map(range, subdomain.shape)):
        one = np.zeros(subdomain.shape)
        one[cell] = 1.0
        columns.append(operator.apply(one))
    return np.array(columns).T
