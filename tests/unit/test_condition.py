"""Evidence that is less probable than the smallest number: the distribution stays exact."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp

from juncture import Codebook, Coding, Domain, Factor, InvalidInput, Model, Release, load

SIZE, LENGTH, TOTAL = 10, 600, 50_000.0
DOMAIN = Domain({f"x{i}": SIZE for i in range(LENGTH)})
# Two attributes in three are known; x_i with i divisible by three are not.
UNKNOWN = [i for i in range(LENGTH) if i % 3 == 0]


class Chain(NamedTuple):
    """A Markov chain, what is known of it, and what is exact: all by sums of exponentials."""

    model: Model
    evidence: dict[str, int]
    conditioned: Model
    log_share: float
    singles: np.ndarray
    """Log-probabilities of each attribute's values, given the evidence."""
    pairs: np.ndarray
    """And of each attribute's values with those of the next one."""


@pytest.fixture(scope="module")
def chain() -> Chain:
    """A chain of 600 attributes with evidence on 400, of probability e**-1000 or so."""
    rng = np.random.default_rng(11)
    steps = rng.normal(scale=1.5, size=(LENGTH - 1, SIZE, SIZE))
    factors = [
        Factor(DOMAIN.project(pair), step)
        for pair, step in zip(pairwise(DOMAIN), steps, strict=True)
    ]
    model = Model.of_potentials(DOMAIN, factors, TOTAL)
    evidence = {f"x{i}": int(rng.integers(SIZE)) for i in range(LENGTH) if i % 3}
    allowed = np.zeros((LENGTH, SIZE))
    for i in range(LENGTH):
        if i % 3:
            allowed[i] = -math.inf
            allowed[i, evidence[f"x{i}"]] = 0.0
    up, down = messages(steps, allowed)
    log_share = float(logsumexp(down[-1])) - float(
        logsumexp(messages(steps, np.zeros(allowed.shape))[1][-1])
    )
    singles = normalised(up + down, (1,))
    pairs = normalised(down[:-1, :, None] + steps + (allowed + up)[1:, None, :], (1, 2))
    return Chain(model, evidence, model.condition(evidence), log_share, singles, pairs)


def messages(steps: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What follows and what precedes each attribute, in logarithms, itself among the latter."""
    up, down = np.zeros(allowed.shape), allowed.copy()
    for i, step in enumerate(steps):
        down[i + 1] += logsumexp(down[i][:, None] + step, axis=0)
    for i in reversed(range(len(steps))):
        up[i] = logsumexp(steps[i] + (allowed + up)[i + 1], axis=1)
    return up, down


def normalised(scores: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Log-probabilities."""
    return np.asarray(scores - logsumexp(scores, axis=axes, keepdims=True))


def entropy(log_p: np.ndarray) -> float:
    """Of one table, in nats."""
    return -float(sum(math.exp(each) * each for each in log_p.reshape(-1) if each > -700))


def test_the_total_may_vanish_but_its_logarithm_does_not(chain: Chain) -> None:
    """The expected number of such records is no floating-point number; everything else is."""
    assert chain.log_share < -800
    assert chain.conditioned.total == 0.0
    expected = math.log(TOTAL) + chain.log_share
    assert chain.conditioned.log_total == pytest.approx(expected, rel=1e-12)
    assert chain.model.log_total == pytest.approx(math.log(TOTAL), rel=1e-15)
    assert (chain.conditioned.marginals == 0).all()
    assert (chain.conditioned.project(("x0", "x3")).values == 0).all()


def test_the_distribution_is_exact(chain: Chain) -> None:
    """Single attributes, pairs that a clique holds, and pairs that none does."""
    found = chain.conditioned.with_total(1.0)
    assert found.total == 1.0
    for i in (0, 1, 2, 3, 300, 597, 599):
        expected = np.exp(chain.singles[i])
        np.testing.assert_allclose(found.one_way(f"x{i}"), expected, rtol=1e-9, atol=1e-300)
    joint = found.project(("x300", "x301")).values
    np.testing.assert_allclose(joint, np.exp(chain.pairs[300]), rtol=1e-9, atol=1e-300)
    far = np.outer(np.exp(chain.singles[300]), np.exp(chain.singles[303]))
    np.testing.assert_allclose(found.project(("x300", "x303")).values, far, rtol=1e-9)


def test_information_is_exact(chain: Chain) -> None:
    """Entropies, mutual information and log-probabilities do not depend on the total."""
    edges = math.fsum(entropy(pair) for pair in chain.pairs)
    inner = math.fsum(entropy(single) for single in chain.singles[1:-1])
    assert chain.conditioned.entropy == pytest.approx(edges - inner, rel=1e-9)
    assert chain.conditioned.entropy_of(("x300",)) == pytest.approx(entropy(chain.singles[300]))
    record = chain.conditioned.most_probable()
    assert record.items() >= chain.evidence.items()
    columns = {name: [code] for name, code in record.items()}
    gain = chain.conditioned.log_probability(columns) - chain.model.log_probability(columns)
    assert gain[0] == pytest.approx(-chain.log_share, rel=1e-9)


def test_mutual_information_where_nothing_between_is_known() -> None:
    """Evidence far away leaves what two neighbours tell about each other."""
    rng = np.random.default_rng(5)
    steps = rng.normal(scale=1.5, size=(LENGTH - 1, SIZE, SIZE))
    factors = [
        Factor(DOMAIN.project(pair), step)
        for pair, step in zip(pairwise(DOMAIN), steps, strict=True)
    ]
    model = Model.of_potentials(DOMAIN, factors, TOTAL)
    evidence = {f"x{i}": int(rng.integers(SIZE)) for i in range(100, 500)}
    allowed = np.zeros((LENGTH, SIZE))
    for name, code in evidence.items():
        row = allowed[int(name[1:])]
        row[:] = -math.inf
        row[code] = 0.0
    up, down = messages(steps, allowed)
    joint = normalised(down[50][:, None] + steps[50] + up[51][None, :], (0, 1))
    parts = [entropy(np.asarray(logsumexp(joint, axis=axis))) for axis in (0, 1)]
    conditioned = model.condition(evidence)
    assert conditioned.total == 0.0
    found = conditioned.mutual_information(("x50",), ("x51",))
    assert found == pytest.approx(sum(parts) - entropy(joint), rel=1e-8)
    assert found > 0.2


def test_records_agree_with_the_evidence(chain: Chain) -> None:
    """Drawn or synthesized, and with the right frequencies of what is not known."""
    n = 4000
    for records in (chain.conditioned.sample(n, rng=0), chain.conditioned.synthesize(n, rng=0)):
        assert all((records[name] == code).all() for name, code in chain.evidence.items())
        for i in (0, 300, 597):
            p = np.exp(chain.singles[i])
            counts = np.bincount(records[f"x{i}"], minlength=SIZE)
            assert (np.abs(counts - n * p) < 5 * np.sqrt(n * p * (1 - p)) + 1).all()
    assert len(chain.conditioned.sample(rng=0)["x0"]) == 0


def test_conditions_one_after_another(chain: Chain) -> None:
    """Are those together, also when the total is gone after the first."""
    names = list(chain.evidence)
    first, second = (
        {name: chain.evidence[name] for name in half} for half in (names[:380], names[380:])
    )
    found = chain.model.condition(first).condition(second)
    assert found.log_total == pytest.approx(chain.conditioned.log_total, rel=1e-12)
    np.testing.assert_allclose(found.probabilities, chain.conditioned.probabilities, atol=1e-9)


def test_answers_that_are_ratios(chain: Chain) -> None:
    """Means are those of the distribution; counts are zero."""
    book = Codebook({"x0": Coding(tuple(range(SIZE))), "x3": Coding(tuple(range(SIZE)))})
    mean = float(np.exp(chain.singles[0]) @ np.arange(SIZE))
    conditioned = chain.conditioned.with_codebook(book)
    np.testing.assert_allclose(conditioned.conditional_mean("x0", ("x3",)), mean, rtol=1e-9)
    count, average = conditioned.sql("SELECT COUNT(*), AVG(x0) FROM t").rows[0]
    assert count == 0.0
    assert average == pytest.approx(mean)
    groups = conditioned.sql("SELECT x3, AVG(x0) FROM t GROUP BY x3").rows
    assert [row[1] for row in groups] == pytest.approx([mean] * len(groups))
    assert len(groups) > 3


def test_a_saved_model_opens_again(chain: Chain, tmp_path: Path) -> None:
    """To the bit, and saving again gives the same file."""
    path = Release(model=chain.conditioned).save(tmp_path / "some.jct")
    found = load(path).model
    assert found.log_total == chain.conditioned.log_total
    assert found.probabilities.tobytes() == chain.conditioned.probabilities.tobytes()
    assert found.entropy == chain.conditioned.entropy
    again = Release(model=found).save(tmp_path / "again.jct")
    assert again.read_bytes() == path.read_bytes()


def test_another_total(chain: Chain) -> None:
    """The same distribution may stand for any number of records, but not for none."""
    found = chain.model.with_total(10.0)
    np.testing.assert_allclose(found.one_way("x7"), chain.model.one_way("x7") / (TOTAL / 10.0))
    assert found.log_probability({name: [0] for name in DOMAIN}) == pytest.approx(
        chain.model.log_probability({name: [0] for name in DOMAIN})
    )
    for total in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="`total` must be positive and finite"):
            chain.model.with_total(total)
