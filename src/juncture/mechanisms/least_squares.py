"""Least squares on noisy measurements, as in the original HDMM; cells may be negative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Identity, Total
from juncture.tables.queries.products import Kron


def full_least_squares(
    domain: Domain, measurements: Sequence[Measurement], *, max_steps: int | None = None
) -> Factor:
    """The smallest full table that fits the measurements best, by LSMR.

    With `max_steps`, it makes exactly that many steps, to be timed.
    """
    from scipy.sparse.linalg import LinearOperator, lsmr  # noqa: PLC0415  slow to import

    terms = [(m, domain.project(m.clique), m.operator(domain)) for m in measurements]
    goal = np.concatenate([m.values / m.stddev for m, _, _ in terms])
    ends = np.cumsum([operator.n_rows for _, _, operator in terms])[:-1]

    def apply(flat: Vector) -> Vector:
        table = Factor(domain, flat.reshape(domain.shape))
        answers = [o.apply(table.project(subdomain).values) / m.stddev for m, subdomain, o in terms]
        return np.concatenate(answers)

    def adjoint(residuals: Vector) -> Vector:
        total = np.zeros(domain.shape)
        for (m, subdomain, o), piece in zip(terms, np.split(residuals, ends), strict=True):
            back = Factor(subdomain, o.adjoint(piece / m.stddev).reshape(subdomain.shape))
            total += back.expand(domain).values
        return total.reshape(-1)

    shape = (len(goal), domain.size)
    system = LinearOperator(shape, matvec=apply, rmatvec=adjoint, dtype=np.float64)
    limit, tolerance = (10 * domain.size, 1e-10) if max_steps is None else (max_steps, 0.0)
    solution = lsmr(system, goal, atol=tolerance, btol=tolerance, conlim=0.0, maxiter=limit)[0]
    return Factor(domain, np.asarray(solution).reshape(domain.shape))


def local_least_squares(
    domain: Domain, measurements: Sequence[Measurement]
) -> dict[Clique, Factor]:
    """For each measured clique, the table that fits its own measurements best."""
    groups: dict[Clique, list[Measurement]] = {}
    for measurement in measurements:
        groups.setdefault(domain.canonical(measurement.clique), []).append(measurement)
    tables = {}
    for clique, group in groups.items():
        subdomain = domain.project(clique)
        tables[clique] = (
            _invert(domain, group[0]).transpose(subdomain)
            if len(group) == 1 and isinstance(group[0].query, Kron | Identity)
            else full_least_squares(subdomain, group)
        )
    return tables


def _invert(domain: Domain, measurement: Measurement) -> Factor:
    """Apply the pseudo-inverse of a product of blocks, one attribute at a time."""
    subdomain = domain.project(measurement.clique)
    if not isinstance(measurement.query, Kron):
        return Factor(subdomain, measurement.values.reshape(subdomain.shape))
    blocks: Mapping[str, Block] = measurement.query.blocks
    chosen = [blocks.get(name, Total()) for name in subdomain]
    rows = [block.n_rows(size) for block, size in zip(chosen, subdomain.shape, strict=True)]
    table = measurement.values.reshape(rows)
    for axis, (block, size) in enumerate(zip(chosen, subdomain.shape, strict=True)):
        if not isinstance(block, Identity):
            inverse = np.linalg.pinv(block.matrix(size))
            table = np.moveaxis(np.tensordot(table, inverse, (axis, 1)), -1, axis)
    return Factor(subdomain, table)
