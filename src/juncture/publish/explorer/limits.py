"""How much one question may ask for: the page stays quick, and no request takes the memory."""

MOST_CELLS = 50_000
"""Groups in one answer."""
MOST_VALUES = 4_000
"""Values of an attribute that is grouped by: SQL makes a square matrix of them."""
MOST_RECORDS = 1_000_000
"""Synthetic records in one download."""
MOST_BYTES = 64 * 1024
"""Length of a request."""
MOST_CONDITIONS = 50
