"""Every command does what its help says, prints for people or for machines, and is quiet else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from juncture.cli.app import app
from juncture.cli.main import run
from juncture.privacy.ledger import Ledger
from juncture.publish.release import load
from tables import SCHEMA, Table, write_table

Said = Callable[..., str]
MECHANISMS = {
    "hdmm": ["--epsilon", "3"],
    "mwem": ["--rho", "0.5"],
    "privbayes": ["--epsilon", "3", "--neighbours", "replace"],
    "dualquery": ["--epsilon", "3", "--delta", "1e-5", "--neighbours", "replace"],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The private table, with a release and its ledger beside it."""
    made = write_table(tmp_path_factory.mktemp("cli"))
    assert run(release_of(made, "people.jct", "people.ledger", "--epsilon", "5")) == 0
    return made


def release_of(table: Table, out: str, ledger: str, *more: str) -> list[str]:
    """The words of a release command."""
    files = ["--schema", str(table.schema), "--out", str(table.folder / out)]
    return ["release", str(table.data), *files, "--ledger", str(table.folder / ledger), *more]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """What a command that ends well prints, and that it prints nothing beside it."""

    def go(*words: str | Path) -> str:
        capsys.readouterr()
        code = run([str(word) for word in words])
        out, beside = capsys.readouterr()
        notes = [line for line in beside.splitlines() if "began a new ledger" not in line]
        assert (code, notes) == (0, [])
        return out

    return go


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_release_writes_what_the_ledger_paid_for(mechanism: str, table: Table, said: Said) -> None:
    """A release has a model, the schema and the ledger's events; nothing else is left behind."""
    out, ledger = f"{mechanism}.jct", f"{mechanism}.ledger"
    words = release_of(table, out, ledger, "--mechanism", mechanism, *MECHANISMS[mechanism])
    printed = json.loads(said(*words, "--json"))
    release, book = load(table.folder / out), Ledger(table.folder / ledger)
    assert release.guarantee is not None
    assert list(release.guarantee.events) == [event.publish() for event in book.events]
    assert release.guarantee.ledger_hash == book.events[-1].hash
    assert release.schema is not None
    assert printed["spent"] == pytest.approx(book.spent)
    assert 0 < book.spent <= book.budget.limit * (1 + 1e-9)
    assert release.mechanism == mechanism
    assert release.guarantee.neighbours == book.neighbours
    assert release.fit is not None
    assert 300 < release.model.total < 500
    assert not [path for path in table.folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_report_says_how_the_fit_ended(mechanism: str, table: Table, said: Said) -> None:
    """Whatever the mechanism, the page has the given title, the end of the fit and its misfit."""
    out = f"{mechanism}-page.jct"
    words = release_of(table, out, f"{mechanism}-page.ledger", "--mechanism", mechanism)
    said(*words, *MECHANISMS[mechanism], "--json")
    page = table.folder / f"{mechanism}.html"
    said("report", table.folder / out, "--out", page, "--title", "People & <places>")
    text, release = page.read_text(), load(table.folder / out)
    assert "<h1>People &amp; &lt;places&gt;</h1>" in text
    assert release.fit is not None
    assert release.fit.status.headline in text
    assert ("Misfit" in text) == bool(release.measurements)
    assert ("no residuals can be compared" in text) == (not release.measurements)


def test_two_releases_share_a_ledger(table: Table, said: Said) -> None:
    """An existing ledger is continued with its own budget and neighbours."""
    said("ledger", "create", table.folder / "shared", "--epsilon", "2", "--neighbours", "replace")
    for place in range(2):
        words = release_of(table, f"shared{place}.jct", "shared", "--epsilon", "1")
        said(*words, "--marginals", "1")
    state = json.loads(said("ledger", "show", table.folder / "shared", "--json"))
    assert state["spent"] == pytest.approx(2.0)
    assert state["neighbours"] == "replace one record"
    assert [entry["event"] for entry in state["entries"]] == [1, 2, 3, 4, 5, 6]


def test_release_for_people(table: Table, said: Said) -> None:
    """The summary names the file, the ledger, what was spent and what comes next."""
    words = release_of(table, "words.jct", "words.ledger", "--epsilon", "1")
    printed = said(*words, "--cliques", "age,sex; sex,pay")
    for part in ("wrote", "words.jct", "1 of epsilon 1 spent", "add or remove", "Next:"):
        assert part in printed
    cliques = {m.clique for m in load(table.folder / "words.jct").measurements}
    assert cliques == {("age", "sex"), ("sex", "pay")}


def test_query_answers_in_the_words_of_the_schema(table: Table, said: Said) -> None:
    """SQL, a marginal and a marginal with a condition give the model's own answers."""
    release = table.folder / "people.jct"
    model = load(release).model
    answer = json.loads(said("query", release, "--marginal", "sex", "--json"))["rows"]
    assert [row["sex"] for row in answer] == ["f", "m"]
    assert [row["count"] for row in answer] == pytest.approx(list(model.project(("sex",)).values))
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM t WHERE age < 25 GROUP BY sex"
    direct = json.loads(said("query", release, sql, "--json"))["rows"]
    built = ("--marginal", "sex", "--where", "age < 25", "--mean", "age", "--format", "json")
    indirect = json.loads(said("query", release, *built))["rows"]
    assert [(r["sex"], r["n"], r["mean"]) for r in direct] == [
        (r["sex"], r["count"], r["mean age"]) for r in indirect
    ]
    assert direct == model.sql(sql).to_dicts()


def test_conditions_all_hold(table: Table, said: Said) -> None:
    """Several conditions are joined by AND, each in its own brackets."""
    release = table.folder / "people.jct"
    two = ("--where", "age = 20 OR age = 21", "--where", "sex = 'f'")
    (row,) = json.loads(said("query", release, *two, "--json"))["rows"]
    counts = load(release).model.project(("age", "sex")).values
    assert row["count"] == pytest.approx(counts[:2, 0].sum())


def test_query_prints_tables_and_csv(table: Table, said: Said) -> None:
    """The three forms say the same; a missing value is NULL in a table and empty in CSV."""
    release = table.folder / "people.jct"
    shown = said("query", release, "--marginal", "pay")
    rows = list(csv.reader(io.StringIO(said("query", release, "--marginal", "pay", "-f", "csv"))))
    machine = json.loads(said("query", release, "--marginal", "pay", "-f", "json"))["rows"]
    assert shown.splitlines()[0].split() == ["pay", "count"]
    assert [row[0] for row in rows] == ["pay", "[0, 10)", "[10, 20)", "[20, 50)", ""]
    assert [float(row[1]) for row in rows[1:]] == [row["count"] for row in machine]
    assert machine[-1]["pay"] is None
    assert "NULL" in shown


def test_query_says_what_an_answer_rests_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Notes beside the answer and in the JSON: never measured together, ranges of cut bins."""
    made = write_table(tmp_path)
    assert run(list(map(str, release_of(made, "a.jct", "a.ledger", "--epsilon", "9",
                                        "--marginals", "1")))) == 0  # fmt: skip
    sql = "SELECT COUNT(*) AS n FROM t WHERE pay > 15 AND sex = 'f'"
    capsys.readouterr()
    assert run(["query", str(tmp_path / "a.jct"), sql]) == 0
    out, beside = capsys.readouterr()
    assert "note:" not in out
    assert "sex, pay were never measured together, and are taken as independent." in beside
    assert "whatever the numbers inside the bins, n is between" in beside
    assert run(["query", str(tmp_path / "a.jct"), sql, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["notes"]) == 2
    low, high = answer["ranges"][0]["n"]
    assert low < answer["rows"][0]["n"] < high


def test_sample_writes_records_of_the_schema(table: Table, said: Said) -> None:
    """CSV and Parquet have as many records as asked, values as the table would, and repeat."""
    release = table.folder / "people.jct"
    for name in ("s.csv", "again.csv"):
        said("sample", release, "--records", "60", "--out", table.folder / name, "--seed", "4")
    assert (table.folder / "s.csv").read_text() == (table.folder / "again.csv").read_text()
    rows = list(csv.DictReader(io.StringIO((table.folder / "s.csv").read_text())))
    assert len(rows) == 60
    assert {row["sex"] for row in rows} == {"f", "m"}
    assert all(20 <= int(row["age"]) <= 29 for row in rows)
    printed = said("sample", release, "--out", table.folder / "s.parquet", "--json")
    count = pq.read_metadata(table.folder / "s.parquet").num_rows
    assert json.loads(printed)["records"] == count == round(load(release).model.total)


@pytest.mark.parametrize(("words", "method"), [((), "synthesize"), (("--independent",), "sample")])
def test_sample_matches_counts_unless_told_otherwise(
    words: tuple[str, ...], method: str, table: Table, said: Said
) -> None:
    """The command writes the file that the release writes by the same method and seed."""
    release, out = table.folder / "people.jct", table.folder / f"{method}.parquet"
    said("sample", release, "--out", out, "--seed", "3", "--force", *words)
    load(release).write_records(table.folder / "own.parquet", rng=3, method=method)
    assert pq.read_table(out).equals(pq.read_table(table.folder / "own.parquet"))


def test_compare_with_the_table_is_marked(table: Table, said: Said) -> None:
    """Figures read from the private table carry the warning, above and below, also in JSON."""
    release = table.folder / "people.jct"
    shown = said("compare", release, table.data, "--worst", "2")
    assert shown.count("NOT PRIVATE") == 2
    machine = json.loads(said("compare", release, table.data, "--json"))
    assert machine["private"] is True
    assert "NOT PRIVATE" in machine["warning"]
    assert len(machine["marginals"]) == 6
    assert 0 < machine["mean_error"] < 0.3


def test_compare_with_itself_finds_nothing(table: Table, said: Said) -> None:
    """Two equal releases do not differ, and nothing is marked, for nothing private was read."""
    release = table.folder / "people.jct"
    assert "NOT PRIVATE" not in said("compare", release, release)
    machine = json.loads(said("compare", release, release, "--json"))
    assert machine["mean_error"] == 0.0
    assert machine["private"] is False


def test_plan_reads_no_data(said: Said, tmp_path: Path) -> None:
    """With the schema alone, the plan names cliques, memory, cost and the error of each."""
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    shown = said("plan", "--schema", schema, "--epsilon", "1", "--records", "400")
    for part in ("junction tree", "age, sex", "error per cell", "relative", "epsilon 1"):
        assert part in shown
    machine = json.loads(said("plan", "--schema", schema, "--epsilon", "3", "--json"))
    assert machine["cost"] == pytest.approx(3.0)
    assert [m["clique"] for m in machine["marginals"]] == machine["cliques"]
    # Laplace noise of scale 1, because each of three tables gets an epsilon of 1.
    assert [m["error"] for m in machine["marginals"]] == pytest.approx([2**0.5] * 3)


def test_plan_says_whether_a_ledger_can_pay(table: Table, said: Said) -> None:
    """A ledger with enough left can pay, one with too little cannot; both stay as they were."""
    ledger = table.folder / "planned"
    said("ledger", "create", ledger, "--epsilon", "1", "--neighbours", "replace")
    words = ("plan", "--schema", table.schema, "--ledger", ledger)
    assert "The ledger can pay: 1 of epsilon 1" in said(*words, "--epsilon", "0.9")
    shown = said(*words, "--epsilon", "1.1")
    assert "The ledger CANNOT pay" in shown
    assert "replace one record" in shown
    assert json.loads(said(*words, "--epsilon", "1.1", "--json"))["affordable"] is False
    assert Ledger(ledger).events == []


@pytest.mark.parametrize("mechanism", ["mwem", "privbayes", "dualquery"])
def test_plan_says_what_is_known_before(mechanism: str, table: Table, said: Said) -> None:
    """Mechanisms that choose by the data still have known costs, noise and rounds."""
    words = ["--schema", str(table.schema), "--mechanism", mechanism, *MECHANISMS[mechanism]]
    machine = json.loads(said("plan", *words, "--records", "400", "--json"))
    assert machine["facts"]
    assert 0 < machine["cost"] <= 3.0 * (1 + 1e-9)
    assert "cost" in said("plan", *words, "--records", "400")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--marginals", "1"], 3),
        (["--marginals", "3"], 1),
        (["--cliques", "pay,age;sex"], 2),
        (["--triples", "1"], 1),
        (["--target", "sex"], 1),
        (["--target", "sex", "--marginals", "2"], 2),
        (["--target", "sex", "--max-cells", "20"], 2),
        (["--max-cells", "10"], 2),
        ([], 3),
    ],
)
def test_workloads(words: list[str], count: int, table: Table, said: Said) -> None:
    """Every way of asking gives as many sets of columns as it says."""
    shown = said("plan", "--schema", table.schema, "--epsilon", "1", "--json", *words)
    assert len(json.loads(shown)["cliques"]) == count


def test_weights_divide_the_budget(table: Table, said: Said) -> None:
    """What counts more gets more of it."""
    words = ("--schema", table.schema, "--epsilon", "1", "--json", "--weights", "sex=4;age,sex=2")
    machine = json.loads(said("plan", *words))
    assert dict(zip(map(tuple, machine["cliques"]), machine["weights"], strict=True)) == {
        ("age", "sex"): 8.0, ("age", "pay"): 1.0, ("sex", "pay"): 4.0,
    }  # fmt: skip
    shares = [m["share"] for m in machine["marginals"]]
    assert shares == pytest.approx([w ** (1 / 3) / 4.587401 for w in machine["weights"]])


def test_schema_draft_is_marked(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """A draft is written as not public, says so, and cannot be released under until confirmed."""
    draft = table.folder / "draft.toml"
    assert run(["schema", "draft", str(table.data), "--out", str(draft)]) == 0
    assert "NOT PUBLIC" in capsys.readouterr().err
    assert run(["schema", "check", str(draft), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["public"], checked["drafted"]) == (False, True)
    drafted = table._replace(schema=draft)
    words = release_of(drafted, "draft.jct", "draft.ledger", "--epsilon", "1", "--marginals", "1")
    assert run(words) == 1
    assert "confirmed_public" in capsys.readouterr().err
    assert not (table.folder / "draft.ledger").exists()
    text = draft.read_text().replace("confirmed_public = false", "confirmed_public = true")
    draft.write_text(text)
    assert run(words) == 0


def test_schema_check_shows_sizes(table: Table, said: Said) -> None:
    """The table of columns has kinds and sizes, and the verdict says that it is public."""
    shown = said("schema", "check", table.schema)
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line}
    assert lines["age"][1] == "integer"
    assert [lines[name][-1] for name in ("age", "sex", "pay")] == ["10", "2", "4"]
    assert "ready for a release" in shown


def test_estimate_joins_tables_of_others(table: Table, said: Said, tmp_path: Path) -> None:
    """CSV in the schema's words and a JSON document of codes give the same model."""
    (tmp_path / "sex.csv").write_text("sex,value\nm,60\nf,40\n")
    (tmp_path / "age.json").write_text(
        json.dumps({"measurements": [{"clique": ["age"], "values": [10] * 10, "stddev": 1}]})
    )
    out = tmp_path / "joined.jct"
    files = (tmp_path / "sex.csv", tmp_path / "age.json")
    said("estimate", *files, "--schema", table.schema, "--stddev", "1", "--out", out)
    answer = json.loads(said("query", out, "--marginal", "sex", "--json"))["rows"]
    assert [row["count"] for row in answer] == pytest.approx([40, 60], rel=0.01)
    domain = tmp_path / "domain.json"
    domain.write_text('{"age": 10, "sex": ["f", "m"]}')
    more = ("--domain", domain, "--stddev", "1", "--total", "100", "--stop-at-noise", "--force")
    machine = json.loads(said("estimate", *files, *more, "--out", out, "--json"))
    assert machine["total"] == 100.0
    assert machine["misfits"] == []
    assert load(out).schema is None


def test_estimate_with_records(table: Table, said: Said, tmp_path: Path) -> None:
    """A model made of records is fitted, says its own error, and answers the other commands."""
    (tmp_path / "sex.csv").write_text("sex,value\nm,60\nf,40\n")
    out, words = tmp_path / "joined.jct", ("--schema", table.schema, "--stddev", "1")
    shown = said("estimate", tmp_path / "sex.csv", *words, "--oracle", "records", "--out", out)
    assert "% of the noise" in shown
    assert "without a certificate" in shown
    answer = json.loads(said("query", out, "--marginal", "sex", "--json"))["rows"]
    assert [row["count"] for row in answer] == pytest.approx([40, 60], abs=0.5)
    said("report", out, "--out", tmp_path / "page.html")
    said("sample", out, "--records", "50", "--out", tmp_path / "records.csv")
    assert len((tmp_path / "records.csv").read_text(encoding="utf-8").splitlines()) == 51


def test_estimate_warns_of_what_does_not_fit(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two measurements that contradict each other beyond their noise are named."""
    (tmp_path / "one.csv").write_text("sex,value\nm,60\nf,40\n")
    (tmp_path / "two.csv").write_text("sex,value\nm,10\nf,90\n")
    words = ["estimate", str(tmp_path / "one.csv"), str(tmp_path / "two.csv"), "--stddev", "0.5"]
    assert run([*words, "--schema", str(table.schema), "--out", str(tmp_path / "o.jct")]) == 0
    assert "does not fit its own noise" in capsys.readouterr().err


def test_ledger_verify(table: Table, said: Said) -> None:
    """A whole ledger is called valid, with its figures."""
    ledger = table.folder / "people.ledger"
    assert "valid: 3 events, 5 of epsilon 5 spent, 0 left" in said("ledger", "verify", ledger)
    assert json.loads(said("ledger", "verify", ledger, "--json"))["valid"] is True
    assert "every count of age, sex" in said("ledger", "show", ledger)


def test_version_and_help() -> None:
    """The version stands alone; help of every command exists and shows an example."""
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).output.startswith("juncture 0.")
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        for words in [[name, i] for i in inner] if inner else [[name]]:
            shown = runner.invoke(app, [*words, "--help"])
            assert shown.exit_code == 0
            assert f"juncture {' '.join(words)}" in shown.output.split("Example", 1)[1]


def test_columns_of_one_name_are_all_in_the_json(table: Table, said: Said) -> None:
    """A question that asks for the same thing twice gets both answers, under names that differ."""
    sql = 'SELECT COUNT(*), AVG(age), COUNT(*), 1 AS "COUNT(*) (2)" FROM t'
    (row,) = json.loads(said("query", table.folder / "people.jct", sql, "--json"))["rows"]
    assert list(row) == ["COUNT(*)", "AVG(age)", "COUNT(*) (3)", "COUNT(*) (2)"]
    assert row["COUNT(*)"] == row["COUNT(*) (3)"] > row["COUNT(*) (2)"]


def test_a_draft_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns of free text are named, so that nobody believes them released."""
    data = tmp_path / "free.csv"
    data.write_text("name,age\n" + "".join(f"person {n},{n % 50}\n" for n in range(500)))
    assert run(["schema", "draft", str(data)]) == 0
    out, beside = capsys.readouterr()
    assert "[columns.name]" not in out
    assert '# "name": almost every record has a value of its own' in out
    assert "left out:\n  name: almost every record has a value of its own" in beside


def test_a_file_without_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record in the first line is noticed; with --no-header it is a record like the others."""
    data, schema, out = (tmp_path / name for name in ("bare.csv", "bare.toml", "bare.jct"))
    data.write_text("".join(f"{20 + n % 50},{'north' if n % 3 else 'south'}\n" for n in range(300)))
    assert run(["schema", "draft", str(data)]) == 0
    assert "warning: 2 of the 2 column names look like values" in capsys.readouterr().err
    assert run(["schema", "draft", str(data), "--no-header", "--out", str(schema)]) == 0
    assert "warning" not in capsys.readouterr().err
    schema.write_text(schema.read_text().replace("public = false", "public = true"))
    check = ["schema", "check", str(schema), str(data), "--no-header", "--json"]
    assert run(check) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["refused"]) == (300, [])
    words = [str(data), "--schema", str(schema), "--epsilon", "1", "--ledger", f"{tmp_path}/l"]
    assert run(["release", *words, "--out", str(out), "--no-header"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert run(["compare", str(out), str(data), "--no-header"]) == 0
    odd = tmp_path / "odd.toml"
    odd.write_text(schema.read_text().replace("column_1", "39"))
    for command in (["release", *words, "--out", f"{out}2", "--schema"], ["schema", "check"]):
        run([*command, str(odd)])
        assert "warning: 1 of the 2 column names" in capsys.readouterr().err


def test_a_schema_is_held_against_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that does not fit is counted, said to be private, and decides the exit code."""
    data, schema = tmp_path / "people.csv", tmp_path / "people.toml"
    data.write_text("age,city\n17,Bern\nNA,Basel\n45,Bern\n,Bern\n")
    text = (
        'format = "juncture schema"\nversion = 2\n[columns.age]\nkind = "integer"\nlow = 18\n'
        'high = 99\nmissing = true\n[columns.town]\nkind = "categorical"\nvalues = ["Bern"]\n'
    )
    schema.write_text(text)
    assert run(["schema", "check", str(schema), str(data)]) == 1
    out, beside = capsys.readouterr()
    assert out.splitlines()[2].split() == ["age", "1", "1", "1", "is", "refused"]
    assert "The table has no column town.\nNot in the schema, so not read: city." in out
    assert "NOT PUBLIC: counted in the private table." in beside
    listed = text.replace("missing = true", 'missing = true\noutside = "nearest"').replace(
        "version = 2", 'version = 2\nmissing_values = ["NA"]'
    )
    schema.write_text(listed[: listed.index("[columns.town]")])
    assert run(["schema", "check", str(schema), str(data)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2].split() == ["age", "0", "1", "2", "is", "possible"]
    assert "The table agrees with the schema." in out


def test_a_marginal_of_a_release_can_be_joined_again(tmp_path: Path, said: Said) -> None:
    """What `query --format csv` prints, truth values and missing ones too, `estimate` reads."""
    schema = SCHEMA + '\n[columns.member]\nkind = "boolean"\n'
    made = write_table(tmp_path, schema=schema)
    lines = made.data.read_text().splitlines()
    rows = [f"{line},{'yes' if place % 3 else 'no'}" for place, line in enumerate(lines[1:])]
    made.data.write_text("\n".join([f"{lines[0]},member", *rows]))
    price = ["--epsilon", "9", "--marginals", "2", "--mechanism", "hdmm"]
    said(*release_of(made, "a.jct", "a.ledger", *price))
    text = said("query", tmp_path / "a.jct", "--marginal", "member,pay", "--format", "csv")
    assert text.splitlines()[1].startswith('false,"[0, 10)"')
    (tmp_path / "pairs.csv").write_text(text.replace("count", "value", 1))
    words = ["--schema", made.schema, "--stddev", "1", "--out", tmp_path / "b.jct"]
    assert "1 measurement," in said("estimate", tmp_path / "pairs.csv", *words)


@pytest.mark.parametrize(
    ("price", "warned"),
    [(["--epsilon", "1e9"], True), (["--rho", "60"], True), (["--epsilon", "10"], False)],
)
def test_a_budget_that_protects_nobody_gets_a_warning(
    price: list[str], warned: bool, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """An absurdly large budget is allowed, with a warning beside the answer."""
    assert run(["plan", "--schema", str(table.schema), *price]) == 0
    assert ("protects hardly anyone" in capsys.readouterr().err) is warned


def test_a_table_of_one_column_needs_no_options(tmp_path: Path, said: Said) -> None:
    """Where there is no pair, the column alone is asked for."""
    alone = SCHEMA.split("[columns.sex]", maxsplit=1)[0]
    made = write_table(tmp_path, schema=alone)
    assert "1 clique," in said(*release_of(made, "a.jct", "a.ledger", "--epsilon", "1"))


def test_a_wide_table_gets_a_mechanism_that_can_serve_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a model of all pairs would be too large, and nothing was chosen, mwem is."""
    columns = [f'x{i} = {{ kind = "integer", low = 0, high = 99 }}' for i in range(16)]
    schema = tmp_path / "wide.toml"
    lines = ['format = "juncture schema"', "version = 1", *(f"columns.{c}" for c in columns)]
    schema.write_text("\n".join(lines))
    assert run(["plan", "--schema", str(schema), "--epsilon", "1"]) == 0
    out, beside = capsys.readouterr()
    assert "Mechanism: mwem" in out
    assert "Not hdmm: its model would be too large." in beside
    assert run(["plan", "--schema", str(schema), "--epsilon", "1", "--mechanism", "hdmm"]) == 1


def test_query_shows_intervals(table: Table, said: Said) -> None:
    """With replicas in the file a plus-minus column is there; without, where it is asked for."""
    kept = ["--epsilon", "5", "--cliques", "age,sex", "--replicas"]
    assert run(release_of(table, "sure.jct", "sure.ledger", *kept)) == 0
    file = table.folder / "sure.jct"
    shown = said("query", file, "--marginal", "sex")
    assert "+-" in shown
    assert "measured" in shown
    plain = said("query", file, "--marginal", "sex", "--no-interval")
    assert "+-" not in plain
    answer = json.loads(
        said("query", file, "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", "--json",
             "--interval", "0.5")
    )  # fmt: skip
    assert answer["level"] == 0.5
    for row, interval in zip(answer["rows"], answer["intervals"], strict=True):
        assert interval["n"]["lower"] <= row["n"] <= interval["n"]["upper"]
        assert interval["n"]["basis"] == "measured"


def test_rare_values_have_a_switch(table: Table, said: Said) -> None:
    """The plan says what becomes of them; the default mechanism gives way to one that has it."""
    words = ("plan", "--schema", table.schema, "--epsilon", "1", "--delta", "1e-6")
    for choice, fact in (("on", "share counts"), ("off", None)):
        machine = json.loads(said(*words, "--merge-rare", choice, "--mechanism", "tiers", "--json"))
        assert machine["facts"].get("rare values", "").startswith(fact or "")
        assert ("rare values" in machine["facts"]) == (choice == "on")
