"""`countersign pull` with a served store: pushed, processed, installed, updated, healed, and not misled."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from countersign.cli.output import Exit
from tests.servers.countersign import COMMAND, Running, environment, served

PATIENCE_S = 120.0
Files = dict[str, bytes]
Pulled = Callable[..., "subprocess.CompletedProcess[str]"]

BODY = b"".join(b"line %d of the program\n" % number for number in range(40_000))
OLD: Files = {"bin/tool": b"#!/bin/sh\n" + BODY, "lib/a.txt": b"a" * 70_000, "notes.txt": b"one"}
NEW: Files = {"bin/tool": b"#!/bin/sh\n" + BODY.replace(b"line 777 ", b"LINE 777 "), "lib/b.txt": b"a" * 70_000}


@dataclass
class ProductPublisher:
    """A product, and a token that may push to it."""

    server: Running
    client: httpx.Client
    product: str
    token: str

    def publish(self, folder: Path, version: str, files: Files) -> None:
        """Push the files as a release, and wait until it is processed and its updates are prepared."""
        source = folder / f"build-{version}"
        for path, data in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(data)
        (source / "bin/tool").chmod(0o755)
        options = ("--version", version, "--platform", "linux", "--publish", "--json", "--server", self.server.url)
        result = subprocess.run(
            [*COMMAND, "push", source, self.product, *options],
            env=environment(COUNTERSIGN_TOKEN=self.token, XDG_CACHE_HOME=str(folder / "cache")),
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == Exit.OK, result.stderr
        artifact = json.loads(result.stdout)["artifact_id"]
        payload = {"type": "build.process", "payload": {"artifact_id": artifact}}
        self.client.post("/jobs", json=payload).raise_for_status()
        self.settle()

    def settle(self) -> None:
        """Wait until all jobs are done."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            jobs = self.client.get("/jobs").raise_for_status().json()["items"]
            assert not [job for job in jobs if job["status"] == "failed"], jobs
            if all(job["status"] == "completed" for job in jobs):
                return
            assert time.monotonic() < deadline, jobs
            time.sleep(0.2)


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductPublisher]:
    """A store with workers, and two releases. The second release is stable."""
    folder = tmp_path_factory.mktemp("store")
    with served(folder / "data", "--demo", settings={"COUNTERSIGN_JOB_WORKERS": "1"}) as server:
        token = server.token("publisher@example.com")
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=60) as client:
            slug = client.get("/products", params={"org": "northwind-games", "limit": 1}).json()["items"][0]["slug"]
            product_publisher = ProductPublisher(server, client, f"northwind-games/{slug}", token)
            product_publisher.publish(folder, "900.0.1", OLD)
            product_publisher.publish(folder, "900.0.2", NEW)
            yield product_publisher


@pytest.fixture
def pull(publisher: ProductPublisher, tmp_path: Path) -> Pulled:
    """Run the command as a new user, with these additional arguments."""

    def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        variables = {"COUNTERSIGN_TOKEN": publisher.token, "XDG_CONFIG_HOME": str(tmp_path / "config")}
        command = [*COMMAND, "pull", publisher.product, folder, "--json", "--server", publisher.server.url, *arguments]
        return subprocess.run(
            command, env=environment(**variables), capture_output=True, text=True, timeout=120, check=False
        )

    return run


def contents(root: Path) -> Files:
    """Return the files of an installation."""
    files = (path for path in root.rglob("*") if path.is_file())
    content_by_path = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {path: data for path, data in content_by_path.items() if not path.startswith(".countersign/")}


def answer(process: "subprocess.CompletedProcess[str]") -> Any:
    """Return the output of a command that succeeded."""
    assert process.returncode == Exit.OK, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def downloads(publisher: ProductPublisher) -> int:
    """Return the number of downloads in the publisher's statistics."""
    query = {"org": publisher.product.partition("/")[0]}
    return int(publisher.client.get("/org/usage", params=query).raise_for_status().json()["downloads"])


def test_a_product_is_installed_updated_by_delta_and_not_changed_by_a_third_pull(
    publisher: ProductPublisher, pull: Pulled, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    downloads_before = downloads(publisher)

    first_pull = answer(pull(app, "--version", "900.0.1"))
    assert contents(app) == OLD
    second_pull = answer(pull(app))
    assert contents(app) == NEW
    third_pull = answer(pull(app))

    assert (first_pull["former"], first_pull["version"]) == (None, "900.0.1")
    assert (second_pull["former"], second_pull["version"]) == ("900.0.1", "900.0.2")
    assert second_pull["plan"]["deltas"] == 1
    assert second_pull["fetched_bytes"] < 2000
    assert third_pull["changed"] is False
    assert downloads(publisher) - downloads_before == 2


def test_a_damaged_installation_is_healed(pull: Pulled, tmp_path: Path) -> None:
    app = tmp_path / "app"
    answer(pull(app))
    (app / "bin/tool").write_bytes(NEW["bin/tool"][:-5])

    healed = answer(pull(app))

    assert contents(app) == NEW
    assert healed["wounds"][0]["path"] == "bin/tool"


def test_a_requested_older_version_does_not_replace_a_newer_version(pull: Pulled, tmp_path: Path) -> None:
    app = tmp_path / "app"
    answer(pull(app))

    refused_pull = pull(app, "--version", "900.0.1")

    assert refused_pull.returncode == Exit.CONFLICT
    assert "900.0.1 is older than the installed 900.0.2" in refused_pull.stderr
    assert contents(app) == NEW


def test_a_counter_lower_than_the_last_seen_counter_is_refused(pull: Pulled, tmp_path: Path) -> None:
    answer(pull(tmp_path / "app"))
    keys = tmp_path / "config/countersign/keys.json"
    stored_keys = json.loads(keys.read_text())
    (org,) = next(iter(stored_keys["servers"].values())).values()
    org["counters"] = {channel: counter + 10**9 for channel, counter in org["counters"].items()}
    keys.write_text(json.dumps(stored_keys))

    refused_pull = pull(tmp_path / "other")

    assert refused_pull.returncode == Exit.CONFLICT
    assert "below the last seen" in refused_pull.stderr
    assert not (tmp_path / "other").exists()


def test_a_key_other_than_the_pinned_key_is_refused(pull: Pulled, tmp_path: Path) -> None:
    answer(pull(tmp_path / "app"))
    keys = tmp_path / "config/countersign/keys.json"
    stored_keys = json.loads(keys.read_text())
    (org,) = next(iter(stored_keys["servers"].values())).values()
    org["key"]["keyid"] = "0" * 64
    keys.write_text(json.dumps(stored_keys))

    refused_pull = pull(tmp_path / "other")

    assert refused_pull.returncode != Exit.OK
    assert "key" in refused_pull.stderr
    assert "countersign unpin northwind-games" in refused_pull.stderr


def test_a_dry_run_shows_and_changes_nothing(pull: Pulled, tmp_path: Path) -> None:
    dry_run = answer(pull(tmp_path / "app", "--dry-run"))

    assert dry_run["plan"]["fetch_bytes"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config"]
