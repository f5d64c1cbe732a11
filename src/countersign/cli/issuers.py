"""`countersign issuers`: the identity providers whose assertions a data directory's own store believes."""

import click

from countersign.cli import output, store
from countersign.cli.administration import data_option
from countersign.kernel.security import external_jwt
from countersign.store.auth import trusted_issuers
from countersign.store.auth.agents import registrations
from countersign.store.auth.trusted_issuers import Issuer
from countersign.store.context import Store


@click.group()
def issuers() -> None:
    """Identity providers whose assertions about people are believed."""


@issuers.command("add")
@click.argument("issuer")
@click.option("--jwks-uri", required=True, metavar="URL", help="Where the issuer's public keys are.")
@click.option("--name", required=True, help="What people see of it on the claim page.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    type=click.Choice(external_jwt.ALGORITHMS),
    help="An algorithm it signs with; may be said several times. Default: ES256 and RS256.",
)
@click.option(
    *("--client-id", "client_ids"),
    multiple=True,
    metavar="ID",
    help="A client it may speak to; may be said several times. Default: any.",
)
@click.option(
    *("--domain", "domains"),
    multiple=True,
    metavar="DOMAIN",
    help="A domain of e-mail addresses it may speak for; may be said several times. Default: any.",
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
    """Believe ISSUER (its identifier, exactly as its tokens name it) from now on."""

    async def work(opened: Store) -> Issuer:
        async with opened.database.transaction() as transaction:
            return await trusted_issuers.add(
                transaction,
                opened,
                issuer,
                name=name,
                jwks_uri=jwks_uri,
                algorithms=algorithms,
                client_ids=client_ids,
                domains=domains,
            )

    made = store.run(data, f"cannot trust {issuer}", work)
    output.answer(_value(made), f"{made.issuer} is trusted as {made.name}.")


@issuers.command("list")
@data_option
@output.json_option
def list_issuers(data: str | None) -> None:
    """List the issuers that are trusted."""

    async def work(opened: Store) -> list[Issuer]:
        return await trusted_issuers.issuers(opened.database)

    found = store.run(data, "cannot list the issuers", work)
    lines = [f"{each.issuer}  {each.name}  {each.jwks_uri}  {','.join(sorted(each.algorithms))}" for each in found]
    output.answer({"issuers": [_value(each) for each in found]}, "\n".join(lines) or "No issuer is trusted.")


@issuers.command("remove")
@click.argument("issuer")
@data_option
@output.json_option
def remove_issuer(issuer: str, data: str | None) -> None:
    """Believe nothing of ISSUER any more, and end every agent that came through it."""

    async def work(opened: Store) -> int:
        async with opened.database.transaction() as transaction:
            await trusted_issuers.remove(transaction, issuer)
            return await registrations.revoke_issuer(transaction, issuer)

    ended = store.run(data, f"cannot remove {issuer}", work)
    output.answer({"issuer": issuer, "agents_ended": ended}, f"{issuer} is no longer trusted; agents ended: {ended}.")


def _value(issuer: Issuer) -> dict[str, object]:
    return {
        "issuer": issuer.issuer,
        "name": issuer.name,
        "jwks_uri": issuer.jwks_uri,
        "algorithms": sorted(issuer.algorithms),
        "client_ids": sorted(issuer.client_ids),
        "domains": sorted(issuer.domains),
    }
