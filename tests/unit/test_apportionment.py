"""Apportioning the records of rows among cells: exact in every row, whatever the weights."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from juncture.model.apportionment import apportion_records, choose_sums
from juncture.model.clique_tree import Visit
from juncture.model.stages import Integers, make_stage
from juncture.tables.domain import Domain
from juncture.tables.layout import Vector
from juncture.tables.records import Codes
from strategies import examples, seeds

# From nothing over the smallest number there is to sums that are infinite.
EXTREMES = (0.0, 0.0, 5e-324, 1e-300, 0.3, 1.0, 2.0, 7.0, 1e300, 1.7e308)


def apportion_rows(table: Vector, members: Integers, key: int) -> Codes:
    """The counts that rows of two known attributes get in the cells of a third."""
    domain = Domain(dict(zip("abc", table.shape, strict=True)))
    stage = make_stage(domain, table, Visit(0, ("a", "b"), ("c",)))
    sums = choose_sums(domain, [("a", "b", "c")], ("a", "b"), "c")
    known = np.repeat(np.indices(table.shape[:2]).reshape(2, -1), members.reshape(-1), axis=1)
    codes = np.vstack([known, np.full(known.shape[1], -1)]).astype(np.int32)
    order = np.random.default_rng(key).permutation(codes.shape[1])
    codes = np.ascontiguousarray(codes[:, order])
    apportion_records(codes, stage, sums, key)
    assert (codes[:2] == known[:, order]).all()
    assert codes[2].min(initial=0) >= 0
    assert codes[2].max(initial=0) < table.shape[2]
    counts = np.zeros(table.shape, dtype=np.int32)
    np.add.at(counts, tuple(codes), 1)
    return counts


@examples(200)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6)),
    st.sets(st.sampled_from(EXTREMES), min_size=1, max_size=4),
    seeds(),
)
def test_each_row_is_rounded_exactly(
    shape: tuple[int, int, int], weights: set[float], seed: int
) -> None:
    """Any weights that are finite, also none: counts are shares rounded down or up, and add up."""
    rng = np.random.default_rng(seed)
    table, members = rng.choice(sorted(weights), size=shape), rng.integers(0, 9, size=shape[:2])
    counts = apportion_rows(table, members, seed)
    assert (counts.sum(axis=2) == members).all()
    for row in np.ndindex(*shape[:2]):
        exact = [Fraction(float(weight)) for weight in table[row]]
        total = sum(exact)
        for count, weight in zip(counts[row], exact, strict=True):
            # A row without weight is one of equal weights.
            share = int(members[row]) * (weight / total if total else Fraction(1, shape[2]))
            slack = Fraction(1, 10**9)
            assert math.floor(share - slack) <= count <= math.ceil(share + slack)
            assert count == 0 or weight > 0 or not total


def test_rounding_is_fair_in_every_cell() -> None:
    """Many rows of few records: over keys, each cell gets its share, and so do sums of rows."""
    rng = np.random.default_rng(7)
    table = rng.dirichlet((0.1, 3.0, 0.3, 1.0), size=(12, 10))
    members = rng.integers(0, 4, size=(12, 10))
    shares, n_keys = members[..., None] * table, 1000
    mean, square = np.zeros(shares.shape), np.zeros(4)
    for key in range(n_keys):
        counts = apportion_rows(table, members, key)
        mean += counts / n_keys
        square += (counts - shares).sum(axis=(0, 1)) ** 2 / n_keys
    part = shares - np.floor(shares)
    error = np.sqrt(part * (1 - part) / n_keys)
    # Cells that are hardly ever rounded up have no normal error; the sums below hold them too.
    common = part > 0.01
    assert (np.abs(mean - shares)[common] < 4.5 * error[common]).all()
    assert (np.abs((mean - shares).sum(axis=(0, 1))) < 4.5 * np.sqrt(square / n_keys)).all()
    assert square.max() < 0.7  # rounding each row by itself: 2 to 15


def test_sums_that_are_kept() -> None:
    """The attribute alone, with each known one, with what cliques hold; not over a few rows."""
    domain = Domain({"a": 8, "b": 8, "c": 2, "d": 5})
    known = ("a", "b", "c")
    sums = choose_sums(domain, [("a", "c", "d"), ("b",), ("a", "b", "c", "d")], known, "d")
    assert sums.strides.tolist() == [[0, 0, 0], [1, 0, 0], [2, 0, 1], [0, 1, 0], [0, 0, 1]]
    assert sums.starts.tolist() == [0, 1, 9, 25, 33]
    assert sums.n_groups == 35
    assert choose_sums(domain, [], (), "d").n_groups == 0
    assert choose_sums(domain, [], ("c",), "d").strides.tolist() == [[0]]
