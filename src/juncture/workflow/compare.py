"""A release held against its private table: by exact counts, or by noisy ones that are paid for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from juncture._util.randomness import Random
from juncture.engine.compiled.loader import load_routines
from juncture.errors import InvalidInput
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.privacy.request import Request
from juncture.private.curator import Curator
from juncture.private.sources.duck import DuckDB
from juncture.publish.compare_page.facts import ColumnCounts, Comparison, Lesson
from juncture.publish.compare_page.learning import (
    MAX_RECORDS,
    NO_LEARNER,
    can_teach,
    choose_target,
    teach,
)
from juncture.publish.comparison import (
    Association,
    Difference,
    compare_tables,
    list_small_cliques,
    measure_association,
)
from juncture.publish.release import Release
from juncture.publish.strongest_pairs import find_strongest_pairs
from juncture.tables.domain import Clique
from juncture.tables.factor import Factor
from juncture.tables.layout import Vector
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.schema import Schema

if TYPE_CHECKING:
    from juncture.private.sources.files import AnyTable

# Of a comparison with a budget: so many pairs are counted, for half of it.
_MAX_PAIRS = 50


def compare_with_table(
    release: Release,
    table: AnyTable,
    schema: Schema,
    *,
    target: str | None = None,
    rng: Random = 0,
) -> Comparison:
    """Hold a release against the exact counts of its table: the result is as private as that.

    - `target`: what a classifier predicts; by default the column of few values that depends most on
      the others, in the release.
    """
    model = release.model
    if target is not None:
        model.domain.project([target])  # refuses a name that it does not have
    source = DuckDB(table, schema)
    cliques = [c for c in list_small_cliques(model.domain) if len(c) <= 2]
    truth, released = source.exact_counts(cliques), model.project_many(cliques)
    differences, columns = list[Difference](), list[ColumnCounts]()
    associations = list[Association]()
    for clique, true, other in zip(cliques, truth, released, strict=True):
        differences.append(compare_tables(clique, true.values, other.values))
        if len(clique) == 1:
            columns.append(ColumnCounts(clique[0], true.values, other.values))
        else:
            strengths = measure_association(true.values), measure_association(other.values)
            associations.append(Association(clique, *strengths))
    teaches = target is not None or can_teach()
    lesson = _teach(release, source, associations, target, rng) if teaches else None
    why = "No column has between 2 and 20 values to predict." if teaches else NO_LEARNER
    return Comparison(
        model.codebook, columns, differences, associations, lesson, "" if lesson else why
    )


def _teach(
    release: Release,
    source: DuckDB,
    associations: Sequence[Association],
    target: str | None,
    rng: Random,
) -> Lesson | None:
    domain = release.model.domain
    wanted = target or choose_target(domain, _mean_strengths(associations))
    if wanted is None or len(domain) < 2:
        return None
    real = source.exact_codes().exact_records()
    n = min(len(real[wanted]), MAX_RECORDS)
    return teach(wanted, real, release.model.sample(max(1, n), rng=rng))


def _mean_strengths(associations: Sequence[Association]) -> dict[str, float]:
    """How strongly each column depends on the others in the release, on average."""
    found = dict[str, list[float]]()
    for each in associations:
        for name in each.pair:
            found.setdefault(name, []).append(each.other)
    return {name: float(np.mean(strengths)) for name, strengths in found.items()}


def compare_under_budget(
    release: Release, table: AnyTable, schema: Schema, budget: Budget, *, ledger: str | Path
) -> Comparison:
    """Hold a release against noisy counts of its table, which are paid for: it may be published.

    Half of the budget counts every single column, the other half the pairs that depend most on each
    other in the release, at most 50 of them. Which pairs these are is public: the release is.

    Privacy: every table is one measurement of the curator, with an equal share of its half. Shares
    add up to the budget, as prices of one kind do, and everything else is made from the release and
    from these noisy counts.
    """
    model = release.model
    singles: list[Clique] = [(name,) for name in model.domain]
    strongest = find_strongest_pairs(model, _MAX_PAIRS).pairs if len(model.domain) > 1 else []
    pairs = [pair.joint.domain.attributes for pair in strongest]
    halves = (0.5, 0.5) if pairs else (1.0, 0.0)
    requests = [
        Request(clique, budget.price.share(half / len(group)))
        for group, half in zip((singles, pairs), halves, strict=True)
        for clique in group
    ]
    source = DuckDB(table, schema)
    load_routines()
    file = Path(ledger)
    book = Ledger(file) if file.exists() else Ledger.create(file, budget)
    curator = Curator(source, book)
    released = list(model.project_many([request.clique for request in requests]))
    measured = curator.measure_all(requests)
    differences = [_compare_noisy(m, r) for m, r in zip(measured, released, strict=True)]
    columns = [
        ColumnCounts(m.clique[0], m.values, r.values)
        for m, r in zip(measured, released, strict=True)
        if len(m.clique) == 1
    ]
    spent = f"{budget} ({book.neighbours}), in {len(requests)} events of {file.name}"
    return Comparison(
        model.codebook, columns, differences, guarantee=spent,
        no_lesson="A classifier is not tested under a budget: it would need single records.",
    )  # fmt: skip


def _compare_noisy(measurement: Measurement, released: Factor) -> Difference:
    """The difference, with the error that the noise would show by itself."""
    truth: Vector = measurement.values.reshape(released.values.shape)
    stddev = float(np.mean(measurement.stddev))
    mean = stddev * (np.sqrt(2.0 / np.pi) if measurement.noise is Noise.GAUSSIAN else np.sqrt(0.5))
    return compare_tables(measurement.clique, truth, released.values, float(mean))


def find_schema(release: Release, schema: Schema | None) -> Schema:
    """The schema of a comparison: the one given or that of the release; refuses another one."""
    parsed = schema or release.schema
    if parsed is None:
        raise InvalidInput(
            "`--schema` must be given, because the release contains none; got nothing. It says "
            "how the table's values are encoded."
        )
    if parsed.domain != release.model.domain:
        raise InvalidInput(
            "`--schema` must have the columns and sizes of the release; got others. Give the one "
            "that the release was made with."
        )
    return parsed
