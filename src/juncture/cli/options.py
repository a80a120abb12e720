"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from juncture.cli.console import UsageError, note, require_file
from juncture.errors import InvalidInput

if TYPE_CHECKING:
    from juncture.privacy.accounting import Budget, Neighbours
    from juncture.privacy.ledger import Ledger
    from juncture.tables.domain import Clique, Domain
    from juncture.tables.workload import Workload


# Beyond this epsilon or rho, an outcome tells almost anything about anybody.
_LARGE_BUDGET = 50.0


class MechanismName(StrEnum):
    """The mechanisms, as the command line calls them."""

    HDMM = "hdmm"
    MWEM = "mwem"
    PRIVBAYES = "privbayes"
    DUALQUERY = "dualquery"


class NeighbourName(StrEnum):
    """Which tables must not be told apart, as the command line calls them."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file (.jct).")]
DataFile = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="The private table: a CSV or Parquet file, or a folder."),
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
        help="What may be spent: less protects more; 0.1 to 10 is usual.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="With --epsilon: the probability that the promise fails, far below one in the number "
        "of records. Buys Gaussian noise, which is less when much is measured.",
    ),
]
Rho = Annotated[
    float | None,
    typer.Option(
        "--rho", metavar="NUMBER", help="Instead of an epsilon: a rho of zCDP, with Gaussian noise."
    ),
]
MechanismOption = Annotated[
    MechanismName | None,
    typer.Option(
        "--mechanism",
        "-m",
        metavar="NAME",
        help="What decides what to measure: hdmm, mwem, privbayes or dualquery; see above. Else "
        "hdmm, or mwem where a model of all that is asked for would be too large.",
    ),
]
Marginals = Annotated[
    int | None,
    typer.Option("--marginals", metavar="K", help="Ask for every set of K columns."),
]
Cliques = Annotated[
    str | None,
    typer.Option(
        "--cliques",
        metavar="NAMES",
        help="Ask for these sets of columns: names between commas, sets between semicolons.",
    ),
]
Triples = Annotated[
    int | None,
    typer.Option(
        "--triples", metavar="N", min=1, help="Ask for N sets of three columns, at random."
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="NUMBER", min=0, max=2**32 - 1, help="Which random sets --triples takes."
    ),
]
NeighboursOption = Annotated[
    NeighbourName | None,
    typer.Option(
        "--neighbours",
        metavar="KIND",
        help="What is protected: add-remove (one record there or not; the default) or replace "
        "(what one record says; the number of records is then public).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


@dataclass(frozen=True)
class WorkloadOptions:
    """The workload as the options say it."""

    marginals: int | None = None
    cliques: str | None = None
    triples: int | None = None
    seed: int = 0

    def build(self, domain: Domain) -> Workload:
        """The workload over a domain; every pair of columns when nothing was said."""
        from juncture.tables.workload import Workload

        stated = [v for v in (self.marginals, self.cliques, self.triples) if v is not None]
        if len(stated) > 1:
            raise UsageError(
                "`--marginals`, `--cliques` and `--triples` must not be mixed; got several. "
                "Choose one of them."
            )
        if self.cliques is not None:
            return Workload.of_marginals(domain, parse_cliques(self.cliques, domain))
        if self.triples is not None:
            return Workload.random_marginals(domain, self.triples, 3, rng=self.seed)
        columns = min(2, len(domain)) if self.marginals is None else self.marginals
        if not 1 <= columns <= len(domain):
            raise InvalidInput(
                f"`--marginals` must be between 1 and the {len(domain)} columns; got {columns}. "
                "Two or three are usual."
            )
        return Workload.all_marginals(domain, columns)


def choose_mechanism(name: MechanismName | None, workload: Workload) -> MechanismName:
    """What was asked for; else one that can serve the workload within memory."""
    if name is not None:
        return name
    from juncture.engine.plan import Plan
    from juncture.errors import ModelTooLarge

    try:
        Plan.build(workload.domain, workload.cliques)
    except ModelTooLarge:
        note(
            "a model of everything asked for would be too large: mwem measures what matters most. "
            "Ask for fewer columns together to have all of it."
        )
        return MechanismName.MWEM
    return MechanismName.HDMM


def parse_cliques(text: str, domain: Domain) -> list[Clique]:
    """Sets of names from `a,b;c,d`."""
    cliques = [parse_names(part) for part in text.split(";") if part.strip()]
    if not cliques:
        raise InvalidInput("`--cliques` must name columns; got none. Write them as 'a,b;c,d'.")
    return [domain.canonical(clique) for clique in cliques]


def parse_names(text: str) -> Clique:
    """Names from `a,b`; a name with a comma in it stands in double quotes."""
    (row,) = list(csv.reader([text.strip()], skipinitialspace=True)) or [[]]
    return tuple(name.strip() for name in row if name.strip())


def make_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """The budget that the options say."""
    from juncture.privacy.accounting import Budget

    if epsilon is None and rho is None:
        raise UsageError(
            "`--epsilon` or `--rho` must be given. Say what may be spent, such as --epsilon 1."
        )
    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    if max(epsilon or 0.0, rho or 0.0) > _LARGE_BUDGET:
        note(f"warning: {budget} protects hardly anybody. 0.1 to 10 is usual.")
    return budget


def open_ledger(path: Path, what: str = "--ledger") -> Ledger:
    """A ledger that exists."""
    from juncture.privacy.ledger import Ledger

    require_file(path, what)
    return Ledger(path)


def resolve_neighbours(ledger: Ledger, name: NeighbourName | None) -> Neighbours:
    """The neighbours of a ledger, which the option must not contradict."""
    if name is not None and parse_neighbours(name) is not ledger.neighbours:
        raise InvalidInput(
            f"`--neighbours` must be those of the ledger ({ledger.neighbours}); got {name}. Leave "
            "the option out, or begin another ledger."
        )
    return ledger.neighbours


def parse_neighbours(name: NeighbourName | None) -> Neighbours:
    """The neighbours that the option says."""
    from juncture.privacy.accounting import Neighbours

    return Neighbours.REPLACE if name is NeighbourName.REPLACE else Neighbours.ADD_OR_REMOVE
