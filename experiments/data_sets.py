"""Table 1: the data sets and the sizes of their workloads."""

from __future__ import annotations

import math

from context import Cell, Context, Experiment, Rows
from paper_data import load

# Attributes, records, queries as the paper prints them.
PRINTED = {
    "titanic": (9, 1304, 4851),
    "adult": (15, 48842, 62876),
    "loans": (48, 42535, 362201),
    "stroke": (110, 19434, 17716),
}


def cells(context: Context) -> list[Cell]:
    """One for each data set."""
    return [{"data": name} for name in context.data]


def run(cell: Cell, context: Context) -> Rows:
    """Count what there is."""
    data = load(cell["data"], context.folder)
    printed = PRINTED.get(data.name, ("", "", ""))
    return [
        {
            "data": data.name,
            "records": data.n_records,
            "attributes": len(data.domain),
            "log10_domain": sum(math.log10(size) for size in data.domain.values()),
            "queries": data.workload.n_queries,
            "printed_attributes": printed[0],
            "printed_records": printed[1],
            "printed_queries": printed[2],
        }
    ]


EXPERIMENT = Experiment("data_sets", "Data sets and workloads", cells, run)
