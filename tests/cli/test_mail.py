"""The mail outbox on the command line: newest first, with its links on lines of their own."""

import asyncio
import json
from email.headerregistry import Address
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from countersign.kernel.mail.transports import FileOutbox
from tests.cli.conftest import Run

LINK = "http://127.0.0.1:8480/auth/prove?token=cep_x"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three letters."""
    folder = tmp_path / "data"
    box = FileOutbox(folder / "mail", Address("Countersign", addr_spec="no-reply@localhost"))

    async def fill() -> None:
        for number, recipient in enumerate(("ann@example.com", "eve@example.com", "ann@example.com")):
            await box.send(recipient, f"Größe {number}", f"Öffne:\n{LINK}{number}\n\nBis dann\x1b[2J\n")
            await asyncio.sleep(0.002)  # File names sort by the millisecond.

    asyncio.run(fill())
    return folder


def test_emails_are_shown_newest_first_with_their_links(run: Run, data: Path) -> None:
    result = run("mail", "--data", data)

    lines = result.stdout.splitlines()
    assert result.returncode == Exit.OK
    assert [line for line in lines if line.startswith("http")] == [f"{LINK}{number}" for number in (2, 1, 0)]
    assert lines[0].endswith("Z  to ann@example.com")
    assert lines[1] == "Größe 2"


def test_the_last_email_is_shown_completely_and_cannot_move_the_cursor(run: Run, data: Path) -> None:
    result = run("mail", "--last", "--to", "Eve@example.com", "--data", data)

    assert f"{LINK}1\n\nBis dann" in result.stdout
    assert "ann@" not in result.stdout
    assert "\x1b" not in result.stdout


def test_the_json_of_an_email_has_its_links_and_its_text(run: Run, data: Path) -> None:
    letters = json.loads(run("mail", "--to", "ann@example.com", "--json", "--data", data).stdout)["letters"]

    assert [letter["links"] for letter in letters] == [[f"{LINK}2"], [f"{LINK}0"]]
    assert letters[0]["subject"] == "Größe 2"
    assert letters[0]["text"].startswith("Öffne:\n")
    assert letters[0].keys() == {"date", "to", "subject", "links", "text"}


def test_an_empty_outbox_is_reported(run: Run, tmp_path: Path) -> None:
    everything_result = run("mail", "--json", "--data", tmp_path / "none")
    last_result = run("mail", "--last", "--data", tmp_path / "none")

    assert (everything_result.returncode, json.loads(everything_result.stdout)) == (Exit.OK, {"letters": []})
    assert last_result.returncode == Exit.NOT_FOUND
    assert not (tmp_path / "none").exists()


def test_a_file_that_is_not_an_email_is_named(run: Run, data: Path) -> None:
    (data / "mail" / "zzz.eml").write_bytes(b"no letter")

    result = run("mail", "--data", data)

    assert result.returncode == Exit.FAILED
    assert "zzz.eml" in result.stderr


def test_doctor_names_a_mail_server_that_is_away_without_its_password(run: Run, tmp_path: Path) -> None:
    unreachable_url = "smtp://somebody:hunter2hunter2@127.0.0.1:9"

    result = run(
        "doctor", "records", "--records-port", "0", "--data", tmp_path / "none", COUNTERSIGN_SMTP_URL=unreachable_url
    )

    assert result.returncode == Exit.FAILED
    assert "fail  mail                   the mail server 127.0.0.1:9 cannot be reached" in result.stdout
    assert "hunter2" not in result.stdout + result.stderr


def test_doctor_names_an_address_that_is_invalid(run: Run, tmp_path: Path) -> None:
    result = run(
        "doctor", "records", "--records-port", "0", "--data", tmp_path / "none", COUNTERSIGN_SMTP_URL="mail.example.com"
    )

    assert result.returncode == Exit.FAILED
    assert "fail  mail                   COUNTERSIGN_SMTP_URL must be like" in result.stdout
