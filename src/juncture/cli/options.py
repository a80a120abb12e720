"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from juncture._util.text import list_names
from juncture.cli.console import UsageError, note, require_file
from juncture.engine.oracle_names import DeviceName, OracleName
from juncture.errors import InvalidInput
from juncture.mechanisms.merge_rare import MergeRare
from juncture.mechanisms.registry import offers

if TYPE_CHECKING:
    from juncture.fit.summary import FitSummary
    from juncture.mechanisms.mechanism import Mechanism
    from juncture.privacy.accounting import Neighbours
    from juncture.privacy.budget import Budget
    from juncture.privacy.ledger import Ledger
    from juncture.private.sources.files import TableFile
    from juncture.tables.domain import Clique, Domain
    from juncture.tables.workload import Workload
    from juncture.workflow.default_choice import DefaultChoice


# Beyond this epsilon or rho, a release may reveal almost anything about anyone.
_LARGE_BUDGET = 50.0
# Above these, a delta or a noise (as a share of the table) deserves a word.
_LARGE_DELTA, _LARGE_NOISE = 1e-4, 0.1


class NeighbourName(StrEnum):
    """What is protected, as the command line names it."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file (.jct).")]
DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="The private table: a CSV (.csv, .tsv, also .gz) or Parquet file, a folder of such "
        "files, or a SQLite or DuckDB database.",
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="The table of a database; by default its only one. DATA may also be FILE::NAME.",
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The CSV file has no line of names: its columns are column_1, column_2 and so on.",
    ),
]
SchemaFile = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The schema of the table (TOML).")
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        "-e",
        metavar="NUMBER",
        help="The privacy budget: smaller protects more, larger is more accurate. Usually 0.1 to "
        "10.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="With --epsilon: how much a probability may change beyond the factor e^epsilon, such "
        "as 1e-9; choose it well below one in the number of records. Gives Gaussian noise, which "
        "is smaller when much is measured.",
    ),
]
Rho = Annotated[
    float | None,
    typer.Option(
        "--rho",
        metavar="NUMBER",
        help="Instead of --epsilon: a budget in zero-concentrated differential privacy (zCDP), "
        "with Gaussian noise.",
    ),
]


def find_table(data: Path, table: str | None, no_header: bool, what: str = "DATA") -> TableFile:
    """The private table that the arguments name; refuses a file that does not exist."""
    from juncture.private.sources.files import TableFile

    result = TableFile.parse(data, table, header=not no_header)
    require_file(result.path, what, or_folder=True)
    return result


def note_doubtful_names(n_doubtful: int, n_names: int) -> None:
    """Warn where the names of columns look like somebody's record."""
    if n_doubtful:
        note(
            f"warning: {n_doubtful} of the {n_names} column names look like values (numbers, "
            "dates, repeated, or values of their own column). Names of columns are public: if the "
            "first line of the file is somebody's record, use --no-header."
        )


def _complete_mechanism(typed: str) -> list[str]:
    return [name for name in offers() if name.startswith(typed)]


MechanismOption = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        "-m",
        metavar="NAME",
        autocompletion=_complete_mechanism,
        help=f"The mechanism, which decides what to measure: {', '.join(offers())} (see above). By "
        "default tiers with a --delta or a --rho; for an epsilon alone hdmm, or mwem if a model of "
        "everything asked for would be too large.",
    ),
]
OracleOption = Annotated[
    OracleName | None,
    typer.Option(
        "--oracle",
        metavar="NAME",
        help="For hdmm, mwem and privbayes, how the model is computed: exact needs a junction tree "
        "that fits into memory (the default); records needs none, and estimates marginals from "
        "weighted records; auto is exact where the tree fits and is not far slower.",
    ),
]
MergeRareOption = Annotated[
    MergeRare | None,
    typer.Option(
        "--merge-rare",
        metavar="WHEN",
        help="For tiers, aim, mst and mwem, whether rare values share counts in tables of several "
        "columns: on, off, or auto (the default), where that is expected to leave less error. The "
        "model divides them again.",
    ),
]
DeviceOption = Annotated[
    DeviceName | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where an exact model is computed: cpu, or gpu for an NVIDIA card (needs the extra "
        "juncture[gpu]). A card pays from about a million cells on.",
    ),
]
Marginals = Annotated[
    int | None,
    typer.Option(
        "--marginals",
        metavar="K",
        help="Ask for the counts over every set of K columns. The default is every pair.",
    ),
]
Cliques = Annotated[
    str | None,
    typer.Option(
        "--cliques",
        metavar="NAMES",
        help="Ask for the counts over these sets of columns, such as 'age,sex;sex,income'.",
    ),
]
Triples = Annotated[
    int | None,
    typer.Option(
        "--triples",
        metavar="N",
        min=1,
        help="Ask for the counts over N random sets of three columns.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Ask for the counts over this column with every two others: for predicting it. With "
        "--marginals 2, with each other one.",
    ),
]
MaxCells = Annotated[
    int | None,
    typer.Option(
        "--max-cells",
        metavar="N",
        min=1,
        help="Leave out sets of columns with more cells, and ask for smaller sets in their place. "
        "The default is a million where nothing but --target is asked for, and no limit otherwise.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="TEXT",
        help="How much sets of columns count that have these among them, such as "
        "'income=5;age,sex=2'. The default is 1 for each.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="NUMBER",
        min=0,
        max=2**32 - 1,
        help="The seed for the random sets of --triples. It does not affect the noise.",
    ),
]
Records = Annotated[
    int | None,
    typer.Option(
        "--records",
        metavar="N",
        min=1,
        help="A public guess of the number of records: expected errors are for so many. The "
        "default is 10,000.",
    ),
]
NeighboursOption = Annotated[
    NeighbourName | None,
    typer.Option(
        "--neighbours",
        metavar="KIND",
        help="What is protected: add-remove, whether a record is in the table (the default); or "
        "replace, what a record says (the number of records is then public).",
    ),
]
BinningShare = Annotated[
    float | None,
    typer.Option(
        "--binning-share",
        metavar="SHARE",
        help="The share of the budget for finding private bins and values, where the schema has "
        "any. By default 0.02 for each such column, and at most 0.2.",
    ),
]
CheckShare = Annotated[
    float | None,
    typer.Option(
        "--check",
        metavar="SHARE",
        help="The share of the budget, such as 0.05, for questions that the model is not fitted "
        "to: gives intervals to answers about columns that were never measured together.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


@dataclass(frozen=True)
class WorkloadOptions:
    """The workload that the options describe."""

    marginals: int | None = None
    cliques: str | None = None
    triples: int | None = None
    seed: int = 0
    target: str | None = None
    max_cells: int | None = None
    weights: str | None = None

    def build(self, domain: Domain) -> Workload:
        """The workload over a domain; every pair of columns if no option is given."""
        workload = self._choose(domain)
        if self.weights is None:
            return workload
        return workload.weigh(parse_weights(self.weights, domain))

    def _choose(self, domain: Domain) -> Workload:
        from juncture.tables.workload import Workload

        whole = self.target if self.marginals is None else self.marginals
        options = (whole, self.cliques, self.triples)
        if sum(value is not None for value in options) > 1:
            raise UsageError(
                "`--cliques`, `--triples`, and `--marginals` or `--target`, must not be mixed; got "
                "several."
            )
        if self.cliques is not None:
            return Workload.of_marginals(domain, parse_cliques(self.cliques, domain))
        if self.triples is not None:
            return Workload.random_marginals(
                domain, self.triples, 3, rng=self.seed, max_cells=self.max_cells
            )
        if self.marginals is None and self.max_cells is None:
            return Workload.default(domain, self.target)
        return self._take_all(domain)

    def _take_all(self, domain: Domain) -> Workload:
        """Every set of so many columns, or those with the target."""
        from juncture.tables.workload import Workload

        usual = min(2 if self.target is None else 3, len(domain))
        columns = usual if self.marginals is None else self.marginals
        if not 1 <= columns <= len(domain):
            raise InvalidInput(
                f"`--marginals` must be between 1 and the {len(domain)} columns; got {columns}. "
                "Two or three are usual."
            )
        if self.target is not None:
            return Workload.with_target(domain, self.target, columns, max_cells=self.max_cells)
        return Workload.all_marginals(domain, columns, max_cells=self.max_cells)


def list_mechanisms(command: Callable[..., None]) -> Callable[..., None]:
    """Put the list of mechanisms into a command's help, in place of `{mechanisms}`."""
    width = max(map(len, offers()))
    lines = [f"      {name:<{width}}  {offer.summary}" for name, offer in offers().items()]
    command.__doc__ = str(command.__doc__).replace("    {mechanisms}", "\n".join(lines))
    return command


def check_mechanism(name: str | None) -> str | None:
    """The name of a mechanism, or None; an unknown name is an error of usage."""
    if name is not None and name not in offers():
        raise UsageError(f"`--mechanism` must be one of {', '.join(offers())}; got {name!r}.")
    return name


class MechanismSettings(NamedTuple):
    """Options of a mechanism that were given; None leaves its own."""

    oracle: OracleName | None = None
    merge_rare: MergeRare | None = None

    @property
    def given(self) -> dict[str, str]:
        """The names of those that were given, with their values."""
        return {name: each.value for name, each in self._asdict().items() if each is not None}


# What says which mechanisms have an option.
_OWNERS = {"oracle": "tiers, hdmm, mwem or privbayes", "merge_rare": "tiers, aim, mst or mwem"}


def choose_mechanism(
    name: str | None, settings: MechanismSettings, budget: Budget, choice: DefaultChoice | None
) -> str | Mechanism:
    """The mechanism that the options name, or the default one, with its own options if given."""
    from juncture.mechanisms.registry import make_mechanism

    taken = name or ("" if choice is None else choice.mechanism)
    given = settings.given
    if not given:
        return taken
    mechanism = make_mechanism(taken, budget)
    if not _takes(mechanism, given) and name is None and choice is not None:
        mechanism = make_mechanism(choice.forecasts[0].mechanism, budget)  # the usual one
    for option in given:
        if not _takes(mechanism, [option]):
            raise UsageError(
                f"`--{option.replace('_', '-')}` must come with a mechanism that has the option, "
                f"such as {_OWNERS[option]}; got {taken}."
            )
    assert is_dataclass(mechanism)
    return replace(mechanism, **given)


def _takes(mechanism: Mechanism, options: Iterable[str]) -> bool:
    if not is_dataclass(mechanism):
        return False
    return {each.name for each in fields(mechanism)}.issuperset(options)


def join_device(oracle: OracleName | None, device: DeviceName | None) -> OracleName | None:
    """The oracle of two options: a device is where an exact model is computed."""
    if device is None:
        return oracle
    if oracle not in (None, OracleName.EXACT):
        raise UsageError(
            f"`--device` must come with an exact model; got --oracle {oracle}. Leave one out."
        )
    return OracleName(device.value)


def note_unmeasured(names: Sequence[str]) -> None:
    """Name the columns of which the release knows nothing."""
    if names:
        note(
            f"note: not measured: {list_names(names)}. All their values are taken as equally "
            "frequent. Ask for them by --cliques, or leave them out of the schema."
        )


def parse_cliques(text: str, domain: Domain) -> list[Clique]:
    """Sets of names, from text such as `a,b;c,d`."""
    cliques = [parse_names(part) for part in text.split(";") if part.strip()]
    if not cliques:
        raise InvalidInput("`--cliques` must name columns; got none. Write them as 'a,b;c,d'.")
    return [domain.canonical(clique) for clique in cliques]


def parse_weights(text: str, domain: Domain) -> dict[Clique, float]:
    """Weights of sets of names, from text such as `a,b=2;c=5`."""
    weights = {}
    for part in filter(str.strip, text.split(";")):
        names, _, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            raise InvalidInput(
                f"`--weights` must give each set of columns a number; got {part.strip()!r}. Write "
                "them as 'income=5;age,sex=2'."
            ) from None
        weights[domain.canonical(parse_names(names))] = weight
    if () in weights or not weights:
        raise InvalidInput("`--weights` must name columns; got none. Write them as 'income=5'.")
    return weights


def parse_names(text: str) -> Clique:
    """Names, from text such as `a,b`; a name with a comma in it stands in double quotes."""
    (row,) = list(csv.reader([text.strip()], skipinitialspace=True)) or [[]]
    return tuple(name.strip() for name in row if name.strip())


def make_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """The budget that the options give."""
    from juncture.privacy.budget import Budget

    if epsilon is None and rho is None:
        raise UsageError(
            "`--epsilon` or `--rho` must be given; got neither. Give a budget, such as --epsilon 1."
        )
    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    if max(epsilon or 0.0, rho or 0.0) > _LARGE_BUDGET:
        note(f"warning: {budget} protects hardly anyone. Budgets of 0.1 to 10 are usual.")
    if delta is not None and delta > _LARGE_DELTA:
        note(
            f"warning: a delta of {delta:g} allows a mechanism that publishes each record with "
            "that probability. Choose it well below one in the number of records, such as 1e-9."
        )
    return budget


def note_noise(stddev: float | None, n_records: float | None) -> None:
    """Warn where the noise on a count is as large as a good part of the table."""
    if stddev is not None and n_records and stddev > _LARGE_NOISE * n_records:
        note(
            f"warning: the noise on a count has a standard deviation of {stddev:,.3g}, beside "
            f"{n_records:,.0f} records: most answers will be noise. Ask for fewer or smaller sets "
            "of columns, or take a larger budget."
        )


def note_not_mixed(fit: FitSummary | None) -> None:
    """Warn where the records of a model have not mixed."""
    from juncture.fit.summary import Status

    if fit is not None and fit.status is Status.NOT_MIXED:
        note(f"warning: the model's records have not mixed. {fit.status.explanation}")
        note(f"  {fit.status.advice}")


def open_ledger(path: Path, what: str = "--ledger") -> Ledger:
    """An existing ledger."""
    from juncture.privacy.ledger import Ledger

    require_file(path, what)
    return Ledger(path)


def parse_neighbours(name: NeighbourName | None) -> Neighbours | None:
    """The neighbours that the option gives, or None."""
    from juncture.privacy.accounting import Neighbours

    if name is None:
        return None
    return Neighbours.REPLACE if name is NeighbourName.REPLACE else Neighbours.ADD_OR_REMOVE
