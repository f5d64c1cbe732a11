"""`countersign webhooks`: the webhooks for events of plans, or with --org for the events of an organisation."""

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

import click

from countersign.cli import configuration, output
from countersign.cli.admin import keys, open_records, open_store
from countersign.cli.options import data_option, parse_past_time
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock, safe_http_client
from countersign.kernel.clock import Instant
from countersign.kernel.webhooks import outbox, receivers
from countersign.kernel.webhooks.outbox import Delivery, Outbox, Replayed
from countersign.kernel.webhooks.receivers import Receiver, WebhookNotFound
from countersign.records import app
from countersign.records.approvals import changes as record_events
from countersign.settings import Settings
from countersign.store import webhook_events as store_events
from countersign.store.auth import queries
from countersign.store.context import Store

ResultT = TypeVar("ResultT")

CANNOT_ADD = "cannot add the webhook"
CANNOT_RESUME = "cannot resume webhooks and e-mails"
SINCE_HELP = "All events since this time, like 2026-11-20T22:13:00Z, 2026-11-20, or 3d for three days ago."

org_option = click.option("--org", metavar="SLUG", help="An organisation of the store. Default: the records service.")


class WebhookScope(NamedTuple):
    """The outbox to use, the owner of the receivers, and the types of events that the outbox has."""

    outbox: Outbox
    owner: str
    types: tuple[str, ...]


Work = Callable[[WebhookScope], Awaitable[ResultT]]


def _run(data: str | None, org: str | None, failure: str, work: Work[ResultT]) -> ResultT:
    """Run the work on the webhooks of an organisation or of the records service, and return the result of the work.

    `failure` is the beginning of a failure's message.

    Raises:
        Failure: there is no such organisation, or the work was refused.
    """

    async def of_org(opened_store: Store) -> ResultT:
        organisation = await queries.organisation_with_slug(opened_store.database, org or "")
        if organisation is None:
            remedy = "Pass --org with the slug of an organisation."
            raise Failure(failure, why=f"there is no organisation {org}", remedy=remedy, exit_code=Exit.NOT_FOUND)
        return await work(
            WebhookScope(store_events.outbox_of(opened_store), organisation.id, get_args(store_events.EventType))
        )

    async def of_records(service: app.RecordsService) -> ResultT:
        box = record_events.outbox_of(service.records)
        try:
            return await work(WebhookScope(box, record_events.OWNER, record_events.TYPES))
        except WebhookNotFound as missing:
            reason = "the records service has no webhook with this id"
            remedy = "For a webhook of an organisation, pass --org SLUG. Otherwise use an id of `webhooks list`."
            problem = missing.code
            raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.NOT_FOUND, problem=problem) from missing

    return open_records.run(data, failure, of_records) if org is None else open_store.run(data, failure, of_org)


@click.group()
def webhooks() -> None:
    """Webhooks of the records service or of an organisation."""


@webhooks.command("add")
@click.argument("url")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="An event type to send; default: all.")
@org_option
@data_option
@output.json_option
def add_webhook(url: str, types: tuple[str, ...], org: str | None, data: str | None) -> None:
    """Send events to URL, and print the secret that signs them. The secret cannot be shown again."""

    async def work(scope: WebhookScope) -> tuple[Receiver, str]:
        unknown_types = sorted({*types} - {*scope.types})
        if unknown_types:
            remedy = f"Name some of: {', '.join(scope.types)}"
            raise Failure(CANNOT_ADD, why=f"no event is called {unknown_types[0]}", remedy=remedy, exit_code=Exit.USAGE)
        if not scope.outbox.is_private:
            _require_public(url)
        async with scope.outbox.database.transaction() as transaction:
            return await receivers.add(transaction, scope.outbox, scope.owner, url, types)

    webhook, secret = _run(data, org, CANNOT_ADD, work)
    output.print_result({**_receiver_value(webhook), "secret": secret}, f"{webhook.id}\n{secret}")
    output.note("Give the secret to the receiver: it is not shown again.")


def _require_public(url: str) -> None:
    """Check that the URL does not name a private address, without a DNS lookup.

    Raises:
        Failure: the URL names a private address, or begins with http://.
    """
    try:
        url_parts = urlsplit(url)
        host = (url_parts.hostname or "").lower()
    except ValueError:
        return
    if url_parts.scheme == "http":
        reason = f"events would be sent to {url} without TLS"
    elif host == "localhost" or host.endswith(".localhost") or _is_private(host):
        reason = f"{host} is not a public address, and no events are sent to other addresses"
    else:
        return
    remedy = (
        "Name a public address with https://. To allow private networks, set COUNTERSIGN_PRIVATE_WEBHOOKS=true, here "
        "and for the server. Everyone who may add webhooks can then make the server send requests in these networks."
    )
    raise Failure(CANNOT_ADD, why=reason, remedy=remedy, exit_code=Exit.USAGE)


def _is_private(host: str) -> bool:
    try:
        return not safe_http_client.is_public(ip_address(host))
    except ValueError:
        return False


@webhooks.command("list")
@org_option
@data_option
@output.json_option
def list_webhooks(org: str | None, data: str | None) -> None:
    """List the webhooks."""

    async def work(scope: WebhookScope) -> list[Receiver]:
        return await receivers.list_receivers(scope.outbox.database, scope.owner)

    webhook_rows = _run(data, org, "cannot list the webhooks", work)
    lines = [
        f"{row.id}  {row.url}  {','.join(row.chosen) or 'all'}  failures: {row.failures}" for row in webhook_rows
    ]
    output.print_result(
        {"webhooks": [_receiver_value(row) for row in webhook_rows]}, "\n".join(lines) or "There is no webhook."
    )


@webhooks.command("rotate")
@click.argument("webhook_id", metavar="ID")
@org_option
@data_option
@output.json_option
def rotate_secret(webhook_id: str, org: str | None, data: str | None) -> None:
    """Sign with a new secret, and print the secret. For one more day, the previous secret signs as well."""

    async def work(scope: WebhookScope) -> str:
        async with scope.outbox.database.transaction() as transaction:
            return await receivers.rotate(transaction, scope.outbox, scope.owner, webhook_id)

    secret = _run(data, org, "cannot make a new secret", work)
    output.print_result({"id": webhook_id, "secret": secret}, secret)


@webhooks.command("remove")
@click.argument("webhook_id", metavar="ID")
@org_option
@data_option
@output.json_option
def remove_webhook(webhook_id: str, org: str | None, data: str | None) -> None:
    """Remove the webhook and its pending deliveries."""

    async def work(scope: WebhookScope) -> None:
        async with scope.outbox.database.transaction() as transaction:
            await receivers.remove(transaction, scope.owner, webhook_id)

    _run(data, org, "cannot remove the webhook", work)
    output.print_result({"id": webhook_id}, f"{webhook_id} is removed.")


@webhooks.command("ping")
@click.argument("webhook_id", metavar="ID")
@org_option
@data_option
@output.json_option
def ping_webhook(webhook_id: str, org: str | None, data: str | None) -> None:
    """Make a running server send an event of the type webhook.ping, and print the id of the event."""

    async def work(scope: WebhookScope) -> str:
        async with scope.outbox.database.transaction() as transaction:
            receiver = await receivers.find(transaction, scope.owner, webhook_id)
            return (await outbox.ping(transaction, scope.owner, receiver.id)).id

    event_id = _run(data, org, "cannot ping the webhook", work)
    output.print_result({"event_id": event_id}, event_id)


@webhooks.command("deliveries")
@click.argument("webhook_id", metavar="ID")
@click.option("--state", type=click.Choice(get_args(outbox.State)), help="Only deliveries in this state.")
@click.option(
    "--last", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Number of deliveries, newest first."
)
@org_option
@data_option
@output.json_option
def list_deliveries(
    webhook_id: str, *, state: outbox.State | None, last: int, org: str | None, data: str | None
) -> None:
    """List the deliveries to the webhook."""

    async def work(scope: WebhookScope) -> list[Delivery]:
        receiver = await receivers.find(scope.outbox.database, scope.owner, webhook_id)
        return await outbox.list_deliveries(scope.outbox.database, receiver.id, outbox.AFTER_EVERY_ID, state, last)

    deliveries = _run(data, org, "cannot list the deliveries", work)
    delivery_rows = [
        {
            **delivery._asdict(),
            "at": clock.rfc3339_or_none(delivery.at),
            "due_at": clock.rfc3339_or_none(delivery.due_at if delivery.state == "waiting" else None),
            "ended_at": clock.rfc3339_or_none(delivery.ended_at),
        }
        for delivery in deliveries
    ]
    lines = [
        f"{delivery.event_id}  {clock.rfc3339(delivery.at)}  {delivery.type}  {delivery.subject}  {delivery.state}"
        f"  attempts: {delivery.attempts}  last: {delivery.answer or delivery.fault or '-'}"
        for delivery in deliveries
    ]
    output.print_result({"deliveries": delivery_rows}, "\n".join(lines) or "There is no delivery.")


@webhooks.command("replay")
@click.argument("webhook_id", metavar="ID")
@click.option("--event", "event_id", metavar="ID", help="Only this event.")
@click.option("--since", metavar="MOMENT", callback=parse_past_time, help=SINCE_HELP)
@org_option
@data_option
@output.json_option
def replay(webhook_id: str, *, event_id: str | None, since: Instant | None, org: str | None, data: str | None) -> None:
    """Make a running server deliver again: one event, or all events since a time, at most 10,000."""
    if (event_id is None) == (since is None):
        raise click.UsageError("use either --event or --since")

    async def work(scope: WebhookScope) -> Replayed:
        async with scope.outbox.database.transaction() as transaction:
            receiver = await receivers.find(transaction, scope.owner, webhook_id)
            if since is not None:
                return await outbox.replay_since(transaction, scope.owner, receiver.id, receiver.types, since)
            await outbox.replay(transaction, receiver.id, event_id or "")
            return Replayed(1, None)

    replay_result = _run(data, org, "cannot replay", work)
    through_text = clock.rfc3339_or_none(replay_result.through)
    summary = f"Deliveries to send again: {replay_result.deliveries}."
    output.print_result({"deliveries": replay_result.deliveries, "next_since": through_text}, summary)
    if through_text is not None:
        output.note(f"There are more events: continue with --since {through_text}.")


@webhooks.command("resume")
@data_option
@output.json_option
def resume(data: str | None) -> None:
    """Resume webhooks and e-mails about plans of both services; `restore` pauses them."""

    settings = configuration.load(data=data)
    resumed_services = open_records.run_coroutine(_resume(settings), CANNOT_RESUME)
    summary = f"Sending is resumed: {', '.join(resumed_services)}." if resumed_services else "Nothing was paused."
    output.print_result({"resumed": resumed_services}, summary)


async def _resume(settings: Settings) -> list[str]:
    """Resume the webhooks and e-mails of both services. Return the services in which they were paused."""
    async with keys.open_databases(settings) as databases:
        await keys.require_upgraded(settings, databases, CANNOT_RESUME)
        resumed_services: list[str] = []
        for service in databases:
            async with service.database.transaction() as transaction:
                if await outbox.resume(transaction):
                    resumed_services.append(service.tables.schema)
        return resumed_services


def _receiver_value(receiver: Receiver) -> dict[str, object]:
    return {
        "id": receiver.id,
        "url": receiver.url,
        "types": receiver.chosen or None,
        "created_at": clock.rfc3339(receiver.created_at),
        "failures": receiver.failures,
        "delivered_at": clock.rfc3339_or_none(receiver.delivered_at),
    }
