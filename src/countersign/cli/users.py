"""`countersign user`: people of the records service."""

import click

from countersign.cli import output, record_store
from countersign.cli.administration import data_option
from countersign.declare.registry import Registry
from countersign.records import app
from countersign.records import user_creation as people
from countersign.records.access import invitations as setup
from countersign.records.access.view import Caller, View
from countersign.records.commands.run import Actor, Run


@click.group()
def user() -> None:
    """People of the records service, who sign in with a user name and a password."""


@user.command("create")
@click.argument("username")
@click.option("--name", help="What others read.")
@click.option("--email", help="The person's e-mail address.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role to give; may be said several times.")
@data_option
@output.json_option
def create_user(
    username: str, *, name: str | None, email: str | None, roles: tuple[str, ...], data: str | None
) -> None:
    """Create the person USERNAME; the link that is printed lets them set a password, once, within a day."""

    def new(registry: Registry) -> None:
        people.require(registry, username, name, email, roles)

    async def work(service: app.RecordsService) -> tuple[str, str, str]:
        async with service.records.database.transaction() as transaction:
            nobody = Caller("person", "", "", "", View({}))
            run = Run(service.engine, nobody, transaction, Actor("", request_id="command line"), transaction)
            user_id = await people.add(run, username, name, email, roles, None)
            secret = await setup.invite(transaction, user_id)
        is_guessed = record_store.known_url(service.records.settings) is None
        return user_id, setup.address(service.records, secret), service.records.root_url if is_guessed else ""

    user_id, link, guessed = record_store.run(data, f"cannot create the person {username}", work, new=new)
    output.answer({"id": user_id, "username": username, "roles": list(roles), "setup_url": link}, link)
    if guessed:
        output.note(f"It was never served here: serve it at {guessed}, or set COUNTERSIGN_RECORDS_URL beforehand.")
    output.note(f"Give this link to {username} alone: it sets the password, works once, and ends after a day.")
