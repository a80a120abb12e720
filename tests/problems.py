"""Named small problems: the structures on which an exact oracle can go wrong.

A problem is sizes, cliques and a recipe for potentials; its `answer` comes from `brute`, by
writing out every record or, where that is impossible, by a closed form. Nothing of ours is
imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

import brute
from brute import Answer, Array, Clique, Tables

Recipe = Callable[[np.random.Generator, int, tuple[int, ...]], Array]

# More cells than this are not written out in full.
LARGEST_DENSE = 10**6


def ordinary(rng: np.random.Generator, _place: int, shape: tuple[int, ...]) -> Array:
    """Independent standard normal potentials."""
    return np.asarray(rng.standard_normal(shape))


def same_everywhere(_rng: np.random.Generator, _place: int, shape: tuple[int, ...]) -> Array:
    """The same table for every clique."""
    return ordinary(np.random.default_rng(5), 0, shape)


def with_zeros(rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """A third of the cells excluded, but never the cell of all codes 0."""
    table = ordinary(rng, place, shape)
    excluded = rng.random(shape) < 1 / 3
    excluded[(0,) * len(shape)] = False
    return np.where(excluded, -np.inf, table)


def staircase(_rng: np.random.Generator, _place: int, shape: tuple[int, ...]) -> Array:
    """Only cells whose codes never decrease are possible, all equally."""
    codes = np.indices(shape)
    allowed = np.ones(shape, dtype=bool)
    for low, high in pairwise(codes):
        allowed &= low <= high
    return np.where(allowed, 0.0, -np.inf)


def tug_of_war(rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """Ramps of 3000 nats that pull one way in one clique and the other way in the next.

    The favourites of two neighbours exclude each other, so that what survives has a
    probability near exp(-3000) in the eyes of each: no scaled number holds it.
    """
    ramp = sum(np.indices(shape), start=np.zeros(shape)) / max(1, sum(shape) - len(shape))
    return np.asarray((-1) ** place * 3000.0 * ramp + rng.standard_normal(shape))


def tug_with_zeros(rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """The tug of war with cells excluded."""
    return tug_of_war(rng, place, shape) + with_zeros(rng, place, shape)


def parabolas(rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """Thousands of nats that prefer opposite ends; only the middle satisfies both cliques."""
    centre = 0 if place % 2 else max(shape) - 1
    far = sum(((codes - centre) ** 2 for codes in np.indices(shape)), start=np.zeros(shape))
    return np.asarray(-400.0 * far + rng.standard_normal(shape))


def cliffs(_rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """All codes of what two cliques share but the first lie 5000 nats below it; no other change.

    The first clique shares its last attribute, the second its first.
    """
    shared = np.indices(shape)[-1 if place == 0 else 0]
    return np.where(shared == 0, 0.0, -5000.0)


def nearly_lost(_rng: np.random.Generator, place: int, shape: tuple[int, ...]) -> Array:
    """A message with one large entry, one true zero, and one at the floor of what numbers hold.

    A fifth of the third entry's mass lies below the floor, and the second clique leaves nothing
    but the third entry.
    """
    if place == 0:
        return np.array([[0.0, -np.inf, -707.0], [0.0, -np.inf, -708.5]])
    return np.array([-1000.0, 0.0, 0.0])[:, None] + np.zeros(shape)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A structure, a recipe for its potentials, and where its answer comes from."""

    name: str
    sizes: tuple[tuple[str, int], ...]
    cliques: tuple[Clique, ...]
    recipe: Recipe = ordinary
    seed: int = 0
    closed_form: Callable[[Tables], Answer] | None = None

    def __str__(self) -> str:
        """Give the name, which pytest shows."""
        return self.name

    @property
    def n_cells(self) -> int:
        """The number of cells of the full table."""
        return math.prod(size for _, size in self.sizes)

    @property
    def is_dense(self) -> bool:
        """Whether the full table can be written out."""
        return self.n_cells <= LARGEST_DENSE

    @cached_property
    def potentials(self) -> dict[Clique, Array]:
        """A table per clique as given; a clique given twice has one table."""
        size = dict(self.sizes)
        return {
            clique: self.recipe(
                np.random.default_rng([self.seed, place]),
                place,
                tuple(size[name] for name in clique),
            )
            for place, clique in enumerate(dict.fromkeys(self.cliques))
        }

    @cached_property
    def answer(self) -> Answer:
        """What every oracle must say, with a total of one."""
        if self.closed_form is not None:
            return self.closed_form(self.potentials)
        return brute.solve(self.sizes, self.potentials)


def attributes(*sizes: int) -> tuple[tuple[str, int], ...]:
    """Attributes a, b, c, ... of these sizes."""
    return tuple(zip("abcdefghijklmnopqrstuvwxyz", sizes, strict=False))


def cliques(text: str) -> tuple[Clique, ...]:
    """Cliques of one-letter attributes, separated by blanks."""
    return tuple(map(tuple, text.split()))


GRID = "ab bc de ef gh hi ad dg be eh cf fi"
PAIRS = " ".join("".join(pair) for pair in combinations("abcdef", 2))
LONG = tuple(f"x{i}" for i in range(60))
CHILDREN = tuple(f"child{i}" for i in range(40))

PLAIN = [
    Problem(name="single", sizes=attributes(5), cliques=cliques("a")),
    Problem(name="chain", sizes=attributes(2, 3, 4, 3, 2), cliques=cliques("ab bc cd de")),
    Problem(name="cycle", sizes=attributes(3, 3, 3, 3, 3), cliques=cliques("ab bc cd de ea")),
    Problem(name="star", sizes=attributes(4, 2, 3, 2, 5), cliques=cliques("ab ac ad ae")),
    Problem(name="grid", sizes=attributes(*[2, 3] * 4, 2), cliques=cliques(GRID)),
    Problem(name="disconnected", sizes=attributes(2, 3, 4, 2, 3), cliques=cliques("ab cd e")),
    Problem(name="two cycles", sizes=attributes(*[2] * 8), cliques=cliques(
        "ab bc cd da ef fg gh he"
    )),
    Problem(name="one value", sizes=attributes(3, 1, 4, 1), cliques=cliques("ab bc cd")),
    Problem(name="only one value", sizes=attributes(1, 1), cliques=cliques("ab a")),
    Problem(name="no clique", sizes=attributes(3, 2), cliques=()),
    Problem(name="no attribute", sizes=(), cliques=()),
    Problem(name="no attribute, the empty clique", sizes=(), cliques=((),)),
    Problem(name="the empty clique", sizes=attributes(3, 2), cliques=((),)),
    Problem(name="permuted duplicates", sizes=attributes(2, 3, 4), cliques=cliques(
        "ab ba bc abc ca cba bc"
    )),
    Problem(name="nested", sizes=attributes(3, 2, 4, 2), cliques=cliques("abc ab a bc c cd d")),
    Problem(name="unmentioned", sizes=attributes(3, 5, 2, 4, 3), cliques=cliques("ac ce")),
    Problem(name="wheel", sizes=attributes(3, 2, 3, 2, 3), cliques=cliques(
        "ab ac ad ae bc cd de eb"
    )),
]  # fmt: skip

DENSE_CLIQUES = [
    Problem(name="all pairs", sizes=attributes(2, 3, 4, 3, 2, 5), cliques=cliques(PAIRS)),
    Problem(name="all triples", sizes=attributes(3, 2, 4, 3, 2), cliques=tuple(
        combinations("abcde", 3)
    )),
    Problem(name="matrix product", sizes=attributes(9, 11, 10), cliques=cliques("ab bc ca")),
    Problem(name="tall and thin", sizes=attributes(40, 2, 33, 2), cliques=cliques(
        "ab bc cd da ac"
    )),
    Problem(name="six axes in one table", sizes=attributes(2, 3, 2, 3, 2, 3), cliques=cliques(
        "abcdef fa ce db"
    )),
]  # fmt: skip

ZEROS = [
    Problem(name="zeros on a chain", sizes=attributes(3, 4, 3, 4), cliques=cliques("ab bc cd"),
            recipe=with_zeros),
    Problem(name="zeros on a cycle", sizes=attributes(3, 4, 3, 4), cliques=cliques("ab bc cd da"),
            recipe=with_zeros),
    Problem(name="zeros on all pairs", sizes=attributes(3, 3, 3, 3, 3, 3), cliques=cliques(PAIRS),
            recipe=with_zeros),
    Problem(name="staircase", sizes=attributes(*[4] * 6), cliques=cliques("ab bc cd de ef"),
            recipe=staircase),
    Problem(name="staircase in one clique", sizes=attributes(4, 4, 4), cliques=cliques("abc"),
            recipe=staircase),
]  # fmt: skip

WIDE = [
    Problem(name="wide single", sizes=attributes(7), cliques=cliques("a"), recipe=tug_of_war),
    Problem(name="wide pair", sizes=attributes(5), cliques=(*cliques("a"), ()),
            recipe=tug_of_war),
    Problem(name="wide chain", sizes=attributes(4, 5, 4, 5), cliques=cliques("ab bc cd"),
            recipe=tug_of_war),
    Problem(name="wide star", sizes=attributes(5, 4, 3, 4, 3), cliques=cliques("ab ac ad ae a"),
            recipe=tug_of_war),
    Problem(name="wide cycle", sizes=attributes(4, 5, 4, 5), cliques=cliques("ab bc cd da"),
            recipe=tug_of_war),
    Problem(name="wide grid", sizes=attributes(*[3] * 9), cliques=cliques(GRID),
            recipe=tug_of_war),
    Problem(name="wide all pairs", sizes=attributes(3, 2, 4, 3, 2, 3), cliques=cliques(PAIRS),
            recipe=tug_of_war),
    Problem(name="wide nested", sizes=attributes(3, 4, 3), cliques=cliques("abc ab c b ac bc"),
            recipe=tug_of_war),
    Problem(name="wide with zeros", sizes=attributes(4, 5, 4, 5), cliques=cliques("ab bc cd da"),
            recipe=tug_with_zeros),
    Problem(name="opposite parabolas", sizes=attributes(5, 5, 5), cliques=cliques("ab bc"),
            recipe=parabolas),
    Problem(name="opposite parabolas, cycle", sizes=attributes(5, 5, 5, 5),
            cliques=cliques("ab bc cd da ac"), recipe=parabolas),
]  # fmt: skip

LARGE = [
    Problem(name="hub", sizes=(("hub", 3), *((child, 2 + i % 3) for i, child in enumerate(
        CHILDREN
    ))), cliques=tuple(("hub", child) for child in CHILDREN), closed_form=brute.solve_hub),
    Problem(name="wide hub", sizes=(("hub", 4), *((child, 3) for child in CHILDREN)),
            cliques=tuple(("hub", child) for child in CHILDREN), recipe=tug_of_war,
            closed_form=brute.solve_hub),
    Problem(name="long chain", sizes=tuple((name, 3) for name in LONG),
            cliques=tuple(pairwise(LONG)), recipe=same_everywhere,
            closed_form=brute.solve_uniform_chain),
]  # fmt: skip

# Each of these gave a wrong answer or an error while the library was being written.
ONCE_FAILED = [
    Problem(name="cycle with a reordered copy", sizes=attributes(2, 7, 3, 5), cliques=cliques(
        "ab bc cd da"
    )),
    Problem(name="wide cycle with a reordered copy", sizes=attributes(2, 7, 3, 5), cliques=cliques(
        "ab bc cd da"
    ), recipe=tug_of_war),
    # The sum over a clique exceeds one where it is taken from logarithms.
    Problem(name="cliffs", sizes=attributes(3, 3, 4), cliques=cliques("ab bc"), recipe=cliffs),
    Problem(name="nearly lost", sizes=attributes(2, 3, 8), cliques=cliques("ab bc"),
            recipe=nearly_lost),
    Problem(name="the empty clique beside others", sizes=attributes(2, 3, 4), cliques=(
        *cliques("ab"), (), *cliques("bc")
    )),
]  # fmt: skip

PROBLEMS = PLAIN + DENSE_CLIQUES + ZEROS + WIDE + LARGE + ONCE_FAILED
