"""Names and labels from files command no terminal: they are shown as the letters that they are."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import juncture as jn
from juncture import Codebook, Coding, Domain, Factor, Model, Release
from juncture._util.text import reveal
from juncture.cli.console import format_table
from juncture.cli.main import run

NAME = "na\x1b[2Jme\x9b5n\u202e"
LABEL = "la\x1b]0;owned\x07bel\u2066\x7f"


def hidden(text: str) -> list[str]:
    """The letters of a text that a terminal would not show as letters."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [c for c in text if unicodedata.category(c) in kinds and c not in "\n\t"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A release of hostile names and labels."""
    domain = Domain({NAME: 2, "b": 2})
    table = Factor(domain, np.log([[1.0, 2.0], [3.0, 4.0]]))
    model = Model.of_potentials(domain, [table], 10.0)
    book = Codebook({NAME: Coding((LABEL, "else"))})
    return Release(model=model.with_codebook(book)).save(tmp_path / "some.jct")


@pytest.mark.parametrize(
    "words",
    [
        ["--marginal", f"{NAME},b"],
        [f'SELECT "{NAME}", COUNT(*) FROM t GROUP BY 1'],
        [f"SELECT COUNT(*) FROM t WHERE \"{NAME}\" = 'nobody'"],
        [f"SELECT COUNT(*) FROM t WHERE x = '{LABEL}'"],
        ["--marginal", "b", "--json"],
    ],
)
def test_queries_print_letters_only(
    path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers, notes and errors alike."""
    run(["query", str(path), *words])
    out, beside = capsys.readouterr()
    assert out + beside
    assert hidden(out + beside) == []


def test_json_is_the_same_for_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is shown as a code is, in JSON, the letter itself."""
    assert run(["query", str(path), "--marginal", NAME, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row[NAME] for row in rows] == [LABEL, "else"]


def test_csv_goes_to_files_as_it_is(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no terminal gets the values themselves."""
    assert run(["query", str(path), "--marginal", NAME, "--format", "csv"]) == 0
    assert LABEL in capsys.readouterr().out


def test_ledgers_print_letters_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of columns come back from a ledger as letters."""
    schema = jn.Schema({NAME: jn.Integer(low=0, high=1)})
    book = jn.Ledger.create(tmp_path / "some.ledger", jn.Budget(epsilon=1.0))
    curator = jn.Curator(jn.read_table(pa.table({NAME: [0, 1]}), schema), book)
    curator.measure((NAME,), jn.Pure(0.5))
    for words in (["show"], ["show", "--json"]):
        assert run(["ledger", *words, str(tmp_path / "some.ledger")]) == 0
        out, beside = capsys.readouterr()
        assert hidden(out + beside) == []
        assert "na\\u001b[2Jme" in out


def test_answers_in_python_print_letters_only(path: Path) -> None:
    """So do `print` and `repr` of an answer."""
    answer = jn.load(path).sql(f'SELECT "{NAME}", COUNT(*) AS n FROM t GROUP BY 1')
    assert hidden(str(answer) + repr(answer)) == []


def test_cells_stay_in_their_line() -> None:
    """A label with an end of line in it does not break a table; other scripts are letters."""
    assert format_table(["a\nb"], [["x\ty"]]).count("\n") == 2
    assert reveal("Zürich, 東京, עברית\n\tא") == "Zürich, 東京, עברית\n\tא"
    assert reveal("\ud800") == "\\ud800"
