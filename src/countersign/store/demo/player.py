"""The data of the demonstration's player: more products, collections, downloads, follows and seen notifications."""

from collections.abc import Mapping
from datetime import date

from countersign.kernel import clock, ids
from countersign.kernel.database.port import Transaction
from countersign.store import demo, library
from countersign.store.auth import queries
from countersign.store.context import Store
from countersign.store.demo.catalog import moment
from countersign.store.personal import collections, follows, notifications

MORE_PRODUCTS = {
    "wolf-in-the-signal": date(2025, 12, 20),
    "clockmaker-s-debt": date(2026, 1, 3),
    "inkwell": date(2026, 1, 18),
    "nightjar": date(2026, 6, 6),
    "treadle": date(2026, 7, 20),
    "sextant": date(2026, 7, 21),
    "chorus": date(2026, 8, 14),
    "fathom": date(2026, 8, 21),
    "ember-ash": date(2026, 9, 1),
    "underroot": date(2026, 9, 12),
    "glass-orchard": date(2026, 10, 7),
    "static-bloom": date(2026, 10, 16),
}
"""Maps each further product that the player owns to the day since which the player owns it."""
COLLECTIONS = {
    "Winter evenings": ("wolf-in-the-signal", "neon-abbey", "seven-bells", "quiet-siege", "glass-orchard"),
    "Release pipeline": ("gantry", "sextant", "treadle"),
    "Finished": ("owl-hour", "saltmarsh-detective", "driftwood-kingdom", "second-draft"),
}
DOWNLOADED = {"neon-abbey": "1.0.1", "marginalia": "1.9.0", "gantry": "5.2.0", "owl-hour": "1.2.0", "sextant": "3.5.1"}
"""The version of each product that the player downloaded last; three of them are older than the newest release."""
HIDDEN = ("fathom",)
FOLLOWED_PRODUCTS = {
    "aurora-freight": date(2026, 8, 1),
    "harbour-of-small-lights": date(2026, 10, 1),
    "brightwater-rally": date(2026, 10, 20),
    "ferrule": date(2026, 10, 25),
}
FOLLOWED_ORGANISATIONS = {"lanternworks": date(2026, 9, 1)}
DOWNLOADED_AT, SEEN_AT = date(2026, 9, 29), date(2026, 11, 23)
_PRODUCTS = "SELECT slug, id FROM product"
_ORGANISATIONS = "SELECT slug, id FROM organisation"


async def add_activity(store: Store) -> None:
    """Add the data of the player in one transaction."""
    with ids.seeded("player"):
        async with store.database.transaction() as transaction:
            player = await queries.person_with_email(transaction, demo.PLAYER)
            if player is not None:
                products: dict[str, str] = dict(await transaction.fetch(_PRODUCTS))
                await _library(transaction, f"person:{player.id}", products)
                await _follows(transaction, f"person:{player.id}", products)


async def _library(transaction: Transaction, owner: str, products: Mapping[str, str]) -> None:
    for slug, day in MORE_PRODUCTS.items():
        await library.grant(transaction, owner, [products[slug]], "demo", moment(day))
    for name, slugs in COLLECTIONS.items():
        with clock.fixed(moment(DOWNLOADED_AT)):
            collection_id = ids.new_uuid()
        await transaction.run(collections.INSERT, collection_id, owner, name, moment(DOWNLOADED_AT))
        for slug in slugs:
            await transaction.run(collections.ADD, collection_id, products[slug], moment(DOWNLOADED_AT))
    for slug, version in DOWNLOADED.items():
        item = (0, None, version, "linux", moment(DOWNLOADED_AT))
        await transaction.run(library.PUT_ITEM, owner, products[slug], *item)
    for slug in HIDDEN:
        await transaction.run(library.PUT_ITEM, owner, products[slug], 1, None, None, None, None)


async def _follows(transaction: Transaction, owner: str, products: Mapping[str, str]) -> None:
    organisations: dict[str, str] = dict(await transaction.fetch(_ORGANISATIONS))
    targets = [
        *(("product", products[slug], day) for slug, day in FOLLOWED_PRODUCTS.items()),
        *(("org", organisations[slug], day) for slug, day in FOLLOWED_ORGANISATIONS.items()),
    ]
    for kind, target_id, day in targets:
        await transaction.run(follows.FOLLOW, owner, kind, target_id, moment(day), follows.MAX_FOLLOWS)
    await transaction.run(notifications.SET_SEEN, owner, moment(SEEN_AT))
