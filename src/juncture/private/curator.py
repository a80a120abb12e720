"""The curator: the only access to private counts.

A curator holds a source, a ledger and, through the ledger, the neighbour relation. It gives noisy
answers and private choices, each paid for in the ledger before its noise is drawn, and nothing
else: no rows, no exact counts. It takes no seed.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.engine.compiled.loader import load_routines
from juncture.errors import InvalidInput, JunctureError, NotPublic
from juncture.privacy import score_units
from juncture.privacy.accounting import Cost, Neighbours, draw_slack
from juncture.privacy.budget import Budget
from juncture.privacy.events import Entry, Event
from juncture.privacy.guarantee import Guarantee
from juncture.privacy.lattice import MAX_UNITS, round_to_lattice
from juncture.privacy.ledger import Ledger, Ticket
from juncture.privacy.price import Price
from juncture.privacy.request import Request, describe_query, table_domain
from juncture.privacy.score import SCORES, BoundScore, Score, Setting, counting_operator
from juncture.privacy.threshold import Threshold
from juncture.private.journal import Journal, Outcome
from juncture.private.noise import ExactSampler, Integers, Sampler
from juncture.private.selection import (
    check_draws,
    choose_fitting,
    choose_many,
    draw_exponents,
    score_in_units,
)
from juncture.private.sources.kept_counts import KeptCounts
from juncture.private.sources.source import Source
from juncture.tables.columns import OpenCategorical
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.person import Person
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Operator, Query, bind
from juncture.tables.schema import Schema

Candidate = TypeVar("Candidate")
# Smaller noise, in units of the lattice, is stated as this.
_MIN_STDDEV = 1e-6
# The largest scale of noise, in units of the lattice, that the samplers' integers hold.
_MAX_SCALE = 2.0**54


@dataclass(frozen=True)
class _Prepared:
    """A request with everything that follows from it without looking at the data."""

    request: Request
    query: Query
    operator: Operator
    binary_places: int
    """The binary places of the lattice on which all answers lie."""
    scale: float
    """The scale of the noise, in units of the lattice."""
    event: Event

    @property
    def unit(self) -> float:
        """The lattice's unit."""
        return 2.0**-self.binary_places

    def measurement(self, values: NDArray[np.float64]) -> Measurement:
        """The measurement with these noisy answers."""
        noise = self.request.price.noise
        stddev = max(noise.discrete_stddev(self.scale), _MIN_STDDEV) * self.unit
        return Measurement(
            self.request.clique, values, stddev=stddev, query=self.query, noise=noise
        )


class Curator:
    """Noisy answers and private choices about one table, paid for from one ledger.

    Privacy. `measure`: for a query with matrix Q, answers change between neighbouring tables by at
    most the sensitivity of Q under the ledger's neighbour relation (see `accounting`). Answers are
    exact multiples of the lattice's unit (see `lattice`), so noise on that lattice with scale
    sensitivity / epsilon is the discrete Laplace mechanism, epsilon-private (Ghosh, Roughgarden and
    Sundararajan 2009), and with stddev sensitivity / sqrt(2 rho) the discrete Gaussian mechanism,
    rho-zCDP (Canonne, Kamath and Steinke 2020). `select` and `select_many`: exponential mechanisms
    on a score that moves between neighbouring tables by at most the sensitivity that its class
    proves (see `selection`).
    `draw_queries` proves its own. Everything is paid for before the data is looked at, and costs
    compose in the ledger.

    >>> from tempfile import TemporaryDirectory
    >>> from juncture.privacy import Budget, Pure
    >>> from juncture.private.sources.source import CodedTable
    >>> source = CodedTable(Domain({"sex": 2}), {"sex": [0, 1, 1]})
    >>> with TemporaryDirectory() as folder:
    ...     curator = Curator(source, Ledger.create(f"{folder}/people.ledger", Budget(epsilon=1)))
    ...     measurement = curator.measure(["sex"], Pure(0.25))
    ...     measurement.n_rows, curator.ledger.remaining
    (2, 0.75)
    """

    def __init__(self, source: Source, ledger: Ledger, journal: Journal | None = None) -> None:
        """A curator of a source; a journal keeps its outcomes, and gives those that it has."""
        if not source.is_public:
            raise NotPublic.of_draft("source.schema")
        _refuse_other_person(source, ledger)
        refuse_private_number(source.schema, ledger.neighbours)
        if journal is not None:
            journal.refuse_other_ledger(ledger)
        load_routines()  # before anything is paid: compiling takes long, and may be interrupted
        self._source, self._ledger, self._journal = KeptCounts(source), ledger, journal
        self._sampler: Sampler = ExactSampler()
        self._events: list[Entry] = []
        self._ticket: Ticket | None = None
        self._holds_price = False
        self._day = dt.datetime.now(dt.UTC).date().isoformat()

    def with_source(self, source: Source) -> Curator:
        """A curator of the same table under another schema; it goes on with this one's events."""
        other = copy(self)
        if not source.is_public:
            raise NotPublic.of_draft("source.schema")
        _refuse_other_person(source, self._ledger)
        other._source = KeptCounts(source)
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.domain)} attributes, {self._ledger!r})"

    @property
    def domain(self) -> Domain:
        """The attributes with their sizes; public."""
        return self._source.domain

    @property
    def schema(self) -> Schema | None:
        """What the columns may hold, if the source has a schema; public."""
        return self._source.schema

    @property
    def ledger(self) -> Ledger:
        """Where spending is recorded."""
        return self._ledger

    @property
    def events(self) -> tuple[Entry, ...]:
        """What was paid for through this curator alone, in order.

        Its time is the day on which the curator was opened. The ledger has the time to the second,
        which tells how long the exact counting before it took; so it stays there.
        """
        return tuple(entry.publish() for entry in self._events)

    @property
    def guarantee(self) -> Guarantee:
        """What all answers of this curator promise together."""
        return self.guarantee_since(0, self._ledger.budget)

    def guarantee_since(self, n_earlier: int, budget: Budget) -> Guarantee:
        """What the answers after the first so many events promise, under a budget of their own."""
        last = self._events[-1].hash if len(self._events) > n_earlier else None
        return Guarantee(self.events[n_earlier:], self.neighbours, budget, ledger_hash=last or None)

    @property
    def neighbours(self) -> Neighbours:
        """Which tables count as neighbours."""
        return self._ledger.neighbours

    @property
    def public_n_records(self) -> int | None:
        """The number of records if it is public; None when neighbours differ in it."""
        if self.neighbours.n_records_is_public:
            return self._source.exact_n_records
        return None

    def measure(
        self, clique: Iterable[str], price: Price, query: Query | None = None
    ) -> Measurement:
        """Noisy answers of a query on a clique; without a query, of every count.

        The price decides the noise: `Pure(epsilon)` buys Laplace noise, `ZCDP(rho)` Gaussian. The
        measurement states the noise that was used and the query that was measured: entries that are
        not short binary fractions are rounded to such fractions.
        """
        return self.measure_all([Request(names_of(clique), price, query)])[0]

    def measure_all(self, requests: Sequence[Request]) -> list[Measurement]:
        """Several measurements, counted together; all are paid for before the data is read."""
        prepared = [self._prepare(request) for request in requests]
        if not prepared:
            return []

        def answer() -> Outcome:
            tables = self._source.exact_counts([each.request.clique for each in prepared])
            pairs = zip(prepared, tables, strict=True)
            return [self._noisy_answers(each, table) for each, table in pairs]

        outcome = self._access([each.event for each in prepared], answer)
        return [each.measurement(values) for each, values in zip(prepared, outcome, strict=True)]

    def select(
        self,
        score: Score[Candidate],
        price: Price,
        fits: Callable[[Candidate], bool] | None = None,
    ) -> Candidate:
        """A candidate with a high score, by the exponential mechanism.

        - `score`: one of `juncture.privacy.score`: only those are trusted with exact counts.
        - `fits`: says which candidates may be chosen, at least one. The choice is among those, but
          few of them are tested (see `selection.choose_fitting`). It must depend on public facts
          alone, and must tell nobody what it was asked: only the chosen candidate is paid for.
        """
        bound = self._bind(score)
        parameters = {"candidates": bound.n_candidates}
        event = Event(score.describe(), "exponential mechanism", price.selection_cost, parameters)

        def choose() -> Outcome:
            scores = score_in_units(bound, self._source.exact_counts(bound.cliques))
            if fits is None:
                index = scores.select(self._sampler, price)
            else:
                test = fits
                index = choose_fitting(
                    self._sampler, scores, price, lambda i: test(score.candidate(i))
                )
            return [np.array([index], dtype=np.float64)]

        ((index,),) = self._access([event], choose)
        return score.candidate(int(index))

    def select_many(
        self, score: Score[Candidate], k: int, price: Price, *, floor: float | None = None
    ) -> list[Candidate]:
        """The k candidates of k choices, one after another, each among those that are left.

        All scores are computed once. Each choice is an exponential mechanism for a share 1 / k of
        the price, among candidates that the earlier outcomes determine: by adaptive composition
        all cost k times what one does. The ledger has one event.

        With a `floor` there may be fewer: choosing ends as if a candidate with this score, the same
        on every table, were chosen. What the choices that are left out would cost is not given
        back.
        """
        bound = self._bind(score)
        if not 1 <= k <= bound.n_candidates:
            raise InvalidInput(
                f"`k` must be between 1 and the number of candidates, {bound.n_candidates}; got "
                f"{k}."
            )
        if floor is not None and not abs(floor) <= score_units.MAX_SCORE:
            raise InvalidInput(
                f"`floor` must be a number of at most {score_units.MAX_SCORE:g}; got {floor}."
            )
        share = price.share(1.0 / k)
        each = share.selection_cost
        cost = Cost(epsilon=k * each.epsilon, rho=k * each.rho)
        parameters = {"candidates": bound.n_candidates, "draws": k}
        event = Event(f"{k} times {score.describe()}", "exponential mechanism", cost, parameters)

        def choose() -> Outcome:
            scores = score_in_units(bound, self._source.exact_counts(bound.cliques))
            return [choose_many(self._sampler, scores, k, share, floor).astype(np.float64)]

        (indices,) = self._access([event], choose)
        return [score.candidate(int(index)) for index in indices]

    def find_values(self, name: str, threshold: Threshold) -> tuple[list[str], Integers]:
        """The values of a column with private values that enough records have, and noisy counts.

        Values are counted where the table lies, and leave it in order, some at a time; each gets
        noise, and those below the threshold are forgotten (see `juncture.privacy.threshold`).
        """
        column = None if self.schema is None else self.schema.columns.get(name)
        if not isinstance(column, OpenCategorical):
            raise InvalidInput(f"`name` must be a column with private values; got {name!r}.")
        if threshold != Threshold.of(threshold.price, threshold.delta, self.neighbours):
            raise InvalidInput(
                f"`threshold` must be that of its price and of what the ledger protects "
                f"({self.neighbours}); got another. Make it by Threshold.of."
            )
        parameters = {"scale": threshold.scale, "threshold": threshold.value}
        what = f"values of {name} above a threshold"
        event = Event(what, "discrete gaussian with a threshold", threshold.cost, parameters)

        def find() -> Outcome:
            values, counts = list[str](), list[int]()
            for texts, exact in self._source.exact_groups(name, threshold.least):
                noisy = self._sampler.add_noise(exact, Noise.GAUSSIAN, threshold.scale)
                for index in np.flatnonzero(noisy >= threshold.value).tolist():
                    values.append(texts[index])
                    counts.append(int(noisy[index]))
            written = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
            return [np.array(counts, dtype=np.float64), written.astype(np.float64)]

        counts, written = self._access([event], find)
        return json.loads(written.astype(np.uint8).tobytes()), counts.astype(np.int64)

    def _bind(self, score: Score[Candidate]) -> BoundScore:
        """Check a score before it is paid for."""
        if type(score) not in SCORES:
            raise InvalidInput(
                f"`score` must be one of {', '.join(each.__name__ for each in SCORES)}; got "
                f"{type(score).__name__}. Add a new score to juncture.privacy.score, with a "
                "proof of its sensitivity."
            )
        bound = score.bind(Setting(self.domain, self.neighbours, self.public_n_records))
        if bound.n_candidates == 0:
            raise InvalidInput("`score` must have at least one candidate; got none.")
        return bound

    def draw_queries(
        self,
        queries: Sequence[tuple[Clique, Query]],
        satisfied: ArrayLike,
        *,
        n_earlier: int,
        eta: float,
        draws: int,
    ) -> Integers:
        """Draw queries that some synthetic records answer badly, for replaced records.

        `satisfied` says for each counting query how many of `n_earlier` records satisfy it. Query q
        is drawn with a probability proportional to exp(g), its complement to exp(-g), where g is
        eta times n_earlier times the query's true share of all n records, minus eta times
        `satisfied`. The result holds the indices of `draws` independent draws; complements come
        after all queries. A replaced record moves g by at most eta n_earlier / n, so each draw is
        an exponential mechanism with twice that for its epsilon. Draws are exact for weights that
        are correct to some digits (see `score_units.draw`); `draw_slack` is added to each draw's
        epsilon for that.
        """
        n_records = self.public_n_records
        if not n_records:
            raise InvalidInput(
                "`neighbours` must be those that replace one record, of at least one: shares are "
                "relative to the number of records, which no others have in common. Create the "
                "ledger with Neighbours.REPLACE, without a person."
            )
        cliques = [names_of(clique) for clique, _ in queries]
        operators = [
            counting_operator(self.domain, clique, query)
            for clique, (_, query) in zip(cliques, queries, strict=True)
        ]
        known = check_draws(operators, satisfied, n_earlier, eta, draws)
        epsilon = 2.0 * eta * n_earlier / n_records + draw_slack(eta, n_earlier)
        cost = Cost(epsilon=draws * epsilon, rho=draws * epsilon**2 / 8.0)
        what = f"{draws} draws from {2 * len(known)} queries"

        def draw() -> Outcome:
            pairs = zip(operators, self._source.exact_counts(cliques), strict=True)
            answers = np.concatenate([operator.apply(table.values) for operator, table in pairs])
            exponents = draw_exponents(answers / n_records, known, n_earlier, eta)
            drawn = self._sampler.draw(exponents, draws)
            return [drawn.astype(np.float64)]

        event = Event(what, "exponential mechanism", cost, {"eta": eta, "round": n_earlier})
        (drawn,) = self._access([event], draw)
        return drawn.astype(np.int64)

    def _access(self, events: Sequence[Event], look: Callable[[], Outcome]) -> Outcome:
        """Pay, look at the data, and keep the outcome: in this order, or from the journal."""
        journal = self._journal
        if journal is None:
            self._keep(self._ledger.spend(*events, ticket=self._ticket))
            return look()
        known = journal.replay(events)
        if known is not None:
            self._events += known[0]
            return known[1]
        if self._ticket is None:
            self._ticket = self._begin((), "")
        entries = self._keep(journal.pay(self._ledger, events, self._ticket))
        outcome = look()
        journal.record(entries, outcome)
        return outcome

    def _keep(self, entries: Sequence[Entry]) -> list[Entry]:
        """Take in what was paid; its day is that of this curator, whatever the counting took."""
        dated = [replace(entry, time=self._day) for entry in entries]
        self._events += dated
        return dated

    @contextmanager
    def reserve(self, costs: Sequence[Cost], what: str) -> Iterator[None]:
        """Hold the price of a whole run in the ledger while it works; refuses one it cannot pay.

        When the work is done, the run ends in the ledger, and what was not used is given back; only
        then may its result be seen. If it fails, the price is given back too, unless there is a
        journal with something in it: then it stays reserved for those who resume the run.
        """
        # Everything was paid and drawn: its outcomes may be used again. Or this run is part of one
        # whose price is held.
        if self._has_ended() or self._holds_price:
            yield
            return
        self._ticket, self._holds_price = self._begin(costs, what), True
        try:
            yield
        except BaseException:
            with suppress(JunctureError, OSError):  # what cannot be given back stays visible
                self._give_back(self._ticket)
            raise
        else:
            self._ledger.end(self._ticket)
        finally:
            self._ticket, self._holds_price = None, False

    def _begin(self, costs: Sequence[Cost], what: str) -> Ticket:
        journal = self._journal
        ticket = Ticket(secrets.token_hex(8), "") if journal is None else journal.claim()
        earlier = () if journal is None else journal.claims
        self._ledger.begin(ticket, costs, what=what, earlier_claims=earlier)
        return ticket

    def _give_back(self, ticket: Ticket) -> None:
        """Give back what a run that failed holds, unless it can go on where it was."""
        if self._journal is None:
            self._ledger.end(ticket)
        elif not self._ledger.entries_of(ticket.tag):
            self._ledger.give_back(ticket.tag)

    def _has_ended(self) -> bool:
        return self._journal is not None and self._ledger.has_ended(self._journal.tag)

    def _prepare(self, request: Request) -> _Prepared:
        subdomain, price = table_domain(self.domain, request.clique), request.price
        query, places = round_to_lattice(request.query or Identity(), subdomain)
        operator = bind(query, subdomain)
        scale = price.scale(price.lattice_sensitivity(operator, self.neighbours, places))
        if scale > _MAX_SCALE:
            raise InvalidInput(
                f"`price` must buy noise of a scale below {_MAX_SCALE:g} units; got {scale:g}. "
                "Pay more, or divide the query by a power of two."
            )
        self._sampler.refuse_unknown(price.noise)
        purpose = f"{request.purpose}: " if request.purpose else ""
        what = f"{purpose}{describe_query(query)} of {', '.join(subdomain) or 'all records'}"
        parameters = {"scale": scale * 2.0**-places, "answers": operator.n_rows}
        event = Event(what, f"discrete {price.noise}", price.cost, parameters)
        return _Prepared(request, query, operator, places, scale, event)

    def _noisy_answers(self, each: _Prepared, table: Factor) -> NDArray[np.float64]:
        # Answers beyond what doubles hold exactly count as the limit. Clipping the answers of two
        # neighbouring tables at the same limit does not move them apart.
        answers = each.operator.apply(table.values) * 2.0**each.binary_places
        units = np.round(np.clip(answers, -MAX_UNITS, MAX_UNITS)).astype(np.int64)
        noisy = self._sampler.add_noise(units, each.request.price.noise, each.scale)
        return np.asarray(noisy.astype(np.float64) * each.unit)


def refuse_private_number(schema: Schema | None, neighbours: Neighbours) -> None:
    """Refuse rules that set rows aside where the number of records would have to be public.

    A replaced record may break a rule where the one before did not: the counted ones become fewer.
    """
    if schema is not None and schema.sets_rows_aside and neighbours.n_records_is_public:
        raise InvalidInput(
            f"`neighbours` must not be those that {neighbours} where a [[rule]] has broken = "
            '"set aside": how many records are left is private. Use those that add or remove one, '
            'or write broken = "error".'
        )


def _refuse_other_person(source: Source, ledger: Ledger) -> None:
    """Refuse a source whose rows were not limited for what the ledger protects.

    A ledger about persons needs it. One about records must not have it: a record more may push
    another one of its person out, so that two change.
    """
    limited, protected = source.person, ledger.neighbours.person
    if limited != protected:
        raise InvalidInput(
            f"`source` must count the rows of what its ledger protects ({ledger.neighbours}); got "
            f"rows {_describe_limit(limited)} for a ledger {_describe_limit(protected)}. Use the "
            "schema's [person] for both, or for neither."
        )


def _describe_limit(person: Person | None) -> str:
    if person is None:
        return "without a person"
    return f"of each {person.column!r}, at most {person.max_rows}"
