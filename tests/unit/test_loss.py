"""Losses equal their formulas, and gradients their finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.fit import sparse_queries
from juncture.fit.loss import CustomLoss, FitLoss, Kind
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout
from juncture.tables.measurement import Measurement
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron, Stack

DOMAIN = Domain({"a": 3, "b": 4, "c": 2})
LAYOUT = Layout(DOMAIN, [("a", "b"), ("b", "c"), ("c",)])
RNG = np.random.default_rng(0)
MARGINALS = RNG.random(LAYOUT.size) * 10
MEASUREMENTS = [
    Measurement(("a", "b"), RNG.normal(5, 3, 12), stddev=2.0),
    Measurement(("b", "a"), RNG.normal(5, 3, 12), stddev=RNG.random(12) + 0.5),
    Measurement(("c",), RNG.normal(5, 3, 2), stddev=0.7, noise="laplace"),
    Measurement(("b", "c"), RNG.normal(9, 3, 4), stddev=3.0, query=Kron({"b": blocks.Prefix()})),
    Measurement(
        ("c", "b"),
        RNG.normal(9, 3, 10),
        stddev=1.5,
        query=Stack([blocks.Identity(), Kron({"c": blocks.Identity()})]),
        noise="laplace",
    ),
    # Single queries: two on one clique in two orders, one that overlaps them, one of each noise.
    Measurement(("b", "a"), [4.0], stddev=0.5, query=Kron({"a": blocks.Range(1, 2)})),
    Measurement(("a", "b"), [7.0], stddev=2.5, query=Kron({"b": blocks.Range(0, 2)})),
    Measurement(("c", "b"), [3.0], stddev=1.2, query=blocks.Total(), noise="laplace"),
    Measurement(
        ("b", "c"), [1.0], stddev=0.8, noise="laplace",
        query=Kron({"b": blocks.Point(2), "c": blocks.WeightedSum((0.5, -2.0))}),
    ),
]  # fmt: skip


def residuals(marginals: Any) -> list[tuple[Any, Any]]:
    """For each measurement, its errors over their standard deviations, written out by hand."""
    ab = marginals[:12].reshape(3, 4)
    bc = marginals[12:20].reshape(4, 2)
    c = marginals[20:]
    answers = [
        ab.reshape(-1),
        ab.T.reshape(-1),
        c,
        np.cumsum(bc.sum(axis=1)),
        np.concatenate([bc.T.reshape(-1), bc.sum(axis=0)]),
        ab[1:].sum(keepdims=True).reshape(-1),
        ab[:, :3].sum(keepdims=True).reshape(-1),
        bc.sum(keepdims=True).reshape(-1),
        np.array([0.5 * bc[2, 0] - 2.0 * bc[2, 1]]),
    ]
    pairs = zip(answers, MEASUREMENTS, strict=True)
    return [((answer - m.values) / m.stddev, m.noise) for answer, m in pairs]


def expected(kind: Kind, marginals: Any) -> float:
    """The loss by its formula; a Laplace scale is the standard deviation over the root of 2."""
    total = 0.0
    for error, noise in residuals(marginals):
        squared = kind is Kind.L2 or (kind is Kind.LIKELIHOOD and str(noise) == "gaussian")
        total += 0.5 * np.sum(error**2) if squared else np.sum(np.abs(error)) * np.sqrt(2)
    return total


@pytest.fixture(params=["small queries together", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which queries with several answers are computed."""
    if request.param == "one by one":
        monkeypatch.setattr(sparse_queries, "_MAX_ENTRIES", 0)
    loss = FitLoss(LAYOUT, MEASUREMENTS, "l2")
    assert bool(loss._others) == (request.param == "one by one")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", list(Kind))
def test_value(kind: Kind) -> None:
    """The value is the formula's, for repeated, permuted, nested and queried cliques."""
    loss = FitLoss(LAYOUT, MEASUREMENTS, kind)
    value, _ = loss.value_and_gradient(MARGINALS)
    assert value == pytest.approx(expected(kind, MARGINALS))
    assert loss.value(MARGINALS) == pytest.approx(value)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", list(Kind))
def test_gradient(kind: Kind) -> None:
    """The gradient equals central differences in every cell."""
    loss = FitLoss(LAYOUT, MEASUREMENTS, kind)
    _, gradient = loss.value_and_gradient(MARGINALS)
    for cell, unit in enumerate(np.eye(LAYOUT.size) * 1e-5):
        above, below = expected(kind, MARGINALS + unit), expected(kind, MARGINALS - unit)
        assert gradient[cell] == pytest.approx((above - below) / 2e-5, abs=1e-4)


@pytest.mark.parametrize("copies", [1, 3])
def test_small_noise_costs_no_digits(copies: int) -> None:
    """Counts of a hundred million noise scales leave the loss exact, and never below zero."""
    rng = np.random.default_rng(8)
    exact = rng.uniform(1e7, 1e8, 12)
    errors = rng.normal(size=(copies, 12)) * 0.01
    given = [Measurement(("b", "a"), exact + error, stddev=1.0) for error in errors]
    layout = Layout(DOMAIN, [("a", "b")])
    table = layout.pack([Factor(DOMAIN.project(("b", "a")), exact.reshape(4, 3))])
    loss = FitLoss(layout, given, "l2")
    assert loss.value(table) == pytest.approx(0.5 * float((errors**2).sum()), rel=1e-4)
    assert loss.value_and_gradient(table)[0] == pytest.approx(loss.value(table), rel=1e-9)


def test_only_squares_are_smooth() -> None:
    """A loss with an absolute value somewhere is not smooth."""
    assert FitLoss(LAYOUT, MEASUREMENTS, "l2").is_smooth
    assert not FitLoss(LAYOUT, MEASUREMENTS, "likelihood").is_smooth


def test_expected_loss_at_the_truth() -> None:
    """At the truth the loss averages half a unit per Gaussian row and one per Laplace row.

    500 draws; the mean is within 6 standard errors, which fails once in 10**8 for right code.
    """
    truth, rng, losses = np.abs(MARGINALS), np.random.default_rng(1), []
    for _ in range(500):
        noisy = [
            Measurement(("a", "b"), truth[:12] + rng.normal(0, 2, 12), stddev=2.0),
            Measurement(
                ("c",), truth[20:] + rng.laplace(0, 3, 2), stddev=3 * 2**0.5, noise="laplace"
            ),
        ]
        loss = FitLoss(LAYOUT, noisy, "likelihood")
        losses.append(loss.value_and_gradient(truth)[0])
    assert loss.expected_at_truth == 8.0
    error = np.std(losses) / np.sqrt(len(losses))
    assert np.mean(losses) == pytest.approx(8.0, abs=6 * error)


def test_custom_loss() -> None:
    """Any function of factors becomes a loss over the flat vector."""

    def squares(marginals: Any) -> tuple[float, dict[Any, Factor]]:
        table = marginals["b", "a"]
        return float((table * table).sum()), {("b", "a"): 2 * table}

    value, gradient = CustomLoss(LAYOUT, [("b", "a")], squares).value_and_gradient(MARGINALS)
    assert value == pytest.approx(np.sum(MARGINALS[:12] ** 2))
    np.testing.assert_allclose(gradient[:12], 2 * MARGINALS[:12])
    np.testing.assert_array_equal(gradient[12:], 0)


def test_nonsense_is_refused() -> None:
    """Unknown kinds and values that are not finite are refused."""
    with pytest.raises(InvalidInput, match="`loss` must be one of l2, l1, likelihood"):
        FitLoss(LAYOUT, MEASUREMENTS, "l3")
    with pytest.raises(InvalidInput, match="`loss` must return a finite value; got nan"):
        CustomLoss(LAYOUT, [("c",)], lambda _: (float("nan"), {})).value_and_gradient(MARGINALS)
