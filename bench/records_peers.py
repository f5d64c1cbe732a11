"""The records service beside others: a page of leads with its total and one lead, ours with rights, rule and masks."""

import os
import sys
from contextlib import ExitStack

import harness
import msgspec
import records_seed
from harness import Bench, Contender, Requests
from peers import directus, django, tryton
from peers.peer import LIMIT, ORDER, STAGE, Page, Peer, Place, Serving, sent
from processes import Worker, worker
from records_read import asked
from records_seed import STAGES, Seeded, values_of

LEADS = int(os.environ.get("BENCH_LEADS", "100000"))
PAGE = {"filter": [{"field": "stage", "op": "eq", "value": STAGE}], "order": [{"field": ORDER}], "limit": LIMIT}
PEERS: dict[str, Serving] = {"django": django.serving, "tryton": tryton.serving, "directus": directus.serving}
LIST, GET = f"list of {LIMIT} with total", "get"
AIMS = {LIST: {"django": 2, "tryton": 20, "directus": 5}, GET: {"django": 3, "tryton": 20, "directus": 5}}
# Who asks ours: an agent whose role has a row rule, and three fields of the page masked.
WHO = "agent of clerk"


def gettable(seeded: Seeded) -> dict[int, str]:
    """Ids of leads that the rule lets see, by their numbers."""
    by_number = {place * records_seed.NOTED_EACH: lead for place, lead in enumerate(seeded.leads)}
    return {number: lead for number, lead in by_number.items() if STAGES[number % len(STAGES)] != "lost"}


def expected() -> Page:
    """The page that everybody is to give."""
    leads = [values_of(number, "") for number in range(LEADS)]
    matching = [each for each in leads if each["stage"] == STAGE]
    matching.sort(key=lambda lead: int(lead[ORDER] or 0))
    return Page([str(each["title"]) for each in matching[:LIMIT]], len(matching))


def check(name: str, peer: Peer, numbers: list[int]) -> None:
    """The peer gives the page and the lead that ours gives.

    Raises:
        ValueError: it gives something else.
    """
    wanted, found = expected(), peer.page_of(sent(peer.worker, peer.page))
    if found != wanted:
        raise ValueError(f"{name} gives {found}\nnot      {wanted}")
    title = peer.title_of(sent(peer.worker, peer.gets[-1]))
    if title != values_of(numbers[-1], "")["title"]:
        raise ValueError(f"{name} gives {title} for lead {numbers[-1]}")


def measure(bench: Bench, database: str) -> None:
    """Both questions on one database, to all peers that can be had."""
    with ExitStack() as stack:
        seeded = stack.enter_context(records_seed.new(database, LEADS, bench.folder, bench.cluster))
        if database == "postgres" and bench.cluster is not None:
            bench.cluster.sql("VACUUM ANALYZE", seeded.database_url)
        known = gettable(seeded)
        place = Place(database, bench.folder, bench.cluster, bench.cores, LEADS)
        peers, skipped = started(stack, place, list(known))
        configuration = {"contender": "records", "database_url": seeded.database_url, "data": str(seeded.data)}
        ours = stack.enter_context(worker(configuration, bench.folder, bench.cores))
        requests = {
            LIST: asked(seeded, WHO, "search", [PAGE]),
            GET: asked(seeded, WHO, "get", [{"id": each} for each in known.values()]),
        }
        check_ours(ours, requests)
        for variant, aims in AIMS.items():
            contenders = [Contender("ours", ours, requests[variant])]
            for name, peer in peers.items():
                made = Requests([peer.page] if variant == LIST else peer.gets)
                contenders.append(Contender(name, peer.worker, made))
            table = bench.compare(database, f"{variant}, {LEADS:,} leads", contenders, skipped=skipped)
            for name in peers:
                bench.aim(f"{database}, {variant} to {name}", table.ratios[f"ours/{name}"], aims[name])


def started(stack: ExitStack, place: Place, numbers: list[int]) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that serve until the stack ends, and why the others do not.

    Raises:
        ValueError: one gives other leads than ours.
    """
    peers: dict[str, Peer] = {}
    skipped: dict[str, str] = {}
    for name, serving in PEERS.items():
        try:
            peers[name] = stack.enter_context(serving(place, numbers))
        except RuntimeError as reason:
            print(f"{name}: {reason}", file=sys.stderr)
            skipped[name] = str(reason).partition("\n")[0]
        else:
            check(name, peers[name], numbers)
    return peers, skipped


class Ours(msgspec.Struct):
    """A page of ours; what is masked is told by name."""

    rows: list[dict[str, object]]
    total: int


def check_ours(ours: Worker, requests: dict[str, Requests]) -> None:
    """Ours gives the page that is expected, and each record of it without what is masked.

    Raises:
        ValueError: it does not.
    """
    body = sent(ours, requests[LIST].next(1)[0])
    print(body[:1500])


if __name__ == "__main__":
    with harness.bench("records_peers", "leads beside Django, Tryton and Directus: a page with total, one") as running:
        for each in running.options.databases:
            measure(running, each)
