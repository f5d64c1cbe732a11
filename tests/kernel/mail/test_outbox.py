"""The outbox folder stores e-mails completely, privately, and for a limited time."""

import stat
from email.headerregistry import Address
from pathlib import Path

import pytest

from countersign.kernel.errors import Unavailable
from countersign.kernel.mail import transports
from countersign.kernel.mail.message import BadAddress
from countersign.kernel.mail.transports import FileOutbox

OF = Address("Countersign", addr_spec="no-reply@store.example")


@pytest.fixture
def box(tmp_path: Path) -> FileOutbox:
    return FileOutbox(tmp_path / "data" / "mail", OF)


async def test_an_email_is_a_file_that_only_its_owner_may_read(box: FileOutbox, tmp_path: Path) -> None:
    await box.send("ann@example.com", "Hello", "Open http://127.0.0.1/x\n")

    (file,) = (tmp_path / "data" / "mail").iterdir()
    assert file.suffix == ".eml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert b"To: ann@example.com\r\n" in file.read_bytes()


async def test_emails_are_listed_newest_first_and_the_oldest_are_deleted(
    box: FileOutbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MAX_FILES", 3)
    folder = tmp_path / "data" / "mail"
    folder.mkdir(parents=True)
    (folder / "00000000-0000-7000-8000-000000000000.part").write_bytes(b"left over by a stop")

    for number in range(5):
        await box.send("ann@example.com", f"Letter {number}", "text")

    subjects = [file.read_bytes().partition(b"Subject: ")[2][:8].decode() for file in transports.messages(folder)]
    assert sorted(subjects) == ["Letter 2", "Letter 3", "Letter 4"]
    assert [file.name for file in transports.messages(folder)] == sorted(
        (f.name for f in folder.iterdir()), reverse=True
    )


async def test_an_email_without_a_recipient_leaves_no_file(box: FileOutbox, tmp_path: Path) -> None:
    with pytest.raises(BadAddress):
        await box.send("ann@example.com\r\nBcc: eve@example.com", "Hello", "text")

    assert not (tmp_path / "data").exists()


async def test_a_folder_that_cannot_be_used_is_reported(box: FileOutbox, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    with pytest.raises(Unavailable, match="outbox folder"):
        await box.send("ann@example.com", "Hello", "text")
    assert transports.messages(tmp_path / "data" / "mail") == []


async def test_a_folder_that_does_not_exist_yet_passes_the_check(box: FileOutbox, tmp_path: Path) -> None:
    await box.check()

    assert not (tmp_path / "data").exists()
