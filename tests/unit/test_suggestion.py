"""A suggested schema comes from names and types alone, and says what a person has to set."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.column_names import Role, role_of
from juncture.private.draft import exact_explained_draft
from juncture.private.suggestion import suggest_schema
from juncture.tables.schema_toml import parse_schema


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (Role.PERSON, ["patient", "patientID", "customer_no", "User Id", "STUDENT_KEY"]),
        (Role.IDENTIFIER, ["id", "visit_id", "uuid", "SSN", "account number", "ip", "rowHash"]),
        (Role.NAME, ["name", "first_name", "LastName", "patient name", "surname"]),
        (Role.CONTACT, ["email", "homeAddress", "phone", "mobile phone", "url"]),
        (Role.FREE_TEXT, ["comment", "doctor_notes", "productDescription"]),
        (Role.DATE, ["date", "birth date", "dob", "created_at", "memberSince", "Admitted"]),
        (Role.NUMBER, ["age", "Annual Income", "n_visits", "account balance", "childCount"]),
        (Role.OTHER, ["sex", "country name", "product_name", "member", "zip", "", "123", "at"]),
    ],
)  # fmt: skip
def test_roles_by_name(role: Role, names: list[str]) -> None:
    """Words decide, however they are joined."""
    assert {name: role_of(name) for name in names} == dict.fromkeys(names, role)


def test_types_of_a_file_that_has_them(tmp_path: Path) -> None:
    """They go before names; what no kind describes is left out, and so is who it is about."""
    table = pa.table({
        "age": pa.array([1], pa.int32()), "pay": pa.array([1.0]), "born": pa.array([dt.date.max]),
        "customer": [True], "height": ["tall"], "tags": [["a"]], "patient_id": [3], "city": ["x"],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "people.parquet")
    duckdb.connect(str(tmp_path / "people.duckdb")).execute(
        f"CREATE TABLE people AS FROM '{tmp_path / 'people.parquet'}'"
    ).close()
    for path in (tmp_path / "people.parquet", tmp_path / "people.duckdb"):
        found = suggest_schema(path)
        content = tomllib.loads(found.to_toml())
        kinds = {name: each["kind"] for name, each in content["columns"].items()}
        assert kinds == {
            "age": "integer", "pay": "number", "born": "date", "customer": "boolean",
            "height": "number", "city": "categorical",
        }  # fmt: skip
        assert found.omitted == {"tags": Role.UNKNOWN, "patient_id": Role.PERSON}
        assert found.n_bounds == 8
        assert content["columns"]["age"]["bins"] == "private"
        assert content["columns"]["city"]["values"] == "private"
        assert '# [person]\n# column = "patient_id"' in found.to_toml()


def test_values_are_not_looked_at(tmp_path: Path) -> None:
    """Two files with the same names have the same suggestion, whatever stands below them."""
    found = []
    for rows in ("", "1,x,2020-01-01\n", "secret,secret,secret\n" * 50):
        path = tmp_path / "people.csv"
        path.write_text(f"age,city,joined\n{rows}")
        found.append(suggest_schema(path).to_toml())
    assert found[0] == found[1] == found[2]
    assert "secret" not in found[2]


def test_bounds_must_be_set_by_a_person(tmp_path: Path) -> None:
    """Nothing can be read, let alone released, before."""
    path = tmp_path / "people.csv"
    path.write_text("age,works\n31,yes\n")
    content = tomllib.loads(suggest_schema(path).to_toml())
    with pytest.raises(InvalidInput, match="Column 'age': `low` must be set by a person"):
        parse_schema(content)


@pytest.mark.parametrize("line", ["age,age\n", "age,,sex\n"])
def test_a_first_line_without_names_is_refused(line: str, tmp_path: Path) -> None:
    """Columns are called by it."""
    path = tmp_path / "people.csv"
    path.write_text(line)
    with pytest.raises(InvalidInput, match="line of different names"):
        suggest_schema(path)
    with pytest.raises(UnreadableFile, match="existing file"):
        suggest_schema(tmp_path / "nothing.csv")
    path.write_text("name,phone\n")
    with pytest.raises(InvalidInput, match="got none"):
        suggest_schema(path)


def test_a_draft_leaves_out_names_and_constants() -> None:
    """Texts by their name and number, and what is the same everywhere; with the reason."""
    n = 200
    table = pa.table({
        "last name": [f"n{i % 60}" for i in range(n)],
        "country name": [f"c{i % 5}" for i in range(n)],
        "notes": [f"text {i % 90} and more" for i in range(n)],
        "name": ["a" if i % 2 else "b" for i in range(n)],
        "site": ["one"] * n, "year": [2024] * n, "ok": [True] * n,
        "often": [None if i % 2 else 7 for i in range(n)],
        "age": [i % 70 for i in range(n)],
    })  # fmt: skip
    draft = exact_explained_draft(table)
    assert list(draft.schema.columns) == ["country name", "name", "often", "age"]
    assert draft.omitted["last name"] == "names of people, by its name"
    assert draft.omitted["notes"] == "free text, by its name"
    for name in ("site", "year", "ok"):
        assert draft.omitted[name] == "one value everywhere, which says nothing"
