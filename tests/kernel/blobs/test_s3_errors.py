"""Each reason why a bucket cannot be used has its own text and remedy, without a secret."""

import asyncio
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from countersign.kernel.blobs import s3_client
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.errors import Refused, Unavailable
from tests.servers.process import answers, free_port, run_until_ready

POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}'


class GuardedS3(NamedTuple):
    """An S3 service that checks keys, with a bucket `there` and a user who may only read."""

    endpoint: str
    key: str
    secret: str


@pytest.fixture(scope="module")
def guarded_service() -> Iterator[GuardedS3]:
    """A service for this module."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-s3-"))
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    try:
        with run_until_ready(command, is_ready=lambda: answers(port), log=folder / "log"):
            endpoint = f"http://127.0.0.1:{port}"
            scope = "Credential=any/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=any"
            headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}"}
            with httpx.Client(base_url=endpoint, headers=headers, trust_env=False) as client:
                user_request = {"Version": "2010-05-08", "UserName": "reader"}
                for user_action in (
                    {"Action": "CreateUser"},
                    {"Action": "PutUserPolicy", "PolicyName": "read", "PolicyDocument": POLICY},
                ):
                    client.post("/", data={**user_request, **user_action}).raise_for_status()
                created_key = client.post("/", data={**user_request, "Action": "CreateAccessKey"}).raise_for_status()
                httpx.put(f"{endpoint}/there", trust_env=False).raise_for_status()
                client.post("/moto-api/reset-auth", content="0").raise_for_status()
            yield GuardedS3(
                endpoint, _member(created_key.text, "AccessKeyId"), _member(created_key.text, "SecretAccessKey")
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _member(document: str, name: str) -> str:
    match = re.search(f"<{name}>([^<]+)<", document)
    assert match
    return match[1]


@pytest.fixture
def refusing_service() -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """A service that refuses everything with the status and the code in the list."""
    refusal: list[tuple[int, str]] = []

    class Handler(BaseHTTPRequestHandler):
        """Refuses requests like S3 does."""

        def do_PUT(self) -> None:
            """Refuse the request of a check."""
            self.rfile.read(int(self.headers["Content-Length"]))
            status, code = refusal[0]
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>No.</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", refusal
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDNOBODY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")


async def operator_note(endpoint: str, name: str = "there") -> str:
    """Check the bucket, and return the note for the operator. The caller must not see it."""
    store = open_blobs(f"s3://{name}?endpoint={endpoint}&region=us-east-1&allow_http=true", Path())
    with pytest.raises(Unavailable) as refusal:
        await store.check()
    return note_of(refusal.value)


def note_of(refusal: Refused) -> str:
    """Return the note of a refusal. The text for callers must only say that they may try again."""
    assert (refusal.detail, refusal.remedy) == ("The bucket of the blobs cannot be used now.", Unavailable.resolution)
    (note,) = refusal.__notes__
    assert "wr0ng" not in note
    return note


async def test_an_unknown_key_a_wrong_secret_and_a_missing_right_are_distinguished(
    guarded_service: GuardedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    anonymous_note = await operator_note(guarded_service.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", guarded_service.key)
    somebody = await operator_note(guarded_service.endpoint)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", guarded_service.secret)
    reader = await operator_note(guarded_service.endpoint)

    assert "access key that its server does not know" in anonymous_note
    assert "AWS_ACCESS_KEY_ID" in anonymous_note
    assert "secret that does not match the access key" in somebody
    assert "AWS_SECRET_ACCESS_KEY" in somebody
    assert "does not permit" in reader
    assert "s3:PutObject" in reader


async def test_a_missing_bucket_is_reported_and_not_treated_as_a_missing_blob(s3_endpoint: str) -> None:
    missing = await operator_note(s3_endpoint, "nowhere")
    address = f"s3://nowhere?endpoint={s3_endpoint}&region=us-east-1&allow_http=true"

    with pytest.raises(Unavailable) as sealing_error:
        await open_blobs(address, Path()).seal("up", [], 0, None)

    assert missing == note_of(sealing_error.value)
    assert missing.startswith("It does not exist.")
    assert "COUNTERSIGN_BLOBS_URL" in missing


@pytest.mark.parametrize(
    ("status", "code", "why", "remedy"),
    [
        (403, "RequestTimeTooSkewed", "clock", "NTP"),
        (400, "ExpiredToken", "expired", "AWS_SESSION_TOKEN"),
        (400, "AuthorizationHeaderMalformed", "another region", "region"),
        (301, "PermanentRedirect", "another region", "region"),
        (403, "SomethingOfItsOwn", "does not permit", "s3:PutObject"),
        (400, "SomethingOfItsOwn", "does not answer like S3", "endpoint"),
    ],
)
async def test_a_service_that_refuses_is_reported_with_its_reason(
    refusing_service: tuple[str, list[tuple[int, str]]], status: int, code: str, why: str, remedy: str
) -> None:
    endpoint, refusal = refusing_service
    refusal.append((status, code))

    note = await operator_note(endpoint)

    assert why in note
    assert remedy in note


async def test_an_endpoint_that_cannot_be_reached_is_reported_with_its_reason(
    refusing_service: tuple[str, list[tuple[int, str]]],
) -> None:
    silent = await operator_note(f"http://127.0.0.1:{free_port()}")
    unknown = note_of(s3_client.refusal(Exception('error sending request: ConnectError("dns error")')))
    tls_note = await operator_note(refusing_service[0].replace("http:", "https:"))

    assert "refuses connections" in silent
    assert "does not resolve" in unknown
    assert "does not speak TLS" in tls_note


async def test_an_interrupted_answer_is_not_reported_as_another_kind_of_endpoint() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 9000\r\nContent-Range: bytes 0-8999/9000\r\n")
        writer.write(b'Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nETag: "a"\r\n\r\nthe first')
        await writer.drain()
        writer.transport.abort()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        blobs = open_blobs(f"s3://there?endpoint={endpoint}&region=us-east-1&allow_http=true", Path())
        with pytest.raises(Unavailable) as refusal:
            async for _ in blobs.read("0" * 64, 0, 9000):
                pass

    assert "aborted its response" in note_of(refusal.value)
    assert "COUNTERSIGN_BLOBS_URL" not in note_of(refusal.value)
