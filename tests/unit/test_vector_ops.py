"""Arithmetic on flat vectors: NumPy is the reference, and addresses change no bit."""

from __future__ import annotations

import numpy as np
import pytest

from juncture import Domain
from juncture.engine import vector_ops
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation

LENGTHS = (1, 2, 7, 8, 11, 16, 17, 31, 33, 63, 64, 65, 1000)


@pytest.mark.parametrize("n", LENGTHS)
def test_quadratics_are_those_of_numpy(n: int) -> None:
    """Value and gradient, below and above the length that has a loop of its own."""
    vector, centre, precision = np.random.default_rng(n).random((3, n))
    gradient = np.full(n, np.nan)
    expected = 0.5 * float(np.sum(precision * (vector - centre) ** 2))
    assert vector_ops.quadratic(vector, centre, precision, gradient) == pytest.approx(expected)
    assert vector_ops.quadratic_value(vector, centre, precision) == pytest.approx(expected)
    np.testing.assert_allclose(gradient, precision * (vector - centre), rtol=1e-14)


@pytest.mark.parametrize("n", LENGTHS)
def test_addresses_change_no_bit_of_a_sum(n: int) -> None:
    """The gradient may lie anywhere behind, or before, each of the operands."""
    vector, centre, precision = np.random.default_rng(n).random((3, n))
    values, gradients = set[float](), set[bytes]()
    for role in range(3):
        for gap in range(-40, 41):
            memory = np.empty(2 * n + abs(gap))
            read, written = memory[:n], memory[n + abs(gap) :]
            if gap < 0:
                read, written = memory[n + abs(gap) :], memory[:n]
            operands = [vector, centre, precision]
            read[:] = operands[role]
            operands[role] = read
            values.add(vector_ops.quadratic(operands[0], operands[1], operands[2], written))
            gradients.add(written.tobytes())
    assert len(values) == len(gradients) == 1


@pytest.mark.parametrize("size", [2, 3, 5, 17])
def test_addresses_change_no_bit_of_a_marginal(size: int) -> None:
    """Marginals that lie a few numbers behind their potentials, or far away."""
    domain = Domain({"a": size, "b": 3, "c": size, "d": 2})
    oracle = Propagation(Plan.build(domain, [("a", "b"), ("b", "c"), ("a", "c", "d")]))
    n = oracle.layout.zeros().size
    potentials = np.random.default_rng(size).normal(size=n)
    found = set[bytes]()
    for gap in range(41):
        memory = np.empty(2 * n + gap)
        memory[:n] = potentials
        beliefs = oracle.marginals(memory[:n], 10.0, out=memory[n + gap :])
        found.add(beliefs.marginals.tobytes() + np.float64(beliefs.log_partition).tobytes())
    assert len(found) == 1
