"""Where fits with records begin: columns as everything says that was asked of them alone."""

from __future__ import annotations

import numpy as np
import pytest

from juncture.fit.loss import FitLoss
from juncture.fit.solvers.independence import _estimate_shares
from juncture.tables.domain import Domain
from juncture.tables.layout import Layout
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Matrix
from juncture.tables.queries.products import Kron

DOMAIN = Domain({"a": 4})
COUNTS = np.array([400.0, 300.0, 200.0, 100.0])
# Each value but the last, beside the last one.
CONTRASTS = np.array([[1.0, 0.0, 0.0, -1.0], [0.0, 1.0, 0.0, -1.0], [0.0, 0.0, 1.0, -1.0]])


def find_share(*measurements: Measurement, total: float = 1000.0) -> np.ndarray:
    """The start of the one column."""
    loss = FitLoss(Layout(DOMAIN, (("a",),)), measurements, "l2")
    return _estimate_shares(loss, total)["a"]


def ask(rows: np.ndarray, values: np.ndarray, stddev: float) -> Measurement:
    """A measured query on the one column."""
    return Measurement(("a",), values, stddev=stddev, query=Kron({"a": Matrix(rows)}))


def test_contrasts_alone_tell_the_rest_by_the_number_of_records() -> None:
    """They do not know it, and the fit does."""
    found = find_share(ask(CONTRASTS, CONTRASTS @ COUNTS, 5.0))
    assert found == pytest.approx(COUNTS / 1000.0, abs=1e-9)


def test_counts_and_contrasts_are_weighed_by_their_noise() -> None:
    """The least squares of both, by brute force over the values that add up to the records."""
    counts = COUNTS + np.array([30.0, -20.0, 10.0, -20.0])
    contrasts = CONTRASTS @ COUNTS + np.array([4.0, -3.0, 2.0])
    found = find_share(Measurement(("a",), counts, stddev=20.0), ask(CONTRASTS, contrasts, 5.0))
    apart = np.linalg.svd(np.ones((1, 4)))[2][1:].T  # moves that keep the number of records
    rows = np.concatenate([np.eye(4) / 20.0, CONTRASTS / 5.0])
    asked = np.concatenate([counts / 20.0, contrasts / 5.0])
    even = np.full(4, 250.0)
    moved = np.linalg.lstsq(rows @ apart, asked - rows @ even, rcond=None)[0]
    assert found == pytest.approx((even + apart @ moved) / 1000.0, abs=1e-9)


def test_what_was_not_asked_of_is_even() -> None:
    """One number about the first two values says nothing of the two others."""
    found = find_share(ask(np.array([[1.0, -1.0, 0.0, 0.0]]), np.array([100.0]), 5.0))
    assert found == pytest.approx([0.3, 0.2, 0.25, 0.25], abs=1e-9)


def test_a_count_below_its_noise_keeps_a_share() -> None:
    """A value that seems to have no records may have some: a third of the noise."""
    found = find_share(ask(np.eye(4), np.array([700.0, 300.0, 0.0, 0.0]), 30.0))
    assert found[2] == pytest.approx(found[3])
    assert 0.003 < found[2] < 0.02
