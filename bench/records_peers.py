"""Compares the records service with other products: a page of leads with its total, and one lead. Only ours checks
rights, applies a row rule and masks fields."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import harness
import msgspec
import records_seed
from harness import Bench, Contender, Requests
from peers import directus, django, tryton
from peers.peer import LIMIT, ORDER, STAGE, Page, Peer, Place, Serving, send_raw
from processes import worker
from records_seed import STAGES, Seeded, values_of

LEADS = int(os.environ.get("BENCH_LEADS", "100000"))
QUERY: dict[str, object] = {
    "filter": [{"field": "stage", "op": "eq", "value": STAGE}],
    "order": [{"field": ORDER}],
    "limit": LIMIT,
}
PEERS: dict[str, Serving] = {"django": django.serving, "tryton": tryton.serving, "directus": directus.serving}
LIST, GET = f"list of {LIMIT} with total", "get"
AIMS = {LIST: {"django": 2, "tryton": 20, "directus": 5}, GET: {"django": 3, "tryton": 20, "directus": 5}}
# The caller of our service: an agent whose role has a row rule and three masked fields.
CALLER = "agent of clerk"


class Lead(msgspec.Struct):
    """A lead as our service shows it to a caller who sees personal fields as tokens."""

    title: str
    contact_name: str
    contact_email: str
    notes: str


class Leads(msgspec.Struct):
    """A page of leads."""

    rows: list[Lead]
    total: int


class GetResponse(msgspec.Struct):
    """The response to get."""

    value: Lead


class SearchResponse(msgspec.Struct):
    """The response to search."""

    value: Leads


def _title_of(lead: Lead) -> str:
    for kind, value in (("PERSON", lead.contact_name), ("EMAIL", lead.contact_email), ("NOTES", lead.notes)):
        if not value.startswith(f"{kind}_"):
            raise ValueError(f"ours shows {value}")
    return lead.title


def _page_of(body: bytes) -> Page:
    page = msgspec.json.decode(body, type=SearchResponse).value
    return Page([_title_of(row) for row in page.rows], page.total)


@contextmanager
def _our_service(bench: Bench, seed_data: Seeded, ids: Iterable[str]) -> Iterator[Peer]:
    """Run the records service, with the requests of a caller with a row rule and masked fields."""
    configuration = {"contender": "records", "database_url": seed_data.database_url, "data": str(seed_data.data)}
    token = f"Bearer {seed_data.tokens[CALLER]}"

    def call(command: str, body: dict[str, object]) -> bytes:
        return harness.post(f"/api/lead/{command}", json.dumps(body).encode(), Authorization=token)

    gets = [call("get", {"id": id_}) for id_ in ids]
    with worker(configuration, bench.folder, bench.cores) as server_worker:
        decoder = msgspec.json.Decoder(GetResponse)
        yield Peer(
            server_worker, call("search", QUERY), gets, _page_of, lambda body: _title_of(decoder.decode(body).value)
        )


def _visible_leads(seed_data: Seeded) -> dict[int, str]:
    """Map the numbers of the leads that the row rule permits to their ids."""
    by_number = {position * records_seed.NOTED_EACH: lead for position, lead in enumerate(seed_data.leads)}
    return {number: lead for number, lead in by_number.items() if STAGES[number % len(STAGES)] != "lost"}


def expected() -> Page:
    """Return the page that every contender must respond with."""
    leads = [values_of(number, "") for number in range(LEADS)]
    matching = [lead for lead in leads if lead["stage"] == STAGE]
    matching.sort(key=lambda lead: int(lead[ORDER] or 0))
    return Page([str(lead["title"]) for lead in matching[:LIMIT]], len(matching))


def check(name: str, peer: Peer, number: int) -> None:
    """Require that the contender responds with the expected page, and that the last lead to get has this number.

    Raises:
        ValueError: the page or the lead differs.
    """
    expected_page, peer_page = expected(), peer.page_of(send_raw(peer.worker, peer.page))
    if peer_page != expected_page:
        raise ValueError(f"{name} gives {peer_page}\nnot {expected_page}")
    title = peer.title_of(send_raw(peer.worker, peer.gets[-1]))
    if title != values_of(number, "")["title"]:
        raise ValueError(f"{name} gives {title} as lead {number}")


def measure(bench: Bench, database: str) -> None:
    """Measure both requests on one database, with our service and all peers that can be installed."""
    with ExitStack() as stack:
        seed_data = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        if database == "postgres" and bench.cluster is not None:
            bench.cluster.sql("VACUUM ANALYZE", seed_data.database_url)
        visible_leads = _visible_leads(seed_data)
        contenders = {"ours": stack.enter_context(_our_service(bench, seed_data, visible_leads.values()))}
        skipped_reasons: dict[str, str] = {}
        location = Place(database, bench.folder, bench.cluster, bench.cores, LEADS)
        for name, serving in PEERS.items():
            try:
                contenders[name] = stack.enter_context(serving(location, list(visible_leads)))
            except RuntimeError as reason:
                print(f"{name}: {reason}", file=sys.stderr)
                skipped_reasons[name] = str(reason).partition("\n")[0]
        for name, contender in contenders.items():
            check(name, contender, max(visible_leads))
        for variant, aims in AIMS.items():
            contender_list = [
                Contender(name, contender.worker, Requests([contender.page] if variant == LIST else contender.gets))
                for name, contender in contenders.items()
            ]
            table = bench.compare(
                database, f"{variant}, {LEADS:,} leads", contender_list, skipped_reasons=skipped_reasons
            )
            for name in filter(contenders.__contains__, aims):
                bench.aim(f"{database}, {variant} to {name}", table.ratios[f"ours/{name}"], aims[name])


if __name__ == "__main__":
    with harness.bench("records_peers", "leads beside Django, Tryton and Directus: a page with total, one") as running:
        for database in running.options.databases:
            measure(running, database)
