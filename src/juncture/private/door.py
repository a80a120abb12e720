"""What may be asked of a curator: noisy answers, and private choices."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.privacy import score
from juncture.privacy.accounting import DRAW_SLACK, Cost, Neighbours
from juncture.privacy.lattice import COUNTING
from juncture.privacy.ledger import Event
from juncture.privacy.request import one_price, words
from juncture.privacy.score import Dependence
from juncture.private.measuring import Integers, Measuring
from juncture.tables.domain import Clique, names_of
from juncture.tables.factor import Factor
from juncture.tables.queries.products import Kron, Operator, Query, bind

_MOST_ROUNDS, _MOST_ETA = 100_000, 100.0


class Door(Measuring):
    """Measuring, and choosing by named scores whose sensitivities are proved where they stand.

    Privacy. Each choice is an exponential mechanism on a score that moves between neighbouring
    tables by at most the sensitivity that the method's docstring proves; it is paid for before the
    data is looked at, and costs compose in the ledger.
    """

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
        less = score.validate(
            [0.0 if penalties is None else penalties[clique] for clique in answers]
        )
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
        given = score.validate(answers)
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
        given = [score.validate(answer) for answer in answers]
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
        by: Dependence = Dependence.DISTANCE,
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

        Or, for attributes of two values alone, it is minus half the L1 distance between the joint
        distribution and the nearest one in which the set decides the attribute and both its values
        are as likely. A replaced record moves the joint by at most 2 / n in L1, so the distance to
        any fixed distribution, and to the nearest, by as much: the score by 1 / n, times n here.
        """
        n_records = self.public_n_records
        if n_records is None:
            raise InvalidInput(
                "`neighbours` must be those that replace one record: the score is relative to "
                "their number. Create the ledger so."
            )
        if by is Dependence.FIT and any(self.domain[child] != 2 for child, _ in candidates):
            raise InvalidInput(
                "`by` must be another score for attributes of more than two values; got the fit "
                "to a deciding set. Choose by distance or by information."
            )
        cliques = [(*self.domain.project(parents), child) for child, parents in candidates]
        what = f"one of {len(cliques)} dependences"
        moves = score.sensitivity(by, n_records)
        self._pay_selection(what, len(cliques), epsilon, rho)
        tables = self._source.exact_counts(cliques)
        scores = [score.dependence(table, n_records, by) for table in tables]
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
        epsilon = 2.0 * eta * n_before / n_records + DRAW_SLACK
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
        shape = self.table_domain(clique).shape
        if table.shape != shape or not ((table >= 0) & (table <= 1)).all():
            raise InvalidInput(
                f"`clique_queries` must be tables of numbers from 0 to 1 with their clique's shape "
                f"{shape}; got shape {table.shape}. Divide a query by its largest entry."
            )
        return score.round_to_unit(table)

    def _answer(self, clique: Clique, answer: ArrayLike | Factor) -> NDArray[np.float64]:
        part = self.table_domain(clique)
        if isinstance(answer, Factor):
            answer = answer.transpose(part).values
        table = np.asarray(answer, dtype=np.float64)
        if table.size != part.size or not np.isfinite(table).all():
            raise InvalidInput(
                f"`answers` must be {part.size} finite numbers for {part.attributes}; got "
                f"{table.size}. Project the model on the clique."
            )
        return score.validate(table).reshape(part.shape)

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
        bounded = np.clip(np.asarray(scores, dtype=np.float64), -score.MAX_SCORE, score.MAX_SCORE)
        units = np.round(bounded * 2.0**score.PLACES).astype(np.int64)
        epsilon, rho = one_price(epsilon, rho)
        return self._select(units, math.ceil(sensitivity * 2**score.PLACES), epsilon, rho)

    @abstractmethod
    def _draw(self, exponents: NDArray[np.float64], draws: int) -> Integers:
        """Places, each drawn with a probability that goes as the exponential of its exponent."""

    @abstractmethod
    def _select(
        self, scores: Integers, sensitivity: int, epsilon: float | None, rho: float | None
    ) -> int:
        """The place of a large score."""
