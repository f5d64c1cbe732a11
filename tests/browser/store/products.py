"""Functions that create products and releases of the demonstration's publisher through the API."""

import io
import json
import random
import secrets
import time
import zipfile
from collections.abc import Mapping

import httpx

from tests.browser.store.people import PLAYER, call
from tests.servers.countersign import Running


def create_draft_product(store: Running, *, access: str = "entitled") -> str:
    """Create a draft product, and return its slug."""
    slug = f"lighthouse-{secrets.token_hex(4)}"
    product = {"slug": slug, "title": slug.title(), "kind": "game", "platforms": ["linux"], "access": access}
    call(store, "POST", "/products", product)
    return slug


def create_draft_release(
    store: Running, slug: str, content: bytes, version: str = "1.0.0", *, channel: str = "stable"
) -> str:
    """Create a draft release of the product with one file for Linux, and return the artifact's id."""
    call(store, "POST", f"/products/{slug}/releases", {"version": version, "channel": channel})
    announcement = {"filename": "lighthouse.zip", "size": len(content), "platform": "linux"}
    announced_file = call(store, "POST", f"/products/{slug}/releases/{version}/artifacts", announcement)
    assert httpx.put(announced_file["upload_url"], content=content, timeout=60).status_code == 201
    return announced_file["artifact_id"]


def publish_release_without_files(store: Running, slug: str, version: str) -> None:
    """Publish a release of the product that has notes and no files."""
    call(store, "POST", f"/products/{slug}/releases", {"version": version, "channel": "stable", "notes_only": True})
    call(store, "POST", f"/products/{slug}/releases/{version}/publish", {})


def create_free_product(store: Running) -> str:
    """Create a product with the release 1.0.0, and return its slug."""
    slug = create_draft_product(store, access="free")
    publish_release_without_files(store, slug, "1.0.0")
    return slug


def publish_release_with_file(
    store: Running, slug: str, version: str, content: bytes | None = None, *, channel: str = "stable"
) -> None:
    """Publish a release of the product with one file for Linux."""
    process_build(
        store, create_draft_release(store, slug, zip_build() if content is None else content, version, channel=channel)
    )
    call(store, "POST", f"/products/{slug}/releases/{version}/publish", {})


def create_owned_product(store: Running, email: str = PLAYER) -> str:
    """Create a product whose release 1.0.0 has a file, add it to the person's library, and return its slug."""
    slug = create_draft_product(store)
    publish_release_with_file(store, slug, "1.0.0")
    codes = call(store, "POST", "/codes", {"kind": "license", "products": [slug], "count": 1})["codes"]
    call(store, "POST", "/redeem", {"code": codes[0]}, email=email)
    return slug


def zip_build(more_files: Mapping[str, bytes] | None = None) -> bytes:
    """Return a small zip archive of a game. `more_files` maps the names of further files to their contents."""
    zip_bytes = io.BytesIO()
    with zipfile.ZipFile(zip_bytes, "w") as file:
        file.writestr("game/run.sh", "#!/bin/sh\necho hello\n")
        for name, content in (more_files or {}).items():
            file.writestr(name, content)
    return zip_bytes.getvalue()


def process_build(store: Running, artifact: str) -> None:
    """Process the build of the artifact."""
    job_request = {"type": "build.process", "payload": {"artifact_id": artifact}}
    job = call(store, "POST", "/jobs", job_request, prefer="wait=30")
    assert job["status"] == "completed", job


def create_product_with_file(store: Running) -> str:
    """Create a free product whose release 1.0.0 has a file, and return its slug."""
    slug = create_draft_product(store, access="free")
    publish_release_with_file(store, slug, "1.0.0")
    return slug


def create_updated_product(store: Running) -> str:
    """Create a free product with the releases 1.0.0 and 1.1.0 and a delta between them, and return its slug. The second
    release lists two components."""
    slug = create_draft_product(store, access="free")
    data = random.Random(slug).randbytes(300_000)
    sbom = {"bomFormat": "CycloneDX", "version": 1, "components": [{"name": "SDL"}, {"name": "zlib"}]}
    changed_data = data[:150_000] + b"changed" + data[150_000:]
    publish_release_with_file(store, slug, "1.0.0", zip_build({"game/data.bin": data}))
    newer = zip_build({"game/data.bin": changed_data, "game/bom.json": json.dumps(sbom).encode()})
    publish_release_with_file(store, slug, "1.1.0", newer)
    until = time.monotonic() + 600
    while call(store, "GET", f"/products/{slug}/releases/1.1.0/delta?from=1.0.0&platform=linux")["status"] != "ready":
        assert time.monotonic() < until, "no worker made the delta"
        time.sleep(0.2)
    return slug
