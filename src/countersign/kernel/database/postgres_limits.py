"""Writes the limit of a page into the statement, so that PostgreSQL plans the statement once.

For `LIMIT $n`, the generic plan of PostgreSQL assumes that a tenth of the rows is returned. Custom plans look cheaper,
so PostgreSQL plans the statement again at each execution, which takes as long as reading the page. With a number in the
text, both kinds of plan cost the same, and PostgreSQL uses the generic plan after five executions (documentation of
PREPARE, "Notes").
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from countersign.kernel.database.port import Value

MAX_LITERAL = 200
"""A larger limit stays a parameter: each limit in the text is a statement of its own in the connection's cache."""
MAX_KEPT_LENGTH = 20_000

_LAST_LIMIT = re.compile(r"LIMIT \$(\d+)\s*\Z")


def with_literal_limit(statement: str, values: Sequence[Value]) -> tuple[str, Sequence[Value]]:
    """Return the statement with the number in place of a last `LIMIT $n`, and the remaining values. Return both
    unchanged if the limit is large, or is used or followed by other values."""
    if not values or len(statement) > MAX_KEPT_LENGTH:
        return statement, values
    text = _before_limit(statement, len(values))
    limit = values[-1]
    if text is None or type(limit) is not int or not 0 <= limit <= MAX_LITERAL:
        return statement, values
    return f"{text}{limit}", values[:-1]


@lru_cache(maxsize=512)
def _before_limit(statement: str, count: int) -> str | None:
    """Return the statement up to the placeholder of its last limit, if that is the last of `count` values and is used
    only there."""
    limit = _LAST_LIMIT.search(statement)
    if limit is None or int(limit[1]) != count or len(re.findall(rf"\${count}\b", statement)) != 1:
        return None
    return statement[: limit.start(1) - 1]
