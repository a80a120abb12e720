"""Synthesizer: a budget spent by fitting, data frames in and out, and nothing assumed in secret."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import juncture as jn
from juncture.workflow.public_columns import describe_column, list_types

N = 4000
KNOWN: dict[str, Any] = {
    "age": (18, 97),
    "sex": ["f", "m"],
    "pay": (0.0, 200.0),
    "since": (dt.date(2020, 1, 1), dt.date(2022, 12, 31)),
}


def people() -> pd.DataFrame:
    """A table in which pay depends on sex, of every kind of column."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N)
    days = pd.to_timedelta(rng.integers(0, 1000, N), "D")
    return pd.DataFrame(
        {
            "age": rng.integers(18, 98, N),
            "sex": sex,
            "pay": np.where(sex == "f", 40.0, 120.0) + rng.normal(0, 5, N),
            "since": pd.to_datetime("2020-01-01") + days,
            "member": rng.random(N) < 0.25,
        }
    )


def test_a_frame_in_a_frame_of_its_kind_out() -> None:
    """Columns keep their order and types, and what depends on each other goes on doing so."""
    table = people()
    synthesizer = jn.Synthesizer(epsilon=5, delta=1e-6, columns=KNOWN).fit(table)
    made = synthesizer.sample(2000, rng=0)
    assert isinstance(made, pd.DataFrame)
    assert made.columns.tolist() == table.columns.tolist()
    assert [d.kind for d in made.dtypes] == [d.kind for d in table.dtypes]
    assert made["age"].between(18, 97).all()
    means = made.groupby("sex")["pay"].mean()
    assert abs(means["f"] - 40) < 12
    assert abs(means["m"] - 120) < 12
    assert made["member"].mean() == pytest.approx(0.25, abs=0.05)
    assert made.equals(synthesizer.sample(2000, rng=0))
    assert abs(len(synthesizer.sample()) - N) < 100
    assert synthesizer.release_.guarantee is not None
    assert "ε = 5, δ = 1e-06" in repr(synthesizer)


@pytest.mark.parametrize("kind", ["polars", "arrow", "csv"])
def test_other_tables_are_fitted_too(kind: str, tmp_path: Path) -> None:
    """Polars comes back as Polars; Arrow tables and files come back as Arrow tables."""
    table = people()[["age", "sex"]]
    table.to_csv(tmp_path / "people.csv", index=False)
    given: Any = {
        "polars": pl.from_pandas(table),
        "arrow": pa.Table.from_pandas(table),
        "csv": tmp_path / "people.csv",
    }[kind]
    known = {name: KNOWN[name] for name in table}
    made = jn.Synthesizer(epsilon=1, columns=known).fit_sample(given, 10, rng=0)
    assert isinstance(made, pl.DataFrame if kind == "polars" else pa.Table)
    assert list(made.to_pandas()) == ["age", "sex"]


def test_raw_frames_need_bounds_and_nothing_else() -> None:
    """Bins of skewed numbers and categories are found; bounds are the given ones, rare values gone.

    The amounts span four powers of ten below their bounds: even bins would hold nearly all in one.
    """
    rng = np.random.default_rng(5)
    city = rng.choice(["Bonn", "Genf", ""], N, p=[0.6, 0.3, 0.1]).astype(object)
    city[city == ""] = None
    city[7] = "Atlantis"
    table = pd.DataFrame(
        {
            "city": city,
            "amount": np.exp(rng.normal(np.where(city == "Genf", 7.0, 4.0), 0.5)),
            "visits": rng.geometric(0.03, N),
        }
    )
    known: dict[str, Any] = {"amount": (0.0, 1e6), "visits": (0, 5000)}
    synthesizer = jn.Synthesizer(epsilon=5, delta=1e-6, columns=known).fit(table)
    made = synthesizer.sample(N, rng=0)
    columns: Any = synthesizer.schema_.columns
    assert columns["city"].values == ("Bonn", "Genf")
    assert columns["amount"].edges[0] == 0.0
    assert columns["amount"].edges[-1] == 1e6
    assert (columns["visits"].low, columns["visits"].high) == (0, 5000)
    medians = table.groupby("city")["amount"].median()
    assert made.groupby("city")["amount"].median()[["Bonn", "Genf"]].to_numpy() == pytest.approx(
        medians[["Bonn", "Genf"]].to_numpy(), rel=0.15
    )
    assert made["visits"].median() == pytest.approx(table["visits"].median(), rel=0.15)
    assert made["city"].isna().mean() == pytest.approx(0.1, abs=0.03)
    assert "Atlantis" not in set(made["city"])


@pytest.mark.parametrize("kind", ["pandas", "categories", "polars", "arrow", "parquet"])
def test_texts_are_known_by_their_type(kind: str, tmp_path: Path) -> None:
    """Texts of every kind of table need no words; a budget without a delta is refused for them."""
    table = pd.DataFrame({"city": ["Bonn", "Genf"] * 500})
    table.to_parquet(tmp_path / "cities.parquet")
    given: Any = {
        "pandas": table,
        "categories": table.astype("category"),
        "polars": pl.from_pandas(table),
        "arrow": pa.Table.from_pandas(table),
        "parquet": tmp_path / "cities.parquet",
    }[kind]
    city: Any = jn.Synthesizer(epsilon=2, delta=1e-6).fit(given).schema_.columns["city"]
    assert city.values == ("Bonn", "Genf")
    with pytest.raises(jn.InvalidInput, match="a delta where values are private"):
        jn.Synthesizer(epsilon=2).fit(given)


def test_what_is_not_known_is_refused_with_advice(tmp_path: Path) -> None:
    """Nothing is looked up in the table and nothing spent; the advice names every column."""
    with pytest.raises(jn.InvalidInput, match="got none for age, pay, since") as refused:
        jn.Synthesizer(epsilon=1, ledger=tmp_path / "x").fit(people())
    assert "without looking into the table" in str(refused.value)
    assert not list(tmp_path.iterdir())
    people().to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(jn.InvalidInput, match="got nothing on age, sex, pay, since, member"):
        jn.Synthesizer(epsilon=1, delta=1e-6).fit(tmp_path / "people.csv")
    with pytest.raises(jn.InvalidInput, match=r"got height, which it does not have"):
        jn.Synthesizer(columns={**KNOWN, "height": (0, 3)}).fit(people())
    with pytest.raises(jn.InvalidInput, match=r"`columns\['age'\]` must be two bounds"):
        jn.Synthesizer(columns=KNOWN | {"age": 99}).fit(people())
    with pytest.raises(jn.InvalidInput, match="sex"):  # a value that is not listed
        jn.Synthesizer(columns={**KNOWN, "sex": ["f", "x"]}).fit(people())


def test_a_ledger_bounds_all_fits_together(tmp_path: Path) -> None:
    """With a ledger a second fit is refused; without one, it is warned of."""
    table, known = people()[["sex", "member"]], {"sex": ["f", "m"]}
    with_ledger = jn.Synthesizer(epsilon=1, columns=known, ledger=tmp_path / "people.ledger")
    with_ledger.fit(table)
    with pytest.raises(jn.BudgetExceeded):
        with_ledger.fit(table)
    alone = jn.Synthesizer(epsilon=1, columns=known).fit(table)
    with pytest.warns(UserWarning, match="fitted again"):
        alone.fit(table)


def test_missing_values_are_public_knowledge_too() -> None:
    """They are refused unless named, and then drawn."""
    table = pd.DataFrame({"sex": ["f", None, "m", None] * 200})
    with pytest.raises(jn.InvalidInput, match="missing"):
        jn.Synthesizer(columns={"sex": ["f", "m"]}).fit(table)
    synthesizer = jn.Synthesizer(epsilon=5, columns={"sex": ["f", "m"]}, missing=["sex"])
    assert synthesizer.fit(table).sample(800, rng=0)["sex"].isna().mean() == pytest.approx(0.5, 0.1)


def test_it_has_the_manners_of_scikit_learn() -> None:
    """Parameters are read and set by name; fitting returns itself; sampling needs a fit."""
    synthesizer = jn.Synthesizer(epsilon=2, target="pay")
    copy = jn.Synthesizer().set_params(**synthesizer.get_params())
    assert copy.get_params() == synthesizer.get_params()
    with pytest.raises(jn.InvalidInput, match="`fit` must come before"):
        synthesizer.sample(3)
    with pytest.raises(jn.InvalidInput, match="got colour"):
        synthesizer.set_params(colour=3)
    with pytest.raises(jn.InvalidInput, match="`y` must be None"):
        synthesizer.fit(people(), [1])
    synthesizer.set_params(columns=KNOWN).fit(people())
    assert all("pay" in clique for clique in synthesizer.release_.workload)


@pytest.mark.parametrize(
    ("known", "size"),
    [
        ((0, 99), 100), ({"b", "a"}, 2), (["x"], 1),
        ([False, True], 2), (bool, 2), (("f", "m"), 2), (range(3), 3), ((1, 2, 3), 3),
        ((dt.date(2020, 1, 1), dt.date(2020, 1, 31)), 31),
        ((dt.date(2020, 1, 1), dt.date(2021, 12, 31)), 24),
        ((dt.date(2000, 1, 1), dt.date(2019, 12, 31)), 20),
        (jn.Number(edges=(0, 1, 5)), 2),
    ],
)  # fmt: skip
def test_short_forms_of_columns(known: Any, size: int) -> None:
    """Bounds are ranges, lists are values, and a column kind is itself."""
    assert describe_column("x", known).coding.size == size


@pytest.mark.parametrize("known", [(0, 12_799), (0, 128), (0, 1.0), (-5.0, 1e9), str])
def test_what_is_long_is_divided_privately(known: Any) -> None:
    """Numbers beyond a few whole ones have private bins between the given bounds."""
    column: Any = describe_column("x", known)
    assert column.is_open
    assert known is str or (column.low, column.high) == known


def test_types_are_read_without_a_value() -> None:
    """Truth values are found in every kind of table; so are the names of columns."""
    table = people()[["age", "member"]]
    for each in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        kinds = list_types(each)
        assert list(kinds) == ["age", "member"]
        assert kinds["member"] == "bool" != kinds["age"]
