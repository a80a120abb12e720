"""Tests of named attributes and canonical cliques."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from juncture.errors import InvalidInput, JunctureError, UnknownAttribute
from juncture.tables.domain import Domain

ABC = Domain({"a": 2, "b": 3, "c": 4})


def test_is_a_mapping() -> None:
    """A domain reads like the dictionary it was made from, in the same order."""
    assert isinstance(ABC, Mapping)
    assert dict(ABC) == {"a": 2, "b": 3, "c": 4}
    assert list(ABC) == ["a", "b", "c"]
    assert (len(ABC), ABC["b"], "b" in ABC, "z" in ABC) == (3, 3, True, False)


def test_get_has_a_default() -> None:
    """As with every mapping, get() gives its default for a name that is not there."""
    assert ABC.get("b") == 3
    assert ABC.get("z") is None
    assert ABC.get("z", 7) == 7


def test_pairs_and_mappings_make_the_same_domain() -> None:
    """A domain made from pairs equals the one made from a mapping."""
    assert Domain([("a", 2), ("b", 3), ("c", 4)]) == ABC
    assert Domain(ABC) == ABC
    assert Domain(iter([("a", 2), ("b", 3), ("c", 4)])) == ABC


def test_order_is_part_of_equality() -> None:
    """Domains with the same attributes in another order are different."""
    turned = Domain({"c": 4, "b": 3, "a": 2})
    assert turned != ABC
    assert Domain({"a": 2, "b": 3, "c": 5}) != ABC
    assert ABC != {"a": 2, "b": 3, "c": 4}


@given(strategies.domains())
def test_equal_domains_have_equal_hashes(domain: Domain) -> None:
    """A domain can be a key: its copies are equal and hash alike."""
    copies = [Domain(dict(domain)), copy.copy(domain), pickle.loads(pickle.dumps(domain))]
    assert {domain, *copies} == {domain}
    assert all(other == domain for other in copies)


@given(strategies.domains(min_attributes=0))
def test_repr_can_be_read_back(domain: Domain) -> None:
    """The printed form of a domain makes the same domain."""
    assert eval(repr(domain)) == domain


@given(strategies.domains(min_attributes=0))
def test_size_is_the_product_of_the_sizes(domain: Domain) -> None:
    """Attributes, shape, positions and size agree with each other."""
    assert domain.attributes == tuple(domain)
    assert domain.shape == tuple(domain.values())
    assert domain.size == math.prod(domain.values()) == domain.size_of(domain.attributes)
    assert [domain.attributes[place] for place in domain.positions.values()] == list(domain)


def test_sizes_do_not_overflow() -> None:
    """The size of a hundred attributes of ten values is exactly ten to the hundred."""
    domain = Domain({f"x{i}": 10 for i in range(100)})
    assert domain.size == 10**100
    assert domain.size_of([f"x{i}" for i in range(50)]) == 10**50


def test_sizes_from_numpy_do_not_overflow() -> None:
    """Sizes given as NumPy integers become Python integers."""
    sizes: dict[str, Any] = {f"x{i}": np.int32(10) for i in range(30)}
    domain = Domain(sizes)
    assert domain.size == 10**30
    assert all(type(size) is int for size in domain.values())


def test_no_attributes() -> None:
    """The empty domain has one cell: the table of the empty clique is a number."""
    assert Domain().size == 1
    assert Domain().shape == ()
    assert Domain().canonical(()) == ()


@given(strategies.domains(), st.data())
def test_canonical_is_the_domain_order(domain: Domain, data: st.DataObject) -> None:
    """Every permutation of a clique has the same canonical form, ordered as the domain."""
    clique = data.draw(strategies.clique(domain.attributes))
    expected = tuple(name for name in domain if name in clique)
    assert domain.canonical(clique) == expected
    assert domain.canonical(data.draw(st.permutations(clique))) == expected
    assert domain.canonical(iter(clique)) == expected
    assert domain.size_of(clique) == math.prod(domain[name] for name in clique)


@given(strategies.domains(), st.data())
def test_project_and_without_divide_the_domain(domain: Domain, data: st.DataObject) -> None:
    """A projection keeps the order given, and what is left out keeps the domain's order."""
    clique = data.draw(strategies.clique(domain.attributes))
    kept, rest = domain.project(clique), domain.without(clique)
    assert kept.attributes == clique
    assert kept.size * rest.size == domain.size
    assert rest.attributes == tuple(name for name in domain if name not in clique)


def test_merge_appends_what_is_new() -> None:
    """A merged domain is the first one followed by the attributes that only the second has."""
    merged = ABC.merge(Domain({"z": 9, "b": 3, "y": 8}))
    assert list(merged.items()) == [("a", 2), ("b", 3), ("c", 4), ("z", 9), ("y", 8)]
    assert ABC.merge(Domain()) == ABC == Domain().merge(ABC)


def test_merge_refuses_different_sizes() -> None:
    """Two domains that disagree about an attribute do not merge."""
    with pytest.raises(InvalidInput, match="`other` must agree .* 'b' with 5 values .* has 3"):
        ABC.merge(Domain({"b": 5}))


@pytest.mark.parametrize("size", [0, -1, 2.0, 2.5, "2", None, True, math.nan])
def test_sizes_must_be_positive_integers(size: Any) -> None:
    """A size that is not a positive integer is refused, with the attribute's name."""
    with pytest.raises(InvalidInput, match="`sizes` must be positive integers; got .* for 'b'"):
        Domain({"a": 2, "b": size})


@pytest.mark.parametrize("name", ["", 3, None, ("a", "b")])
def test_names_must_be_text(name: Any) -> None:
    """An attribute's name is non-empty text."""
    with pytest.raises(InvalidInput, match="`sizes` must have non-empty text as attribute names"):
        Domain({name: 2})


def test_names_must_differ() -> None:
    """The same name twice is refused."""
    with pytest.raises(InvalidInput, match="`sizes` must name each attribute once"):
        Domain([("a", 2), ("b", 3), ("a", 2)])


@pytest.mark.parametrize("method", ["canonical", "project", "without", "size_of"])
def test_unknown_names_are_refused(method: str) -> None:
    """A name that the domain does not have is an UnknownAttribute that shows the known ones."""
    with pytest.raises(UnknownAttribute, match=r"3 attributes \('a', 'b', 'c'\); got 'z'"):
        getattr(ABC, method)(("a", "z"))


@pytest.mark.parametrize("method", ["canonical", "project", "without", "size_of"])
def test_repeated_names_are_refused(method: str) -> None:
    """A clique that names an attribute twice is refused."""
    with pytest.raises(InvalidInput, match="must name each attribute once"):
        getattr(ABC, method)(("a", "b", "a"))


@pytest.mark.parametrize("method", ["canonical", "project", "without", "size_of"])
def test_bare_text_is_refused(method: str) -> None:
    """A text is not a clique, although its letters may be attributes."""
    with pytest.raises(InvalidInput, match=r"got the text 'ab'. Write \('ab',\)"):
        getattr(ABC, method)("ab")


def test_long_domains_are_shortened_in_messages() -> None:
    """The message about an unknown name shows eight attributes at most."""
    domain = Domain({f"x{i}": 2 for i in range(20)})
    with pytest.raises(UnknownAttribute, match="20 attributes .*'x7', …"):
        domain["y"]


def test_the_exception_tree() -> None:
    """An unknown attribute can be caught as any of its ancestors."""
    for ancestor in (UnknownAttribute, InvalidInput, JunctureError, ValueError):
        with pytest.raises(ancestor):
            ABC["z"]
