"""Tables on several cliques as one flat vector.

Solvers and kernels work on one vector: adding potentials, or the inner product of a gradient
with marginals, is then a single array operation. A layout says where each clique's table lies
in that vector, in the clique's canonical order, last attribute fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture._util.text import count_noun
from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, Domain, refuse_many_axes
from juncture.tables.factor import Factor

Vector = NDArray[np.float64]


class Layout:
    """Where the table of each clique lies in a flat vector.

    Cliques are put in canonical order; repeated ones (also in another attribute order) share
    one table.

    >>> layout = Layout(Domain({"a": 2, "b": 3}), [("b", "a"), ("b",)])
    >>> layout.cliques, layout.size
    ((('a', 'b'), ('b',)), 9)
    """

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> None:
        self.domain = domain
        self.cliques: tuple[Clique, ...] = tuple(dict.fromkeys(map(domain.canonical, cliques)))
        for clique in self.cliques:
            refuse_many_axes(clique)

    def __repr__(self) -> str:
        return f"Layout({count_noun(len(self.cliques), 'clique')}, {count_noun(self.size, 'cell')})"

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The start of each clique's table, and the end of the last one."""
        return tuple(accumulate(map(self.domain.size_of, self.cliques), initial=0))

    @property
    def size(self) -> int:
        """The length of the vector."""
        return self.offsets[-1]

    @cached_property
    def positions(self) -> Mapping[Clique, int]:
        """The index of each canonical clique in `cliques`."""
        return {clique: position for position, clique in enumerate(self.cliques)}

    def zeros(self) -> Vector:
        """A vector of zeros."""
        return np.zeros(self.size)

    def view(self, vector: Vector, clique: Iterable[str]) -> Vector:
        """The clique's table inside the vector, with the clique's canonical shape; writable."""
        canonical = self.domain.canonical(clique)
        if self.as_vector(vector, writable=False) is not vector:
            raise InvalidInput(
                "`vector` must be a contiguous float64 array, for a view to write through to it; "
                "got another kind. Pass it through layout.as_vector() first."
            )
        return self._view(vector, canonical)

    def _view(self, vector: Vector, canonical: Clique) -> Vector:
        """See `view`, for a clique in canonical order and a vector that has been checked."""
        position = self.positions.get(canonical)
        if position is None:
            raise InvalidInput(
                f"`clique` must be one of the {len(self.cliques)} cliques of the layout; "
                f"got {canonical}. Add it when the layout or the plan is made."
            )
        table = vector[self.offsets[position] : self.offsets[position + 1]]
        return table.reshape([self.domain[name] for name in canonical])

    def factor(self, vector: Vector, clique: Iterable[str]) -> Factor:
        """The clique's table as a factor, with its axes in the order given."""
        subdomain = self.domain.project(clique)
        canonical = self.domain.project(self.domain.canonical(subdomain))
        return Factor(canonical, self.view(self.as_vector(vector), subdomain)).transpose(subdomain)

    def pack(self, factors: Iterable[Factor]) -> Vector:
        """The vector that holds these factors; those on one clique add up, missing ones are 0."""
        vector = self.zeros()
        for factor in factors:
            names = tuple(factor.domain)
            canonical = self.domain.canonical(names)
            if factor.values.shape != tuple([self.domain[name] for name in names]):
                raise InvalidInput(
                    f"`factors` must have the sizes of the layout's domain; got {factor.domain!r}. "
                    "Build them over domain.project(clique)."
                )
            table, values = self._view(vector, canonical), factor.values
            if names != canonical:
                values = values.transpose([names.index(name) for name in canonical])
            table += values
        return vector

    def as_vector(self, vector: ArrayLike, *, writable: bool = True) -> Vector:
        """The vector as a plain float64 array of the right length, or a clear error.

        Plain means contiguous, aligned and writable: kernels are compiled for that one kind.
        """
        array = np.require(vector, np.float64, ["C", "A", "W"] if writable else ["C", "A"])
        if array.shape != (self.size,):
            raise InvalidInput(
                f"`vector` must be flat with {self.size} entries, one per cell of the cliques; "
                f"got shape {array.shape}. Build it with layout.pack(factors)."
            )
        return array
