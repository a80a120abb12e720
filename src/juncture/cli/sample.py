"""`juncture sample`: synthetic records from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from juncture.cli.bars import show_progress
from juncture.cli.console import refuse_existing, require_file, say, say_json
from juncture.cli.options import Force, Json, ReleaseFile


def sample(
    release: ReleaseFile,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The file to write: .csv or .parquet."),
    ],
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            "-n",
            metavar="N",
            min=0,
            help="How many records. By default, the number of records of the release.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="NUMBER", min=0, help="The same seed gives the same records."
        ),
    ] = None,
    matched: Annotated[
        bool,
        typer.Option(
            "--matched/--independent",
            help="Whether counts are close to those of the release, or records are independent "
            "draws.",
        ),
    ] = True,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write synthetic records. This costs no privacy: they are drawn from the release alone.

    By default, counts in the file are close to what the release answers. Independent draws differ
    from that by chance, as a simulation needs; any number of them takes the same memory. If
    the release contains a schema, columns have the same kinds of values as the table: numbers and
    dates are drawn inside their bins. A classifier learns a little more from ten times as many
    records as the table has.

    \b
    Examples:
      juncture sample people.jct --records 10000 --out people.csv
      juncture sample people.jct --out people.parquet --seed 1
      juncture sample people.jct --independent --records 100000000 --out many.parquet
    """
    from juncture.publish.records import FileFormat, Method
    from juncture.publish.release import load

    refuse_existing(out, force=force, read=[release])
    FileFormat.of(out)  # refuses others before anything is read
    require_file(release, "RELEASE")
    loaded = load(release)
    method = Method.SYNTHESIZE if matched else Method.SAMPLE
    with show_progress() as watch:
        n = loaded.write_records(out, records, rng=seed, method=method, watch=watch)
    if as_json:
        say_json({"file": str(out), "records": n, "columns": list(loaded.model.domain)})
    else:
        many = "record" if n == 1 else "records"
        say(f"wrote {out}: {n:,} synthetic {many}, {len(loaded.model.domain)} columns")
