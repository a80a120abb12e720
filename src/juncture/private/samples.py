"""The data set that ships with the package: Adult, coded as integers.

Adult (Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, 1996,
DOI 10.24432/C5XW20) is available under CC BY 4.0. The file `adult/ATTRIBUTION.md` next to
this module says how its values were coded, and `adult/schema.toml` describes that to programs.
"""

from __future__ import annotations

import io
import json
import tomllib
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from juncture.tables.schema import Schema
from juncture.tables.schema_toml import parse_schema

__all__ = ["adult_codes", "adult_domain", "adult_schema"]


def _read_adult(name: str) -> bytes:
    return (files("juncture.private") / "adult" / name).read_bytes()


def adult_domain() -> dict[str, int]:
    """The attributes of Adult and the number of codes of each.

    The order of the attributes is the order of the columns of `adult_codes`.

    >>> len(adult_domain()), adult_domain()["sex"]
    (15, 2)
    """
    domain = json.loads(_read_adult("domain.json"))
    return {str(name): int(size) for name, size in domain.items()}


def adult_codes() -> NDArray[np.uint8]:
    """The 48842 records of Adult, one row each, as a new array of codes.

    Column `j` belongs to the `j`-th attribute of `adult_domain`, and its codes run from 0 to that
    attribute's size minus one. The original test set comes first (16281 rows), then the training
    set (32561 rows).

    >>> adult_codes().shape
    (48842, 15)
    """
    with np.load(io.BytesIO(_read_adult("codes.npz")), allow_pickle=False) as archive:
        codes: NDArray[np.uint8] = archive["codes"]
    return codes


def adult_schema() -> Schema:
    """What the codes of `adult_codes` stand for: the data set's own words and numbers.

    It was written from the data set's description, so it is public knowledge. The bins of
    `fnlwgt`, `capital-gain` and `capital-loss` hold whole numbers.

    >>> adult_schema().codebook["sex"].labels
    ('Female', 'Male')
    """
    return parse_schema(tomllib.loads(_read_adult("schema.toml").decode("utf-8")))
