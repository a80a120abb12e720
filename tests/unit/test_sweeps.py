"""A sweep draws every attribute from its conditional, however the potentials are put together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from juncture.engine.compiled.opcodes import SWEEP_CHUNK
from juncture.engine.gibbs import Sweeper
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout, Vector

DOMAIN = Domain({"a": 2, "b": 3, "c": 5, "d": 40, "e": 40, "free": 4})
# Small tables are added up; those of d and e are too large for it; b and c are in several.
CLIQUES = [
    *combinations("abc", 2),
    ("a", "b", "c"),
    ("a", "d"),
    ("c", "d", "e"),
    ("b", "e"),
    ("b",),
]
N = 40_000


def find_conditional(
    layout: Layout, potentials: Vector, record: list[int], block: list[int]
) -> Vector:
    """The distribution of a block's cells given the other attributes of a record, by hand."""
    sizes = [layout.domain.shape[a] for a in block]
    logits = np.zeros(sizes)
    for cell in np.ndindex(*sizes):
        given = list(record)
        for axis, value in zip(block, cell, strict=True):
            given[axis] = value
        for clique in layout.cliques:
            index = tuple(given[layout.domain.positions[name]] for name in clique)
            logits[cell] += layout.view(potentials, clique)[index]
    weights = np.exp(logits - logits.max())
    return np.asarray((weights / weights.sum()).reshape(-1))


@pytest.mark.parametrize("block", [[0], [1], [2], [3], [4], [5], [1, 2], [0, 5]])
def test_draws_follow_the_conditional(block: list[int]) -> None:
    """All attributes but a block are held: its frequencies are the conditional's, up to chance."""
    layout = Layout(DOMAIN, CLIQUES)
    rng = np.random.default_rng(block)
    potentials = rng.normal(0.0, 1.0, layout.size)
    record = [int(rng.integers(0, size)) for size in DOMAIN.shape]
    held = [axis for axis in range(len(DOMAIN)) if axis not in block]
    pairs = [(block[0], block[1])] if len(block) == 2 else []
    sweeper = Sweeper(layout, pairs, held)
    codes = np.repeat(np.array(record, dtype=np.int32)[:, None], N, axis=1)
    sweeper.sweep(codes, potentials, key=7)
    assert (codes[held] == np.array(record)[held, None]).all()
    cells = np.ravel_multi_index(codes[block], [DOMAIN.shape[a] for a in block])
    # A pair is drawn after its attributes were drawn alone, which changes nothing about it.
    chances = find_conditional(layout, potentials, record, block)
    counts = np.bincount(cells, minlength=len(chances))
    expected = N * chances
    statistic = float(((counts - expected) ** 2 / expected).sum())
    n_free = len(chances) - 1
    assert statistic < n_free + 5.0 * np.sqrt(2.0 * n_free) + 10.0


def test_records_do_not_depend_on_how_they_are_divided() -> None:
    """Each record's draws are its own: parts of any length give the same records."""
    layout = Layout(DOMAIN, CLIQUES)
    rng = np.random.default_rng(3)
    potentials = rng.normal(0.0, 1.0, layout.size)
    n = 3 * SWEEP_CHUNK + 17
    codes = np.array([rng.integers(0, size, n) for size in DOMAIN.shape], dtype=np.int32)
    whole = codes.copy()
    Sweeper(layout).sweep(whole, potentials, key=11)
    for first, last in [(0, 1), (1, SWEEP_CHUNK + 5), (SWEEP_CHUNK + 5, n)]:
        part = np.ascontiguousarray(codes[:, first:last])
        Sweeper(layout).sweep(part, potentials, key=11, first=first)
        assert (part == whole[:, first:last]).all()
