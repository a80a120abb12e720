"""Write the tables of docs/tiers.md: Tiers beside AIM, and what each of its parts is worth.

Their figures come from the kept rows of the experiments `adaptive` and `ablation`. They stand
between two marks on the page; the rest of it is written by people. A test compares the page with
what it would be.
"""

from __future__ import annotations

from statistics import mean

from build_benchmarks import ROOT, Row, read_rows
from page_parts import PagePart

PART = PagePart(ROOT / "docs" / "tiers.md", "tables", "build_tiers.py")
EPSILONS = ("0.3", "1", "3")
KINDS = {"2": "pairs", "3": "triples"}
WHOLE = "the whole"
# A run with an error of more than so many times AIM's is behind.
BEHIND = 1.03
Errors = dict[tuple[str, ...], float]


def main() -> None:
    """Write the page with fresh tables."""
    PART.write(render_tables())


def render_tables() -> str:
    """The tables, with what they show."""
    return f"""The error of `Tiers` over AIM's by epsilon, the mean of so many paired seeds:

{render_rivals(read_rows("adaptive"))}

The same on public tables that no rule was made on; they were named before anything was run on them
(`experiments/unseen.py`):

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
    """A line for each kind of marginal: means, and the runs that are behind."""
    lines = []
    for k, kind in KINDS.items():
        own = [row for row in rows if row["k"] == k]
        if not own:
            continue
        errors = _read_errors(own, "mechanism", ("data", "epsilon", "seed"))
        ratios = {key: x / errors["aim"][key] for key, x in errors["tiers"].items()}
        by_epsilon = [[x for key, x in ratios.items() if key[1] == e] for e in EPSILONS]
        means = (f"{mean(each):.2f} ({len(each)})" if each else "" for each in by_epsilon)
        behind = sum(ratio > BEHIND for ratio in ratios.values())
        n_tables = len({row["data"] for row in own})
        words = f"{n_tables} tables, {kind}"
        lines.append((words, *means, f"{behind} of {len(ratios)}", f"{max(ratios.values()):.2f}"))
    return _lay_out(("", *EPSILONS, f"above {BEHIND}", "largest"), lines)


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
