"""Noisy answers about private counts, each paid for before its noise is drawn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from juncture.errors import InvalidInput, NotPublic
from juncture.privacy.accounting import (
    Cost,
    Neighbours,
    gaussian_stddev,
    l1_sensitivity,
    l2_sensitivity,
    laplace_scale,
)
from juncture.privacy.lattice import MAX_UNITS, round_to_lattice
from juncture.privacy.ledger import Event, Ledger
from juncture.privacy.request import Request, words
from juncture.private.sources.source import Source
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Operator, Query, bind

Integers = NDArray[np.int64]
# Noise of less than this, in units of the lattice, is stated as this.
_LEAST_STDDEV = 1e-6
# The largest scale of noise, in units of the lattice, that the samplers' integers hold.
_MOST_SCALE = 2.0**54
_MOST_ATTRIBUTES = 32


@dataclass(frozen=True)
class _Prepared:
    """A request with everything that follows from it without looking at the data."""

    clique: Clique
    query: Query
    operator: Operator
    places: int
    kind: Noise
    scale: float
    """Of the noise on answers in units of the lattice."""
    event: Event

    @property
    def unit(self) -> float:
        """The lattice's unit."""
        return 2.0**-self.places


class Measuring(ABC):
    """What every curator measures; the noise itself is left to be said.

    Privacy. `measure`: for a query with matrix Q, answers change between neighbouring tables by at
    most the sensitivity of Q under the ledger's neighbour relation (see `accounting`). Answers are
    exact multiples of the lattice's unit (see `lattice`), so noise on that lattice with scale
    sensitivity / epsilon is the discrete Laplace mechanism, epsilon-private (Ghosh, Roughgarden and
    Sundararajan 2009), and with stddev sensitivity / sqrt(2 rho) the discrete Gaussian mechanism,
    rho-zCDP (Canonne, Kamath and Steinke 2020). Costs compose in the ledger.
    """

    def __init__(self, source: Source, ledger: Ledger) -> None:
        if not source.is_public:
            raise NotPublic.of_draft("source.schema")
        self._source, self._ledger = source, ledger

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes: public."""
        return self._source.domain

    @property
    def ledger(self) -> Ledger:
        """Where spending is recorded."""
        return self._ledger

    @property
    def neighbours(self) -> Neighbours:
        """Which tables an outcome must not tell apart."""
        return self._ledger.neighbours

    @property
    def public_n_records(self) -> int | None:
        """The number of records where it is public: None when neighbours differ in it."""
        if self.neighbours is Neighbours.REPLACE:
            return self._source.exact_n_records
        return None

    def measure(
        self,
        clique: Iterable[str],
        query: Query | None = None,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
    ) -> Measurement:
        """Noisy answers of a query on a clique: Laplace noise for an epsilon, Gaussian for a rho.

        The measurement states the noise that was really used, and the query that was really
        asked: entries that are not short binary fractions are rounded to such.
        """
        request = Request(clique=names_of(clique), query=query, epsilon=epsilon, rho=rho)
        return self.measure_all([request])[0]

    def measure_all(self, requests: Sequence[Request]) -> list[Measurement]:
        """Several measurements, counted together; all are paid for before any is taken."""
        prepared = [self._prepared(request) for request in requests]
        if not prepared:
            return []
        self._ledger.spend(*(each.event for each in prepared))
        tables = self._source.exact_counts([each.clique for each in prepared])
        pairs = zip(prepared, tables, strict=True)
        return [self._released(each, table) for each, table in pairs]

    def table_domain(self, clique: Clique) -> Domain:
        """The domain of a clique whose table can be made."""
        part = self.domain.project(clique)
        if len(part) > _MOST_ATTRIBUTES:
            raise InvalidInput(
                f"`clique` must have at most {_MOST_ATTRIBUTES} attributes; got {len(part)}. "
                "Measure smaller cliques."
            )
        return part

    def _prepared(self, request: Request) -> _Prepared:
        part = self.table_domain(request.clique)
        query, places = round_to_lattice(request.query or Identity(), part)
        operator = bind(query, part)
        if request.epsilon is not None:
            kind, cost = Noise.LAPLACE, Cost.pure(request.epsilon)
            units = _in_units(l1_sensitivity(operator, self.neighbours), places)
            scale = laplace_scale(units, request.epsilon)
        else:
            kind, cost = Noise.GAUSSIAN, Cost.concentrated(request.rho or 0.0)
            units = l2_sensitivity(operator, self.neighbours) * 2.0**places
            scale = gaussian_stddev(units, request.rho or 0.0)
        if scale > _MOST_SCALE:
            raise InvalidInput(
                f"`epsilon` or `rho` must buy noise of a scale below {_MOST_SCALE:g} units; got "
                f"{scale:g}. Pay more, or divide the query by a power of two."
            )
        parameters = {"scale": scale * 2.0**-places, "answers": operator.n_rows}
        what = f"{words(query)} of {', '.join(part) or 'all records'}"
        event = Event(what, f"discrete {kind}", cost, parameters)
        return _Prepared(request.clique, query, operator, places, kind, scale, event)

    def _released(self, each: _Prepared, table: Factor) -> Measurement:
        # Beyond what doubles hold exactly, answers count as the limit: nothing is said of them.
        # Cutting both of two neighbouring answers at a limit does not move them apart.
        answers = each.operator.apply(table.values) * 2.0**each.places
        units = np.round(np.clip(answers, -MAX_UNITS, MAX_UNITS)).astype(np.int64)
        noisy = self._add_noise(units, each.kind, each.scale)
        return Measurement(
            each.clique,
            noisy.astype(np.float64) * each.unit,
            stddev=max(each.kind.discrete_stddev(each.scale), _LEAST_STDDEV) * each.unit,
            query=each.query,
            noise=each.kind,
        )

    @abstractmethod
    def _add_noise(self, values: Integers, kind: Noise, scale: float) -> Integers:
        """The values with discrete noise of that kind."""


def _in_units(sensitivity: float, places: int) -> float:
    """A sensitivity in whole units of the lattice, rounded up."""
    units = sensitivity * 2.0**places
    nearest = round(units)
    return float(nearest if abs(units - nearest) <= 1e-6 else math.ceil(units))
