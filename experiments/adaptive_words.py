"""The page's sections on mechanisms that choose what they measure, from the kept rows alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ablation import EPSILON, WHOLE
from adaptive import MAX_CELLS, MAX_COLUMNS, MAX_MARGINALS
from learning import MANY, REAL
from public_tables import LOOKED_AT, PACKAGES, UNTOUCHED
from rivals import OURS, PEERS, REFERENCE
from store import Row
from summary import medians, of, table, values

Line = tuple[object, ...]
KINDS = {"2": "pairs", "3": "triples"}


def describe_adaptive(rows: list[Row]) -> str:
    """Errors beside AIM's at the same seeds, then what they cost."""
    keys = _list_keys(rows, ("data", "k", "epsilon"))
    names = [name for name in (*OURS, *PEERS) if of(rows, mechanism=name)]
    places = [f"{data}, {KINDS[k]}, {epsilon}" for data, k, epsilon in keys]
    errors, ratios, drawn, costs = [], [], [], []
    for place, (data, k, epsilon) in zip(places, keys, strict=True):
        here = of(rows, data=data, k=k, epsilon=epsilon)
        base = of(here, mechanism=REFERENCE)
        cells = [of(here, mechanism=name) for name in names]
        errors.append((place, *(_show_errors(each) for each in cells)))
        ratios.append((place, *(_show_ratio(each, base, "error") for each in cells)))
        drawn.append((place, *(_show_ratio(each, base, "records_error") for each in cells)))
        costs.append((place, *(_show_cost(each) for each in cells)))
    head = ("table, marginals, epsilon", *names)
    parts = [
        f"""## 11. Mechanisms that choose what they measure (`adaptive`)

Delta is 1e-6, and neighbours differ by one record. The workload is every pair or every triple of
the table; where it has more than {MAX_COLUMNS} columns, {MAX_MARGINALS} of the triples with at most
{MAX_CELLS:,} cells each, drawn with a fixed seed. The error is the mean total variation distance
over the workload's marginals of at most {MAX_CELLS:,} cells ({MAX_MARGINALS} of them, drawn with a
fixed seed, where there are more). Seeds are paired: a mechanism's figure is divided by that of
`{REFERENCE}` at the same seed, and the mean of these ratios stands beside its standard error. Below
1 is better.
`parities`, `flags` and `independent` are made up from a seed (`experiments/made_up.py`): triples
that no pair shows, sixteen columns of two values that all depend a little, and twelve columns that
do not. Tables of other names are public ones, read from CSV files by one rule
(`experiments/other_tables.py`); put your own beside them. What `tiers` was tuned on says its page.

{_describe_peers(rows)}

### Error beside `{REFERENCE}` at the same seeds, from the model

{table(head, ratios)}

### The same, from as many synthetic records as the table has

{table(head, drawn)}

### Mean errors, from the model / from synthetic records, and the number of seeds

{table(head, errors)}

### Median seconds of processors, and peak memory

Until the synthetic records are there; a peer's hold what it compiles. Rows that are not of `tiers`
were made before records of tree models were halved, which takes seconds and brings records nearer
to the model, and before `aim` left out sets that noise would drown. The memory is that of a whole
process, with what reading the table takes: on small tables, most of it.

{table(head, costs)}""",
        _describe_stuck(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def _describe_peers(rows: list[Row]) -> str:
    kept = [name for name in PEERS if of(rows, mechanism=name)]
    missing = [name for name in PEERS if name not in kept]
    words = []
    if kept:
        words.append(
            f"{', '.join(kept)}: with the peer's defaults and the same rho as ours, driven by "
            "`experiments/peers.py`. It draws as many records as its model counts, which is the "
            "table's number but for noise."
        )
    if PEERS[0] in kept:
        words.append(
            "dpsynth's AIM chooses as if its score were monotonic, which it is not, and so can "
            "cost 1.27 times the rho that it is charged; here its choices are made with half that "
            "exponent, which is what the charge pays for."
        )
    if missing:
        words.append(
            f"{', '.join(missing)}: no row is kept. dpsynth is on no package index; `make "
            "reproduce` installs it from its public repository, and where that cannot be reached, "
            "its rows stay as they are: those that are here come from an earlier run of "
            "`experiments/peers.py`, one seed each. Where no peer stands "
            "beside ours, nothing is claimed about it."
        )
    return " ".join(words)


def describe_learning(rows: list[Row]) -> str:
    """The classifier's areas, by mechanism."""
    names = [name for name in (*OURS, *PEERS) if of(rows, mechanism=name)]
    as_many: list[Line] = []
    more: list[Line] = []
    for data, asked, epsilon in _list_keys(rows, ("data", "workload", "epsilon")):
        here = of(rows, data=data, workload=asked, epsilon=epsilon)
        if asked:
            place, cells = f"{data}, {asked}, {epsilon}", [of(here, mechanism=n) for n in names]
            as_many.append((place, *(_show_mean(each, "auc") for each in cells)))
            more.append((place, *(_show_mean(each, "auc_many") for each in cells)))
    head = ("table, workload, epsilon", *names)
    tables = "; ".join(map(_describe_table, _group(rows, "data")))
    parts = [
        f"""## 12. What synthetic records teach a classifier (`learning`)

A mechanism sees three quarters of the records; gradient boosting (scikit-learn's
HistGradientBoostingClassifier with its defaults) learns from synthetic ones, and predicts a column
of the real records held out. Figures are the mean area under the ROC curve with its
standard error; the split differs by seed and is the same for all. Delta is 1e-6.
The tables: {tables}.
`bank` is the table of a bank's telephone marketing, which mechanisms were tuned on.

### As many synthetic records as the mechanism saw

{table(head, as_many)}

### {MANY} times as many

More records cost no privacy, and a classifier takes fewer of their accidents for patterns.

{table(head, more)}""",
        _describe_stuck(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def _group(rows: list[Row], column: str) -> list[list[Row]]:
    return [of(rows, **{column: each}) for each in dict.fromkeys(row[column] for row in rows)]


def _describe_table(rows: list[Row]) -> str:
    """What is predicted, and how well the real records that the mechanisms saw do it."""
    first, real = rows[0], _show_mean(of(rows, mechanism=REAL), "auc")
    many = f"{int(first['held_out']):,} held out"
    return f"{first['data']}, `{first['target']}`, {many}, with real records {real}"


def describe_ablation(rows: list[Row]) -> str:
    """Errors without each part, beside the whole at the same seeds."""
    data = list(dict.fromkeys(row["data"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    lines: list[Line] = []
    for variant in variants:
        cells: list[object] = []
        for name in data:
            here = of(rows, data=name, variant=variant)
            figures = values(here, "error")
            mean = f"{statistics.mean(figures):.4f} ({len(figures)})" if figures else ""
            whole = of(rows, data=name, variant=WHOLE)
            cells += [mean, _show_ratio(here, whole, "error") if figures else _explain_gap(here)]
        lines.append((variant, *cells))
    head = ["Tiers", *(column for name in data for column in (name, "beside the whole"))]
    return f"""## 13. What each part of Tiers is worth (`ablation`)

All triples at epsilon {EPSILON:g}, delta 1e-6: the mean error of the model (and the number of
seeds), and its mean ratio to the whole mechanism's at the same seeds, with its standard error.
Above 1, the part that is missing is worth something. A part without a setting is taken out by
putting another function or number in its place (`experiments/ablation.py`).

{table(head, lines)}"""


def describe_unseen(rows: list[Row]) -> str:
    """Ratios of errors by table, and how they are spread."""
    keys = _list_keys(rows, ("data", "k"))
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    lines = []
    for data, k in keys:
        here = of(rows, data=data, k=k)
        cells = [_compare_with_aim(of(here, epsilon=epsilon)) for epsilon in epsilons]
        package = f"{PACKAGES[data]}/" if data in PACKAGES else ""
        lines.append((f"{package}{data}, {KINDS[k]}", *cells))
    groups = {"that no rule was made on": UNTOUCHED, "that one rule was found on": LOOKED_AT}
    spread = "\n".join(
        f"- {len(names)} tables {words}, {KINDS[k]}: {_spread_words(own)}"
        for words, names in groups.items()
        for k in KINDS
        if (own := [row for row in of(rows, k=k) if row["data"] in names])
    )
    return f"""## 15. Tiers on public tables (`unseen`)

The error of `{OURS[0]}` over that of `{REFERENCE}` at the same seeds, as in section 11: the mean,
its standard error where there are several seeds, and their number. The tables were named before
anything was run on them; where they come from says `experiments/public_tables.py`. The rule that
was found on some is that columns are counted once.

{spread}

{table(("table, marginals", *epsilons), lines)}"""


def _compare_with_aim(rows: list[Row]) -> str:
    ratios = list_ratios(rows)
    return f"{_show(ratios, 2)} ({len(ratios)})" if ratios else _explain_gap(rows)


def list_ratios(rows: list[Row]) -> list[float]:
    """The errors of Tiers over AIM's, wherever both ran."""
    done = [row for row in rows if row.get("error")]
    base = {_name_place(row): float(row["error"]) for row in of(done, mechanism=REFERENCE)}
    ours = [row for row in of(done, mechanism=OURS[0]) if _name_place(row) in base]
    return [float(row["error"]) / base[_name_place(row)] for row in ours]


def _name_place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ("data", "k", "epsilon", "seed"))


def _spread_words(rows: list[Row]) -> str:
    ratios = list_ratios(rows)
    means = [
        statistics.mean(found)
        for data, epsilon in _list_keys(rows, ("data", "epsilon"))
        if (found := list_ratios(of(rows, data=data, epsilon=epsilon)))
    ]
    if not ratios:
        return "no row is kept."
    above, behind = (sum(each > 1.03 for each in figures) for figures in (ratios, means))
    return (
        f"mean {statistics.mean(ratios):.2f} over {len(ratios)} pairs of runs, {above} of them "
        f"above 1.03, the largest {max(ratios):.2f}; of the {len(means)} means of seeds, {behind} "
        f"above 1.03, the largest {max(means):.2f}."
    )


def _list_keys(rows: list[Row], columns: Sequence[str]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(row[name] for name in columns) for row in rows))


def _show_ratio(rows: list[Row], base: list[Row], column: str) -> str:
    """The mean of ratios at equal seeds, and its standard error."""
    below = {row["seed"]: float(row[column]) for row in base if row.get(column)}
    ratios = [
        float(row[column]) / below[row["seed"]]
        for row in rows
        if row.get(column) and row["seed"] in below
    ]
    return _show(ratios, 3) if ratios else _explain_gap(rows)


def _show_mean(rows: list[Row], column: str) -> str:
    figures = values(rows, column)
    return _show(figures, 4) if figures else _explain_gap(rows)


def _show(figures: Sequence[float], digits: int) -> str:
    mean = f"{statistics.mean(figures):.{digits}f}"
    if len(figures) < 2:
        return mean
    return f"{mean} ± {statistics.stdev(figures) / len(figures) ** 0.5:.{digits}f}"


def _show_errors(rows: list[Row]) -> str:
    figures = values(rows, "error")
    if not figures:
        return _explain_gap(rows)
    drawn = statistics.mean(values(rows, "records_error"))
    return f"{statistics.mean(figures):.4f} / {drawn:.4f} ({len(figures)})"


def _show_cost(rows: list[Row]) -> str:
    busy, peak = medians(rows, "busy"), medians(_list_finished(rows), "peak_mb")
    if busy is None or peak is None:
        return _explain_gap(rows)
    return f"{busy:.3g} s, {peak:.0f} MB"


def _list_finished(rows: list[Row]) -> list[Row]:
    """The rows of runs that came to their end."""
    return [row for row in rows if not row.get("reason")]


def _explain_gap(rows: list[Row]) -> str:
    return "cannot run" if any(row.get("reason") for row in rows) else ""


def _describe_stuck(rows: list[Row]) -> str:
    """Why some could not run: each reason once, with where it holds."""
    where: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("reason"):
            kind = row.get("workload") or KINDS.get(row.get("k", ""), "")
            place = f"{row['data']}, {kind}, {row['epsilon']}"
            places = where.setdefault((row["mechanism"], row["reason"]), [])
            if place not in places:
                places.append(place)
    if not where:
        return ""
    lines = [(name, "; ".join(places), why) for (name, why), places in where.items()]
    return f"### What could not run\n\n{table(('mechanism', 'where', 'reason'), lines)}"
