"""Each log line is one complete JSON object. It never contains a secret from any part of the logged data."""

import io
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from countersign.kernel import telemetry
from countersign.kernel.security import secrets

PREFIXES = ("csk_agent", "csk_community", "css", "ccs", "cup", "cls", "clm", "cat")
MARKER = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=16, max_size=40)
SECRET_NAMES = (
    *("password", "client_secret", "Authorization", "authorization_header", "Cookie", "set_cookie", "access_token"),
    *("refresh_token", "assertion", "api_key", "apikey", "master_key", "code", "new_password", "token_hash"),
    *("X-API-Key", "apiKey", "key", "private_key", "privateKey", "signing_key", "clientSecret", "Set-Cookie"),
)
WORDS = st.text(max_size=30)


@pytest.fixture(autouse=True)
def usual_level() -> Iterator[None]:
    """Restore the log level that the other tests of this process expect."""
    yield
    telemetry.configure()


def jwt(marker: str) -> str:
    """Return a text with the format of a signed token, with the marker as its signature."""
    head = urlsafe_b64encode(b'{"alg":"ES256","typ":"at+jwt"}').decode().rstrip("=")
    body = urlsafe_b64encode(b'{"sub":"somebody"}').decode().rstrip("=")
    return f"{head}.{body}.{marker}"


@st.composite
def secret_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Generate a credential as part of a text, and the part of it that must not be logged."""
    marker = draw(MARKER)
    opaque = secrets.new_secret(draw(st.sampled_from(PREFIXES)))
    pair = b64encode(f"client:{marker}".encode()).decode()
    return draw(
        st.sampled_from(
            [
                (opaque, opaque[-40:]),
                (jwt(marker), marker),
                (f"Bearer {marker}", marker),
                (f"bearer  {marker}", marker),
                (f"Basic {pair}", pair),
                (f"postgresql://countersign:{marker}@db.example/store", marker),
                (f"redis://:{marker}@cache.example/0", marker),
                (f"-----BEGIN EC PRIVATE KEY-----\n{marker}\n-----END EC PRIVATE KEY-----", marker),
                (f"-----BEGIN PRIVATE KEY-----\n{marker}", marker),
            ]
        )
    )


@contextmanager
def capture_log() -> Iterator[io.StringIO]:
    """Return what the block logs."""
    log_text = io.StringIO()
    with redirect_stderr(log_text):
        telemetry.configure("debug")
        yield log_text


def wrap(text: str, shape: int) -> Any:
    """Return the text inside a nested structure."""
    shapes: list[Any] = [
        text,
        [text],
        {"a": {"b": [text]}},
        (1, text),
        {text: 1},
        text.encode(),
        {text},
        ValueError(text),
    ]
    return shapes[shape]


@given(secret_texts(), WORDS, WORDS, st.integers(0, 7))
def test_a_credential_in_a_text_is_never_logged(
    secret: tuple[str, str], text_before: str, text_after: str, shape: int
) -> None:
    text, marker = secret
    assume(marker not in text_before + text_after)

    with capture_log() as log_text:
        log = telemetry.logger("test")
        log.info(f"{text_before} {text} {text_after}")
        log.warning("event", detail=wrap(f"{text_before} {text} {text_after}", shape))

    assert marker not in log_text.getvalue()
    assert len(log_text.getvalue().splitlines()) == 2


@given(st.sampled_from(PREFIXES), st.text("abcXYZ019_%="))
def test_a_credential_directly_after_a_word_is_never_logged(prefix: str, text_before: str) -> None:
    opaque = secrets.new_secret(prefix)

    with capture_log() as log_text:
        telemetry.logger("test").info(f"{text_before}{opaque} {text_before}{jwt(opaque)}")

    assert opaque[-40:] not in log_text.getvalue()


@given(secret_texts(), st.integers(0, 7))
def test_a_credential_in_an_exception_is_never_logged(secret: tuple[str, str], shape: int) -> None:
    text, marker = secret

    with capture_log() as log_text:
        try:
            raise LookupError(wrap(text, shape))
        except LookupError as error:
            telemetry.logger("test").error("failed", exc_info=error)

    assert marker not in log_text.getvalue()
    assert "LookupError" in json.loads(log_text.getvalue())["exception"]


@given(st.sampled_from(SECRET_NAMES), MARKER, st.integers(0, 7))
def test_no_value_with_the_name_of_a_secret_is_logged(name: str, marker: str, shape: int) -> None:
    with capture_log() as log_text:
        log = telemetry.logger("test")
        log.info("event", **{name: wrap(marker, shape)})
        log.info("event", request={"members": [{name: wrap(marker, shape)}]})

    assert marker not in log_text.getvalue()


@given(WORDS.filter(lambda text: "://" not in text and "_" not in text), st.integers(), st.booleans(), st.none())
def test_values_that_are_not_secret_are_logged_unchanged(text: str, number: int, flag: bool, none_value: None) -> None:
    members = {"text": text, "number": number, "flag": flag, "nothing": none_value}

    with capture_log() as log_text:
        telemetry.logger("test").info("event", **members)

    line = json.loads(log_text.getvalue())
    assert {name: line[name] for name in members} == members
    assert (line["event"], line["level"], line["part"]) == ("event", "info", "test")
    assert line["time"].endswith("Z")


def test_an_access_log_line_contains_the_route_template_and_not_the_address() -> None:
    with capture_log() as log_text:
        telemetry.access("PUT", "/artifacts/uploads/{token}", 201, 1.23456)

    line = json.loads(log_text.getvalue())
    assert (line["route"], line["status"], line["elapsed_ms"]) == ("/artifacts/uploads/{token}", 201, 1.235)


class LoggedRequest(NamedTuple):
    """A request as the log sees it."""

    request_id: str
    principal: str


@pytest.mark.parametrize("principal", ["person:1", ""])
def test_a_log_line_written_during_a_request_has_the_request_id(principal: str) -> None:
    reset_token = telemetry.REQUEST.set(LoggedRequest("00ff", principal))
    try:
        with capture_log() as log_text:
            telemetry.logger("test").warning("event")
    finally:
        telemetry.REQUEST.reset(reset_token)

    line = json.loads(log_text.getvalue())
    assert (line["request_id"], line.get("principal", "")) == ("00ff", principal)


def test_a_log_line_outside_of_requests_has_no_request_id() -> None:
    with capture_log() as log_text:
        telemetry.logger("test").warning("event")

    assert not {"request_id", "principal"} & json.loads(log_text.getvalue()).keys()


def test_events_below_the_log_level_are_not_written() -> None:
    log_text = io.StringIO()
    with redirect_stderr(log_text):
        telemetry.configure("warning")
        telemetry.logger("test").info("event")
        telemetry.logger("test").warning("event")

    assert len(log_text.getvalue().splitlines()) == 1


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="is none of debug, info, warning, error"):
        telemetry.configure("loud")


class FakeTerminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@given(secret_texts())
def test_a_line_on_a_terminal_is_for_a_person_and_has_no_secret(secret: tuple[str, str]) -> None:
    text, marker = secret
    terminal = FakeTerminal()

    with redirect_stderr(terminal):
        telemetry.configure()
        telemetry.logger("serve").info("ready", port=8480, detail=f"\x1b[2J {text}")

    assert terminal.getvalue()[8:].startswith(' info    serve: ready port=8480 detail="')
    assert marker not in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()
    assert len(terminal.getvalue().splitlines()) == 1
