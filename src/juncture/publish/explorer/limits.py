"""How much one request may ask for: the page stays quick, and no request exhausts the memory."""

MAX_CELLS = 50_000
"""The groups in one answer."""
MAX_VALUES = 4_000
"""The values of an attribute that is shown: the page gets all of them."""
MAX_RECORDS = 1_000_000
"""The synthetic records in one download."""
MAX_BYTES = 64 * 1024
"""The length of a request."""
MAX_CONDITIONS = 50
"""The conditions in one question."""
