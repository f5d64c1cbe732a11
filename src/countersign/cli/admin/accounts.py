"""`countersign org`, `person`, `client`, `token` and `issuers`: manage the accounts of a data directory's store."""

import sys
from typing import get_args

import click

from countersign.cli import output
from countersign.cli.admin import open_store
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.kernel.database.port import Reader
from countersign.kernel.security import external_jwt
from countersign.store import scopes
from countersign.store.auth import organisations, people, queries, sessions, tokens, trusted_issuers
from countersign.store.auth.agents import registrations
from countersign.store.auth.oauth import clients
from countersign.store.auth.trusted_issuers import Issuer
from countersign.store.context import Store

MAX_PASSWORD_LENGTH = 4096


@click.group()
def org() -> None:
    """Organisations, the tenants of the store."""


@org.command("create")
@click.argument("slug")
@click.option("--name", required=True, help="The name that people see.")
@data_option
@output.json_option
def create_org(slug: str, name: str, data: str | None) -> None:
    """Create the organisation SLUG (a-z, 0-9 and -)."""

    async def work(opened_store: Store) -> queries.Organisation:
        async with opened_store.database.transaction() as transaction:
            return await organisations.create_organisation(transaction, slug, name)

    failure = f"cannot create the organisation {slug}"
    organisation = open_store.run(data, failure, work, validate_new=lambda: organisations.require_valid(slug, name))
    output.print_result(
        {"id": organisation.id, "slug": organisation.slug, "name": organisation.name},
        f"Created the organisation {organisation.slug}.",
    )


@click.group()
def person() -> None:
    """People, who sign in or use a token."""


@person.command("create")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin (asked for on a terminal).")
@click.option("--org", "slug", metavar="SLUG", help="An organisation to give the person a role in.")
@click.option("--role", type=click.Choice(get_args(scopes.Role)), help="The role in it. Default: viewer.")
@data_option
@output.json_option
def create_person(
    email: str, *, password_stdin: bool, slug: str | None, role: scopes.Role | None, data: str | None
) -> None:
    """Create a person. A person without a password can act only with a token (`countersign token issue`)."""
    if role is not None and slug is None:
        raise click.UsageError("--role needs --org: a role belongs to an organisation")
    failure = f"cannot create the person {email}"
    password = _read_password() if password_stdin else None

    async def work(opened_store: Store) -> queries.Person:
        async with opened_store.database.transaction() as transaction:
            person_id = await people.create_person(transaction, email, password)
            if slug is not None:
                organisation = await _require_organisation(transaction, slug, failure)
                await people.set_role(transaction, organisation.id, person_id.email, role or "viewer")
            return person_id

    person_id = open_store.run(data, failure, work)
    role_text = f" with the role {role or 'viewer'} in {slug}" if slug else ""
    value = {"id": person_id.id, "email": person_id.email, "org": slug, "role": (role or "viewer") if slug else None}
    output.print_result(value, f"Created {person_id.email}{role_text}.")


def _read_password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.read(MAX_PASSWORD_LENGTH).rstrip("\r\n")


async def _require_organisation(reader: Reader, slug: str, failure: str) -> queries.Organisation:
    organisation = await queries.organisation_with_slug(reader, slug)
    if organisation is None:
        remedy = f'Create it with: countersign org create {slug} --name "…"'
        raise Failure(failure, why=f"there is no organisation {slug}", remedy=remedy, exit_code=Exit.NOT_FOUND)
    return organisation


@click.group()
def client() -> None:
    """OAuth clients, which act for an organisation."""


@client.command("create")
@click.argument("slug", metavar="ORG")
@click.option("--name", required=True, help="The name that people see.")
@click.option("--scope", required=True, help=f"Scopes separated by spaces, among: {' '.join(scopes.ALL)}")
@click.option(
    "--redirect-uri",
    "redirect_uris",
    multiple=True,
    metavar="URI",
    help="Address to which people return after they allow the client to act for them; may be given several times.",
)
@data_option
@output.json_option
def create_client(slug: str, name: str, scope: str, redirect_uris: tuple[str, ...], data: str | None) -> None:
    """Create a client of ORG, and print its id and its secret. The secret cannot be shown again."""
    failure = f"cannot create a client of {slug}"
    if not scope.split():
        raise click.UsageError("--scope names no scope")

    async def work(opened_store: Store) -> tuple[queries.Client, str]:
        async with opened_store.database.transaction() as transaction:
            organisation = await _require_organisation(transaction, slug, failure)
            requested_scopes = scope.split()
            return await clients.create_client(
                transaction, organisation.id, name, requested_scopes, redirect_uris=redirect_uris
            )

    new_client, secret = open_store.run(data, failure, work)
    scope_text = scopes.words(new_client.scopes)
    value = {
        "client_id": new_client.id,
        "client_secret": secret,
        "org": slug,
        "name": name,
        "scope": scope_text,
        "redirect_uris": list(new_client.redirect_uris),
    }
    output.print_result(value, f"client_id: {new_client.id}\nclient_secret: {secret}")
    output.note("Keep the secret now: only its hash is stored, so the secret cannot be shown again.")


@click.group()
def token() -> None:
    """Bearer tokens of people."""


@token.command("issue")
@click.argument("email")
@click.option("--scope", help='Scopes separated by spaces, like "read:library read:products". Default: all of them.')
@data_option
@output.json_option
def issue_token(email: str, scope: str | None, data: str | None) -> None:
    """Print a bearer token of the person EMAIL, with no other output on stdout."""
    failure = f"cannot issue a token of {email}"

    async def work(opened_store: Store) -> tuple[str, str, int, str]:
        person = await queries.person_with_email(opened_store.database, sessions.normalize_email(email))
        if person is None:
            remedy = f"Create the person with: countersign person create {email}"
            raise Failure(failure, why="there is no such person", remedy=remedy, exit_code=Exit.NOT_FOUND)
        token_scopes = tokens.granted_scopes(scope, await tokens.scopes_of_person(opened_store.database, person.id))
        token_text = tokens.issue(opened_store, person.id, tokens.FIRST_PARTY, token_scopes)
        return token_text, scopes.words(token_scopes), opened_store.settings.token_ttl_s, opened_store.root_url

    token_text, token_scopes, lasts_s, issuer = open_store.run(data, failure, work)
    value = {"access_token": token_text, "token_type": "Bearer", "expires_in": lasts_s, "scope": token_scopes}
    output.print_result({**value, "issuer": issuer}, token_text)
    output.note(f"For {issuer}, valid for {lasts_s // 3600} hours, with: {token_scopes}")


@click.group()
def issuers() -> None:
    """Identity providers whose assertions about people are trusted."""


@issuers.command("add")
@click.argument("issuer")
@click.option("--jwks-uri", required=True, metavar="URL", help="Address of the issuer's public keys.")
@click.option("--name", required=True, help="Name of the issuer on the claim page.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    type=click.Choice(external_jwt.ALGORITHMS),
    help="Algorithm of the issuer's signatures; may be given several times. Default: ES256 and RS256.",
)
@click.option(
    *("--client-id", "client_ids"),
    multiple=True,
    metavar="ID",
    help="Client for which its assertions are accepted; may be given several times. Default: any.",
)
@click.option(
    *("--domain", "domains"),
    multiple=True,
    metavar="DOMAIN",
    help="E-mail domain of the people that it may assert; may be given several times. Default: any.",
)
@data_option
@output.json_option
def add_issuer(
    issuer: str,
    *,
    jwks_uri: str,
    name: str,
    algorithms: tuple[str, ...],
    client_ids: tuple[str, ...],
    domains: tuple[str, ...],
    data: str | None,
) -> None:
    """Trust ISSUER. It must be exactly the value of `iss` in the tokens of the issuer."""

    async def work(opened_store: Store) -> Issuer:
        async with opened_store.database.transaction() as transaction:
            return await trusted_issuers.add(
                transaction,
                opened_store,
                issuer,
                name=name,
                jwks_uri=jwks_uri,
                algorithms=algorithms,
                client_ids=client_ids,
                domains=domains,
            )

    issuer_row = open_store.run(data, f"cannot trust {issuer}", work)
    output.print_result(_issuer_value(issuer_row), f"{issuer_row.issuer} is trusted as {issuer_row.name}.")


@issuers.command("list")
@data_option
@output.json_option
def list_issuers(data: str | None) -> None:
    """List the issuers that are trusted."""

    async def work(opened_store: Store) -> list[Issuer]:
        return await trusted_issuers.issuers(opened_store.database)

    issuer_rows = open_store.run(data, "cannot list the issuers", work)
    lines = [
        f"{row.issuer}  {row.name}  {row.jwks_uri}  {','.join(sorted(row.algorithms))}" for row in issuer_rows
    ]
    output.print_result(
        {"issuers": [_issuer_value(row) for row in issuer_rows]}, "\n".join(lines) or "No issuer is trusted."
    )


@issuers.command("remove")
@click.argument("issuer")
@data_option
@output.json_option
def remove_issuer(issuer: str, data: str | None) -> None:
    """Stop trusting ISSUER, and revoke every agent that it registered."""

    async def work(opened_store: Store) -> int:
        async with opened_store.database.transaction() as transaction:
            await trusted_issuers.remove(transaction, issuer)
            return await registrations.revoke_issuer(transaction, issuer)

    ended_sessions = open_store.run(data, f"cannot remove {issuer}", work)
    output.print_result(
        {"issuer": issuer, "agents_ended": ended_sessions},
        f"{issuer} is no longer trusted; agents ended: {ended_sessions}.",
    )


def _issuer_value(issuer: Issuer) -> dict[str, object]:
    return {
        "issuer": issuer.issuer,
        "name": issuer.name,
        "jwks_uri": issuer.jwks_uri,
        "algorithms": sorted(issuer.algorithms),
        "client_ids": sorted(issuer.client_ids),
        "domains": sorted(issuer.domains),
    }
