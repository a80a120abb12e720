"""Records apportioned among the cells of a stage: shares rounded, the sums that matter kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from juncture.engine.compiled.loader import pointer, routine
from juncture.engine.compiled.opcodes import SHARE_BITS
from juncture.model.stages import DrawStage, Integers
from juncture.tables.domain import Clique, Domain
from juncture.tables.records import Codes

# A sum over fewer rows than this is not kept: rounding each row by itself puts it off by one
# record, and each sum that is kept leaves less freedom for the others.
_MIN_ROWS = 4


class KeptSums(NamedTuple):
    """Sums over the rows of a stage, cell by cell, that rounding keeps near their targets.

    A sum is over all rows that agree in some of the known attributes: sum s of a row has the number
    starts[s] plus, for each known attribute, its code times strides[s, attribute].
    """

    strides: Integers
    starts: Integers
    n_groups: int


def choose_sums(domain: Domain, cliques: Iterable[Clique], known: Clique, added: str) -> KeptSums:
    """The sums to keep where an attribute is added to known ones.

    Its own counts, those with each single known attribute, and those of the cliques that hold it:
    for c given a and b, and a clique abc, these are c, ac and bc; abc itself is what is rounded.
    """
    wanted = {frozenset(known).intersection(clique) for clique in cliques if added in clique}
    wanted |= {frozenset([name]) for name in known}
    n_rows = domain.size_of(known)
    kept = [
        tuple(name for name in known if name in names)
        for names in wanted
        if domain.size_of(names) * _MIN_ROWS <= n_rows
    ]
    kept = sorted({*kept, ()}) if n_rows > 1 else []
    strides = np.zeros((len(kept), len(known)), dtype=np.int64)
    starts, n_groups = np.zeros(len(kept), dtype=np.int64), 0
    for s, names in enumerate(kept):
        starts[s] = n_groups
        for index, name in enumerate(names):
            strides[s, known.index(name)] = domain.size_of(names[index + 1 :])
        n_groups += domain.size_of(names)
    return KeptSums(strides, starts, n_groups)


def apportion_records(codes: Codes, stage: DrawStage, sums: KeptSums, key: int) -> None:
    """Divide the records of every row among its cells, and hand the cells out at random.

    A cell gets its share of the row's records, rounded down or up; on average exactly its share.
    """
    (n_rows, n_cells), n = stage.weights.shape, codes.shape[1]
    members, order, at = (np.empty(n_rows, np.int64) for _ in range(3))
    units, groups = np.empty(n_cells, np.int64), np.empty(len(sums.starts), np.int64)
    carried = np.zeros(sums.n_groups * n_cells * SHARE_BITS, np.int32)
    slots = np.empty(n, np.int32)
    routine("count_rows")(
        pointer(codes), *codes.shape, pointer(stage.known), pointer(stage.strides),
        len(stage.known), pointer(members), n_rows,
    )  # fmt: skip
    routine("apportion")(
        pointer(stage.weights), pointer(members), n_rows, n_cells, pointer(stage.strides),
        pointer(stage.sizes), len(stage.sizes), pointer(sums.strides), pointer(sums.starts),
        len(sums.starts), pointer(carried), sums.n_groups, pointer(units), pointer(groups),
        pointer(order), pointer(at), pointer(slots), n, key,
    )  # fmt: skip
    routine("hand_out")(
        pointer(codes), *codes.shape, pointer(stage.known), pointer(stage.strides),
        len(stage.known), pointer(stage.added), len(stage.added), pointer(stage.decoded), n_cells,
        pointer(members), pointer(at), n_rows, pointer(slots), key,
    )  # fmt: skip
