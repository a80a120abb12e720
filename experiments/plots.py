"""The experiments' plots, as SVG and PNG, from the kept results alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from figures import RECORDED
from store import Row
from summary import medians, number, of

mpl.use("Agg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "juncture",  # the same bytes for the same figures
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "axes.axisbelow": True,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
    }
)
import matplotlib.pyplot as plt  # noqa: E402  after its backend is chosen
from matplotlib.ticker import FuncFormatter  # noqa: E402

# Told apart also without colour sight.
COLOURS = ("#14708a", "#d98032", "#5b3a8c", "#9aa5b1", "#222222", "#b8446f")
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_all(results: dict[str, list[Row]], folder: Path) -> dict[str, Path]:
    """Every plot whose results are there, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    plots: dict[str, Callable[[list[Row]], Any]] = {
        "grid": _grid, "sweep": _sweep, "scaling": _scaling, "losses": _losses,
        "stopping": _stopping, "any_width": _any_width,
    }  # fmt: skip
    for name, draw in plots.items():
        if results.get(name):
            figure = draw(results[name])
            for panel in figure.axes:
                _plain_numbers(panel)
            for ending in ("svg", "png"):
                metadata = {"Date": None} if ending == "svg" else {"Software": None}
                figure.savefig(folder / f"{name}.{ending}", dpi=140, metadata=metadata)
            plt.close(figure)
            made[name] = folder / f"{name}.svg"
    return made


def _plain_numbers(panel: Any) -> None:  # noqa: ANN401
    """0.2 instead of 2 times a power of ten, and not too many of them."""
    for axis in (panel.xaxis, panel.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(FuncFormatter(_minor))


def _minor(value: float, _place: int) -> str:
    digit = f"{value:e}"[0]
    return f"{value:g}" if digit in "25" else ""


def _grid(rows: list[Row]) -> Any:  # noqa: ANN401
    """A panel for each mechanism: recorded and ours, with and without a model."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = plt.subplots(2, 2, figsize=(9, 5.6))
    for panel, mechanism in zip(
        panels.flat, ("PrivBayes", "DualQuery", "MWEM", "HDMM"), strict=True
    ):
        bars = [
            ("recorded, original", [_recorded(mechanism, "original", n) for n in names]),
            ("ours, original", _ours(rows, mechanism, "original", names)),
            ("recorded, with a model", [_recorded(mechanism, "model", n) for n in names]),
            ("ours, with a model", _ours(rows, mechanism, "model", names)),
        ]
        for place, (label, values) in enumerate(bars):
            at = [i + 0.2 * (place - 1.5) for i in range(len(names))]
            style = {"hatch": "////", "alpha": 0.55} if "recorded" in label else {}
            colour = COLOURS[1] if "original" in label else COLOURS[0]
            panel.bar(at, values, 0.19, label=label, color=colour, edgecolor="white", **style)
        panel.set(title=mechanism, yscale="log", ylabel="workload error")
        panel.set_xticks(range(len(names)), names)
        panel.grid(axis="x", visible=False)
    _shared_legend(figure, panels.flat[0], 4)
    return figure


def _recorded(mechanism: str, form: str, data: str) -> float:
    return RECORDED[mechanism, form].get(data) or 0.0


def _ours(rows: list[Row], mechanism: str, form: str, names: Sequence[str]) -> list[float]:
    found = [of(rows, mechanism=mechanism, form=form, setting="ours", data=n) for n in names]
    return [number(medians(each, "error")) or 0.0 for each in found]


def _sweep(rows: list[Row]) -> Any:  # noqa: ANN401
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4))
    sides = (("workload_error", "on the workload"), ("measurement_error", "on the measurements"))
    for panel, (column, title) in zip(panels, sides, strict=True):
        for place, form in enumerate(dict.fromkeys(row["form"] for row in rows)):
            _line(panel, of(rows, form=form), "epsilon", column, place, form)
        panel.set(title=title, xscale="log", yscale="log", xlabel="epsilon", ylabel="error")
    _shared_legend(figure, panels[0], 2)
    return figure


def _scaling(rows: list[Row]) -> Any:  # noqa: ANN401
    figure, panel = plt.subplots(figsize=(6.5, 3.8))
    for place, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        done = [row for row in of(rows, method=method) if row.get("seconds")]
        _line(panel, done, "attributes", "seconds", place, method)
    panel.set(xscale="log", yscale="log", xlabel="attributes", ylabel="seconds per iteration")
    panel.legend()
    return figure


def _losses(rows: list[Row]) -> Any:  # noqa: ANN401
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2))
    sides = (("l1", "mean absolute residual"), ("l2", "mean squared residual"),
             ("workload_error", "workload error"))  # fmt: skip
    for panel, (column, title) in zip(panels, sides, strict=True):
        pairs = dict.fromkeys((row["loss"], row["solver"]) for row in rows)
        for place, (loss, solver) in enumerate(pairs):
            label = f"minimising {loss.upper()}, {solver}"
            _line(panel, of(rows, loss=loss, solver=solver), "steps", column, place, label)
        panel.set(title=title, xscale="log", yscale="log", xlabel="steps")
    _shared_legend(figure, panels[0], 3)
    return figure


def _shared_legend(figure: Any, panel: Any, columns: int) -> None:  # noqa: ANN401
    """One for all panels, above them."""
    handles = panel.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=columns)


def _stopping(rows: list[Row]) -> Any:  # noqa: ANN401
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, panel = plt.subplots(figsize=(6.5, 3.2))
    for place, way in enumerate(("to the end", "stop at noise")):
        found = [number(medians(of(rows, data=n, way=way), "error")) or 0.0 for n in names]
        at = [i + 0.36 * (place - 0.5) for i in range(len(names))]
        panel.bar(at, found, 0.34, label=way, color=COLOURS[1 - place])
    panel.set(ylabel="workload error", yscale="log")
    panel.set_xticks(range(len(names)), names)
    panel.grid(axis="x", visible=False)
    panel.legend()
    return figure


def _any_width(rows: list[Row]) -> Any:  # noqa: ANN401
    """Errors along the way of pseudo-marginals, and where records end."""
    pairs = of(rows, part="pairs")
    names = list(dict.fromkeys(row["data"] for row in pairs if row.get("step")))
    figure, panels = plt.subplots(1, len(names), figsize=(4.8 * len(names), 3.4), squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        mine = of(pairs, data=name)
        for place, method in enumerate(dict.fromkeys(row["method"] for row in mine)):
            found = of(mine, method=method)
            steps = list(dict.fromkeys(row.get("step", "") for row in found))
            ends = [of(found, step=step) for step in steps]
            panel.plot(
                [number(medians(each, "busy")) for each in ends],
                [number(medians(each, "triple_error")) for each in ends],
                label=method, color=COLOURS[place], marker=MARKERS[place],
                markersize=9 if steps == [""] else 4, linestyle="none" if steps == [""] else "-",
            )  # fmt: skip
        panel.set(title=name, xscale="log", xlabel="seconds of processors",
                  ylabel="mean total variation, triples")  # fmt: skip
        panel.set_ylim(bottom=0.0)
    _shared_legend(figure, panels[0][0], 3)
    return figure


def _line(panel: Any, rows: list[Row], x: str, y: str, place: int, label: str) -> None:  # noqa: ANN401
    """Medians of one series."""
    at = list(dict.fromkeys(row[x] for row in rows))
    values = [number(medians(of(rows, **{x: each}), y)) for each in at]
    panel.plot(
        [float(each) for each in at], values, label=label, color=COLOURS[place % len(COLOURS)],
        marker=MARKERS[place % len(MARKERS)], markersize=4,
    )  # fmt: skip
