"""What a release shows is a function of noisy outcomes, and these lose what was paid, no more.

`pytest -s tests/privacy/test_replay.py` prints how many transcripts and calls were compared.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.cli.main import run as run_command
from juncture.mechanisms.registry import offers, prepare
from juncture.privacy.accounting import Neighbours
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private import curator as door
from juncture.private.sources.source import CodedTable
from juncture.publish import archive
from juncture.tables.domain import Domain
from juncture.tables.measurement import Measurement
from juncture.tables.workload import Workload
from scribe import Call, Scribe, Transcribed, find_violations

pytestmark = pytest.mark.slow

DOMAIN = Domain({"a": 2, "b": 3, "c": 2, "d": 4})
WORKLOAD = Workload.all_marginals(DOMAIN, 2)
N = 60
# Clocks, and a hash with a random salt: all else must be equal.
CLOCKS = (("fit", "seconds"), ("guarantee", "ledger_hash"))


def make_table(seed: int, n: int = N) -> dict[str, np.ndarray]:
    """A table of random records."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    columns = {name: rng.integers(0, size, n) for name, size in DOMAIN.items()}
    return {**columns, "a": first, "c": np.where(rng.random(n) < 0.8, first, 1 - first)}


def make_neighbour(columns: dict[str, np.ndarray], seed: int, *, replaced: bool) -> Any:
    """The table with one record replaced, or left out."""
    if not replaced:
        return {name: column[1:] for name, column in columns.items()}
    rng = np.random.default_rng(seed + 1000)
    other = {name: column.copy() for name, column in columns.items()}
    for name, size in DOMAIN.items():
        other[name][0] = (other[name][0] + rng.integers(1, size)) % size
    return other


def go(
    name: str, columns: Any, scribe: Scribe, path: Path, neighbours: Neighbours, budget: Budget
) -> dict[str, Any]:
    """The document of a release that is made with a scribe, without its clocks; and its arrays."""
    ledger = Ledger.create(path.with_suffix(".ledger"), budget, neighbours)
    curator = Transcribed(CodedTable(DOMAIN, columns), ledger, scribe)
    run = prepare(name, budget, WORKLOAD, neighbours, curator.public_n_records)
    return read_document(run(curator).release().save(path))


def read_document(path: Path) -> dict[str, Any]:
    """What a release file says, without clocks, and with its arrays."""
    document, arrays = archive.read(path)
    for part, entry in CLOCKS:
        if document[part] is not None:
            document[part].pop(entry)
    return {**document, "arrays": [array.tobytes() for array in arrays]}


SETTINGS = [
    (Neighbours.ADD_OR_REMOVE, Budget(epsilon=2.0)),
    (Neighbours.REPLACE, Budget(epsilon=2.0)),
    (Neighbours.REPLACE, Budget(rho=0.5)),
]


def make_twins() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Tables of equal records but one, which makes two columns dependent, or the other two.

    One dependence falls by nearly as much as a record can move it, and another rises by as much.
    """
    one, other = ({name: np.zeros(N, dtype=np.int64) for name in DOMAIN} for _ in range(2))
    one["a"][0] = one["b"][0] = other["c"][0] = other["d"][0] = 1
    return one, other


def compare(
    name: str, folder: Path, setting: Any, seed: int, tables: Any = None, **broken: Any
) -> tuple[list[str], bool, int]:
    """Run on a table, force the outcomes on a neighbour: what is lost, whether the files agree."""
    neighbours, budget = setting
    columns = make_table(seed)
    other = make_neighbour(columns, seed, replaced=neighbours is Neighbours.REPLACE)
    columns, other = tables or (columns, other)
    first = Scribe(np.random.default_rng(seed), **broken)
    one = go(name, columns, first, folder / "one.jct", neighbours, budget)
    second = Scribe(np.random.default_rng(0), forced=first.calls, **broken)
    two = go(name, other, second, folder / "two.jct", neighbours, budget)
    return find_violations(first.calls, second.calls), one == two, len(first.calls)


@pytest.mark.parametrize("name", offers())
def test_transcripts_lose_what_was_paid_and_files_are_functions_of_outcomes(
    name: str, tmp_path: Path
) -> None:
    """On neighbours of both kinds, with both kinds of noise: no loss above its charge."""
    n_transcripts = n_calls = 0
    for number, setting in enumerate(SETTINGS):
        needs_public_n = name in ("privbayes", "dualquery")
        if needs_public_n and setting[0] is not Neighbours.REPLACE:
            continue
        if name == "dualquery" and setting[1].rho is None:
            continue
        for seed in range(2):
            folder = tmp_path / f"{number}-{seed}"
            folder.mkdir()
            violations, is_equal, n = compare(name, folder, setting, seed)
            assert not violations
            assert is_equal
            n_transcripts, n_calls = n_transcripts + 1, n_calls + n
    print(f"{name}: {n_transcripts} transcripts, {n_calls} calls, none above its charge")


def test_any_table_gives_the_same_file(tmp_path: Path) -> None:
    """Not only neighbours: the outcomes of one table on a wholly different one."""
    for name in offers():
        folder = tmp_path / name
        folder.mkdir()
        first = Scribe(np.random.default_rng(1))
        setting = (Neighbours.REPLACE, Budget(rho=0.5))
        one = go(name, make_table(1), first, folder / "one.jct", *setting)
        second = Scribe(np.random.default_rng(2), forced=first.calls)
        assert go(name, make_table(2), second, folder / "two.jct", *setting) == one


CHOOSING = ("mwem", "aim", "mst", "tiers", "privbayes")


@pytest.mark.parametrize("name", [*CHOOSING, "hdmm", "residual", "direct", "independent"])
def test_half_the_noise_is_caught(name: str, tmp_path: Path) -> None:
    """In every mechanism that measures."""
    setting = (Neighbours.REPLACE, Budget(epsilon=2.0))
    assert compare(name, tmp_path, setting, 0, noise_factor=0.5)[0]


@pytest.mark.parametrize("name", ["mwem", "aim", "mst", "dualquery"])
def test_a_doubled_exponent_is_caught(name: str, tmp_path: Path) -> None:
    """By one of a few random tables."""
    assert list_violations(name, tmp_path, Budget(rho=0.5), exponent_factor=2.0)


def test_a_doubled_exponent_of_privbayes_is_caught(tmp_path: Path) -> None:
    """By tables whose dependences one record moves in both directions; the right one loses less."""
    for folder, factor in (("right", 1.0), ("broken", 2.0)):
        (tmp_path / folder).mkdir()
        found = list_violations(
            "privbayes", tmp_path / folder, Budget(rho=20.0), make_twins(), exponent_factor=factor
        )
        assert bool(found) == (factor > 1.0)


def list_violations(
    name: str, folder: Path, budget: Budget, tables: Any = None, **broken: Any
) -> list[str]:
    """What is lost without having been paid for, in some runs."""
    found = list[str]()
    for seed in range(6):
        place = folder / str(seed)
        place.mkdir()
        found += compare(name, place, (Neighbours.REPLACE, budget), seed, tables, **broken)[0]
    return found


class Unpaid(Transcribed):
    """A broken curator: its first measurement is not in the ledger."""

    def measure_all(self, requests: Any) -> list[Measurement]:
        """Answer the first request without paying."""
        prepared = [self._prepare(request) for request in requests]
        tables = self._source.exact_counts([each.request.clique for each in prepared])
        pairs = zip(prepared, tables, strict=True)
        return [each.measurement(self._noisy_answers(each, table)) for each, table in pairs]


class Leaking(Transcribed):
    """A broken curator: a count goes round the sampler into what is measured."""

    def measure_all(self, requests: Any) -> list[Measurement]:
        """Move the noisy answers by a fraction of an exact count."""
        measured = super().measure_all(requests)
        exact = self._source.exact_counts([measured[0].clique])[0].values.reshape(-1)[0]
        return [replace_values(measured[0], measured[0].values + 1e-9 * exact), *measured[1:]]


def replace_values(measured: Measurement, values: np.ndarray) -> Measurement:
    """A measurement with other values."""
    return Measurement(
        measured.clique, values, stddev=measured.stddev, query=measured.query, noise=measured.noise
    )


def test_a_count_that_skips_the_ledger_is_caught(tmp_path: Path) -> None:
    """The sampler is asked by somebody who has paid for nothing."""
    calls: list[list[Call]] = []
    for side, columns in enumerate(
        (make_table(0), make_neighbour(make_table(0), 0, replaced=True))
    ):
        ledger = Ledger.create(tmp_path / str(side), Budget(epsilon=1.0), Neighbours.REPLACE)
        forced = calls[0] if side else None
        scribe = Scribe(np.random.default_rng(0), forced=forced)
        curator = Unpaid(CodedTable(DOMAIN, columns), ledger, scribe)
        prepare("hdmm", Budget(epsilon=1.0), WORKLOAD, Neighbours.REPLACE, N)(curator)
        calls.append(scribe.calls)
    assert find_violations(*calls)[0] == "a look at the data that nobody paid for"


def test_a_count_that_goes_round_the_noise_is_caught(tmp_path: Path) -> None:
    """The files of equal outcomes differ."""
    files, calls = [], None
    for side in (0, 1):
        ledger = Ledger.create(tmp_path / str(side), Budget(epsilon=1.0), Neighbours.REPLACE)
        scribe = Scribe(np.random.default_rng(0), forced=calls)
        curator = Leaking(CodedTable(DOMAIN, make_table(side)), ledger, scribe)
        run = prepare("hdmm", Budget(epsilon=1.0), WORKLOAD, Neighbours.REPLACE, N)
        files.append(read_document(run(curator).release().save(tmp_path / f"{side}.jct")))
        calls = scribe.calls
    assert files[0] != files[1]


SCHEMA = """
format = "juncture schema"
version = 2
""" + "".join(
    f'[columns.{name}]\nkind = "integer"\nlow = 0\nhigh = {size - 1}\n'
    for name, size in DOMAIN.items()
)


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    """A table as people have it."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


@pytest.mark.parametrize("name", ["hdmm", "mwem", "tiers", "aim"])
def test_the_whole_command_line_is_a_function_of_outcomes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the CSV files of two neighbours to release, answers and records: all are equal."""
    scribes: list[Scribe] = []

    def sampler() -> Scribe:
        forced = scribes[0].calls if scribes else None
        scribes.append(Scribe(np.random.default_rng(0), forced=forced))
        return scribes[-1]

    monkeypatch.setattr(door, "ExactSampler", sampler)
    columns = make_table(3)
    told = []
    for side, table in enumerate((columns, make_neighbour(columns, 3, replaced=False))):
        folder = tmp_path / str(side)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write_csv(Path("t.csv"), table)
        Path("t.toml").write_text(SCHEMA)
        words = ["release", "t.csv", "--schema", "t.toml", "--rho", "0.5", "--mechanism", name]
        assert run_command([*words, "--out", "t.jct", "--ledger", "t.ledger", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        said["fit"].pop("seconds")
        sql = "SELECT a, COUNT(*), AVG(d) FROM t GROUP BY a"
        assert run_command(["query", "t.jct", sql]) == 0
        assert run_command(["sample", "t.jct", "--out", "r.csv", "--seed", "1"]) == 0
        answers = capsys.readouterr().out.replace("r.csv", "")
        told.append((said, answers, Path("r.csv").read_bytes(), read_document(Path("t.jct"))))
    assert told[0] == told[1]
    assert len(scribes[0].calls) == len(scribes[1].calls) > 0
    assert not find_violations(*(_charge_all(scribe, tmp_path) for scribe in scribes))


def _charge_all(scribe: Scribe, folder: Path) -> Any:
    """The calls, as if each had been paid from all events together: the whole release's loss."""
    events = tuple(Ledger(folder / "0" / "t.ledger").events)
    return [replace(call, events=events) for call in scribe.calls]
