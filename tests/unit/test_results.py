"""Results as people meet them: short in a console, whole in a table, safe in a notebook."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from guarantees import guarantee_of
from juncture import (
    Categorical,
    Codebook,
    Coding,
    Date,
    Domain,
    Factor,
    Integer,
    InvalidInput,
    Measurement,
    Model,
    Plan,
    Release,
    Schema,
    estimate,
)
from juncture._util.sparkline import bar_heights
from juncture._util.text import choose_name, list_names, shorten
from juncture.mechanisms import HDMM
from juncture.model.sql.answer import SqlAnswer
from juncture.privacy import Budget, Ledger
from juncture.private.curator import Curator
from juncture.private.sources.source import CodedTable
from juncture.publish.strongest_pairs import find_strongest_pairs
from juncture.tables.codebook import OUTSIDE
from juncture.tables.layout import Layout
from juncture.tables.queries import Identity, Kron, Matrix
from juncture.tables.workload import Workload

HOSTILE = "<script>alert('x')</script>"
LONG = Domain({f"a column with a rather long name, number {i}": 50 for i in range(400)})
CHAIN = [tuple(pair) for pair in pairwise(LONG)]


def long_model() -> Model:
    """Four hundred attributes, each measured with the next."""
    rng = np.random.default_rng(0)
    factors = [Factor.random(LONG.project(clique), rng) for clique in CHAIN[:30]]
    return Model.of_potentials(LONG, factors, total=123_456.7)


def results() -> dict[str, Any]:
    """Every kind of result, larger than anybody wants to read."""
    model = long_model()
    names = tuple(LONG)
    values = tuple(f"value {i} of a long list" for i in range(50))
    book = Codebook({name: Coding(values) for name in names[:40]})
    schema = Schema({name: Categorical(values=values) for name in names})
    measured = Measurement(names[:2], np.zeros(2500), stddev=np.arange(1.0, 2501.0))
    fit = estimate(LONG, [measured], total=10.0, max_steps=3)
    release = Release(
        model=model.with_codebook(book), measurements=[measured], guarantee=guarantee_of([{}, {}])
    )
    return {
        "Domain": LONG,
        "Factor": model.project(names[:2]),
        "Layout": model.layout,
        "Plan": model.plan,
        "Model": model,
        "Measurement": measured,
        "Workload": Workload.of_marginals(LONG, CHAIN),
        "Codebook": book,
        "Coding": book[names[0]],
        "Schema": schema,
        "Matrix": Matrix(np.ones((50, 50))),
        "Records": release.sample(1000, rng=0),
        "Release": release,
        "Estimate": fit,
        "FitSummary": fit.summary,
        "SqlAnswer": SqlAnswer(names, (tuple(range(400)),) * 50),
    }


RESULTS = results()


@pytest.mark.parametrize("name", RESULTS)
def test_consoles_show_one_short_line(name: str) -> None:
    """However large a result is, its repr is one line that begins with its name."""
    text = repr(RESULTS[name])
    assert text.startswith(f"{name}(")
    assert len(text) < 300
    assert "\n" not in text
    assert "array(" not in text


def test_the_private_side_is_shown_in_short(tmp_path: Path) -> None:
    """Ledger, curator, prepared run, result and guarantee: a line each, with what was spent."""
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=2.0))
    curator = Curator(
        CodedTable(Domain({"a": 3, "b": 2}), {"a": [0, 1, 2], "b": [0, 1, 1]}), ledger
    )
    run = HDMM(Budget(epsilon=1.5)).prepare(
        Workload.all_marginals(curator.domain, 1), curator.neighbours
    )
    assert repr(run) == "Run(hdmm for 2 tasks under epsilon 1.5: 2 events)"
    result = run(curator)
    words = "ε = 1.5 (add or remove one record), spent in 2 events"
    assert repr(result.guarantee) == f"Guarantee({words})"
    assert repr(result) == f"RunResult(hdmm: a model from 2 measurements, {words})"
    assert words in result._repr_html_()
    assert "1.5 of epsilon 2 spent" in repr(ledger)
    assert repr(curator) == f"Curator(2 attributes, {ledger!r})"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (Domain({"a": 2}), "Domain({'a': 2})"),
        (Domain(), "Domain({})"),
        (Factor(Domain(), 2.5), "Factor(no attributes; 1 cell, sum 2.5)"),
        (Layout(Domain({"a": 2}), [("a",)]), "Layout(1 clique, 2 cells)"),
        (Codebook.plain(Domain({"a": 2})), "Codebook(every code stands for itself; 1 attribute)"),
        (Codebook({"a": Coding((1, None))}), "Codebook(the codes of a: 2)"),
        (
            Measurement((), [3], stddev=2),
            "Measurement(1 answer on the total; gaussian noise of stddev 2)",
        ),
        (
            Schema({"a": Integer(low=0, high=9)}, drafted=True),
            "Schema(1 column: a; a draft, not confirmed as public)",
        ),
        (SqlAnswer(("n",), ((1.0,),)), "SqlAnswer(1 row of n)"),
        (
            Model.of_potentials(Domain({"a": 2}), [], 1234.5),
            "Model(1,234 records over 1 attribute, 0 cliques)",
        ),
        (Plan.build(Domain({"a": 2}), [("a",)]),
         "Plan(1 attribute, 1 clique; a tree of 1 clique with 2 cells, 64 bytes)"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_small_results_say_what_they_are(result: object, words: str) -> None:
    """The line holds the facts that tell one result from another."""
    assert repr(result) == words


@pytest.mark.parametrize("name", ["Factor", "Model", "Release", "Estimate", "Records", "SqlAnswer"])
def test_notebooks_show_a_part_of_large_results(name: str) -> None:
    """A table of a notebook stays small and says how much more there is."""
    html = RESULTS[name]._repr_html_()
    assert len(html) < 80_000
    assert " more" in html


def test_notebooks_show_hostile_names_as_text() -> None:
    """Names and values from a file never become markup."""
    domain = Domain({HOSTILE: 2, "b": 2})
    book = Codebook({HOSTILE: Coding((HOSTILE + "1", HOSTILE + "2")), "b": Coding((None, True))})
    measured = Measurement((HOSTILE, "b"), [1, 2, 3, 4], stddev=1.0)
    fit = estimate(domain, [measured], total=10.0)
    model = fit.model.with_codebook(book)
    shown: list[Any] = [
        fit,
        model,
        model.project(domain),
        model.project((HOSTILE,)),
        model.sample(5, rng=0),
        model.sql(f'SELECT "{HOSTILE}", COUNT(*) FROM t GROUP BY 1'),
        Release(model=model, measurements=[measured]),
    ]
    for each in shown:
        html = each._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_factor_of_a_model_shows_the_words_of_the_codebook() -> None:
    """In notebooks, cells stand under what their codes are called."""
    domain = Domain({"a": 2, "b": 3})
    book = Codebook({"a": Coding(("low", "high")), "b": Coding.of_bins([0, 1, 2, 5])})
    model = Model.of_potentials(domain, [Factor(domain, np.zeros((2, 3)))], 6.0)
    html = model.with_codebook(book).project(("a", "b"))._repr_html_()
    for word in ("low", "high", "[0, 1)", "[2, 5)"):
        assert word in html


# Factors as tables.


def test_the_long_form_has_a_row_for_each_cell() -> None:
    """Rows hold the codes of each cell, the last attribute fastest, and its value."""
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    table = Factor(Domain({"a": 2, "b": 3, "c": 4}), values).to_arrow()
    assert table.column_names == ["a", "b", "c", "count"]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    cells = list(product(range(2), range(3), range(4)))
    assert rows == [(*cell, values[cell]) for cell in cells]


def test_labels_come_from_the_codebook_that_is_known() -> None:
    """A model's factor, and what is computed from it, has labels; one that is given wins."""
    domain = Domain({"a": 2, "b": 2})
    model = Model.of_potentials(domain, [Factor(domain, np.zeros((2, 2)))], 8.0)
    named = model.with_codebook(Codebook({"a": Coding(("x", None))}))
    shares = named.project(("b", "a")) / named.total
    for factor in (shares, shares.transpose(("a", "b")), -shares, 2 * shares, shares.exp()):
        assert set(factor.to_arrow()["a"].to_pylist()) == {"x", None}
        assert set(factor.to_arrow()["b"].to_pylist()) == {0, 1}
    (many,) = named.project_many([("a", "b")])
    assert many.project(("a",)).to_pandas()["a"].isna().tolist() == [False, True]
    other = Codebook({"a": Coding((True, False))})
    assert shares.project(("a",)).to_arrow(other)["a"].to_pylist() == [True, False]
    assert set(model.project(("a",)).to_arrow()["a"].to_pylist()) == {0, 1}


def test_a_codebook_that_does_not_fit_a_factor_is_refused() -> None:
    """A label for each code, or an error."""
    with pytest.raises(InvalidInput, match="must have 3 meanings for 'a'; got 2"):
        Factor(Domain({"a": 3}), np.zeros(3)).to_arrow(Codebook({"a": Coding(("x", "y"))}))


def test_the_long_form_without_attributes_and_with_a_taken_name() -> None:
    """A number is one row; counts beside an attribute called Count have another name."""
    assert Factor(Domain(), 2.5).to_arrow().to_pylist() == [{"count": 2.5}]
    table = Factor(Domain({"Count": 2}), [1, 2]).to_arrow()
    assert table.column_names == ["Count", "count_"]


# Answers as tables.


def test_answers_become_tables_of_their_kinds() -> None:
    """Texts, numbers, truth values and missing ones keep their kind; mixed ones become text."""
    rows = (("a", 1.5, 1, True, None, 1), ("b", None, 2, False, None, "(outside)"))
    answer = SqlAnswer(("text", "number", "whole", "truth", "nothing", "mixed"), rows)
    table = answer.to_arrow()
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.bool_(), pa.string(), pa.string()]
    assert table.schema.types == kinds
    assert table["mixed"].to_pylist() == ["1", "(outside)"]
    for index, column in enumerate(table.columns[:5]):
        assert column.to_pylist() == [row[index] for row in rows]
    frame = answer.to_pandas()
    assert list(frame.columns) == list(answer.columns)
    assert frame["whole"].tolist() == [1, 2]


def test_answers_without_rows_or_with_equal_names_become_tables() -> None:
    """Nothing is lost: neither the columns of an empty answer nor one of two of a name."""
    assert SqlAnswer(("a", "b"), ()).to_arrow().column_names == ["a", "b"]
    assert SqlAnswer(("n", "n"), ((1.0, 2.0),)).to_arrow().columns[1].to_pylist() == [2.0]


def test_other_libraries_read_the_tables() -> None:
    """Polars takes answers, factors and records as they come."""
    domain = Domain({"a": 2})
    model = Model.of_potentials(domain, [Factor(domain, np.log([1.0, 3.0]))], 4.0)
    counted: Any = pl.from_arrow(model.sample(4, rng=0).to_arrow())
    assert counted.height == 4
    answer: Any = pl.from_arrow(model.sql("SELECT a, COUNT(*) AS n FROM t GROUP BY a").to_arrow())
    cells: Any = pl.from_arrow(model.project(("a",)).to_arrow())
    assert answer["n"].to_list() == pytest.approx(cells["count"].to_list())


# Releases that answer.


def test_a_release_answers_as_its_model() -> None:
    """Every question to a release gets the model's answer; records have the schema's values."""
    schema = Schema(
        {
            "a": Integer(low=0, high=9, width=5),
            "d": Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 2, 29)),
        }
    )
    tables = [Factor.random(schema.domain, np.random.default_rng(0))]
    release = Release(model=Model.of_potentials(schema.domain, tables, 50.0), schema=schema)
    model = release.model
    question = "SELECT d, COUNT(*) FROM t GROUP BY d"
    assert release.sql(question) == model.sql(question)
    np.testing.assert_array_equal(release.project(("d",)).values, model.project(("d",)).values)
    query = Kron({"a": Identity()})
    np.testing.assert_array_equal(release.answer(query), model.answer(query))
    for own, inner in (
        (release.sample(7, rng=1), model.sample(7, rng=1)),
        (release.synthesize(rng=1), model.synthesize(rng=1)),
    ):
        assert all((own[name] == inner[name]).all() for name in schema.domain)
        table = own.to_arrow()
        assert table.schema.types == [pa.int64(), pa.date32()]
        assert [value // 5 for value in table["a"].to_pylist()] == own["a"].tolist()


# Codebooks.


def test_a_model_always_has_a_codebook() -> None:
    """Without one, codes stand for themselves; a plain one changes no answer."""
    domain = Domain({"a": 3, "b": 2})
    model = Model.of_potentials(domain, [Factor.random(domain, np.random.default_rng(0))], 9.0)
    assert model.codebook.is_plain
    assert model.codebook["a"].meanings == (0, 1, 2)
    plain = model.with_codebook(Codebook.plain(domain))
    question = "SELECT a, AVG(b) FROM t WHERE a < 2 GROUP BY a"
    assert plain.sql(question) == model.sql(question)
    assert model.condition({"a": 1}).total == plain.condition({"a": 1}).total
    np.testing.assert_array_equal(
        model.conditional_mean("a", ("b",)), model.conditional_mean("a", ("b",), (0, 1, 2))
    )
    assert not model.with_codebook(Codebook({"a": Coding((0, 1, OUTSIDE))})).codebook.is_plain


# What pages share.


def test_bar_heights_are_means_of_adjacent_values() -> None:
    """The tallest bar is 1, each bar the mean of its values, and a flat table stays flat."""
    masses = np.random.default_rng(0).random(103)
    heights = bar_heights(masses, 28)
    ends = [index * 103 // 28 for index in range(29)]
    means = np.array([masses[low:high].mean() for low, high in pairwise(ends)])
    np.testing.assert_allclose(heights, means / means.max())
    np.testing.assert_allclose(bar_heights(np.full(103, 7.0), 28), np.ones(28))
    np.testing.assert_array_equal(bar_heights(np.zeros(3), 28), np.zeros(3))


def test_the_strongest_pairs_have_the_most_mutual_information() -> None:
    """Pairs come in the order of what the model itself says of them; weak ones are left out."""
    domain = Domain({"a": 3, "b": 4, "c": 2, "d": 5, "alone": 3})
    rng = np.random.default_rng(2)
    cliques = [("a", "b"), ("b", "c"), ("c", "d")]
    tables = [Factor(domain.project(c), rng.normal(size=domain.project(c).shape)) for c in cliques]
    model = Model.of_potentials(domain, tables, 100.0)
    pairs, scope = find_strongest_pairs(model, 3)
    bits = {
        (a, b): model.mutual_information((a,), (b,)) / np.log(2.0)
        for index, a in enumerate(domain)
        for b in list(domain)[index + 1 :]
    }
    best = sorted(bits, key=lambda pair: -bits[pair])[:3]
    assert [tuple(pair.joint.domain) for pair in pairs] == best
    assert [pair.bits for pair in pairs] == pytest.approx([bits[pair] for pair in best])
    assert scope == "All pairs were compared."
    everything = find_strongest_pairs(model, 100).pairs
    assert all("alone" not in pair.joint.domain for pair in everything)
    small = find_strongest_pairs(model, 100, max_values=4).pairs
    assert small
    assert all("d" not in pair.joint.domain for pair in small)


def test_names_are_listed_up_to_a_length() -> None:
    """A list says how many names it leaves out, and never leaves out all of them."""
    names = [f"name{i}" for i in range(500)]
    text = list_names(names, 60)
    assert text.startswith("name0, name1, ")
    shown = len(text.split(" and ")[0].split(", "))
    assert text.endswith(f" and {500 - shown} more")
    assert len(list_names(["x" * 10_000, "y"])) < 120
    assert list_names([]) == ""
    assert shorten("abc", 3) == "abc"
    assert choose_name("count", ["COUNT", "count_"]) == "count__"
