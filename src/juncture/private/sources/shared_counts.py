"""Which cliques to count together: one pass over the records serves all cliques of a union.

Unions grow greedily from the largest clique not yet covered, by the attribute that covers most of
the others for its size, and stay small enough to be counted quickly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from juncture.tables.domain import Clique, Domain
from juncture.tables.factor import Factor

# Tables of this many cells stay in a processor's cache while they are counted.
MAX_CELLS = 1 << 14


def count_cliques(
    domain: Domain,
    cliques: Iterable[Clique],
    count: Callable[[Domain], Factor],
    max_cells: int = MAX_CELLS,
) -> list[Factor]:
    """Count all cliques by counting unions of them; axes are in the order given."""
    subdomains = [domain.project(clique) for clique in cliques]
    distinct = dict.fromkeys(domain.canonical(subdomain) for subdomain in subdomains)
    tables: dict[Clique, Factor] = {}
    for union, served in find_unions(domain, distinct, max_cells):
        union_table = count(domain.project(union))
        tables |= {clique: union_table.project(clique) for clique in served}
    return [tables[domain.canonical(each)].transpose(each) for each in subdomains]


def find_unions(
    domain: Domain, cliques: Iterable[Clique], max_cells: int = MAX_CELLS
) -> list[tuple[Clique, list[Clique]]]:
    """Unions, each with the cliques that it serves; every clique is served once."""
    remaining = dict.fromkeys(cliques)
    unions = []
    while remaining:
        first = max(remaining, key=domain.size_of)
        union = set(first)
        while (name := _best_addition(domain, union, remaining, max_cells)) is not None:
            union.add(name)
        served = [clique for clique in remaining if union.issuperset(clique)]
        for clique in served:
            del remaining[clique]
        unions.append((domain.canonical(union), served))
    return unions


def _best_addition(
    domain: Domain, union: set[str], remaining: Iterable[Clique], max_cells: int
) -> str | None:
    """The attribute that adds most cliques for its size, if any fits."""
    room = max_cells // domain.size_of(union)
    gains: dict[str, int] = {}
    for clique in remaining:
        absent = [name for name in clique if name not in union]
        if len(absent) == 1 and domain[absent[0]] <= room:
            gains[absent[0]] = gains.get(absent[0], 0) + 1
    return max(gains, key=lambda n: gains[n] / math.log(domain[n] + 1), default=None)
