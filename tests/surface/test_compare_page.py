"""The page of `juncture compare`: true beside released, marked, or paid for."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats.contingency import association

import juncture as jn
from juncture.cli.main import run
from juncture.privacy.ledger import Ledger
from juncture.publish.compare_page.document import render_comparison
from juncture.publish.compare_page.learning import teach
from juncture.publish.comparison import compare_tables, measure_association
from juncture.tables.schema_toml import read_schema
from juncture.workflow.compare import compare_under_budget, compare_with_table
from tables import Table, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A private table, and a release of it beside it."""
    made = write_table(tmp_path_factory.mktemp("compare"), n=2000)
    jn.release(
        made.data, made.schema, jn.Budget(epsilon=20), ledger=made.folder / "people.ledger",
        path=made.folder / "people.jct",
    )  # fmt: skip
    return made


def test_association_is_that_of_scipy() -> None:
    """Cramér's V agrees with another package, and is 0 where a value alone has all records."""
    rng = np.random.default_rng(0)
    for shape in ((2, 3), (4, 4), (5, 2)):
        counts = rng.integers(1, 50, shape)
        assert measure_association(counts.astype(float)) == pytest.approx(association(counts))
    assert measure_association(np.array([[3.0, 4.0], [0.0, 0.0]])) == 0.0


def test_the_error_that_noise_shows_by_itself() -> None:
    """A release that is exact is as far from noisy counts as the noise is said to be."""
    rng = np.random.default_rng(1)
    exact = rng.integers(50, 500, 400).astype(float)
    drawn = [compare_tables(("x",), exact + rng.normal(0, 9, 400), exact, 9 * np.sqrt(2 / np.pi))
             for _ in range(50)]  # fmt: skip
    assert np.mean([d.error for d in drawn]) == pytest.approx(drawn[0].noise, rel=0.02)


def test_a_classifier_learns_what_is_there() -> None:
    """From records that hold the rule it learns it; from records without it, next to nothing."""
    rng = np.random.default_rng(2)
    first, second = (rng.integers(0, 2, 4000, dtype=np.int32) for _ in range(2))
    real = {"a": first, "b": second, "y": first ^ second}
    broken = {**real, "y": first}  # another rule: right by chance alone
    scores = {name: teach("y", real, given).scores for name, given in
              {"good": real, "broken": broken}.items()}  # fmt: skip
    assert [score.accuracy for score in scores["good"][:2]] == [1.0, 1.0]
    assert scores["broken"][0].accuracy < 0.65
    assert scores["broken"][1].accuracy == 1.0
    assert scores["good"][2].balanced == 0.5


def test_a_page_of_exact_counts_says_that_it_is_private(table: Table) -> None:
    """It is marked above and below; every column and pair, a lesson, and a scatter are on it."""
    out = table.folder / "compared.html"
    words = ["compare", str(table.folder / "people.jct"), str(table.data), "--out", str(out)]
    assert run([*words, "--target", "sex"]) == 0
    page = out.read_text()
    assert page.count("NOT PRIVATE: read from the private table") == 2
    assert page.index("NOT PRIVATE") < page.index("Single columns")
    assert page.count('class="true"') == 10 + 2 + 4 + 1  # every value, and the legend
    assert page.count('class="point"') == 3
    assert "Predicting sex" in page
    assert "by noise alone" not in page
    assert not re.search(r'(src|href)="http', page)
    assert run(words) == 1  # the file exists


def test_a_page_without_a_classifier_says_what_to_install(
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Everything else is shown; a classifier that was asked for is refused."""
    for package in ("sklearn", "sklearn.ensemble"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("juncture.publish.compare_page.learning.find_spec", lambda _: None)
    words = ["compare", str(table.folder / "people.jct"), str(table.data), "--out"]
    assert run([*words, str(tmp_path / "plain.html")]) == 0
    page = (tmp_path / "plain.html").read_text()
    assert "pip install 'juncture[compare]'" in html.unescape(page)
    assert "Single columns" in page
    assert run([*words, str(tmp_path / "asked.html"), "--target", "sex"]) == 1
    assert "juncture[compare]" in capsys.readouterr().err
    assert not (tmp_path / "asked.html").exists()


def test_exact_figures_are_those_of_the_table(table: Table) -> None:
    """The counts on the page are the table's own, and errors are their distance."""
    release = jn.load(table.folder / "people.jct")
    made = compare_with_table(release, table.data, read_schema(table.schema), target="sex")
    by_name = {column.name: column for column in made.columns}
    text = table.data.read_text()
    assert by_name["sex"].truth.tolist() == [text.count(",f,"), text.count(",m,")]
    error = np.abs(by_name["sex"].truth - by_name["sex"].released).sum() / 2 / 2000
    assert next(d.error for d in made.singles if d.clique == ("sex",)) == pytest.approx(error)
    with pytest.raises(jn.UnknownAttribute):
        compare_with_table(release, table.data, read_schema(table.schema), target="height")


def test_a_page_under_a_budget_is_paid_for(table: Table, tmp_path: Path) -> None:
    """Its counts are noisy, the ledger has the whole budget and no more, and it says so."""
    release, ledger = jn.load(table.folder / "people.jct"), tmp_path / "compare.ledger"
    schema, budget = read_schema(table.schema), jn.Budget(epsilon=0.5)
    made = compare_under_budget(release, table.data, schema, budget, ledger=ledger)
    assert Ledger(ledger).spent == pytest.approx(0.5)
    exact = compare_with_table(release, table.data, schema, target="sex")
    pairs = zip(made.columns, exact.columns, strict=True)
    assert all((noisy.truth != true.truth).any() for noisy, true in pairs)
    assert all(each.noise > 0 for each in made.differences)
    assert made.lesson is None
    assert not made.associations
    page = render_comparison(made, title="People")
    assert "NOT PRIVATE" not in page
    assert "epsilon 0.5 (add or remove one record)" in page
    with pytest.raises(jn.BudgetExceeded):
        compare_under_budget(release, table.data, schema, budget, ledger=ledger)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--budget 1", "--budget needs --out"),
        ("--budget 1 --out x.html", "and --ledger"),
        ("--ledger x", "need --budget"),
        ("--target sex", "--target needs --out"),
        ("--budget 1 --out x.html --ledger x --target sex", "no classifier is trained"),
    ],
)
def test_options_that_need_others(
    options: str, words: str, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused with exit code 2 before anything is read."""
    given = ["compare", str(table.folder / "people.jct"), str(table.data), *options.split()]
    assert run(given) == 2
    assert words in capsys.readouterr().err
