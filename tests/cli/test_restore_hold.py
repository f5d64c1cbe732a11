"""A restored installation sends nothing by itself until its operator releases it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.cli.test_serve import wait_until
from tests.servers.countersign import MASTER_KEY, served
from tests.servers.postgres import PostgresFactory
from tests.servers.process import free_port

PAUSED_LOG_TEXT = "deliveries are paused, since this installation was restored"


class WebhookReceiver:
    """A receiver of webhooks; `heard` has the type and the path of each event it received."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.url = ""


@pytest.fixture
def hooks() -> Iterator[WebhookReceiver]:
    """A receiver on a port of its own."""
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        """Receive events."""

        def do_POST(self) -> None:
            """Receive one event."""
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.heard.append(f"{self.path} {event['type']}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield receiver
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, dict[str, str]]:
    """The settings of the original and of its copy on one database engine."""
    common = {
        "COUNTERSIGN_PRIVATE_WEBHOOKS": "true",
        "COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple",
        "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
    }
    if request.param == "sqlite":
        return {"original": common, "copy": common}
    new: PostgresFactory = request.getfixturevalue("new_postgres_url")
    return {name: {**common, "COUNTERSIGN_DATABASE_URL": new()} for name in ("original", "copy")}


def back_up_with_waiting_events(run: Run, hooks: WebhookReceiver, environment: dict[str, str]) -> None:
    """Create an original with one undelivered event for a receiver of each service, and back it up."""
    run("org", "create", "acme", "--name", "Acme", "--data", "data", **environment)
    run("user", "create", "alice", "--data", "data", **environment)
    for service, org_arguments in (("store", ["--org", "acme"]), ("records", [])):
        url = f"{hooks.url}/{service}"
        added_result = run("webhooks", "add", url, *org_arguments, "--data", "data", "--json", **environment)
        run("webhooks", "ping", json.loads(added_result.stdout)["id"], *org_arguments, "--data", "data", **environment)
    assert run("backup", "one.backup", "--data", "data", **environment).returncode == Exit.OK


def test_a_restored_copy_sends_nothing_until_sending_is_resumed(
    run: Run, hooks: WebhookReceiver, settings: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    back_up_with_waiting_events(run, hooks, settings["original"])
    copy = settings["copy"]

    restored_result = run("restore", "one.backup", "--to", "copy", "--json", **copy)
    result = run("doctor", "--json", "--distribution-port", "0", "--records-port", "0", "--data", "copy", **copy)
    for _ in range(2):
        settings_with_operator_port = {**copy, "COUNTERSIGN_OPERATOR_PORT": str(free_port())}
        with served(tmp_path / "copy", service="both", settings=settings_with_operator_port) as server:
            wait_until(lambda: server.log.read_text().count(PAUSED_LOG_TEXT) == 2)
            readiness = httpx.get(f"http://127.0.0.1:{settings_with_operator_port['COUNTERSIGN_OPERATOR_PORT']}/readyz").json()
            assert hooks.heard == []
    with served(tmp_path / "copy", service="both", settings=copy):
        resume_result = run("webhooks", "resume", "--data", "copy", "--json", **copy, COUNTERSIGN_MODULES="party")
        wait_until(lambda: len(hooks.heard) == 2)

    assert json.loads(restored_result.stdout)["deliveries_held"] is True
    assert "countersign webhooks resume" in restored_result.stderr
    (deliveries_check,) = [check for check in json.loads(result.stdout)["checks"] if check["check"] == "deliveries"]
    assert (deliveries_check["standing"], result.returncode) == ("warn", Exit.OK)
    details = [check["detail"] for check in readiness["checks"] if check["name"].endswith("deliveries")]
    assert (len(details), readiness["status"]) == (2, "ready")
    assert all("countersign webhooks resume" in detail for detail in details)
    assert json.loads(resume_result.stdout) == {"resumed": ["distribution", "records"]}
    assert sorted(hooks.heard) == ["/records webhook.ping", "/store webhook.ping"]
    second_result = run("webhooks", "resume", "--data", "copy", **copy)
    assert second_result.stdout == "Nothing was paused.\n"
    result = run("doctor", "--distribution-port", "0", "--records-port", "0", "--data", "copy", **copy)
    assert "webhooks and e-mails are sent" in result.stdout


def test_a_copy_that_takes_the_originals_place_may_send_at_once(
    run: Run, hooks: WebhookReceiver, settings: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    back_up_with_waiting_events(run, hooks, settings["original"])
    copy = settings["copy"]

    restored_result = run("restore", "one.backup", "--to", "copy", "--keep-sending", "--json", **copy)
    with served(tmp_path / "copy", service="both", settings=copy) as server:
        wait_until(lambda: len(hooks.heard) == 2)

    assert json.loads(restored_result.stdout)["deliveries_held"] is False
    assert PAUSED_LOG_TEXT not in server.log.read_text()


def test_a_hold_persists_through_a_move_and_the_next_backup(
    run: Run, new_postgres_url: PostgresFactory, hooks: WebhookReceiver, tmp_path: Path
) -> None:
    common_settings = {
        "COUNTERSIGN_PRIVATE_WEBHOOKS": "true",
        "COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple",
    }
    back_up_with_waiting_events(run, hooks, common_settings)
    run("restore", "one.backup", "--to", "copy", **common_settings)

    run("backup", "two.backup", "--data", "copy", **common_settings)
    run("restore", "two.backup", "--to", "second", "--keep-sending", **common_settings)
    url = new_postgres_url()
    moved_result = run("db", "migrate", "--to", url, "--data", "copy", **common_settings)
    postgres_settings = {
        **common_settings,
        "COUNTERSIGN_DATABASE_URL": url,
        "COUNTERSIGN_MASTER_KEY_FILE": str(tmp_path / "copy/master.key"),
    }
    second_resume = run("webhooks", "resume", "--data", "second", "--json", **common_settings)
    resume_result = run("webhooks", "resume", "--data", "copy", "--json", **postgres_settings)

    assert moved_result.returncode == Exit.OK, moved_result.stderr
    assert json.loads(resume_result.stdout) == {"resumed": ["distribution", "records"]}
    assert json.loads(second_resume.stdout) == json.loads(resume_result.stdout)
