"""A model made of records answers what an exact model answers, near to it and consistently."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from juncture import InvalidInput, ModelTooLarge, Release, UnreadableFile, load, write_report
from juncture.engine.particles import Particles
from juncture.fit.summary import FitSummary, Status
from juncture.model.model import Model
from juncture.model.record_distribution import RecordDistribution
from juncture.publish.explorer.facts import collect_facts
from juncture.publish.record_io import pack_codes, unpack_codes
from juncture.tables.domain import Domain
from juncture.tables.factor import Factor
from juncture.tables.measurement import Measurement
from juncture.tables.queries.blocks import Identity, Prefix, WeightedSum
from juncture.tables.queries.products import Kron, Stack

DOMAIN = Domain({"a": 3, "b": 4, "c": 2, "d": 5, "free": 3})
PAIRS = [*combinations("abcd", 2)]
N = 60_000


def factors() -> list[Factor]:
    """Random potentials on all pairs, with an excluded cell."""
    rng = np.random.default_rng(7)
    tables = [DOMAIN.project(pair) for pair in PAIRS]
    result = [Factor(table, rng.normal(0.0, 0.8, table.shape)) for table in tables]
    result[0].values[1, 2] = -np.inf
    return result


@pytest.fixture(scope="module")
def exact() -> Model:
    """The model by message passing."""
    return Model.of_potentials(DOMAIN, factors(), 1_000.0)


@pytest.fixture(scope="module")
def model() -> Model:
    """The same model by records."""
    return Model.of_potentials(DOMAIN, factors(), 1_000.0, oracle=Particles(n_records=N))


def records_of(model: Model) -> RecordDistribution:
    """The records of a model."""
    assert isinstance(model.distribution, RecordDistribution)
    return model.distribution


def test_marginals_of_any_attributes(model: Model, exact: Model) -> None:
    """Marginals on measured and other sets of attributes, in any order, are near the exact ones."""
    for names in [("d", "a"), ("c", "b", "a"), ("a", "b", "c", "d"), ("free", "b"), ("free",), ()]:
        ours, theirs = model.project(names).values, exact.project(names).values
        assert ours.shape == theirs.shape
        assert ours.sum() == pytest.approx(1_000.0)
        assert np.abs(ours - theirs).max() < 15.0
    assert model.project(("a", "b")).values[1, 2] == 0.0
    assert np.ptp(model.project(("free", "b")).values, axis=0).max() < 1e-9
    several = list(model.project_many([("a",), ("b", "d")]))
    assert (several[1].values == model.project(("b", "d")).values).all()


def test_factored_queries_are_those_of_the_marginal(model: Model) -> None:
    """A query's answers are the same as its blocks on the marginal of all its attributes."""
    weights = (1.0, -2.0, 0.5, 3.0, 0.0)
    query = Kron({"d": WeightedSum(weights), "a": Identity(), "b": Prefix(), "free": Identity()})
    table = model.project(("d", "a", "b", "free")).values
    expected = np.cumsum(np.tensordot(weights, table, axes=(0, 0)), axis=1)
    assert np.allclose(model.answer(query), expected[None], atol=1e-8)
    both = model.answer(Stack((query, Kron({"c": Identity()}))))
    assert np.allclose(both, [*expected.reshape(-1), *model.project(("c",)).values], atol=1e-8)
    alone = Kron({"free": WeightedSum((1.0, 2.0, 6.0))})
    assert model.answer(alone).item() == pytest.approx(3_000.0)


def test_sql_and_means(model: Model) -> None:
    """SQL and conditional means agree with the marginals that they are made of."""
    answer = model.sql("SELECT a, COUNT(*) AS n, AVG(d) AS m FROM t WHERE c = 1 GROUP BY a")
    table = model.project(("a", "c", "d")).values[:, 1, :]
    rows = list(answer.to_arrow().to_pydict().values())
    assert np.allclose(rows[1], table.sum(axis=1))
    assert np.allclose(rows[2], table @ np.arange(5) / table.sum(axis=1))
    means = model.conditional_mean("d", ("a",), values=range(5))
    whole = model.project(("a", "d")).values
    assert np.allclose(means, whole @ np.arange(5) / whole.sum(axis=1))


@pytest.mark.parametrize(
    "evidence", [{"a": 1}, {"a": [0, 2], "d": 3}, {"free": 1, "b": 0}, {"a": 0, "b": 3, "c": 1}]
)
def test_conditions(model: Model, exact: Model, evidence: dict[str, object]) -> None:
    """Given evidence, totals and marginals are near the exact ones, with few records or many."""
    ours, theirs = model.condition(evidence), exact.condition(evidence)
    assert ours.total == pytest.approx(theirs.total, rel=0.2, abs=5.0)
    for names in [("a", "b"), ("c", "d"), ("free",)]:
        gap = ours.project(names).values / ours.total - theirs.project(names).values / theirs.total
        assert np.abs(gap).max() < 0.04


def test_evidence_that_no_record_has() -> None:
    """Records are led to improbable evidence, whose share is estimated on the way."""
    domain = Domain({"a": 4, "b": 2, "c": 2})
    tables = [
        Factor(domain.project(("a", "b")), np.array([[0.0, -2.0], *[[-22.0, -19.0]] * 3])),
        Factor(domain.project(("b", "c")), np.array([[1.0, 0.0], [0.0, 1.0]])),
        Factor(domain.project(("a", "c")), np.array([[0.0, 0.0], *[[0.0, 2.0]] * 3])),
    ]
    exact = Model.of_potentials(domain, tables).condition({"a": [1, 2, 3]})
    model = Model.of_potentials(domain, tables, oracle=Particles(n_records=20_000))
    given = model.condition({"a": [1, 2, 3]})
    assert (model.project(("a",)).values[1:] == 0.0).all()
    assert given.log_total == pytest.approx(exact.log_total, abs=0.3)
    gap = given.project(("b", "c")).values / given.total - exact.project(("b", "c")).values / (
        exact.total
    )
    assert np.abs(gap).max() < 0.03


def test_what_records_do_not_know_is_refused(model: Model) -> None:
    """The partition function, the entropy of records, and tables beyond memory are errors."""
    with pytest.raises(InvalidInput, match="exact"):
        _ = model.log_partition
    with pytest.raises(InvalidInput, match="exact"):
        _ = model.entropy
    assert 0.0 < model.entropy_of(("a",)) < np.log(3)
    assert set(model.most_probable()) == set(DOMAIN)
    wide = Domain({f"x{i}": 100 for i in range(6)})
    vague = Model.of_potentials(wide, [], oracle=Particles(n_records=500))
    with pytest.raises(ModelTooLarge, match="cells"):
        vague.project(tuple(wide))


@pytest.mark.parametrize("n", [2_000, 90_000])
def test_synthetic_records(model: Model, exact: Model, n: int) -> None:
    """Drawn records follow the model, fewer or more than it has; synthesized ones more closely."""
    draws, made = model.sample(n, rng=1), model.synthesize(n, rng=1)
    for name, size in DOMAIN.items():
        counts = np.bincount(draws[name], minlength=size), np.bincount(made[name], minlength=size)
        share = exact.project((name,)).values / 1_000.0
        assert np.abs(counts[0] / n - share).max() < 4.0 * np.sqrt(0.25 / n) + 0.01
        assert np.abs(counts[1] / n - share).max() < 3.0 * np.sqrt(0.25 / n) + 0.01
    assert not ((draws["a"] == 1) & (draws["b"] == 2)).any()
    assert (model.sample(n, rng=1)["d"] == draws["d"]).all()
    sampler = records_of(model).sampler
    parts = [sampler.sample(1_000, 5, first=first) for first in (0, 1_000)]
    assert (np.concatenate(parts, axis=1) == sampler.sample(2_000, 5)).all()


def test_given_columns_are_kept(model: Model, exact: Model) -> None:
    """The other attributes are drawn from their distribution given the columns."""
    column = np.repeat([0, 2], 10_000)
    drawn = model.sample(given={"a": column}, rng=3)
    assert (drawn["a"] == column).all()
    share = exact.condition({"a": 2}).project(("d",)).values
    counts = np.bincount(drawn["d"][10_000:], minlength=5)
    assert np.abs(counts / 10_000 - share / share.sum()).max() < 0.03


def make_release(model: Model) -> Release:
    """A release of a model, with a measurement and a summary of its fit."""
    counts = Measurement(("a",), model.project(("a",)).values, stddev=5.0)
    summary = FitSummary(
        status=Status.AT_NOISE, loss=1.0, lower_bound=-np.inf, oracle_calls=3, seconds=0.1,
        oracle_error=0.07,
    )  # fmt: skip
    return Release(model=model, measurements=[counts], fit=summary)


def test_a_release_file_keeps_the_records(model: Model, tmp_path: Path) -> None:
    """A model that was saved and opened gives the same answers and the same records, bit by bit."""
    given = model.condition({"c": 1})
    path = make_release(given).save(tmp_path / "people.jct")
    opened = load(path)
    assert opened.model.total == given.total
    assert opened.fit is not None
    assert opened.fit.oracle_error == 0.07
    for names in [("a", "d"), ("b", "c", "d")]:
        assert (opened.model.project(names).values == given.project(names).values).all()
    assert (opened.model.sample(50, rng=2)["d"] == given.sample(50, rng=2)["d"]).all()
    assert path.stat().st_size < 20 * len(records_of(given).weights)


def test_codes_are_packed_by_size() -> None:
    """Codes of small, large and huge attributes come back as they were, and others are refused."""
    domain = Domain({"a": 256, "b": 257, "c": 70_000})
    codes = np.array([[0, 255, 3], [256, 0, 1], [69_999, 65_536, 0]], dtype=np.int32)
    packed = pack_codes(domain, codes)
    assert len(packed) == -(-3 * 7 // 8)
    assert (unpack_codes(domain, packed, 3) == codes).all()
    with pytest.raises(ValueError, match="200"):
        unpack_codes(Domain({"a": 200, "b": 257, "c": 70_000}), packed, 3)


@pytest.mark.parametrize("part", ["n", "weights", "pairs", "seed", "codes"])
def test_altered_records_are_refused(model: Model, tmp_path: Path, part: str) -> None:
    """A file whose records do not fit its marginals is refused, not believed."""
    path = make_release(model).save(tmp_path / "people.jct")
    wrong = {"n": 7, "weights": 0, "pairs": [[0, 9]], "seed": -1, "codes": 1}
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["document.json"])
    document["records"][part] = wrong[part]
    members["document.json"] = json.dumps(document).encode()
    members["document.sha256"] = hashlib.sha256(members["document.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(UnreadableFile):
        load(path)


def test_report_and_explorer(model: Model, tmp_path: Path) -> None:
    """The report and the explorer show a model without a tree, and say what it is made of."""
    release = make_release(model)
    page = write_report(release, tmp_path / "people.html").read_text(encoding="utf-8")
    assert "weighted records" in page
    assert "Error of the records" in page
    assert "answers by 7 % of the noise" in page
    assert "0.24 % larger than the noise alone" in page
    facts = collect_facts(release, "people")
    assert "answers by 7 % of the noise" in facts["certificate"]["status"]
    assert "answers by 7 % of the noise" in release._repr_html_().replace("&#x27;", "'")
    assert [each["name"] for each in facts["attributes"]] == list(DOMAIN)
    release.write_records(tmp_path / "records.csv", 100, rng=0)
    assert len((tmp_path / "records.csv").read_text(encoding="utf-8").splitlines()) == 101


def test_records_that_have_not_mixed_are_flagged(model: Model, tmp_path: Path) -> None:
    """The report and the explorer say what that means, and what to do about it."""
    release = make_release(model)
    assert release.fit is not None
    unmixed = replace(release, fit=replace(release.fit, status=Status.NOT_MIXED))
    page = write_report(unmixed, tmp_path / "people.html").read_text(encoding="utf-8")
    facts = collect_facts(unmixed, "people")["certificate"]
    assert facts["short"] == "records have not mixed"
    for text in (page, facts["status"]):
        assert Status.NOT_MIXED.advice in text
        assert "their error may be more than that" in text
    assert 'class="note flag"' in page
