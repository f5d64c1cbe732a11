"""After a full tour with errors, no file, log or error of the server contains a secret in clear text."""

import base64
import hashlib
import re
import time
import uuid
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.faults.lives import RestartableService
from tests.figures import Figures
from tests.servers.countersign import MASTER_KEY
from tests.store.auth.agents.people import csrf_of
from tests.store.auth.oauth.conftest import hidden_fields

OWNER_PASSWORD = "marker-owner-password-7Hq2"
WRONG_PASSWORD = "marker-wrong-password-9Kd4"
WRONG_SECRET = "marker-wrong-client-secret-3Lp8"
WRONG_CODE = "MARKR-WRONG-CODE0-77777"
WRONG_TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJtYXJrZXIifQ.marker-wrong-signature-5Tz1"
FORGED_SECRET = "csk_agent_marker00000000000000000000000000000000000000001"
POLL_INTERVAL_S = 1
NEW_PERSON = "marker-new-person@example.com"
NEW_PASSWORD = "marker-new-password-2Rt6"
VERIFIER = "marker-verifier-" + "v" * 43
LINK = re.compile(r"/auth/prove\?token=(cep_\w+)")
FORGED_CLAIM = "clm_marker000000000000000000000000000000000000000000001"
AGENTS_PERSON = "owner@example.com"
CLAIM_GRANT = "urn:workos:agent-auth:grant-type:claim"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
FOREIGN_UPLOAD = "cup_marker0000000000000000000000000000000000000000000001"


class SecretTour:
    """One tour of the service, with every secret and every error that occurred."""

    def __init__(self, lives: RestartableService) -> None:
        self.lives = lives
        self.http = httpx.Client(base_url=lives.root_url, headers={"Origin": lives.root_url})
        self.secrets: dict[str, str] = {
            "master key": MASTER_KEY,
            "owner's password": OWNER_PASSWORD,
            "wrong password": WRONG_PASSWORD,
            "wrong client secret": WRONG_SECRET,
            "unknown code": WRONG_CODE,
            "forged token": WRONG_TOKEN,
            "forged key": FORGED_SECRET,
            "foreign upload address": FOREIGN_UPLOAD,
            "forged claim token": FORGED_CLAIM,
        }
        self.errors: list[httpx.Response] = []

    def call(self, method: str, path: str, status: int, token: str = "", **options: Any) -> httpx.Response:
        """Send a request that must be answered with the status; errors are kept for the search."""
        headers = options.pop("headers", {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        answer = self.http.request(method, path, headers=headers, **options)
        assert answer.status_code == status, (method, path, answer.text)
        if status >= 400:
            self.errors.append(answer)
        return answer

    def wait_for_poll(self) -> None:
        """Wait until the claim may be polled again, which a poll that came too early has delayed."""
        time.sleep(POLL_INTERVAL_S + 5)

    def keyed(self, name: str) -> dict[str, str]:
        """Return a new Idempotency-Key, which is a secret too, because it decrypts the answer that is stored for it."""
        self.secrets[f"Idempotency-Key of {name}"] = key = str(uuid.uuid4())
        return {"Idempotency-Key": key}


def setup_link(tour: SecretTour) -> re.Match[str]:
    """Wait until the service has printed the one-time link, which may be after its first answer."""
    deadline_s = time.monotonic() + 60
    while (link := re.search(r"token=(cls_\w+)", tour.lives.log.read_text())) is None:
        assert time.monotonic() < deadline_s, tour.lives.log.read_text()
        time.sleep(0.05)
    return link


def set_up(tour: SecretTour) -> str:
    """Create the first organisation by its one-time link, sign in the owner with some mistakes, and return the owner's
    token."""
    link = setup_link(tour)
    tour.secrets["set-up link"] = link[1]
    form = {"slug": "north", "name": "North", "email": "owner@example.com", "password": OWNER_PASSWORD}
    tour.call("POST", f"/auth/setup?token={link[1]}", 404, data={**form, "token": FORGED_SECRET})
    tour.call("POST", f"/auth/setup?token={link[1]}", 200, data={**form, "token": link[1]})
    tour.call("GET", f"/auth/setup?token={link[1]}", 404)
    tour.call("POST", "/auth/signin", 401, data={"email": "owner@example.com", "password": WRONG_PASSWORD})
    tour.call("POST", "/auth/signin", 400, data={"email": "owner@example.com", "pasword": WRONG_PASSWORD})
    tour.call("POST", "/auth/signin", 303, data={"email": "owner@example.com", "password": OWNER_PASSWORD})
    tour.secrets["session"] = str(tour.http.cookies["countersign"])
    tour.call("POST", "/auth/session/token", 403, headers={"Origin": "http://elsewhere.example"}, json={})
    session_token = tour.call(
        "POST", "/auth/session/token", 200, json={"scope": "admin:org write:products write:releases"}
    )
    token = str(session_token.json()["access_token"])
    tour.secrets["owner's token"] = token
    return token


def make_client(tour: SecretTour, owner: str) -> str:
    """Create an OAuth client, exchange right and wrong secrets, and return its token."""
    scopes = "read:products read:releases write:products write:releases read:library admin:org"
    path = "/api/v1/org/clients"
    created_body = tour.call(
        "POST", path, 201, owner, json={"name": "a client", "scopes": scopes.split()}, headers=tour.keyed("client")
    ).json()
    tour.secrets["client secret"] = created_body["client_secret"]
    grant = {"grant_type": "client_credentials", "client_id": created_body["client_id"]}
    tour.call("POST", "/api/v1/auth/token", 401, data={**grant, "client_secret": WRONG_SECRET})
    wrong_credentials = b64encode(f"{created_body['client_id']}:{WRONG_SECRET}".encode()).decode()
    basic = {"Authorization": f"Basic {wrong_credentials}"}
    tour.call("POST", "/api/v1/auth/token", 401, data={"grant_type": "client_credentials"}, headers=basic)
    tour.call("POST", "/api/v1/auth/token", 401, data={**grant, "client_secrets": created_body["client_secret"]})
    tour.call("POST", f"/api/v1/auth/token?client_secret={created_body['client_secret']}", 400, data=grant)
    issued_token = tour.call(
        "POST", "/api/v1/auth/token", 200, data={**grant, "client_secret": created_body["client_secret"]}
    )
    token = str(issued_token.json()["access_token"])
    tour.secrets["client's token"] = token
    return token


def publish(tour: SecretTour, token: str) -> None:
    """Create a product and a release. One upload fails, and one succeeds."""
    product = {"slug": "river", "title": "River", "kind": "game", "platforms": ["linux"]}
    tour.call("POST", "/api/v1/products", 201, token, json=product, headers=tour.keyed("product"))
    release = {"version": "1.0.0", "channel": "stable", "notes_only": True}
    tour.call("POST", "/api/v1/products/river/releases", 201, token, json=release)
    tour.call("POST", "/api/v1/products/river/releases/1.0.0/publish", 200, token)
    artifacts = "/api/v1/products/river/releases/1.0.0/artifacts"
    file_body = {"filename": "river.bin", "size": 5, "sha256": "0" * 64}
    key = tour.keyed("announcement")
    spoilt_url = tour.call("POST", artifacts, 201, token, json=file_body, headers=key).json()["upload_url"]
    tour.secrets["spoilt upload address"] = spoilt_url.rpartition("/")[2]
    tour.call("POST", artifacts, 422, token, json={**file_body, "size": 6}, headers=key)
    tour.call("PUT", spoilt_url, 400, content=b"four")
    tour.call("PUT", spoilt_url, 422, content=b"bytes")
    tour.call("PUT", spoilt_url, 404, content=b"bytes")
    tour.call("PUT", f"/api/v1/artifacts/uploads/{FOREIGN_UPLOAD}", 404, content=b"bytes")
    upload_url = tour.call("POST", artifacts, 201, token, json={"filename": "river.bin", "size": 5}).json()[
        "upload_url"
    ]
    tour.secrets["upload address"] = upload_url.rpartition("/")[2]
    tour.call("DELETE", upload_url, 405)
    tour.call("PUT", upload_url, 201, content=b"bytes")


def redeem(tour: SecretTour, token: str) -> None:
    """Issue codes, show them again, redeem, mistype and misplace them."""
    batch = {"kind": "promo", "products": ["river"], "count": 3, "max_uses": 1}
    key = tour.keyed("codes")
    issued_codes = tour.call("POST", "/api/v1/codes", 201, token, json=batch, headers=key).json()["codes"]
    assert tour.call("POST", "/api/v1/codes", 201, token, json=batch, headers=key).json()["codes"] == issued_codes
    for number, code in enumerate(issued_codes):
        tour.secrets[f"code {number}"] = code
    body = {"code": issued_codes[0]}
    key = tour.keyed("redeem")
    tour.call("POST", "/api/v1/redeem", 200, token, json=body, headers=key)
    tour.call("POST", "/api/v1/redeem", 422, token, json={"code": issued_codes[1]}, headers=key)
    tour.call("POST", "/api/v1/redeem", 404, token, json={"code": WRONG_CODE}, headers=tour.keyed("unknown code"))
    tour.call("POST", "/api/v1/redeem", 400, token, json={"cod": issued_codes[1]})
    tour.call("POST", "/api/v1/redeem", 400, token, json={"code": [issued_codes[1]]})
    tour.call("POST", "/api/v1/redeem", 400, token, json=body, headers={"Idempotency-Key": f"{issued_codes[1]}"})
    tour.call("POST", "/api/v1/redeem", 401, WRONG_TOKEN, json=body)
    tour.call("GET", "/api/v1/library", 401, headers={"X-API-Key": FORGED_SECRET})
    tour.call("GET", f"/api/v1/products?token={token}", 400)
    tour.call("GET", f"/api/v1/products?cursor={FORGED_SECRET}", 400)


def agents(tour: SecretTour) -> None:
    """Let agents register, mistype and misplace their credentials, be claimed by the owner, exchange tokens, and revoke
    them."""
    body = {"method": "service_auth", "email": AGENTS_PERSON}
    registration = tour.call("POST", "/api/v1/auth/register", 200, json=body)
    agent_answer, claim = registration.json(), registration.json()["claim"]
    links = [claim["verification_uri"], claim["attempt"]["verification_uri"]]
    tour.secrets |= {"claim token": agent_answer["claim_token"], "user code": claim["user_code"]}
    me, poll = "/api/v1/auth/me", {"claim_token": agent_answer["claim_token"]}
    tour.call("POST", me, 200, json=poll)
    tour.call("POST", me, 429, json=poll)
    tour.call("GET", f"{me}?claim_token={agent_answer['claim_token']}", 400)
    tour.call("POST", me, 400, json={**poll, "claim_token": [agent_answer["claim_token"]]})
    tour.call("POST", me, 401, json={"claim_token": FORGED_CLAIM})
    tour.call("POST", f"{me}/complete", 409, json={**poll, "user_code": claim["user_code"]})
    tour.call("POST", "/api/v1/auth/token", 400, data={"grant_type": CLAIM_GRANT, "claim_token": FORGED_CLAIM})
    csrf = csrf_of(tour.call("GET", links[0], 200))
    tour.secrets["form's token"] = csrf
    wrong_confirmation = {"csrf": csrf, "confirm": "yes", "user_code": "BBBB-BBBB"}
    tour.call("POST", links[0], 400, data=wrong_confirmation)
    tour.call("POST", links[0], 403, data={**wrong_confirmation, "csrf": "x"})
    tour.call("POST", links[0], 200, data={**wrong_confirmation, "user_code": claim["user_code"]})
    tour.call("GET", links[1], 410)
    exchange(tour, poll)


def exchange(tour: SecretTour, poll: dict[str, str]) -> None:
    """Exchange the assertion of the claimed agent for tokens, try wrong tokens, and revoke the tokens."""
    grant = {"grant_type": CLAIM_GRANT, **poll}
    tour.wait_for_poll()
    issued_body = tour.call("POST", "/api/v1/auth/token", 200, data=grant).json()
    token, assertion = issued_body["access_token"], issued_body["identity_assertion"]
    tour.secrets |= {"agent's token": token, "assertion": assertion}
    bearer = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}
    tour.call("POST", "/api/v1/auth/login", 200, json={**bearer, "assertion": assertion})
    tour.call("POST", "/api/v1/auth/login", 400, json={**bearer, "assertion": assertion[:-4] + "AAAA"})
    tour.call("POST", "/api/v1/auth/login", 400, json={**bearer, "assertion": assertion, "scope": "admin:org"})
    tour.call("POST", "/api/v1/auth/login", 400, json={**bearer, "assertion": token})
    tour.call("GET", "/api/v1/library", 401, assertion)
    body = {"type": "identity_assertion", "assertion_type": ID_JAG, "assertion": assertion}
    tour.call("POST", "/api/v1/auth/register", 400, json=body)
    tour.call("POST", "/healthz", 400, content=assertion, headers={"Content-Type": "application/secevent+jwt"})
    tour.call("GET", f"/api/v1/library?access_token={token}", 400, token)
    tour.call("POST", "/auth/revoke", 400, data={"tokens": token})
    tour.call("POST", "/auth/revoke", 200, data={"token": token})
    tour.call("GET", "/api/v1/library", 401, token)
    tour.call("POST", "/auth/revoke", 200, data={"token": assertion})


def open_account(tour: SecretTour) -> None:
    """Create an account by a mailed link, which is mistyped and used twice."""
    tour.call("POST", "/auth/signup", 200, data={"email": NEW_PERSON})
    letters = tour.lives.data / "mail"
    for _ in range(200):
        links = [match for file in letters.glob("*.eml") if (match := LINK.search(file.read_text()))]
        if links:
            break
        time.sleep(0.05)
    link = links[0][1]
    tour.secrets |= {"mailed link": link, "new person's password": NEW_PASSWORD}
    tour.call("GET", f"/auth/prove?token={link}", 200)
    tour.call("POST", "/auth/prove", 400, data={"token": link, "password": "short"})
    tour.call("POST", "/auth/prove", 303, data={"token": link, "password": NEW_PASSWORD})
    tour.call("POST", "/auth/prove", 404, data={"token": link, "password": NEW_PASSWORD})
    tour.secrets["new person's session"] = str(tour.http.cookies["countersign"])


def authorize(tour: SecretTour, owner: str) -> None:
    """Get a code for a client with a redirect. Exchange it with a wrong verifier, with the right verifier, and
    again."""
    body = {"name": "App", "scopes": ["read:library"], "redirect_uris": ["https://app.example/back"]}
    client = tour.call("POST", "/api/v1/org/clients", 201, owner, json=body).json()
    tour.secrets["second client secret"] = client["client_secret"]
    for verifier, statuses in ((f"{VERIFIER}-wrong", (400, 400)), (VERIFIER, (200, 400))):
        tour.secrets[f"verifier {verifier[-5:]}"] = verifier
        code = _code(tour, client["client_id"])
        tour.secrets[f"authorization code {verifier[-5:]}"] = code
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
        form |= {"redirect_uri": body["redirect_uris"][0], "client_id": client["client_id"]}
        for status in statuses:
            tour.call("POST", "/api/v1/auth/token", status, data={**form, "client_secret": client["client_secret"]})


def _code(tour: SecretTour, client_id: str) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    authorization = {"response_type": "code", "client_id": client_id, "redirect_uri": "https://app.example/back"}
    authorization |= {
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": "s",
        "scope": "read:library",
    }
    authorize_page = tour.http.get("/auth/authorize", params=authorization)
    if authorize_page.status_code == 200:
        form = {**authorization, **hidden_fields(authorize_page), "decision": "allow"}
        authorize_page = tour.call("POST", "/auth/authorize", 303, data=form)
    assert authorize_page.status_code == 303, authorize_page.text
    return parse_qs(urlsplit(authorize_page.headers["location"]).query)["code"][0]


def found_in(text: bytes, secrets: dict[str, str]) -> list[str]:
    """Return the secrets that the text contains in clear (with or without dashes)."""
    plain_text = text.replace(b"-", b"")
    return [name for name, secret in secrets.items() if secret.replace("-", "").encode() in plain_text]


@pytest.fixture
def tour(lives: RestartableService, database_url: str) -> SecretTour:
    """A served store without data, which logs as much as it can."""
    lives.settings |= {
        "COUNTERSIGN_LOG_REQUESTS": "true",
        "COUNTERSIGN_LOG_LEVEL": "debug",
        "COUNTERSIGN_POLL_INTERVAL_S": str(POLL_INTERVAL_S),
    }
    if database_url.startswith("postgres"):
        lives.settings["COUNTERSIGN_DATABASE_URL"] = database_url
    lives.start()
    return SecretTour(lives)


def search_log(tour: SecretTour, log: bytes) -> None:
    """Search the log. The set-up link may be in the terminal output once; personal addresses may be in the database
    only."""
    assert found_in(log, tour.secrets) == ["set-up link"]
    assert log.count(tour.secrets["set-up link"].encode()) == 1
    assert AGENTS_PERSON.encode() not in log


def search_files(tour: SecretTour) -> None:
    """Search every file in the data directory except the outbox, whose e-mails are meant to be read."""
    files = [path for path in tour.lives.data.rglob("*") if path.is_file() and path.parent.name != "mail"]
    leaked = {path.name: found_in(path.read_bytes(), tour.secrets) for path in files}
    assert not {name: names for name, names in leaked.items() if names}


def search_errors(tour: SecretTour) -> None:
    """Search every error answer. A page that is shown again may contain what its form needs."""
    expected_names = ("form's token", "mailed link")
    searched_secrets = {name: secret for name, secret in tour.secrets.items() if name not in expected_names}
    leaks = [
        (f"{error.request.method} {error.request.url.path}", found_in(error.content, searched_secrets))
        for error in tour.errors
    ]
    assert not [leak for leak in leaks if leak[1]]
    assert not [error.text for error in tour.errors if AGENTS_PERSON in error.text and "<html" not in error.text]


def test_no_file_and_no_error_contains_a_plain_secret(tour: SecretTour, figures: Figures) -> None:
    owner = set_up(tour)
    tour_token = make_client(tour, owner)
    publish(tour, tour_token)
    redeem(tour, tour_token)
    agents(tour)
    authorize(tour, owner)
    tour.call("POST", "/auth/signout", 303)
    open_account(tour)
    tour.http.close()

    log = tour.lives.log.read_bytes()
    search_log(tour, log)
    # Kill the store, so that the write-ahead log remains.
    tour.lives.kill()
    search_files(tour)
    search_errors(tour)
    figures |= {
        "secrets": len(tour.secrets),
        "errors_searched": len(tour.errors),
        "log_lines_searched": len(log.splitlines()),
        "found": 0,
    }
