"""The answers to the page's questions, within limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from juncture._util.text import choose_name
from juncture.errors import InvalidInput
from juncture.fit.replicas import Replicas
from juncture.model.sql.answer import SqlAnswer
from juncture.model.sql.notes import InBins, Range, find_dependence_notes
from juncture.publish.explorer import limits
from juncture.publish.explorer.facts import Facts, collect_facts, is_ordered
from juncture.publish.explorer.groups import (
    Axis,
    choose_sizes,
    describe_axis,
    group_values,
    write_case,
)
from juncture.publish.explorer.question import (
    Between,
    Condition,
    OneOf,
    build_sql,
    build_summary_sql,
    find_codes,
)
from juncture.publish.release import Release
from juncture.publish.report.means import find_mean
from juncture.tables.columns import Display, display_of
from juncture.tables.layout import Vector
from juncture.tables.queries import Identity, Kron

Answer = dict[str, Any]
LEVEL = 0.95
"""Of the intervals that the page shows."""


class Answers:
    """Answers from the release alone; for one thread, since a model fills caches meanwhile."""

    def __init__(self, release: Release, name: str = "release") -> None:
        self.release, self.model = release, release.model
        self.domain = self.model.domain
        self._facts = collect_facts(release, name)
        self.sql("SELECT COUNT(*) AS count FROM records")  # the first question is quick too

    def facts(self) -> Facts:
        """What the page shows about the release before any question."""
        return self._facts

    def ask(self, question: Mapping[str, Any]) -> Answer:
        """The answer to a question as the server hands it on."""
        match question["ask"]:
            case "marginal":
                conditions = [read_condition(each) for each in question["conditions"]]
                attributes = validate_attributes(question["attributes"])
                return self.marginal(attributes, conditions, question["max_values"])
            case "sql":
                return self.sql(question["sql"])
            case _:
                conditions = [read_condition(each) for each in question["conditions"]]
                n, seed = question["n"], question["seed"]
                return self.write_records(question["path"], n, seed, conditions)

    def marginal(
        self,
        attributes: Sequence[str],
        conditions: Sequence[Condition],
        max_values: Sequence[int | None] = (),
    ) -> Answer:
        """The counts for a chart, all cells in order, and the query that they come from.

        - `max_values`: for each attribute, how many values to show it by; None for all. Where all
          combinations would be too many, the attributes with the most values get fewer.
        """
        book = self.model.codebook
        axes = self._group(attributes, conditions, max_values)
        cases = {n: write_case(book[n], axis) for n, axis in axes.items()}
        query = build_sql(book, attributes, conditions, cases)
        cells = self._count_groups(query, attributes, axes)
        whole = None if axes else cells.reshape(-1)
        summary = self._summarise(attributes, conditions, whole)
        summary["notes"] = [*(str(axis) for axis in axes.values()), *summary["notes"]]
        return {
            "sql": query,
            "columns": [*attributes, choose_name("count", attributes)],
            "shape": list(cells.shape),
            "cells": cells.reshape(-1).tolist(),
            "count": float(cells.sum()),
            "plus_minus": self._find_plus_minus(attributes, conditions, axes),
            "axes": [self._describe_axis(axes.get(name)) for name in attributes],
            **summary,
        }

    def _group(
        self,
        attributes: Sequence[str],
        conditions: Sequence[Condition],
        max_values: Sequence[int | None],
    ) -> dict[str, Axis]:
        """The attributes that are shown in groups: what is largest, is so under the conditions."""
        book, axes = self.model.codebook, dict[str, Axis]()
        self.domain.project(attributes)  # refuses those that there are not
        for name, size in choose_sizes(self.domain, attributes, max_values).items():
            ordered = is_ordered(self.release, name)
            query = build_sql(book, [name], conditions)
            groups = group_values(
                book[name], size, None if ordered else self.model.sql_counts(query)
            )
            if any(len(group.codes) > 1 for group in groups):
                axes[name] = Axis(name, tuple(groups), ordered)
        return axes

    def _count_groups(
        self, query: str, attributes: Sequence[str], axes: Mapping[str, Axis]
    ) -> Vector:
        """The records of every combination, an axis for each attribute.

        SQL has groups in the order of their first codes; here they stand as the axis has them.
        """
        shape = [len(axes[n].groups) if n in axes else self.domain[n] for n in attributes]
        cells = self.model.sql_counts(query, max_groups=limits.MAX_CELLS).reshape(shape)
        for number, name in enumerate(attributes):
            if name in axes:
                firsts = np.argsort([min(group.codes) for group in axes[name].groups])
                cells = np.take(cells, np.argsort(firsts), axis=number)
        return cells

    def _describe_axis(self, axis: Axis | None) -> Answer | None:
        if axis is None:
            return None
        size = self.domain[axis.attribute]
        coding = self.model.codebook[axis.attribute]
        return describe_axis(axis, coding, with_codes=size <= limits.MAX_VALUES)

    def _find_plus_minus(
        self,
        attributes: Sequence[str],
        conditions: Sequence[Condition],
        axes: Mapping[str, Axis],
    ) -> list[float | None] | None:
        """The further end of each interval; None where no replicas are kept, or under conditions.

        Replicas are never made here: that takes longer than people wait for a chart.
        """
        if conditions or not isinstance(self.release.replicas, Replicas):
            return None
        if axes:
            blocks = {n: axes[n].block if n in axes else Identity() for n in attributes}
            found = self.release.answer(Kron(blocks), interval=LEVEL).plus_minus.reshape(-1)
        else:
            found = self.release.project(attributes, interval=LEVEL).plus_minus.reshape(-1)
        return [value if math.isfinite(value) else None for value in found.tolist()]

    def _summarise(
        self, attributes: Sequence[str], conditions: Sequence[Condition], cells: Vector | None
    ) -> Answer:
        """What a chart rests on, and the ranges of its count and of its mean where bins are wide.

        The count needs them where a condition divides a bin, the mean of one attribute always.
        """
        limited = set(self.domain.project(each.attribute for each in conditions))
        in_bins = {name for name in limited if self.model.codebook[name].has_intervals}
        asked = limited.union(self.domain.project(attributes))
        names = [name for name in self.domain if name in asked]
        notes = find_dependence_notes(names, self.model.cliques)
        count_range = mean = mean_range = None
        numbers = len(attributes) == 1 and self._has_binned_numbers(attributes[0])
        if in_bins or numbers:
            column = attributes[0] if numbers else None
            answer = self.model.sql(build_summary_sql(self.model.codebook, column, conditions))
            notes += [note for note in answer.notes if isinstance(note, InBins)]
            row, ranges = answer.rows[0], _list_ranges(answer)[0]
            count_range = ranges[0]
            mean, mean_range = (row[1], ranges[1]) if numbers else (None, None)
            if (
                cells is not None
                and numbers
                and mean_range is None
                and attributes[0] not in limited
            ):
                # SQL has no ranges where numbers are negative, the counts of all bins do.
                known = find_mean(self.model.codebook[attributes[0]], cells)
                mean_range = None if known is None else _to_pair(known.bins)
        return {
            "notes": [str(note) for note in notes],
            "count_range": count_range,
            "mean": None if mean is None else {"value": _finite_or_none(mean), "range": mean_range},
        }

    def _has_binned_numbers(self, name: str) -> bool:
        coding = self.model.codebook[name]
        return coding.has_intervals and display_of(coding) is Display.INTERVALS

    def sql(self, query: str) -> Answer:
        """The answer to a SELECT as columns and rows."""
        answer, reasons = self._ask_sql(query)
        return {
            "columns": list(answer.columns),
            "rows": [[_finite_or_none(value) for value in row] for row in answer.rows],
            "notes": [*map(str, answer.notes), *reasons],
            "ranges": _list_ranges(answer) if answer.ranges else [],
        }

    def _ask_sql(self, query: str) -> tuple[SqlAnswer, tuple[str, ...]]:
        """The answer, with a plus-minus column after each number where replicas are kept.

        Beside it, why numbers have no interval, or which one they have without a check.
        """
        most = limits.MAX_CELLS, limits.MAX_ANSWER_VALUES
        if not isinstance(self.release.replicas, Replicas):
            return self.model.sql(query, max_groups=most[0], max_values=most[1]), ()
        answer = self.release.sql(query, interval=LEVEL, max_groups=most[0], max_values=most[1])
        return (answer.plain, ()) if answer.ranges else (answer.with_columns, answer.reasons)

    def write_records(
        self, path: str, n: int, seed: int | None, conditions: Sequence[Condition] = ()
    ) -> Answer:
        """Write a file of synthetic records that meet conditions, in the format of its name."""
        release = self.release
        if conditions:
            codes = find_codes(self.model.codebook, conditions)
            release = replace(release, model=self.model.condition_codes(codes))
        return {"records": release.write_records(path, n, rng=seed)}


def _list_ranges(answer: SqlAnswer) -> list[list[list[float] | None]]:
    """For every value of an answer, the least and the largest that it can be, or None."""
    rows = answer.ranges or ((None,) * len(answer.columns),) * len(answer.rows)
    return [[_to_pair(each) for each in row] for row in rows]


def _to_pair(span: Range | None) -> list[float] | None:
    """The ends of a range; None where it has none, or both are the same but for rounding."""
    if span is None or not math.isfinite(span.high - span.low):
        return None
    size = max(abs(span.low), abs(span.high))
    return [span.low, span.high] if span.high - span.low > 1e-9 * size else None


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


def read_condition(text: Mapping[str, Any]) -> Condition:
    """A condition as the page sends it: codes, or the ends of a range."""
    if text["codes"] is not None:
        return OneOf(text["attribute"], tuple(text["codes"]))
    return Between(text["attribute"], text["low"], text["high"])
