"""The noise of single columns in answers across them, against simulated noise."""

from __future__ import annotations

import numpy as np
import pytest

import juncture as jn
from juncture.fit.carried_noise import CarriedNoise
from juncture.fit.check import draw_check
from juncture.fit.plain_estimates import PlainEstimates
from juncture.publish.release import Release
from juncture.tables.queries.blocks import Block, Identity, Matrix
from juncture.tables.queries.products import Kron

DOMAIN = jn.Domain({"a": 3, "b": 4, "c": 2})
SHARES = {"a": [0.0, 0.3, 0.7], "b": [0.1, 0.2, 0.3, 0.4], "c": [0.5, 0.5]}
TOTAL = 1_000.0


def fit(stddev: float) -> tuple[jn.Model, list[jn.Measurement]]:
    """Independent columns, each of them measured alone; noise happens to be zero."""
    singles = [
        jn.Measurement((name,), TOTAL * np.array(shares), stddev=stddev)
        for name, shares in SHARES.items()
    ]
    return jn.estimate(DOMAIN, singles, total=TOTAL).model, singles


def carry(stddev: float, blocks: dict[str, Block], times: float = 1.0) -> np.ndarray:
    """What a question carries."""
    model, singles = fit(stddev)
    return CarriedNoise(model, PlainEstimates(DOMAIN, singles)).find(Kron(blocks), times)


@pytest.mark.parametrize("stddev", [5.0, 50.0, 400.0])
def test_products_of_noisy_shares(stddev: float) -> None:
    """The deviation of products is that of simulated ones, for cells of two and three columns."""
    rng = np.random.default_rng(0)
    noisy = [np.array(v) + rng.normal(size=(200_000, len(v))) * stddev / TOTAL
             for v in SHARES.values()]  # fmt: skip
    pairs = TOTAL * np.einsum("ni,nj->nij", *noisy[:2]).std(axis=0)
    found = carry(stddev, {"a": Identity(), "b": Identity()})
    assert found == pytest.approx(pairs, rel=0.02, abs=0.02)
    triples = TOTAL * np.einsum("ni,nj,nk->nijk", *noisy).std(axis=0)
    found = carry(stddev, {"a": Identity(), "b": Identity(), "c": Identity()})
    assert found == pytest.approx(triples, rel=0.03, abs=0.02)


def test_empty_values_carry_noise() -> None:
    """A value without records beside a share q carries q times its noise, whatever the count."""
    rows: dict[str, Block] = {"a": Identity(), "b": Matrix([[0.0, 1.0, 1.0, 0.0]])}
    assert carry(20.0, rows)[0, 0] == pytest.approx(20.0 * 0.5, rel=0.01)
    assert carry(20.0, rows, times=3.0)[0, 0] == pytest.approx(60.0 * 0.5, rel=0.02)


def test_a_part_carries_as_much_as_the_rest() -> None:
    """Where records are counted, three values of four are as sure as the fourth; all are sure."""
    for one, rest in (([0, 0, 0, 1.0], [1.0, 1, 1, 0]), ([2.0, 0, 0, 0], [0.0, 2, 2, 2])):
        noise = [
            carry(20.0, {"a": Matrix([[1.0, 0.0, 0.0]]), "b": Matrix([row])}) for row in (one, rest)
        ]
        share = [np.dot(row, SHARES["b"]) for row in (one, rest)]
        # a is empty, so only its own noise times the other's share, and both noises, are left
        own = [
            n.item() ** 2 - (s * 20.0 * np.sqrt(2 / 3)) ** 2
            for n, s in zip(noise, share, strict=True)
        ]
        assert own[0] == pytest.approx(own[1], rel=0.05)
    assert carry(20.0, {"b": Matrix([[1.0, 1.0, 1.0, 1.0]])}).item() == 0.0


def test_models_far_from_what_was_measured() -> None:
    """A model that is off by more than the noise carries what it is off."""
    _, singles = fit(1.0)
    model = jn.Model.of_potentials(DOMAIN, [], total=TOTAL)
    noise = CarriedNoise(model, PlainEstimates(DOMAIN, singles))
    found = noise.find(Kron({"a": Identity()}))
    assert found == pytest.approx(TOTAL * np.abs(np.array(SHARES["a"]) - 1 / 3), rel=0.01)
    more = noise.find(Kron({"a": Identity()}), 51.0)  # beside 50 more deviations, what it is off
    assert more == pytest.approx(found + 50.0, rel=0.01)


def test_averages_of_a_column_that_noise_hides() -> None:
    """A model with one value left of a column still says that its average is unsure."""
    values = {"a": [1_000.0, 0.0, 0.0], "b": [500.0, 500.0, 0.0, 0.0], "c": [400.0, 600.0]}
    singles = [jn.Measurement((name,), each, stddev=300.0) for name, each in values.items()]
    made = jn.estimate(DOMAIN, singles, total=TOTAL)
    cliques = [each.clique for each in singles]
    ((clique, query),) = draw_check(DOMAIN, cliques, np.random.default_rng(0))
    right = made.model.answer(query).reshape(-1)
    checked = jn.Measurement(clique, right, stddev=30.0, query=query)
    release = Release(model=made.model, measurements=singles, fit=made.summary, check=[checked])
    answer = release.sql(
        "SELECT AVG(a), SUM(a), COUNT(*) FROM t WHERE b = 0 AND c = 1", interval=0.95
    )
    mean, total, count = (cell for cell in answer.intervals[0] if cell is not None)
    noise = np.sqrt(2.0) * 300.0 / TOTAL  # of the mean of 0, 1 and 2, with counts that add up
    assert mean.upper > 1.9 * noise
    assert total.half_width > 100.0
    assert count.half_width > 1.9 * 300.0 * 0.5
