"""Multiplicative weights: closed forms, agreement of the two forms, and limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chain_table import DOMAIN
from juncture.errors import ModelTooLarge
from juncture.mechanisms.multiplicative_weights import MultiplicativeWeights
from juncture.mechanisms.mwem import extract_row
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity
from juncture.tables.workload import Task


def test_dense_forms_say_when_they_do_not_fit(tmp_path: Path) -> None:
    """Before the table is made, with its size and what to do."""
    wide = Domain({f"x{i}": 100 for i in range(9)})
    with pytest.raises(ModelTooLarge, match="Use the graphical-model form"):
        MultiplicativeWeights(wide, 10.0, factored=False)
    weights = MultiplicativeWeights(wide, 10.0, factored=True)
    pairs = [(f"x{i}", f"x{i + 1}") for i in range(8)]
    measured = [Measurement(pair, np.zeros(10_000), stddev=1.0) for pair in pairs]
    with pytest.raises(ModelTooLarge, match="a dense table over"):
        weights.fit(measured, 1)
    assert not list(tmp_path.iterdir())


def test_factored_weights_are_full_weights_on_disjoint_groups() -> None:
    """Where measurements share no attribute, the product of the groups is the full table."""
    rng = np.random.default_rng(0)
    measured = [
        Measurement(("a", "b"), rng.random(12) * 10, stddev=1.0),
        Measurement(("d",), rng.random(5) * 10, stddev=1.0),
    ]
    tables = []
    for factored in (True, False):
        weights = MultiplicativeWeights(DOMAIN, 60.0, factored=factored)
        weights.fit(measured, 30)
        tables.append(weights.project(("d", "c", "a")).values)
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-9)


def test_one_step_of_multiplicative_weights() -> None:
    """The closed form for a table of two cells."""
    domain, total, seen = Domain({"x": 2}), 10.0, 9.0
    weights = MultiplicativeWeights(domain, total, factored=False)
    weights.fit([Measurement(("x",), [seen], stddev=1.0, query=extract_row(
        Task(("x",), (Identity(),)), domain, 0))], 1)  # fmt: skip
    step = np.exp((seen - total / 2) / (2 * total))
    assert weights.project(("x",)).values[0] == pytest.approx(total * step / (step + 1))
