"""The scopes of agent tokens: which of their person's commands they cover."""

import re
from typing import Final

READS: Final = frozenset({"get", "list", "search"})
"""The commands that a scope may name on all models at once."""

FREE: Final = frozenset({("plan", "get"), ("plan", "list"), ("plan", "search"), ("plan", "withdraw")})
"""What every agent may do without a scope, on plans of its own (decisions, 4)."""

NEVER: Final = frozenset(
    {("plan", "reject"), ("user", "invite"), ("session", "revoke"), ("audit_entry", "verify")}
)
"""What no agent may do, whatever its scopes: decide on plans, get hold of a link that lets a person in, put people
out, have the whole audit read."""

_SCOPE = re.compile(r"\*|\*\.(?:get|list|search)|[a-z][a-z0-9_]*\.(?:\*|[a-z][a-z0-9_]*)")


def is_scope(text: str) -> bool:
    """Whether the text is a scope: `model.command`, `model.*`, `*.get`, `*.list`, `*.search` or `*`."""
    return _SCOPE.fullmatch(text) is not None


def covers(scope: str, model: str, command: str) -> bool:
    """Whether the scope names the command; of what no agent may do, none does."""
    if (model, command) in NEVER:
        return False
    wanted_model, _, wanted = scope.partition(".")
    if wanted_model == "*":
        return not wanted or (wanted == command and command in READS)
    return wanted_model == model and wanted in ("*", command)
