"""The answers to the page's questions: one at a time, within limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from juncture._util.text import choose_name
from juncture.errors import InvalidInput, ModelTooLarge
from juncture.publish.explorer import limits
from juncture.publish.explorer.facts import Facts, collect_facts
from juncture.publish.explorer.question import Condition, build_sql
from juncture.publish.records import stream_records
from juncture.publish.release import Release

Answer = dict[str, Any]


class Answers:
    """Answers from the release alone, under a lock: a model fills caches while it answers."""

    def __init__(self, release: Release, name: str = "release") -> None:
        self.release, self.model = release, release.model
        self.domain = self.model.domain
        self._lock = Lock()
        self._facts = collect_facts(release, name)
        self.sql("SELECT COUNT(*) AS count FROM records")  # the first question is quick too

    def facts(self) -> Facts:
        """What the page shows about the release before any question."""
        return self._facts

    def marginal(self, attributes: Sequence[str], conditions: Sequence[Condition]) -> Answer:
        """The counts for a chart, all cells in order, and the query that they come from."""
        shape = self.domain.project(attributes).shape
        self._refuse_large(attributes)
        query = build_sql(self.model.codebook, attributes, conditions)
        with self._lock:
            cells = self.model.sql_counts(query).reshape(-1)
        return {
            "sql": query,
            "columns": [*attributes, choose_name("count", attributes)],
            "shape": list(shape),
            "cells": cells.tolist(),
            "count": float(cells.sum()),
            "together": self._measured_together(
                {*attributes, *(each.attribute for each in conditions)}
            ),
        }

    def _measured_together(self, names: set[str]) -> bool:
        """Whether some measurement, or clique of the model, has all of these attributes."""
        measured = [m.clique for m in self.release.measurements] or self.model.cliques
        return len(names) < 2 or any(names.issubset(clique) for clique in measured)

    def sql(self, query: str) -> Answer:
        """The answer to a SELECT as columns and rows."""
        with self._lock:
            answer = self.model.sql(query, max_groups=limits.MAX_CELLS)
        return {
            "columns": list(answer.columns),
            "rows": [[_finite_or_none(value) for value in row] for row in answer.rows],
        }

    def records(self, n: int, file_format: str, seed: int | None) -> Iterator[bytes]:
        """The bytes of a file of synthetic records, some at a time."""
        with self._lock:
            chunks = stream_records(self.release, n, file_format=file_format, rng=seed)
        return self._one_at_a_time(chunks)

    def _one_at_a_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The same chunks, with the lock free between them for other questions."""
        while True:
            with self._lock:
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    def _refuse_large(self, attributes: Sequence[str]) -> None:
        """Refuse a chart that would be too large, before anything is computed."""
        for name in attributes:
            if self.domain[name] > limits.MAX_VALUES:
                raise ModelTooLarge(
                    f"`attributes` must have at most {limits.MAX_VALUES:,} values to be shown; "
                    f"got {name!r} with {self.domain[name]:,}. Ask about ranges of it, with WHERE."
                )
        n_cells = self.domain.size_of(attributes)
        if n_cells > limits.MAX_CELLS:
            raise ModelTooLarge(
                f"`attributes` must make at most {limits.MAX_CELLS:,} combinations here; got "
                f"{n_cells:,}. Choose fewer attributes, or use juncture in Python for large tables."
            )


def _finite_or_none(value: object) -> object:
    """The value, with None for infinities and not-a-number, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def validate_attributes(attributes: Sequence[str], limit: int = 3) -> tuple[str, ...]:
    """The attributes, if a chart can show that many and each is there once; else an error."""
    if len(attributes) > limit or len(set(attributes)) != len(attributes):
        raise InvalidInput(
            f"`attributes` must be at most {limit} different ones; got {len(attributes)}. "
            "Use SQL for more."
        )
    return tuple(attributes)
