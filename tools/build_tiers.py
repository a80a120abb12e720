"""Write the tables of docs/tiers.md: Tiers beside AIM, and what each of its parts is worth.

Their figures come from the kept rows of the experiments `adaptive`, `unseen` and `ablation`. They
stand between two marks on the page; the rest of it is written by people. A test compares the page
with what it would be.
"""

from __future__ import annotations

import sys
from statistics import mean

from build_benchmarks import ROOT, Row, read_rows
from page_parts import PagePart

sys.path.append(str(ROOT / "experiments"))
from public_tables import LOOKED_AT, UNTOUCHED

PART = PagePart(ROOT / "docs" / "tiers.md", "tables", "build_tiers.py")
EPSILONS = ("0.3", "1", "3")
KINDS = {"2": "pairs", "3": "triples"}
WHOLE = "the whole"
# A table with a mean error of more than so many times AIM's is behind.
BEHIND = 1.03
Errors = dict[tuple[str, ...], float]


def main() -> None:
    """Write the page with fresh tables."""
    PART.write(render_tables())


def render_tables() -> str:
    """The tables, with what they show."""
    return f"""The error of `Tiers` over AIM's by epsilon, the mean of so many paired seeds:

{render_rivals(read_rows("adaptive"))}

The same on public tables, which were named before anything was run on them
(`experiments/public_tables.py`), with the number of runs. A mean is that of a table's runs at an
epsilon:

{render_unseen(read_rows("unseen"))}

The error over all triples at epsilon 1 without a part of `Tiers`, over that of the whole at the
same seeds. Above 1, the part is worth something there:

{render_parts(read_rows("ablation"))}
"""


def render_rivals(rows: list[Row]) -> str:
    """A line for each table and kind of marginal."""
    errors = _read_errors(rows, "mechanism", ("data", "k", "epsilon", "seed"))
    lines = [
        (f"{data}, {kind}", *(_compare(errors, "tiers", "aim", (data, k, e)) for e in EPSILONS))
        for data in dict.fromkeys(row["data"] for row in rows)
        for k, kind in KINDS.items()
    ]
    return _lay_out(("table", *EPSILONS), [line for line in lines if any(line[1:])])


def render_unseen(rows: list[Row]) -> str:
    """A line for each group of tables and kind of marginal: means, and the cells behind."""
    lines = []
    groups = {"no rule was made on": UNTOUCHED, "one rule was found on": LOOKED_AT}
    for words, names in groups.items():
        for k, kind in KINDS.items():
            own = [row for row in rows if row["k"] == k and row["data"] in names]
            if own:
                lines.append((f"{kind} of {len(names)} tables that {words}", *_spread(own)))
    return _lay_out(("", *EPSILONS, f"means above {BEHIND}", "largest"), lines)


def _spread(rows: list[Row]) -> tuple[str, ...]:
    """The mean ratio at each epsilon with the number of runs; how many tables are behind, on mean.

    A single run's ratio is mostly chance: a table's at an epsilon is the mean over its seeds.
    """
    errors = _read_errors(rows, "mechanism", ("data", "epsilon", "seed"))
    cells = dict[tuple[str, ...], list[float]]()
    for key, x in errors["tiers"].items():
        if key in errors["aim"]:
            cells.setdefault(key[:2], []).append(x / errors["aim"][key])
    by_epsilon = ([x for key, each in cells.items() if key[1] == e for x in each] for e in EPSILONS)
    means = [mean(each) for each in cells.values()]
    behind = sum(each > BEHIND for each in means)
    return (
        *(f"{mean(each):.2f} ({len(each)})" if each else "" for each in by_epsilon),
        f"{behind} of {len(means)}",
        f"{max(means):.2f}",
    )


def render_parts(rows: list[Row]) -> str:
    """A line for each part that was taken out."""
    errors = _read_errors(rows, "variant", ("data", "seed"))
    data = list(dict.fromkeys(row["data"] for row in rows))
    lines = [
        (variant, *(_compare(errors, variant, WHOLE, (name,)) for name in data))
        for variant in errors
        if variant != WHOLE
    ]
    return _lay_out(("change", *data), lines)


def _read_errors(rows: list[Row], name: str, keys: tuple[str, ...]) -> dict[str, Errors]:
    """The errors of each mechanism or variant, by what else tells rows apart."""
    errors: dict[str, Errors] = {row[name]: {} for row in rows}
    for row in rows:
        if row["error"]:
            errors[row[name]][tuple(row[key] for key in keys)] = float(row["error"])
    return errors


def _compare(errors: dict[str, Errors], one: str, other: str, place: tuple[str, ...]) -> str:
    """The mean ratio at the seeds that both have, and their number."""
    base = errors[other]
    shared = [key for key in errors[one] if key[:-1] == place and key in base]
    ratios = [errors[one][key] / base[key] for key in shared]
    return f"{mean(ratios):.2f} ({len(ratios)})" if ratios else ""


def _lay_out(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    rule = ("---", *("---:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


if __name__ == "__main__":
    main()
