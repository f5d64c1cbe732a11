"""A store started as users start it, with a client, a person with a browser, and a trusted provider."""

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from tests.peers import identity_provider
from tests.peers.identity_provider import IdentityProvider
from tests.servers.countersign import COMMAND, environment, served

PASSWORD = "correct horse battery"
SCOPES = "read:products read:library"
BACK = "http://127.0.0.1:9/back"
SETTINGS = {"COUNTERSIGN_PRIVATE_ISSUERS": "true"}
MOST_PAGES = 10


@dataclass
class PersonBrowser:
    """A person's browser; `pages` are the forms they have sent."""

    email: str
    http: httpx.Client
    pages: list[str] = field(default_factory=list[str])

    def authorize(self, address: str) -> str:
        """Open the address, sign in if needed, and consent. Return the redirect address of the client to which the
        browser is sent at the end."""
        # The request comes from another site, so it lacks the session's cookie, which is SameSite=Strict.
        answer = httpx.get(address, headers={"Sec-Fetch-Site": "cross-site"})
        for _ in range(MOST_PAGES):
            redirect_url = _redirect_url(answer)
            if redirect_url is None:
                answer = self._submit(answer)
            elif redirect_url.startswith(BACK):
                return redirect_url
            else:
                answer = self.http.get(redirect_url, headers={"Sec-Fetch-Site": "same-origin"})
        raise AssertionError(f"never sent back; the last page was {answer.url}: {answer.text}")

    def _submit(self, page: httpx.Response) -> httpx.Response:
        """Submit a page's form: the password form, or the consent form."""
        action = re.search(r'<form method="post"(?: action="([^"]+)")?', page.text)
        assert action is not None, page.text
        hidden_inputs = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text)
        is_sign_in = 'type="password"' in page.text
        typed_fields = {"email": self.email, "password": PASSWORD} if is_sign_in else {"decision": "allow"}
        self.pages.append("sign-in" if is_sign_in else "consent")
        form = {**{name: unescape(value) for name, value in hidden_inputs}, **typed_fields}
        origin = f"{page.url.scheme}://{page.url.netloc.decode()}"
        return self.http.post(urljoin(str(page.url), unescape(action[1] or "")), data=form, headers={"Origin": origin})


def _redirect_url(answer: httpx.Response) -> str | None:
    """Return the address to which an answer redirects, or None."""
    if answer.is_redirect:
        return urljoin(str(answer.url), answer.headers["location"])
    assert answer.status_code == 200, answer.text
    refresh = re.search(r'http-equiv="refresh" content="\d+; ?url=([^"]+)"', answer.text)
    return None if refresh is None else urljoin(str(answer.url), unescape(refresh[1]))


@dataclass
class RunningStore:
    """The running store; `client_id` may read the library and redirect people to BACK. BACK has no server: the person's
    browser stops at it."""

    root: str
    data: Path
    client_id: str
    client_secret: str
    provider: IdentityProvider

    @property
    def base(self) -> str:
        """The API's address."""
        return f"{self.root}/api/v1"

    def known_to_client(self, **extra: str) -> dict[str, str]:
        """Return the values that a client knows before it starts."""
        return {
            "root": self.root,
            "base": self.base,
            "library": f"{self.base}/library",
            "authorization_endpoint": f"{self.root}/auth/authorize",
            "token_endpoint": f"{self.base}/auth/login",
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "redirect_uri": BACK,
            **extra,
        }

    @contextmanager
    def person(self) -> Iterator[PersonBrowser]:
        """Create a person with a browser."""
        email = f"{uuid.uuid4().hex}@example.com"
        command_output(self.data, "person", "create", email, "--password-stdin", stdin=PASSWORD)
        with httpx.Client() as http:
            yield PersonBrowser(email, http)

    def library(self, token: str) -> int:
        """Return the answer to a request for the library with this token."""
        return httpx.get(f"{self.base}/library", headers={"Authorization": f"Bearer {token}"}).status_code


@contextmanager
def open_shop(data: Path) -> Iterator[RunningStore]:
    """Run the store and the provider until the block ends."""
    with identity_provider.serve_provider() as provider, served(data, settings=SETTINGS) as running:
        command_output(data, "org", "create", "north", "--name", "North")
        trusted = ("--jwks-uri", provider.jwks_uri, "--name", identity_provider.NAME)
        command_output(data, "issuers", "add", provider.issuer, *trusted)
        created_client = command_output(
            data, "client", "create", "north", "--name", "App", "--scope", SCOPES, "--redirect-uri", BACK
        )
        yield RunningStore(running.url, data, created_client["client_id"], created_client["client_secret"], provider)


def command_output(data: Path, *arguments: str, stdin: str = "") -> dict[str, Any]:
    """Return the output of an operator's command."""
    result = subprocess.run(
        [*COMMAND, *arguments, "--data", data, "--json"],
        env=environment(**SETTINGS),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
