"""Every command with wrong input: one line, what to do, the right exit code, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from juncture.cli.main import run
from juncture.privacy.ledger import Ledger
from tables import Table, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The private table, a release whose budget is spent, and files that are none."""
    made = write_table(tmp_path_factory.mktemp("errors"))
    words = [*release(made), "--out", str(made.folder / "good.jct"), "--marginals", "1"]
    assert run(words) == 0
    (made.folder / "garbage.jct").write_text("not a release")
    (made.folder / "garbage.json").write_text("{")
    (made.folder / "noisy.csv").write_text("sex,value\nf,1\nm,2\n")
    (made.folder / "garbage.toml").write_text("= not toml")
    (made.folder / "other.toml").write_text(
        made.schema.read_text().replace("[columns.sex]", "[columns.gender]")
    )
    (made.folder / "narrow.toml").write_text(made.schema.read_text().replace("29", "22"))
    return made


def release(table: Table) -> list[str]:
    """The beginning of a release command."""
    ledger = str(table.folder / "spent.ledger")
    files = [str(table.data), "--schema", str(table.schema), "--ledger", ledger]
    return ["release", *files, "--epsilon", "1"]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and the one line of a command that is refused."""
    capsys.readouterr()
    code = run(words)
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    assert "Traceback" not in line
    return code, line


CASES = [
    # words (in the table's folder), exit code, part of the message
    ("query missing.jct --marginal sex", 1, "must be an existing file; got missing.jct"),
    ("query garbage.jct --marginal sex", 1, "must be a file that Juncture wrote"),
    ("query good.jct --marginal gender", 1, "got 'gender'"),
    ("query good.jct SELEKT", 1, "must be one SELECT"),
    ("query good.jct --where nope=1", 1, "got 'nope'"),
    ("query good.jct --where sex=7", 1, "error"),
    ("query good.jct --mean sex", 1, "error"),
    ("query good.jct", 2, "must be given, and not both; got nothing"),
    ("query good.jct SELECT --marginal sex", 2, "not both"),
    ("query good.jct --marginal sex --format xml", 2, "'xml' is not one of"),
    ("query good.jct --nonsense", 2, "No such option"),
    ("sample missing.jct --out x.csv", 1, "must be an existing file"),
    ("sample good.jct --out x.xlsx", 1, "must end in .csv or .parquet"),
    ("sample good.jct --out people.csv", 1, "Add --force"),
    ("sample good.jct --out x.csv --records -4", 2, "--records"),
    ("sample good.jct --out x.csv --seed -1", 2, "--seed"),
    ("sample good.jct --out /proc/x.csv", 1, "where files can be written"),
    ("query . --marginal sex", 1, "must be a file; got the folder"),
    ("report good.jct --out good.jct --force", 1, "a file of its own"),
    ("schema draft people.csv --out people.csv --force", 1, "a file of its own"),
    ("estimate noisy.csv --schema people.toml --out noisy.csv --force", 1, "a file of its own"),
    ("query good.jct ;", 1, "got nothing"),
    ("plan --schema people.toml --epsilon 1 --triples -3", 2, "--triples"),
    ("plan --schema people.toml --epsilon 1 --triples 1 --seed 99999999999", 2, "--seed"),
    ("plan --schema people.toml --epsilon 1 --records -5", 2, "--records"),
    ("plan --schema people.toml --epsilon 1e-300", 1, "must buy noise"),
    ("sample good.jct", 2, "'--out'"),
    ("compare good.jct missing.csv", 1, "must be an existing file"),
    ("compare good.jct people.toml", 1, ".duckdb files of one kind"),
    ("compare good.jct garbage.jct", 1, "must be a file that Juncture wrote"),
    ("compare good.jct people.csv --schema other.toml", 1, "columns and sizes of the release"),
    ("schema check missing.toml", 1, "must be an existing file"),
    ("schema check garbage.toml", 1, "must be valid TOML"),
    ("schema check good.jct", 1, "must be valid TOML"),
    ("schema draft missing.csv", 1, "must be an existing file"),
    ("schema draft people.csv --out people.toml", 1, "Add --force"),
    ("plan --schema missing.toml --epsilon 1", 1, "must be an existing file"),
    ("plan --schema people.toml", 2, "`--epsilon` or `--rho` must be given"),
    ("plan --schema people.toml --epsilon -1", 1, "must be a positive number"),
    ("plan --schema people.toml --epsilon one", 2, "--epsilon"),
    ("plan --schema people.toml --epsilon 1 --rho 1", 1, "or an epsilon with a delta"),
    ("plan --schema people.toml --epsilon 1 --marginals 9", 1, "between 1 and the 3 columns"),
    ("plan --schema people.toml --epsilon 1 --cliques age,job", 1, "got 'job'"),
    ("plan --schema people.toml --epsilon 1 --cliques ;", 1, "must name columns"),
    ("plan --schema people.toml --epsilon 1 --triples 5", 1, "must be at most the 1 sets"),
    ("plan --schema people.toml --epsilon 1 --triples 1 --marginals 1", 2, "must not be mixed"),
    ("plan --schema people.toml --epsilon 1 --target age --triples 1", 2, "must not be mixed"),
    ("plan --schema people.toml --epsilon 1 --weights age", 1, "must give each set of columns"),
    ("plan --schema people.toml --epsilon 1 --weights ;", 1, "must name columns"),
    ("plan --schema people.toml --epsilon 1 --weights job=2", 1, "got 'job'"),
    ("plan --schema people.toml --epsilon 1 --weights age=-2", 1, "must be positive numbers"),
    ("plan --schema people.toml --epsilon 1 --max-cells 0", 2, "--max-cells"),
    ("plan --schema people.toml --epsilon 1 --merge-rare maybe", 2, "--merge-rare"),
    (
        "plan --schema people.toml --epsilon 1 --mechanism privbayes --merge-rare on",
        2,
        "`--merge-rare` must come with a mechanism that has the option, such as tiers, aim, mst",
    ),
    ("plan --schema people.toml --epsilon 1 --mechanism best", 2, "must be one of hdmm"),
    ("plan --schema people.toml --epsilon 1 --mechanism privbayes", 1, "replace one record"),
    ("plan --schema people.toml --epsilon 1 --mechanism dualquery", 1, "Add a delta"),
    ("plan --schema people.toml --epsilon 1 --ledger none", 1, "must be an existing file"),
    ("plan --schema people.toml --epsilon 1 --ledger people.csv", 1, "must be an unaltered ledger"),
    ("estimate noisy.csv --out x.jct", 2, "`--schema` or `--domain` must be given"),
    ("estimate noisy.csv --schema people.toml --out x.jct", 1, "`stddev` must be known"),
    ("estimate missing.csv --schema people.toml --out x.jct", 1, "must be an existing file"),
    ("estimate garbage.json --schema people.toml --out x.jct", 1, "not valid JSON"),
    ("estimate noisy.csv --domain garbage.json --out x.jct", 1, "not valid JSON"),
    ("estimate noisy.csv --schema other.toml --stddev 1 --out x.jct", 1, "got 'sex'"),
    ("estimate noisy.csv --schema people.toml --stddev -1 --out x.jct", 1, "must be positive"),
    ("estimate noisy.csv --schema people.toml --stddev 1 --out good.jct", 1, "Add --force"),
    ("estimate noisy.csv --schema people.toml --stddev 1 --out .", 1, "must be a file"),
    ("ledger show missing.ledger", 1, "must be an existing file"),
    ("ledger show people.csv", 1, "must be an unaltered ledger"),
    ("ledger verify good.jct", 1, "must be an unaltered ledger"),
    ("ledger create spent.ledger --epsilon 1", 1, "which exists"),
    ("ledger create new.ledger", 2, "must be given"),
    ("ledger create new.ledger --delta 0.1", 2, "must be given"),
    ("report missing.jct", 1, "must be an existing file"),
    ("explore missing.jct", 1, "must be an existing file"),
    ("frobnicate", 2, "No such command"),
]


@pytest.mark.parametrize(("words", "code", "message"), CASES, ids=[case[0] for case in CASES])
def test_wrong_input(
    words: str,
    code: int,
    message: str,
    table: Table,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line that names the slip, its exit code, and every file as it was."""
    monkeypatch.chdir(table.folder)
    before = contents(table.folder)
    found, line = refused(words.split(), capsys)
    assert (found, message in line) == (code, True), line
    assert contents(table.folder) == before


NAMED = [
    ("query garbage.jct --marginal sex", "`RELEASE` must be a file that Juncture wrote"),
    ("query good.jct --marginal gender", "`--marginal` must be one of"),
    ("query good.jct --where nope=1", "`--where` must"),
    ("query good.jct SELEKT", "`SQL` must be one SELECT"),
    ("query good.jct --mean sex", "`--mean` must"),
    ("query good.jct --mean sex --where age>22", "`--where` with `--mean` must"),
    ("sample good.jct --out x.xlsx", "`--out` must end in"),
    ("compare good.jct garbage.jct", "`DATA|RELEASE2` must be a file that Juncture wrote"),
    ("compare good.jct people.toml", "`DATA|RELEASE2` must be .csv, .csv.gz"),
    ("schema check garbage.toml", "`FILE` must be valid TOML"),
    ("schema draft missing.csv", "`DATA` must be an existing file"),
    ("plan --schema garbage.toml --epsilon 1", "`--schema` must be valid TOML"),
    ("plan --schema people.toml --epsilon -1", "`--epsilon` must be a positive number"),
    ("plan --schema people.toml --epsilon 1 --rho 1", "`--epsilon` with `--rho` must be an"),
    ("plan --schema people.toml --epsilon 1e-300", "`--epsilon` must buy noise"),
    ("plan --schema people.toml --epsilon 1 --triples 5 --records 9", "`--triples` must be at"),
    ("plan --schema people.toml --epsilon 1 --cliques age,job", "`--cliques` must be one of"),
    (
        "plan --schema people.toml --epsilon 1 --ledger people.csv",
        "`--ledger` must be an unaltered",
    ),
    ("plan --schema people.toml --epsilon 1 --mechanism privbayes", "`--neighbours` must be"),
    (
        "plan --schema people.toml --epsilon 1 --mechanism privbayes --neighbours replace",
        "`--records` must be the public number of records",
    ),
    ("estimate garbage.json --schema people.toml --out x.jct", "`FILES` must be a file that can"),
    ("estimate noisy.csv --domain garbage.json --out x.jct", "`--domain` must be a file that can"),
    ("ledger show people.csv", "`FILE` must be an unaltered ledger"),
    ("release people.csv --schema other.toml --epsilon 1 --out x.jct --ledger l", "`DATA` must"),
    ("explore good.jct --host 203.0.113.1 --port 1", "`--host` and `--port` must be free"),
]


@pytest.mark.parametrize(("words", "message"), NAMED, ids=[case[0] for case in NAMED])
def test_errors_name_options_of_the_command(
    words: str,
    message: str,
    table: Table,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error of the library names the option or argument that it is about, as it is typed."""
    monkeypatch.chdir(table.folder)
    assert f"error: {message}" in refused(words.split(), capsys)[1]


RELEASES = [
    ("--out good.jct --epsilon 1 --schema people.toml --ledger new.l", 1, "Add --force"),
    ("--out x.jct --epsilon 1 --schema people.toml --ledger spent.ledger", 3, "total of 2"),
    ("--out x.jct --rho 1 --schema people.toml --ledger spent.ledger", 3, "within the budget"),
    ("--out x.jct --epsilon 1 --schema other.toml --ledger new.l", 1, "gender"),
    ("--out x.jct --epsilon 1 --schema narrow.toml --ledger new.l", 1, "rows of 'age'"),
    ("--out x.jct --epsilon 1 --schema garbage.toml --ledger new.l", 1, "valid TOML"),
    ("--out x.jct --schema people.toml --ledger new.l", 2, "must be given"),
    (
        "--out x.jct --epsilon 1 --schema people.toml --ledger noisy.csv",
        1,
        "must be an unaltered ledger",
    ),
    ("--out x.jct --epsilon 1 --schema people.toml --ledger people.csv", 1, "a file of its own"),
    ("--out x.jct --epsilon 1 --schema people.toml --ledger x.jct", 1, "a file of its own"),
    ("--out people.csv --epsilon 1 --schema people.toml --ledger new.l --force", 1, "of its own"),
    ("--out /proc/x.jct --epsilon 1 --schema people.toml --ledger new.l", 1, "can be written"),
    ("--out x.jct --epsilon 1e-20 --schema people.toml --ledger new.l", 1, "must buy noise"),
    ("--out people.csv/x.jct --epsilon 1 --schema people.toml --ledger new.l", 1, "folder"),
    ("--out x.jct --epsilon 1 --schema people.toml --ledger new.l --cliques job", 1, "'job'"),
    (
        "--out x.jct --epsilon 1 --schema people.toml --ledger new.l --mechanism privbayes",
        1,
        "replace one record",
    ),
    (
        "--out x.jct --epsilon 1 --schema people.toml --ledger spent.ledger --neighbours replace",
        1,
        "must be those of the ledger",
    ),
]


@pytest.mark.parametrize(("words", "code", "message"), RELEASES, ids=[r[0] for r in RELEASES])
def test_a_refused_release_spends_nothing(
    words: str,
    code: int,
    message: str,
    table: Table,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is refused is refused before the ledger changes, or comes to be."""
    monkeypatch.chdir(table.folder)
    before = contents(table.folder)
    found, line = refused(["release", "people.csv", *words.split()], capsys)
    assert (found, message in line) == (code, True), line
    assert contents(table.folder) == before


def test_a_run_that_the_rest_cannot_pay_does_not_begin(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several rounds of which the ledger could pay the first ones are refused as a whole."""
    path = table.folder / "some.ledger"
    assert run(["ledger", "create", str(path), "--epsilon", "0.9"]) == 0
    words = [*release(table)[:4], "--ledger", str(path), "--epsilon", "1", "--mechanism", "mwem"]
    code, line = refused([*words, "--out", str(table.folder / "x.jct")], capsys)
    assert (code, Ledger(path).events) == (3, [])
    assert "Spend less" in line


def test_force_replaces(table: Table, tmp_path: Path) -> None:
    """With --force an existing file gives way to a new one."""
    out = tmp_path / "s.csv"
    out.write_text("old")
    words = ["sample", str(table.folder / "good.jct"), "--records", "5", "--out", str(out)]
    assert run(words) == 1
    assert run([*words, "--force"]) == 0
    assert out.read_text().count("\n") == 6


@pytest.mark.parametrize("place", [0, 2, 4])
def test_debug_shows_the_trace_wherever_it_stands(
    place: int, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trace comes before the same one line, with the same exit code."""
    words = ["query", str(table.folder / "good.jct"), "--marginal", "nope"]
    words.insert(place, "--debug")
    assert run(words) == 1
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert printed.splitlines()[-1].startswith("error: ")


def test_a_torn_ledger_is_shown_and_not_valid(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """A last line that was never finished: `show` warns, `verify` ends with 1, in one line each."""
    torn = table.folder / "torn.ledger"
    torn.write_bytes((table.folder / "spent.ledger").read_bytes() + b'{"event": 4, "ti')
    code, line = refused(["ledger", "verify", str(torn)], capsys)
    assert code == 1
    assert "whose last line is incomplete" in line
    assert run(["ledger", "show", str(torn)]) == 0
    assert capsys.readouterr().err.startswith("warning: The last line of")
    torn.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_text_that_is_not_utf8_is_named_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error of a file in another encoding says which one is read, and quotes no value."""
    file = tmp_path / "latin.csv"
    file.write_bytes("town,n\nK\u00f6ln,1\n".encode("latin-1") * 30)
    code, line = refused(["schema", "draft", str(file)], capsys)
    assert code == 1
    assert "UTF-8" in line
    assert "ln,1" not in line
