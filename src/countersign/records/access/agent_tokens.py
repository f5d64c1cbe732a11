"""Issues agent tokens, and opens and closes token domains (the scopes in which placeholder tokens are valid)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from countersign.declare import BadValue
from countersign.kernel import clock, ids
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.security import secrets
from countersign.kernel.security.encryption import derive_key
from countersign.records.access import people, visibility
from countersign.records.access.people import insert
from countersign.records.access.view import Caller, Domain, View
from countersign.records.access.visibility import UNMASK
from countersign.records.base_models import AgentToken
from countersign.records.context import Records

SALT_BYTES = 32
DOMAIN_PURPOSE = "domain"

_REOPEN = """
UPDATE token_domain
SET salt = $3, opened_at = $4, closed_at = NULL
WHERE user_id = $1 AND label = $2 AND closed_at IS NOT NULL
AND closed_at = (SELECT max(last.closed_at) FROM token_domain AS last WHERE last.user_id = $1 AND last.label = $2)
AND NOT EXISTS (
    SELECT 1 FROM token_domain AS one WHERE one.user_id = $1 AND one.label = $2 AND one.closed_at IS NULL
)
"""
_OPEN = """
INSERT INTO token_domain (id, user_id, label, salt, opened_at, closed_at)
VALUES ($1, $2, $3, $4, $5, NULL)
ON CONFLICT DO NOTHING
"""
_FIND_OPEN = "SELECT id, salt FROM token_domain WHERE user_id = $1 AND label = $2 AND closed_at IS NULL"
_UNUSED = """
SELECT id
FROM token_domain AS domain
WHERE domain.closed_at IS NULL AND domain.label <> '' {of_person}
AND NOT EXISTS (
    SELECT 1 FROM agent_token AS token
    WHERE token."user" = domain.user_id AND token.label = domain.label
    AND token.ended_at IS NULL AND token.expires_at > $1
)
AND NOT EXISTS (
    SELECT 1 FROM plan
    WHERE plan.person = domain.user_id AND plan.agent = domain.label AND plan.state = 'pending'
)
"""
_UNUSED_OF_ALL = _UNUSED.format(of_person="")
_UNUSED_OF_PERSON = _UNUSED.format(of_person="AND domain.user_id = $2")
# The salt is deleted too, so that the domain's tokens cannot be computed again.
_CLOSE = "UPDATE token_domain SET closed_at = $2, salt = $3 WHERE id = $1 AND closed_at IS NULL"


async def open_domain(transaction: Transaction, user_id: str, label: str) -> None:
    """Open the token domain of the person's agents with this label. An empty label means the domain of the person. If
    the domain is open already, nothing changes.

    A closed domain is opened again with a new salt, and its old tokens stay invalid. Values that its agents wrote in
    clear keep their own value ids, so later tokens do not show whether an agent guessed a value.
    """
    salt, now = ids.random_bytes(SALT_BYTES), clock.now()
    if not await transaction.run(_REOPEN, user_id, label, salt, now):
        await transaction.run(_OPEN, ids.new_record_id(), user_id, label, salt, now)


async def find_domain(reader: Reader, secret: bytes, user_id: str, label: str) -> Domain | None:
    """Return the open domain with its key, which is derived from the database's secret. Return None if no domain is
    open."""
    row = await reader.fetch_one(_FIND_OPEN, user_id, label)
    return None if row is None else Domain(row[0], derive_key(secret, bytes(row[1]), DOMAIN_PURPOSE))


async def close_unused_domains(transaction: Transaction, user_id: str | None) -> tuple[str, ...]:
    """Close the domains of the person's agents that have no valid token and no pending plan, and return their ids.
    Without a `user_id`, this applies to the agents of all people. The placeholder tokens of the closed domains become
    invalid.

    Call this function after a token or a plan ends. A person's own domain stays open.
    """
    now = clock.now()
    if user_id is None:
        rows = await transaction.fetch(_UNUSED_OF_ALL, now)
    else:
        rows = await transaction.fetch(_UNUSED_OF_PERSON, now, user_id)
    for row in rows:
        await transaction.run(_CLOSE, row[0], now, b"")
    return tuple(row[0] for row in rows)


PREFIX = "css_agent"
MAX_LABEL_LENGTH = 100
MAX_SCOPES = 200
MAX_UNMASKED = 200
MIN_LIFE_S = 1
MAX_LIFE_S = 365 * 86_400
DEFAULT_LIFE_S = 90 * 86_400
MEMBERS = ("scopes", "label", "expires_in", "unmask")

_CREDENTIAL = """
INSERT INTO credential (digest, kind, record_id, user_id, expires_at, ended_at)
VALUES ($1, 'agent', $2, $3, $4, NULL)
"""


class TokenRefused(Refused):
    """The requested agent token cannot be issued. The detail of the error gives the reason."""

    code = "token_refused"
    title = "Agent token refused"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request for an agent token. The types of its values are checked. `expires_in_s` is in seconds."""

    scopes: tuple[str, ...]
    label: str
    expires_in_s: int = DEFAULT_LIFE_S
    unmask: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """An issued token.

    The token itself is shown only once. `record_id` is the id of its agent_token record, and `values` are the values of
    that record for the audit.
    """

    token: str
    record_id: str
    values: Mapping[str, str | int | None]


def read_request(body: Mapping[str, object]) -> TokenRequest:
    """Parse the body of POST /api/auth/agent-token.

    Raises:
        TokenRefused: a key is unknown or missing, or its value has the wrong type.
    """
    for name in body:
        if name not in MEMBERS:
            raise TokenRefused(f"unknown key {name} (known: {', '.join(MEMBERS)})")
    label, expires_in = body.get("label"), body.get("expires_in")
    if not isinstance(label, str):
        raise TokenRefused("label is required, a string")
    if expires_in is None:
        expires_in = DEFAULT_LIFE_S
    if not isinstance(expires_in, int) or isinstance(expires_in, bool):
        raise TokenRefused("expires_in must be a whole number of seconds")
    return TokenRequest(_strings(body, "scopes"), label, expires_in, _strings(body, "unmask"))


def _strings(body: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = body.get(name)
    if value is None and name == "unmask":
        return ()
    items: Sequence[object] = cast("list[object]", value) if isinstance(value, list) else ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in items):
        raise TokenRefused(f"{name} must be an array of strings")
    return tuple(dict.fromkeys(cast("Sequence[str]", items)))


async def issue_token(transaction: Transaction, records: Records, caller: Caller, request: TokenRequest) -> IssuedToken:
    """Issue a token with which an agent acts for the calling person, within the requested limits. The code that calls
    this function must write the audit entry.

    Tokens with the same person and label share a token domain. Placeholder tokens therefore stay valid if an agent's
    token is replaced before it ends.

    Raises:
        NotFound: the caller is an agent, or the person was deactivated meanwhile.
        TokenRefused: the label is blank, too long, or contains text that looks like a placeholder token. A scope
            matches no command that the person may run. The lifetime is out of range. The request has `unmask`, but the
            person lacks the right to unmask or does not see one of the fields in clear.
    """
    if caller.is_agent:
        raise NotFound("not found")
    label = _checked_label(request.label, records.registry.labels)
    _check_scopes(request.scopes, caller.view)
    _check_unmask(request.unmask, caller.view)
    if not MIN_LIFE_S <= request.expires_in_s <= MAX_LIFE_S:
        raise TokenRefused(f"expires_in must be {MIN_LIFE_S} to {MAX_LIFE_S} seconds")
    if not await people.lock_active(transaction, caller.user_id):
        raise NotFound("not found")
    # First close the domains without a valid token. Otherwise the new token would make their placeholder tokens valid
    # again.
    await close_unused_domains(transaction, caller.user_id)
    await open_domain(transaction, caller.user_id, label)
    now = clock.now()
    values: dict[str, str | int | None] = {
        "label": label,
        "user": caller.user_id,
        "scopes": ",".join(request.scopes),
        "unmask": ",".join(request.unmask) or None,
        "issued_at": now,
        "expires_at": clock.later(now, seconds=request.expires_in_s),
    }
    record_id = await insert(transaction, AgentToken.declared, values)
    token = secrets.new_secret(PREFIX)
    await transaction.run(_CREDENTIAL, secrets.digest(token), record_id, caller.user_id, values["expires_at"])
    return IssuedToken(token, record_id, values)


def _checked_label(label: str, labels: frozenset[str]) -> str:
    try:
        AgentToken.label.read(label)
    except BadValue as error:
        raise TokenRefused(f"label {error}") from error
    label = label.strip()
    if len(label) > MAX_LABEL_LENGTH:
        raise TokenRefused(f"label must have {MAX_LABEL_LENGTH} characters at most")
    if _token_like(labels).search(label):
        raise TokenRefused("token not allowed in label")
    return label


@lru_cache(maxsize=8)
def _token_like(labels: frozenset[str]) -> re.Pattern[str]:
    # The grammar of placeholder tokens (masking/placeholder_tokens.py), in upper or lower case and with any digits.
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{names})_[0-9]", re.IGNORECASE)


def _check_scopes(request: Sequence[str], view: View) -> None:
    if not 1 <= len(request) <= MAX_SCOPES:
        raise TokenRefused(f"scopes must name 1 to {MAX_SCOPES} scopes, like lead.get, lead.*, *.list or *")
    for scope in request:
        if not visibility.is_scope(scope):
            remedy = "write model.command, model.*, *.get, *.list, *.search or *"
            raise TokenRefused(f"{_shortened(scope)} is no scope: {remedy}")
        commands = ((name, command) for name, model in view.models.items() for command in model.commands)
        if not any(visibility.covers(scope, *command) for command in commands):
            raise TokenRefused(f"scope {scope} matches nothing you may do")


def _check_unmask(request: Sequence[str], view: View) -> None:
    if request and UNMASK not in view.rights:
        raise TokenRefused(f"unmask needs the right {UNMASK}")
    if len(request) > MAX_UNMASKED:
        raise TokenRefused(f"unmask must name {MAX_UNMASKED} fields at most")
    for field_path in request:
        model, _, name = field_path.partition(".")
        visible_fields = view.models.get(model)
        if visible_fields is None or not visible_fields.sees_in_clear(name):
            raise TokenRefused(f"unknown field {_shortened(field_path)}")
        if not visible_fields.model.fields[name].personal:
            raise TokenRefused(f"{field_path} is never masked: leave it out of unmask")


def _shortened(text: str) -> str:
    """Return the caller's text, shortened for an error message."""
    return text if len(text) <= MAX_LABEL_LENGTH else f"{text[:MAX_LABEL_LENGTH]}…"
