"""How `serve` starts the store: each worker opens it, and the first worker prepares it once."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from countersign.cli.server import worker
from countersign.cli.server.listen_address import ListenAddress
from countersign.cli.server.service_runner import Service
from countersign.kernel.http.server import ASGIApp
from countersign.settings import BadSetting, Settings
from countersign.store import app, demo, lifespan, management
from countersign.store.apidocs.health import DOCUMENT_LINKS
from countersign.store.auth import people, queries, sessions
from countersign.store.context import Store
from countersign.store.demo import player, signed_builds
from countersign.web import store_site
from countersign.web.assets import Assets
from countersign.web.origin import PublicAddress
from countersign.web.site import Site


@asynccontextmanager
async def open_store(settings: Settings, address: ListenAddress) -> AsyncGenerator[Store]:
    """Open the store at its address, with an up-to-date database, and close it when the block ends.

    Raises:
        Refused: the database, the blob store or the key cannot be used.
        BadSetting: a setting cannot be used.
    """
    async with app.open_store(settings, address.root_url, is_loopback=address.is_loopback) as store:
        yield store


@asynccontextmanager
async def application(store: Store, tends: bool) -> AsyncGenerator[ASGIApp]:
    """Yield the store's application with its web pages.

    With `tends`, set in one worker only, also register this node, remove what has expired, and run the processes that
    work on jobs.

    Raises:
        BadSetting: another node serves the same database without shared counters and files.
    """
    async with AsyncExitStack() as stack:
        if tends:
            await stack.enter_async_context(lifespan.prevent_second_node(store.settings))
            await stack.enter_async_context(app.periodic_maintenance(store))
            await stack.enter_async_context(worker.background_workers(store))
        await stack.enter_async_context(app.periodic_use_recording(store))
        workers = worker.COMMAND if store.settings.job_workers else ()
        front = app.create(store, workers=workers)
        stack.push_async_callback(front.close)
        address = PublicAddress(store.root_url, store.is_loopback)
        title, cookie = store.settings.resource_name, sessions.cookie_name(store)
        assets = Assets.of_package()
        config = store_site.site_config(title, cookie, address, link=DOCUMENT_LINKS, fonts=assets.fonts())
        yield Site(config, front, address, assets)


async def prepare(store: Store, is_demo: bool) -> str:
    """Fill an empty database with the demonstration if `is_demo`, and return the text about signing in.

    Raises:
        BadSetting: other machines could sign in with the publicly known passwords of the demonstration.
    """
    if is_demo and await demo.seed(store) and store.settings.demo_activity:
        await player.add_activity(store)
        await signed_builds.request_builds(store)
    if not store.is_loopback and await demo.is_open(store.database):
        raise BadSetting(
            "the database has the well-known passwords of the demonstration: serve it on a loopback host only, like "
            "127.0.0.1, or use an empty data directory"
        )
    link = await people.create_setup_link(store)
    if link is not None:
        message = (
            "No account exists yet. Create the first organisation and its owner with this link, once, within a day:"
        )
        return f"  {message}\n    {link}"
    sign_in = f"  Sign in: {store.root_url}/auth/signin"
    if not is_demo:
        return sign_in
    if await queries.person_with_email(store.database, demo.PLAYER) is None:
        return f"{sign_in}\n  The database has data of its own, so --demo changed nothing."
    return "\n".join(
        (
            sign_in,
            f"    customer      {demo.PLAYER}     password {demo.PASSWORD}",
            f"    publisher     {demo.PUBLISHER}  password {demo.PASSWORD}",
            f"    OAuth client  {demo.CLIENT_ID}         secret   {demo.CLIENT_SECRET}",
            f"  Codes:   {demo.LICENCE_CODES[0]} … {demo.LICENCE_CODES[-1][-5:]}, {demo.PROMO_CODE}",
            f"  Try:     curl '{store.base_url}/products?limit=3'",
            f"  Agents:  {store.root_url}/llms.txt; tools at {store.root_url}/mcp",
            f"           a key for the sandbox: curl '{store.root_url}/api/keys?tier=sandbox'",
        )
    )


SERVICE = Service(
    name="distribution",
    title="store",
    setting="COUNTERSIGN_DISTRIBUTION_URL",
    url=lambda settings: settings.distribution_url,
    open=open_store,
    database=lambda store: store.database,
    prepare=prepare,
    application=application,
    checks=management.service_checks,
)
