"""Mail through a mail server: SMTP submission (RFC 6409), encrypted whenever the server supports it (RFC 3207, RFC
8314)."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.headerregistry import Address
from typing import NamedTuple, Self
from urllib.parse import SplitResult, unquote

import aiosmtplib
from aiosmtplib import SMTPResponseException

from countersign.kernel import connection_urls
from countersign.kernel.errors import Unavailable
from countersign.kernel.mail import message
from countersign.settings import BadSetting

PORTS = {"smtp": 587, "smtps": 465}
TIMEOUT_S = 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REMEDY = "The operator finds the cause with `countersign doctor`; then try again."


class SmtpServer(NamedTuple):
    """A mail server and the security of its connection. With `is_encrypted`, the connection begins with TLS; otherwise
    STARTTLS is used if offered, and required before a password is sent to another machine."""

    host: str
    port: int
    user: str | None
    password: str | None
    is_encrypted: bool

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the server of smtp://[user:password@]host[:port] or smtps://…; the ports are 587 and 465, unless the
        URL names a port.

        Raises:
            BadSetting: the URL does not have this form.
        """
        form = "COUNTERSIGN_SMTP_URL must be like smtp://user:password@mail.example.com:587 or smtps://…"
        setting_error = BadSetting(f"{form}; {connection_urls.REMEDY}")
        try:
            url_parts = connection_urls.require_readable(url, "COUNTERSIGN_SMTP_URL")
            host, port = url_parts.hostname, url_parts.port
        except ValueError:
            # Drop the cause, which quotes a part of the URL.
            raise setting_error from None
        if not host or not _is_supported(url_parts):
            raise setting_error
        user, password = (url_part and unquote(url_part) for url_part in (url_parts.username, url_parts.password))
        return cls(host, port or PORTS[url_parts.scheme], user, password, url_parts.scheme == "smtps")

    @property
    def needs_start_tls(self) -> bool:
        """Whether the password would otherwise be sent unencrypted over the network."""
        return self.user is not None and not self.is_encrypted and self.host not in _LOOPBACK


def _is_supported(url_parts: SplitResult) -> bool:
    """Return whether the URL contains only parts that `SmtpServer.of` reads."""
    has_whole_login = (url_parts.username is None) == (url_parts.password is None)
    has_more = bool(url_parts.path.strip("/") or url_parts.query or url_parts.fragment)
    return url_parts.scheme in PORTS and has_whole_login and not has_more


class SmtpMail:
    """A Mail that hands over each message to a mail server in a separate connection."""

    def __init__(self, server: SmtpServer, address: Address, *, timeout_s: float = TIMEOUT_S) -> None:
        self._server = server
        self._sender = address
        self._timeout_s = timeout_s

    async def send(self, recipient: str, subject: str, text: str) -> None:
        """See Mail. On return, the server has accepted the message."""
        mail_message = message.compose(self._sender, recipient, subject, text)
        async with self._connect() as client:
            await client.send_message(mail_message, sender=self._sender.addr_spec)

    async def check(self) -> None:
        """See Mail: connect, encrypt and sign in as `send` does."""
        async with self._connect() as client:
            await client.noop()

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[aiosmtplib.SMTP]:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            use_tls=server.is_encrypted,
            start_tls=False if server.is_encrypted else server.needs_start_tls or None,
            timeout=self._timeout_s,
            # Do not send the machine's own name, which is private, and which many servers refuse.
            local_hostname=self._sender.domain,
        )
        try:
            async with client:
                yield client
        except (aiosmtplib.SMTPException, OSError) as error:
            raise Unavailable(_reason(server, error), resolution=_REMEDY) from error


def _reason(server: SmtpServer, error: Exception) -> str:
    """Return the cause in words, without e-mail addresses, which servers repeat in their replies."""
    server_name = f"the mail server {server.host}:{server.port}"
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {server_name} is not trusted ({cause.verify_message}); set SSL_CERT_FILE to "
            "its authority"
        )
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return f"{server_name} refuses user name and password ({error.code})"
    if isinstance(error, aiosmtplib.SMTPSenderRefused):
        return f"{server_name} refuses the sender in COUNTERSIGN_MAIL_FROM ({error.code})"
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        codes = ", ".join(sorted({str(recipient.code) for recipient in error.recipients}))
        return f"{server_name} refuses the recipient ({codes})"
    if isinstance(error, SMTPResponseException):
        return f"{server_name} refuses the message ({error.code})"
    if isinstance(error, TimeoutError):
        return f"{server_name} does not answer in time"
    if isinstance(error, OSError):
        return f"{server_name} cannot be reached, or ended the connection"
    return f"{server_name} offers no STARTTLS or no sign-in where it is needed"
