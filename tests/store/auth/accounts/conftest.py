"""A visitor of the account pages who reads the e-mails."""

import re
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import httpx
import pytest

from countersign.kernel.mail import queue, transports
from countersign.kernel.security import passwords, secrets
from countersign.store.auth import accounts, people, queries
from countersign.store.context import Store

OWN_PAGE = {"Origin": "http://127.0.0.1:8480"}
PASSWORD = "a long password"


@dataclass
class AccountVisitor:
    """Sends the forms like a browser, and reads the outbox."""

    store: Store
    http: httpx.AsyncClient

    async def ask(self, page: str, email: str, return_to: str = "/") -> httpx.Response:
        """Send the form of /auth/signup or /auth/reset, and wait for the e-mail."""
        form = {"email": email, "return_to": return_to}
        answer = await self.http.post(f"/auth/{page}", data=form, headers=OWN_PAGE)
        await self.store.mail.drain()
        return answer

    async def choose(self, token: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
        """Send the form behind the link in an e-mail."""
        form = {"token": token, "password": password}
        return await self.http.post("/auth/prove", data=form, headers={**OWN_PAGE, **headers})

    async def sign_in(self, email: str, password: str = PASSWORD) -> httpx.Response:
        """Send the sign-in form."""
        form = {"email": email, "password": password}
        return await self.http.post("/auth/signin", data=form, headers=OWN_PAGE)

    async def open_account(self, email: str, password: str = PASSWORD) -> httpx.Response:
        """Sign up completely."""
        await self.ask("signup", email)
        return await self.choose(self.token(), password)

    async def is_signed_in(self, cookie: str | None = None) -> bool:
        """Return whether the session of this cookie, or of the browser's own cookie, is valid."""
        headers = OWN_PAGE if cookie is None else {**OWN_PAGE, "Cookie": f"countersign={cookie}"}
        answer = await self.http.post("/auth/session/token", json={}, headers=headers)
        return answer.status_code == 200

    def letters(self) -> list[EmailMessage]:
        """Return the e-mails in the outbox, the newest first."""
        files = transports.messages(Path(self.store.settings.data) / transports.OUTBOX_FOLDER)
        return [message_from_bytes(file.read_bytes(), _class=EmailMessage, policy=SMTP) for file in files]

    def token(self) -> str:
        """Return the token of the link in the newest e-mail."""
        match = re.search(r"/auth/prove\?token=(cep_\w+)", self.letters()[0].get_content())
        assert match is not None
        return match[1]

    async def link(self, email: str) -> str:
        """Create a link to this address without an e-mail, and return its token."""
        token = secrets.new_secret("cep")
        async with self.store.database.transaction() as transaction:
            await accounts.add_link(transaction, secrets.digest(token), accounts.EmailLink(email, "/"), 3_600)
        return token

    async def person(self, email: str, password: str | None = None) -> str:
        """Create a person with a password or, without a password, by invitation, and return the id."""
        hashed = None if password is None else await passwords.hash_password(password)
        async with self.store.database.transaction() as transaction:
            return (await people.add_person(transaction, email, hashed)).id

    async def find_person(self, email: str) -> queries.Person | None:
        """Return the person with this address."""
        return await queries.person_with_email(self.store.database, email)


@pytest.fixture
def visitor(store: Store, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> AccountVisitor:
    """A visitor of the account pages of an empty store whose e-mails are written at once."""
    monkeypatch.setattr(queue, "PAUSES_S", (0.0,))
    return AccountVisitor(store, http)
