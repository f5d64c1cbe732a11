"""A served store for schemathesis: demonstration data, callers, and the ids of existing things."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from countersign.store import demo
from tests.servers.countersign import Running, environment, served

ROOT = Path(__file__).parents[2]
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
"""No 5xx, no undocumented status, media type, header or answer, no accepted invalid input."""
# A thousand times what the run sends: limits are tested elsewhere.
_UNLIMITED = (
    *(f"RATE_{kind}" for kind in ("ANONYMOUS", "COMMUNITY", "AGENT", "PERSON", "TOKEN", "REGISTER", "KEYS")),
    *("REGISTER_ANONYMOUS_ALL", "REGISTER_NAMED_ALL", "CODE_FAILURES_PERSON", "CODE_FAILURES_ADDRESS", "JOBS_QUEUED"),
)
SETTINGS: Mapping[str, str] = {
    **{f"COUNTERSIGN_{name}": "100000000" for name in _UNLIMITED},
    "COUNTERSIGN_JOB_WORKERS": "1",
    "COUNTERSIGN_SECURITY_CONTACT": "security@example.com",
}
# Refusals that schemathesis's check for accepted invalid input does not know.
REFUSING = [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 416, 422, 424, 428, 429, 431]
MOSTLY = 0.7
METHODS = {"get", "post", "put", "patch", "delete"}
DRAFT = "9.9.9"


@dataclass
class FuzzedStore:
    """The served store, the headers of each caller, and known values by parameter."""

    running: Running
    callers: dict[str, dict[str, str] | None] = field(default_factory=dict[str, dict[str, str] | None])
    values: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    artifacts: Sequence[str] = ()

    def run(
        self, caller: str, folder: Path, *, phases: str, examples: int, seed: int, at_most_s: int = 0, every: int = 1
    ) -> dict[str, Any]:
        """Run these phases as the caller, and return the run's report. With `at_most_s`, the phases are repeated until
        the time is over. If `every` is 3, every third operation is called."""
        chosen_operations = self._operations()[::every] if every > 1 else []
        config, report, log = folder / "schemathesis.toml", folder / "report.json", folder / "log.txt"
        config.write_text(self._config())
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", str(config), "run"),
            f"{self.running.url}/openapi.json",
            *("--checks", ",".join(CHECKS), "--phases", phases, "--max-examples", str(examples), "--seed", str(seed)),
            *(("--max-time", str(at_most_s)) if at_most_s else ()),
            *(word for name in chosen_operations for word in ("--include-name", name)),
            *("--continue-on-failure", "--no-shrink", "--generation-database", "none", "--warnings", "off"),
            *("--report", "json", "--report-json-path", str(report)),
            *(word for pair in (self.callers[caller] or {}).items() for word in ("-H", ": ".join(pair))),
        ]
        variables = {
            "SCHEMATHESIS_HOOKS": "tests.contract.schemathesis_hooks",
            "FUZZED_ARTIFACTS": " ".join(self.artifacts),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        }
        with log.open("wb") as output:
            subprocess.run(command, cwd=folder, env=environment(**variables), stdout=output, stderr=output, check=False)
        assert report.exists(), log.read_text(errors="replace")[-4_000:]
        fuzz_report: dict[str, Any] = json.loads(report.read_text())
        fuzz_report["log"] = log.read_text(errors="replace")
        return fuzz_report

    def _operations(self) -> list[str]:
        """Return the names of all operations in schemathesis's form."""
        paths = httpx.get(f"{self.running.url}/openapi.json", timeout=60).json()["paths"]
        return sorted(f"{method.upper()} {path}" for path, item in paths.items() for method in METHODS & item.keys())

    def _config(self) -> str:
        """Use known values in most requests, because random values would never name a product."""
        lines = [
            "[generation]",
            "with-security-parameters = false",
            "[checks.negative_data_rejection]",
            f"expected-statuses = {json.dumps([*REFUSING, '5xx'])}",
        ]
        for number, known_values in enumerate(self.values.values()):
            lines += [f"[dictionaries.known{number}]", f"values = {json.dumps(known_values)}"]
        lines.append("[parameters]")
        for number, name in enumerate(self.values):
            lines.append(f'"{name}" = {{ dictionary = "known{number}", probability = {MOSTLY} }}')
        return "\n".join(lines) + "\n"


@contextmanager
def serve_fuzzed(data: Path) -> Iterator[FuzzedStore]:
    """Serve the demonstration, with an upload, a job, a batch of codes and an image."""
    with served(data, "--demo", settings=SETTINGS) as running:
        people = {"player": demo.PLAYER, "publisher": demo.PUBLISHER}
        tokens = {name: running.token(email) for name, email in people.items()}
        fuzzed = FuzzedStore(running, {"anonymous": {}, "key": None})
        for name, token in tokens.items():
            fuzzed.callers[name] = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{running.url}/api/v1", timeout=60) as http:
            provisioned_response = http.get("/api/keys", params={"tier": "agent"})
            if provisioned_response.is_success:
                fuzzed.callers["key"] = {"X-API-Key": provisioned_response.json()["api_key"]}
            http.headers.update(fuzzed.callers["publisher"] or {})
            _look_around(fuzzed, http)
        yield fuzzed


def _look_around(fuzzed: FuzzedStore, http: httpx.Client) -> None:
    """Collect existing ids, and begin operations that take several calls."""
    own_products, other_products = _products(http, "northwind-games"), _products(http, "openfield")
    ids = [product["id"] for product in own_products]
    releases = _releases(http, ids)
    versions = sorted({release["version"] for release in releases})
    artifacts = [artifact for release in releases for artifact in release.get("artifacts", ())]
    fuzzed.artifacts = [artifact["id"] for artifact in artifacts]
    for artifact in fuzzed.artifacts[:6]:
        assert _created_object(_job(http, "build.process", artifact))["status"] == "completed"
    fuzzed.values |= {
        "path.id": [
            *ids,
            *(product["slug"] for product in own_products),
            other_products[0]["id"],
            other_products[1]["slug"],
        ],
        "path.version": [*versions, DRAFT],
        "path.artifact_id": fuzzed.artifacts,
        "path.job_id": [_created_object(_job(http, "artifact.verify", fuzzed.artifacts[0]))["job_id"]],
        "path.token": _uploads(http, ids[0]),
        "path.sha256": [_picture(http, ids[0])],
        "path.type": ["resource-not-found", "invalid-request", "rate-limit-exceeded"],
        "query.from": versions,
        "query.platform": sorted({artifact["platform"] for artifact in artifacts}),
        "query.org": ["northwind-games", "openfield"],
        "body.products[*]": ids,
        **_secrets(fuzzed.running.url, http, ids[0]),
    }


def _products(http: httpx.Client, org: str) -> list[dict[str, Any]]:
    products: list[dict[str, Any]] = http.get("/products", params={"org": org, "limit": 4}).json()["items"]
    return products


def _releases(http: httpx.Client, products: Sequence[str]) -> list[dict[str, Any]]:
    """Return the four newest releases of each product."""
    return [release for product in products for release in http.get(f"/products/{product}/releases").json()[:4]]


def _secrets(url: str, http: httpx.Client, product: str) -> dict[str, Sequence[str]]:
    """Create secrets that give access: codes, a client, and a registered agent."""
    batch = _created_object(
        http.post("/codes", json={"kind": "promo", "products": [product], "count": 5, "max_uses": 9})
    )
    agent = _created_object(http.post("/auth/register", json={"type": "anonymous"}, headers={"Authorization": ""}))
    return {
        "path.batch_id": [batch["batch_id"]],
        "body.code": [*demo.LICENCE_CODES, demo.PROMO_CODE, *batch["codes"]],
        "body.grant_type": ["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"],
        "body.client_id": [demo.CLIENT_ID],
        "body.client_secret": [demo.CLIENT_SECRET],
        "body.scope": ["read:products", "read:products read:library"],
        "body.resource": [url],
        "body.assertion": [agent["identity_assertion"]],
        "body.claim_token": [agent["claim_token"]],
        "body.type": ["anonymous", "service_auth", "artifact.verify"],
    }


def _uploads(http: httpx.Client, product: str) -> Sequence[str]:
    """Return the secrets of uploads to a draft, each of four bytes, the length of `null`, which bodies without a schema
    often are."""
    _created_object(http.post(f"/products/{product}/releases", json={"version": DRAFT, "channel": "beta"}))
    path = f"/products/{product}/releases/{DRAFT}/artifacts"
    urls = [
        _created_object(http.post(path, json={"filename": name, "size": 4}))["upload_url"] for name in ("a", "b", "c")
    ]
    return [url.rpartition("/")[2] for url in urls]


def _job(http: httpx.Client, kind: str, artifact: str) -> httpx.Response:
    body = {"type": kind, "payload": {"artifact_id": artifact}}
    return http.post("/jobs", json=body, headers={"Prefer": "wait=30"})


def _picture(http: httpx.Client, product: str) -> str:
    """Return the digest of an image of the product."""
    icon_bytes = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(icon_bytes, "PNG")
    size = len(icon_bytes.getvalue())
    media_body = {"kind": "icon", "filename": "i.png", "size": size, "alt": ""}
    media_answer = _created_object(http.post(f"/products/{product}/media", json=media_body))
    stored_media = _created_object(httpx.put(media_answer["upload_url"], content=icon_bytes.getvalue()))
    return str(stored_media["url"]).rpartition("/")[2]


def _created_object(answer: httpx.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body
