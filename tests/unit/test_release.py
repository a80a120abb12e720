"""Release files: exact round trips, and clear errors for whatever else is in a file."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from guarantees import guarantee_of
from juncture import (
    Codebook,
    Coding,
    Domain,
    Factor,
    InvalidInput,
    Measurement,
    Model,
    Release,
    UnreadableFile,
    estimate,
    load,
)
from juncture.errors import NotPublic
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.tables.columns import Categorical, Integer
from juncture.tables.queries import (
    AllRanges,
    Buckets,
    Identity,
    Kron,
    Matrix,
    Moments,
    Point,
    Prefix,
    Range,
    Scaled,
    Stack,
    Subset,
    Total,
    WeightedSum,
)
from juncture.tables.queries.products import Query
from juncture.tables.schema import Schema

DOMAIN = Domain({"a": 3, "b": 4, "c": 2})
QUERIES: list[tuple[tuple[str, ...], Query]] = [
    (("a", "b"), Identity()),
    (("b", "a"), Kron({"b": Prefix(), "a": Total()})),
    (("b",), Stack([Point(1), Range(0, 2), Subset([0, 3])])),
    (("a",), WeightedSum((0.5, 1.5, 2.5))),
    (("b",), Moments(2)),
    (("b",), Scaled(2.0, Buckets([0, 0, 1, 1]))),
    (("c", "b"), Kron({"c": Identity(), "b": AllRanges()})),
    (("c",), Matrix(np.array([[1.0, -2.0]]))),
    (("a",), Matrix(sparse.csr_matrix(np.eye(3)[:2]))),
]


def release() -> Release:
    """A release with every kind of query, scales per row, zeros and a codebook."""
    rng = np.random.default_rng(2)
    measurements = []
    for clique, query in QUERIES:
        probe = Measurement(clique, [0.0], stddev=1.0, query=query)
        try:
            rows = probe.operator(DOMAIN).n_rows
        except InvalidInput as error:  # the message names the right number of rows
            rows = int(str(error).split("must have ")[1].split()[0])
        stddev = rng.uniform(1, 5, rows) if rows % 2 == 0 else 3.0
        noisy = rng.normal(30, 5, rows)
        measurements.append(Measurement(clique, noisy, stddev=stddev, query=query, noise="laplace"))
    impossible = np.zeros((3, 4), dtype=bool)
    impossible[0, 1] = True
    fit = estimate(DOMAIN, measurements, total=100.0, constraints={("a", "b"): impossible})
    book = Codebook({"a": Coding(("x", None, "z")), "b": Coding.of_bins([0, 1, 2.5, 3, 9])})
    return Release(
        model=fit.model.with_codebook(book),
        measurements=measurements,
        fit=fit.summary,
        guarantee=guarantee_of(
            [{"event": 1, "rho": 0.1}], Budget(epsilon=1.0, delta=1e-9), Neighbours.REPLACE
        ),
        mechanism="by hand",
        workload=[("a", "b"), ("c",)],
        details={"gap": -np.inf, "rounds": 3},
    )


@pytest.fixture(scope="module")
def made() -> Release:
    """A release, made once."""
    return release()


@pytest.fixture
def path(tmp_path: Path, made: Release) -> Path:
    """The same release in a file."""
    return made.save(tmp_path / "some.jct")


def test_round_trip_to_the_bit(path: Path, made: Release) -> None:
    """Everything comes back exactly, marginals by way of potentials: a second time to the bit."""
    found = load(path)
    assert found.model.domain == made.model.domain
    assert found.model.cliques == made.model.cliques
    assert found.model.potentials.tobytes() == made.model.potentials.tobytes()
    np.testing.assert_allclose(found.model.marginals, made.model.marginals, rtol=1e-13)
    assert found.model.total == made.model.total
    assert found.model.log_partition == pytest.approx(made.model.log_partition, rel=1e-13)
    assert found.guarantee == made.guarantee
    assert found.fit == made.fit
    assert (found.mechanism, list(found.workload)) == ("by hand", [("a", "b"), ("c",)])
    assert found.details == {"gap": None, "rounds": 3}
    assert not found.model.codebook.is_plain
    assert found.model.codebook.codings == made.model.codebook.codings
    for one, other in zip(found.measurements, made.measurements, strict=True):
        assert (one.clique, one.noise) == (other.clique, other.noise)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.stddev, other.stddev)
        table = np.random.default_rng(1).random(DOMAIN.project(one.clique).shape)
        np.testing.assert_array_equal(
            one.operator(DOMAIN).apply(table), other.operator(DOMAIN).apply(table)
        )
    again = found.save(path.with_name("again.jct"))
    assert load(again).save(path.with_name("third.jct")).read_bytes() == again.read_bytes()


def test_a_loaded_model_answers(path: Path, made: Release) -> None:
    """Marginals across cliques, SQL in the user's values, and records."""
    found = load(path).model
    np.testing.assert_allclose(
        found.project(("a", "c")).values, made.model.project(("a", "c")).values
    )
    assert (
        found.sql("SELECT COUNT(*) FROM t WHERE a = 'x'").rows
        == made.model.sql("SELECT COUNT(*) FROM t WHERE a = 'x'").rows
    )
    assert (found.sample(50, rng=1)["b"] == made.model.sample(50, rng=1)["b"]).all()


def rewrite(path: Path, change: Callable[[dict[str, Any], list[bytes]], None]) -> None:
    """Change a file's content and make its checksums right again, as an attacker would."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("document.json"))
        arrays = [archive.read(f"arrays/{i}.f64") for i in range(len(document["arrays"]))]
    change(document, arrays)
    for entry, array in zip(document["arrays"] or [], arrays, strict=False):
        if isinstance(entry, dict):
            entry["sha256"] = hashlib.sha256(array).hexdigest()
    text = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("document.json", text)
        archive.writestr("document.sha256", hashlib.sha256(text).hexdigest())
        for place, array in enumerate(arrays):
            archive.writestr(f"arrays/{place}.f64", array)


def setting(key: str, value: object) -> Callable[[dict[str, Any], list[bytes]], None]:
    """A change of one entry of the document."""

    def change(document: dict[str, Any], _arrays: list[bytes]) -> None:
        document[key] = value

    return change


def poison(_document: dict[str, Any], arrays: list[bytes]) -> None:
    """A potential of not-a-number."""
    values = np.frombuffer(arrays[0]).copy()
    values[0] = np.nan
    arrays[0] = values.tobytes()


def shift_marginals(_document: dict[str, Any], arrays: list[bytes]) -> None:
    """Marginals that are not those of the potentials."""
    arrays[1] = (np.frombuffer(arrays[1])[::-1]).tobytes()


def negative_marginals(_document: dict[str, Any], arrays: list[bytes]) -> None:
    """Marginals within the tolerance, but below zero."""
    values = np.frombuffer(arrays[1]).copy()
    values[values.argmin()] = -1e-9
    arrays[1] = values.tobytes()


def shorten(_document: dict[str, Any], arrays: list[bytes]) -> None:
    """An array shorter than the document says."""
    arrays[0] = arrays[0][:-8]


def lengthen(document: dict[str, Any], arrays: list[bytes]) -> None:
    """Potentials for more cells than there are."""
    arrays[0] += bytes(8)
    document["arrays"][0]["length"] += 1


def declare_huge(document: dict[str, Any], _arrays: list[bytes]) -> None:
    """A length of petabytes."""
    document["arrays"][0]["length"] = 2**50


def huge_domain(document: dict[str, Any], _arrays: list[bytes]) -> None:
    """Attributes of a million million values."""
    document["domain"] = [[name, 10**12] for name, _ in document["domain"]]


def bad_matrix(document: dict[str, Any], _arrays: list[bytes]) -> None:
    """A matrix of a shape that its array has not."""
    document["measurements"][7]["query"]["shape"] = [10**6, 10**6]


def negative_place(document: dict[str, Any], _arrays: list[bytes]) -> None:
    """An array counted from the end."""
    document["measurements"][7]["query"]["array"] = -1


HOSTILE = [
    setting("format", "something else"),
    setting("version", 99),
    setting("domain", [["a", -1]]),
    setting("domain", "text"),
    setting("cliques", [["a", "nobody"]]),
    setting("cliques", 7),
    setting("total", -5.0),
    setting("total", "many"),
    setting("total", 1e999),
    setting("log_share", 5.0),
    setting("log_share", None),
    setting("measurements", [{}]),
    setting("measurements", [{"clique": ["a"], "values": 10**9, "stddev": 0, "noise": "x"}]),
    setting("codebook", {"a": ["x"]}),
    setting("codebook", {"a": ["x", "x", "x"]}),
    setting("details", 3),
    setting("guarantee", 3),
    setting("guarantee", {}),
    setting(
        "guarantee",
        {"budget": {"epsilon": -1}, "neighbours": None, "unit": "one record", "events": []},
    ),
    setting("guarantee", {"budget": None, "neighbours": "all", "unit": "one record", "events": []}),
    setting("guarantee", {"budget": None, "neighbours": None, "unit": "one record", "events": 5}),
    setting("fit", {"status": "FINE"}),
    setting("workload", [["nobody"]]),
    setting("arrays", None),
    setting("arrays", [1, 2]),
    poison,
    shift_marginals,
    negative_marginals,
    setting("log_partition", -50.0),
    setting("codebook", [1]),
    setting("domain", [["a", 3], ["b", 4], ["c", 2], ["d", 10**10]]),
    shorten,
    lengthen,
    declare_huge,
    huge_domain,
    bad_matrix,
    negative_place,
    setting(
        "measurements",
        [
            {
                "clique": ["a"],
                "values": 2,
                "stddev": 3,
                "noise": "laplace",
                "query": {"kind": "moments", "count": 3 * 10**8, "values": None},
            }
        ],
    ),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_content_is_refused(
    path: Path, change: Callable[[dict[str, Any], list[bytes]], None]
) -> None:
    """Right checksums do not help content that does not fit; nothing large is allocated."""
    rewrite(path, change)
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="`path` must be a"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("size", [10**6, 10**7, 10**12])
def test_free_attributes_have_the_limits_of_a_schema(path: Path, size: int) -> None:
    """A few bytes cannot stand for more values than a column may have; nothing is allocated."""

    def add(document: dict[str, Any], _arrays: list[bytes]) -> None:
        document["domain"].append(["huge", size])
        document["codebook"] = {}

    plain = json.loads(zipfile.ZipFile(path).read("document.json"))
    rewrite(path, add)
    free = np.log(size)

    def shift(document: dict[str, Any], _arrays: list[bytes]) -> None:
        document["log_partition"] = plain["log_partition"] + free

    rewrite(path, shift)
    tracemalloc.start()
    if size <= 10**6:
        assert load(path).model.domain["huge"] == size
    else:
        with pytest.raises(UnreadableFile, match="at most 1,000,000 values; got"):
            load(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_marginals_that_are_almost_right_are_computed_anew(tmp_path: Path) -> None:
    """Within the tolerance cliques may disagree where they meet: none does after loading."""
    domain, rng = Domain({"a": 5, "b": 6, "c": 4}), np.random.default_rng(1)
    left, right = (
        Factor.random(domain.project(pair), rng).values for pair in (("a", "b"), ("b", "c"))
    )
    left[:, 3] = right[3] = -np.inf
    pairs = [Factor(domain.project(("a", "b")), left), Factor(domain.project(("b", "c")), right)]
    made = Model.of_potentials(domain, pairs, total=1e6)

    def disagree(document: dict[str, Any], arrays: list[bytes]) -> None:
        numbers = np.frombuffer(arrays[1]).copy()
        numbers[:30].reshape(5, 6)[:, 3] = 9e-7  # of values that the other clique excludes
        arrays[1] = numbers.tobytes()
        document["arrays"][1]["sha256"] = hashlib.sha256(arrays[1]).hexdigest()

    path = Release(model=made).save(tmp_path / "off.jct")
    rewrite(path, disagree)
    found = load(path).model
    np.testing.assert_allclose(found.probabilities, made.probabilities, rtol=0, atol=1e-15)
    for records in (found.synthesize(200_000, rng=0), found.sample(200_000, rng=0)):
        assert not (records["b"] == 3).any()


def test_many_attributes_and_entries_are_counted_before_they_are_made(path: Path) -> None:
    """Attributes beyond the limit, and a document of nothing but brackets."""

    def widen(document: dict[str, Any], _arrays: list[bytes]) -> None:
        document["domain"] += [[f"x{i}", 2] for i in range(20_000)]

    rewrite(path, widen)
    with pytest.raises(UnreadableFile, match="at most 10,000 attributes; got 20,003"):
        load(path)

    def fill(document: dict[str, Any], _arrays: list[bytes]) -> None:
        document["domain"] = document["domain"][:3]
        document["details"] = {"x": [[]] * 2_000_000}

    rewrite(path, fill)
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="more than 3,000,000 entries"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()


def test_numpy_numbers_can_be_saved(tmp_path: Path) -> None:
    """Totals and meanings that come out of arrays are plain numbers in the file."""
    domain = Domain({"a": 2})
    model = Model.of_potentials(domain, [Factor(domain, np.zeros(2))], total=float(np.int64(5)))
    named = model.with_codebook(Codebook({"a": Coding(tuple(np.array([3, 7])))}))
    found = load(Release(model=named).save(tmp_path / "numbers.jct")).model
    assert found.sql("SELECT COUNT(*) FROM t WHERE a > 3").rows[0][0] == pytest.approx(2.5)


def test_endless_nesting_is_refused(path: Path) -> None:
    """Depth runs into the interpreter's limit, which is an error like any other."""
    document_depth = 3000
    with zipfile.ZipFile(path) as archive:
        text = archive.read("document.json").decode()
    nested = '{"kind": "scaled", "weight": 1.0, "query": ' * document_depth
    nested += '{"kind": "identity"}' + "}" * document_depth
    start = text.index('"query": ')
    end = text.index("}", start) + 1
    text = text[:start] + '"query": ' + nested + text[end:]
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["document.json"] = text.encode()
    members["document.sha256"] = hashlib.sha256(text.encode()).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(UnreadableFile):
        load(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(path: Path, share: float) -> None:
    """Whatever its length."""
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UnreadableFile):
        load(path)


def test_every_altered_byte_is_noticed(path: Path) -> None:
    """A flipped bit anywhere in the content is an error, never another model."""
    whole = path.read_bytes()
    reference = load(path).model.potentials.tobytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        altered = bytearray(whole)
        altered[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(altered))
        try:
            found = load(path)
        except UnreadableFile:
            continue
        # Some fields of a zip archive carry no content: times, attributes.
        assert found.model.potentials.tobytes() == reference


def zipped(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    """An archive with just these members."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    """Names outside, compressed members (which could be a bomb), other files, no file."""
    path = tmp_path / "other.jct"
    text = b'{"arrays": []}'
    checksum = hashlib.sha256(text).hexdigest().encode()
    good = {"document.json": text, "document.sha256": checksum}
    for members in (
        {"../../escape": b"x"},
        {**good, "/etc/passwd": b"x"},
        {**good, "arrays/1.f64": b""},
        {},
        {"document.json": text},
        {**good, "document.sha256": b"wrong"},
        {**good, "document.json": b"not json"},
        {"document.json": b"[]", "document.sha256": hashlib.sha256(b"[]").hexdigest().encode()},
    ):
        zipped(path, members)
        with pytest.raises(UnreadableFile):
            load(path)
    zipped(path, {**good, "arrays/0.f64": bytes(10**8)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="compressed or larger than the file"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    path.write_text("age,sex\n1,2\n")
    with pytest.raises(UnreadableFile):
        load(path)
    with pytest.raises(UnreadableFile, match="existing file"):
        load(tmp_path / "nothing.jct")
    assert not list(tmp_path.parent.glob("escape"))


def test_a_schema_goes_along(tmp_path: Path) -> None:
    """Records can be decoded from the file alone; drafts and other schemas are refused."""
    listed = Categorical(values=("x", "y"), missing_values=("NA", -9))
    schema = Schema({"a": Integer(low=5, high=7), "b": listed})
    model = Model.of_potentials(schema.domain, [Factor(schema.domain, np.zeros((3, 2)))], 9.0)
    found = load(Release(model=model, schema=schema).save(tmp_path / "schema.jct"))
    assert found.schema == schema
    assert found.schema is not None
    values = found.schema.decode(found.model.sample(20, rng=0), rng=0)
    assert set(values["a"]) <= {5, 6, 7}
    assert found.model.sql("SELECT COUNT(*) FROM t WHERE b = 'x'").rows[0][0] == pytest.approx(4.5)
    with pytest.raises(NotPublic, match="must be public knowledge"):
        Release(model=model, schema=Schema(schema.columns, drafted=True))
    with pytest.raises(InvalidInput, match="the model's attributes and sizes"):
        Release(model=model, schema=Schema({"a": Integer(low=5, high=7)}))


def test_a_failed_save_leaves_nothing(tmp_path: Path, made: Release) -> None:
    """The old file stays as it was, and no half-written one stays behind."""
    target = tmp_path / "some.jct"
    made.save(target)
    before = target.read_bytes()
    broken = Release(model=made.model, details={"nested": [float("nan")]})
    with pytest.raises(ValueError, match="JSON"):
        broken.save(target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_queries_of_other_kinds_are_refused(tmp_path: Path, made: Release) -> None:
    """A block that is not ours has no name in the file."""

    class Odd(Identity):
        """Not one of ours."""

    odd = Measurement(("c",), [1.0, 2.0], stddev=1.0, query=Odd())
    with pytest.raises(InvalidInput, match="made of Juncture's own blocks"):
        Release(model=made.model, measurements=[odd]).save(tmp_path / "odd.jct")
    assert not list(tmp_path.iterdir())
