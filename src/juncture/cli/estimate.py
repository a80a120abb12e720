"""`juncture estimate`: a model of noisy marginals that another system measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.bars import show_progress
from juncture.cli.console import UsageError, note, refuse_existing, require_file, say, say_json
from juncture.cli.options import DeviceOption, Force, Json, join_device, note_not_mixed
from juncture.engine.oracle_names import OracleName

if TYPE_CHECKING:
    from juncture.fit.estimation import Estimate
    from juncture.publish.noisy_tables import ReadOptions
    from juncture.tables.measurement import Measurement
    from juncture.tables.schema import Schema


def estimate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="Noisy marginals: one per CSV or Parquet file, or several in a JSON document.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The release file to write (.jct).")
    ],
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="What the columns may hold (TOML)."),
    ] = None,
    domain: Annotated[
        Path | None,
        typer.Option(
            "--domain",
            metavar="FILE",
            help='Instead of a schema: JSON such as {"age": 85, "sex": ["f", "m"]}.',
        ),
    ] = None,
    stddev: Annotated[
        float | None,
        typer.Option(
            "--stddev",
            metavar="NUMBER",
            help="The standard deviation of the noise, where a file does not state it.",
        ),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            metavar="KIND",
            help="The kind of noise, gaussian or laplace, where a file does not state it.",
        ),
    ] = "gaussian",
    total: Annotated[
        float | None,
        typer.Option(
            "--total",
            metavar="N",
            help="The number of records, if you know it. By default it is estimated.",
        ),
    ] = None,
    stop_at_noise: Annotated[
        bool,
        typer.Option(
            "--stop-at-noise",
            help="Stop before the model fits the noise: closer to the truth where many marginals "
            "overlap.",
        ),
    ] = False,
    oracle: Annotated[
        OracleName,
        typer.Option(
            "--oracle",
            help="How marginals are computed: exact needs a junction tree that fits into memory; "
            "records estimates them from weighted records, whatever the marginals; auto is exact "
            "where the tree fits and is not far slower.",
        ),
    ] = OracleName.EXACT,
    device: DeviceOption = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Join noisy marginals that you already have into one model. This costs no privacy.

    A marginal is a table of counts over some columns. A CSV or Parquet file is one marginal: a
    column for each attribute, a column `value`, optionally a column `stddev`, and a row for every
    cell. A JSON document is {"measurements": [{"clique": ["age", "sex"], "values": [...],
    "stddev": 10}]}, with values in the order of the cells, the last attribute changing fastest.

    \b
    Examples:
      juncture estimate age_sex.csv sex_income.csv --schema people.toml --stddev 12 --out people.jct
      juncture estimate counts.json --domain domain.json --noise laplace --out people.jct
    """
    from juncture.fit.estimation import estimate as fit_to
    from juncture.fit.solvers.early_stopping import EarlyStopping
    from juncture.publish.noisy_tables import read_measurements
    from juncture.publish.release import Release

    refuse_existing(
        out, force=force, read=[*files, *(p for p in (schema, domain) if p is not None)]
    )
    known, options = _make_options(schema, domain, stddev, noise)
    for file in files:
        require_file(file, "FILES")
    measurements = read_measurements(files, options)
    with show_progress() as watch:
        fit = fit_to(
            options.domain,
            measurements,
            total=total,
            solver=EarlyStopping() if stop_at_noise else None,
            oracle=str(join_device(oracle, device)),
            watch=watch,
        )
    model = fit.model if known else fit.model.with_codebook(options.codebook)
    Release(model=model, measurements=measurements, fit=fit.summary, schema=known).save(out)
    _print_summary(out, measurements, fit, as_json=as_json)


def _make_options(
    schema: Path | None, domain: Path | None, stddev: float | None, noise: str
) -> tuple[Schema | None, ReadOptions]:
    from juncture.publish.noisy_tables import ReadOptions, read_domain
    from juncture.tables.schema_toml import read_schema

    if (schema is None) == (domain is None):
        raise UsageError(
            "`--schema` or `--domain` must be given, and only one of them; got "
            f"{'neither' if schema is None else 'both'}."
        )
    if domain is not None:
        return None, ReadOptions(*read_domain(domain), stddev, noise)
    assert schema is not None
    known = read_schema(schema)
    known.refuse_draft("--schema", schema)
    return known, ReadOptions(known.domain, known.codebook.bind(known.domain), stddev, noise)


def _print_summary(
    out: Path, measurements: list[Measurement], fit: Estimate, *, as_json: bool
) -> None:
    poor_fits = fit.misfits
    if as_json:
        say_json(
            {
                "release": str(out),
                "measurements": len(measurements),
                "total": fit.model.total,
                "misfits": [list(m.measurement.clique) for m in poor_fits],
                **fit.summary.to_json(),
            }
        )
    else:
        say(f"wrote {out}")
        many = "measurement" if len(measurements) == 1 else "measurements"
        say(f"  model  {len(measurements)} {many}, about {fit.model.total:,.0f} records")
        say(f"  fit    {fit.summary.oracle_calls} steps. {fit.status.headline}")
        if fit.summary.record_words:
            say(f"  error  {fit.summary.record_words}")
    note_not_mixed(fit.summary)
    for each in poor_fits:
        note(
            f"warning: {', '.join(each.measurement.clique)} does not fit its own noise (mean "
            f"squared residual {each.ratio:.1f} times the variance). Check its stddev and the "
            "order of its values."
        )
