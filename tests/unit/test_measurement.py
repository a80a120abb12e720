"""Measurements say what they are and refuse what they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput, UnknownAttribute
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.noise import Noise
from juncture.tables.queries import blocks
from juncture.tables.queries.products import Kron

DOMAIN = Domain({"a": 2, "b": 3})


def test_a_table_of_values_is_flattened() -> None:
    """Values may come as a table in the clique's order; there is one answer for each cell."""
    measurement = Measurement(("b", "a"), np.arange(6.0).reshape(3, 2), stddev=2.0)
    assert measurement.n_rows == 6
    assert measurement.noise is Noise.GAUSSIAN
    operator = measurement.operator(DOMAIN)
    assert operator.shape == (3, 2)
    np.testing.assert_array_equal(operator.apply(np.arange(6.0).reshape(3, 2)), np.arange(6.0))


def test_a_query_decides_the_number_of_values() -> None:
    """A query with one answer takes one value."""
    total = Measurement(("a",), [7.0], stddev=1.0, query=blocks.Total(), noise="laplace")
    assert total.operator(DOMAIN).n_rows == 1
    assert total.noise is Noise.LAPLACE


def test_scales_for_each_row() -> None:
    """One standard deviation for each value is kept as such."""
    measurement = Measurement(("a",), [1.0, 2.0], stddev=[1.0, 3.0])
    assert measurement.stddev.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0, np.nan]}, "`values` must be finite"),
        ({"values": [1.0, np.inf]}, "`values` must be finite"),
        ({"stddev": 0.0}, "`stddev` must be positive and finite; got 0"),
        ({"stddev": -1.0}, "`stddev` must be positive and finite"),
        ({"stddev": np.nan}, "`stddev` must be positive and finite"),
        ({"stddev": [1.0, 2.0, 3.0]}, "one number or 2, one for each value"),
        ({"noise": "uniform"}, "one of gaussian, laplace; got 'uniform'"),
        ({"clique": "a"}, r"Write \('a',\) for a clique of one attribute"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, Any], message: str) -> None:
    """Each kind of nonsense has its own message."""
    given = {"clique": ("a",), "values": [1.0, 2.0], "stddev": 1.0, **arguments}
    with pytest.raises(InvalidInput, match=message):
        Measurement(given.pop("clique"), given.pop("values"), **given)


def test_what_does_not_fit_the_domain_is_refused() -> None:
    """Unknown attributes and wrong numbers of values are noticed when the domain is known."""
    with pytest.raises(UnknownAttribute, match="got 'z'"):
        Measurement(("z",), [1.0], stddev=1.0).operator(DOMAIN)
    with pytest.raises(InvalidInput, match=r"`values` must have 6 entries,.* got 2"):
        Measurement(("a", "b"), [1.0, 2.0], stddev=1.0).operator(DOMAIN)
    with pytest.raises(InvalidInput, match="over attributes of the clique"):
        Measurement(("a",), [1.0], stddev=1.0, query=Kron({"b": blocks.Total()})).operator(DOMAIN)
