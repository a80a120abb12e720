"""The entry points of the compiled routines: C functions, by name and signature.

Only this module and those that it imports need the compiler. Nothing here allocates or
fails, so the machine code needs nothing of the compiler's runtime, and can be kept and loaded
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from numba import carray, types

from juncture.engine.compiled.apportioning import apportion as _apportion
from juncture.engine.compiled.apportioning import hand_out as _hand_out
from juncture.engine.compiled.counting import count_cells as _count_cells
from juncture.engine.compiled.drawing import weigh_round as _weigh_round
from juncture.engine.compiled.flat import descend as _descend
from juncture.engine.compiled.flat import dot as _dot
from juncture.engine.compiled.flat import mix as _mix
from juncture.engine.compiled.flat import quadratic as _quadratic
from juncture.engine.compiled.flat import quadratic_value as _quadratic_value
from juncture.engine.compiled.front_end import translate
from juncture.engine.compiled.gibbs import sweep as _sweep
from juncture.engine.compiled.growing import Order, Space
from juncture.engine.compiled.growing import grow as _grow
from juncture.engine.compiled.halving import deal_pairs as _deal_pairs
from juncture.engine.compiled.halving import flip_signs as _flip_signs
from juncture.engine.compiled.halving import tally_cells as _tally_cells
from juncture.engine.compiled.messages import run as _run
from juncture.engine.compiled.opcodes import N_COLUMNS, SHARE_BITS, SWEEP_CHUNK
from juncture.engine.compiled.ordering import Search
from juncture.engine.compiled.ordering import search_order as _search_order
from juncture.engine.compiled.peaks import maximise as _maximise
from juncture.engine.compiled.raking import balance_clique as _balance_clique
from juncture.engine.compiled.raking import balance_products as _balance_products
from juncture.engine.compiled.raking import measure_products as _measure_products
from juncture.engine.compiled.sampling import count_rows as _count_rows
from juncture.engine.compiled.sampling import draw as _draw
from juncture.engine.compiled.sampling import make_aliases as _make_aliases
from juncture.engine.compiled.weighting import add_potentials as _add_potentials
from juncture.engine.compiled.weighting import weigh_records as _weigh_records

_TYPES = {
    "v": types.void,
    "d": types.float64,
    "q": types.int64,
    "u": types.uint64,
    "D": types.CPointer(types.float64),
    "Q": types.CPointer(types.int64),
    "I": types.CPointer(types.int32),
    "C": types.CPointer(types.uint8),
    "B": types.CPointer(types.boolean),
}


@dataclass(frozen=True)
class EntryPoint:
    """A routine that Python calls: a letter for its result and for each argument (`_TYPES`)."""

    function: Callable[..., Any]
    signature: str
    work: float
    """How long it takes to compile, roughly, in units of an ordinary one."""

    @property
    def name(self) -> str:
        """By which `loader.routine` finds it."""
        return self.function.__name__


ENTRY_POINTS: list[EntryPoint] = []


def entry(signature: str, work: float = 1.0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a compiled routine, under its own name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ENTRY_POINTS.append(EntryPoint(function, signature, work))
        return function

    return register


def translate_unit(unit: Sequence[EntryPoint]) -> llvm.ModuleRef:
    """The entry points of a unit in LLVM's language (see `front_end`)."""

    def signature_of(entry_point: EntryPoint) -> Any:
        result, *arguments = (_TYPES[letter] for letter in entry_point.signature)
        return result(*arguments)

    return translate((point.function, signature_of(point)) for point in unit)


@entry("qqqdQqQqQqDqBDDQDQqQqDDq", work=20.0)
def run(
    begin, end, total, operations, n_operations, loops, n_loops, slots, n_slots,
    work, n_work, extended, shifts, scales, repeated, log_scales, exponents, n_exponents,
    given_exponents, n_given, potentials, out, n_cells,
):  # fmt: skip
    return _run(
        begin, end, carray(operations, (n_operations, N_COLUMNS)), carray(loops, (n_loops, 4)),
        carray(slots, (n_slots, 3)), total, carray(potentials, n_cells), carray(out, n_cells),
        carray(work, n_work), carray(exponents, n_exponents), carray(given_exponents, n_given),
        carray(extended, n_slots),
        carray(shifts, n_slots), carray(scales, n_slots), carray(log_scales, n_operations),
        carray(repeated, n_slots),
    )  # fmt: skip


@entry("vQqQqQqDqDqQ", work=2.0)
def maximise(
    operations, n_operations, loops, n_loops, slots, n_slots, potentials, n_cells, peaks, n_peaks,
    chosen,
):  # fmt: skip
    _maximise(
        carray(operations, (n_operations, N_COLUMNS)), carray(loops, (n_loops, 4)),
        carray(slots, (n_slots, 3)), carray(potentials, n_cells), carray(peaks, n_peaks),
        carray(chosen, n_slots),
    )  # fmt: skip


@entry("vQDqqquqqdqQQQQQQQ", work=4.0)
def search_order(
    rows, sizes, n, n_words, n_free, key, min_attempts, min_work, share, max_work,
    closed, below, marks, columns, best_order, best_closed, spent,
):  # fmt: skip
    size, marked, column = n * n_words, carray(marks, (2, n_words)), carray(columns, (6, n))
    search = Search(
        carray(rows, size), carray(sizes, n), n_free, carray(closed, size), carray(below, size),
        marked[0], marked[1], column[0], column[1], column[2], column[3:],
    )  # fmt: skip
    _search_order(
        search, key, min_attempts, min_work, share, max_work,
        carray(best_order, n), carray(best_closed, size), carray(spent, 2),
    )  # fmt: skip


@entry("vqqddQQDQqQQqQqdDQQQDQ", work=6.0)
def grow(
    n, n_words, cells, all_cells, neighbours, links, numbers, cliques, n_cliques, starts, members,
    n_members, asked, n_asked, limit, answers, matrices, words, columns, local_sizes, spent,
):  # fmt: skip
    link, number = carray(links, (5, n)), carray(numbers, (2, n))
    matrix, marked = carray(matrices, (5, n * n_words)), carray(words, (5, n_words))
    column, question = carray(columns, (13, n)), carray(asked, (n_asked, n_words))
    order = Order(
        carray(neighbours, n * n_words), link[0], link[1], link[2], link[3], link[4], number[0],
        number[1], carray(cliques, n_cliques * n_words), carray(starts, n + 1),
        carray(members, n_members), cells, all_cells, n_words,
    )  # fmt: skip
    space = Space(
        column[0], matrix[0], column[1], column[2], column[3], column[4], column[5], marked[0],
        marked[1], marked[2], matrix[1], matrix[2], matrix[3], matrix[4], marked[3], marked[4],
        column[7:], column[6], carray(local_sizes, n), carray(spent, 2),
    )  # fmt: skip
    answer = carray(answers, (2, n_asked))
    for index in range(n_asked):
        answer[0, index], answer[1, index] = _grow(order, space, question[index], limit)


@entry("vDDdDq")
def mix(left, right, share, out, n):
    _mix(carray(left, n), carray(right, n), share, carray(out, n))


@entry("vDDdDq")
def descend(vector, slope, length, out, n):
    _descend(carray(vector, n), carray(slope, n), length, carray(out, n))


@entry("dDDq")
def dot(left, right, n):
    return _dot(carray(left, n), carray(right, n))


@entry("dDDDDq")
def quadratic(vector, centre, precision, gradient, n):
    return _quadratic(
        carray(vector, n), carray(centre, n), carray(precision, n), carray(gradient, n)
    )


@entry("dDDDq")
def quadratic_value(vector, centre, precision, n):
    return _quadratic_value(carray(vector, n), carray(centre, n), carray(precision, n))


@entry("vDDIqqQ")
def make_aliases(weights, share, alias, n_rows, n_cells, waiting):
    shape = (n_rows, n_cells)
    _make_aliases(
        carray(weights, shape), carray(share, shape), carray(alias, shape), carray(waiting, n_cells)
    )


@entry("vIqqqqqQQqQqIDIqquQ")
def draw(
    codes, n_columns, n, first, last, offset, known, strides, n_known, added, n_added, decoded,
    share, alias, n_rows, n_cells, key, phase,
):  # fmt: skip
    _draw(
        carray(codes, (n_columns, n)), first, last, offset, carray(known, n_known),
        carray(strides, n_known), carray(added, n_added), carray(decoded, (n_added, n_cells)),
        carray(share, (n_rows, n_cells)), carray(alias, (n_rows, n_cells)), key, carray(phase, 2),
    )  # fmt: skip


@entry("vIqqQQqQq")
def count_rows(codes, n_columns, n, known, strides, n_known, members, n_rows):
    _count_rows(
        carray(codes, (n_columns, n)), carray(known, n_known), carray(strides, n_known),
        carray(members, n_rows),
    )  # fmt: skip


@entry("vDQqqQQqQQqIqQQQQIqu")
def apportion(
    weights, members, n_rows, n_cells, strides, sizes, n_known, sum_strides, sum_starts, n_sums,
    carried, n_groups, units, groups, order, at, slots, n, key,
):  # fmt: skip
    _apportion(
        carray(weights, (n_rows, n_cells)), carray(members, n_rows), carray(strides, n_known),
        carray(sizes, n_known), carray(sum_strides, (n_sums, n_known)), carray(sum_starts, n_sums),
        carray(carried, n_groups * n_cells * SHARE_BITS), carray(units, n_cells),
        carray(groups, n_sums), carray(order, n_rows), carray(at, n_rows), carray(slots, n), key,
    )  # fmt: skip


@entry("vCqqQqQQqIqIq")
def count_bytes(
    codes, n_columns, n, cliques, n_cliques, positions, strides, n_positions, tables, size, space,
    n_together,
):  # fmt: skip
    _count_cells(
        carray(codes, (n_columns, n)),
        carray(cliques, (n_cliques, 4)),
        carray(positions, n_positions),
        carray(strides, n_positions),
        carray(tables, size),
        carray(space, n_together),
    )


@entry("vIqqQqQQqIqIq")
def count_wide(
    codes, n_columns, n, cliques, n_cliques, positions, strides, n_positions, tables, size, space,
    n_together,
):  # fmt: skip
    _count_cells(
        carray(codes, (n_columns, n)),
        carray(cliques, (n_cliques, 4)),
        carray(positions, n_positions),
        carray(strides, n_positions),
        carray(tables, size),
        carray(space, n_together),
    )


@entry("vIqqQQqQqIqQQqIu")
def hand_out(
    codes, n_columns, n, known, strides, n_known, added, n_added, decoded, n_cells, members, at,
    n_rows, slots, key,
):  # fmt: skip
    _hand_out(
        carray(codes, (n_columns, n)), carray(known, n_known), carray(strides, n_known),
        carray(added, n_added), carray(decoded, (n_added, n_cells)), carray(members, n_rows),
        carray(at, n_rows), carray(slots, n), key,
    )  # fmt: skip


@entry("vDIDDDdddq")
def weigh_round(answers, before, slope, work, result, eta, n_before, weight, n):
    _weigh_round(
        carray(answers, n), carray(before, n), carray(slope, n), carray(work, n), carray(result, 2),
        eta, n_before, weight,
    )  # fmt: skip


@entry("vIqqDqqQQqDqQQqQqQ")
def weigh_records(
    codes, n_columns, n, weights, first, last, moved, moved_strides, n_moved, factor, n_factor,
    counted, strides, n_counted, table, n_cells, sums,
):  # fmt: skip
    _weigh_records(
        carray(codes, (n_columns, n)), carray(weights, n), first, last, carray(moved, n_moved),
        carray(moved_strides, n_moved), carray(factor, n_factor), carray(counted, n_counted),
        carray(strides, n_counted), carray(table, n_cells), carray(sums, 1),
    )  # fmt: skip


@entry("vIqqDqqQQqDq")
def add_potentials(codes, n_columns, n, scores, first, last, axes, strides, n_axes, table, n_cells):
    _add_potentials(
        carray(codes, (n_columns, n)), carray(scores, n), first, last, carray(axes, n_axes),
        carray(strides, n_axes), carray(table, n_cells),
    )  # fmt: skip


@entry("vIqqqqqQqQqQQqDqDqQu")
def sweep(
    codes, n_columns, n, first, last, offset, blocks, n_blocks, entries, n_entries, axes, strides,
    n_axes, tables, n_cells, scratch, n_scratch, cells, key,
):  # fmt: skip
    _sweep(
        carray(codes, (n_columns, n)), first, last, offset, carray(blocks, (n_blocks, 6)),
        carray(entries, (n_entries, 4)), carray(axes, n_axes), carray(strides, n_axes),
        carray(tables, n_cells), carray(scratch, n_scratch), carray(cells, SWEEP_CHUNK), key,
    )  # fmt: skip


@entry("dDDDdDDq")
def balance_clique(base, centre, pull, total, out, sums, n):
    return _balance_clique(
        carray(base, n), carray(centre, n), carray(pull, n), total, carray(out, n), carray(sums, 2)
    )


@entry("dDqDqQQqDDqDDq")
def measure_products(
    counts, n, matrices, n_entries, n_rows, sizes, n_axes, values, precision, n_answers, slope,
    room, n_room,
):  # fmt: skip
    return _measure_products(
        carray(counts, n), carray(matrices, n_entries), carray(n_rows, n_axes),
        carray(sizes, n_axes), carray(values, n_answers), carray(precision, n_answers),
        carray(slope, n), carray(room, (2, n_room)),
    )  # fmt: skip


@entry("vDqDqQQqDDqddDDDq")
def balance_products(
    base, n, matrices, n_entries, n_rows, sizes, n_axes, values, precision, n_answers, tau, total,
    change, tables, room, n_room,
):  # fmt: skip
    _balance_products(
        carray(base, n), carray(matrices, n_entries), carray(n_rows, n_axes),
        carray(sizes, n_axes), carray(values, n_answers), carray(precision, n_answers), tau, total,
        carray(change, n), carray(tables, (5, n)), carray(room, (2, n_room)),
    )  # fmt: skip


@entry("vIqqQIIIqqqqQq")
def tally_cells(
    codes, n_columns, n, units, axes, strides, starts, n_axes, n_tables, first, last, tables,
    n_cells,
):  # fmt: skip
    _tally_cells(
        carray(codes, (n_columns, n)), carray(units, n), carray(axes, (n_axes, n_tables)),
        carray(strides, (n_axes, n_tables)), carray(starts, n_tables), first, last,
        carray(tables, n_cells),
    )  # fmt: skip


@entry("vIqqIIIqIIIqqIu")
def deal_pairs(
    rows, n, n_columns, signs, gaps, weights, n_cells, axes, strides, starts, n_axes, n_tables,
    cells, key,
):  # fmt: skip
    _deal_pairs(
        carray(rows, (n, n_columns)), carray(signs, n), carray(gaps, n_cells),
        carray(weights, n_cells), carray(axes, (n_axes, n_tables)),
        carray(strides, (n_axes, n_tables)), carray(starts, n_tables), carray(cells, (2, n_tables)),
        key,
    )  # fmt: skip


@entry("vIqqIIIqIIIqqIqQ")
def flip_signs(
    rows, n, n_columns, signs, gaps, weights, n_cells, axes, strides, starts, n_axes, n_tables,
    cells, whole_weight, whole,
):  # fmt: skip
    _flip_signs(
        carray(rows, (n, n_columns)), carray(signs, n), carray(gaps, n_cells),
        carray(weights, n_cells), carray(axes, (n_axes, n_tables)),
        carray(strides, (n_axes, n_tables)), carray(starts, n_tables), carray(cells, (2, n_tables)),
        whole_weight, carray(whole, 1),
    )  # fmt: skip
