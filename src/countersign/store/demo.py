"""The demonstration: an organisation with products, releases and codes, made with a fixed clock and fixed ids.

`python -m countersign.store.demo DIRECTORY` makes the template of the sandbox's data sets, in a process of its own:
clock and ids are fixed for the whole process.
"""

import asyncio
import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple, get_args

from countersign.kernel import clock, ids, installation_id
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Reader, Transaction
from countersign.kernel.security import passwords, secrets
from countersign.settings import Settings
from countersign.store import app, library, lifespan
from countersign.store.auth import organisations, people, queries, tokens
from countersign.store.auth.oauth import clients
from countersign.store.catalog import projection
from countersign.store.catalog.schemas import ChannelName, Kind, Platform
from countersign.store.context import Store
from countersign.store.redeem import codes
from countersign.store.releases import artifacts, blobs, lifecycle
from countersign.store.releases.permissions import OwnedProduct
from countersign.store.releases.schemas import NewRelease, ProductWrite
from countersign.store.releases.uploads import Content


class DemoProduct(NamedTuple):
    """A demonstration product: its name, description and tags."""

    name: str
    description: str
    tags: tuple[str, ...]


GAMES = (
    DemoProduct("Harbour of Small Lights", "Keep a lighthouse alive through one long winter.", ("cozy", "simulation")),
    DemoProduct("Glass Orchard", "Grow fruit that remembers who planted it.", ("cozy", "farming")),
    DemoProduct("The Ninth Tide", "A tactical retreat, told one wave at a time.", ("strategy", "turn-based")),
    DemoProduct("Copper Meridian", "Race airships along a line nobody else can see.", ("racing", "multiplayer")),
    DemoProduct(
        "Saltmarsh Detective", "Everyone in the village lies, and the tide is coming in.", ("mystery", "story")
    ),
    DemoProduct("Underroot", "Dig down through a forest that digs back.", ("roguelike", "action")),
    DemoProduct("Paper Cavalry", "Fold your army before the rain starts.", ("strategy", "puzzle")),
    DemoProduct("Aurora Freight", "Haul impossible cargo across a frozen moon.", ("simulation", "trucks")),
    DemoProduct("Lanternfall", "A platformer in which falling is the only way up.", ("platformer", "indie")),
    DemoProduct("Quiet Siege", "Win a war without waking the king.", ("strategy", "stealth")),
    DemoProduct("Mossback", "Live a hundred years as a very patient turtle.", ("cozy", "exploration")),
    DemoProduct("Neon Abbey", "Monks, synthesizers, and one stolen relic.", ("action", "music")),
    DemoProduct("Driftwood Kingdom", "Build a court on a raft and keep it afloat.", ("builder", "strategy")),
    DemoProduct("Seven Bells", "A naval tale of one ship and very little time.", ("story", "naval")),
    DemoProduct("Clockmaker's Debt", "Repair time itself, at hourly rates.", ("puzzle", "story")),
    DemoProduct("Static Bloom", "Flowers grow where the radio is loudest.", ("horror", "exploration")),
    DemoProduct("Long Way to Vesna", "A road trip with three dogs and no map.", ("story", "driving")),
    DemoProduct("Tin Parliament", "Debate, bribe and dance your robots into office.", ("comedy", "strategy")),
    DemoProduct("Wolf in the Signal", "Something answers every distress call.", ("horror", "mystery")),
    DemoProduct("Brightwater Rally", "Off-road racing through a drowned county.", ("racing", "driving")),
    DemoProduct("Ember & Ash", "Two heroes, one flame, shared controls.", ("coop", "action")),
    DemoProduct("Cartographer", "The map is wrong; change the land.", ("puzzle", "exploration")),
    DemoProduct("Owl Hour", "Run a night market for those who cannot sleep.", ("cozy", "management")),
    DemoProduct("Zephyr Nine", "Nine winds, nine bosses, one broken kite.", ("action", "indie")),
)
APPS = (
    DemoProduct("Marginalia", "Read and annotate documents together, offline first.", ("reading", "notes")),
    DemoProduct("Tidepool", "A calm feed reader that ends.", ("reading", "news")),
    DemoProduct("Ledgerline", "Household accounts in plain text.", ("finance", "plaintext")),
    DemoProduct("Pocket Almanac", "Sunrise, tides and weather without a network.", ("weather", "outdoors")),
    DemoProduct("Chorus", "Rehearse four-part music with your own voice.", ("music", "learning")),
    DemoProduct("Stillframe", "Sort ten thousand photographs in an evening.", ("photo", "library")),
    DemoProduct("Breadcrumb", "Hiking maps that survive a flat battery.", ("outdoors", "maps")),
    DemoProduct("Second Draft", "A writing room with no distractions.", ("writing", "notes")),
    DemoProduct("Kettle", "Timers that know what you are cooking.", ("cooking", "home")),
    DemoProduct("Greenhouse", "Know when each of your plants is thirsty.", ("home", "garden")),
    DemoProduct("Parlance", "Learn a language from letters you really get.", ("learning", "language")),
    DemoProduct("Switchboard", "One quiet inbox for every messenger.", ("messaging", "focus")),
    DemoProduct("Nightjar", "A sleep diary that keeps its data to itself.", ("health", "privacy")),
    DemoProduct("Roundtable", "Decide things in groups without a meeting.", ("teams", "planning")),
    DemoProduct("Inkwell", "Handwriting on any screen, searchable.", ("notes", "drawing")),
    DemoProduct("Wayfarer", "Plan a journey by rail across a continent.", ("travel", "maps")),
    DemoProduct("Sparrow Post", "Letters that take three days to arrive.", ("messaging", "writing")),
    DemoProduct("Fathom", "Dive planning and logs for careful people.", ("outdoors", "sport")),
)
TOOLS = (
    DemoProduct("Ferrule", "Pack, sign and check release archives.", ("release", "security")),
    DemoProduct("Plumbline", "Find why a build is not reproducible.", ("build", "release")),
    DemoProduct("Sievebench", "Benchmark command lines without fooling yourself.", ("benchmark", "cli")),
    DemoProduct("Loupe", "Inspect any binary format with small grammars.", ("binary", "cli")),
    DemoProduct("Treadle", "Run a thousand small jobs on a few machines.", ("jobs", "cli")),
    DemoProduct("Whetstone", "Shrink a failing test case to its core.", ("testing", "cli")),
    DemoProduct("Gantry", "Move large files between sites, resumably.", ("transfer", "storage")),
    DemoProduct("Spindle", "Convert textures and audio for game engines.", ("assets", "build")),
    DemoProduct("Quoin", "Type checks for configuration files.", ("lint", "configuration")),
    DemoProduct("Sextant", "Trace slow requests through many services.", ("tracing", "operations")),
    DemoProduct("Calipers", "Measure frame times on real devices.", ("benchmark", "graphics")),
    DemoProduct("Dovetail", "Merge structured files without conflicts.", ("git", "merge")),
    DemoProduct("Grindhouse", "Fuzz parsers until they confess.", ("testing", "security")),
    DemoProduct("Mortar", "Build levels from tiles, entirely by keyboard.", ("editor", "gamedev")),
    DemoProduct("Riddle", "Ask questions of log files in plain words.", ("logs", "cli")),
    DemoProduct("Awl", "Punch holes in very large SQL dumps.", ("database", "cli")),
    DemoProduct("Bellows", "Load tests that stop by themselves.", ("benchmark", "operations")),
    DemoProduct("Trivet", "Keep three kinds of secrets apart.", ("security", "operations")),
)
ALL: tuple[tuple[Kind, DemoProduct], ...] = (
    *(("game", title) for title in GAMES),
    *(("app", title) for title in APPS),
    *(("tool", title) for title in TOOLS),
)


PLAYER, PUBLISHER, PASSWORD = "player@example.com", "publisher@example.com", "countersign-demo"
CLIENT_ID, CLIENT_SECRET = "demo-publisher", "demo-publisher-secret"
CLIENT_SCOPES = "read:products read:releases read:library write:products write:releases admin:org"
ORGANISATIONS = (
    ("northwind-games", "Northwind Games"),
    ("toolsmith", "Toolsmith"),
    ("openfield", "Openfield"),
)
LICENCE_CODES = tuple(f"DEMO0-LICEN-SE000-{number:05d}" for number in range(1, 6))
PROMO_CODE, PROMO_USES = "DEMO0-PROMO-00000-00100", 100
FIRST_DAY = Instant(1_767_225_600 * clock.SECOND)  # 2026-01-01T00:00:00Z
ANY_ORGANISATION = "SELECT 1 FROM organisation LIMIT 1"
ARCHIVES_AT_ONCE = 8
_CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)
_PLATFORMS: tuple[Platform, ...] = get_args(Platform)


class PlannedRelease(NamedTuple):
    """A planned release, with its archive."""

    version: str
    channel: ChannelName
    at: Instant
    filename: str
    platform: Platform
    content: bytes

    @property
    def sha256(self) -> str:
        """The archive's digest."""
        return hashlib.sha256(self.content).hexdigest()


async def seed(store: Store) -> bool:
    """Insert the demonstration data in one transaction; False, without changes, if there is data already."""
    if await store.database.fetch_one(ANY_ORGANISATION) is not None:
        return False
    hashed = await passwords.hash_password(PASSWORD)
    with ids.seeded("demo"):
        plans = [_plan_releases(index) for index in range(len(ALL))]
        await _store_archives(store, [each for plan in plans for each in plan])
        async with store.database.transaction() as transaction:
            if await transaction.fetch_one(ANY_ORGANISATION) is not None:
                return False
            with clock.fixed(FIRST_DAY):
                orgs = [await organisations.create_organisation(transaction, *each) for each in ORGANISATIONS]
            product_ids = [
                await _product(transaction, orgs[index % 3].id, orgs[index % 3].slug, index, plan)
                for index, plan in enumerate(plans)
            ]
            with clock.fixed(_day(300)):
                await _people(transaction, orgs[0].id, hashed, product_ids)
    return True


async def is_open(reader: Reader) -> bool:
    """Whether a password or secret of the demonstration is valid."""
    client = await queries.client(reader, CLIENT_ID)
    if client is not None and secrets.matches(CLIENT_SECRET, client.secret_hash):
        return True
    for email in (PUBLISHER, PLAYER):
        person = await queries.person_with_email(reader, email)
        if person is not None and await passwords.verify(PASSWORD, person.password_hash):
            return True
    return False


async def _people(transaction: Transaction, org_id: str, hashed: str, product_ids: list[str]) -> None:
    """Insert two people, a client, the player's entitlements, and codes for other products."""
    player = await people.add_person(transaction, PLAYER, hashed)
    await people.add_person(transaction, PUBLISHER, hashed)
    await people.set_role(transaction, org_id, PUBLISHER, "owner")
    scopes = CLIENT_SCOPES.split()
    await clients.add_client(transaction, org_id, CLIENT_ID, CLIENT_SECRET, "Demo publisher", scopes)
    await library.grant(transaction, f"person:{player.id}", product_ids[9:15:3], "demo", clock.now())
    await codes.add_known(transaction, org_id, "license", [product_ids[0]], LICENCE_CODES, 1)
    await codes.add_known(transaction, org_id, "promo", [product_ids[3]], [PROMO_CODE], PROMO_USES)


def _day(number: int) -> Instant:
    return clock.later(FIRST_DAY, seconds=86_400 * number)


def slug_of(name: str) -> str:
    """The name as a slug: lower case, words joined by dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _platforms(index: int) -> list[Platform]:
    """One to three platforms, chosen so that all platforms occur."""
    count = 1 + index % 3
    return [_PLATFORMS[(index + step) % len(_PLATFORMS)] for step in range(count)]


def _plan_releases(index: int) -> list[PlannedRelease]:
    """The releases of a product, oldest first: one to twelve, over all channels."""
    slug = slug_of(ALL[index][1].name)
    count = 1 + (index * 7) % 12
    plan: list[PlannedRelease] = []
    for number in range(count):
        version = f"{number // 6}.{number % 6}.{index % 3}"
        platform = _platforms(index)[number % len(_platforms(index))]
        channel = _CHANNELS[(count - 1 - number) % len(_CHANNELS)]
        at = _day(index + number * 20)
        plan.append(PlannedRelease(version, channel, at, f"{slug}-{version}.tar.gz", platform, archive(slug, version)))
    return plan


async def _store_archives(store: Store, plans: list[PlannedRelease]) -> None:
    """Put the archives into the blob store, several at a time."""
    waiting = iter(plans)

    async def work() -> None:
        for each in waiting:
            await blobs.put(store.database, store.blobs, each.content)

    await asyncio.gather(*(work() for _ in range(ARCHIVES_AT_ONCE)))


def archive(slug: str, version: str) -> bytes:
    """A small real build: a tar.gz with a start script, a manual and some data, the same bytes every time."""
    files = {
        "start.sh": (f'#!/bin/sh\necho "{slug} {version}"\n', 0o755),
        "README.md": (f"# {slug} {version}\n\nRun `./start.sh`.\n", 0o644),
        "data/level-1.txt": ("".join(f"{slug} {version} tile {number}\n" for number in range(120)), 0o644),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (text, mode) in files.items():
            entry = tarfile.TarInfo(f"{slug}-{version}/{name}")
            entry.size, entry.mode, entry.mtime = len(text.encode()), mode, FIRST_DAY // clock.SECOND
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


async def _product(transaction: Transaction, org_id: str, org_slug: str, index: int, plan: list[PlannedRelease]) -> str:
    kind, title = ALL[index]
    body = ProductWrite(
        slug=slug_of(title.name),
        title=title.name,
        description=title.description,
        kind=kind,
        platforms=_platforms(index),
        tags=list(title.tags),
        homepage=f"https://{org_slug}.example/{slug_of(title.name)}",
        license="proprietary" if kind == "game" else "Apache-2.0",
        access="free" if index % 5 == 4 else "entitled",
        status="public",
    )
    with clock.fixed(_day(index)):
        product_id = await lifecycle.create(transaction, org_id, body)
    product = OwnedProduct(product_id, org_id, org_slug, body.slug, "public", body.access, _day(index))
    for each in plan:
        with clock.fixed(each.at):
            drafted = NewRelease(each.version, each.channel, f"What is new in {each.version} of {title.name}.")
            release_id = await lifecycle.draft(transaction, product, drafted)
            content = Content(each.sha256, len(each.content))
            await artifacts.put_ready(transaction, release_id, each.filename, content, each.platform)
            # The catalog is refreshed once, after the last release.
            await lifecycle.mark_published(transaction, release_id)
    await projection.refresh(transaction, product_id, reindex=False)
    return product_id


TEMPLATE_FILES = (lifespan.DATABASE_FILE, lifespan.BLOBS_FOLDER)
TEMPLATE_URL = "http://template.invalid"


async def make_template(folder: Path) -> None:
    """Fill the empty folder with the demonstration's database and blobs, without keys and without an installation id:
    each copy makes its own.

    Raises:
        Unavailable, StorageFull: the folder cannot be written to.
    """
    settings = Settings(data=str(folder), reserve_mib=0)
    async with app.open_store(settings, TEMPLATE_URL, is_loopback=True) as store:
        await seed(store)
        async with store.database.transaction() as transaction:
            await tokens.forget_keys(transaction)
            await installation_id.forget(transaction)


def main(folder: Path) -> None:
    """Make the template in the folder, and remove every file but the database and the blobs.

    Raises:
        Unavailable, StorageFull: the folder cannot be written to.
    """
    asyncio.run(make_template(folder))
    for path in folder.iterdir():
        if path.name not in TEMPLATE_FILES:
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
