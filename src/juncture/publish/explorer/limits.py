"""How much one request may ask for: the page stays quick, and no request exhausts the machine."""

MAX_CELLS = 50_000
"""The groups in one answer."""
MAX_ANSWER_VALUES = 500_000
"""The groups in one answer times its columns."""
MAX_VALUES = 4_000
"""The values of an attribute that is shown: the page gets all of them."""
GROUPS = {0: 1, 1: 150, 2: 36, 3: 24}
"""How many groups of values an attribute gets that has too many of them, for each number of
attributes in a chart: few enough to be read, and for all combinations to be one answer."""
MAX_RECORDS = 1_000_000
"""The synthetic records in one download."""
MAX_BYTES = 64 * 1024
"""The length of a request."""
MAX_CONDITIONS = 50
"""The conditions in one question."""

MAX_WORKERS = 3
"""The processes that answer: while one has a slow question and one is being replaced, one has time
for the rest. They are started when somebody waits."""
MAX_WAITING = 32
"""The questions that may wait for an answer at once; more are told to come back."""
MAX_DOWNLOADS = 4
"""The files of synthetic records that may be under way at once: each takes room on the disk."""
QUESTION_SECONDS = 30.0
"""How long a question may be worked on; then its process is ended."""
DOWNLOAD_SECONDS = 300.0
"""The same for a file of synthetic records."""
FAREWELL_SECONDS = 2.0
"""How long a question may be worked on in all when nobody waits for its answer any more."""
QUESTION_BYTES = 8 << 30
"""The memory that a question may take, beyond what the release itself needs."""

MAX_CONNECTIONS = 256
"""The connections that are open at once; beyond it, the one that has been silent longest closes."""
BACKLOG = 64
"""The connections that are accepted at once, before any of them can be closed."""
REQUEST_SECONDS = 10.0
"""How long a client may take to send a request: its header, and then its body."""
IDLE_SECONDS = 10
"""How long a connection may stay open between two requests."""
CLOSING_SECONDS = 2
"""How long requests that are being answered may take when the server is told to stop."""
