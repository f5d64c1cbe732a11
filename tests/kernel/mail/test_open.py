"""The address determines the mail transport."""

from pathlib import Path

import pytest

from countersign.kernel.mail.message import BadAddress
from countersign.kernel.mail.transports import open_mail


async def test_discarded_mail_is_not_sent(tmp_path: Path) -> None:
    mail = open_mail("discard:", "Store <no-reply@store.example>", tmp_path)

    await mail.check()
    await mail.send("somebody@example.com", "subject", "text")

    assert list(tmp_path.iterdir()) == []


async def test_a_bad_recipient_is_refused_although_mail_is_discarded(tmp_path: Path) -> None:
    mail = open_mail("discard:", "Store <no-reply@store.example>", tmp_path)

    with pytest.raises(BadAddress):
        await mail.send("a@example.com, b@example.com", "subject", "text")
