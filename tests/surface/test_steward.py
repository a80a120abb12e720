"""What a data steward is told: warnings, unmeasured columns, targets, what is too large."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from juncture.cli.main import run
from juncture.mechanisms.hdmm import HDMM
from juncture.privacy.budget import Budget
from juncture.privacy.ledger import Ledger
from juncture.private.simulated import SimulatedCurator
from juncture.private.sources.files import TableFile
from juncture.private.sources.source import CodedTable
from juncture.publish.release import load
from juncture.tables.columns import Categorical, Integer, Outside
from juncture.tables.domain import Domain
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import schema_toml
from juncture.tables.workload import Workload
from tables import write_table

CITY = Categorical(values=("Bern", "Basel"), missing=True, outside=Outside.CODE)
SCHEMA = Schema({"age": Integer(low=0, high=3), "sick": Integer(low=0, high=1), "city": CITY})


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The words of a release of a small table."""
    (tmp_path / "people.toml").write_text(schema_toml(SCHEMA))
    rows = "".join(f"{n % 4},{n % 2},{'Bern' if n % 3 else 'Basel'}\n" for n in range(600))
    (tmp_path / "people.csv").write_text("age,sick,city\n" + rows)
    names = ("people.csv", "--schema", "people.toml", "--out", "x.jct", "--ledger", "x.ledger")
    return ["release", *(str(tmp_path / n) if "." in n else n for n in names)]


def test_one_command_leads_from_a_raw_table_to_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its release lies in the current folder, its ledger beside the data, and says no later."""
    (tmp_path / "raw").mkdir()
    data, schema = write_table(tmp_path / "raw", 4000).data, tmp_path / "suggested.toml"
    monkeypatch.chdir(tmp_path)
    assert run(["schema", "suggest", str(data), "--out", str(schema)]) == 0
    text = schema.read_text()
    for low, high in ((0, 100), (0, 50)):
        text = text.replace('low = "?"', f"low = {low}", 1).replace(
            'high = "?"', f"high = {high}", 1
        )
    schema.write_text(text)
    words = ["release", str(data), "--schema", str(schema), "--epsilon", "1", "--delta", "1e-6"]
    assert run(words) == 0
    release, book = load(tmp_path / "people.jct"), Ledger(data.with_suffix(".ledger"))
    assert release.schema is not None
    assert list(release.schema.columns) == ["age", "sex", "pay"]
    assert [each.name for each in release.found] == ["age", "sex", "pay"]
    assert 3000 < release.model.total < 5000
    assert run([*words, "--out", str(tmp_path / "again.jct")]) == 3
    assert not (tmp_path / "again.jct").exists()
    assert book.spent <= book.budget.limit * (1 + 1e-9)


def test_the_ledger_of_the_current_folder_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside, it would be among the data."""
    (tmp_path / "parts").mkdir()
    monkeypatch.chdir(tmp_path / "parts")
    for dots in (".", "../parts/."):
        assert TableFile.parse(dots).beside(".ledger").resolve() == tmp_path / "parts.ledger"


def test_a_column_that_is_not_measured_is_named(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its regular values count the same, and none of its records is missing or outside."""
    assert run([*words, "--epsilon", "5", "--cliques", "age,sick"]) == 0
    assert "note: not measured: city." in capsys.readouterr().err
    made = load(tmp_path / "x.jct")
    assert made.model.unmeasured == ("city",)
    counts = made.project(("city",)).values
    assert counts[:2] == pytest.approx([made.model.total / 2] * 2)
    assert counts[2:].tolist() == [0.0, 0.0]
    assert set(made.synthesize(50, rng=0).to_arrow()["city"].to_pylist()) == {"Bern", "Basel"}
    note = made.sql("SELECT city, COUNT(*) FROM t GROUP BY city").notes[0]
    assert str(note).startswith("city was never measured")


def test_a_target_is_asked_with_all_columns(words: list[str], tmp_path: Path) -> None:
    """What predicts the target is asked for: every two columns together with it."""
    assert run([*words, "--epsilon", "5", "--target", "sick"]) == 0
    assert set(load(tmp_path / "x.jct").workload) == {("age", "sick", "city")}
    domain = Domain({"a": 2})
    assert Workload.with_target(domain, "a").cliques == (("a",),)
    assert run([*words, "--epsilon", "5", "--target", "nobody", "--force"]) == 1
    both = ["--target", "sick", "--cliques", "age,city", "--force"]
    assert run([*words, "--epsilon", "5", *both]) == 2


def test_large_deltas_and_large_noise_are_worth_a_word(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A delta that allows publishing records, and noise beside which the table is small."""
    schema = words[3]
    plan = ["plan", "--schema", schema, "--epsilon", "0.01", "--records", "60"]
    assert run([*plan, "--delta", "0.01"]) == 0
    beside = capsys.readouterr().err
    assert "warning: a delta of 0.01" in beside
    assert "most answers will be noise" in beside
    plain = ["--epsilon", "1", "--delta", "1e-9", "--mechanism", "tiers"]
    assert run(["plan", "--schema", schema, *plain]) == 0
    assert capsys.readouterr().err == ""
    assert run([*words, "--epsilon", "0.001"]) == 0
    assert "most answers will be noise" in capsys.readouterr().err


def test_a_second_release_says_what_it_spent_itself(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The total of a shared ledger is not the cost of one release."""
    ledger = words[-1]
    assert run(["ledger", "create", ledger, "--epsilon", "3"]) == 0
    for share, total in ((1.0, 1.0), (2.0, 3.0)):
        capsys.readouterr()
        assert run([*words, "--epsilon", str(share), "--force", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["spent"] == pytest.approx(share)
        assert said["ledger_spent"] == pytest.approx(total)


def test_a_model_that_is_too_large_is_told_in_the_words_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One figure, what was typed, and what to type instead."""
    columns = {f"c{n}": Integer(low=0, high=9) for n in range(30)}
    (tmp_path / "wide.toml").write_text(schema_toml(Schema(columns)))
    plan = ["plan", "--schema", str(tmp_path / "wide.toml"), "--epsilon", "1"]
    assert run([*plan, "--mechanism", "hdmm"]) == 1
    beside = capsys.readouterr().err
    assert beside.startswith("error: `--mechanism` must be one that can serve 435 sets of columns")
    assert "Take another (mwem and privbayes" in beside
    assert "memory_limit" not in beside


def test_mwem_measures_every_column(tmp_path: Path) -> None:
    """However few the rounds, no column stays unknown; the prices add up to the budget."""
    from juncture.mechanisms.mwem import MWEM  # noqa: PLC0415

    domain = Domain({f"c{n}": 3 for n in range(9)})
    rng = np.random.default_rng(0)
    source = CodedTable(domain, {name: rng.integers(0, 3, 500) for name in domain})
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=2.0))
    mechanism = MWEM(Budget(epsilon=2.0), rounds=2)
    result = mechanism.run(
        SimulatedCurator(source, ledger, rng=rng), Workload.all_marginals(domain, 2)
    )
    assert result.model is not None
    assert result.model.unmeasured == ()
    assert ledger.spent == pytest.approx(2.0)
    assert sum(len(m.clique) == 1 for m in result.measurements) == 9


def test_a_release_of_singles_leaves_nothing_unmeasured(tmp_path: Path) -> None:
    """Measured columns keep the weight of missing and outside values."""
    ledger = Ledger.create(tmp_path / "l", Budget(epsilon=50.0))
    columns = {"age": [0, 1, 2, 3] * 20, "sick": [0, 1] * 40, "city": [0, 1, 2, 3] * 20}
    source = CodedTable(SCHEMA.domain, columns, SCHEMA)
    curator = SimulatedCurator(source, ledger, rng=np.random.default_rng(0))
    workload = Workload.all_marginals(SCHEMA.domain, 1)
    made = HDMM(Budget(epsilon=50.0)).run(curator, workload).release()
    assert made.model.unmeasured == ()
    assert made.project(("city",)).values == pytest.approx([20.0] * 4, abs=3.0)


def test_records_serve_what_no_tree_can(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With records for an oracle, mechanisms plan and release workloads of any tree-width."""
    columns = {f"c{n}": Integer(low=0, high=9) for n in range(30)}
    (tmp_path / "wide.toml").write_text(schema_toml(Schema(columns)))
    plan = ["plan", "--schema", str(tmp_path / "wide.toml"), "--epsilon", "1"]
    assert run([*plan, "--oracle", "auto", "--mechanism", "hdmm"]) == 0
    out = capsys.readouterr().out
    assert "Mechanism: hdmm" in out
    assert "records" in out.split("Budget")[0]
    assert "Oracle: records, because a junction tree would need" in out
    assert run([*plan, "--oracle", "records", "--mechanism", "mwem"]) == 0
    replaced = ["--neighbours", "replace", "--records", "5000"]
    assert run([*plan, "--oracle", "auto", "--mechanism", "privbayes", *replaced]) == 0
    assert run([*plan, "--oracle", "records", "--mechanism", "dualquery", *replaced]) == 2
    assert "hdmm, mwem or privbayes" in capsys.readouterr().err
    assert run([*plan, "--json", "--oracle", "auto", "--mechanism", "hdmm"]) == 0
    assert json.loads(capsys.readouterr().out)["oracle"]["name"] == "records"
    assert run([*words, "--epsilon", "5", "--oracle", "records"]) == 0
    made = load(tmp_path / "x.jct")
    assert not made.model.plan.has_tree
    ages = made.project(("age",)).values
    assert ages == pytest.approx([150.0] * 4, abs=25.0)
    assert run(["query", str(tmp_path / "x.jct"), "SELECT age, AVG(sick) FROM t GROUP BY age"]) == 0
    assert run(["report", str(tmp_path / "x.jct"), "--out", str(tmp_path / "x.html")]) == 0


def test_auto_takes_records_where_no_tree_fits_or_an_exact_fit_is_slow() -> None:
    """The exact model stays the choice where it fits and is not far slower; choices say why."""
    from itertools import combinations  # noqa: PLC0415

    from juncture.engine.oracle_choice import Reason, choose_oracle  # noqa: PLC0415
    from juncture.engine.particles import Particles  # noqa: PLC0415
    from juncture.engine.propagation import Propagation  # noqa: PLC0415

    small, wide = Domain({"a": 3, "b": 2}), Domain({f"c{n}": 10 for n in range(30)})
    choice = choose_oracle("auto", small, [("a", "b")])
    assert choice.factory is Propagation
    assert choice.reason is Reason.FITS
    assert "exact, because the junction tree fits" in str(choice)
    choice = choose_oracle("auto", wide, combinations(wide, 2))
    assert isinstance(choice.factory, Particles)
    assert not choice.plan.has_tree
    assert choice.reason is Reason.TOO_LARGE
    assert "would need" in str(choice)
    # 10**9 operations take a minute, and three cliques with records a second.
    slow = Domain({"a": 1_000, "b": 1_000, "c": 400})
    choice = choose_oracle("auto", slow, combinations(slow, 2))
    assert isinstance(choice.factory, Particles)
    assert choice.reason is Reason.TOO_SLOW
    assert choice.time.exact is not None
    assert choice.time.exact > 4.0 * choice.time.records
    assert "because an exact fit would take" in str(choice)
    assert choose_oracle("exact", slow, combinations(slow, 2)).factory is Propagation
