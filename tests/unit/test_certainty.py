"""How sure answers are, in the report and in the explorer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture.fit.replicas import ReplicaRecipe
from juncture.fit.selection_proof import SelectionProof
from juncture.publish.explorer.answers import Answers
from juncture.publish.report.document import render_report


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> jn.Release:
    """A release with a check, without replicas."""
    rng, n = np.random.default_rng(0), 500
    table = pa.table({name: rng.random(n) < 0.4 for name in "abc"})
    schema = jn.Schema(dict.fromkeys("abc", jn.Boolean()))
    folder: Path = tmp_path_factory.mktemp("sure")
    return jn.release(
        table, schema, jn.Budget(epsilon=5), ledger=folder / "l", check=0.1, mechanism="hdmm",
        workload=[("a", "b"), ("c",)],
    )  # fmt: skip


def test_the_report_shows_the_check_and_intervals(release: jn.Release) -> None:
    """The check is a picture; intervals are shown where replicas are kept, and the recipe else."""
    plain = str(render_report(release))
    assert "predicted and checked" in plain
    assert "makes them first" in plain
    kept = str(render_report(release.with_replicas(ReplicaRecipe(0, 4))))
    assert "95 % interval" in kept
    assert "± " in kept
    assert kept.count("95% interval of a count: ±") == 3
    assert "95% interval</th>" in kept
    assert "95% interval" not in plain
    unchecked = jn.Release(model=release.model, measurements=release.measurements)
    assert "have no interval: nothing" in str(render_report(unchecked))
    proof = SelectionProof((("a", "c"),), np.array([12.0]), np.ones(1), 5.0, 10)
    proved = jn.Release(model=release.model, measurements=release.measurements, proofs=(proof,))
    assert "choices prove: nothing" in str(render_report(proved)).replace("&#x27;", "'")


def test_the_explorer_shows_intervals_where_replicas_are_kept(release: jn.Release) -> None:
    """Tables get a plus-minus column and charts half-widths; without replicas there are none."""
    query = "SELECT a, COUNT(*) AS n FROM t GROUP BY a"
    plain = Answers(release)
    assert plain.sql(query)["columns"] == ["a", "n"]
    assert plain.marginal(("a",), [])["plus_minus"] is None
    kept = release.with_replicas(ReplicaRecipe(0, 4))
    sure = Answers(kept)
    assert sure.sql(query)["columns"] == ["a", "n", "+-", "basis"]
    shown = sure.marginal(("a",), [])["plus_minus"]
    assert np.allclose(shown, kept.project(("a",), interval=0.95).plus_minus)


def test_groups_of_values_have_intervals_of_their_own() -> None:
    """What is shown by fewer values has the intervals of the sums, not sums of intervals."""
    domain, rng = jn.Domain({"a": 5, "b": 2}), np.random.default_rng(1)
    noisy = 100.0 + 5.0 * rng.standard_normal(10)
    measured = [jn.Measurement(("a", "b"), noisy, stddev=5.0)]
    fit = jn.estimate(domain, measured, total=1000.0)
    made = jn.Release(model=fit.model, measurements=measured, fit=fit.summary)
    kept = made.with_replicas(ReplicaRecipe(0, 4))
    shown = Answers(kept).marginal(("a", "b"), [], [3, None])
    blocks = {"a": jn.queries.Buckets([0, 0, 1, 1, 2]), "b": jn.queries.Identity()}
    expected = kept.answer(jn.queries.Kron(blocks), interval=0.95)
    assert shown["shape"] == [3, 2]
    assert np.allclose(shown["plus_minus"], expected.plus_minus.reshape(-1))
    assert np.allclose(shown["cells"], kept.answer(jn.queries.Kron(blocks)).reshape(-1))
