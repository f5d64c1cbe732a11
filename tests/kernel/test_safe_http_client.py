"""Outgoing requests: they return documents from other servers, and cannot reach internal addresses. Attacks have their
number in the list."""

import asyncio
import datetime
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.kernel import safe_http_client
from countersign.kernel.safe_http_client import Unreachable

OK = b"HTTP/1.1 200 OK\r\n"


class FixedServer:
    """A server that responds to every request with the same bytes and then closes the connection. `heads` contains the
    requests."""

    def __init__(self, answer: bytes, pause_s: float = 0) -> None:
        self.answer = answer
        self.pause_s = pause_s
        self.heads: list[bytes] = []
        self.port = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection, with a pause before every byte if the test sets one."""
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            if not self.pause_s:
                writer.write(self.answer)
                await writer.drain()
            for byte in self.answer if self.pause_s else b"":
                writer.write(bytes([byte]))
                await asyncio.sleep(self.pause_s)
        except (OSError, asyncio.IncompleteReadError):
            self.heads.append(b"(gone)")
        finally:
            writer.close()

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Return the address of the server."""
        return f"{scheme}://{host}:{self.port}/keys?a=b"


@asynccontextmanager
async def serve_response(
    answer: bytes, pause_s: float = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FixedServer]:
    """Run such a server on a free port."""
    fixed_server = FixedServer(answer, pause_s)
    server = await asyncio.start_server(fixed_server.take, "127.0.0.1", 0, ssl=tls)
    fixed_server.port = server.sockets[0].getsockname()[1]
    async with server:
        yield fixed_server


async def fetch_response(answer: bytes, pause_s: float = 0) -> safe_http_client.Document:
    """Return the result of fetching this response."""
    async with serve_response(answer, pause_s) as server:
        return await safe_http_client.get_json(server.url(), allows_private=True)


async def unreachable(url: str, *, private: bool = False) -> str:
    """Return the reason why the URL cannot be fetched."""
    with pytest.raises(Unreachable) as refusal:
        await safe_http_client.get_json(url, allows_private=private)
    return str(refusal.value)


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let every name resolve to the given addresses, with the next list at each lookup. Return the names that were
    looked up."""

    def set_to(*answers: list[str]) -> list[str]:
        looked_up: list[str] = []

        def look_up(host: str, port: int, *lookup_arguments: object, **options: object) -> list[object]:
            ips = answers[min(len(looked_up), len(answers) - 1)]
            looked_up.append(host)
            families = {True: socket.AF_INET6, False: socket.AF_INET}
            return [(families[":" in ip], socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        return looked_up

    return set_to


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Record the addresses to which connections are started, without connecting."""
    connections_begun: list[tuple[object, ...]] = []

    async def begin(host: str, port: int, *, ssl: object, server_hostname: str | None) -> None:
        connections_begun.append((host, port, ssl is not None, server_hostname))
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio, "open_connection", begin)
    return connections_begun


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"\r\n{}",
     b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"],
    ids=["length", "chunked", "closed", "more-than-announced"],
)  # fmt: skip
async def test_a_document_is_read_with_every_kind_of_end_marker(head: bytes) -> None:
    assert await fetch_response(OK + head) == (b"{}", None)


@pytest.mark.parametrize(
    ("directive", "kept_s"),
    [("max-age=900", 900), ("public, MAX-AGE=60, must-revalidate", 60), ('max-age="7"', 7), ("no-store", 0),
     ("no-cache, max-age=9", 0), ("s-maxage=5", None), ("max-age=-1", None), ("max-age=" + "9" * 50, 999_999_999)],
)  # fmt: skip
async def test_the_max_age_of_a_document_is_returned(directive: str, kept_s: int | None) -> None:
    answer = await fetch_response(OK + f"Content-Length: 2\r\nCache-Control: {directive}\r\n\r\n{{}}".encode())

    assert answer.max_age_s == kept_s


async def test_the_request_names_its_host_and_has_no_other_information_about_us(
    resolve: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(["127.0.0.1"])
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serve_response(OK + b"Content-Length: 2\r\nSet-Cookie: a=b\r\n\r\n{}") as server:
        for _ in range(2):
            await safe_http_client.get_json(server.url("keys.example"), allows_private=True)

    lines = server.heads[1].decode().split("\r\n")
    assert lines[0] == "GET /keys?a=b HTTP/1.1"
    assert f"Host: keys.example:{server.port}" in lines
    assert {line.partition(":")[0] for line in lines[1:] if line} == {
        *("Host", "Accept", "Accept-Encoding", "User-Agent", "Connection"),
    }


@pytest.mark.parametrize(
    "ip",
    ["127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0." + "0",
     "0.1.2.3", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "203.0.113.9",
     "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1",
     "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
     "2002:7f00:1::1", "2001:0:7f00:1::1", "::127.0.0.1", "fec0::1"],
)  # fmt: skip
async def test_t9_an_address_that_is_not_public_is_never_connected_to(
    ip: str, resolve: Callable[..., list[str]], connections: list[tuple[object, ...]]
) -> None:
    resolve([ip])

    assert "not public" in await unreachable("https://keys.example/jwks.json")
    assert not safe_http_client.is_public(ip_address(ip))
    assert connections == []


@pytest.mark.parametrize("ip", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])
async def test_t9_a_public_address_is_connected_to_by_the_number_that_was_checked(
    ip: str, resolve: Callable[..., list[str]], connections: list[tuple[object, ...]]
) -> None:
    looked_up = resolve([ip], ["127.0.0.1"])

    await unreachable("https://keys.example/jwks.json")

    assert looked_up == ["keys.example"]
    assert connections == [(ip, 443, True, "keys.example")]


async def test_t9_one_private_address_among_public_addresses_is_refused(
    resolve: Callable[..., list[str]], connections: list[tuple[object, ...]]
) -> None:
    resolve(["1.1.1.1", "10.0.0.1"])

    assert "10.0.0.1" in await unreachable("https://keys.example/")
    assert connections == []


@pytest.mark.parametrize("ips", [["10.0.0.1"], ["1.1.1.1", "169.254.169.254"], ["::ffff:127.0.0.1"], ["fd00::1"]])
async def test_t9_nothing_is_left_at_a_private_address(
    resolve: Callable[..., list[str]], connections: list[tuple[object, ...]], ips: list[str]
) -> None:
    resolve(ips)

    with pytest.raises(Unreachable, match="not public"):
        await safe_http_client.post("https://hooks.example/", b"{}", {}, allows_private=False)
    assert connections == []


async def test_t9_the_request_goes_to_the_checked_address(
    resolve: Callable[..., list[str]], connections: list[tuple[object, ...]]
) -> None:
    looked_up = resolve(["1.1.1.1"], ["127.0.0.1"])

    with pytest.raises(Unreachable):
        await safe_http_client.post("https://hooks.example/", b"{}", {}, allows_private=False)

    assert looked_up == ["hooks.example"]
    assert connections == [("1.1.1.1", 443, True, "hooks.example")]


async def test_t9_a_name_whose_address_changes_is_resolved_once(resolve: Callable[..., list[str]]) -> None:
    looked_up = resolve(["127.0.0.1"], ["127.0.0.2"])
    async with serve_response(OK + b"Content-Length: 2\r\n\r\n{}") as server:
        await safe_http_client.get_json(server.url("keys.example"), allows_private=True)

    assert looked_up == ["keys.example"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "017700000001", "127.1", "[::ffff:127.0.0.1]"]
)
async def test_t9_our_own_machine_is_not_reached_by_any_spelling(host: str) -> None:
    async with serve_response(OK + b"Content-Length: 2\r\n\r\n{}") as server:
        await unreachable(server.url(host, "https"))
        await unreachable(server.url(host))

    assert server.heads == []


@pytest.mark.parametrize(
    "url",
    ["http://keys.example/", "ftp://keys.example/", "file:///etc/passwd", "//keys.example", "keys.example", "",
     "https://", "https:///path", "https://user@keys.example/", "https://user:word@keys.example/",
     "https://keys.example/#part", "https://keys.example/ x", "https://keys.example/\r\nX: y", "https://ke ys.example/",
     "https://kéys.example/", "https://keys.example:0x50/", "https://keys.example:99999/", "https://[::1/",
     "https://keys.example/" + "a" * 2_048, "https://keys_example/", "https://-keys.example/", " https://keys.example/",
     "https://keys.example/\x7f", "https://keys.example\t/"],
)  # fmt: skip
def test_t9_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        safe_http_client.address(url, allows_private=False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304, 204, 206, 404, 500, 103])
async def test_t9_redirects_and_other_statuses_are_not_followed(status: int) -> None:
    async with serve_response(OK + b"Content-Length: 2\r\n\r\n{}") as other_server:
        ending = "" if status in (103, 204, 304) else "Content-Length: 2\r\n\r\n{}"
        answer = f"HTTP/1.1 {status} X\r\nLocation: {other_server.url()}\r\n{ending or chr(13) + chr(10)}".encode()
        async with serve_response(answer) as server:
            assert str(status) in await unreachable(server.url(), private=True)

    assert other_server.heads == []


@pytest.mark.parametrize(
    "answer",
    [OK + b"Content-Length: 65537\r\n\r\n" + b" " * 65_537,
     OK + b"Content-Length: 9999999999\r\n\r\n" + b" " * 200_000,
     OK + b"\r\n" + b" " * 200_000,
     OK + b"Transfer-Encoding: chunked\r\n\r\n" + (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 9,
     OK + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 90) for n in range(2_000)) + b"\r\n{}"],
    ids=["announced", "never-ending", "until-closed", "chunked", "headers"],
)  # fmt: skip
async def test_t9_an_answer_over_64_kib_is_refused(answer: bytes) -> None:
    async with serve_response(answer) as server:
        assert "more than 65536 bytes" in await unreachable(server.url(), private=True)


@pytest.mark.parametrize(
    "answer",
    [b"", b"\r\n", b"{}", b"HTTP/1.1", b"HTTP/9.9 200 OK\r\n\r\n{}", b"HTTP/1.1 abc OK\r\n\r\n", OK,
     OK + b"Content-Length: 10\r\n\r\n{}", OK + b"Content-Length: -1\r\n\r\n{}", OK + b"no colon\r\n\r\n{}",
     OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
     OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"\x16\x03\x01\x02\0"],
    ids=range(14),
)  # fmt: skip
async def test_an_invalid_or_interrupted_http_answer_counts_as_unreachable(answer: bytes) -> None:
    async with serve_response(answer) as server:
        assert await unreachable(server.url(), private=True)


@pytest.mark.parametrize("answer", [OK + b"Content-Length: 900\r\n\r\n" + b" " * 900, b"HTTP/1.1 200 " + b"O" * 900])
async def test_t9_an_answer_that_trickles_ends_with_the_whole_time(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_http_client, "TOTAL_S", 0.3)
    # The whole answer takes at least 45 seconds.
    async with serve_response(answer, pause_s=0.05) as server:
        began_s = time.monotonic()

        assert "within 0.3 s" in await unreachable(server.url(), private=True)

    assert time.monotonic() - began_s < 20


async def test_t9_the_deadline_also_ends_waits_for_a_silent_server_or_name_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(safe_http_client, "TOTAL_S", 0.2)
    silent = socket.create_server(("127.0.0.1", 0))
    with silent:
        assert "within" in await unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}/", private=True)

    # Use a new name, because the next lookup of a name waits for the running one.
    def sleep(*_: object, **__: object) -> None:
        time.sleep(5)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", sleep)
    began_s = time.monotonic()
    assert "within" in await unreachable("https://asleep.example/")
    assert time.monotonic() - began_s < 4


def test_the_whole_time_is_3_seconds() -> None:
    assert safe_http_client.TOTAL_S == 3


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """Return the server side of TLS with a new certificate for the name, and that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signed_certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "cert.pem", folder / "key.pem"
    file.write_bytes(signed_certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    return context, file


async def test_with_https_the_server_must_prove_the_name_and_not_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolve: Callable[..., list[str]]
) -> None:
    tls, trusted = certificate(tmp_path, "keys.example")
    resolve(["127.0.0.1"])
    async with serve_response(OK + b"Content-Length: 2\r\n\r\n{}", tls=tls) as server:
        stranger = await unreachable(server.url("keys.example", "https"), private=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        proven = await safe_http_client.get_json(server.url("keys.example", "https"), allows_private=True)
        other_message = await unreachable(server.url("other.example", "https"), private=True)

    assert "CERTIFICATE_VERIFY_FAILED" in stranger
    assert proven.body == b"{}"
    assert "Hostname mismatch" in other_message


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300), st.booleans())
def test_any_response_is_read_as_a_document_or_as_unreachable(answer: bytes, has_head: bool) -> None:
    async def ask() -> None:
        with suppress(Unreachable):
            assert (await fetch_response((OK + b"\r\n" if has_head else b"HTTP/1.1 ") + answer)).body in answer

    asyncio.run(ask())
