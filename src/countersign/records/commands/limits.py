"""The limits of queries and responses: conditions, rows of a page, bytes of text, groups, points and names."""

from countersign.records.commands.errors import BadInput

# Queries ----------------------------------------------------------------------------------------------------------

MAX_CONDITIONS = 50
MAX_KEYS = 5
"""The maximum number of order keys."""
MAX_VALUES = 1_000
"""The maximum number of values of an `in` condition."""
MAX_OFFSET = 2**53 - 1
MAX_SUMS = 10
"""The maximum number of fields that a search sums."""
MAX_REFS = 10
"""The maximum number of refs in `expand` of a search."""

# Pages ------------------------------------------------------------------------------------------------------------

MAX_ROWS = 5_000
"""The maximum number of records of a page with a limit. A list without a limit is streamed and has no maximum."""
MAX_PAGE_BYTES = 16 << 20
"""The maximum size of the text in the records of a page, or of an export in one response."""
SHORT_PAGE = 100
"""The number of records with long texts that are read at once. More records are read in batches."""
MAX_MCP_LIST_BYTES = 16 << 20
"""The maximum size of a list without a limit in a message of MCP. A client receives such a list twice, as text and as
structure."""
MAX_EXPORTED_RECORDS = 5_000
"""The maximum number of records of an export in one response."""
DEFAULT_RELATED, MAX_RELATED = 5, 20
"""The number of records of each reference in a response of `related`."""
DEFAULT_HITS, MAX_HITS = 10, 50
"""The number of hits of `find`."""
MAX_HITS_OF_MODEL = 5
MAX_HISTORY_ENTRIES = 1_000

# Groups and series ------------------------------------------------------------------------------------------------

MAX_GROUPS = 10_000
"""The maximum number of groups of `count_by`."""
MAX_POINTS = 400
"""The maximum number of points of a series. A page cannot show more."""
MAX_SERIES_GROUPS = 12
"""The maximum number of groups in a series. It contains the groups with the largest totals."""
MAX_CELLS = 20_000
"""The maximum number of values that a statement of a series returns: one for each point of each group."""


def require_page_size(length: int) -> None:
    """Refuse a page whose records contain `length` characters, if this is too much.

    Raises:
        BadInput: the records are longer than `MAX_PAGE_BYTES`.
    """
    if length > MAX_PAGE_BYTES:
        raise BadInput(f"the records are longer than {MAX_PAGE_BYTES >> 20} MiB together: give a smaller limit")
