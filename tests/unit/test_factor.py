"""Tests of named-axis arrays against NumPy with the axes written out by hand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from brute import Array, einsum
from juncture.errors import InvalidInput, UnknownAttribute
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor

NAMES = strategies.NAMES
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
AB = Domain({"a": 2, "b": 3})
VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def at(factor: Factor, codes: dict[str, int]) -> float:
    """Give the entry of a factor at the codes of its attributes."""
    return float(factor.values[tuple(codes[name] for name in factor.domain)])


def all_codes(domain: Domain) -> list[dict[str, int]]:
    """Give every assignment of codes to the domain's attributes."""
    return [dict(zip(domain, codes, strict=True)) for codes in np.ndindex(*domain.shape)]


def letters(factor: Factor) -> list[int]:
    """Give the axes as einsum's integers: the place of each name in the alphabet."""
    return [NAMES.index(name) for name in factor.domain]


@pytest.mark.parametrize("operation", ARITHMETIC)
@given(data=st.data())
def test_arithmetic_matches_axes_by_name(
    operation: Callable[[Any, Any], Any], data: st.DataObject
) -> None:
    """Each entry of a result is the operation on the two entries with the same codes."""
    left, right = data.draw(strategies.factors()), data.draw(strategies.factors())
    result = operation(left, right)
    assert result.domain == left.domain.merge(right.domain)
    for codes in all_codes(result.domain):
        assert at(result, codes) == operation(at(left, codes), at(right, codes))


@given(strategies.factors(), strategies.factors())
def test_product_and_sum_equal_einsum(left: Factor, right: Factor) -> None:
    """A product summed onto some attributes equals the einsum of the two tables."""
    product = left * right
    kept = product.domain.attributes[::2][::-1]
    operands = [(left.values, letters(left)), (right.values, letters(right))]
    expected = einsum(operands, [NAMES.index(name) for name in kept])
    np.testing.assert_allclose(product.project(kept).values, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize("number", [3, 2.5, np.float64(2.5), np.float32(2.5), np.int64(3)])
def test_numbers_on_either_side(operation: Callable[[Any, Any], Any], number: Any) -> None:
    """A number on the left or on the right acts on every entry, in that order."""
    factor = Factor(AB, VALUES)
    left, right = operation(number, factor), operation(factor, number)
    assert isinstance(left, Factor)
    assert isinstance(right, Factor)
    assert left.domain == right.domain == AB
    np.testing.assert_array_equal(left.values, operation(float(number), VALUES))
    np.testing.assert_array_equal(right.values, operation(VALUES, float(number)))


def test_three_minus_factor() -> None:
    """3 - f is not f - 3, and 2 / f is not f / 2."""
    factor = Factor(Domain({"a": 2}), [1.0, 4.0])
    assert (3 - factor).values.tolist() == [2.0, -1.0]
    assert (factor - 3).values.tolist() == [-2.0, 1.0]
    assert (2 / factor).values.tolist() == [2.0, 0.5]
    assert (factor / 2).values.tolist() == [0.5, 2.0]
    assert (-factor).values.tolist() == [-1.0, -4.0]


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize("stranger", ["3", None, VALUES, [1.0, 2.0, 3.0], {}])
def test_strangers_are_refused(operation: Callable[[Any, Any], Any], stranger: Any) -> None:
    """Text, nothing, arrays without names and lists do not take part in arithmetic."""
    factor = Factor(AB, VALUES)
    for left, right in ((factor, stranger), (stranger, factor)):
        with pytest.raises((TypeError, InvalidInput)):
            operation(left, right)


@given(strategies.factors(), st.data())
def test_reductions(factor: Factor, data: st.DataObject) -> None:
    """Sum, max and logsumexp over some attributes equal NumPy's over their axes."""
    dropped = data.draw(strategies.clique(factor.domain.attributes))
    axes = tuple(factor.domain.attributes.index(name) for name in dropped)
    rest = factor.domain.without(dropped)
    expected: dict[str, Array] = {
        "sum": factor.values.sum(axis=axes),
        "max": factor.values.max(axis=axes),
        "logsumexp": np.log(np.exp(factor.values).sum(axis=axes)),
    }
    for name, values in expected.items():
        reduced = getattr(factor, name)(dropped)
        assert reduced.domain == rest
        np.testing.assert_allclose(reduced.values, values, rtol=1e-12, atol=1e-14)


@given(strategies.factors())
def test_reductions_over_everything(factor: Factor) -> None:
    """Without arguments a reduction leaves a factor that converts to a number."""
    assert float(factor.sum()) == pytest.approx(factor.values.sum(), abs=1e-12)
    assert float(factor.max()) == factor.values.max()
    expected = np.log(np.exp(factor.values).sum())
    assert float(factor.logsumexp()) == pytest.approx(expected, abs=1e-12)


def test_reductions_over_nothing() -> None:
    """An empty list of attributes leaves the table as it is."""
    factor = Factor(AB, VALUES)
    for reduced in (factor.sum([]), factor.max([]), factor.logsumexp([])):
        assert reduced.domain == AB
        np.testing.assert_allclose(reduced.values, VALUES, rtol=1e-15)


def test_logsumexp_neither_overflows_nor_underflows() -> None:
    """Entries of thousands of nats, and rows of minus infinity alone, are summed exactly."""
    values = np.array([[5000.0, 5000.0], [-5000.0, -5000.0], [-np.inf, -np.inf], [-np.inf, 1.0]])
    summed = Factor(Domain({"a": 4, "b": 2}), values).logsumexp(("b",)).values
    assert summed.tolist() == [5000.0 + math.log(2), -5000.0 + math.log(2), -math.inf, 1.0]


@given(strategies.factors(), st.data())
def test_project_in_the_order_given(factor: Factor, data: st.DataObject) -> None:
    """A projection sums the other attributes out and puts its axes in the order asked."""
    kept = data.draw(strategies.clique(factor.domain.attributes))
    expected = einsum([(factor.values, letters(factor))], [NAMES.index(name) for name in kept])
    projected = factor.project(kept)
    assert projected.domain.attributes == kept
    np.testing.assert_allclose(projected.values, expected, rtol=1e-12, atol=1e-12)


@given(strategies.factors(), st.data())
def test_transpose_moves_no_entry_to_other_codes(factor: Factor, data: st.DataObject) -> None:
    """Each entry stays with its codes whatever the order of the axes."""
    order = data.draw(st.permutations(factor.domain.attributes))
    turned = factor.transpose(order)
    assert turned.domain.attributes == tuple(order)
    for codes in all_codes(factor.domain):
        assert at(turned, codes) == at(factor, codes)


@given(strategies.factors(), st.data())
def test_expand_repeats_along_new_attributes(factor: Factor, data: st.DataObject) -> None:
    """An expanded table has the same entry for every code of the new attributes."""
    more = factor.domain.merge(Domain({"new": 2, "newer": 3}))
    larger = more.project(data.draw(st.permutations(more.attributes)))
    expanded = factor.expand(larger)
    assert expanded.domain == larger
    for codes in all_codes(larger):
        assert at(expanded, codes) == at(factor, codes)


def test_exp_and_log_undo_each_other() -> None:
    """Exp and log are NumPy's, entry by entry; minus infinity and zero correspond."""
    factor = Factor(Domain({"a": 3}), [-np.inf, 0.0, 1.5])
    assert factor.exp().values.tolist() == [0.0, 1.0, math.exp(1.5)]
    assert factor.exp().log().values.tolist() == [-math.inf, 0.0, 1.5]


def test_full_and_random() -> None:
    """`full` repeats one number, and `random` depends on nothing but its generator."""
    assert Factor.full(AB, 2.5).values.tolist() == [[2.5] * 3] * 2
    first = Factor.random(AB, np.random.default_rng(3)).values
    again = np.random.default_rng(3).standard_normal((2, 3))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "values", [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0] * 6, [[1.0] * 3], 1.0, [[[1.0] * 3] * 2]]
)
def test_wrong_shapes_are_refused(values: Any) -> None:
    """Values of another shape are refused even when they have as many entries or broadcast."""
    with pytest.raises(InvalidInput, match=r"must have the domain's shape \(2, 3\); got"):
        Factor(AB, values)


@pytest.mark.parametrize("nonsense", [math.nan, -math.nan, math.inf])
def test_nonsense_is_refused(nonsense: float) -> None:
    """Not-a-number and plus infinity are refused; minus infinity is the log of a zero."""
    with pytest.raises(InvalidInput, match="must be finite or minus infinity"):
        Factor(Domain({"a": 2}), [0.0, nonsense])
    assert Factor(Domain({"a": 2}), [0.0, -math.inf]).values[1] == -math.inf


ZERO = Factor(Domain({"a": 2}), [0.0, 1.0])
EXCLUDED = Factor(Domain({"a": 2}), [-math.inf, 1.0])


@pytest.mark.parametrize(
    "compute",
    [
        lambda: 1 / ZERO,
        lambda: ZERO / 0,
        lambda: EXCLUDED - EXCLUDED,
        lambda: ZERO * EXCLUDED,
        lambda: -EXCLUDED,
        (ZERO * 1000).exp,
        (ZERO - 1).log,
        lambda: ZERO + math.inf,
        lambda: ZERO * math.nan,
    ],
)
def test_nonsense_from_arithmetic_is_refused(compute: Callable[[], Factor]) -> None:
    """A result that would hold not-a-number or plus infinity is refused, without a warning."""
    with pytest.raises(InvalidInput, match="must be finite or minus infinity"):
        compute()


def test_disagreeing_sizes_are_refused() -> None:
    """Two factors that give an attribute different sizes do not combine."""
    with pytest.raises(InvalidInput, match="`other` must agree on shared attributes"):
        Factor(AB, VALUES) + Factor.full(Domain({"b": 4}), 1.0)


def test_transpose_needs_all_attributes() -> None:
    """Transposing onto some of the attributes is refused; project sums the others out."""
    with pytest.raises(InvalidInput, match=r"must be all of \('a', 'b'\); got \('a',\)"):
        Factor(AB, VALUES).transpose(("a",))


def test_expand_needs_all_attributes() -> None:
    """Expanding into a domain without some of the attributes is refused."""
    with pytest.raises(InvalidInput, match=r"must hold all of \('a', 'b'\); got \('a', 'c'\)"):
        Factor(AB, VALUES).expand(Domain({"a": 2, "c": 2}))


@pytest.mark.parametrize("method", ["sum", "max", "logsumexp", "project", "transpose"])
def test_unknown_attributes_are_refused(method: str) -> None:
    """A name that the factor does not have is an UnknownAttribute."""
    with pytest.raises(UnknownAttribute, match="got 'z'"):
        getattr(Factor(AB, VALUES), method)(("a", "z"))


def test_only_numbers_become_floats() -> None:
    """A factor that has attributes does not convert to a number."""
    with pytest.raises(InvalidInput, match=r"must have no attributes .* over \('a', 'b'\)"):
        float(Factor(AB, VALUES))


def test_arithmetic_leaves_its_operands() -> None:
    """No operation writes into the tables that it was given."""
    values = VALUES.copy()
    factor = Factor(AB, values)
    for operation in ARITHMETIC:
        operation(factor, factor)
        operation(2.0, factor)
    factor.exp().log().sum()
    np.testing.assert_array_equal(values, VALUES)


def test_repr_is_short() -> None:
    """What a console shows names the axes and no entries; print shows few of a large table."""
    factor = Factor.full(Domain({"age": 100, "sex": 100}), 0.5)
    assert repr(factor) == "Factor(age: 100, sex: 100; 10,000 cells, sum 5000)"
    assert "[[0.5 0.5" in str(factor)
    assert len(str(factor)) < 400


def test_a_factor_over_many_attributes_of_one_value() -> None:
    """A domain whose description is long but whose table is a single cell works."""
    domain = Domain({f"x{i}": 1 for i in range(20)})
    assert float((Factor.full(domain, 2.0) + 1).sum()) == 3.0


def test_sizes_beyond_sixty_four_bits_are_refused_before_allocation() -> None:
    """A table over a domain of 10**100 cells is refused, not attempted."""
    domain = Domain({f"x{i}": 10 for i in range(100)})
    with pytest.raises(InvalidInput, match="must have the domain's shape"):
        Factor(domain, 0.0)
