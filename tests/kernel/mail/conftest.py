"""A mail server that stores the e-mails that it receives: with and without TLS, with and without a password."""

import asyncio
import ipaddress
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "store@example.com", "p@ss/word"


@dataclass
class MailSink:
    """The server's address, the e-mails that it received, and its responses to a recipient and to a message."""

    port: int = 0
    letters: list[EmailMessage] = field(default_factory=list[EmailMessage])
    senders: list[str | None] = field(default_factory=list[str | None])
    encrypted: list[bool] = field(default_factory=list[bool])
    users: list[str] = field(default_factory=list[str])
    recipient_answer: str = ""
    message_answer: str = "250 OK"

    async def handle_RCPT(self, _: SMTP, __: Any, envelope: Envelope, address: str, ___: list[str]) -> str:
        """Accept the recipient unless the test says otherwise."""
        if self.recipient_answer:
            return self.recipient_answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _: Any, envelope: Envelope) -> str:
        """Store the message."""
        assert isinstance(envelope.content, bytes)
        self.letters.append(message_from_bytes(envelope.content, _class=EmailMessage, policy=POLICY))
        self.senders.append(envelope.mail_from)
        self.encrypted.append(server.transport.get_extra_info("sslcontext") is not None)
        return self.message_answer


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of this machine, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("certificate") / "localhost.pem"
    file.write_bytes(built.public_bytes(pem) + private)
    return file


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make programs of this machine trust the issuer of the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


Served = Callable[..., Any]


@pytest.fixture
def sink(certificate: Path) -> Served:
    """Run a mail server. `tls` is "none", "starttls" or "implicit". With `auth`, it requires the password of the
    user."""

    def server(mail_sink: MailSink, tls: str, auth: bool) -> SMTP:
        def checked(_: Any, __: Any, ___: Any, ____: str, data: Any) -> AuthResult:
            mail_sink.users.append(data.login.decode())
            return AuthResult(success=data == (USER.encode(), PASSWORD.encode()), handled=False)

        context = _context(certificate) if tls == "starttls" else None
        with warnings.catch_warnings():
            # The library warns about passwords without STARTTLS, which this test uses on purpose.
            warnings.simplefilter("ignore", UserWarning)
            return SMTP(
                mail_sink,
                hostname="mail.example.com",
                tls_context=context,
                authenticator=checked if auth else None,
                auth_required=auth,
                auth_require_tls=tls == "starttls",
            )

    @asynccontextmanager
    async def serve_sink(tls: str = "none", *, auth: bool = False) -> AsyncIterator[MailSink]:
        mail_sink = MailSink()
        context = _context(certificate) if tls == "implicit" else None
        listening = await asyncio.get_running_loop().create_server(
            lambda: server(mail_sink, tls, auth), "127.0.0.1", 0, ssl=context
        )
        mail_sink.port = listening.sockets[0].getsockname()[1]
        try:
            yield mail_sink
        finally:
            listening.close()
            await listening.wait_closed()

    return serve_sink


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
