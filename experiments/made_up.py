"""Tables that are made up from a seed: what mechanisms choose is known beforehand.

`parities` has pairs that say nothing and triples that say everything, `flags` many columns of two
values that all depend on each other a little, `independent` nothing but single columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from juncture.tables.domain import Domain

Codes = NDArray[np.integer]

_N_RECORDS = 20_000


def make_parities() -> tuple[Domain, Codes]:
    """Twelve columns of two values: of every three, the third is the parity of the others."""
    rng = np.random.default_rng(0)
    columns = list[Codes]()
    for _ in range(4):
        one, two = rng.integers(0, 2, (2, _N_RECORDS))
        columns += [one, two, one ^ two]
    return _name(columns, [2] * len(columns))


def make_flags() -> tuple[Domain, Codes]:
    """Sixteen columns of two values, independent within each of six groups of records."""
    rng = np.random.default_rng(1)
    shares = rng.beta(0.5, 1.0, (6, 16))
    groups = rng.choice(6, _N_RECORDS, p=rng.dirichlet(np.full(6, 2.0)))
    return _name(list((rng.random((_N_RECORDS, 16)) < shares[groups]).astype(int).T), [2] * 16)


def make_independent() -> tuple[Domain, Codes]:
    """Twelve columns of two to eleven values that have nothing to do with each other."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(2, 12, 12).tolist()
    columns = [rng.choice(k, _N_RECORDS, p=rng.dirichlet(np.ones(k))) for k in sizes]
    return _name(columns, sizes)


def _name(columns: list[Codes], sizes: list[int]) -> tuple[Domain, Codes]:
    return Domain({f"x{i}": size for i, size in enumerate(sizes)}), np.array(columns).T


MADE_UP = {"parities": make_parities, "flags": make_flags, "independent": make_independent}
