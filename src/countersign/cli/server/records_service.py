"""How `serve` starts the records service: each worker opens it, and the first worker prepares it once."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from countersign.cli.server.listen_address import ListenAddress
from countersign.cli.server.service_runner import Service
from countersign.kernel.http.server import ASGIApp
from countersign.records import app, demo, demo_activity
from countersign.records import management as watching
from countersign.records.access import invitations as setup
from countersign.settings import BadSetting, Settings
from countersign.web import work_site
from countersign.web.assets import Assets
from countersign.web.origin import PublicAddress
from countersign.web.site import Site


@asynccontextmanager
async def open_records(settings: Settings, address: ListenAddress) -> AsyncGenerator[app.RecordsService]:
    """Open the service at its address, with up-to-date tables, and close it when the block ends.

    Raises:
        Refused: the database or the key cannot be used.
        BadSetting, DeclarationError: a setting or a module cannot be used.
    """
    async with app.open_records(settings, address.root_url, is_loopback=address.is_loopback) as service:
        yield service


@asynccontextmanager
async def application(service: app.RecordsService, tends: bool) -> AsyncGenerator[ASGIApp]:
    """Yield the application with its web pages. With `tends`, set in one worker only, also remove what has expired."""
    async with AsyncExitStack() as stack:
        if tends:
            await stack.enter_async_context(app.periodic_tasks(service))
        address = PublicAddress(service.records.root_url, service.records.is_loopback)
        config, assets = work_site.site_config(address, SERVICE.setting), Assets.of_package()
        front = app.create(service, sign_in=work_site.SIGN_IN if assets.entry_assets(config.name) else "")
        yield Site(config, front, address, assets)


async def _seed(service: app.RecordsService) -> bool:
    """Add the demonstration to an empty database. Return whether the database was empty."""
    engine = service.engine
    if not await demo.seed(engine):
        return False
    if service.records.settings.demo_activity and {"crm", "billing", "helpdesk"} <= demo.modules_of(engine):
        await demo_activity.add_activity(engine)
    return True


async def prepare(service: app.RecordsService, is_demo: bool) -> str:
    """Fill an empty database with the demonstration if `is_demo`, and return the text about signing in.

    Raises:
        BadSetting: other machines could sign in with the publicly known passwords of the demonstration.
    """
    records = service.records
    is_seeded = is_demo and await _seed(service)
    if not records.is_loopback and await demo.is_open(service.engine):
        raise BadSetting(
            "the database has the well-known passwords of the demonstration: serve it on a loopback host only, like "
            "127.0.0.1, or use an empty data directory"
        )
    link = await setup.new_first_link(records)
    if link is not None:
        message = "No account exists yet. Create the first administrator with this link, once, within a day:"
        return f"  {message}\n    {link}"
    if not is_demo:
        return f"  Sign in: {records.root_url}/signin (in a browser)"
    if not is_seeded and not await demo.is_open(service.engine):
        return "  The database has data of its own, so --demo changed nothing."
    people = "\n".join(f"    {name:<6} {description}" for name, description in demo.PEOPLE_SHOWN)
    return (
        f"  Sign in: {records.root_url}/signin (in a browser)\n"
        f"  People, each with the password {demo.PASSWORD}:\n{people}\n"
        f"  Try:     curl -X POST {records.root_url}/api/auth/login -H 'Content-Type: application/json' "
        f'-d \'{{"username":"alice","password":"{demo.PASSWORD}"}}\''
    )


SERVICE = Service(
    name="records",
    title="records",
    setting="COUNTERSIGN_RECORDS_URL",
    url=lambda settings: settings.records_url,
    open=open_records,
    database=lambda service: service.records.database,
    prepare=prepare,
    application=application,
    checks=watching.service_checks,
)
