"""Queries as plain data for a file: names and numbers, and arrays for matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from juncture.errors import InvalidInput
from juncture.tables.layout import Vector
from juncture.tables.queries.blocks import (
    AllRanges,
    Block,
    Buckets,
    Identity,
    Matrix,
    Mean,
    Moments,
    Prefix,
    Subset,
    Total,
)
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

Text = dict[str, Any]

_PLAIN: dict[str, type[Block]] = {
    "identity": Identity,
    "total": Total,
    "prefix": Prefix,
    "all ranges": AllRanges,
}


def written(query: Query, arrays: list[Vector]) -> Text:  # noqa: C901, PLR0911
    """A query as data; matrices are added to the arrays."""
    for name, kind in _PLAIN.items():
        if type(query) is kind:
            return {"kind": name}
    match query:
        case Subset():
            return {"kind": "subset", "codes": list(query.codes)}
        case Mean():
            return {"kind": "mean", "values": _listed(query.values)}
        case Moments():
            return {"kind": "moments", "count": query.count, "values": _listed(query.values)}
        case Buckets():
            return {"kind": "buckets", "assignment": list(query.assignment)}
        case Matrix():
            arrays.append(_dense(query).reshape(-1))
            shape = list(map(int, query.entries.shape))
            return {"kind": "matrix", "shape": shape, "array": len(arrays) - 1}
        case Kron():
            parts = [[name, written(block, arrays)] for name, block in query.blocks.items()]
            return {"kind": "kron", "blocks": parts}
        case Stack():
            return {"kind": "stack", "queries": [written(part, arrays) for part in query.queries]}
        case Scaled():
            return {"kind": "scaled", "weight": query.weight, "query": written(query.query, arrays)}
        case _:
            raise InvalidInput(
                f"`query` must be made of Juncture's own blocks to be saved; got {query!r}. "
                "Write it as Matrix(entries)."
            )


def read(text: Text, arrays: list[Vector]) -> Query:  # noqa: C901, PLR0911
    """The query that was written."""
    kind = text["kind"]
    if kind in _PLAIN:
        return _PLAIN[kind]()
    match kind:
        case "subset":
            return Subset(text["codes"])
        case "mean":
            return Mean(_tuple(text["values"]))
        case "moments":
            return Moments(int(text["count"]), _tuple(text["values"]))
        case "buckets":
            return Buckets(text["assignment"])
        case "matrix":
            rows, columns = map(int, text["shape"])
            return Matrix(arrays[_place(text["array"])].reshape(rows, columns))
        case "kron":
            blocks = {str(name): read(part, arrays) for name, part in text["blocks"]}
            if not all(isinstance(block, Block) for block in blocks.values()):
                raise ValueError(kind)
            return Kron(blocks)  # type: ignore[arg-type]
        case "stack":
            return Stack([read(part, arrays) for part in text["queries"]])
        case "scaled":
            return Scaled(float(text["weight"]), read(text["query"], arrays))
        case _:
            raise ValueError(kind)


def _dense(query: Matrix) -> Vector:
    entries = query.entries
    if isinstance(entries, np.ndarray):
        return np.asarray(entries, dtype=np.float64)
    return query.matrix(int(entries.shape[1]))


def _listed(values: tuple[float, ...] | None) -> list[float] | None:
    return None if values is None else list(map(float, values))


def _tuple(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(map(float, values))


def _place(place: object) -> int:
    if not isinstance(place, int) or place < 0:
        raise ValueError(place)
    return place
