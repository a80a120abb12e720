"""The parts of a release as plain data for its file: model, measurements, codebook.

Numbers go to a list of arrays beside the document; the document has their indices. What is read may
come from anywhere: a part that does not fit raises an error here, and `load` turns it into one that
names the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from juncture.engine.oracle import Oracle, OracleFactory, build_plan
from juncture.errors import ImpossibleModel, ModelTooLarge
from juncture.model.distribution import Distribution
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.publish import query_io
from juncture.publish.archive import Document
from juncture.publish.record_io import read_distribution
from juncture.tables.codebook import Codebook, Coding, Meaning, Special
from juncture.tables.columns import Date
from juncture.tables.columns.base import refuse_many_values
from juncture.tables.columns.bins import Binned
from juncture.tables.domain import Domain
from juncture.tables.histogram import FineHistogram
from juncture.tables.layout import Layout, Vector
from juncture.tables.measurement import Measurement
from juncture.tables.periods import Period
from juncture.tables.schema import Schema

# How far stored marginals may be from those of the stored potentials; all are probabilities.
_TOLERANCE = 1e-6
_MAX_ATTRIBUTES = 10_000


def refuse_large(domain: Domain, cliques: Iterable[Sequence[str]]) -> None:
    """Refuse more attributes, or values that no clique has, than a schema would allow.

    The file has a number for every cell of a clique, so these are no more than it is long. An
    attribute that no clique has takes a few bytes of it, whatever its size.
    """
    if len(domain) > _MAX_ATTRIBUTES:
        raise ModelTooLarge(
            f"`domain` must have at most {_MAX_ATTRIBUTES:,} attributes; got {len(domain):,}."
        )
    inside = {name for clique in cliques for name in clique}
    for name, size in domain.items():
        if name not in inside:
            refuse_many_values(size, name)


def read_model(
    document: Document, domain: Domain, arrays: list[Vector], oracle: OracleFactory
) -> Model:
    """The model as it is stored; `recompute_marginals` checks that its arrays agree."""
    layout = Layout(domain, [tuple(clique) for clique in document["cliques"]])
    log_share = float(document["log_share"])
    if not -math.inf < log_share <= _TOLERANCE:
        raise ValueError(log_share)
    codebook = document["codebook"]
    book = Codebook() if codebook is None else _read_codebook(codebook)
    distribution = _read_distribution(document, domain, arrays, layout, oracle)
    return Model(distribution, float(document["total"]), log_share, book)


def _read_distribution(
    document: Document, domain: Domain, arrays: list[Vector], layout: Layout, oracle: OracleFactory
) -> Distribution | RecordDistribution:
    potentials, probabilities = layout.as_vector(arrays[0]), layout.as_vector(arrays[1])
    records = document.get("records")
    if records is not None:
        return read_distribution(records, domain, arrays, layout, oracle)
    log_partition = float(document["log_partition"])
    if not math.isfinite(log_partition):
        raise ValueError(log_partition)
    plan = build_plan(oracle, domain, layout.cliques)
    return Distribution(plan, potentials, probabilities, log_partition, oracle)


def recompute_marginals(model: Model, engine: Oracle) -> Model:
    """The model with the marginals of its potentials; stored ones that are others are refused.

    Stored marginals may be off by a tolerance, each clique its own way, and what comes after relies
    on cliques that agree where they meet. So what is stored is only compared.
    """
    stored = model.distribution
    assert isinstance(stored, Distribution)
    beliefs = engine.marginals(stored.potentials)
    tolerance = _TOLERANCE + beliefs.error
    wrong = np.abs(beliefs.marginals - stored.probabilities).max(initial=0.0)
    off = abs(beliefs.log_partition - stored.log_partition)
    same = off <= tolerance * max(1.0, abs(stored.log_partition))
    if not (wrong <= tolerance and same and stored.probabilities.min(initial=0.0) >= 0.0):
        raise ImpossibleModel("`marginals` must be those of the potentials; got others.")
    distribution = replace(
        stored, probabilities=beliefs.marginals, log_partition=beliefs.log_partition
    )
    return replace(model, distribution=distribution)


def write_measurement(measurement: Measurement, arrays: list[Vector]) -> Document:
    """A measurement as data; its numbers are appended to the arrays."""
    arrays += [measurement.values, np.atleast_1d(measurement.stddev)]
    return {
        "clique": list(measurement.clique),
        "values": len(arrays) - 2,
        "stddev": len(arrays) - 1,
        "noise": str(measurement.noise),
        "query": query_io.to_dict(measurement.query, arrays),
    }


def read_measurement(entry: Document, domain: Domain, arrays: list[Vector]) -> Measurement:
    """The measurement that `write_measurement` wrote."""
    values, stddev = arrays[entry["values"]], arrays[entry["stddev"]]
    measurement = Measurement(
        tuple(entry["clique"]),
        values,
        stddev=stddev[0] if len(stddev) == 1 else stddev,
        query=query_io.from_dict(entry["query"], arrays),
        noise=entry["noise"],
    )
    measurement.operator(domain)
    return measurement


def write_fine(schema: Schema, arrays: list[Vector]) -> Document:
    """The fine histograms of a schema's columns as data; their numbers go to the arrays."""
    fine: Document = {}
    for name, column in schema.columns.items():
        if isinstance(column, Binned | Date) and column.fine is not None:
            arrays += [np.array(column.fine.edges), np.array(column.fine.masses)]
            fine[name] = {"edges": len(arrays) - 2, "masses": len(arrays) - 1}
    return fine


def read_fine(schema: Schema, fine: Document, arrays: list[Vector]) -> Schema:
    """The schema with the fine histograms that `write_fine` wrote."""
    columns = dict(schema.columns)
    for name, entry in fine.items():
        column = columns[name]
        if not isinstance(column, Binned | Date):
            raise TypeError(name)
        edges, masses = arrays[entry["edges"]], arrays[entry["masses"]]
        histogram = FineHistogram(tuple(edges.tolist()), tuple(masses.tolist()))
        columns[name] = replace(column, fine=histogram)
    return replace(schema, columns=columns)


def write_codebook(codebook: Codebook) -> Document | None:
    """A codebook as data; None where codes stand for themselves."""
    if codebook.is_plain:
        return None
    return {name: _write_coding(coding) for name, coding in codebook.codings.items()}


def _write_coding(coding: Coding) -> Document:
    return {
        "meanings": [_write_meaning(meaning) for meaning in coding.meanings],
        "whole": coding.whole,
        "period": None if coding.period is None else str(coding.period),
        "means": None if coding.means is None else list(coding.means),
    }


def _write_meaning(meaning: object) -> object:
    if isinstance(meaning, Special):
        return {"special": meaning.name}
    return list(meaning) if isinstance(meaning, tuple) else meaning


def _read_meaning(entry: Any) -> Meaning:  # noqa: ANN401
    if isinstance(entry, dict):
        return Special(str(entry["special"]))
    return tuple(entry) if isinstance(entry, list) else entry


def _read_codebook(entry: Document) -> Codebook:
    return Codebook(
        {
            str(name): Coding(
                tuple(_read_meaning(m) for m in coding["meanings"]),
                whole=bool(coding["whole"]),
                period=None if coding["period"] is None else Period(coding["period"]),
                means=None if coding["means"] is None else tuple(coding["means"]),
            )
            for name, coding in entry.items()
        }
    )
