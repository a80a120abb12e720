"""The weighted records of a model without a tree, as plain data for the release file.

Codes take one, two or four bytes each, as the attribute's size asks, and lie one attribute after
another in an array of bytes. The file has arrays of 64-bit numbers: eight bytes make one of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from juncture.engine.gibbs import EXCLUDED, MAX_PAIR_CELLS
from juncture.engine.oracle import OracleFactory
from juncture.engine.particles import Particles
from juncture.engine.stationarity import belong_to_potentials
from juncture.errors import ImpossibleModel
from juncture.model.record_distribution import RecordDistribution
from juncture.publish.archive import Document
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector
from juncture.tables.records import Codes

_TOLERANCE = 1e-6


def write_records(distribution: RecordDistribution, arrays: list[Vector]) -> Document:
    """The records as data; their numbers are appended to the arrays."""
    arrays += [pack_codes(distribution.domain, distribution.codes), distribution.weights]
    return {
        "n": len(distribution.weights),
        "codes": len(arrays) - 2,
        "weights": len(arrays) - 1,
        "log_mass": distribution.log_mass,
        "seed": distribution.seed,
        "pairs": [list(pair) for pair in distribution.pairs],
    }


def read_distribution(
    entry: Document, domain: Domain, arrays: list[Vector], layout: Layout, oracle: OracleFactory
) -> RecordDistribution:
    """The distribution that `write_records` wrote; `check_records` checks that its parts agree."""
    factory = oracle if isinstance(oracle, Particles) else Particles()
    n, log_mass, seed = int(entry["n"]), float(entry["log_mass"]), int(entry["seed"])
    weights = arrays[entry["weights"]]
    if n < 1 or weights.shape != (n,) or not math.isfinite(log_mass) or not 0 <= seed < 2**64:
        raise ValueError(n, log_mass, seed)
    if not (np.isfinite(weights).all() and weights.min() >= 0.0):
        raise ValueError("weights")
    pairs = tuple((int(one), int(two)) for one, two in entry["pairs"])
    if not all(_is_pair(domain, *pair) for pair in pairs):
        raise ValueError(pairs)
    codes = unpack_codes(domain, arrays[entry["codes"]], n)
    plan = factory.build_plan(domain, layout.cliques)
    return RecordDistribution(plan, arrays[0], codes, weights, factory, log_mass, pairs, seed)


def check_records(distribution: RecordDistribution, probabilities: Vector) -> None:
    """Refuse records that are not those of the stored marginals or of the potentials."""
    off = np.abs(distribution.probabilities - probabilities).max(initial=0.0)
    whole = abs(float(distribution.weights.sum()) - 1.0)
    if not max(off, whole) <= _TOLERANCE or not (distribution.potentials < np.inf).all():
        raise ImpossibleModel("`marginals` must be those of the records; got others.")
    population = distribution.make_population()
    excluded = population.score(distribution.potentials) < 0.5 * EXCLUDED
    if (distribution.weights[excluded] > 0.0).any():
        raise ImpossibleModel("`records` must be possible; got some that the potentials exclude.")
    if not belong_to_potentials(population):
        raise ImpossibleModel(
            "`records` must be those of the potentials; got others: drawn anew at the potentials, "
            "they have other marginals."
        )


def _is_pair(domain: Domain, one: int, two: int) -> bool:
    """Whether two attributes may be drawn together: their table takes memory."""
    inside = 0 <= one < two < len(domain)
    return inside and domain.shape[one] * domain.shape[two] <= MAX_PAIR_CELLS


def pack_codes(domain: Domain, codes: Codes) -> Vector:
    """Codes as bytes, eight to a number."""
    parts = [
        row.astype(_code_type(size)).tobytes()
        for row, size in zip(codes, domain.shape, strict=True)
    ]
    raw = b"".join(parts)
    return np.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype="<f8")


def unpack_codes(domain: Domain, packed: Vector, n: int) -> Codes:
    """The codes that `pack_codes` packed, or an error if they are not codes of the domain."""
    raw, start = np.ascontiguousarray(packed, dtype="<f8").tobytes(), 0
    codes: NDArray[np.int32] = np.empty((len(domain), n), dtype=np.int32)
    for axis, size in enumerate(domain.shape):
        kind = np.dtype(_code_type(size))
        column = np.frombuffer(raw, kind, n, start)
        if column.max(initial=0) >= size:
            raise ValueError(size)
        codes[axis] = column
        start += n * kind.itemsize
    return codes


def _code_type(size: int) -> str:
    return "<u1" if size <= 2**8 else "<u2" if size <= 2**16 else "<u4"
