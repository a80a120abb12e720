"""Every oracle gives every problem's answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import brute
import packing
import problems
from brute import Array, Tables
from emulated_card import COMPILER, EmulatedCard
from juncture.engine.gpu.interpreter import NumpyDevice
from juncture.engine.gpu.propagation import GpuPropagation
from juncture.engine.oracle import Oracle
from juncture.engine.plan import Plan
from juncture.engine.propagation import Propagation
from juncture.engine.reference import Reference
from juncture.errors import ImpossibleModel, InvalidInput
from juncture.tables.domain import Domain
from problems import PROBLEMS, Problem

Make = Callable[[Plan], Oracle]


def one_thread(plan: Plan) -> Propagation:
    """Give exact message passing on one thread."""
    return Propagation(plan, threads=1)


def two_threads(plan: Plan) -> Propagation:
    """Give exact message passing on two threads."""
    return Propagation(plan, threads=2)


def levels(plan: Plan) -> GpuPropagation:
    """Give what a card does, run by NumPy."""
    return GpuPropagation(plan, device=NumpyDevice())


def kernels(plan: Plan) -> GpuPropagation:
    """Give what a card does, its kernels compiled for the processor."""
    return GpuPropagation(plan, device=EmulatedCard())


ORACLES: list[Make] = [Reference, one_thread, two_threads, levels]
ORACLES += [kernels] if COMPILER else []
PAIRS = [
    pytest.param(make, problem, id=f"{make.__name__}-{problem}")
    for make in ORACLES
    for problem in PROBLEMS
    if make is not Reference or problem.is_dense
]
everywhere = pytest.mark.parametrize(("make", "problem"), PAIRS)
every_oracle = pytest.mark.parametrize("make", ORACLES)


def prepared(make: Make, problem: Problem) -> tuple[Oracle, Array]:
    """Give the oracle of a problem and the problem's potentials as a vector."""
    oracle = make(Plan.build(Domain(problem.sizes), problem.cliques))
    return oracle, packing.pack(oracle.layout, problem.potentials)


def made(make: Make, sizes: brute.Sizes, tables: Tables) -> tuple[Oracle, Array]:
    """Give the oracle of these tables and its vector."""
    oracle = make(packing.plan_of(sizes, tables))
    return oracle, packing.pack(oracle.layout, tables)


@everywhere
@pytest.mark.parametrize("total", [1.0, 48842.0, 1e-6])
def test_marginals(make: Make, problem: Problem, total: float) -> None:
    """The marginals are the problem's, scaled to the total, to 1e-10 of it."""
    oracle, vector = prepared(make, problem)
    beliefs = oracle.marginals(vector, total)
    for clique, table in problem.answer.marginals.items():
        found = packing.unpack(oracle.layout, beliefs.marginals, clique)
        np.testing.assert_allclose(found, table * total, rtol=0, atol=1e-10 * total)


@everywhere
def test_log_partition(make: Make, problem: Problem) -> None:
    """Log Z is the problem's to 1e-10."""
    oracle, vector = prepared(make, problem)
    found = oracle.marginals(vector).log_partition
    assert found == pytest.approx(problem.answer.log_partition, rel=1e-10, abs=1e-10)


@everywhere
def test_maximum(make: Make, problem: Problem) -> None:
    """The peak has the problem's best score, and its record attains it."""
    oracle, vector = prepared(make, problem)
    peak = oracle.maximum(vector)
    assert peak.score == pytest.approx(problem.answer.score, rel=1e-12, abs=1e-12)
    attained = brute.score_of(problem.potentials, peak.record)
    assert attained == pytest.approx(problem.answer.score, rel=1e-12, abs=1e-12)


@everywhere
def test_maximum_names_every_attribute(make: Make, problem: Problem) -> None:
    """The peak's record has an integer code inside the domain for every attribute, in order."""
    oracle, vector = prepared(make, problem)
    record = oracle.maximum(vector).record
    assert list(record) == [name for name, _ in problem.sizes]
    assert all(type(code) is int for code in record.values())
    assert all(0 <= record[name] < size for name, size in problem.sizes)


@every_oracle
def test_counting(make: Make) -> None:
    """With zeros alone, Z counts the possible records: here, sequences that never decrease."""
    staircase = next(problem for problem in PROBLEMS if problem.name == "staircase")
    oracle, vector = prepared(make, staircase)
    expected = math.log(brute.n_monotone(length=6, n_values=4))
    assert oracle.marginals(vector).log_partition == pytest.approx(expected, rel=1e-14)


@every_oracle
def test_no_potentials_at_all(make: Make) -> None:
    """Without cliques, log Z is the logarithm of the number of records."""
    oracle, vector = made(make, problems.attributes(3, 5, 7), {})
    beliefs = oracle.marginals(vector)
    assert beliefs.marginals.shape == (0,)
    assert beliefs.log_partition == pytest.approx(math.log(105), rel=1e-14)


@every_oracle
def test_equal_records(make: Make) -> None:
    """Where all records score the same, the peak's score is that score."""
    tables: Tables = {("a", "b"): np.full((3, 2), 1.5), ("b", "c"): np.full((2, 4), -0.25)}
    oracle, vector = made(make, problems.attributes(3, 2, 4), tables)
    assert oracle.maximum(vector).score == 1.25


# What arithmetic makes of infinity minus infinity has its sign bit set on some processors.
NONSENSE = [math.nan, -math.nan, math.inf]
NONSENSE_IDS = ["nan", "negative nan", "inf"]


def contradiction() -> tuple[brute.Sizes, Tables]:
    """Give a chain whose ends leave no value for the middle."""
    first = np.where(np.arange(3) == 0, 0.0, -np.inf) + np.zeros((2, 1))
    second = np.where(np.arange(3) == 0, -np.inf, 0.0)[:, None] + np.zeros((1, 2))
    return problems.attributes(2, 3, 2), {("a", "b"): first, ("b", "c"): second}


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
def test_impossible_models_are_refused(make: Make, ask: str) -> None:
    """Zeros that together exclude every record give ImpossibleModel."""
    oracle, vector = made(make, *contradiction())
    with pytest.raises(ImpossibleModel, match="contradict each other"):
        getattr(oracle, ask)(vector)


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
def test_a_table_of_zeros_is_refused(make: Make, ask: str) -> None:
    """A table that excludes all of its own cells gives ImpossibleModel."""
    tables: Tables = {("a",): np.full(3, -np.inf), ("b",): np.zeros(2)}
    oracle, vector = made(make, problems.attributes(3, 2), tables)
    with pytest.raises(ImpossibleModel, match="must leave at least one record possible"):
        getattr(oracle, ask)(vector)


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
@pytest.mark.parametrize("nonsense", NONSENSE, ids=NONSENSE_IDS)
def test_nonsense_potentials_are_refused(make: Make, ask: str, nonsense: float) -> None:
    """One not-a-number or plus infinity in any cell gives InvalidInput, never an answer."""
    tables = {("a", "b"): np.zeros((3, 3)), ("b", "c"): np.zeros((3, 2)), (): np.zeros(())}
    oracle, vector = made(make, problems.attributes(3, 3, 2), tables)
    for place in range(len(vector)):
        spoiled = vector.copy()
        spoiled[place] = nonsense
        with pytest.raises(InvalidInput, match="must be finite or minus infinity"):
            getattr(oracle, ask)(spoiled)


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
@pytest.mark.parametrize("nonsense", NONSENSE, ids=NONSENSE_IDS)
def test_nonsense_beside_zeros_is_refused(make: Make, ask: str, nonsense: float) -> None:
    """Nonsense is refused also where everything else is excluded."""
    tables: Tables = {("a",): np.array([nonsense, -np.inf]), ("a", "b"): np.full((2, 2), -np.inf)}
    oracle, vector = made(make, problems.attributes(2, 2), tables)
    with pytest.raises(InvalidInput, match="must be finite or minus infinity"):
        getattr(oracle, ask)(vector)


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
@pytest.mark.parametrize("nonsense", NONSENSE, ids=NONSENSE_IDS)
def test_nonsense_in_large_tables_is_refused(make: Make, ask: str, nonsense: float) -> None:
    """Nonsense in a table long enough for vector code, and far below the best, is refused."""
    table = np.linspace(-5000.0, 0.0, 37 * 11).reshape(37, 11)
    oracle, vector = made(make, problems.attributes(37, 11), {("a", "b"): table})
    for place in (0, 1, 5, 200, 405, 406):
        spoiled = vector.copy()
        spoiled[place] = nonsense
        with pytest.raises(InvalidInput, match="must be finite or minus infinity"):
            getattr(oracle, ask)(spoiled)


@every_oracle
@pytest.mark.parametrize("ask", ["marginals", "maximum"])
@pytest.mark.parametrize("shape", [(5,), (7,), (0,), (), (2, 3), (6, 1)])
def test_wrong_lengths_are_refused(make: Make, ask: str, shape: tuple[int, ...]) -> None:
    """Potentials that are not one flat vector of the layout's length are refused."""
    oracle, _ = made(make, problems.attributes(2, 3), {("a", "b"): np.zeros((2, 3))})
    with pytest.raises(InvalidInput, match="must be flat with 6 entries"):
        getattr(oracle, ask)(np.zeros(shape))


@every_oracle
@pytest.mark.parametrize("length", [5, 7])
def test_wrong_lengths_of_out_are_refused(make: Make, length: int) -> None:
    """An `out` of the wrong length is refused and nothing beyond its end is written."""
    oracle, vector = made(make, problems.attributes(2, 3), {("a", "b"): np.zeros((2, 3))})
    buffer = np.full(20, -7.0)
    with pytest.raises((InvalidInput, ValueError), match="out|shape"):
        oracle.marginals(vector, out=buffer[:length])
    assert (buffer[length:] == -7.0).all()


@every_oracle
@pytest.mark.parametrize("kind", ["the potentials", "single precision", "strided"])
def test_odd_outs_are_refused_or_right(make: Make, kind: str) -> None:
    """An `out` that is no plain vector of its own is refused, or receives the right numbers."""
    oracle, vector = made(make, problems.attributes(3), {("a",): np.array([0.0, 1.0, -2.0])})
    expected = np.exp(vector) / np.exp(vector).sum()
    single: Any = np.zeros(3, dtype=np.float32)
    out = {"the potentials": vector, "single precision": single, "strided": np.zeros(6)[::2]}[kind]
    try:
        oracle.marginals(vector, out=out)
    except InvalidInput as error:
        assert "`out` must be" in str(error)  # noqa: PT017
        return
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@every_oracle
@pytest.mark.parametrize("convert", [list, np.float32, np.array([1.0, 9.0])])
def test_potentials_are_converted(make: Make, convert: Any) -> None:
    """Lists, single precision and strided vectors of potentials are accepted."""
    tables: Tables = {("a",): np.array([0.0, 1.0, -2.0])}
    oracle, vector = made(make, problems.attributes(3), tables)
    given = np.outer(vector, convert)[:, 0] if isinstance(convert, np.ndarray) else convert(vector)
    expected = np.exp(vector) / np.exp(vector).sum()
    np.testing.assert_allclose(oracle.marginals(given).marginals, expected, rtol=1e-14)


@every_oracle
def test_frozen_potentials_are_accepted(make: Make) -> None:
    """Potentials that may not be written to give the same answer."""
    oracle, vector = made(make, problems.attributes(3), {("a",): np.array([0.0, 1.0, -2.0])})
    expected = oracle.marginals(vector).marginals.copy()
    vector.flags.writeable = False
    assert oracle.marginals(vector).marginals.tobytes() == expected.tobytes()


@every_oracle
@pytest.mark.parametrize("total", [0.0, -1.0, np.inf, np.nan])
def test_nonsense_totals_are_refused(make: Make, total: float) -> None:
    """A total must be positive and finite."""
    oracle, vector = made(make, problems.attributes(2, 3), {("a", "b"): np.zeros((2, 3))})
    with pytest.raises(InvalidInput, match="`total` must be positive and finite"):
        oracle.marginals(vector, total)


@every_oracle
def test_unfit_receivers_are_refused(make: Make) -> None:
    """Marginals are not written over the potentials, nor into arrays of another kind."""
    oracle, vector = made(make, problems.attributes(2, 3), {("a", "b"): np.zeros((2, 3))})
    unfit: list[Any] = [vector, np.zeros(12)[::2], np.zeros(6, dtype=np.float32)]
    for out in unfit:
        with pytest.raises(InvalidInput, match="`out` must be a writable"):
            oracle.marginals(vector, out=out)


@pytest.mark.parametrize("threads", [0, -1, 2.5, True])
def test_nonsense_thread_counts_are_refused(threads: Any) -> None:
    """A thread count must be a positive integer."""
    plan = Plan.build(Domain({"a": 2}), [("a",)])
    with pytest.raises(InvalidInput, match="`threads` must be a positive integer"):
        Propagation(plan, threads=threads)
