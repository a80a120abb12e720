"""How a program of operations is written down as integers: columns, kinds and outcomes."""

from __future__ import annotations

# Columns of the table of operations.
KIND, LEFT, RIGHT, RESULT, ADJOINT, COLLECTED, FIRST_LOOP, N_LOOPS = range(8)
N_COLUMNS = 8
# Kinds of operations.
EXPONENTIATE, CONTRACT, ABSORB, FINISH = range(4)
# Columns of the table of loops: extent, then the strides of left operand, right one and result.
# Columns of the table of slots: whether among the potentials, offset, cells.
# Outcomes.
DONE, NEEDS_EXPONENTS, IMPOSSIBLE = range(3)

# One operation nests at most this many loops.
MAX_LOOPS = 64

# The bits of a share of records that are rounded one by one: see `apportioning`.
SHARE_BITS = 8

# Weights of records and their squares are summed as whole numbers of these parts.
WEIGHT_UNIT, SQUARE_UNIT = 2.0**32, 2.0**16

# A sweep draws an attribute of so many records at once, and all attributes of so many in turn.
SWEEP_CHUNK, SWEEP_SPAN = 128, 4096
