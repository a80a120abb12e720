"""Compiled: the counts of one clique that balance its measurements and what all others imply."""

from __future__ import annotations

import math

from juncture.engine.compiled.elementwise import FAST, U, exponentiate, fill, inner, rescale

_MAX_STEPS = 100
_PRECISION = 1e-10
# Steps of mirror descent: how many, how often one is halved, how much longer each is than the one
# before, and the part of the records by which the last one moves.
_DESCENT_STEPS, _MAX_HALVINGS, _LONGER, _STILL = 15, 30, 1.5, 1e-7


@inner()
def _omega(a):
    """The z with z + log z = a, Wright's omega function."""
    if a < -30.0:
        return math.exp(a)
    if a > 1.0:
        z = a - math.log(a)
    elif a > 0.0:
        z = 0.567 + 0.36 * a
    else:
        z = math.exp(a)
        z = z / (1.0 + z)
    for _ in range(20):
        rest = z + math.log(z) - a
        step = rest / (1.0 + z)
        z = z * math.exp(-step)
        if abs(rest) < 1e-13 * max(1.0, abs(a)):
            break
    return z


@inner()
def _imply(base, centre, pull, shift, out, sums):
    """The counts at a shift of all logarithms; `sums` gets their sum and its derivative."""
    whole, slope = 0.0, 0.0
    for k in range(U(len(base))):
        count = 0.0
        if base[k] > 0.0:
            if pull[k] > 0.0:
                z = _omega(math.log(base[k] * pull[k]) + pull[k] * centre[k] - shift)
                count = z / pull[k]
                slope += count / (1.0 + z)
            else:
                count = base[k] * math.exp(min(700.0, -shift))
                slope += count
        out[k] = count
        whole += count
    sums[0] = whole
    sums[1] = slope


@inner()
def balance_clique(base, centre, pull, total, out, sums):
    """The counts n of a total with the least pull * (n - centre)**2 / 2 + n * log(n / base).

    They satisfy pull * (n - centre) + log(n / base) = -shift; the shift is returned. The sum of the
    counts falls with the shift and is convex in it, so Newton's steps are safe from its left.
    """
    shift, low, high = 0.0, -1e300, 1e300
    for _ in range(_MAX_STEPS):
        _imply(base, centre, pull, shift, out, sums)
        rest = sums[0] - total
        if abs(rest) <= _PRECISION * total:
            break
        if rest > 0.0:
            low = shift
        else:
            high = shift
        step = max(-50.0, min(50.0, rest / max(sums[1], 1e-300)))
        if low < shift + step < high:
            shift += step
        else:
            shift = 0.5 * (low + high)
    return shift


@inner(fastmath=FAST)
def _multiply_axis(table, out, n_outer, n_in, n_out, n_inner, matrix, at, row_step, cell_step):
    """Multiply a table of n_outer x n_in x n_inner cells along its middle axis by a matrix.

    The innermost loop goes over neighbours: of the table, or of the matrix in its last axis.
    """
    if n_inner == 1 and cell_step == 1:
        for outer in range(n_outer):
            begin, to = U(outer * n_in), U(outer * n_out)
            for row in range(U(n_out)):
                whole, first = 0.0, U(at) + row * U(row_step)
                for cell in range(U(n_in)):
                    whole += matrix[first + cell] * table[begin + cell]
                out[to + row] = whole
        return
    fill(out, 0, n_outer * n_out * n_inner, 0.0)
    if n_inner == 1:
        for outer in range(n_outer):
            begin, to = U(outer * n_in), U(outer * n_out)
            for cell in range(U(n_in)):
                count, first = table[begin + cell], U(at) + cell * U(cell_step)
                for row in range(U(n_out)):
                    out[to + row] += matrix[first + row] * count
        return
    for outer in range(n_outer):
        for row in range(n_out):
            to = U((outer * n_out + row) * n_inner)
            for cell in range(n_in):
                weight = matrix[U(at + row * row_step + cell * cell_step)]
                if weight != 0.0:
                    begin = U((outer * n_in + cell) * n_inner)
                    for i in range(U(n_inner)):
                        out[to + i] += weight * table[begin + i]


@inner()
def _multiply(table, out, spare, matrices, n_rows, sizes, transposed):
    """Multiply a table along every axis by a matrix, or by its transpose.

    The matrices lie one after the other. Axes are multiplied in turn from the last to the first,
    into `out` and `spare` by turns so that the last result is in `out`.
    """
    n_axes = len(sizes)
    at, n_outer, n_inner = len(matrices), 1, 1
    for axis in range(n_axes):
        n_outer *= n_rows[axis] if transposed else sizes[axis]
    for axis in range(n_axes - 1, -1, -1):
        at -= n_rows[axis] * sizes[axis]
        n_in, n_out, row_step, cell_step = sizes[axis], n_rows[axis], sizes[axis], 1
        if transposed:
            n_in, n_out, row_step, cell_step = n_out, n_in, 1, row_step
        n_outer //= n_in
        into, other = (out, spare) if axis % 2 == 0 else (spare, out)
        begin = table if axis == n_axes - 1 else other
        _multiply_axis(
            begin, into, n_outer, n_in, n_out, n_inner, matrices, at, row_step, cell_step
        )
        n_inner *= n_out


@inner()
def measure_products(counts, matrices, n_rows, sizes, values, precision, slope, room):
    """Half the squares of what the answers to a product of matrices are off by, and the slope.

    Squares are weighted by precisions. `room` has a row for the answers, and one to spare; their
    cells are enough for whatever stands between.
    """
    answers, spare = room[0], room[1]
    _multiply(counts, answers, spare, matrices, n_rows, sizes, False)
    value = 0.0
    for row in range(U(len(values))):
        miss = answers[row] - values[row]
        answers[row] = precision[row] * miss
        value += 0.5 * precision[row] * miss * miss
    _multiply(answers, slope, spare, matrices, n_rows, sizes, True)
    return value


@inner()
def _weigh(base, change, total, counts):
    """The counts that a change of potentials makes of a base; gives the log of its mean factor."""
    n, top, mass = len(base), -1e300, 0.0
    for k in range(U(n)):
        if base[k] > 0.0:
            top = max(top, change[k])
    exponentiate(change, counts, 0, n, top)
    for k in range(U(n)):
        counts[k] = base[k] * counts[k] if base[k] > 0.0 else 0.0
        mass += counts[k]
    rescale(counts, 0, n, total / mass)
    return math.log(mass) + top


@inner()
def balance_products(
    base, matrices, n_rows, sizes, values, precision, tau, total, change, tables, room
):
    """The change c of potentials with the least loss(n) + tau * divergence of n from the base.

    - `loss`: that of `measure_products`, at the counts n = base * exp(c), scaled to the total.
    - `change`: a first guess, then the answer; where the base is zero, what the loss asks for.
    - `tables`: room for five tables.

    A step of mirror descent goes a share of the way to minus the slope over tau. The share is
    halved until the loss is below the bound that justifies the step.
    """
    n = len(base)
    counts, slope, trial = tables[0], tables[1], tables[2]
    new_counts, new_slope = tables[3], tables[4]
    mean = _weigh(base, change, total, counts)
    value = measure_products(counts, matrices, n_rows, sizes, values, precision, slope, room)
    longest = 1.0
    for _ in range(_DESCENT_STEPS):
        moved, new_mean, new_value = False, mean, value
        for _ in range(_MAX_HALVINGS):
            share = min(1.0, longest)
            for k in range(U(n)):
                trial[k] = change[k] - share * (slope[k] / tau + change[k])
            new_mean = _weigh(base, trial, total, new_counts)
            new_value = measure_products(
                new_counts, matrices, n_rows, sizes, values, precision, new_slope, room
            )
            divergence, linear = -total * (new_mean - mean), value
            for k in range(U(n)):
                divergence += new_counts[k] * (trial[k] - change[k])
                linear += slope[k] * (new_counts[k] - counts[k])
            if new_value <= linear + tau / share * divergence + 1e-12 * abs(value):
                moved = True
                break
            longest *= 0.5
        if not moved:
            break
        distance = 0.0
        for k in range(U(n)):
            distance += abs(new_counts[k] - counts[k])
            change[k], counts[k], slope[k] = trial[k], new_counts[k], new_slope[k]
        mean, value = new_mean, new_value
        longest *= _LONGER
        if distance < _STILL * total:
            break
    for k in range(U(n)):
        if base[k] <= 0.0:
            change[k] = -slope[k] / tau
