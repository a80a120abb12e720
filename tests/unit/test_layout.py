"""Tests of many tables in one flat vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packing
import strategies
from juncture.errors import InvalidInput, UnknownAttribute
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.layout import Layout
from strategies import Model

ABC = Domain({"a": 2, "b": 3, "c": 4})
LAYOUT = Layout(ABC, [("b", "a"), ("c",), ("a", "b"), ()])


def layout_of(model: Model) -> Layout:
    """Give the layout of a model's cliques."""
    return Layout(Domain(model.sizes), model.cliques)


def test_duplicates_share_a_table() -> None:
    """Cliques become canonical and distinct, in the order in which they were first given."""
    assert LAYOUT.cliques == (("a", "b"), ("c",), ())
    assert LAYOUT.offsets == (0, 6, 10, 11)
    assert LAYOUT.size == 11
    assert dict(LAYOUT.positions) == {("a", "b"): 0, ("c",): 1, (): 2}


@given(strategies.models())
def test_tables_follow_each_other(model: Model) -> None:
    """Each table starts where the one before ends, and the last ends with the vector."""
    layout = layout_of(model)
    sizes = dict(model.sizes)
    ends = 0
    for clique, start in zip(layout.cliques, layout.offsets, strict=False):
        assert start == ends
        ends += math.prod(sizes[name] for name in clique)
    assert layout.size == ends == len(layout.zeros())


@given(strategies.models(strategies.FINITE), st.data())
def test_factor_undoes_pack(model: Model, data: st.DataObject) -> None:
    """A packed table is read back in any order of its attributes."""
    layout = layout_of(model)
    tables = {layout.domain.canonical(clique): t for clique, t in model.potentials.items()}
    factors = [
        Factor(layout.domain.project(clique), np.full(layout.domain.project(clique).shape, i + 1.0))
        for i, clique in enumerate(tables)
    ]
    vector = layout.pack(factors)
    for i, clique in enumerate(tables):
        order = tuple(data.draw(st.permutations(clique)))
        found = layout.factor(vector, order)
        assert found.domain.attributes == order
        assert (found.values == i + 1.0).all()


@given(strategies.models())
def test_pack_puts_every_entry_in_its_place(model: Model) -> None:
    """Packing equals copying transposed tables to their offsets; equal cliques add up."""
    layout = layout_of(model)
    factors = [Factor(layout.domain.project(c), t) for c, t in model.potentials.items()]
    np.testing.assert_array_equal(layout.pack(factors), packing.pack(layout, model.potentials))


@given(strategies.models(strategies.FINITE))
def test_factor_reads_every_entry_from_its_place(model: Model) -> None:
    """Reading a clique equals slicing the vector at its offset and transposing."""
    layout = layout_of(model)
    vector = np.arange(float(layout.size))
    for clique in model.cliques:
        expected = packing.unpack(layout, vector, clique)
        np.testing.assert_array_equal(layout.factor(vector, clique).values, expected)


def test_last_attribute_is_fastest() -> None:
    """In the vector, neighbouring entries differ in the last attribute of the domain's order."""
    table = LAYOUT.factor(np.arange(11.0), ("a", "b")).values
    assert table.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_absent_cliques_are_zero() -> None:
    """Cliques for which no factor is given have tables of zeros."""
    vector = LAYOUT.pack([Factor(Domain({"c": 4}), [1.0, 2.0, 3.0, 4.0])])
    assert vector.tolist() == [0.0] * 6 + [1.0, 2.0, 3.0, 4.0] + [0.0]


def test_views_write_through() -> None:
    """Writing into a view changes the vector, whatever order the clique is named in."""
    vector = LAYOUT.zeros()
    LAYOUT.view(vector, ("b", "a"))[1, 2] = 5.0
    LAYOUT.view(vector, ())[...] = 7.0
    assert vector.tolist() == [0.0] * 5 + [5.0] + [0.0] * 4 + [7.0]


@pytest.mark.parametrize("vector", [np.zeros(22)[::2], np.zeros(11, dtype=np.float32)])
def test_what_cannot_be_viewed_is_not_silently_copied(vector: Any) -> None:
    """A view of a strided or single-precision vector writes through or is refused."""
    try:
        LAYOUT.view(vector, ("c",))[:] = 5.0
    except InvalidInput:
        return
    assert vector[6:10].tolist() == [5.0] * 4


@pytest.mark.parametrize("shape", [(10,), (12,), (11, 1), (), (0,)])
def test_wrong_lengths_are_refused(shape: tuple[int, ...]) -> None:
    """A vector of another length or with more axes is refused."""
    with pytest.raises(InvalidInput, match="must be flat with 11 entries"):
        LAYOUT.as_vector(np.zeros(shape))
    with pytest.raises(InvalidInput, match="must be flat with 11 entries"):
        LAYOUT.view(np.zeros(shape), ("c",))


def test_checked_converts() -> None:
    """Lists and strided vectors become contiguous double precision, and fit ones stay."""
    fit = np.arange(11.0)
    assert LAYOUT.as_vector(fit) is fit
    for given_vector in (list(range(11)), np.repeat(fit, 2)[::2], fit.astype(np.float32)):
        checked = LAYOUT.as_vector(given_vector)
        assert checked.dtype == np.float64
        assert checked.flags.c_contiguous
        np.testing.assert_array_equal(checked, fit)


@pytest.mark.parametrize("method", ["view", "factor"])
def test_absent_cliques_are_refused(method: str) -> None:
    """A clique that the layout does not have is refused by name."""
    with pytest.raises(InvalidInput, match=r"one of the 3 cliques .* got \('b', 'c'\)"):
        getattr(LAYOUT, method)(LAYOUT.zeros(), ("c", "b"))


@pytest.mark.parametrize("method", ["view", "factor"])
def test_unknown_attributes_are_refused(method: str) -> None:
    """A clique with a name that the domain does not have is an UnknownAttribute."""
    with pytest.raises(UnknownAttribute, match="got 'z'"):
        getattr(LAYOUT, method)(LAYOUT.zeros(), ("a", "z"))


@pytest.mark.parametrize("method", ["view", "factor"])
def test_bare_text_is_refused(method: str) -> None:
    """A text is not a clique, although its letters may be attributes."""
    with pytest.raises(InvalidInput, match="got the text 'ab'"):
        getattr(LAYOUT, method)(LAYOUT.zeros(), "ab")


def test_factors_on_other_cliques_are_refused() -> None:
    """Packing a factor whose clique the layout does not have is refused."""
    with pytest.raises(InvalidInput, match=r"got \('a',\)"):
        LAYOUT.pack([Factor(Domain({"a": 2}), [1.0, 2.0])])


def test_factors_of_other_sizes_are_refused() -> None:
    """Packing a factor whose attribute has another size than the domain's is refused."""
    with pytest.raises(InvalidInput, match="`factors` must|must agree|sizes"):
        LAYOUT.pack([Factor(Domain({"c": 1}), [1.0])])


def test_no_cliques() -> None:
    """A layout without cliques has an empty vector."""
    layout = Layout(ABC, [])
    assert layout.size == 0
    assert layout.pack([]).shape == (0,)


def test_sizes_do_not_overflow() -> None:
    """Offsets are exact integers beyond 64 bits: nothing is allocated."""
    domain = Domain({f"x{i}": 10 for i in range(60)})
    layout = Layout(domain, [domain.attributes[:30], domain.attributes[30:]])
    assert layout.offsets == (0, 10**30, 2 * 10**30)
