"""How much one question may ask for: the page stays quick, and no request takes the memory."""

MAX_CELLS = 50_000
"""Groups in one answer."""
MAX_VALUES = 4_000
"""Values of an attribute that is shown: the page gets all of them."""
MAX_RECORDS = 1_000_000
"""Synthetic records in one download."""
MAX_BYTES = 64 * 1024
"""Length of a request."""
MAX_CONDITIONS = 50
