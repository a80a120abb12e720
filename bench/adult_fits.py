"""Fitting problems of Adult, which ships with the package."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from fit_problems import Array, FitProblem, Setting, counts

from juncture.private.samples import adult_codes, adult_domain

ADULT_RECORDS = 48_842.0
# Fifteen tables at epsilon 1.
LAPLACE_STDDEV = 2 * 15 / 1.0 * math.sqrt(2)


def adult_fit(
    cliques: list[list[str]],
    rounds: tuple[int, ...],
    stddev: float,
    noisy: Callable[[Array, float], Array],
) -> FitProblem:
    """Noisy counts of the records of Adult."""
    columns = dict(zip(adult_domain(), adult_codes().astype(np.int64).T, strict=True))
    domain = {name: size for name, size in adult_domain().items() if name != "education"}
    exact = np.concatenate([counts(columns, domain, clique) for clique in cliques])
    named = tuple(tuple(clique) for clique in cliques)
    return FitProblem(Setting(domain, named, stddev, ADULT_RECORDS, rounds), noisy(exact, stddev))
