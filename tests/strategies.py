"""Hypothesis strategies for the things that the library is about.

Structures are drawn by Hypothesis, which shrinks them; the numbers in tables come from a
seeded generator, which is fast and has no ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from brute import Array, Clique
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

# What the profile of all tests in conftest.py tries; that of `make quick` tries a third.
_FULL = 60
NAMES = "abcdef"
T = TypeVar("T")

Kind = str
ORDINARY: Kind = "ordinary"
ZEROS: Kind = "zeros, one record kept possible"
ANY_ZEROS: Kind = "zeros anywhere"
WIDE: Kind = "thousands of nats"
WIDE_ZEROS: Kind = "thousands of nats, zeros, one record kept possible"
FLOOR: Kind = "near the smallest floating-point numbers"
FLOOR_ZEROS: Kind = "near the smallest floating-point numbers, one record kept possible"
POSSIBLE: tuple[Kind, ...] = (ORDINARY, ZEROS, WIDE, WIDE_ZEROS, FLOOR, FLOOR_ZEROS)
FINITE: tuple[Kind, ...] = (ORDINARY, WIDE, FLOOR)

_SHARE_OF_ZEROS = dict.fromkeys((ZEROS, ANY_ZEROS, WIDE_ZEROS, FLOOR_ZEROS), 0.35)
# Offsets in nats. Numbers become subnormal at -708 and vanish at -745; products of two or
# three of the second list's entries land on either side of that.
_OFFSETS = {
    WIDE: (-4000.0, -900.0, 0.0, 700.0, 4000.0),
    WIDE_ZEROS: (-4000.0, -900.0, 0.0, 700.0, 4000.0),
    FLOOR: (0.0, -350.0, -575.0, -645.0, -700.0, -707.0, -709.0, -740.0, -1400.0),
    FLOOR_ZEROS: (0.0, -350.0, -575.0, -645.0, -700.0, -707.0, -709.0, -740.0, -1400.0),
}


class Model(NamedTuple):
    """What `brute` takes, and the cliques as a user might give them."""

    sizes: tuple[tuple[str, int], ...]
    cliques: tuple[Clique, ...]
    potentials: dict[Clique, Array]


@st.composite
def sizes(
    draw: st.DrawFn, *, min_attributes: int = 1, max_attributes: int = 6, max_size: int = 5
) -> tuple[tuple[str, int], ...]:
    """(name, size) pairs; the names are not in alphabetical order everywhere."""
    n = draw(st.integers(min_attributes, max_attributes))
    counts = draw(st.lists(st.integers(1, max_size), min_size=n, max_size=n))
    return tuple(zip(draw(st.permutations(NAMES)), counts, strict=False))


def domains(*, min_attributes: int = 1, max_attributes: int = 6) -> st.SearchStrategy[Domain]:
    """Domains of a few attributes with one to five values."""
    return sizes(min_attributes=min_attributes, max_attributes=max_attributes).map(Domain)


def clique(names: Sequence[str], max_size: int | None = None) -> st.SearchStrategy[Clique]:
    """Some of the names in any order; often none, sometimes all."""
    letters = st.sampled_from(names) if names else st.nothing()
    return st.lists(letters, unique=True, max_size=max_size).map(tuple)


def cliques(names: Sequence[str]) -> st.SearchStrategy[tuple[Clique, ...]]:
    """Cliques with repetitions, permutations and nesting, and at times the empty one."""
    few: st.SearchStrategy[list[Clique]] = st.lists(clique(names, max_size=4), max_size=5)
    both = st.tuples(few, edges(names)).map(lambda drawn: [*drawn[0], *drawn[1]])
    return both.flatmap(_with_echoes).map(tuple)


def _with_echoes(drawn: list[Clique]) -> st.SearchStrategy[list[Clique]]:
    """The cliques, followed by permuted repetitions of some of them."""
    if not drawn:
        return st.just(drawn)
    echo = st.sampled_from(drawn).flatmap(lambda one: st.permutations(one).map(tuple))
    return st.lists(echo, max_size=2).map(lambda echoes: drawn + echoes)


@st.composite
def factors(draw: st.DrawFn, names: Sequence[str] = NAMES) -> Factor:
    """Factors over some of the names, whose sizes depend on the name alone."""
    scope = draw(clique(names, max_size=4))
    domain = Domain([(name, 1 + names.index(name) % 4) for name in scope])
    return Factor.random(domain, np.random.default_rng(draw(seeds())))


@st.composite
def scopes(
    draw: st.DrawFn, *, max_vertices: int = 6, min_size: int = 1
) -> tuple[list[int], list[frozenset[int]]]:
    """Sizes of numbered vertices, and cliques of vertices: any few, and edges at random."""
    n = draw(st.integers(1, max_vertices))
    sizes_of = draw(st.lists(st.integers(min_size, 5), min_size=n, max_size=n))
    few = draw(st.lists(st.frozensets(st.integers(0, n - 1), max_size=4), max_size=4))
    return sizes_of, few + [frozenset(edge) for edge in draw(edges(range(n)))]


@st.composite
def edges(draw: st.DrawFn, vertices: Sequence[T]) -> list[tuple[T, T]]:
    """Each pair of vertices or not, at equal odds: enough to close cycles."""
    pairs = list(combinations(vertices, 2))
    taken = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return [pair for pair, is_taken in zip(pairs, taken, strict=True) if is_taken]


def seeds() -> st.SearchStrategy[int]:
    """Seeds for NumPy's generators."""
    return st.integers(0, 2**32 - 1)


@st.composite
def models(
    draw: st.DrawFn,
    kinds: Sequence[Kind] = POSSIBLE,
    *,
    max_attributes: int = 6,
    max_size: int = 5,
) -> Model:
    """A domain, cliques on it, and potentials of one of these kinds."""
    pairs = draw(sizes(max_attributes=max_attributes, max_size=max_size))
    chosen = draw(cliques([name for name, _ in pairs]))
    kind, seed = draw(st.sampled_from(kinds)), draw(seeds())
    return Model(pairs, chosen, potentials(pairs, chosen, kind, seed))


def potentials(
    pairs: Sequence[tuple[str, int]], chosen: Sequence[Clique], kind: Kind, seed: int
) -> dict[Clique, Array]:
    """A table for each distinct clique as given."""
    rng = np.random.default_rng(seed)
    size = dict(pairs)
    record = {name: int(rng.integers(count)) for name, count in pairs}
    tables: dict[Clique, Array] = {}
    for one in dict.fromkeys(chosen):
        shape, cell = tuple(size[n] for n in one), tuple(record[n] for n in one)
        table = np.array(rng.standard_normal(shape)) + rng.choice(_OFFSETS.get(kind, [0.0]), shape)
        excluded = np.array(rng.random(shape) < _SHARE_OF_ZEROS.get(kind, 0.0))
        excluded[cell] &= kind == ANY_ZEROS
        tables[one] = np.where(excluded, -np.inf, table)
    return tables


def examples(n: int) -> settings:
    """So many examples for a test instead of the profile's; in `make quick`, a third of them."""
    return settings(max_examples=max(1, n * settings().max_examples // _FULL))
