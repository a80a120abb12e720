"""A release as data stewards have them: many columns of every kind, most of them awkward."""

from __future__ import annotations

import datetime as dt
from functools import cache
from itertools import pairwise

import numpy as np

from juncture import (
    Boolean,
    Categorical,
    Date,
    Integer,
    Measurement,
    Number,
    Release,
    Schema,
    estimate,
)
from juncture.tables.columns import Column, Outside, Period

LONG = "Department of Public Health and Social Affairs, northern district, unit "
UNITS = tuple(f"{LONG}{number:02}" for number in range(40))
EDGES = (0.0, 1000.0, 5000.0, 20_000.0, 50_000.0, 100_000.0)
STDDEV, N_RECORDS = 12.0, 6000
FLAGS = tuple(f"flag_{number:02}" for number in range(22))


def make_schema() -> Schema:
    """Thirty columns: long labels, unequal bins, dates, missing and outside, one not measured."""
    columns: dict[str, Column] = {
        "unit": Categorical(values=UNITS, missing=True, outside=Outside.CODE),
        "income": Number(edges=EDGES, special=(0.0,), missing=True, outside=Outside.CODE),
        "height": Number.evenly(120.0, 210.0, bins=30),
        "age": Integer(low=0, high=99, missing=True),
        "born": Date(low=dt.date(1950, 1, 1), high=dt.date(1989, 12, 31), period=Period.YEAR),
        "admitted": Date(low=dt.date(2024, 1, 1), high=dt.date(2024, 12, 31), missing=True),
        "group": Integer(low=0, high=99, starts=(0, 5, 18, 65)),
        "eye colour": Categorical(values=("blue", "brown", "green")),
    }
    return Schema(columns | {name: Boolean() for name in FLAGS})


PAIRS = (
    ("unit", "income"),
    ("income", "height"),
    ("income", "group"),
    ("group", "age"),
    ("born",),
    ("admitted", FLAGS[0]),
    *pairwise(FLAGS),
)


@cache
def steward_release() -> Release:
    """The release, fitted to noisy counts of records that were made up."""
    schema, rng = make_schema(), np.random.default_rng(7)
    domain = schema.domain
    latent = rng.random(N_RECORDS)
    codes = {
        name: np.minimum(
            (size * rng.beta(1.0 + 6.0 * latent, 7.0 - 6.0 * latent)).astype(int), size - 1
        )
        for name, size in domain.items()
    }
    # A few units have nearly all records, and the alphabet knows nothing of it.
    weights = rng.permutation(0.75 ** np.arange(domain["unit"]))
    codes["unit"] = rng.choice(domain["unit"], N_RECORDS, p=weights / weights.sum())
    measurements = []
    for pair in PAIRS:
        table = np.zeros([domain[name] for name in pair])
        np.add.at(table, tuple(codes[name] for name in pair), 1.0)
        noisy = table.reshape(-1) + STDDEV * rng.standard_normal(table.size)
        measurements.append(Measurement(pair, noisy, stddev=STDDEV))
    fit = estimate(domain, measurements, total=float(N_RECORDS), tolerance=0.05)
    return Release(
        model=fit.model, measurements=measurements, fit=fit.summary, schema=schema, mechanism="mwem"
    )
