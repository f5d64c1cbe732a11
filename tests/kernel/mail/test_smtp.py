"""E-mails are sent through a real mail server, encrypted if possible. A failure has a reason."""

import asyncio
from email.headerregistry import Address
from urllib.parse import quote

import pytest

from countersign.kernel.errors import Unavailable
from countersign.kernel.mail.message import BadAddress
from countersign.kernel.mail.smtp import SmtpMail, SmtpServer
from countersign.settings import BadSetting
from tests.kernel.mail.conftest import PASSWORD, USER, MailSink, Served

OF = Address("Countersign", addr_spec="no-reply@store.example")
LOGIN = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@"


def mail(sink: MailSink, scheme: str = "smtp", login: str = "", *, timeout_s: float = 5) -> SmtpMail:
    return SmtpMail(SmtpServer.of(f"{scheme}://{login}localhost:{sink.port}"), OF, timeout_s=timeout_s)


async def test_an_email_arrives(sink: Served) -> None:
    async with sink() as server:
        await mail(server).send("ann@example.com", "Grüße", "Zwölf\n")

    (letter,) = server.letters
    assert (letter["To"], letter["Subject"], letter.get_content()) == ("ann@example.com", "Grüße", "Zwölf\r\n")
    assert server.senders == ["no-reply@store.example"]


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(("tls", "scheme"), [("starttls", "smtp"), ("implicit", "smtps")])
@pytest.mark.parametrize("auth", [False, True])
async def test_an_email_is_encrypted_if_the_server_supports_it(sink: Served, tls: str, scheme: str, auth: bool) -> None:
    async with sink(tls, auth=auth) as server:
        await mail(server, scheme, LOGIN if auth else "").send("ann@example.com", "Hello", "text\n")

    assert len(server.letters) == 1
    assert server.encrypted == [True]
    assert server.users == ([USER] if auth else [])


async def test_a_password_is_used_on_this_machine_without_encryption(sink: Served) -> None:
    async with sink(auth=True) as server:
        await mail(server, login=LOGIN).send("ann@example.com", "Hello", "text\n")

    assert len(server.letters) == 1


async def test_a_password_never_leaves_this_machine_in_the_clear(sink: Served) -> None:
    async with sink(auth=True) as server:
        remote_server = SmtpServer.of(f"smtp://{LOGIN}mail.example.com")._replace(port=server.port)
        assert remote_server.needs_start_tls
        # The same server, at an address that does not count as this machine.
        refusing = SmtpMail(remote_server._replace(host="127.0.0.2"), OF, timeout_s=5)
        listening = await asyncio.get_running_loop().create_server(
            lambda: TcpRelay(server.port), "127.0.0.2", server.port
        )
        async with listening:
            with pytest.raises(Unavailable, match="STARTTLS"):
                await refusing.send("ann@example.com", "Hello", "text\n")

    assert server.users == []
    assert server.letters == []


@pytest.mark.parametrize(("tls", "scheme"), [("starttls", "smtp"), ("implicit", "smtps")])
async def test_an_untrusted_certificate_is_refused(sink: Served, tls: str, scheme: str) -> None:
    async with sink(tls) as server:
        with pytest.raises(Unavailable, match="certificate"):
            await mail(server, scheme).send("ann@example.com", "Hello", "text\n")

    assert server.letters == []


async def test_a_wrong_password_is_reported_without_showing_it(sink: Served) -> None:
    async with sink(auth=True) as server:
        with pytest.raises(Unavailable, match="user name and password") as refusal:
            await mail(server, login="somebody:hunter2hunter2@").send("ann@example.com", "Hello", "text\n")

    assert "hunter2" not in str(refusal.value)
    assert server.letters == []


@pytest.mark.parametrize(
    ("recipient", "message", "reason"),
    [
        ("550 5.1.1 <ann@example.com> unknown", "250 OK", "recipient"),
        ("", "554 5.7.1 spam from ann@example.com", "refuses the message"),
    ],
)
async def test_a_refusal_is_reported_without_the_address(
    sink: Served, recipient: str, message: str, reason: str
) -> None:
    async with sink() as server:
        server.recipient_answer, server.message_answer = recipient, message
        with pytest.raises(Unavailable, match=reason) as refusal:
            await mail(server).send("ann@example.com", "Hello", "text\n")

    assert "ann@" not in str(refusal.value) + refusal.value.remedy


async def test_a_server_that_is_away_or_silent_is_reported(sink: Served) -> None:
    async with sink() as server:
        gone_mail = mail(server)
    with pytest.raises(Unavailable, match="cannot be reached"):
        await gone_mail.send("ann@example.com", "Hello", "text\n")

    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="does not answer in time"):
            await mail(MailSink(port=port), timeout_s=0.2).send("ann@example.com", "Hello", "text\n")


async def test_an_address_that_contains_two_addresses_is_never_sent_to_the_server(sink: Served) -> None:
    async with sink() as server:
        with pytest.raises(BadAddress):
            await mail(server).send("ann@example.com, eve@example.com", "Hello", "text\n")

    assert server.letters == []


async def test_the_check_signs_in_and_sends_nothing(sink: Served) -> None:
    async with sink(auth=True) as server:
        await mail(server, login=LOGIN).check()
        with pytest.raises(Unavailable):
            await mail(server, login="somebody:else@").check()

    assert server.letters == []


@pytest.mark.parametrize(
    ("url", "host", "port", "user", "is_encrypted"),
    [
        ("smtp://mail.example.com", "mail.example.com", 587, None, False),
        ("smtps://mail.example.com", "mail.example.com", 465, None, True),
        ("smtp://a%40b:c%2Fd@mail.example.com:25", "mail.example.com", 25, "a@b", False),
        ("smtp://[::1]:2525/", "::1", 2525, None, False),
    ],
)
def test_an_address_of_a_server_is_read(url: str, host: str, port: int, user: str | None, is_encrypted: bool) -> None:
    server = SmtpServer.of(url)

    assert (server.host, server.port, server.user, server.is_encrypted) == (host, port, user, is_encrypted)


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://a@b",
        "smtp://a:99999",
        "smtp://a/b",
        "smtp://[",
    ],
)
def test_an_address_in_another_form_is_refused_without_showing_the_address(url: str) -> None:
    with pytest.raises(BadSetting, match="COUNTERSIGN_SMTP_URL"):
        SmtpServer.of(url)


class TcpRelay(asyncio.Protocol):
    """Forwards bytes to a port of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._early = b""
        self._onwards: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        client_transport = transport

        class ReverseRelay(asyncio.Protocol):
            """Forward bytes in the other direction."""

            def data_received(self, data: bytes) -> None:
                client_transport.write(data)

            def connection_lost(self, exc: Exception | None) -> None:
                client_transport.close()

        async def connect() -> None:
            loop = asyncio.get_running_loop()
            self._onwards, _ = await loop.create_connection(ReverseRelay, "127.0.0.1", self._port)
            self._onwards.write(self._early)

        self._task = asyncio.create_task(connect())

    def data_received(self, data: bytes) -> None:
        if self._onwards is None:
            self._early += data
        else:
            self._onwards.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._onwards is not None:
            self._onwards.close()
