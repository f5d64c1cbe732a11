"""A day on both services, with faults: log, metrics and traces contain no secret and nothing personal."""

import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.figures import Figures
from tests.servers.collector import Collector, collecting
from tests.servers.countersign import Running, served
from tests.servers.process import free_port

PASSWORD = "countersign-demo"
SUBMITTED = {
    "wrong password": "marker-wrong-password-6Jd1",
    "name": "Marker Zephyrine Quillfeather",
    "e-mail": "zephyrine.quillfeather@marker.example",
    "phone": "+33 6 77 88 99 66",
    "tax number": "MARKERTAX7788996655",
    "notes": "marker note: she is allergic to walnuts",
    "street": "77 Marker Walnut Street",
    "unknown user": "marker-unknown-user-4Wq",
    "question": "marker question about Quillfeather",
    "slug": "marker-slug-of-nobody-5Rt",
    "unknown member": "marker_unknown_member_8Pf",
    "code": "MARKR-DAYXX-CODE0-77777",
    "broken JSON": "marker-broken-json-2Vb",
    "header": "marker-header-value-9Nc",
}


class ServicesDay:
    """Both services, the data sent to them, and what they must not reveal."""

    def __init__(self, store: str, records: str) -> None:
        headers = {"X-Marker": SUBMITTED["header"], "User-Agent": SUBMITTED["header"], "Origin": store}
        self.store = httpx.Client(base_url=store, headers=headers, timeout=30)
        self.records = httpx.Client(base_url=records, headers=headers, timeout=30)
        self.kept = dict(SUBMITTED)
        self.ids: set[str] = set()

    def close(self) -> None:
        """Close the connections."""
        self.store.close()
        self.records.close()

    def run(self, token: str, command: str, status: int, **body: Any) -> Any:
        """Run a command of the records service that must be answered with the status."""
        headers = {"Authorization": f"Bearer {token}"}
        answer = self.records.post("/api/" + command.replace(".", "/"), json=body, headers=headers)
        assert answer.status_code == status, (command, answer.text)
        self.ids.add(answer.headers["x-request-id"])
        return answer.json()


def sign_in(day: ServicesDay, username: str) -> str:
    """Return a person's token, which is a secret from then on."""
    answer = day.records.post("/api/auth/login", json={"username": username, "password": PASSWORD})
    token = day.kept[f"session of {username}"] = str(answer.json()["token"])
    return token


def work(day: ServicesDay) -> None:
    """Use the records service: a person, an agent, a plan and its approval, and every kind of invalid request."""
    wrong_sign_in = {"username": SUBMITTED["unknown user"], "password": SUBMITTED["wrong password"]}
    assert day.records.post("/api/auth/login", json=wrong_sign_in).status_code == 401
    root = sign_in(day, "root")
    values = {name.replace("-", "").replace("tax number", "tax_id"): SUBMITTED[name] for name in ("name", "e-mail")}
    values |= {"phone": SUBMITTED["phone"], "notes": SUBMITTED["notes"], "tax_id": SUBMITTED["tax number"]}
    party = day.run(root, "party.create", 200, **values)["value"]
    day.run(root, "address.create", 200, party=party["id"], street=SUBMITTED["street"], city="Lyon", country="FR")
    day.run(root, "party.create", 400, name=SUBMITTED["name"], **{SUBMITTED["unknown member"]: SUBMITTED["phone"]})
    day.run(root, "party.create", 400, **values)
    filtered = [{"field": "email", "op": "contains", "value": SUBMITTED["e-mail"]}]
    assert len(day.run(root, "party.list", 200, filter=filtered)["value"]) == 1
    day.run(root, "party.search", 400, filter=filtered, order=[{"field": SUBMITTED["unknown member"]}])
    token_request = {"label": "daybot", "scopes": ["party.*"]}
    headers = {"Authorization": f"Bearer {root}"}
    issued_token = day.records.post("/api/auth/agent-token", json=token_request, headers=headers)
    agent = day.kept["agent's token"] = str(issued_token.json()["token"])
    value = day.run(agent, "party.get", 200, id=party["id"])["value"]
    plan = day.run(agent, "party.delete", 202, id=party["id"])["plan_id"]
    day.run(agent, "party.update", 400, id=party["id"], website=f"{value['email']} {SUBMITTED['notes']}")
    day.records.post(f"/api/approve/{plan}", headers=headers, json={"digest": SUBMITTED["unknown member"]})
    day.records.post(f"/api/party/{SUBMITTED['slug']}", headers=headers, json={})
    broken = f'{{"name": "{SUBMITTED["broken JSON"]}'
    day.records.post("/api/party/create", headers=headers | {"Content-Type": "application/json"}, content=broken)
    call = {"name": "party.create", "arguments": {"name": SUBMITTED["name"], "phone": [SUBMITTED["phone"]]}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    day.records.post("/mcp", headers=headers | {"Accept": "application/json, text/event-stream"}, json=message)


def shop(day: ServicesDay) -> None:
    """Use the store: accounts, questions, codes, and requests for things that do not exist."""
    form = {"email": SUBMITTED["e-mail"], "password": SUBMITTED["wrong password"]}
    assert day.store.post("/auth/signin", data=form).status_code == 401
    assert day.store.post("/auth/signup", data={"email": SUBMITTED["e-mail"]}).status_code == 200
    assert day.store.post("/auth/reset", data={"email": SUBMITTED["e-mail"]}).status_code == 200
    registration = {"method": "service_auth", "email": SUBMITTED["e-mail"]}
    day.store.post("/api/v1/auth/register", json=registration)
    day.store.post("/api/v1/ask", json={"question": SUBMITTED["question"]})
    day.store.get("/api/v1/products", params={"q": SUBMITTED["name"], "cursor": SUBMITTED["slug"]})
    day.store.get(f"/api/v1/products/{SUBMITTED['slug']}")
    day.store.post("/api/v1/redeem", json={"code": SUBMITTED["code"]})
    day.store.get(f"/{SUBMITTED['slug']}", headers={"Accept": "text/html"})


def break_both(data: Path) -> None:
    """Break what a request needs, so that its error is logged with the request and the traceback."""
    with sqlite3.connect(data / "records.sqlite") as database:
        database.execute("ALTER TABLE party RENAME TO gone")
    with sqlite3.connect(data / "distribution.sqlite") as database:
        database.execute("ALTER TABLE person RENAME TO gone")


def fail(day: ServicesDay) -> None:
    """Send requests that fail as bugs would, with personal data and secrets in them."""
    root = day.kept["session of root"]
    values = {"name": SUBMITTED["name"], "email": SUBMITTED["e-mail"], "notes": SUBMITTED["notes"]}
    day.run(root, "party.create", 500, **values)
    filtered = [{"field": "email", "op": "eq", "value": SUBMITTED["e-mail"]}]
    day.run(root, "party.search", 500, filter=filtered)
    form = {"email": SUBMITTED["e-mail"], "password": SUBMITTED["wrong password"]}
    assert day.store.post("/auth/signin", data=form).status_code == 500


@contextmanager
def serve_verbose(tmp_path: Path) -> Iterator[tuple[Running, Collector, str]]:
    """Run both services, which log as much as they can and send traces where possible. Provide the address of the
    operator's port."""
    port = free_port()
    settings = {
        "COUNTERSIGN_LOG_LEVEL": "debug",
        "COUNTERSIGN_LOG_REQUESTS": "true",
        "COUNTERSIGN_OPERATOR_PORT": str(port),
    }
    with collecting() as collector:
        if importlib.util.find_spec("opentelemetry.sdk") is not None:
            settings["COUNTERSIGN_OTLP_URL"] = collector.url
        with served(tmp_path / "data", "--demo", service="both", settings=settings) as server:
            yield server, collector, f"http://127.0.0.1:{port}"


def lines(log: str) -> list[dict[str, Any]]:
    """Return the lines that the services logged, without the messages of `serve` to people."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def require_owners(log_lines: list[dict[str, Any]], day: ServicesDay) -> None:
    """Require that each log line about a request names the request, and the kind and the id of its caller if they are
    known."""
    requests = [line for line in log_lines if line["part"] == "access"]
    faults = [line for line in log_lines if line["event"] == "request failed"]
    of_records = [line["principal"].partition(":")[0] for line in faults if line["part"] == "records"]

    assert {line["request_id"] for line in requests} >= day.ids
    assert len(faults) == 3
    assert all(line["request_id"] for line in (*requests, *faults))
    assert of_records == ["person", "person"]
    assert {line.get("principal", ":").partition(":")[0] for line in requests} == {"", "person", "agent"}


def found_in(text: str, secrets: dict[str, str]) -> list[str]:
    """Return the forbidden values that the text contains."""
    return [name for name, value in secrets.items() if value.lower() in text.lower()]


def test_log_metrics_and_traces_contain_nothing_secret_or_personal(tmp_path: Path, figures: Figures) -> None:
    with serve_verbose(tmp_path) as (server, collector, operator):
        day = ServicesDay(server.url, f"http://127.0.0.1:{server.records_port}")
        work(day)
        shop(day)
        break_both(server.data)
        fail(day)
        day.close()
        watched = {path: httpx.get(f"{operator}{path}").text for path in ("/metrics", "/readyz", "/livez")}

    log = server.log.read_text()
    watched |= {"log": log, "traces": b"\n".join(collector.bodies).decode("latin-1")}
    found_by_source = {source: found_in(text, day.kept) for source, text in watched.items()}
    assert not {source: names for source, names in found_by_source.items() if names}
    require_owners(lines(log), day)
    figures |= {
        "planted": len(day.kept),
        "log_lines_searched": len(log.splitlines()),
        "metrics_bytes_searched": len(watched["/metrics"]),
        "spans_searched": len(collector.spans),
        "found": 0,
    }


@pytest.mark.parametrize("log_line", ["log", "/metrics"])
def test_the_search_for_personal_values_finds_planted_values(log_line: str) -> None:
    text = f'{log_line} {{"event": "told {SUBMITTED["e-mail"].upper()}"}}'

    assert found_in(text, SUBMITTED) == ["e-mail"]
