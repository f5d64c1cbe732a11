"""/me/sessions: the browser sessions of a person, which the person can list and end."""

import msgspec

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database
from countersign.kernel.errors import NotFound, Refused
from countersign.kernel.http import response
from countersign.kernel.http.response import Moment, Response, Uuid
from countersign.kernel.http.routing import Nothing, route
from countersign.store.auth import queries
from countersign.store.auth.callers import Caller, StoreRequest
from countersign.store.context import LastUses
from countersign.store.personal.follows import PRIVATE, READ_LIBRARY

MAX_SESSIONS = 100
LIST = """
    SELECT token_hash, browser, system, created_at, expires_at, seen_at
    FROM session
    WHERE person_id = $1 AND expires_at > $2
    ORDER BY CASE WHEN token_hash = $3 THEN 0 ELSE 1 END, coalesce(seen_at, created_at) DESC, token_hash
    LIMIT $4
"""


class SessionRequired(Refused):
    """Only a person who is signed in may call this, not a program that acts for the person."""

    status = 403
    code = "session_required"
    title = "Session required"
    resolution = "Sign in at /auth/signin, and use the store in the browser."


class SessionNotFound(NotFound):
    """The caller has no session with this id."""

    resolution = "List your sessions with GET /api/v1/me/sessions."


class OwnSession(msgspec.Struct):
    """A session of the caller. `browser` and `system` are null if the browser did not name them when the person signed
    in. `last_seen_at` is at most about an hour late. `is_current` is true for the session of this request."""

    id: Uuid
    browser: str | None
    system: str | None
    created_at: Moment
    last_seen_at: Moment | None
    expires_at: Moment
    is_current: bool


class OwnSessionList(msgspec.Struct):
    """The session of this request, and then the others, the last used first; 100 at most."""

    items: list[OwnSession]


def current_session(caller: Caller) -> bytes:
    """Return the hash of the token of the caller's session.

    Raises:
        SessionRequired: the credential is not a whole session of a person.
    """
    # A token that is limited to some scopes may belong to a program.
    if caller.session is None or caller.scopes is not None:
        raise SessionRequired("only the person can do this, in a browser that is signed in")
    return caller.session


async def sessions_of(
    database: Database, uses: LastUses, person_id: str, current: bytes, limit: int = MAX_SESSIONS
) -> list[OwnSession]:
    """Return the person's sessions. `current` is the hash of the session of the request."""
    now = clock.now()
    rows = await database.scan(LIST, person_id, now, current, limit)
    return [_session(row, uses, current) for row in rows]


def _session(
    row: tuple[bytes, str | None, str | None, Instant, Instant, Instant | None], uses: LastUses, current: bytes
) -> OwnSession:
    token_hash, browser, system, created_at, expires_at, seen_at = row
    token_hash = bytes(token_hash)
    last_seen = uses.last(queries.SESSION_PREFIX + token_hash.hex()) or seen_at
    return OwnSession(
        id=ids.uuid_of(token_hash[:16]),
        browser=browser,
        system=system,
        created_at=clock.rfc3339(created_at),
        last_seen_at=None if last_seen is None else clock.rfc3339(last_seen),
        expires_at=clock.rfc3339(expires_at),
        is_current=token_hash == current,
    )


async def list_sessions(call: StoreRequest[Nothing, Nothing]) -> Response:
    """List the caller's sessions: their browsers, and the times of their last use."""
    store, current = call.context, current_session(call.caller)
    sessions = await sessions_of(store.database, store.uses, call.caller.id, current)
    return response.json(OwnSessionList(sessions), headers=PRIVATE)


async def end_session(call: StoreRequest[Nothing, Nothing]) -> Response:
    """End a session of the caller, and every token issued from it."""
    current_session(call.caller)
    session_id = call.path["session_id"]
    hash_start = bytes.fromhex(session_id.replace("-", "")) if ids.is_uuid(session_id) else b""
    if not await queries.end_own_session(call.transaction, call.caller.id, hash_start):
        raise SessionNotFound("you have no session with this id")
    return response.no_content()


async def end_other_sessions(call: StoreRequest[Nothing, Nothing]) -> Response:
    """End all sessions of the caller except that of this request, and every token issued from them."""
    await queries.end_other_sessions(call.transaction, call.caller.id, current_session(call.caller))
    return response.no_content()


ROUTES = (
    route(
        "GET",
        "/me/sessions",
        list_sessions,
        answers={200: OwnSessionList},
        refusals=(SessionRequired,),
        scope=READ_LIBRARY,
        sends={200: ("Cache-Control",)},
    ),
    route(
        "DELETE",
        "/me/sessions",
        end_other_sessions,
        answers={204: None},
        refusals=(SessionRequired,),
        scope=READ_LIBRARY,
        writes=True,
    ),
    route(
        "DELETE",
        "/me/sessions/{session_id}",
        end_session,
        answers={204: None},
        refusals=(SessionRequired, SessionNotFound),
        scope=READ_LIBRARY,
        writes=True,
    ),
)
