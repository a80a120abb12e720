"""The noise of counts: least squares on the whole matrix of a measurement, written out."""

from __future__ import annotations

import numpy as np
import pytest

from juncture import Domain, Measurement, estimate
from juncture.publish.count_noise import CountNoise
from juncture.tables.queries import (
    AllRanges,
    Identity,
    Kron,
    Matrix,
    Prefix,
    Scaled,
    Stack,
    Total,
)
from juncture.tables.queries.products import bind

DOMAIN = Domain({"a": 4, "b": 3, "c": 2})
QUERIES = {
    "cells": (("a", "b"), None),
    "another order": (("b", "a"), None),
    "prefixes": (("a", "b"), Kron({"a": Prefix(), "b": Identity()})),
    "ranges": (("c", "a"), Kron({"a": AllRanges(), "c": Identity()})),
    "summed out": (("a", "c"), Kron({"a": Prefix()})),
    "scaled": (("a",), Scaled(0.25, Prefix())),
}


def by_hand(measurement: Measurement, name: str, weights: np.ndarray) -> float:
    """The standard deviation of a weighted sum of one attribute's counts, by least squares."""
    operator = measurement.operator(DOMAIN)
    size = int(np.prod(operator.shape))
    scaled = np.stack([operator.apply_flat(row) for row in np.eye(size)]).T
    scaled /= np.broadcast_to(measurement.stddev, measurement.n_rows)[:, None]
    axis = measurement.clique.index(name)
    spread = np.moveaxis(np.zeros(operator.shape), axis, -1) + weights
    wanted = np.moveaxis(spread, -1, axis).reshape(-1)
    return float(np.sqrt(wanted @ np.linalg.pinv(scaled.T @ scaled) @ wanted))


@pytest.mark.parametrize("kind", QUERIES)
def test_noise_is_that_of_least_squares(kind: str) -> None:
    """The noise of a count, and of a weighted sum, is that of the whole pseudo-inverse."""
    clique, query = QUERIES[kind]
    rows = bind(query or Identity(), Domain([(name, DOMAIN[name]) for name in clique])).n_rows
    measurement = Measurement(clique, np.zeros(rows), stddev=3.0, query=query)
    noise = CountNoise(DOMAIN, [measurement])
    stddevs = noise.stddevs(("a",))
    assert stddevs is not None
    expected = [by_hand(measurement, "a", row) for row in np.eye(4)]
    np.testing.assert_allclose(stddevs, expected, rtol=1e-9)
    weights = np.array([1.0, -0.5, 2.0, 0.25])
    assert noise.stddev_of_sum("a", weights) == pytest.approx(by_hand(measurement, "a", weights))


def test_single_deviations_count() -> None:
    """Where every answer has a noise of its own, the variances of a count's cells add up."""
    stddev = np.arange(1.0, 13.0)
    noise = CountNoise(DOMAIN, [Measurement(("b", "a"), np.zeros(12), stddev=stddev)])
    table = (stddev**2).reshape(3, 4)
    stddevs, cells = noise.stddevs(("a",)), noise.stddevs(("a", "b"))
    assert stddevs is not None
    assert cells is not None
    np.testing.assert_allclose(stddevs, np.sqrt(table.sum(axis=0)))
    np.testing.assert_allclose(cells, np.sqrt(table.T))


def test_independent_measurements_are_combined() -> None:
    """Two measurements of the same counts, or the parts of a stack, halve the variance."""
    alone = Measurement(("c",), [0.0, 0.0], stddev=2.0)
    twice = Measurement(("c",), np.zeros(4), stddev=2.0, query=Stack([Identity(), Identity()]))
    for measurements in ([alone, alone], [twice]):
        stddevs = CountNoise(DOMAIN, measurements).stddevs(("c",))
        assert stddevs is not None
        np.testing.assert_allclose(stddevs, np.sqrt(2.0))


@pytest.mark.parametrize("counted", [True, False])
def test_contrasts_and_the_number_of_records_make_counts(counted: bool) -> None:
    """How values differ, and how many records other attributes count, by one least squares."""
    rows = np.array([[1.0, -1.0, 0.0, 0.0], [1.0, 1.0, -2.0, 0.0], [1.0, 1.0, 1.0, -3.0]])
    differ = Measurement(("a",), np.zeros(3), stddev=2.0, query=Kron({"a": Matrix(rows)}))
    others = Measurement(("b",), np.zeros(3), stddev=5.0)
    alone = [Measurement(("a",), np.zeros(4), stddev=3.0)] if counted else []
    noise = CountNoise(DOMAIN, [differ, others, *alone])
    asked = np.concatenate([rows / 2.0, np.full((1, 4), 1.0 / np.sqrt(75.0))])
    precision = asked.T @ asked + (np.eye(4) / 9.0 if counted else 0.0)
    covariance = np.linalg.inv(precision)
    stddevs = noise.stddevs(("a",))
    assert stddevs is not None
    np.testing.assert_allclose(stddevs, np.sqrt(np.diag(covariance)), rtol=1e-9)
    weights = np.array([1.0, -0.5, 2.0, 0.25])
    expected = float(np.sqrt(weights @ covariance @ weights))
    assert noise.stddev_of_sum("a", weights) == pytest.approx(expected)


def test_values_that_nothing_was_asked_of_have_no_noise() -> None:
    """Two values are known by their sum and difference; nothing tells the two others apart."""
    rows = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]])
    asked = Measurement(("a",), np.zeros(2), stddev=2.0, query=Kron({"a": Matrix(rows)}))
    stddevs = CountNoise(DOMAIN, [asked, Measurement(("b",), np.zeros(3), stddev=1.0)]).stddevs(
        ("a",)
    )
    assert stddevs is not None
    np.testing.assert_allclose(stddevs[:2], np.sqrt(2.0))
    assert np.isinf(stddevs[2:]).all()


def test_what_is_not_measured_has_no_noise() -> None:
    """A total tells nothing about the counts of values, nor does a measurement of others."""
    total = Measurement(("a",), [10.0], stddev=1.0, query=Total())
    noise = CountNoise(DOMAIN, [total, Measurement(("b",), np.zeros(3), stddev=1.0)])
    assert noise.stddevs(("a",)) is None
    assert noise.stddevs(("a", "b")) is None
    assert noise.stddev_of_sum("a", np.arange(4.0)) is None
    # The number of all records is told by both: by three counts of variance 1, too.
    assert noise.stddev_of_sum("a", np.ones(4)) == pytest.approx(np.sqrt(3.0 / 4.0))
    assert CountNoise(DOMAIN, []).stddevs(("b",)) is None


def test_the_number_of_records_has_noise() -> None:
    """A total is as noisy as the sum of all cells of its measurements."""
    both = Measurement(("a", "b"), np.zeros(12), stddev=3.0)
    alone = Measurement((), [0.0], stddev=5.0, query=Total())
    for measurements, variance in (([both], 12 * 9.0), ([both, alone], 1 / (1 / 108 + 1 / 25))):
        stddev = CountNoise(DOMAIN, measurements).stddevs(())
        assert stddev is not None
        assert float(stddev) == pytest.approx(np.sqrt(variance))


def test_counts_of_a_model_are_off_by_about_their_noise() -> None:
    """Over many draws of noise, the errors of fitted counts are about the stated noise, or less."""
    rng, domain = np.random.default_rng(2), Domain({"a": 4, "b": 3})
    truth = rng.uniform(200.0, 900.0, (4, 3))
    clean = [(("a", "b"), truth), (("b",), truth.sum(axis=0))]
    squares, noise = np.zeros(4), None
    for _ in range(40):
        measurements = [
            Measurement(clique, table.ravel() + 15.0 * rng.standard_normal(table.size), stddev=15.0)
            for clique, table in clean
        ]
        noise = CountNoise(domain, measurements)
        squares += (estimate(domain, measurements).model.one_way("a") - truth.sum(axis=1)) ** 2
    assert noise is not None
    stddevs = noise.stddevs(("a",))
    assert stddevs is not None
    ratio = float(np.sqrt((squares / 40).mean())) / float(stddevs.mean())
    assert 0.7 < ratio < 1.15
