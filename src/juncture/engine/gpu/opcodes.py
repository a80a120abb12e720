"""How a program of levels is written down as integers; `kernels.cu` has the same numbers."""

from __future__ import annotations

from enum import IntEnum

# Columns of the table of operations. An operand is an address, a way to read it and the slot whose
# largest entry scales it (or minus one).
KIND = 0
LEFT_AT, LEFT_READ, LEFT_SCALE = 1, 2, 3
RIGHT_AT, RIGHT_READ, RIGHT_SCALE = 4, 5, 6
TOP_AT, TOP_READ, TOP_SCALE = 7, 8, 9
RESULT_AT, RESULT_SLOT = 10, 11
FIRST_LOOP, N_KEPT, N_SUMMED = 12, 13, 14
KEPT_CELLS, SUMMED_CELLS = 15, 16
KEPT_LANES, SUM_LANES, SUMS_ARE_FAST, SPLITS, REPEATS = 17, 18, 19, 20, 21
N_COLUMNS = 22

LANES = 256
"""The threads of a block: lanes of cells that are kept, times lanes that share a sum."""


class Kind(IntEnum):
    """What an operation does."""

    STORE = 0
    """Write the numbers of a given table where its marginal will be."""
    CONTRACT = 1
    """Multiply two tables, and sum the product onto the axes of the result."""
    ABSORB = 2
    """Write the marginal of a given table; collect the derivative of the other operand."""


class Read(IntEnum):
    """How a number is read."""

    WORK = 0
    """From the workspace, divided by the largest entry of its slot."""
    STORED = 1
    """From the numbers that STORE has written."""
    GIVEN = 2
    """From the potentials, less the largest of the table, exponentiated."""
    ONE = 3
    """It is the number one."""
    ROOT = 4
    """It is the derivative of a root's result."""


class Semiring(IntEnum):
    """What numbers are, and what sums and products of them mean."""

    ORDINARY = 0
    """Ordinary numbers, each table divided by its largest entry."""
    LOGARITHMS = 1
    """Logarithms: slower, and safe for potentials however widely they are spread."""
    PEAKS = 2
    """Logarithms of which the largest counts instead of the sum: the most probable record."""


class Outcome(IntEnum):
    """How a call has ended; the largest counts."""

    DONE = 0
    NEEDS_LOGARITHMS = 1
    IMPOSSIBLE = 2
    INVALID = 3
