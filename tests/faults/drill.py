"""An installation under load, and what it acknowledged when: the oracle of the backup tests."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from countersign.kernel.database.open import open_database
from countersign.records import demo
from countersign.records.app import SCHEMA as RECORDS
from countersign.store import app as distribution
from countersign.store.auth import organisations, people
from countersign.store.auth.oauth import clients
from countersign.store.demo import CLIENT_ID, CLIENT_SCOPES, CLIENT_SECRET, PLAYER, PUBLISHER
from countersign.store.lifespan import SCHEMA as DISTRIBUTION
from tests.faults import frail_worker, wire
from tests.servers.countersign import (
    COMMAND,
    MASTER_KEY,
    Running,
    demonstration,
    environment,
    move_to_postgres,
    served,
)
from tests.servers.s3 import Bucket

PASSPHRASE = "correct horse battery staple"
KINDS = ("lead", "product", "artifact")


@dataclass(frozen=True)
class DataDirectory:
    """A data directory, with settings for a database and files elsewhere."""

    data: Path
    settings: dict[str, str]

    @classmethod
    def create(
        cls, data: Path, postgres_url: str = "", bucket: Bucket | None = None, prefix: str = "here"
    ) -> "DataDirectory":
        """Create a place with this database and this bucket. Without a database it uses SQLite, and without a bucket a
        folder."""
        settings: dict[str, str] = {}
        if postgres_url:
            settings |= {"COUNTERSIGN_DATABASE_URL": postgres_url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
        if bucket is not None:
            settings |= {
                "COUNTERSIGN_BLOBS_URL": f"s3://{bucket.name}/{prefix}?endpoint={bucket.endpoint}"
                "&region=us-east-1&allow_http=true",
                "AWS_ACCESS_KEY_ID": "any",
                "AWS_SECRET_ACCESS_KEY": "any",
            }
        return cls(data, settings)

    def run(self, *arguments: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a command with the settings of the place."""
        result = subprocess.run(
            [*COMMAND, *arguments], env=self.environment(), capture_output=True, text=True, timeout=120, check=False
        )
        assert not check or result.returncode == 0, result.stdout + result.stderr
        return result

    def environment(self) -> dict[str, str]:
        """Return the environment variables of its commands."""
        return environment(COUNTERSIGN_BACKUP_PASSPHRASE=PASSPHRASE, **self.settings)

    def command_output(self, *arguments: str | Path) -> dict[str, object]:
        """Return the output of a command with --json."""
        answer = json.loads(self.run(*arguments, "--json").stdout)
        assert isinstance(answer, dict)
        return answer

    def publisher(self) -> str:
        """Return a bearer token of the demonstration's publisher."""
        return self.run("token", "issue", PUBLISHER, "--data", self.data).stdout.strip()

    def write_demonstration(self) -> None:
        """Write the demonstration there without its products, whose files many tests do not need."""
        shutil.copytree(demonstration("records"), self.data)
        asyncio.run(_add_people(self.data))
        if "COUNTERSIGN_DATABASE_URL" in self.settings:
            move_to_postgres(self.data, self.settings)

    @contextmanager
    def serve(self, *options: str) -> Iterator[Running]:
        """Serve both services until the block ends."""
        variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")} | self.settings
        with served(self.data, *options, service="both", settings=variables) as running:
            yield running

    def entries_of(self, kind: str) -> set[str]:
        """Return the entries of this kind in the databases."""
        return asyncio.run(self._has(kind))

    async def _has(self, kind: str) -> set[str]:
        schema = RECORDS if kind == "lead" else DISTRIBUTION
        url = self.settings.get("COUNTERSIGN_DATABASE_URL") or f"sqlite:///{self.data}/{schema}.sqlite"
        database = await open_database(url, schema=schema, reserve_bytes=0)
        try:
            return {row[0] for row in await database.fetch(HELD[kind])}
        finally:
            await database.close()


async def _add_people(data: Path) -> None:
    settings = frail_worker.settings(str(data))
    async with (
        distribution.open_store(settings, frail_worker.ROOT_URL, is_loopback=True) as store,
        store.database.transaction() as transaction,
    ):
        org = await organisations.create_organisation(transaction, "drill", "Drill")
        for email in (PUBLISHER, PLAYER):
            await people.add_person(transaction, email, None)
        await people.set_role(transaction, org.id, PUBLISHER, "owner")
        scopes = CLIENT_SCOPES.split()
        await clients.add_client(transaction, org.id, CLIENT_ID, CLIENT_SECRET, "Drill", scopes)


HELD = {
    "lead": "SELECT title FROM lead WHERE title LIKE 'drill %'",
    "product": "SELECT slug FROM product WHERE slug LIKE 'drill-%'",
    "artifact": "SELECT filename FROM artifact WHERE filename LIKE 'drill-%' AND status = 'ready'",
}


@dataclass
class WriterLoad:
    """Writers of every kind. Each pauses after an answer and writes again. The acknowledged writes and their times are
    recorded."""

    running: Running
    publisher: str
    person: str
    pause_s: float
    acknowledged: dict[str, dict[str, float]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Maps a file name to the id of an artifact and the SHA-256 of its bytes."""
    stopping: bool = False

    async def write(self) -> None:
        """Write until stopped."""
        base = {"slug": "drill", "title": "Drill", "kind": "tool", "platforms": ["linux"]}
        await self._post("/api/v1/products", base)
        await self._post("/api/v1/products/drill/releases", {"version": "1.0.0", "channel": "stable"})
        writers = [self._repeat(kind, number) for kind in KINDS for number in range(2)]
        await asyncio.gather(*writers)

    async def _repeat(self, kind: str, writer: int) -> None:
        write = {"lead": self._lead, "product": self._product, "artifact": self._artifact}[kind]
        count = 0
        while not self.stopping:
            name = f"drill{' ' if kind == 'lead' else '-'}{writer}x{count}"
            await write(name)
            self.acknowledged[kind][name] = time.time()
            count += 1
            await asyncio.sleep(self.pause_s)

    async def _lead(self, name: str) -> None:
        body = json.dumps({"title": name}).encode()
        answer = await wire.call(self.running.records_port, "POST", "/api/lead/create", token=self.person, body=body)
        assert answer.status == 200, answer

    async def _product(self, name: str) -> None:
        await self._post("/api/v1/products", {"slug": name, "title": name, "kind": "tool", "platforms": ["linux"]})

    async def _artifact(self, name: str) -> None:
        content = f"{name} ".encode() * 3000
        announcement = {"filename": name, "size": len(content)}
        announced_file = await self._post("/api/v1/products/drill/releases/1.0.0/artifacts", announcement)
        path = str(announced_file["upload_url"]).removeprefix(self.running.url)
        answer = await wire.call(self.running.port, "PUT", path, body=content)
        assert answer.status == 201, answer
        self.files[name] = json.loads(answer.body)["id"], hashlib.sha256(content).hexdigest()

    async def _post(self, path: str, value: Mapping[str, object]) -> dict[str, object]:
        body = json.dumps(value).encode()
        answer = await wire.call(self.running.port, "POST", path, token=self.publisher, body=body)
        assert answer.status in (200, 201), answer
        answer_body = json.loads(answer.body)
        assert isinstance(answer_body, dict)
        return answer_body


async def sign_in(port: int) -> str:
    """Return a session of a person of the demonstration."""
    body = json.dumps({"username": "alice", "password": demo.PASSWORD}).encode()
    answer = await wire.call(port, "POST", "/api/auth/login", body=body)
    assert answer.status == 200, answer
    return str(json.loads(answer.body)["token"])


async def status(port: int, path: str, token: str, body: bytes = b"") -> int:
    """Return the status of the answer to a call with the token."""
    return (await wire.call(port, "POST" if body else "GET", path, token=token, body=body)).status


async def back_up_under_load(
    data_directory: DataDirectory, running: Running, pause_s: float, *options: str | Path
) -> tuple[WriterLoad, dict[str, object]]:
    """Make a backup while writers write, let them write a little longer, and return the load and the output of the
    backup."""
    load = WriterLoad(
        running, await asyncio.to_thread(data_directory.publisher), await sign_in(running.records_port), pause_s
    )
    writing_task = asyncio.create_task(load.write())
    while not all(load.acknowledged.values()):
        await asyncio.sleep(0.01)
        if writing_task.done():
            writing_task.result()
    output = await asyncio.to_thread(data_directory.command_output, "backup", "--data", data_directory.data, *options)
    enough = {kind: len(names) + 1 for kind, names in load.acknowledged.items()}
    while any(len(load.acknowledged[kind]) < count for kind, count in enough.items()):
        await asyncio.sleep(0.01)
        if writing_task.done():
            writing_task.result()
    load.stopping = True
    await writing_task
    return load, output


def missing_writes(load: WriterLoad, data_directory: DataDirectory, time_before: str) -> list[str]:
    """Return the writes that were acknowledged before this time but are missing in the restored place."""
    moment = time_of(time_before)
    return [
        name
        for kind, names in load.acknowledged.items()
        for name in {name for name, at in names.items() if at < moment} - data_directory.entries_of(kind)
    ]


def time_of(text: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 text."""
    return datetime.fromisoformat(text).timestamp()
