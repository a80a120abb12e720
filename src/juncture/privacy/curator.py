"""The only door between private counts and the world.

A curator holds a source, a ledger and, through the ledger, the neighbour relation. Whoever holds a
curator can have noisy answers and private choices, each paid for in the ledger before its noise is
drawn, and nothing else: it hands out no rows, no exact counts, and takes no seed.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.block import Identity
from juncture.data.source import Source
from juncture.domain import Clique, Domain, names_of
from juncture.errors import InvalidInput, NotPublic
from juncture.factor import Factor
from juncture.measurement import Measurement, Noise
from juncture.privacy import noise, score
from juncture.privacy.accounting import (
    Cost,
    Neighbours,
    gaussian_stddev,
    l1_sensitivity,
    l2_sensitivity,
    laplace_scale,
)
from juncture.privacy.lattice import COUNTING, MOST, on_lattice
from juncture.privacy.ledger import Event, Ledger
from juncture.privacy.request import Request, one_price, words
from juncture.query import Kron, Operator, Query, bind

Integers = NDArray[np.int64]
# Noise of less than this, in units of the lattice, is stated as this.
_LEAST_STDDEV = 1e-6
# The largest scale of noise, in units of the lattice, that the samplers' integers hold.
_MOST_SCALE = 2.0**54
_MOST_ATTRIBUTES = 32
_MOST_ROUNDS, _MOST_ETA = 100_000, 100.0
_DRAW_SLACK = 1e-9


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


class Door(ABC):
    """What every curator does; the noise itself is left to be said.

    Privacy. `measure`: for a query with matrix Q, answers change between neighbouring tables by at
    most the sensitivity of Q under the ledger's neighbour relation (see `accounting`). Answers are
    exact multiples of the lattice's unit (see `lattice`), so noise on that lattice with scale
    sensitivity / epsilon is the discrete Laplace mechanism, epsilon-private (Ghosh, Roughgarden and
    Sundararajan 2009), and with stddev sensitivity / sqrt(2 rho) the discrete Gaussian mechanism,
    rho-zCDP (Canonne, Kamath and Steinke 2020). `select_*`: see there. Costs compose in the ledger.
    """

    def __init__(self, source: Source, ledger: Ledger) -> None:
        if not source.is_public:
            raise NotPublic(
                "`source` must have a schema whose domains are public knowledge; got a draft made "
                "from the data. Go through it, then set confirmed_public = true in its file."
            )
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

    def select_by_marginal_error(
        self,
        answers: Mapping[Clique, ArrayLike],
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        penalties: Mapping[Clique, float] | None = None,
    ) -> Clique:
        """The clique whose marginal is far from a given answer, by the exponential mechanism.

        The score is the L1 distance between the true and the given marginal, less a penalty that
        does not depend on the data. One record more or less moves it by at most 1, a replaced
        record by at most 2 (one cell down, one up): by the triangle inequality.
        """
        cliques = [names_of(clique) for clique in answers]
        given = [
            self._answer(c, answer) for c, answer in zip(cliques, answers.values(), strict=True)
        ]
        sensitivity = 1.0 if self.neighbours is Neighbours.ADD_OR_REMOVE else 2.0
        less = score.given([0.0 if penalties is None else penalties[clique] for clique in answers])
        what = f"one of {len(cliques)} marginals, far from its answer"
        self._pay_selection(what, len(cliques), epsilon, rho)
        pairs = zip(self._source.exact_counts(cliques), given, less, strict=True)
        scores = [score.total(np.abs(f.values - answer)) - p for f, answer, p in pairs]
        return cliques[self._chosen(scores, sensitivity, epsilon, rho)]

    def select_by_query_error(
        self,
        clique_queries: Sequence[tuple[Clique, ArrayLike]],
        answers: ArrayLike,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
    ) -> int:
        """The place of a single counting query that is far from its given answer.

        Each query is a table of numbers from 0 to 1 over its clique; the score is the distance
        between its true and its given answer. One record more, less or replaced moves a counting
        query, and so the score, by at most 1.
        """
        given = score.given(answers)
        cliques = [names_of(clique) for clique, _ in clique_queries]
        rows = [
            self._counting_row(clique, row)
            for clique, (_, row) in zip(cliques, clique_queries, strict=True)
        ]
        if len(rows) != len(given):
            raise InvalidInput(
                f"`answers` must be a finite number for each of the {len(rows)} queries; got "
                f"{len(given)}. Answer every query."
            )
        what = f"one of {len(rows)} queries, far from its answer"
        self._pay_selection(what, len(rows), epsilon, rho)
        distinct = list(dict.fromkeys(cliques))
        tables = dict(zip(distinct, self._source.exact_counts(distinct), strict=True))
        scores = [
            abs(score.total(tables[clique].values * row) - answer)
            for clique, row, answer in zip(cliques, rows, given, strict=True)
        ]
        return self._chosen(scores, 1.0, epsilon, rho)

    def select_row_by_error(
        self,
        tasks: Sequence[tuple[Clique, Query]],
        answers: Sequence[ArrayLike],
        *,
        epsilon: float | None = None,
        rho: float | None = None,
    ) -> tuple[int, int]:
        """The task and the row of a single counting query that is far from its given answer.

        Every row of every task's query must hold zeros and ones alone; the score is the distance
        between its true and its given answer. One record more, less or replaced moves a counting
        query, and so the score, by at most 1.
        """
        operators = [self._counting_operator(clique, query) for clique, query in tasks]
        given = [score.given(answer) for answer in answers]
        pairs = list(zip(operators, given, strict=False))
        sound = len(operators) == len(given) and all(
            len(answer) == operator.n_rows for operator, answer in pairs
        )
        if not sound:
            raise InvalidInput(
                "`answers` must be a finite number for each row of each task; got others. "
                "Answer every query."
            )
        n_rows = sum(operator.n_rows for operator in operators)
        self._pay_selection(f"one of {n_rows} queries, far from its answer", n_rows, epsilon, rho)
        tables = self._source.exact_counts([names_of(clique) for clique, _ in tasks])
        scores = [
            np.abs(operator.apply(table.values) - answer)
            for (operator, answer), table in zip(pairs, tables, strict=True)
        ]
        place = self._chosen(np.concatenate(scores), 1.0, epsilon, rho)
        ends = np.cumsum([len(score) for score in scores])
        task = int(np.searchsorted(ends, place, side="right"))
        return task, place - int(ends[task] - len(scores[task]))

    def select_by_dependence(
        self,
        candidates: Sequence[tuple[str, Clique]],
        *,
        mutual_information: bool = False,
        epsilon: float | None = None,
        rho: float | None = None,
    ) -> int:
        """The place of an attribute with a set of others that it depends on, for replaced records.

        The score is half the L1 distance between the joint distribution of an attribute and its
        set and the product of their own distributions. With n records, replacing one moves the
        joint by at most 2 / n in L1 and each factor of the product by at most 2 / n, so the
        product by at most 4 / n: the score moves by at most (2 + 4) / (2 n) = 3 / n. Scores are
        taken times n, with a sensitivity of 3.

        Or the score is the mutual information in bits, which PrivBayes' authors show to move by at
        most (2 / n) log((n + 1) / 2) + ((n - 1) / n) log((n + 1) / (n - 1)), logarithms to base 2;
        times n here too. It tells more of strong dependences and needs far more budget.
        """
        n_records = self.public_n_records
        if n_records is None:
            raise InvalidInput(
                "`neighbours` must be those that replace one record: the score is relative to "
                "their number. Create the ledger so."
            )
        cliques = [(*self.domain.project(parents), child) for child, parents in candidates]
        what = f"one of {len(cliques)} dependences"
        kind = score.information if mutual_information else score.dependence
        moves = score.information_sensitivity(n_records) if mutual_information else 3.0
        self._pay_selection(what, len(cliques), epsilon, rho)
        scores = [kind(table, n_records) for table in self._source.exact_counts(cliques)]
        # These scores have fractions: their rounding errors are covered by a larger sensitivity.
        cells = max(self.domain.size_of(clique) for clique in cliques)
        rounding = 64.0 * max(1, n_records) * cells * 2.0**-52
        return self._chosen(scores, moves + 2.0**-score.PLACES + rounding, epsilon, rho)

    def draw_queries(
        self,
        tasks: Sequence[tuple[Clique, Query]],
        satisfied: ArrayLike,
        *,
        n_before: int,
        eta: float,
        draws: int,
    ) -> Integers:
        """Queries that some records answer badly, drawn independently, for replaced records.

        `satisfied` says for each counting query how many of `n_before` records satisfy it. Query q
        is drawn with a probability that goes as exp(g), its complement as exp(-g), where g is eta
        times n_before times the query's true share of all n records, less eta times `satisfied`;
        complements come after all queries. A replaced record moves g by at most
        eta n_before / n, so each draw is an exponential mechanism with twice that for its epsilon.
        Draws are exact for weights that are correct to fifteen digits (see `score.drawn`); a
        thousandth of a millionth is added to each draw's epsilon for that.
        """
        n_records = self.public_n_records
        if not n_records:
            raise InvalidInput(
                "`neighbours` must be those that replace one record, of at least one: shares are "
                "relative to their number. Create the ledger so."
            )
        operators = [self._counting_operator(names_of(c), query) for c, query in tasks]
        known = np.asarray(satisfied, dtype=np.float64).reshape(-1)
        if len(known) != sum(operator.n_rows for operator in operators):
            raise InvalidInput(
                f"`satisfied` must be a number for each query; got {len(known)}. Count them all."
            )
        sound = ((known >= 0) & (known <= n_before)).all() and 0 < n_before <= _MOST_ROUNDS
        if not (sound and 0.0 < eta <= _MOST_ETA and draws > 0):
            raise InvalidInput(
                "`satisfied`, `n_before`, `eta` and `draws` must be sound numbers; got others. "
                "Each record satisfies a query or does not."
            )
        epsilon = 2.0 * eta * n_before / n_records + _DRAW_SLACK
        cost = Cost(epsilon=draws * epsilon, rho=draws * epsilon**2 / 8.0)
        what = f"{draws} draws from {2 * len(known)} queries"
        self._ledger.spend(Event(what, "exponential mechanism", cost, {"eta": eta}))
        tables = self._source.exact_counts([names_of(clique) for clique, _ in tasks])
        pairs = zip(operators, tables, strict=True)
        answers = np.concatenate([operator.apply(table.values) for operator, table in pairs])
        exponents = eta * (n_before * (answers / n_records) - known)
        return self._draw(np.concatenate([exponents, -exponents]), draws)

    def _counting_operator(self, clique: Clique, query: Query) -> Operator:
        blocks = query.blocks.values() if isinstance(query, Kron) else [query]
        if not all(isinstance(block, COUNTING) for block in blocks):
            raise InvalidInput(
                f"`tasks` must be made of blocks of zeros and ones; got {words(query)}. Use "
                "Identity, Total, Prefix, Range, AllRanges, Subset or Buckets."
            )
        return bind(query, self.domain.project(clique))

    def _counting_row(self, clique: Clique, row: ArrayLike) -> NDArray[np.float64]:
        table = np.asarray(row, dtype=np.float64)
        shape = self._table_domain(clique).shape
        if table.shape != shape or not ((table >= 0) & (table <= 1)).all():
            raise InvalidInput(
                f"`clique_queries` must be tables of numbers from 0 to 1 with their clique's shape "
                f"{shape}; got shape {table.shape}. Divide a query by its largest entry."
            )
        return score.rounded(table)

    def _answer(self, clique: Clique, answer: ArrayLike | Factor) -> NDArray[np.float64]:
        part = self._table_domain(clique)
        if isinstance(answer, Factor):
            answer = answer.transpose(part).values
        table = np.asarray(answer, dtype=np.float64)
        if table.size != part.size or not np.isfinite(table).all():
            raise InvalidInput(
                f"`answers` must be {part.size} finite numbers for {part.attributes}; got "
                f"{table.size}. Project the model on the clique."
            )
        return score.given(table).reshape(part.shape)

    def _table_domain(self, clique: Clique) -> Domain:
        """The domain of a clique whose table can be made."""
        part = self.domain.project(clique)
        if len(part) > _MOST_ATTRIBUTES:
            raise InvalidInput(
                f"`clique` must have at most {_MOST_ATTRIBUTES} attributes; got {len(part)}. "
                "Measure smaller cliques."
            )
        return part

    def _pay_selection(
        self, what: str, n_candidates: int, epsilon: float | None, rho: float | None
    ) -> None:
        epsilon, rho = one_price(epsilon, rho)
        if n_candidates == 0:
            raise InvalidInput("`candidates` must not be empty; got none. Give at least one.")
        # The exponential mechanism at rho has the pure epsilon sqrt(8 rho) as well.
        cost = Cost.selection(math.sqrt(8.0 * rho)) if rho is not None else Cost.pure(epsilon or 0)
        parameters = {"candidates": n_candidates}
        self._ledger.spend(Event(what, "exponential mechanism", cost, parameters))

    def _chosen(
        self,
        scores: Sequence[float] | NDArray[np.float64],
        sensitivity: float,
        epsilon: float | None,
        rho: float | None,
    ) -> int:
        bounded = np.clip(np.asarray(scores, dtype=np.float64), -score.MOST_SCORE, score.MOST_SCORE)
        units = np.round(bounded * 2.0**score.PLACES).astype(np.int64)
        epsilon, rho = one_price(epsilon, rho)
        return self._select(units, math.ceil(sensitivity * 2**score.PLACES), epsilon, rho)

    def _prepared(self, request: Request) -> _Prepared:
        part = self._table_domain(request.clique)
        query, places = on_lattice(request.query or Identity(), part)
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
        units = np.round(np.clip(answers, -MOST, MOST)).astype(np.int64)
        noisy = self._add_noise(units, each.kind, each.scale)
        return Measurement(
            each.clique,
            noisy.astype(np.float64) * each.unit,
            stddev=max(discrete_stddev(each.kind, each.scale), _LEAST_STDDEV) * each.unit,
            query=each.query,
            noise=each.kind,
        )

    @abstractmethod
    def _add_noise(self, values: Integers, kind: Noise, scale: float) -> Integers:
        """The values with discrete noise of that kind."""

    @abstractmethod
    def _draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        """Places, each drawn with a probability that goes as the exponential of its exponent."""

    @abstractmethod
    def _select(
        self, scores: Integers, sensitivity: int, epsilon: float | None, rho: float | None
    ) -> int:
        """The place of a large score."""


class Curator(Door):
    """The door for releases: noise from OpenDP's exact samplers, seeded by the system."""

    def _add_noise(self, values: Integers, kind: Noise, scale: float) -> Integers:
        add = noise.discrete_laplace if kind is Noise.LAPLACE else noise.discrete_gaussian
        return add(values, scale)

    def _draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        return score.drawn(exponents, draws, secrets.randbelow)

    def _select(
        self, scores: Integers, sensitivity: int, epsilon: float | None, rho: float | None
    ) -> int:
        if rho is not None:
            return noise.exponential_choice(scores, sensitivity, rho)
        return noise.noisy_maximum(scores, sensitivity, epsilon or 0.0)


def discrete_stddev(kind: Noise, scale: float) -> float:
    """The standard deviation of discrete noise with that scale."""
    if kind is Noise.LAPLACE:
        return math.sqrt(2.0 * math.exp(-1.0 / scale)) / -math.expm1(-1.0 / scale)
    if scale > 10.0:  # the difference from the continuous one is below any double's precision
        return scale
    numbers = np.arange(-200, 201)
    weights = np.exp(-(numbers**2) / (2.0 * scale**2))
    return math.sqrt(float((weights * numbers**2).sum() / weights.sum()))


def _in_units(sensitivity: float, places: int) -> float:
    """A sensitivity in whole units of the lattice, rounded up."""
    units = sensitivity * 2.0**places
    nearest = round(units)
    return float(nearest if abs(units - nearest) <= 1e-6 else math.ceil(units))
