"""Agent tokens: what a person may give an agent, checked in plain words, and the token that carries it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from countersign.declare import BadValue
from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.security import secrets
from countersign.records.access import people, scopes
from countersign.records.access.domains import close_unused_domains, open_domain
from countersign.records.access.inserting import insert
from countersign.records.access.model import AgentToken
from countersign.records.access.view import Caller, View
from countersign.records.access.visibility import UNMASK
from countersign.records.context import Records

PREFIX = "css_agent"
MAX_LABEL_LENGTH = 100
MAX_SCOPES = 200
MAX_UNMASKED = 200
MIN_LIFE_S = 1
MAX_LIFE_S = 365 * 86_400
DEFAULT_S = 90 * 86_400
MEMBERS = ("scopes", "label", "expires_in", "unmask")

_CREDENTIAL = """
INSERT INTO credential (digest, kind, record_id, user_id, expires_at, ended_at)
VALUES ($1, 'agent', $2, $3, $4, NULL)
"""


class TokenRefused(Refused):
    """What was asked for cannot be given to an agent; the detail says why."""

    code = "token_refused"
    title = "Agent token refused"


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent token as it was asked for, each part of the right kind: `expires_in_s` in seconds."""

    scopes: tuple[str, ...]
    label: str
    expires_in_s: int = DEFAULT_S
    unmask: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, never to be shown again, the id of its agent_token record, and the values of that for the audit."""

    token: str
    record_id: str
    values: Mapping[str, str | int | None]


def read(body: Mapping[str, object]) -> Asked:
    """The body of POST /api/auth/agent-token.

    Raises:
        TokenRefused: a key is unknown, missing, or its value of another kind.
    """
    for name in body:
        if name not in MEMBERS:
            raise TokenRefused(f"unknown key {name} (known: {', '.join(MEMBERS)})")
    label, expires_in = body.get("label"), body.get("expires_in")
    if not isinstance(label, str):
        raise TokenRefused("label is required, a string")
    if expires_in is None:
        expires_in = DEFAULT_S
    if not isinstance(expires_in, int) or isinstance(expires_in, bool):
        raise TokenRefused("expires_in must be a whole number of seconds")
    return Asked(_strings(body, "scopes"), label, expires_in, _strings(body, "unmask"))


def _strings(body: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = body.get(name)
    if value is None and name == "unmask":
        return ()
    several: Sequence[object] = cast("list[object]", value) if isinstance(value, list) else ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in several):
        raise TokenRefused(f"{name} must be an array of strings")
    return tuple(dict.fromkeys(cast("Sequence[str]", several)))


async def issue(transaction: Transaction, records: Records, caller: Caller, asked: Asked) -> Issued:
    """A token by which an agent acts for the calling person, limited as asked for. Whoever calls writes the audit.

    Tokens of the same person and label share a token domain, so that an agent keeps its placeholder tokens when its
    token is replaced by another while the first still holds.

    Raises:
        NotFound: an agent calls, or the person was switched off meanwhile.
        TokenRefused: the label is blank, too long, or holds what looks like a placeholder token; a scope matches
            nothing the person may do; the life is out of range; or `unmask` is without the right to it, or names a
            field the person does not see in clear.
    """
    if caller.is_agent:
        raise NotFound("not found")
    label = _checked_label(asked.label, records.registry.labels)
    _check_scopes(asked.scopes, caller.view)
    _check_unmask(asked.unmask, caller.view)
    if not MIN_LIFE_S <= asked.expires_in_s <= MAX_LIFE_S:
        raise TokenRefused(f"expires_in must be {MIN_LIFE_S} to {MAX_LIFE_S} seconds")
    if not await people.hold_active(transaction, caller.user_id):
        raise NotFound("not found")
    # A domain that ended with its last token does not go on: its tokens mean nothing any more.
    await close_unused_domains(transaction, caller.user_id)
    await open_domain(transaction, caller.user_id, label)
    now = clock.now()
    values: dict[str, str | int | None] = {
        "label": label,
        "user": caller.user_id,
        "scopes": ",".join(asked.scopes),
        "unmask": ",".join(asked.unmask) or None,
        "issued_at": now,
        "expires_at": clock.later(now, seconds=asked.expires_in_s),
    }
    record_id = await insert(transaction, AgentToken.declared, values)
    token = secrets.new_secret(PREFIX)
    await transaction.run(_CREDENTIAL, secrets.digest(token), record_id, caller.user_id, values["expires_at"])
    return Issued(token, record_id, values)


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
    # The grammar of placeholder tokens (masking/grammar.py), in any case and with any digits.
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{names})_[0-9]", re.IGNORECASE)


def _check_scopes(asked: Sequence[str], view: View) -> None:
    if not 1 <= len(asked) <= MAX_SCOPES:
        raise TokenRefused(f"scopes must name 1 to {MAX_SCOPES} scopes, like lead.get, lead.*, *.list or *")
    for scope in asked:
        if not scopes.is_scope(scope):
            remedy = "write model.command, model.*, *.get, *.list, *.search or *"
            raise TokenRefused(f"{_shown(scope)} is no scope: {remedy}")
        if not any(scopes.covers(scope, name, each) for name, model in view.models.items() for each in model.commands):
            raise TokenRefused(f"scope {scope} matches nothing you may do")


def _check_unmask(asked: Sequence[str], view: View) -> None:
    if asked and UNMASK not in view.rights:
        raise TokenRefused(f"unmask needs the right {UNMASK}")
    if len(asked) > MAX_UNMASKED:
        raise TokenRefused(f"unmask must name {MAX_UNMASKED} fields at most")
    for each in asked:
        model, _, name = each.partition(".")
        seen = view.models.get(model)
        if seen is None or not seen.sees_in_clear(name):
            raise TokenRefused(f"unknown field {_shown(each)}")
        if not seen.model.fields[name].personal:
            raise TokenRefused(f"{each} is never masked: leave it out of unmask")


def _shown(text: str) -> str:
    """What the caller sent, short enough to be sent back."""
    return text if len(text) <= MAX_LABEL_LENGTH else f"{text[:MAX_LABEL_LENGTH]}…"
