"""The products of the demonstration whose newest builds are signed: jobs process their files after the start."""

import msgspec

from countersign.kernel.database.port import Transaction
from countersign.store.context import Store
from countersign.store.demo.catalog import DemoProduct, DemoRelease, products
from countersign.store.jobs import queries as jobs
from countersign.store.jobs.job_types import BACKGROUND, REQUESTED
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
    stable = [release for release in product.releases if release.channel == "stable" and release.withdrawn is None]
    return stable[-1]


def updated_release(product: DemoProduct) -> DemoRelease | None:
    """The release before the one whose files are processed. Its files are processed too, so that an update from it is
    prepared."""
    newest = processed_release(product)
    earlier = [release for release in product.releases if release.channel == "stable" and release.withdrawn is None]
    return None if newest is None or len(earlier) == 1 else earlier[-2]


def component_list(product: DemoProduct, version: str) -> bytes:
    """The list of components inside the product's builds (CycloneDX 1.5)."""
    name_and_version = [component.rpartition(" ") for component in product.components]
    fields = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": product.slug, "version": version}},
        "components": [{"type": "library", "name": name, "version": number} for name, _, number in name_and_version],
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
    count = 0
    for release, priority in ((processed_release(product), REQUESTED), (updated_release(product), BACKGROUND)):
        if release is not None:
            for artifact_id, org_id in await transaction.fetch(_ARTIFACTS, product.slug, release.version):
                payload = ProcessPayload(artifact_id)
                await jobs.enqueue(
                    transaction, store, JOB, payload, org_id=org_id, created_by="demo", priority=priority
                )
                count += 1
    return count
