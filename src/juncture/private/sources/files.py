"""Tables that DuckDB reads: files, databases and tables in memory, each as a relation.

Timestamps with a zone become the date and time of their zone, so that a day does not depend on the
machine. CSV files and SQLite databases are read as texts: which of them are numbers is the schema's
to say.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from juncture._util.sql import quote_name, quote_text
from juncture.errors import InvalidInput, UnreadableFile
from juncture.private.sources.databases import attach_database, is_database

# Groups of up to this many bits are counted in a plain array instead of a hash table.
_ARRAY_BITS = 18
_CSV, _TSV, _PARQUET = ".csv", ".tsv", ".parquet"
_READERS = {
    _CSV: "read_csv({files}, header = {header}, skip = 0, quote = '\"', escape = '\"', "
    "comment = '', delim = '{delimiter}', all_varchar = true, hive_partitioning = false)",
    _PARQUET: "read_parquet({files}, hive_partitioning = false)",
}
_KINDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".sqlite", ".duckdb")


class ArrowTable(Protocol):
    """Any table with the Arrow PyCapsule interface: of pandas, Polars, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream."""


@dataclass(frozen=True)
class TableFile:
    """A file or folder with a table, where its path alone does not say how to read it.

    - `path`: a CSV or Parquet file, a folder of such files, or a SQLite or DuckDB database.
    - `table`: which table of a database; by default its only one. `TableFile.parse` also takes
      both in one text, as `people.duckdb::people`.
    - `header`: whether CSV files begin with a line of names. Without one the columns are named
      `column_1`, `column_2` and so on.

    >>> TableFile.parse("people.duckdb::people").table
    'people'
    """

    path: Path
    table: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    @classmethod
    def parse(cls, path: str | Path, table: str | None = None, *, header: bool = True) -> TableFile:
        """The file that a path names; `::NAME` at its end names a table of a database."""
        text, mark, name = str(path).rpartition("::")
        if not mark or Path(path).exists():
            return cls(Path(path), table, header)
        if table not in (None, name):
            raise InvalidInput(f"`table` must be the one after '::' in the path; got {table!r}.")
        return cls(Path(text), name, header)

    @property
    def stem(self) -> str:
        """The name of the file or folder without its endings.

        >>> TableFile(Path("data/people.csv.gz")).stem
        'people'
        """
        return Path(self._named.name.removesuffix(".gz")).stem

    def beside(self, ending: str) -> Path:
        """A file of the same name with another ending, in the folder that this lies in.

        >>> TableFile(Path("people.csv")).beside(".ledger").as_posix()
        'people.ledger'
        """
        return self._named.with_name(self.stem + ending)

    @property
    def _named(self) -> Path:
        """The path, with a name where it is only dots: a file inside is not beside."""
        return self.path if self.path.name not in ("", "..") else Path(os.path.abspath(self.path))


AnyTable = str | Path | TableFile | duckdb.DuckDBPyRelation | ArrowTable
"""Every kind of table that DuckDB can read."""


def exact_relation(
    table: AnyTable, *, memory_limit: str = "1GB", spill: str = "", copy: bool = False
) -> duckdb.DuckDBPyRelation:
    """The table as a relation; the texts of files of texts as they stand.

    With `copy`, a file of texts is read once, into the engine: for several questions in a row.
    """
    if isinstance(table, duckdb.DuckDBPyRelation):
        return table
    connection = duckdb.connect(config={"memory_limit": memory_limit, "temp_directory": spill})
    connection.execute(f"SET perfect_ht_threshold = {_ARRAY_BITS}")
    # An instant without a zone of its own has the day of UTC, wherever the machine stands.
    connection.execute("SET TimeZone = 'UTC'")
    if not isinstance(table, str | Path | TableFile):
        arrow = _to_arrow(table)
        return _localize(connection.from_arrow(arrow), arrow.schema)
    file = table if isinstance(table, TableFile) else TableFile.parse(table)
    relation = _read_file(connection, file)
    if not (copy and is_text_file(table)):
        return relation
    relation.query("juncture_table", "CREATE TEMP TABLE juncture_copy AS FROM juncture_table")
    return connection.table("juncture_copy")


def is_text_file(table: object) -> bool:
    """Whether a table is a file of texts, whose first line may be names or a record."""
    if not isinstance(table, str | Path | TableFile):
        return False
    path = table.path if isinstance(table, TableFile) else TableFile.parse(table).path
    return path.exists() and not is_database(path) and _kind(_list_files(path)[0]) != _PARQUET


def read_header(table: str | Path | TableFile) -> list[str]:
    """The names in the first line of a CSV file as they stand there, repeated ones included."""
    file = table if isinstance(table, TableFile) else TableFile.parse(table)
    first = _list_files(file.path)[0]
    line = _first_line(first)
    return next(csv.reader([line], delimiter=_detect_delimiter(first)), [])


def _read_file(connection: duckdb.DuckDBPyConnection, file: TableFile) -> duckdb.DuckDBPyRelation:
    if file.path.is_file() and is_database(file.path):
        return attach_database(connection, file.path, file.table)
    if file.table is not None:
        raise InvalidInput(
            f"`table` must be left out for a file that is no database; got {file.table!r}."
        )
    files = _list_files(file.path)
    listed = "[" + ", ".join(quote_text(_escape_glob(each)) for each in files) + "]"
    kind = _kind(files[0])
    if kind == _PARQUET:
        relation = connection.sql(f"SELECT * FROM {_READERS[kind].format(files=listed)}")
        return _localize(relation, pq.read_schema(files[0]))
    source = _READERS[_CSV].format(
        files=listed, delimiter=_detect_delimiter(files[0]), header=file.header
    )
    relation = connection.sql(f"SELECT * FROM {source}")
    if file.header:
        return relation
    names = ", ".join(quote_name(f"column_{i + 1}") for i in range(len(relation.columns)))
    return connection.sql(f"SELECT * FROM {source} AS juncture_file({names})")


def _localize(relation: duckdb.DuckDBPyRelation, schema: pa.Schema) -> duckdb.DuckDBPyRelation:
    """Give timestamps with a zone the date and time of that zone."""
    zoned = {
        field.name: str(field.type.tz)
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.tz is not None
    }
    if not zoned:
        return relation
    listed = [
        f"{_local_time(quote_name(name), zoned[name])} AS {quote_name(name)}"
        if name in zoned
        else quote_name(name)
        for name in relation.columns
    ]
    return relation.project(", ".join(listed))


def _local_time(instant: str, zone: str) -> str:
    """SQL for the date and time that an instant has in a zone."""
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
    if offset is None:
        return f"timezone({quote_text(zone)}, {instant})"
    minutes = int(offset[2]) * 60 + int(offset[3])
    return f"timezone('UTC', {instant}) + INTERVAL '{offset[1]}{minutes} minutes'"


def _kind(file: Path) -> str:
    """The reader of a file, by the end of its name; the end itself where there is none."""
    name = file.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in (_CSV, _TSV):
        return _CSV
    return file.suffix.lower()


def _escape_glob(file: Path) -> str:
    """A path in which DuckDB sees no pattern."""
    return re.sub(r"([\[*?])", r"[\1]", str(file))


def _first_line(file: Path) -> str:
    is_packed = file.suffix.lower() == ".gz"
    try:
        with cast(BinaryIO, gzip.open(file)) if is_packed else file.open("rb") as content:
            return content.readline(1 << 20).decode("utf-8-sig", errors="replace")
    except (gzip.BadGzipFile, EOFError):
        raise UnreadableFile(f"`table` must be packed by gzip; got {file}.") from None


def _detect_delimiter(file: Path) -> str:
    """The delimiter of the names in the first line: guessing from rows fails on bad ones."""
    if Path(file.name.lower().removesuffix(".gz")).suffix == _TSV:
        return "\t"
    return max(",;\t|", key=_first_line(file).count)


def _to_arrow(table: ArrowTable) -> pa.Table:
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidInput(
            f"`table` must be a file, a DuckDB relation or an Arrow table; got "
            f"{type(table).__name__}. Tables of pandas, Polars and pyarrow are Arrow tables."
        )
    try:
        return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # Arrow's own message quotes values of the table.
        raise InvalidInput(
            f"`table` must be one that Arrow can hold; got {type(table).__name__} with something "
            f"else ({type(error).__name__}). Give every column values of one type."
        ) from None


def _is_hidden(path: Path) -> bool:
    """Whether a file or one of its folders is hidden: named with a dot or an underscore first."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _list_files(path: Path) -> list[Path]:
    """The file itself, or all files of a folder; refuses kinds that cannot be read."""
    files = [path]
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file())
        files = [p for p in inside if not _is_hidden(p.relative_to(path))]
    if not files or not all(p.exists() for p in files):
        raise UnreadableFile(
            f"`table` must be an existing file or a folder with files; got {path}."
        )
    kinds = {_kind(p) for p in files}
    if len(kinds) != 1 or not kinds.issubset(_READERS):
        raise UnreadableFile(
            f"`table` must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]} files of one kind; got "
            f"{', '.join(sorted(kinds))} at {path}. Convert them, or give a DuckDB relation."
        )
    return files
