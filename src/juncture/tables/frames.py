"""Arrow tables for people who work with pandas or Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from juncture.errors import JunctureError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas frame, dates as timestamps; the error without pandas says so."""
    try:
        import pandas  # noqa: F401, PLC0415
    except ModuleNotFoundError as missing:
        raise JunctureError(
            "`to_pandas` needs the package pandas, which is not installed. Install it with "
            "`pip install pandas`, or use `to_arrow`, which needs nothing more."
        ) from missing
    return table.to_pandas(date_as_object=False)


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table as a Polars frame; the error without Polars says so."""
    try:
        import polars  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise JunctureError(
            "`to_polars` needs the package polars, which is not installed. Install it with "
            "`pip install polars`, or use `to_arrow`, which needs nothing more."
        ) from missing
    return polars.DataFrame(table)
