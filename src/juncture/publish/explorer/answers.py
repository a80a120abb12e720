"""A release that answers the page's questions: one at a time, within limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from sqlglot import exp

from juncture.errors import InvalidInput, ModelTooLarge
from juncture.model.sampling import Codes, Sampler
from juncture.model.sql.select import SqlAnswer, count_groups, run
from juncture.model.sql.syntax import AGGREGATES, parse
from juncture.publish.explorer import limits
from juncture.publish.explorer.facts import Facts, collect_facts
from juncture.publish.explorer.question import Condition, build_sql, count_name
from juncture.publish.release import Release
from juncture.tables.codebook import Codebook
from juncture.tables.layout import Vector
from juncture.tables.queries.products import Kron

Answer = dict[str, Any]


class Answers:
    """Answers from the release alone. A model fills caches while it answers, hence the lock."""

    def __init__(self, release: Release, name: str = "release") -> None:
        self.release, self.model = release, release.model
        self.domain = self.model.domain
        self.codebook = self.model.codebook or Codebook.plain(self.domain)
        self._lock = Lock()
        self._facts = collect_facts(release, name)
        self.sql("SELECT COUNT(*) AS count FROM records")  # the first question is quick too

    def facts(self) -> Facts:
        """What the release is."""
        return self._facts

    def marginal(self, attributes: Sequence[str], conditions: Sequence[Condition]) -> Answer:
        """The counts of a picture, all cells in order, and the query that they come from."""
        shape = self.domain.project(attributes).shape
        self._refuse_large(attributes, math.prod(shape))
        query = build_sql(self.domain, self.codebook, attributes, conditions)
        with self._lock:
            cells = count_groups(
                query, self.domain, self.codebook, self.model.total, self._ask
            ).reshape(-1)
        return {
            "sql": query,
            "columns": [*attributes, count_name(attributes)],
            "shape": list(shape),
            "cells": cells.tolist(),
            "count": float(cells.sum()),
            "together": self._measured_together(
                {*attributes, *(each.attribute for each in conditions)}
            ),
        }

    def _measured_together(self, names: set[str]) -> bool:
        """Whether some measurement, or clique of the model, is about all of these attributes."""
        measured = [m.clique for m in self.release.measurements] or self.model.cliques
        return len(names) < 2 or any(names.issubset(clique) for clique in measured)

    def sql(self, query: str) -> Answer:
        """The answer to a SELECT as columns and rows."""
        self._refuse_large(self._grouped_attributes(query), 0)
        answer = self._run(query)
        return {
            "columns": list(answer.columns),
            "rows": [[_finite_or_none(value) for value in row] for row in answer.rows],
        }

    def sample_chunks(self, n: int, key: int, chunk: int) -> Iterator[Codes]:
        """Synthetic records, a row for each attribute, some at a time."""
        with self._lock:
            sampler = Sampler(self.model.calibration)
        for first in range(0, n, chunk):
            with self._lock:
                codes = sampler.sample(min(chunk, n - first), key, first=first)
            yield codes

    def _run(self, query: str) -> SqlAnswer:
        with self._lock:
            return run(query, self.domain, self.codebook, self.model.total, self._ask)

    def _ask(self, query: Kron) -> Vector:
        n_rows = (block.n_rows(self.domain[name]) for name, block in query.blocks.items())
        self._refuse_large((), math.prod(n_rows))
        return self.model.answer(query)

    def _grouped_attributes(self, query: str) -> list[str]:
        """The attributes that a query groups by: those that stand outside of aggregates."""
        columns = (
            column.name.lower()
            for column in parse(query).find_all(exp.Column)
            if not column.find_ancestor(*AGGREGATES, exp.Where, exp.Having, exp.Filter)
        )
        mentioned = set(columns)
        return [name for name in self.domain if name.lower() in mentioned]

    def _refuse_large(self, grouped: Sequence[str], n_cells: int) -> None:
        """Refused before anything is computed."""
        for name in grouped:
            if self.domain[name] > limits.MAX_VALUES:
                raise ModelTooLarge(
                    f"`attributes` must have at most {limits.MAX_VALUES:,} values to be shown; "
                    f"got {name!r} with {self.domain[name]:,}. Ask about ranges of it, with WHERE."
                )
        if n_cells > limits.MAX_CELLS:
            raise ModelTooLarge(
                f"`attributes` must make at most {limits.MAX_CELLS:,} combinations here; got "
                f"{n_cells:,}. Take fewer attributes, or use juncture in Python for large tables."
            )


def _finite_or_none(value: object) -> object:
    """JSON has no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def validate_attributes(attributes: Sequence[str], limit: int = 3) -> tuple[str, ...]:
    """At most as many as a picture can show, each once."""
    if len(attributes) > limit or len(set(attributes)) != len(attributes):
        raise InvalidInput(
            f"`attributes` must be at most {limit} different ones; got {len(attributes)}. "
            "Ask about more of them in SQL."
        )
    return tuple(attributes)
