"""Measurements: noisy answers to a query on the table of a clique."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture._util.text import count_noun, list_names
from juncture.errors import InvalidInput
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.noise import Noise, find_noise
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Operator, Query, bind

Array = NDArray[np.float64]
# Squares of numbers up to this, and of what is left when one is divided by it, are finite doubles.
_MAX_NUMBER = 1e90


@dataclass(frozen=True, eq=False, init=False)
class Measurement:
    """Noisy answers to a query on a clique: what a model is fitted to.

    - `clique`: attribute names, in any order.
    - `values`: the noisy answers.
    - `stddev`: the standard deviation of the noise, one for all answers or one for each. Laplace
      noise of scale b has standard deviation b times the square root of 2.
    - `query`: acts on the clique's table, with axes in the clique's order; by default, it gives
      every cell.
    - `noise`: the kind of noise, `"gaussian"` or `"laplace"`.

    >>> Measurement(("sex",), [3.1, 5.9], stddev=1.0)
    Measurement(2 answers on sex; gaussian noise of stddev 1)
    """

    clique: Clique
    values: Array
    stddev: Array
    query: Query
    noise: Noise

    def __init__(
        self,
        clique: Iterable[str],
        values: ArrayLike,
        *,
        stddev: ArrayLike,
        query: Query | None = None,
        noise: str | Noise = Noise.GAUSSIAN,
    ) -> None:
        answers = _to_numbers(values, "values").reshape(-1)
        object.__setattr__(self, "clique", names_of(clique))
        object.__setattr__(self, "values", _check_finite(answers))
        object.__setattr__(self, "stddev", _check_stddev(stddev, len(answers)))
        object.__setattr__(self, "query", Identity() if query is None else query)
        object.__setattr__(self, "noise", find_noise(noise))

    def __repr__(self) -> str:
        low, high = self.stddev.min(initial=np.inf), self.stddev.max(initial=0.0)
        spread = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        answers = count_noun(self.n_rows, "answer")
        on = list_names(self.clique) or "the total"
        return f"Measurement({answers} on {on}; {self.noise} noise of stddev {spread})"

    @property
    def n_rows(self) -> int:
        """The number of answers."""
        return len(self.values)

    def operator(self, domain: Domain) -> Operator:
        """The query on this clique of the domain; refuses a clique or values that do not fit."""
        domain.canonical(self.clique)
        operator = bind(self.query, domain.project(self.clique))
        if operator.n_rows != self.n_rows:
            raise InvalidInput(
                f"`values` must have {operator.n_rows} entries, one for each answer of the query "
                f"on {self.clique}; got {self.n_rows}."
            )
        return operator


def _to_numbers(values: ArrayLike, argument: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"`{argument}` must be numbers, in a list or an array; got something else."
        ) from None


def _check_finite(values: Array) -> Array:
    if not np.isfinite(values).all():
        raise InvalidInput(
            "`values` must be finite; got not-a-number or infinity. "
            "Leave out the answers that are missing, with their rows of the query."
        )
    if (np.abs(values) > _MAX_NUMBER).any():
        raise InvalidInput(
            f"`values` must be at most {_MAX_NUMBER:g}: squares of larger numbers overflow; got "
            f"{np.abs(values).max():g}. Count in a larger unit."
        )
    return values


def _check_stddev(stddev: ArrayLike, n_rows: int) -> Array:
    scales = _to_numbers(stddev, "stddev")
    if scales.shape not in ((), (n_rows,)):
        raise InvalidInput(
            f"`stddev` must be one number or {n_rows}, one for each value; got shape "
            f"{scales.shape}."
        )
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise InvalidInput(
            f"`stddev` must be positive and finite; got {scales.min()}. "
            "Give an exact answer a small standard deviation instead of none."
        )
    if not ((scales >= 1.0 / _MAX_NUMBER) & (scales <= _MAX_NUMBER)).all():
        raise InvalidInput(
            f"`stddev` must lie between {1.0 / _MAX_NUMBER:g} and {_MAX_NUMBER:g}: squares of "
            f"others overflow; got {scales.min():g} to {scales.max():g}. Count in another unit."
        )
    return scales
