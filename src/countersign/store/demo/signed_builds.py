"""The products of the demonstration whose newest builds are signed: jobs process their files after the start."""

import msgspec

from countersign.kernel.database.port import Transaction
from countersign.store.context import Store
from countersign.store.demo.catalog import DemoProduct, DemoRelease, products
from countersign.store.jobs import queries as jobs
from countersign.store.releases.processing.schemas import ProcessPayload

JOB = "build.process"
_ARTIFACTS = """
    SELECT a.id, p.org_id
    FROM artifact a
    JOIN release r ON r.id = a.release_id
    JOIN product p ON p.id = r.product_id
    WHERE p.slug = $1 AND r.version = $2
    ORDER BY a.filename
"""


def processed_release(product: DemoProduct) -> DemoRelease | None:
    """The release whose files are processed: the newest stable one of a product that lists components."""
    if not product.components:
        return None
    stable = [each for each in product.releases if each.channel == "stable" and each.withdrawn is None]
    return stable[-1]


def component_list(product: DemoProduct, version: str) -> bytes:
    """The list of components inside the product's builds (CycloneDX 1.5)."""
    named = [each.rpartition(" ") for each in product.components]
    fields = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": product.slug, "version": version}},
        "components": [{"type": "library", "name": name, "version": number} for name, _, number in named],
    }
    return msgspec.json.format(msgspec.json.encode(fields))


async def request_builds(store: Store) -> int:
    """Enqueue a job for each file that is processed; return their number. Without workers that run jobs, enqueue
    none."""
    if not store.settings.job_workers:
        return 0
    async with store.database.transaction() as transaction:
        return sum([await _request(transaction, store, product) for product in products()])


async def _request(transaction: Transaction, store: Store, product: DemoProduct) -> int:
    release = processed_release(product)
    if release is None:
        return 0
    found = await transaction.fetch(_ARTIFACTS, product.slug, release.version)
    for artifact_id, org_id in found:
        await jobs.enqueue(transaction, store, JOB, ProcessPayload(artifact_id), org_id=org_id, created_by="demo")
    return len(found)
