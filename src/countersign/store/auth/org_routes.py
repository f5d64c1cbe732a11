"""/org, /org/members, /org/clients, /org/usage: the settings of an organisation; requires admin:org."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from countersign.kernel import clock
from countersign.kernel.database.port import Transaction
from countersign.kernel.http import response
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store import scopes
from countersign.store.auth import organisations, people, queries
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.oauth import clients
from countersign.store.auth.oauth.clients import ClientNotFound
from countersign.store.auth.organisations import organisation_of
from countersign.store.auth.people import LastOwner, MemberNotFound
from countersign.store.auth.schemas import (
    Client,
    ClientQuery,
    Member,
    MemberQuery,
    NewClient,
    NewMember,
    Organisation,
    OrganisationUpdate,
    OrgQuery,
    Usage,
)
from countersign.store.context import Store

ADMIN = "admin:org"


async def show_organisation(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """Show the caller's organisation."""
    database = call.context.database
    org = await organisation_of(database, call.caller, call.query.org, ADMIN)
    text, website = await organisations.profile(database, org.id)
    return response.json(Organisation(org.slug, org.name, clock.rfc3339(org.created_at), text, website))


OnRename: TypeAlias = Callable[[Transaction, str], Awaitable[None]]
"""A function that is called with the id of an organisation whose name or profile changed, in the same transaction."""


async def change_profile(call: StoreRequest[OrgQuery, OrganisationUpdate], on_profile_change: OnRename) -> Response:
    """Change the organisation's name and profile, and call `on_profile_change`."""
    changes = call.body
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    organisations.require_name(changes.name)
    text, website = await organisations.profile(call.transaction, org.id)
    text = text if isinstance(changes.text, msgspec.UnsetType) else changes.text
    website = website if isinstance(changes.website, msgspec.UnsetType) else changes.website
    await call.transaction.run(queries.RENAME_ORGANISATION, org.id, changes.name)
    await call.transaction.run(queries.SET_PROFILE, org.id, text, website)
    await on_profile_change(call.transaction, org.id)
    return response.json(Organisation(org.slug, changes.name, clock.rfc3339(org.created_at), text, website))


async def show_usage(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """Count what the organisation has and uses."""
    org = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    counts = await organisations.usage(call.context.database, org.id)
    return response.json(Usage(*counts, downloaded=await organisations.most_downloaded(call.context.database, org.id)))


async def list_members(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """List the people with a role in the organisation."""
    org = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    rows = await call.context.database.fetch(queries.MEMBERS, org.id)
    return response.json([Member(email, role, clock.rfc3339(member_since)) for email, role, member_since in rows])


async def put_member(call: StoreRequest[OrgQuery, NewMember]) -> Response:
    """Give a person a role, or change it."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    await people.set_role(call.transaction, org.id, call.body.email, call.body.role)
    return response.json(Member(call.body.email.lower(), call.body.role, clock.rfc3339(clock.now())), 201)


async def remove_member(call: StoreRequest[MemberQuery, Nothing]) -> Response:
    """Remove a person's role."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    await people.remove_member(call.transaction, org.id, call.query.email)
    return response.no_content()


async def list_clients(call: StoreRequest[OrgQuery, Nothing]) -> Response:
    """List the organisation's OAuth clients."""
    org = await organisation_of(call.context.database, call.caller, call.query.org, ADMIN)
    client_rows = await queries.clients(call.context.database, org.id)
    return response.json([_client_body(client) for client in client_rows])


async def add_client(call: StoreRequest[OrgQuery, NewClient]) -> Response:
    """Create an OAuth client; only this response contains its secret."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    client_body = call.body
    client, secret = await clients.create_client(
        call.transaction,
        org.id,
        client_body.name,
        client_body.scopes,
        redirect_uris=client_body.redirect_uris,
        is_implicit=client_body.implicit,
    )
    body = _client_body(client)
    body.client_secret = secret
    return response.json(body, 201)


async def remove_client(call: StoreRequest[ClientQuery, Nothing]) -> Response:
    """Remove an OAuth client; its tokens become invalid at once."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    await clients.delete_client(call.transaction, org.id, call.query.client_id)
    return response.no_content()


def _client_body(client: queries.Client) -> Client:
    ordered_scopes = [scope for scope in scopes.ALL if scope in client.scopes]
    created_text = clock.rfc3339(client.created_at)
    return Client(client.id, client.name, ordered_scopes, created_text, list(client.redirect_uris), client.is_implicit)


def routes(on_profile_change: OnRename) -> tuple[Route[Store], ...]:
    """The routes; `on_profile_change` is called when an organisation's name or profile changes."""

    async def change_organisation(call: StoreRequest[OrgQuery, OrganisationUpdate]) -> Response:
        """Change the organisation's name and its public profile."""
        return await change_profile(call, on_profile_change)

    return (
        *_ROUTES,
        route(
            "PUT",
            "/org",
            change_organisation,
            query=OrgQuery,
            body=OrganisationUpdate,
            answers={200: Organisation},
            scope=ADMIN,
            writes=True,
        ),
    )


_ROUTES: tuple[Route[Store], ...] = (
    route("GET", "/org", show_organisation, query=OrgQuery, answers={200: Organisation}, scope=ADMIN),
    route("GET", "/org/usage", show_usage, query=OrgQuery, answers={200: Usage}, scope=ADMIN),
    route("GET", "/org/members", list_members, query=OrgQuery, answers={200: list[Member]}, scope=ADMIN),
    route(
        "POST",
        "/org/members",
        put_member,
        query=OrgQuery,
        body=NewMember,
        answers={201: Member},
        refusals=(LastOwner,),
        scope=ADMIN,
        writes=True,
    ),
    route(
        "DELETE",
        "/org/members",
        remove_member,
        query=MemberQuery,
        answers={204: None},
        refusals=(MemberNotFound, LastOwner),
        scope=ADMIN,
        writes=True,
    ),
    route("GET", "/org/clients", list_clients, query=OrgQuery, answers={200: list[Client]}, scope=ADMIN),
    route(
        "POST",
        "/org/clients",
        add_client,
        query=OrgQuery,
        body=NewClient,
        answers={201: Client},
        scope=ADMIN,
        writes=True,
        secret=True,
    ),
    route(
        "DELETE",
        "/org/clients",
        remove_client,
        query=ClientQuery,
        answers={204: None},
        refusals=(ClientNotFound,),
        scope=ADMIN,
        writes=True,
    ),
)
