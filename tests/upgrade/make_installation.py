"""Make an installation with an earlier version, for the upgrade tests.

    python -m tests.upgrade.make_installation SOURCE NAME [POSTGRES_URL]

SOURCE is the `src` folder of a checkout of that version. The archive `installations/NAME.tar.zst` contains the data
directory and `expected.json`, the last answers to its users. With the address of an empty PostgreSQL database it also
contains `postgres.sql`: the same rows, moved there by that version and written by `pg_dump`. The earlier version runs
with the current packages.
"""

import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from backports import zstd

from tests.servers.countersign import COMMAND, MASTER_KEY, environment, served

INSTALLATIONS = Path(__file__).with_name("installations")
PRODUCT = "northwind-games/harbour-of-small-lights"
PLAYER = "player@example.com"
BUILD = b"".join(b"%08d\n" % number for number in range(20_000))
PASSWORD = "countersign-demo"


def run(source: Path, *arguments: str | Path, **settings: str) -> str:
    """Run a command of that version, and return its output."""
    variables = environment(PYTHONPATH=str(source), **settings)
    result = subprocess.run([*COMMAND, *arguments], env=variables, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{arguments}: {result.stderr}")
    return result.stdout


def publish(source: Path, folder: Path, url: str) -> None:
    """Publish a release with one file as the demonstration's publisher."""
    build = folder / "build.txt"
    build.write_bytes(BUILD)
    client = {"COUNTERSIGN_CLIENT_ID": "demo-publisher", "COUNTERSIGN_CLIENT_SECRET": "demo-publisher-secret"}
    options = ("--version", "9.0.0", "--channel", "stable", "--platform", "linux")
    run(source, "--server", url, "push", build, PRODUCT, *options, **client)
    run(source, "--server", url, "publish", PRODUCT, "9.0.0", **client)


def redeem(source: Path, data: Path, url: str) -> None:
    """Redeem a code of the demonstration as its player."""
    token = run(source, "token", "issue", PLAYER, "--scope", "read:library read:products", "--data", data).strip()
    run(source, "--server", url, "redeem", "DEMO0-LICEN-SE000-00001", COUNTERSIGN_TOKEN=token)


class RequestRefused(Exception):
    """The service answered with an error, which the text contains."""


class RecordsApi:
    """The records service, called as one user."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __call__(self, command: str, **body: object) -> Any:
        """Return the decoded body of the response.

        Raises:
            RequestRefused: the service answered with an error.
        """
        url = f"{self._url}/api/{command}"
        answer = httpx.post(url, json=body, headers=self._headers, timeout=30, trust_env=False)
        if answer.status_code >= 300:
            raise RequestRefused(f"{command}: {answer.status_code} {answer.text}")
        return answer.json()


def sign_in(url: str) -> RecordsApi:
    """Return the records service as the demonstration's sales manager."""
    return RecordsApi(url, RecordsApi(url)("auth/login", username="alice", password=PASSWORD)["token"])


def propose(url: str) -> dict[str, str]:
    """Let an agent qualify one lead and propose to delete another lead. Return the ids."""
    alice = sign_in(url)
    token = alice("auth/agent-token", scopes=["lead.*"], label="mailbot")["token"]
    agent = RecordsApi(url, token)
    first_lead, second_lead = agent("lead/list", filter=[{"field": "stage", "op": "eq", "value": "new"}], limit=2)[
        "value"
    ]
    agent("lead/qualify", id=first_lead["id"])
    plan = agent("lead/delete", id=second_lead["id"])
    return {"qualified": first_lead["id"], "doomed": second_lead["id"], "plan": plan["plan_id"], "agent": token}


def products(url: str) -> list[str]:
    """Return the address of every product that a visitor sees."""
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30, trust_env=False) as http:
        slugs: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": "100", **({"cursor": cursor} if cursor else {})}
            page = http.get("/products", params=query).raise_for_status().json()
            slugs += [item["slug"] for item in page["items"]]
            cursor = page["next_cursor"]
        return sorted(slugs)


def library(source: Path, data: Path, url: str) -> list[str]:
    """Return the product of every entitlement of the player."""
    token = run(source, "token", "issue", PLAYER, "--scope", "read:library", "--data", data).strip()
    printed_result = run(source, "--server", url, "library", COUNTERSIGN_TOKEN=token)
    return sorted(line.split("\t")[0].rpartition("/")[2] for line in printed_result.splitlines())


def leads(url: str) -> list[list[str]]:
    """Id, title and stage of every lead that the sales manager sees."""
    rows = sign_in(url)("lead/list", limit=500)["value"]
    return sorted([row["id"], row["title"], row["stage"]] for row in rows)


def fill_installation(source: Path, data: Path, folder: Path) -> Mapping[str, object]:
    """Serve the demonstration, use it as its users, stop it, and return the last answers."""
    settings = {"PYTHONPATH": str(source), "COUNTERSIGN_JOB_WORKERS": "1"}
    with served(data, "--demo", service="both", settings=settings, copies_demonstration=False) as running:
        store, records = running.url, f"http://127.0.0.1:{running.records_port}"
        publish(source, folder, store)
        redeem(source, data, store)
        ids = propose(records)
        return {
            "products": products(store),
            "library": library(source, data, store),
            "leads": leads(records),
            **ids,
        }


def postgres_dump(source: Path, data: Path, url: str) -> bytes:
    """Move the installation to the PostgreSQL database with that version, and dump the database."""
    run(source, "db", "migrate", "--data", data, "--to", url)
    options = ("--no-owner", "--no-privileges", "--no-comments", "--inserts", "--rows-per-insert=500")
    return subprocess.run(["pg_dump", *options, url], capture_output=True, check=True).stdout


def pack(data: Path, members: Mapping[str, bytes]) -> bytes:
    """Return a compressed tar archive of the data directory and the members."""
    tar_bytes = BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w") as archive:
        archive.add(data, "data")
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))
    return zstd.compress(tar_bytes.getvalue(), 19)


def unpack(packed_bytes: bytes, folder: Path) -> None:
    """Extract an archive that `pack` made."""
    with tarfile.open(fileobj=BytesIO(zstd.decompress(packed_bytes))) as archive:
        archive.extractall(folder, filter="data")


def main() -> None:
    """Write the archive."""
    source, name = Path(sys.argv[1]).resolve(), sys.argv[2]
    with TemporaryDirectory() as folder:
        data = Path(folder, "data")
        data.mkdir()
        (data / "master.key").write_text(MASTER_KEY)
        (data / "master.key").chmod(0o600)
        members = {"expected.json": json.dumps(fill_installation(source, data, Path(folder)), indent=1).encode()}
        old_archive = pack(data, {})
        if len(sys.argv) > 3:
            members["postgres.sql"] = postgres_dump(source, data, sys.argv[3])
            unpack(old_archive, Path(folder, "before"))
            data = Path(folder, "before", "data")
        INSTALLATIONS.mkdir(exist_ok=True)
        (INSTALLATIONS / f"{name}.tar.zst").write_bytes(pack(data, members))


if __name__ == "__main__":
    main()
