"""A catalog for questions: products with and without releases, drafts and archived products, late bug fixes, unusual
titles."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.store.ask.answers import QuestionAnswer, answer
from countersign.store.auth import organisations
from countersign.store.catalog import projection
from countersign.store.catalog.schemas import Access, ChannelName, Kind, Platform, Status
from countersign.store.catalog.versions import sort_key
from countersign.store.context import Store
from countersign.store.releases import lifecycle
from countersign.store.releases.permissions import OwnedProduct
from countersign.store.releases.schemas import NewRelease, ProductWrite

ORGS = (("elm-and-ash", "Elm & Ash"), ("ground-floor", "Ground Floor Games"), ("orrery", "Orrery"))
QUESTION = "Which tools run on Windows?"
TITLES = ("Hammer", "Slow Rivers: Maps", "Whose Keys?")
"""The titles that answer the question."""
YANK = "UPDATE release SET status = 'yanked' WHERE id = $1"


def at(text: str) -> Instant:
    """Return the instant. A day means its noon in UTC."""
    moment = datetime.fromisoformat(text if "T" in text else f"{text}T12:00:00")
    return clock.from_datetime(moment.replace(tzinfo=UTC))


NOW = at("2026-08-20")


class Version(NamedTuple):
    """A release of a product."""

    version: str
    channel: ChannelName
    day: str
    notes: str = ""
    status: str = "published"


class Item(NamedTuple):
    """A product with all its releases."""

    slug: str
    title: str
    org: str
    kind: Kind
    platforms: tuple[Platform, ...]
    tags: tuple[str, ...] = ()
    license: str | None = None
    access: Access = "entitled"
    status: Status = "public"
    description: str | None = None
    versions: tuple[Version, ...] = ()

    @property
    def published(self) -> list[Version]:
        """Return the releases that anyone may see. There are none if the product is not public."""
        return [each for each in self.versions if each.status == "published" and self.status == "public"]

    def has(self, channel: str | None = None, since: str = "", until: str = "9999") -> bool:
        """Return whether a published release is in the channel and in the range of days. `until` is excluded."""
        return any(channel in (None, each.channel) and since <= each.day < until for each in self.published)

    def newest(self, channel: str | None = None) -> tuple[str, str]:
        """Return the published release with the highest version."""
        candidates = [each for each in self.published if channel in (None, each.channel)]
        return self.slug, max(candidates, key=lambda each: sort_key(each.version)).version


def _v(*versions: tuple[str, ...]) -> tuple[Version, ...]:
    return tuple(Version(*each) for each in versions)  # pyright: ignore


ITEMS = (
    Item(
        "slow-rivers",
        "Slow Rivers",
        "ground-floor",
        "game",
        ("windows", "linux"),
        ("cozy", "boats"),
        "Proprietary",
        description="Steer a barge and deliver letters.",
        versions=_v(
            ("1.0.0", "stable", "2025-03-04", "The first voyage."),
            ("1.9.0", "stable", "2026-01-10", "Locks."),
            ("1.10.0", "stable", "2026-05-05", "Adds the northern canal."),
            ("1.9.1", "stable", "2026-06-01", "Mends a leak."),
            ("2.0.0-beta.1", "beta", "2026-08-18", "Two barges."),
            ("2.0.0", "stable", "2026-08-19", "", "draft"),
        ),
    ),
    Item(
        "slow-rivers-maps",
        "Slow Rivers: Maps",
        "ground-floor",
        "tool",
        ("windows", "linux", "macos"),
        ("boats", "maps"),
        "MIT",
        "free",
        versions=_v(("0.4", "alpha", "2026-08-02", "Prints charts.")),
    ),
    Item(
        "latest-train",
        "Latest Train",
        "orrery",
        "game",
        ("android", "ios"),
        ("puzzle",),
        None,
        "free",
        versions=_v(("3.1", "stable", "2024-11-11", "Timetables.")),
    ),
    Item(
        "windows-tycoon",
        "Windows Tycoon",
        "orrery",
        "game",
        ("linux", "macos"),
        ("strategy", "management"),
        None,
        versions=_v(
            ("1.0.0", "stable", "2026-07-28", "Glass."), ("1.1.0-nightly.3", "nightly", "2026-08-15", "Frames.")
        ),
    ),
    Item(
        "free-climb",
        "Free Climb",
        "orrery",
        "game",
        ("windows",),
        ("sport", "strategy"),
        "Proprietary",
        versions=_v(("1.0.0", "beta", "2025-12-24", "Ropes.")),
    ),
    Item(
        "ember-and-ash",
        "Ember & Ash",
        "elm-and-ash",
        "game",
        ("windows", "macos", "linux", "web"),
        ("coop", "cozy"),
        "Proprietary",
        "free",
        versions=_v(("2.0.0", "stable", "2025-06-01", "Two heroes.")),
    ),
    Item("nine-lives", "9 Lives", "elm-and-ash", "game", ("web",), ("puzzle", "cats"), "GPL-3.0-only", "free"),
    Item(
        "quill",
        "Quill",
        "elm-and-ash",
        "app",
        ("macos", "ios"),
        ("writing",),
        "Proprietary",
        versions=_v(("4.0.0", "stable", "2025-09-09", "Ink."), ("4.1.0", "stable", "2026-08-11", "Blotting paper.")),
    ),
    Item(
        "quill-pro",
        "Quill Pro",
        "elm-and-ash",
        "app",
        ("macos", "windows"),
        ("writing", "teams"),
        "Proprietary",
        versions=_v(
            ("1.0.0", "stable", "2026-02-02", "Shared desks."), ("1.0.1", "stable", "2026-02-20", "Bad", "yanked")
        ),
    ),
    Item(
        "cafe-ledger",
        "Café Ledger",
        "orrery",
        "app",
        ("windows", "macos", "linux"),
        ("finance",),
        "MIT",
        "free",
        versions=_v(("2.3.0", "stable", "2026-03-15", "Tips."), ("2.4.0-alpha.1", "alpha", "2026-04-01", "Rounding.")),
    ),
    Item(
        "stargazer",
        "Stargazer",
        "orrery",
        "app",
        ("android", "ios", "web"),
        ("space", "outdoors"),
        "Apache-2.0",
        "free",
        description="Know what you are looking at tonight.",
        versions=_v(("1.0.0", "stable", "2026-08-12", "Winter sky.")),
    ),
    Item(
        "tin-post",
        "Tin Post",
        "ground-floor",
        "app",
        ("linux",),
        ("messaging",),
        "GPL-3.0-or-later",
        "free",
        versions=_v(("0.9.0", "beta", "2026-07-20", "Envelopes.")),
    ),
    Item(
        "hammer",
        "Hammer",
        "elm-and-ash",
        "tool",
        ("windows", "macos", "linux"),
        ("developer", "build"),
        "Apache-2.0",
        "free",
        versions=_v(("1.2.0", "stable", "2025-02-02", "Claw."), ("1.3.0", "stable", "2026-08-19", "A softer grip.")),
    ),
    Item("hammer-lite", "Hammer Lite", "elm-and-ash", "tool", ("linux",), ("developer",), "Apache-2.0", "free"),
    Item(
        "sieve",
        "Sieve",
        "ground-floor",
        "tool",
        ("linux", "macos"),
        ("developer", "terminal"),
        "MIT",
        "free",
        versions=_v(("1.0.0", "nightly", "2026-06-30", "Finer mesh.")),
    ),
    Item(
        "whose-keys",
        "Whose Keys?",
        "ground-floor",
        "tool",
        ("windows",),
        ("security",),
        "MIT",
        versions=_v(("5.0.0", "stable", "2026-08-03", "Rings.")),
    ),
    Item(
        "hidden-garden",
        "Hidden Garden",
        "orrery",
        "game",
        ("linux",),
        ("secret-tag",),
        "Secret-1.0",
        "free",
        "draft",
        "Nobody may know.",
        _v(("0.1.0", "alpha", "2026-08-01", "Hidden notes.")),
    ),
    Item(
        "old-harbour",
        "Old Harbour",
        "orrery",
        "game",
        ("linux",),
        ("bygone",),
        "Proprietary",
        "entitled",
        "archived",
        "It was here.",
        _v(("1.0.0", "stable", "2025-01-01", "Gone notes.")),
    ),
)
PUBLIC = tuple(sorted((each for each in ITEMS if each.status == "public"), key=lambda each: each.title))


async def stock_store(store: Store, items: Sequence[Item] = ITEMS, orgs: Sequence[tuple[str, str]] = ORGS) -> Store:
    """Fill the store with the organisations and products."""
    async with store.database.transaction() as transaction:
        ids_by_org = {
            slug: (await organisations.create_organisation(transaction, slug, name)).id for slug, name in orgs
        }
        for item in items:
            body = ProductWrite(
                slug=item.slug,
                title=item.title,
                kind=item.kind,
                platforms=[*item.platforms],
                tags=[*item.tags],
                license=item.license,
                access=item.access,
                status=item.status,
                description=item.description,
            )
            product_id = await lifecycle.create(transaction, ids_by_org[item.org], body)
            owned = OwnedProduct(
                product_id, ids_by_org[item.org], item.org, item.slug, item.status, item.access, Instant(0)
            )
            for each in item.versions:
                with clock.fixed(at(each.day)):
                    drafted = NewRelease(each.version, each.channel, each.notes or None)
                    release_id = await lifecycle.draft(transaction, owned, drafted)
                    if each.status != "draft":
                        await lifecycle.mark_published(transaction, release_id)
                    if each.status == "yanked":
                        await transaction.run(YANK, release_id)
            await projection.refresh(transaction, product_id)
    return store


async def ask_shelf(store: Store, question: str) -> QuestionAnswer:
    """Return the answer to the question on the day of the shelf."""
    return await answer(store, question, NOW)


def events(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream: name and decoded data."""
    sse_events: list[tuple[str, Any]] = []
    for block in text.strip().split("\n\n"):
        members = dict(line.split(": ", 1) for line in block.split("\n"))
        sse_events.append((members.get("event", ""), json.loads(members["data"])))
    return sse_events
