"""Release files of format 2 are read as if they were written today."""

from pathlib import Path

import pytest

from juncture.publish.release import load
from juncture.tables.periods import Period

FILES = Path(__file__).parent.parent / "files"


def test_names_come_from_the_schema() -> None:
    """A file with a schema has its columns as they are now: whole numbers, periods of days."""
    made = load(FILES / "format-2-schema.jct")
    book = made.model.codebook
    assert book["age"].whole
    assert book["since"].period is Period.MONTH
    assert book["age"].labels[-1] is None
    november = made.sql("SELECT COUNT(*) FROM t WHERE since < '2023-12-01'").rows[0][0]
    assert november == pytest.approx(
        made.sql("SELECT since, COUNT(*) FROM t GROUP BY 1").rows[0][1]
    )


def test_a_codebook_without_a_schema_is_kept() -> None:
    """What the codes were said to stand for stays: any numbers in intervals, texts, missing."""
    made = load(FILES / "format-2-codebook.jct")
    book = made.model.codebook
    assert book["x"].meanings == ((0.0, 1.0), (1.0, 9.0), None)
    assert not book["x"].whole
    assert book["sex"].labels == ("f", "m")


@pytest.mark.parametrize("name", ["schema", "codebook"])
def test_a_file_that_is_saved_again_is_the_same(name: str, tmp_path: Path) -> None:
    """Reading an old file and writing it loses nothing."""
    old = load(FILES / f"format-2-{name}.jct")
    new = load(old.save(tmp_path / "new.jct"))
    assert new.model.codebook.codings == old.model.codebook.codings
    assert new.model.probabilities.tolist() == old.model.probabilities.tolist()
    assert len(new.measurements) == len(old.measurements)
