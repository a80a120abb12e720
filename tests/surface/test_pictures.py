"""The pictures of the documentation are those that the tool draws, to scale."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from juncture import Domain, Measurement, estimate
from juncture.tables.queries import Moments

TOOL = Path(__file__).parents[2] / "tools" / "build_pictures.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    """The names of the tool that draws."""
    return runpy.run_path(str(TOOL))


def test_the_pictures_are_fresh(tool: dict[str, Any]) -> None:
    """Every file is what the tool gives now, is well-formed, and asks for nothing."""
    for name, content in tool["pictures"]().items():
        assert (tool["FOLDER"] / name).read_text() == content, "Run tools/build_pictures.py."
        ElementTree.fromstring(content)
        assert "http" not in content.replace("http://www.w3.org/2000/svg", "")


def test_the_estimate_stands_where_the_library_puts_it(tool: dict[str, Any]) -> None:
    """The point that the picture calls the estimate is what `estimate` finds."""
    values, scales, noisy = tool["VALUES"], tool["SCALES"], tool["NOISY"]
    domain = Domain({"X": len(values)})
    query = Moments(2, values=tuple(map(float, values)))
    measurement = Measurement(("X",), noisy, stddev=scales, query=query)
    fit = estimate(domain, [measurement], total=1.0, tolerance=1e-6)
    found = measurement.operator(domain).apply(fit.model.marginals)
    np.testing.assert_allclose(found, tool["nearest_on_edge"](noisy), atol=2e-3)


def test_both_distributions_fit(tool: dict[str, Any]) -> None:
    """The even distribution has the moments asked for, and is that of the library's potentials."""
    numbers = np.array(tool["VALUES"], dtype=float)
    even = tool["maximum_entropy"](0.4, 1.5)
    assert even @ numbers == pytest.approx(0.4)
    assert even @ numbers**2 == pytest.approx(1.5)
    wiggle = np.array([1, -3, 3, -1, 0])
    for power in range(3):
        assert wiggle @ numbers**power == 0
    logs = np.log(even)
    assert np.diff(logs, 3) == pytest.approx(0.0, abs=1e-8)
