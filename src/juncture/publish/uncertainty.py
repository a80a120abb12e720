"""What a release knows about its own errors: who answers with an interval, and how wide it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from juncture._util.watch import Watch, ignore_progress
from juncture.fit.basis import Bases, Basis, Grades
from juncture.fit.carried_noise import CarriedNoise
from juncture.fit.check import Check
from juncture.fit.error_bounds import ErrorBounds
from juncture.fit.plain_estimates import PlainEstimate, PlainEstimates
from juncture.fit.replicas import ReplicaRecipe, Replicas, make_replicas
from juncture.fit.selection_proof import SelectionProof
from juncture.fit.widths import Kind, Reach, Widths, check_level, normal_quantile
from juncture.model.model import Model
from juncture.model.query_parts import answer_parts
from juncture.model.sql.replication import Moments, OutputKind, ReplicatedColumn, Replies
from juncture.publish.intervals import (
    NO_CHECK,
    PROVED,
    CellInterval,
    IntervalAnswer,
    IntervalSqlAnswer,
)
from juncture.tables.domain import Clique, Domain
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Block, Identity, Matrix
from juncture.tables.queries.products import Kron, Query, Scaled, Stack, bind

_REPLICA = "\0replica"
_KINDS = {
    OutputKind.COUNT: Kind.COUNT,
    OutputKind.SUM: Kind.SUM,
    OutputKind.OTHER: Kind.RATIO,
}
_NO_REPLICAS = (
    "A number that depends on other rows, or on a query inside the query, has no interval: ask the "
    "queries one by one."
)
_NO_EXTREMES = (
    "The least and the largest value have no interval: a model gives every possible value some "
    "weight, so they say what is possible rather than what is there."
)
_NO_MOMENTS = (
    "An assumed number that is neither a count, a sum nor an average of a column has no interval: "
    "ask for the counts that it is made of."
)


@dataclass(frozen=True)
class _Asked:
    """How intervals are asked for."""

    level: float
    population: bool


@dataclass(eq=False)
class Uncertainty:
    """Intervals for the answers of one release. Replicas are made when first needed."""

    model: Model
    measurements: tuple[Measurement, ...]
    recipe: ReplicaRecipe
    kept: Replicas | None = None
    checked: tuple[Measurement, ...] = ()
    """What was measured to check the model."""
    proofs: tuple[SelectionProof, ...] = ()
    """What private choices prove."""
    n_records_is_public: bool | None = None
    """None where nothing says so."""
    known: tuple[Clique, ...] = ()
    """The columns of tables of counts that are public, and hold exactly."""
    watch: Watch = ignore_progress

    @cached_property
    def bases(self) -> Bases:
        """What answers rest on."""
        return Bases(self.model.domain, self.measurements, self.known)

    @cached_property
    def check(self) -> Check | None:
        """What gives the widths of assumed answers; None without a check of any."""
        if not self.checked:
            return None
        made = Check(self.model, self.bases, self.checked, self.carried)
        return None if made.is_empty else made

    @cached_property
    def bounds(self) -> ErrorBounds:
        """What the errors of marginals are below, by proof."""
        return ErrorBounds(self.model, self.plain, self.proofs, bool(self.n_records_is_public))

    @cached_property
    def replicas(self) -> Replicas:
        """The replicas: those that were kept, or made by the recipe."""
        if self.kept is not None:
            return self.kept
        return make_replicas(
            self.model, self.measurements, self.recipe, known=self.known,
            n_records_is_public=self.n_records_is_public, watch=self.watch,
        )  # fmt: skip

    @cached_property
    def plain(self) -> PlainEstimates:
        """What the measurements say by themselves."""
        return PlainEstimates(self.model.domain, self.measurements)

    @cached_property
    def carried(self) -> CarriedNoise:
        """What answers across columns carry of the noise of each."""
        return CarriedNoise(self.model, self.plain)

    @cached_property
    def widths(self) -> Widths:
        """How wide intervals are."""
        return Widths(self.replicas, self.plain)

    def project(
        self, attributes: Iterable[str], level: float, *, population: bool
    ) -> IntervalAnswer:
        """The marginal on any attributes, with intervals."""
        asked = _Asked(check_level(level), population)
        table = self.model.project(attributes)
        blocks: Mapping[str, Block] = {name: Identity() for name in table.domain}
        return replace(self._answer_product(Kron(blocks), table.values, asked), table=table)

    def answer(self, query: Query, level: float, *, population: bool) -> IntervalAnswer:
        """The answers to a factored query, with intervals."""
        asked = _Asked(check_level(level), population)
        parts = list[IntervalAnswer]()

        def ask(part: Kron) -> Vector:
            answers = self.model.answer(part)
            parts.append(self._answer_product(part, answers, asked))
            return answers

        answers = answer_parts(query, ask)
        return _join(answers, parts, _list_weights(query), asked)

    def _answer_product(self, query: Kron, answers: Vector, asked: _Asked) -> IntervalAnswer:
        grades = self.bases.find(query).reshape(answers.shape)
        kind = self._find_kind(query)
        down, up = np.full(answers.shape, np.nan), np.full(answers.shape, np.nan)
        known = grades < Basis.ASSUMED
        if known.any():
            replies = self.ask(query)
            assert replies is not None, "some measured clique holds what was measured"
            stacked = replies.reshape(-1, *answers.shape)
            plain = self.plain.find(query)
            plain = PlainEstimate(*(each.reshape(answers.shape) for each in plain))
            reach = self._find_reach(answers, stacked, kind, asked, plain)
            down[known], up[known] = reach.down[known], reach.up[known]
        if not known.all():
            down[~known] = self._find_assumed(query, answers, kind, asked)[~known]
            up[~known] = self._cap(down, answers, kind, asked)[~known]
        lower = answers - down
        if kind is Kind.COUNT:
            lower = np.maximum(lower, 0.0)
        return IntervalAnswer(
            answers, lower, answers + up, grades, asked.level, asked.population,
            () if known.all() or self.check is not None else (self._explain(down),),
        )  # fmt: skip

    def _cap(self, reach: Vector, answers: Vector, kind: Kind, asked: _Asked) -> Vector:
        """How far up intervals of assumed answers reach: no count is above all records."""
        if kind is not Kind.COUNT or asked.population or not self.n_records_is_public:
            return reach
        return np.minimum(reach, np.maximum(self.model.total - answers, 0.0))

    def _explain(self, reach: Vector) -> str:
        """Why an assumed answer has no interval, or which one it has without a check."""
        return NO_CHECK if np.isnan(reach).any() else PROVED

    def _find_reach(
        self, answers: Vector, stacked: Vector, kind: Kind, asked: _Asked,
        plain: PlainEstimate | None,
    ) -> Reach:  # fmt: skip
        """How far intervals reach, from what the replicas' models and then their records say.

        The last of both is the model itself, fitted to the end and as it is.
        """
        fitted, counted = np.split(stacked, 2)
        reach = self.widths.find(answers, fitted - counted, asked.level, kind, plain)
        if not asked.population:
            return reach
        if kind is Kind.COUNT:
            share = np.clip(answers / self.model.total, 0.0, 1.0)
            spread = np.maximum(answers, 1.0) * (1.0 - share)
        else:  # the records of a replica are a sample from the model
            with np.errstate(invalid="ignore"):
                spread = np.nanmean((counted[:-1] - answers) ** 2, axis=0)
        more = normal_quantile(asked.level) ** 2 * spread
        return Reach(np.sqrt(reach.down**2 + more), np.sqrt(reach.up**2 + more))

    def _find_assumed(self, query: Kron, answers: Vector, kind: Kind, asked: _Asked) -> Vector:
        """The half-widths of assumed answers, as the check says; not a number without one."""
        if self.check is None:
            return np.full(answers.shape, self._find_proved(query, asked))
        noise = self.carried.find(query, normal_quantile(asked.level)).reshape(answers.shape)
        if kind is Kind.COUNT:
            return self._find_moment_widths(Moments(answers, np.ones(answers.shape), noise), asked)
        domain = self.model.domain
        used = {n: Matrix((_rows_of(b, domain[n]) != 0.0) * 1.0) for n, b in query.blocks.items()}
        squared = {n: Matrix(_rows_of(b, domain[n]) ** 2) for n, b in query.blocks.items()}
        n = self.model.answer(Kron(used)).reshape(answers.shape)
        squares = self.model.answer(Kron(squared)).reshape(answers.shape)
        size = np.sqrt(squares / np.maximum(n, 1e-9))
        return self._find_moment_widths(Moments(n, size, noise), asked)

    def _find_proved(self, query: Kron, asked: _Asked) -> float:
        """How far a private choice proves that assumed counts or sums are off; else not a number.

        Cells that are off by E together move a sum of weights from l to h by max(|l|, |h|) E at
        most; by (h - l) E / 2 where what is too much in some is missing in others.
        """
        names = self.bases.find_needed(query)
        proved = self.bounds.find_proved(names, asked.level)
        if asked.population or proved is None:
            return np.nan
        return self.bounds.find_sum_error(proved, *_find_extent(query, self.model.domain))

    def _find_moment_widths(self, moments: Moments, asked: _Asked) -> Vector:
        """The half-widths of counts, sums and averages over assumed records."""
        assert self.check is not None
        widths = self.check.find_widths(*moments, asked.level)
        if asked.population:
            share = np.clip(moments.n / self.model.total, 0.0, 1.0)
            spread = moments.size**2 * np.maximum(moments.n, 1.0) * (1.0 - share)
            widths = np.sqrt(widths**2 + normal_quantile(asked.level) ** 2 * spread)
        return np.asarray(widths)

    def ask(self, query: Kron) -> Vector | None:
        """The answers of all replicas, models then records; None if no clique holds the query.

        One application of the query to all tables: the replica is one more attribute.
        """
        if self.bases.is_known(query):  # no replica is off
            answers = self.model.answer(query)
            shape = [block.n_rows(self.model.domain[n]) for n, block in query.blocks.items()]
            return np.broadcast_to(answers.reshape(shape), [2 * self.recipe.n_rows, *shape])
        holder = self.bases.find_holder(query)
        if holder is None:
            return None
        domain, made = self.model.domain, self.replicas
        tables = made.tables(made.stacked, holder)
        inside = {name: query.blocks[name] for name in holder if name in query.blocks}
        whole = Domain({_REPLICA: len(tables), **{name: domain[name] for name in holder}})
        answers = bind(Kron({_REPLICA: Identity(), **inside}), whole).apply(tables)
        rows = [block.n_rows(domain[name]) for name, block in inside.items()]
        shaped = answers.reshape([len(tables), *rows])
        order = [name for name in query.blocks if name in inside]
        shaped = shaped.transpose([0, *(1 + list(inside).index(name) for name in order)])
        constant = 1.0
        for name, block in query.blocks.items():
            if name not in inside:
                constant *= float(block.adjoint(np.ones(1), domain[name])[0])
        sizes = [block.n_rows(domain[name]) for name, block in query.blocks.items()]
        return constant * shaped.reshape([len(tables), *sizes])

    def _find_kind(self, query: Kron) -> Kind:
        """Whether the answers count records, or add up weights."""
        domain = self.model.domain
        plain = all(_is_binary(block, domain[name]) for name, block in query.blocks.items())
        return Kind.COUNT if plain else Kind.SUM

    def sql(
        self, query: str, level: float, *, population: bool,
        limits: tuple[int | None, int | None] = (None, None),
    ) -> IntervalSqlAnswer:  # fmt: skip
        """The answer to a SELECT, with intervals."""
        asked = _Asked(check_level(level), population)
        n = 2 * self.recipe.n_rows
        share = 1.0 / self.model.total

        def ask(part: Kron) -> Vector | None:
            replies = self.ask(part)
            return None if replies is None else share * replies

        def ask_plain(part: Kron) -> tuple[Vector, Vector]:
            value, stddev = self.plain.find(part)
            return share * value, share * stddev

        def ask_noise(part: Kron) -> Vector:
            return share * self.carried.find(part, normal_quantile(asked.level))

        replies = Replies(n, ask, self.bases.find, ask_plain, ask_noise)
        made = self.model.sql_replicated(query, replies, *limits)
        answer = made.answer
        columns = [
            _no_intervals(len(answer.rows))
            if column is None
            else self._read_column(column, [row[index] for row in answer.rows], asked)
            for index, column in enumerate(made.columns)
        ]
        return IntervalSqlAnswer(
            answer.columns, answer.rows, answer.notes, answer.ranges,
            intervals=tuple(zip(*columns, strict=True)), level=asked.level,
            reasons=self._list_reasons(made.columns, columns), population=population,
        )  # fmt: skip

    def _read_column(
        self, column: ReplicatedColumn, values: list[object], asked: _Asked
    ) -> list[CellInterval | None]:
        answers = np.array([_to_number(value) for value in values], dtype=np.float64)
        kind = _KINDS[column.kind]
        down, up = np.full(len(answers), np.nan), np.full(len(answers), np.nan)
        known = (column.grades < Basis.ASSUMED) & np.isfinite(answers)
        if column.values is not None and known.any():
            plain = None if column.plain is None else PlainEstimate(*column.plain)
            reach = self._find_reach(answers, column.values, kind, asked, plain)
            down[known], up[known] = reach.down[known], reach.up[known]
        assumed = column.grades == Basis.ASSUMED
        if assumed.any():
            down[assumed] = self._find_assumed_column(column, asked)[assumed]
            up[assumed] = self._cap(down, answers, kind, asked)[assumed]
        lowest, highest = column.extent or (0.0 if kind is Kind.COUNT else -np.inf, np.inf)
        lower = np.minimum(np.maximum(answers - down, lowest), answers)
        upper = np.maximum(np.minimum(answers + up, highest), answers)
        ends = zip(lower, upper, column.grades, strict=True)
        return [CellInterval(float(a), float(b), Basis(int(grade))) for a, b, grade in ends]

    def _find_assumed_column(self, column: ReplicatedColumn, asked: _Asked) -> Vector:
        """The half-widths of assumed numbers: as the check says, or else as choices prove."""
        if self.check is not None and column.moments is not None:
            return self._find_moment_widths(column.moments, asked)
        proved = np.nan
        if self.check is None and column.query is not None:
            query, constant = column.query
            proved = abs(constant) * self._find_proved(query, asked)
        return np.full(len(column.grades), proved)

    def _list_reasons(
        self,
        columns: Sequence[ReplicatedColumn | None],
        intervals: Iterable[Sequence[CellInterval | None]],
    ) -> tuple[str, ...]:
        """Why some numbers have no interval, or which one they have without a check."""
        if all(column is None for column in columns):
            return (_NO_REPLICAS,)
        missing = NO_CHECK if self.check is None else _NO_MOMENTS
        reasons = dict[str, None]()
        made = [column for column in columns if column is not None]
        if any(c.values is None and (c.grades < Basis.ASSUMED).any() for c in made):
            reasons[_NO_EXTREMES] = None
        for cell in (cell for column in intervals for cell in column if cell is not None):
            if cell.basis is Basis.ASSUMED and not cell.is_known:
                reasons[missing] = None
            elif cell.basis is Basis.ASSUMED and self.check is None:
                reasons[PROVED] = None
        return tuple(reasons)


def _no_intervals(n: int) -> list[CellInterval | None]:
    return [None] * n


def _to_number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _is_binary(block: Block, size: int) -> bool:
    """Whether all entries of a block are zero or one."""
    if isinstance(block, Identity):
        return True
    return bool(np.isin(_rows_of(block, size), (0.0, 1.0)).all())


def _find_extent(query: Kron, domain: Domain) -> tuple[float, float]:
    """The least and the largest weight that a product gives to a record.

    >>> _find_extent(Kron({"a": Matrix([[0.0, 3.0]]), "b": Identity()}), Domain({"a": 2, "b": 2}))
    (0.0, 3.0)
    """
    low, high = 1.0, 1.0
    for name, block in query.blocks.items():
        rows = _rows_of(block, domain[name])
        ends = (float(rows.min()), float(rows.max()))
        products = [one * other for one in (low, high) for other in ends]
        low, high = min(products), max(products)
    return low, high


def _rows_of(block: Block, size: int) -> Vector:
    """The matrix of a block."""
    return block.adjoint(np.eye(block.n_rows(size)), size)


def _list_weights(query: Query) -> list[float]:
    """The weight of each factored part of a query, in the order in which they are asked."""
    if isinstance(query, Scaled):
        return [query.weight * weight for weight in _list_weights(query.query)]
    if isinstance(query, Stack):
        return [weight for part in query.queries for weight in _list_weights(part)]
    return [1.0]


def _join(
    answers: Vector, parts: list[IntervalAnswer], weights: list[float], asked: _Asked
) -> IntervalAnswer:
    """The intervals of the parts of a query as those of the whole."""

    def collect(read: Callable[[IntervalAnswer, float], Vector]) -> Vector:
        pieces = [read(*each).reshape(-1) for each in zip(parts, weights, strict=True)]
        return np.concatenate(pieces).reshape(answers.shape)

    grades: Grades = np.concatenate([part.grades.reshape(-1) for part in parts])
    return IntervalAnswer(
        answers,
        collect(lambda part, w: w * (part.lower if w > 0 else part.upper)),
        collect(lambda part, w: w * (part.upper if w > 0 else part.lower)),
        grades.reshape(answers.shape),
        asked.level,
        asked.population,
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
