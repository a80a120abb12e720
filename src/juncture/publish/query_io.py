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
    Moments,
    Prefix,
    Subset,
    Total,
    WeightedSum,
)
from juncture.tables.queries.products import Kron, Query, Scaled, Stack

QueryDict = dict[str, Any]

_PLAIN: dict[str, type[Block]] = {
    "identity": Identity,
    "total": Total,
    "prefix": Prefix,
    "all ranges": AllRanges,
}


def to_dict(query: Query, arrays: list[Vector]) -> QueryDict:  # noqa: C901, PLR0911
    """A query as plain data; matrices are appended to the arrays."""
    for name, kind in _PLAIN.items():
        if type(query) is kind:
            return {"kind": name}
    match query:
        case Subset():
            return {"kind": "subset", "codes": list(query.codes)}
        case WeightedSum():
            return {"kind": "mean", "values": _to_list(query.values)}
        case Moments():
            return {"kind": "moments", "count": query.count, "values": _to_list(query.values)}
        case Buckets():
            return {"kind": "buckets", "assignment": list(query.assignment)}
        case Matrix():
            arrays.append(_dense(query).reshape(-1))
            shape = list(map(int, query.entries.shape))
            return {"kind": "matrix", "shape": shape, "array": len(arrays) - 1}
        case Kron():
            parts = [[name, to_dict(block, arrays)] for name, block in query.blocks.items()]
            return {"kind": "kron", "blocks": parts}
        case Stack():
            return {"kind": "stack", "queries": [to_dict(part, arrays) for part in query.queries]}
        case Scaled():
            return {"kind": "scaled", "weight": query.weight, "query": to_dict(query.query, arrays)}
        case _:
            raise InvalidInput(
                f"`query` must be made of Juncture's own blocks to be saved; got {query!r}. "
                "Write it as Matrix(entries)."
            )


def from_dict(text: QueryDict, arrays: list[Vector]) -> Query:  # noqa: C901, PLR0911
    """The query that `to_dict` wrote."""
    kind = text["kind"]
    if kind in _PLAIN:
        return _PLAIN[kind]()
    match kind:
        case "subset":
            return Subset(text["codes"])
        case "mean":
            return WeightedSum(_to_tuple(text["values"]))
        case "moments":
            return Moments(int(text["count"]), _to_tuple(text["values"]))
        case "buckets":
            return Buckets(text["assignment"])
        case "matrix":
            rows, columns = map(int, text["shape"])
            return Matrix(arrays[_check_index(text["array"])].reshape(rows, columns))
        case "kron":
            blocks = {str(name): from_dict(part, arrays) for name, part in text["blocks"]}
            if not all(isinstance(block, Block) for block in blocks.values()):
                raise ValueError(kind)
            return Kron(blocks)  # type: ignore[arg-type]
        case "stack":
            return Stack([from_dict(part, arrays) for part in text["queries"]])
        case "scaled":
            return Scaled(float(text["weight"]), from_dict(text["query"], arrays))
        case _:
            raise ValueError(kind)


def _dense(query: Matrix) -> Vector:
    entries = query.entries
    if isinstance(entries, np.ndarray):
        return np.asarray(entries, dtype=np.float64)
    return query.matrix(int(entries.shape[1]))


def _to_list(values: tuple[float, ...] | None) -> list[float] | None:
    return None if values is None else list(map(float, values))


def _to_tuple(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(map(float, values))


def _check_index(index: object) -> int:
    if not isinstance(index, int) or index < 0:
        raise ValueError(index)
    return index
