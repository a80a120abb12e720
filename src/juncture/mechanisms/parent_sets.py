"""Maximal parent sets: sets of attributes within a number of cells that no attribute can join."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from juncture.tables.domain import Clique, Domain

# Of the sets taken at random, the share that may be sets of an earlier choice.
_KNOWN_SHARE = 0.85


def find_parent_sets(
    domain: Domain,
    names: Sequence[str],
    limit: float,
    *,
    max_sets: int | None = None,
    seed: int = 0,
    known: Sequence[Clique] = (),
) -> list[Clique]:
    """All maximal sets of at most `limit` cells; if more than `max_sets`, that many at random.

    A random set comes from taking attributes in a random order and leaving out what does not fit:
    no data is looked at, and the same seed gives the same sets. If nothing fits, the only set is
    the empty one.

    - `known`: sets that were taken at random before, from fewer names: the last of them are most
      of those taken now. Their tables were counted already, which takes most of the time.
    """
    if limit < 1.0:
        return [()]
    sets = list(
        islice(_enumerate_sets(domain, names, limit), None if max_sets is None else max_sets + 1)
    )
    if max_sets is not None and len(sets) > max_sets:
        kept = list(known[-max(1, int(_KNOWN_SHARE * max_sets)) :])
        fresh = _sample_sets(domain, names, limit, max_sets - len(kept), seed)
        return list(dict.fromkeys([*kept, *fresh])) or [()]
    return [domain.canonical(each) for each in sets] or [()]


def _enumerate_sets(domain: Domain, names: Sequence[str], limit: float) -> Iterator[Clique]:
    """All maximal sets, found by adding each attribute or leaving it out, small ones first."""
    ordered = sorted(names, key=lambda name: (domain[name], domain.positions[name]))
    sizes = [domain[name] for name in ordered]
    # The cells of all attributes from an index on; beyond the limit, the number does not matter.
    rest = [1.0] * (len(sizes) + 1)
    for index in range(len(sizes) - 1, -1, -1):
        rest[index] = min(rest[index + 1] * sizes[index], 2.0 * limit)

    def extend(index: int, cells: int, chosen: Clique, least_left_out: float) -> Iterator[Clique]:
        if index == len(sizes) or cells * sizes[index] > limit:
            left_out = min([least_left_out, *sizes[index : index + 1]])
            if cells * left_out > limit:
                yield chosen
            return
        yield from extend(
            index + 1, cells * sizes[index], (*chosen, ordered[index]), least_left_out
        )
        left_out = min(least_left_out, sizes[index])
        if cells * rest[index + 1] * left_out > limit:  # otherwise it fits after all
            yield from extend(index + 1, cells, chosen, left_out)

    yield from extend(0, 1, (), math.inf)


def _sample_sets(
    domain: Domain, names: Sequence[str], limit: float, max_sets: int, seed: int
) -> list[Clique]:
    rng = np.random.default_rng(seed)
    sizes = {name: domain[name] for name in names}
    sets: dict[Clique, None] = {}
    for _ in range(2 * max_sets):
        cells, chosen = 1, []
        for index in rng.permutation(len(names)).tolist():
            name = names[index]
            if cells * sizes[name] <= limit:
                cells *= sizes[name]
                chosen.append(name)
        sets[domain.canonical(chosen)] = None
        if len(sets) == max_sets:
            break
    return list(sets)
