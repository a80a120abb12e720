"""A rule excludes the cells that it excludes value by value, and slips in it are named."""

from __future__ import annotations

import datetime as dt
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from juncture.errors import InvalidInput
from juncture.fit.public_facts import PublicFacts
from juncture.tables.columns import Boolean, Categorical, Date, Integer, Number, Outside, Period
from juncture.tables.known import Known
from juncture.tables.rules import Broken, Rule, find_zeros
from juncture.tables.schema import Schema
from juncture.tables.schema_toml import read_schema, schema_toml

SCHEMA = Schema(
    {
        "age": Integer(low=0, high=29, width=10, missing=True),
        "school": Integer(low=0, high=24, width=4, outside=Outside.CODE),
        "state": Categorical(values=("single", "married", "it's")),
        "works": Boolean(missing=True),
        "kids": Integer(low=0, high=3),
        "born": Date(low=dt.date(2020, 1, 1), high=dt.date(2020, 4, 30), period=Period.MONTH),
    }
)
# What each code may stand for, one value at a time; nothing is known of the others.
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in range(121)]
VALUES: dict[str, list[list[Any]]] = {
    "age": [list(range(10)), list(range(10, 20)), list(range(20, 30)), [None]],
    "school": [*(list(range(i, min(i + 4, 25))) for i in range(0, 25, 4)), [None]],
    "state": [["single"], ["married"], ["it's"]],
    "works": [[False], [True], [None]],
    "kids": [[0], [1], [2], [3]],
    "born": [[day for day in DAYS if day.month == month] for month in range(1, 5)],
}
RULES: list[tuple[str, Any]] = [
    ("age < 15 AND state <> 'single'", lambda age, state: age < 15 and state != "single"),
    ("age <= 9 AND state = 'it''s'", lambda age, state: age <= 9 and state == "it's"),
    ("NOT (age >= 10) AND works", lambda age, works: not age >= 10 and works),
    ("age BETWEEN 10 AND 19 AND kids > 1", lambda age, kids: 10 <= age <= 19 and kids > 1),
    ("age BETWEEN 10 AND 18 AND kids > 1", lambda age, kids: 10 <= age <= 18 and kids > 1),
    ("school > age", lambda school, age: school > age),
    ("school <> age", lambda school, age: school != age),
    ("school >= age OR kids = 2", lambda school, age, kids: school >= age or kids == 2),
    ("age IN (0, 1, 2) OR age > 2 AND age < 10", lambda age: age in (0, 1, 2) or 2 < age < 10),
    ("kids * 2 - 1 >= 3 AND works = FALSE", lambda kids, works: kids * 2 - 1 >= 3 and not works),
    ("born < '2020-02-01' AND kids = 0", lambda born, kids: born < DAYS[31] and kids == 0),
    ("born <= DATE '2020-03-31'", lambda born: born <= dt.date(2020, 3, 31)),
    ("works IS NULL AND kids = 3", None),
    ("age = 5", lambda age: age == 5),
]  # fmt: skip


@pytest.mark.parametrize(("never", "breaks"), RULES, ids=[rule for rule, _ in RULES])
def test_cells_are_those_found_value_by_value(never: str, breaks: Any) -> None:
    """A cell is excluded if and only if every value in it breaks the rule."""
    found = find_zeros(Rule(never), SCHEMA.codebook)
    for cell in np.ndindex(*found.excluded.shape):
        kinds = [VALUES[name][code] for name, code in zip(found.clique, cell, strict=True)]
        expected = True
        for values in product(*kinds):
            given = dict(zip(found.clique, values, strict=True))
            if breaks is None:
                expected &= given["works"] is None and given["kids"] == 3
                continue
            needed = breaks.__code__.co_varnames[: breaks.__code__.co_argcount]
            # Every rule of this list compares each column in all of its parts, or by AND.
            known = all(given[name] is not None for name in needed)
            expected &= known and bool(breaks(**{name: given[name] for name in needed}))
        if "OR kids" in never and None in [v for kind in kinds for v in kind]:
            continue  # true by the other part alone
        assert found.excluded[cell] == expected, (never, cell)


def test_numbers_with_fractions_include_their_edges() -> None:
    """A bin holds its lower edge and not its upper one; the last bin holds both."""
    book = Schema({"x": Number(edges=(0.0, 1.0, 2.0))}).codebook
    for never, expected in (
        ("x < 1", [True, False]),
        ("x <= 1", [True, False]),
        ("x > 1", [False, False]),
        ("x >= 1", [False, True]),
        ("x >= 1 AND x < 2", [False, False]),
        ("x <> 1.5", [True, False]),
        ("x < 0.5 OR x >= 0.5 AND x < 1", [True, False]),
    ):
        assert find_zeros(Rule(never), book).excluded.tolist() == expected, never


@pytest.mark.parametrize(
    ("never", "words"),
    [
        ("", "must be a condition"),
        ("age <", "cannot be read"),
        ("height > 3", "columns of the schema; got height"),
        ("state = single", "columns of the schema; got single"),
        ("1 = 1", "must be about columns"),
        ("age + 1 < 15", "as it is with constants"),
        ("age < kids + 1", "as it is with constants"),
        ("age >= 0 OR age IS NULL OR age < 0", "excludes all"),
        ("length(state) > 3", "made of comparisons"),
        ("state = (SELECT 'single')", "made of comparisons"),
        ("age < 15; DROP TABLE x", "cannot be read|made of comparisons"),
        ("state = 3 AND age < 'x'", "can be compared|with numbers"),
    ],
)
def test_slips_in_a_rule_are_named(never: str, words: str) -> None:
    """One line, before anything else happens."""
    with pytest.raises(InvalidInput, match=words):
        find_zeros(Rule(never), SCHEMA.codebook)


def test_rules_over_too_many_columns_are_refused() -> None:
    """Their joint table would not fit."""
    wide = Schema({f"x{i}": Integer(low=0, high=99) for i in range(4)})
    rule = Rule(" AND ".join(f"x{i} > 3" for i in range(4)))
    with pytest.raises(InvalidInput, match="fewer columns"):
        find_zeros(rule, wide.codebook)


KNOWN = Known(("state",), (("single", 30), ("married", 20.5)))


@pytest.mark.parametrize(
    ("rules", "known", "words"),
    [
        ((Rule("kids < 2"), Rule("kids >= 2")), (), "contradict each other"),
        ((Rule("state = 'single'"),), (KNOWN,), "contradict each other"),
        ((), (KNOWN, Known(("kids",), ((0, 51),))), "one number of records"),
        ((), (Known(("state",), (("widowed", 1),)),), "that the schema lists; got 'widowed'"),
        ((), (Known(("state",), (("single", 1), ("single", 2))),), "each cell once"),
        ((), (Known(("height",), ((1, 1),)),), "height"),
        # Two tables that agree on nothing: one says kids only with works, the other the opposite.
        (
            (),
            (
                Known(("kids", "works"), ((1, True, 5), (0, False, 5))),
                Known(("kids",), ((1, 7), (0, 3))),
            ),
            "contradict each other",
        ),
    ],
)
def test_what_no_table_can_have_is_refused(
    rules: tuple[Rule, ...], known: tuple[Known, ...], words: str
) -> None:
    """Before anything is read."""
    with pytest.raises(InvalidInput, match=words):
        PublicFacts.of_schema(Schema(SCHEMA.columns, rules=rules, known=known))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("[[rule]]\nbroken = 'error'", r"\[\[rule\]\] number 1: must have the entries 'never'"),
        ("[[rule]]\nnever = 3", "must be a condition in SQL"),
        ("[[rule]]\nnever = 'y'\nbroken = 'drop'", "error, set aside; got 'drop'"),
        ("[rule]\nnever = 'y'", "`rule` must be tables"),
        ("[[known]]\ncolumns = ['y']\ncounts = []", r"\[\[known\]\] number 1: .*rows of 1 values"),
        ("[[known]]\ncolumns = []\ncounts = [[true, 1]]", "list of different columns"),
        ("[[known]]\ncolumns = ['y']\ncounts = [[true, -1]]", "must not be negative"),
        ("[[known]]\ncolumns = ['y']\ncounts = [[true, 0]]", "must have a record"),
    ],
)
def test_slips_in_the_file_are_named(entries: str, words: str, tmp_path: Path) -> None:
    """With the number of the table that has it."""
    path = tmp_path / "people.toml"
    path.write_text(
        f'format = "juncture schema"\nversion = 3\n{entries}\n[columns.y]\nkind = "boolean"\n'
    )
    with pytest.raises(InvalidInput, match=words):
        read_schema(path)


def test_a_schema_file_keeps_rules_and_known_totals(tmp_path: Path) -> None:
    """Written and read again."""
    rules = (Rule("age < 10 AND state = 'it''s'", Broken.SET_ASIDE), Rule('"kids" > 2'))
    known = (Known(("born", "kids"), (("2020-01", 1, 7), ("2020-02", 0, 3.5))),)
    made = Schema(SCHEMA.columns, rules=rules, known=known)
    path = tmp_path / "people.toml"
    path.write_text(schema_toml(made))
    found = read_schema(path)
    assert (found.rules, found.known) == (rules, known)
    table = found.known[0].table(found.codebook)
    assert table.shape == (4, 4)
    assert table[1, 0] == 7
    assert table.sum() == 10.5
