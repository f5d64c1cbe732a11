"""Whoever uses our pages in a browser, signed in."""

from typing import NamedTuple

from countersign.distribution.context import Store
from countersign.distribution.identity import pages, queries, sessions
from countersign.distribution.identity.queries import Person
from countersign.kernel.clock import Instant
from countersign.kernel.http.request import Headers
from countersign.kernel.http.response import Response
from countersign.kernel.security import secrets


class Visitor(NamedTuple):
    """A signed-in person: the session's token, who it is, and since when."""

    session: str
    person: Person
    since: Instant


async def present(store: Store, headers: Headers) -> Visitor | None:
    """The person whose session the request carries."""
    token = sessions.session_token(store, headers)
    session = None if token is None else await queries.session(store.database, secrets.digest(token))
    person = None if session is None else await queries.person(store.database, session.person_id)
    if token is None or session is None or person is None:
        return None
    return Visitor(token, person, session.created_at)


async def signed_in(store: Store, headers: Headers, target: str) -> Visitor | Response:
    """The signed-in person, or the way to sign in and come back to `target`, a path of this service.

    Raises:
        InsecureSignIn: the service is reached over plain http from other machines.
    """
    sessions.require_secure(store)
    return await present(store, headers) or pages.to_sign_in(headers, target)
