"""The store's main workflow, from a real archive to a customer's disk, on each database and each blob store."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.servers.countersign import COMMAND, MASTER_KEY, Running, environment, served
from tests.servers.s3 import Bucket
from tests.tour.archives import dependency_wheel

PRODUCT = "harbour-of-small-lights"
VERSION = "2026.11.20"


@pytest.fixture(params=["disk", "s3"])
def blobs(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of a blob store: a folder, or a bucket behind an S3 API."""
    if request.param == "disk":
        return {}
    bucket: Bucket = request.getfixturevalue("s3_url")
    address = f"s3://{bucket.name}/builds?endpoint={bucket.endpoint}&region=us-east-1&allow_http=true"
    return {"COUNTERSIGN_BLOBS_URL": address, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


@pytest.fixture
def store(tmp_path: Path, database_url: str, blobs: dict[str, str]) -> Iterator[Running]:
    """A served demonstration store."""
    settings = {"COUNTERSIGN_MASTER_KEY": MASTER_KEY, "COUNTERSIGN_JOB_WORKERS": "1", **blobs}
    if database_url.startswith("postgres"):
        settings["COUNTERSIGN_DATABASE_URL"] = database_url
    with served(tmp_path / "data", "--demo", settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real archive."""
    return dependency_wheel("hypothesis", tmp_path_factory.mktemp("wheel"))


def countersign(store: Running, *arguments: str | Path, token: str) -> str:
    """Run a client command, and return its output."""
    variables = environment(COUNTERSIGN_SERVER=store.url, COUNTERSIGN_TOKEN=token, HOME=str(store.data.parent))
    command = [*COMMAND, *map(str, arguments)]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def client_token(store: Running) -> str:
    """Return a token of the demonstration's publisher, by client credentials."""
    form = {"grant_type": "client_credentials"}
    answer = httpx.post(f"{store.url}/api/v1/auth/token", data=form, auth=("demo-publisher", "demo-publisher-secret"))
    token = answer.json()["access_token"]
    assert isinstance(token, str)
    return token


def player_token(store: Running) -> str:
    """Return a token of the demonstration's customer, who signs in on the page and exchanges the session."""
    with httpx.Client(base_url=store.url, headers={"Origin": store.url}) as browser:
        form = {"email": "player@example.com", "password": "countersign-demo"}
        assert browser.post("/auth/signin", data=form).status_code == 303
        token = browser.post("/auth/session/token", json={}).json()["access_token"]
    assert isinstance(token, str)
    return token


def test_a_customer_gets_the_build_of_a_publisher(store: Running, wheel: Path, tmp_path: Path) -> None:
    publisher, player = client_token(store), player_token(store)
    base = f"{store.url}/api/v1"
    player_headers = {"Authorization": f"Bearer {player}"}
    product_path = f"northwind-games/{PRODUCT}"

    # The publisher pushes a draft, which is hidden from all others.
    options = ("--version", VERSION, "--channel", "beta", "--platform", "linux")
    countersign(store, "push", wheel, product_path, *options, token=publisher)
    public = httpx.get(f"{base}/products/{PRODUCT}/releases").json()
    assert VERSION not in [release["version"] for release in public]

    # After publication all callers see it, and no customer has it yet.
    countersign(store, "publish", product_path, VERSION, token=publisher)
    newest = httpx.get(f"{base}/products/{PRODUCT}/releases").json()[0]
    artifact = newest["artifacts"][0]
    assert (newest["version"], artifact["size"]) == (VERSION, wheel.stat().st_size)
    address = f"{base}/artifacts/{artifact['id']}"
    assert httpx.get(address).status_code == 401
    assert httpx.get(address, headers=player_headers).json()["code"] == "not_entitled"

    # The customer redeems a code, and owns it.
    redeemed_body = httpx.post(
        f"{base}/redeem", json={"code": "demo0-licen-se000-00002"}, headers=player_headers
    ).json()
    library = httpx.get(f"{base}/library", headers=player_headers).json()
    assert redeemed_body["success"] is True
    assert library[0]["id"] == redeemed_body["product_id"]

    # The download is cut in the middle and continues at that offset.
    first_half = cut_download(address, player_headers, wheel.stat().st_size // 2)
    headers = {**player_headers, "Range": f"bytes={len(first_half)}-", "If-Range": f'"{artifact["sha256"]}"'}
    range_answer = httpx.get(address, headers=headers)
    assert range_answer.status_code == 206
    assert first_half + range_answer.content == wheel.read_bytes()

    # The command line does the same.
    target = tmp_path / "got.whl"
    countersign(store, "download", product_path, "--version", VERSION, "-o", target, token=player)
    assert target.read_bytes() == wheel.read_bytes()
    assert os.access(target, os.R_OK)


def cut_download(address: str, headers: dict[str, str], least: int) -> bytes:
    """Return the beginning of a download whose connection is closed after `least` bytes."""
    received = b""
    with httpx.stream("GET", address, headers=headers) as answer:
        assert answer.status_code == 200
        for piece in answer.iter_raw(chunk_size=10_000):
            received += piece
            if len(received) >= least:
                break
    return received
