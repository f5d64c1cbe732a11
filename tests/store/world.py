"""A small world of organisations, people and products, created with the store's own functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from countersign.kernel import clock
from countersign.kernel.security import secrets
from countersign.store import library
from countersign.store.auth import organisations, people, queries, sessions, tokens
from countersign.store.auth.oauth import clients
from countersign.store.catalog import projection
from countersign.store.context import Store
from countersign.store.releases import lifecycle
from countersign.store.releases.schemas import ProductWrite
from countersign.store.scopes import Role

ALL_SCOPES = "read:products write:products read:releases write:releases read:library admin:org"


@dataclass
class World:
    """Creates what a test needs directly in the store, and calls the store over HTTP."""

    store: Store
    http: httpx.AsyncClient

    async def org(self, slug: str) -> str:
        """Create an organisation, and return its id."""
        async with self.store.database.transaction() as transaction:
            return (await organisations.create_organisation(transaction, slug, slug.title())).id

    async def person(self, email: str, **roles: Role) -> str:
        """Create a person with a role in each named organisation (with underscores for dashes), and return a bearer
        token with all scopes of the person."""
        async with self.store.database.transaction() as transaction:
            person = await people.add_person(transaction, email, None)
            for slug, role in roles.items():
                org = await queries.organisation_with_slug(transaction, slug.replace("_", "-"))
                assert org is not None
                await people.set_role(transaction, org.id, email, role)
        held_scopes = await tokens.scopes_of_person(self.store.database, person.id)
        return tokens.issue(self.store, person.id, tokens.FIRST_PARTY, held_scopes)

    async def person_token(self, email: str, scope: str) -> str:
        """Return a token of an existing person with only these scopes."""
        person = await queries.person_with_email(self.store.database, email)
        assert person is not None
        return tokens.issue(self.store, person.id, tokens.FIRST_PARTY, frozenset(scope.split()))

    async def session_token(self, email: str) -> str:
        """Sign an existing person in, and return a token of the session, with all rights of the person."""
        person = await queries.person_with_email(self.store.database, email)
        assert person is not None
        async with self.store.database.transaction() as transaction:
            session_hash = secrets.digest(await sessions.start_session(transaction, person.id, 3600))
        session = await queries.session(self.store.database, session_hash)
        assert session is not None
        return tokens.issue_in_session(self.store, session, session_hash, frozenset())[0]

    async def client_token(self, slug: str, scope: str = ALL_SCOPES) -> str:
        """Create an OAuth client of the organisation, and return a token of it."""
        org = await queries.organisation_with_slug(self.store.database, slug)
        assert org is not None
        async with self.store.database.transaction() as transaction:
            client, _ = await clients.create_client(transaction, org.id, "a client", scope.split())
        return tokens.issue(self.store, client.id, client.id, client.scopes)

    async def product(self, org: str, slug: str, **members: object) -> str:
        """Create a product of the organisation, which is public unless `status` says otherwise, and return its id."""
        organisation = await queries.organisation_with_slug(self.store.database, org)
        assert organisation is not None
        product_members: dict[str, object] = {"title": slug.replace("-", " ").title(), "status": "public", **members}
        body = ProductWrite(slug=slug, title=slug, kind="game", platforms=["linux"])
        for name, value in product_members.items():
            setattr(body, name, value)
        async with self.store.database.transaction() as transaction:
            return await lifecycle.create(transaction, organisation.id, body)

    async def grant(self, email: str, *product_ids: str) -> None:
        """Give a person entitlements to products."""
        person = await queries.person_with_email(self.store.database, email)
        assert person is not None
        async with self.store.database.transaction() as transaction:
            await library.grant(transaction, f"person:{person.id}", product_ids, "test", clock.now())

    async def refresh_entry(self, product_id: str) -> None:
        """Update the catalog entry of a product."""
        async with self.store.database.transaction() as transaction:
            await projection.refresh(transaction, product_id)

    async def call(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        headers: dict[str, str] | None = None,
        **options: object,
    ) -> httpx.Response:
        """Send a request to the API. The path is relative to BASE unless it begins with a folder of ROOT."""
        request_headers = dict(headers or {})
        if token is not None:
            request_headers["Authorization"] = f"Bearer {token}"
        at_root = path.startswith(("/auth/s", "/.well-known", "/problems", "/openapi", "/healthz", "http://", "/api/"))
        return await self.http.request(
            method, path if at_root else f"/api/v1{path}", headers=request_headers, **options
        )


def slugs(items: Sequence[dict[str, object]]) -> list[object]:
    """Return the slugs of products, in order."""
    return [item["slug"] for item in items]
