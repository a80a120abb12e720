"""Sets of attributes that fit into so many cells, and into which no other fits as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from juncture.tables.domain import Clique, Domain


def maximal_parent_sets(
    domain: Domain, names: Sequence[str], limit: float, *, most: int | None = None, seed: int = 0
) -> list[Clique]:
    """All of them, or, where there are more than `most`, so many at random.

    Those at random come from taking attributes in a random order and leaving out what does not fit:
    no data is looked at, and the same seed gives the same sets. Where nothing fits, the empty set.
    """
    if limit < 1.0:
        return [()]
    found = list(islice(_all(domain, names, limit), None if most is None else most + 1))
    if most is not None and len(found) > most:
        found = _some(domain, names, limit, most, seed)
    return [domain.canonical(each) for each in found] or [()]


def _all(domain: Domain, names: Sequence[str], limit: float) -> Iterator[Clique]:
    """By taking each attribute in or leaving it out, small ones first."""
    ordered = sorted(names, key=lambda name: (domain[name], domain.positions[name]))
    sizes = [domain[name] for name in ordered]
    # The cells of all attributes from a place on, cut where more than the limit is as good.
    rest = [1.0] * (len(sizes) + 1)
    for place in range(len(sizes) - 1, -1, -1):
        rest[place] = min(rest[place + 1] * sizes[place], 2.0 * limit)

    def go(place: int, cells: int, chosen: Clique, least_left_out: float) -> Iterator[Clique]:
        if place == len(sizes) or cells * sizes[place] > limit:
            left_out = min([least_left_out, *sizes[place : place + 1]])
            if cells * left_out > limit:
                yield chosen
            return
        yield from go(place + 1, cells * sizes[place], (*chosen, ordered[place]), least_left_out)
        left_out = min(least_left_out, sizes[place])
        if cells * rest[place + 1] * left_out > limit:  # otherwise it fits after all
            yield from go(place + 1, cells, chosen, left_out)

    yield from go(0, 1, (), math.inf)


def _some(domain: Domain, names: Sequence[str], limit: float, most: int, seed: int) -> list[Clique]:
    rng = np.random.default_rng(seed)
    sizes = {name: domain[name] for name in names}
    found: dict[Clique, None] = {}
    for _ in range(2 * most):
        cells, chosen = 1, []
        for place in rng.permutation(len(names)).tolist():
            name = names[place]
            if cells * sizes[name] <= limit:
                cells *= sizes[name]
                chosen.append(name)
        found[domain.canonical(chosen)] = None
        if len(found) == most:
            break
    return list(found)
