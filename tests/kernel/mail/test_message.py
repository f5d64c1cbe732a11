"""The headers of a message contain only their intended values, for any input."""

from email.headerregistry import Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.mail.message import BadAddress, compose, is_address, sender
from countersign.settings import BadSetting

OF = Address("Countersign", addr_spec="no-reply@store.example")
EXPECTED = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"]


@pytest.mark.parametrize("address", ["ann@example.com", "a.b+c@sub.example.com", "o'neil@localhost", "a@x-y.z"])
def test_a_valid_address_is_accepted(address: str) -> None:
    assert is_address(address)
    assert compose(OF, address, "Hello", "text")["To"] == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@example.com\r\nBcc: eve@example.com",
        "ann@example.com\n",
        "ann@example.com, eve@example.com",
        "ann@example.com;eve@example.com",
        "Ann <ann@example.com>",
        "ann@exa mple.com",
        "ann@-example.com",
        "ann@example..com",
        "ann@stra\u00dfe.de",
        "\u00e4nn@example.com",
        '"ann eve"@example.com',
        "a" * 250 + "@example.com",
    ],
)
def test_a_text_other_than_one_address_is_refused(address: str) -> None:
    assert not is_address(address)
    with pytest.raises(BadAddress):
        compose(OF, address, "Hello", "text")


def test_an_email_has_a_sender_a_date_an_id_and_is_marked_as_automatic() -> None:
    letter, other_letter = (
        compose(OF, "ann@example.com", "Hello", "text"),
        compose(OF, "ann@example.com", "Hello", "text"),
    )

    assert letter["From"] == "Countersign <no-reply@store.example>"
    assert letter["Message-ID"].endswith("@store.example>")
    assert letter["Message-ID"] != other_letter["Message-ID"]
    assert letter["Date"].datetime is not None
    assert letter["Auto-Submitted"] == "auto-generated"


def test_text_in_other_scripts_arrives_unchanged() -> None:
    letter = compose(OF, "ann@example.com", "Grüße 你好", "Zwölf Boxkämpfer 你好\n")

    assert letter["Subject"] == "Grüße 你好"
    assert letter.get_content() == "Zwölf Boxkämpfer 你好\n"
    assert letter.as_bytes().isascii()


def test_a_link_is_not_wrapped() -> None:
    link = "http://127.0.0.1:8480/auth/prove?token=cep_" + "a" * 200

    assert link.encode() in compose(OF, "ann@example.com", "Hello", f"Open:\n{link}\n").as_bytes()


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_subject_and_no_text_adds_a_header(subject: str, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    letter = compose(OF, "ann@example.com", f"Hello {subject}\r\nBcc: eve@example.com", f"{text}\r\nBcc: x")

    head = letter.as_bytes().split(b"\r\n\r\n")[0].decode()
    names = [line.partition(":")[0] for line in head.split("\r\n") if not line.startswith((" ", "\t"))]
    assert names[: len(EXPECTED)] == EXPECTED
    assert set(names[len(EXPECTED) :]) == {"Content-Type", "Content-Transfer-Encoding", "MIME-Version"}
    assert "\r" not in head.replace("\r\n", "")
    assert "\n" not in head.replace("\r\n", "")


@pytest.mark.parametrize("text", ["", "nobody", "Countersign <no-reply>", "A <a@b.c>\nBcc: x@y.z"])
def test_a_sender_that_is_invalid_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(BadSetting, match="COUNTERSIGN_MAIL_FROM"):
        sender(text)
