"""Scores for private selection, each with its sensitivity and the proof of it.

A score says how good each of several candidates is, from exact counts. `curator.select(score,
price)` chooses a good one by the exponential mechanism and pays for it before it looks at the data.
A score is checked when it is bound to a curator's domain, before it is paid for: a mistake costs
nothing.

    score = MarginalError({("age", "sex"): model.project(("age", "sex")), ...})
    clique = curator.select(score, Pure(0.1))

The curator gives exact counts only to the scores of this module: a new score is added here, with
its proof.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from juncture.errors import InvalidInput
from juncture.privacy import score_units
from juncture.privacy.accounting import Neighbours
from juncture.privacy.dependence import Dependence
from juncture.privacy.lattice import COUNTING
from juncture.privacy.request import describe_query, table_domain
from juncture.tables.domain import Clique, Domain, names_of
from juncture.tables.factor import Factor
from juncture.tables.queries.blocks import Identity
from juncture.tables.queries.products import Kron, Operator, Query, bind

Array = NDArray[np.float64]
Candidate = TypeVar("Candidate")
_MAX_WEIGHT = 2.0**20
_EVERY_COUNT = Identity()


@dataclass(frozen=True)
class Setting:
    """What a score may know before anything is paid; all of it is public."""

    domain: Domain
    neighbours: Neighbours
    n_records: int | None
    """The number of records if it is public; None when neighbours differ in it."""


@dataclass(frozen=True)
class BoundScore:
    """A score that fits a setting: which counts it needs, and how it rates candidates by them."""

    cliques: Sequence[Clique]
    sensitivity: float
    """The most that the score of any candidate differs between neighbouring tables."""
    n_candidates: int
    evaluate: Callable[[Sequence[Factor]], Array]
    """The score of every candidate, from the exact counts of the cliques."""


class Score(ABC, Generic[Candidate]):
    """How good each candidate is; higher is better. See `juncture.privacy.score`.

    >>> score: Score[Clique] = MarginalError({("age",): [5, 5], ("sex",): [4, 6]})
    >>> score.candidate(1), score.describe()
    (('sex',), 'one of 2 marginals, far from its answer')
    """

    @abstractmethod
    def bind(self, setting: Setting) -> BoundScore:
        """Check the score in a setting. The docstring of every class proves its sensitivity."""

    @abstractmethod
    def candidate(self, index: int) -> Candidate:
        """The candidate with that index."""

    @abstractmethod
    def describe(self) -> str:
        """What is chosen: a short text for the ledger."""


class MarginalError(Score[Clique]):
    """How far the table of a clique is from a given answer, in L1.

    The score of clique r is weights[r] * (|counts - answers[r]|_1 - penalties[r]). Penalties and
    weights must not depend on the data; by default they are 0 and 1. Where `queries` has one for a
    clique, it stands for the counts; each record must be in at most one of its answers.

    >>> setting = Setting(Domain({"sex": 2}), Neighbours.ADD_OR_REMOVE, None)
    >>> bound = MarginalError({("sex",): [5.0, 5.0]}).bind(setting)
    >>> bound.sensitivity, bound.evaluate([Factor(setting.domain, [7.0, 4.0])])
    (1.0, array([3.]))

    Sensitivity. One record more or less moves one cell of the counts by 1, a replaced record one
    cell down and one up; a person with up to k counted rows moves the counts by k, or 2 k, in L1
    (`Neighbours.count_moves`). By the triangle inequality the distance moves by at most that, and
    the score by at most that times the largest weight. Answers of a query with zeros and ones, at
    most one of them in a column, are sums of disjoint counts, and move by no more than all counts
    do. Counts and answers are multiples of a
    unit, so distances are exact; a product with a weight is rounded, by at most 2^-22 below the
    limit of a score, and then to the unit, by half of 2^-20. Both may happen on each of two
    neighbouring tables: 2^-19 is added where there are weights.
    """

    def __init__(
        self,
        answers: Mapping[Clique, ArrayLike | Factor],
        *,
        penalties: Mapping[Clique, float] | None = None,
        weights: Mapping[Clique, float] | None = None,
        queries: Mapping[Clique, Query] | None = None,
    ) -> None:
        self._cliques = [names_of(clique) for clique in answers]
        self._answers = list(answers.values())
        asked = queries or {}
        self._queries = [asked.get(clique, _EVERY_COUNT) for clique in answers]
        zeros = [0.0 if penalties is None else penalties[clique] for clique in answers]
        self._penalties = score_units.validate(zeros)
        self._weights = None if weights is None else _check_weights([weights[c] for c in answers])

    def bind(self, setting: Setting) -> BoundScore:
        """See the class for the sensitivity."""
        each = zip(self._cliques, self._queries, self._answers, strict=True)
        pairs = [_bind_answer(setting.domain, *one) for one in each]
        operators, given = [operator for operator, _ in pairs], [answer for _, answer in pairs]
        # One array for all candidates: wide tables have thousands of them, in every round.
        answers = score_units.validate(_join(given))
        sizes = np.array([answer.size for answer in given], dtype=np.int64)
        moves = self.find_sensitivity(setting.neighbours)

        def evaluate(tables: Sequence[Factor]) -> Array:
            counts = [
                table.values if operator is None else operator.apply(table.values)
                for table, operator in zip(tables, operators, strict=True)
            ]
            distances = score_units.totals(np.abs(_join(counts) - answers), sizes)
            scores = np.minimum(distances, score_units.MAX_SCORE) - self._penalties
            return np.asarray(scores if self._weights is None else scores * self._weights)

        return BoundScore(self._cliques, moves, len(self._cliques), evaluate)

    @property
    def penalties(self) -> dict[Clique, float]:
        """What is taken off the distance of each clique."""
        return dict(zip(self._cliques, self._penalties.tolist(), strict=True))

    @property
    def weights(self) -> dict[Clique, float] | None:
        """What each distance is multiplied with; None where that is 1."""
        if self._weights is None:
            return None
        return dict(zip(self._cliques, self._weights.tolist(), strict=True))

    def find_sensitivity(self, neighbours: Neighbours) -> float:
        """How far a neighbouring table moves the score of any clique: see the class."""
        moves = float(neighbours.count_moves)
        if self._weights is None:
            return moves
        return moves * float(self._weights.max(initial=0.0)) + 2.0**-19

    def find_noise_scale(self, epsilon: float, neighbours: Neighbours) -> float:
        """How far noise may change the order of scores in a choice for that epsilon.

        Probabilities are in proportion to exp(score / scale); sensitivities are rounded up to the
        unit of scores.
        """
        return 2.0 * (self.find_sensitivity(neighbours) + 2.0**-score_units.PLACES) / epsilon

    def candidate(self, index: int) -> Clique:
        """The clique with that index."""
        return self._cliques[index]

    def describe(self) -> str:
        """See `Score.describe`."""
        return f"one of {len(self._cliques)} marginals, far from its answer"


class GroupError(Score[int]):
    """How far the tables of a group of cliques are from given answers, in L1 and on average.

    Each clique has a weight; all weights are divided by their sum. The score of a group is the sum
    over its cliques of weight times |counts - answer|_1, less the group's penalty. Weights and
    penalties must not depend on the data. So groups of different sizes can be compared by what they
    would add to the mean over all cliques; a group without cliques scores minus its penalty.

    >>> setting = Setting(Domain({"sex": 2, "age": 2}), Neighbours.ADD_OR_REMOVE, None)
    >>> score = GroupError(
    ...     {("sex",): [5.0, 5.0], ("age",): [6.0, 4.0]}, [[], [("sex",), ("age",)]], [0.0, 1.0]
    ... )
    >>> bound = score.bind(setting)
    >>> tables = [Factor(setting.domain.project((n,)), [7.0, 4.0]) for n in ("sex", "age")]
    >>> bound.evaluate(tables)  # half of 3 + 1, less 1
    array([0., 1.])

    Sensitivity. A neighbouring table moves each distance by at most `Neighbours.count_moves` (see
    `MarginalError`), and a sum of distances by at most that times the sum of their weights, which
    is at most 1. Distances are exact; n products with weights and their sum are rounded, by at most
    2^-22 each below the limit of a score, and the score then to the unit, by half of 2^-20. Both
    may happen on each of two neighbouring tables: (n + 4) times 2^-21 is added.
    """

    def __init__(
        self,
        answers: Mapping[Clique, ArrayLike | Factor],
        groups: Sequence[Sequence[Clique]],
        penalties: Sequence[float],
        *,
        weights: Mapping[Clique, float] | None = None,
        queries: Mapping[Clique, Query] | None = None,
    ) -> None:
        self._errors = MarginalError(answers, queries=queries)
        self._groups, self._penalties = [list(group) for group in groups], list(penalties)
        given = _check_weights([1.0 if weights is None else weights[c] for c in answers])
        self._shares = given / max(given.sum(), 1.0 / _MAX_WEIGHT)
        positions = {clique: index for index, clique in enumerate(answers)}
        outside = {c for group in groups for c in group if c not in positions}
        if outside or len(self._penalties) != len(self._groups):
            raise InvalidInput(
                "`groups` must be made of the cliques that have answers, with a penalty for each "
                f"group; got {len(outside)} others and {len(self._penalties)} penalties for "
                f"{len(self._groups)} groups."
            )
        self._members = np.zeros((len(self._groups), len(positions)))
        for row, group in enumerate(self._groups):
            self._members[row, [positions[clique] for clique in group]] = 1.0

    def bind(self, setting: Setting) -> BoundScore:
        """See the class for the sensitivity."""
        each, penalties = self._errors.bind(setting), score_units.validate(self._penalties)
        weights = self._members * self._shares

        def evaluate(tables: Sequence[Factor]) -> Array:
            return np.asarray(weights @ each.evaluate(tables) - penalties)

        slack = (len(each.cliques) + 4) * 2.0**-21
        return BoundScore(each.cliques, each.sensitivity + slack, len(self._groups), evaluate)

    def candidate(self, index: int) -> int:
        """The index of the group."""
        return index

    def describe(self) -> str:
        """See `Score.describe`."""
        n_cliques = len(self._shares)
        return f"one of {len(self._groups)} groups of {n_cliques} marginals, far from their answers"


class QueryError(Score[int]):
    """How far a single counting query is from a given answer.

    Each query is a table of numbers from 0 to 1 over its clique. Sensitivity: one record more, less
    or replaced moves a counting query by at most 1, and so its distance from a fixed answer. The at
    most k counted rows of a person add between 0 and k to it: more, less or replaced, by at most k.

    >>> setting = Setting(Domain({"sex": 2}), Neighbours.ADD_OR_REMOVE, None)
    >>> bound = QueryError([(("sex",), [1, 0]), (("sex",), [1, 1])], answers=[5, 10]).bind(setting)
    >>> bound.evaluate([Factor(setting.domain, [7.0, 4.0])])
    array([2., 1.])
    """

    def __init__(self, queries: Sequence[tuple[Clique, ArrayLike]], answers: ArrayLike) -> None:
        self._queries = [(names_of(clique), table) for clique, table in queries]
        self._answers = score_units.validate(answers)
        if len(self._queries) != len(self._answers):
            raise InvalidInput(
                f"`answers` must be a finite number for each of the {len(self._queries)} queries; "
                f"got {len(self._answers)}."
            )

    def bind(self, setting: Setting) -> BoundScore:
        """See the class for the sensitivity."""
        rows = [_check_row(setting.domain, clique, row) for clique, row in self._queries]
        distinct = list(dict.fromkeys(clique for clique, _ in self._queries))
        owners = [distinct.index(clique) for clique, _ in self._queries]

        def evaluate(tables: Sequence[Factor]) -> Array:
            answers = [
                score_units.total(tables[owner].values * row)
                for owner, row in zip(owners, rows, strict=True)
            ]
            return np.abs(np.array(answers) - self._answers)

        moves = float(setting.neighbours.max_rows)
        return BoundScore(distinct, moves, len(rows), evaluate)

    def candidate(self, index: int) -> int:
        """The index of the query."""
        return index

    def describe(self) -> str:
        """See `Score.describe`."""
        return f"one of {len(self._queries)} queries, far from its answer"


class RowError(Score[tuple[int, int]]):
    """How far a row of one of several queries is from its given answer.

    Candidates are pairs: the index of the query, and of its row. Every row must consist of zeros
    and ones. Sensitivity: one record more, less or replaced moves such a count by at most 1, and so
    its distance from a fixed answer; the at most k counted rows of a person by at most k.

    >>> from juncture.tables.queries.blocks import Prefix
    >>> setting = Setting(Domain({"sex": 2}), Neighbours.ADD_OR_REMOVE, None)
    >>> score = RowError([(("sex",), Prefix())], answers=[[5, 10]])
    >>> score.bind(setting).evaluate([Factor(setting.domain, [7.0, 4.0])]), score.candidate(1)
    (array([2., 1.]), (0, 1))
    """

    def __init__(
        self, queries: Sequence[tuple[Clique, Query]], answers: Sequence[ArrayLike]
    ) -> None:
        self._queries = [(names_of(clique), query) for clique, query in queries]
        self._answers = [score_units.validate(answer) for answer in answers]
        self._ends = np.cumsum([len(answer) for answer in self._answers], dtype=np.int64)

    def bind(self, setting: Setting) -> BoundScore:
        """See the class for the sensitivity."""
        operators = [
            counting_operator(setting.domain, clique, query) for clique, query in self._queries
        ]
        if [operator.n_rows for operator in operators] != [len(a) for a in self._answers]:
            raise InvalidInput("`answers` must be a finite number for each row of each query.")

        def evaluate(tables: Sequence[Factor]) -> Array:
            triples = zip(operators, tables, self._answers, strict=True)
            errors = [np.abs(o.apply(table.values) - answer) for o, table, answer in triples]
            return np.concatenate(errors)

        cliques = [clique for clique, _ in self._queries]
        moves = float(setting.neighbours.max_rows)
        return BoundScore(cliques, moves, int(self._ends[-1]) if operators else 0, evaluate)

    def candidate(self, index: int) -> tuple[int, int]:
        """The index of the query, and of the row in it."""
        query = int(np.searchsorted(self._ends, index, side="right"))
        return query, index - int(self._ends[query] - len(self._answers[query]))

    def describe(self) -> str:
        """See `Score.describe`."""
        n_rows = int(self._ends[-1]) if len(self._ends) else 0
        return f"one of {n_rows} queries, far from its answer"


class DependenceScore(Score[tuple[str, Clique]]):
    """How much an attribute depends on a set of others, for replaced records; not for persons.

    Candidates are pairs: the attribute and the set. `Dependence.sensitivity` proves how far a
    replaced record moves each of the three scores. These scores have fractions: rounding them to
    the unit, and the rounding errors of their sums, are covered by a larger sensitivity.

    >>> setting = Setting(Domain({"cough": 2, "flu": 2}), Neighbours.REPLACE, n_records=8)
    >>> bound = DependenceScore([("flu", ("cough",))]).bind(setting)
    >>> bound.cliques, round(bound.sensitivity, 3)
    ([('cough', 'flu')], 3.0)
    """

    def __init__(
        self,
        candidates: Sequence[tuple[str, Clique]],
        by: Dependence = Dependence.DISTANCE,
    ) -> None:
        self._candidates, self._by = list(candidates), by

    def bind(self, setting: Setting) -> BoundScore:
        """See the class for the sensitivity."""
        n_records, domain, by = setting.n_records, setting.domain, self._by
        if n_records is None:
            raise InvalidInput(
                "`neighbours` must be those that replace one record: the score is relative to "
                "the number of records, which no other neighbours have in common. Create the "
                "ledger with Neighbours.REPLACE, without a person."
            )
        if by is Dependence.FIT and any(domain[child] != 2 for child, _ in self._candidates):
            raise InvalidInput(
                "`by` must be distance or information for attributes of more than two values; got "
                "fit."
            )
        cliques = [(*domain.project(parents), child) for child, parents in self._candidates]
        cells = max((domain.size_of(clique) for clique in cliques), default=1)
        rounding = 2.0**-score_units.PLACES + 64.0 * max(1, n_records) * cells * 2.0**-52

        def evaluate(tables: Sequence[Factor]) -> Array:
            return np.array([by.score(table, n_records) for table in tables])

        return BoundScore(cliques, by.sensitivity(n_records) + rounding, len(cliques), evaluate)

    def candidate(self, index: int) -> tuple[str, Clique]:
        """The attribute and the set with that index."""
        return self._candidates[index]

    def describe(self) -> str:
        """See `Score.describe`."""
        return f"one of {len(self._candidates)} dependences"


SCORES = (MarginalError, GroupError, QueryError, RowError, DependenceScore)
"""The scores that a curator trusts with exact counts: this module proves their sensitivity."""


def counting_operator(domain: Domain, clique: Clique, query: Query) -> Operator:
    """Bind a query to a clique; refuses one with entries other than zeros and ones."""
    blocks = query.blocks.values() if isinstance(query, Kron) else [query]
    if not all(isinstance(block, COUNTING) for block in blocks):
        raise InvalidInput(
            f"`queries` must be made of blocks of zeros and ones; got {describe_query(query)}. Use "
            "Identity, Total, Prefix, Range, AllRanges, Subset or Buckets."
        )
    return bind(query, domain.project(clique))


def _check_row(domain: Domain, clique: Clique, row: ArrayLike) -> Array:
    table = np.asarray(row, dtype=np.float64)
    shape = table_domain(domain, clique).shape
    if table.shape != shape or not ((table >= 0) & (table <= 1)).all():
        raise InvalidInput(
            f"`queries` must be tables of numbers from 0 to 1 with their clique's shape "
            f"{shape}; got shape {table.shape}. Divide a query by its largest entry."
        )
    return score_units.round_to_unit(table)


def _disjoint_operator(domain: Domain, clique: Clique, query: Query) -> Operator:
    """Bind a query to a clique; refuses one of which a record is in several answers."""
    operator = counting_operator(domain, clique, query)
    if operator.l1_sensitivity > 1.0:
        raise InvalidInput(
            "`queries` must have each record in one answer at most; got "
            f"{describe_query(query)}. Use Identity, Buckets, Subset or Total."
        )
    return operator


def _bind_answer(
    domain: Domain, clique: Clique, query: Query, answer: ArrayLike | Factor
) -> tuple[Operator | None, Array]:
    """The operator of a query, None where it is every count, and the answer for it."""
    subdomain, operator = table_domain(domain, clique), None
    if not isinstance(query, Identity):
        operator = _disjoint_operator(domain, clique, query)
    if isinstance(answer, Factor):
        table = answer.transpose(subdomain).values
        answer = table if operator is None else operator.apply(table)
    numbers = np.asarray(answer, dtype=np.float64)
    n_rows = subdomain.size if operator is None else operator.n_rows
    if numbers.size != n_rows:
        raise InvalidInput(
            f"`answers` must be {n_rows} finite numbers for {subdomain.attributes}; got "
            f"{numbers.size}. Project the model on the clique."
        )
    return operator, numbers


def _join(tables: Sequence[Array]) -> Array:
    """The cells of all tables in one flat array."""
    return np.concatenate([np.zeros(0), *(table.reshape(-1) for table in tables)])


def _check_weights(weights: Sequence[float]) -> Array:
    numbers = np.asarray(weights, dtype=np.float64)
    if not ((numbers > 0) & (numbers <= _MAX_WEIGHT)).all():
        raise InvalidInput(
            f"`weights` must be positive numbers of at most {_MAX_WEIGHT:g}; got others. Leave a "
            "candidate out to give it no weight."
        )
    return numbers
