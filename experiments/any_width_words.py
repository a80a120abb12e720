"""The page's sections on fits that no junction tree holds, from the kept rows alone."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from all_pairs import MAX_TRIPLES
from any_width import CONVERGED, EXACT, EXACT_STOPPED, STOPPED
from store import Row
from summary import medians, number, of, spread, table, values

Line = tuple[object, ...]


def describe_any_width(rows: list[Row]) -> str:
    """Errors, the way to them, and agreement with exact fits."""
    pairs, exact, random = (of(rows, part=part) for part in ("pairs", "exact", "random"))
    return f"""## 9. Beyond the paper: fits that no junction tree holds (`any_width`)

All pairs of at most 10,000 cells are measured once, with Gaussian noise and equal shares of
epsilon 1 at delta 1e-6, neighbours differing by a record. Adult and Titanic are in the coding of
AIM's author where their names say so. Errors are mean total variation distances to the truth, over
the measured pairs and over triples (at most {MAX_TRIPLES}, drawn with a fixed seed). *Relaxed* is
the oracle of the 2021 paper, written anew in NumPy: tables of pairs that agree on single
attributes, but belong to no distribution. It and the peer's version of it answer a triple by the
table of maximum entropy with their three pairs, fitted to that triple alone. The loss is the mean
squared residual beside the noise: noise alone makes 1. Times are seconds of processors, because
the machine was busy; the peer's hold what it compiles, which is nearly all of its time until the
first steps below. Its step has no default, so two are tried. The records' number and splits of the
noise are the defaults; *20,000 records*, with one split, are a choice by hand to show what haste
costs.

PICTURE

{table(_PAIRS_HEAD, _list_ends(pairs))}

{_compare(pairs)}

{_list_paths(pairs)}

### Beside exact fits

Where a junction tree fits, both oracles run on the same measurements. The distance is between
their marginals, as the root of the mean square beside the noise; the stated error is what the
records leave to chance by their own account, in the same unit. Stopped at the noise, the two take
different paths and need not end at the same point.

{table(_EXACT_HEAD, _list_exact(exact))}

{_describe_random(random)}"""


_PAIRS_HEAD = (
    "", "seeds", "pairs measured", "error on triples", "on pairs", "loss", "seconds", "memory",
    "records' own error", "ended",
)  # fmt: skip
_EXACT_HEAD = (
    "", "error, exact", "error, records", "records over exact", "distance", "stated error",
    "seconds, exact", "seconds, records",
)  # fmt: skip


def _list_ends(rows: list[Row]) -> list[Line]:
    """A line for each table and method; two where there is a path."""
    lines: list[Line] = []
    for name in _unique(rows, "data"):
        for method in _unique(of(rows, data=name), "method"):
            found = of(rows, data=name, method=method)
            stuck = [row["reason"] for row in found if row.get("reason")]
            steps = [step for step in _unique(found, "step") if step]
            label = f"{name}: {method}"
            if stuck:
                lines.append((label, *[""] * 8, stuck[0]))
            elif not steps:
                status = ", ".join(_unique(found, "status"))
                lines.append((label, *_show_figures(found), status.replace("_", " ").lower()))
            else:
                best = _find_best_step(found, steps)
                for step, words in ((best, "at its best, told by the truth"), (steps[-1], "last")):
                    figures = _show_figures(of(found, step=step))
                    lines.append((label, *figures, f"step {step}, {words}"))
    return lines


def _find_best_step(rows: list[Row], steps: list[str]) -> str:
    return min(steps, key=lambda step: number(medians(of(rows, step=step), "triple_error")))


def _show_figures(rows: list[Row]) -> Line:
    seconds, peak, own = (medians(rows, name) for name in ("busy", "peak_mb", "oracle_error"))
    return (
        len(rows), rows[0]["pairs"], spread(rows, "triple_error"), spread(rows, "pair_error"),
        f"{medians(rows, 'loss'):.3g}", f"{seconds:.3g}", f"{peak:.0f} MB",
        "" if own is None else f"{own:.2f}",
    )  # fmt: skip


def _list_paths(rows: list[Row]) -> str:
    """Errors along the paths, a table for each data set that has some."""
    parts = []
    for name in _unique([row for row in rows if row.get("step")], "data"):
        found = [row for row in of(rows, data=name) if row.get("step")]
        methods = _unique(found, "method")
        lines = [
            (step, *(_show_point(of(found, method=method, step=step)) for method in methods))
            for step in _unique(found, "step")
        ]
        parts.append(f"Triples after some steps, {name}:\n\n{table(('steps', *methods), lines)}")
    return "\n\n".join(parts)


def _show_point(rows: list[Row]) -> str:
    if not rows:
        return ""
    return f"{medians(rows, 'triple_error'):.4f} after {medians(rows, 'busy'):.3g} s"


def _compare(rows: list[Row]) -> str:
    """Records beside each path, table by table."""
    sentences = []
    for name in _unique([row for row in rows if row.get("step")], "data"):
        found = of(rows, data=name)
        records = [row for row in found if not row.get("step")]
        for method in _unique([row for row in found if row.get("step")], "method"):
            words = _compare_path(records, of(found, method=method))
            sentences.append(f"- {name}, {method}: {words}")
    if not sentences:
        return ""
    head = "Records beside the paths of pseudo-marginals (medians over seeds):"
    return "\n".join((head, "", *sentences))


def _compare_path(records: list[Row], path: list[Row]) -> str:
    """Whether a path gets as far as records, and how soon records get as far as the path."""
    fits = {each: _find_point(of(records, method=each)) for each in _unique(records, "method")}
    points = [_find_point(of(path, step=step)) for step in _unique(path, "step")]
    goal, best, last = min(fits.values()), min(points), points[-1]
    reached = [point for point in points if point.error <= goal.error]
    first = (
        f"reaches the records' least error of {goal.error:.4f} after {reached[0].seconds:.3g} s"
        if reached
        else f"never reaches the records' least error of {goal.error:.4f}"
    )
    middle = (
        f"its best is {best.error:.4f} after {best.seconds:.3g} s, "
        f"{best.seconds - points[0].seconds:.3g} s of them after step {path[0]['step']}"
    )
    beside = [
        f"{method}: {fit.error:.4f}, in {_show_share(fit.seconds / best.seconds)} its time"
        for method, fit in fits.items()
        if fit.error <= best.error and method != CONVERGED
    ]
    return f"it {first}; {middle} ({'; '.join(beside)}); its last is {last.error:.4f}."


def _show_share(share: float) -> str:
    return f"{100 * share:.0f} % of" if share < 1.0 else f"{share:.3g} times"


class _Point(NamedTuple):
    error: float
    seconds: float


def _find_point(rows: list[Row]) -> _Point:
    return _Point(number(medians(rows, "triple_error")), number(medians(rows, "busy")))


def _list_exact(rows: list[Row]) -> list[Line]:
    lines: list[Line] = []
    for problem in _unique(rows, "problem"):
        for exact, records, words in (
            (EXACT, CONVERGED, "to convergence"),
            (EXACT_STOPPED, STOPPED, "stopped at the noise"),
        ):
            left, right = (of(rows, problem=problem, method=each) for each in (exact, records))
            pairs = zip(values(right, "triple_error"), values(left, "triple_error"), strict=True)
            ratios = [mine / theirs for mine, theirs in pairs]
            lines.append(
                (f"{rows[0]['data']}, {problem}, {words}", spread(left, "triple_error"),
                 spread(right, "triple_error"), f"{statistics.median(ratios):.4f}",
                 spread(right, "distance"), f"{medians(right, 'oracle_error'):.3f}",
                 f"{medians(left, 'busy'):.3g}", f"{medians(right, 'busy'):.3g}")
            )  # fmt: skip
    return lines


def _describe_random(rows: list[Row]) -> str:
    ratios, distances, stated = (values(rows, name) for name in ("ratio", "distance", "stated"))
    if not ratios:
        return ""
    within = sum(ratio <= 1.01 for ratio in ratios)
    near = sum(left <= right for left, right in zip(distances, stated, strict=True))
    return (
        f"Random small problems, fitted to convergence with 100,000 records: in {within} of "
        f"{len(ratios)} the error on the measured tables is at most 1 % above the exact fit's "
        f"(median ratio {statistics.median(ratios):.4f}, greatest {max(ratios):.4f}). In {near} "
        f"the marginals are within the stated error of the exact ones; the median distance is "
        f"{statistics.median(distances):.3g} of the noise, the greatest {max(distances):.3g}."
    )


def describe_times(rows: list[Row]) -> str:
    """Times by the clock, and how they grow."""
    whole = of(rows, part="table")
    shapes = of(rows, part="shapes")
    lines = [
        (f"{int(row['attributes']):,}", f"{int(row['pairs']):,}", f"{int(row['records']):,}",
         row["threads"], f"{float(row['wall']):.3g}", f"{float(row['busy']):.3g}", row["calls"],
         f"{1e9 * float(row['busy']) / _find_work(row):.2f}", f"{row['peak_mb']} MB",
         row["status"].replace("_", " ").lower())
        for row in shapes
    ]  # fmt: skip
    head = (
        "attributes", "pairs", "records", "threads", "seconds", "of processors", "passes",
        "ns a pass, pair and record", "memory", "ended",
    )  # fmt: skip
    return f"""## 10. The time of fits that no junction tree holds (`any_width_times`)

Records, stopped at the noise, in processes that run alone. The pairs of {whole[0]["data"]} take
{spread(whole, "wall")} seconds by the clock and {spread(whole, "busy")} of processors. Random pairs
of random tables with ten values for each attribute, and the same with a half of each:

{table(head, lines)}"""


def _find_work(row: Row) -> float:
    return float(row["calls"]) * float(row["pairs"]) * float(row["records"])


def _unique(rows: list[Row], column: str) -> list[str]:
    return list(dict.fromkeys(row.get(column, "") for row in rows))
