"""Administrators get one e-mail about models that are hidden because their tables changed."""

from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path

import pytest

from countersign.declare import ADMINISTRATOR
from countersign.kernel import clock
from countersign.kernel.mail import transports
from countersign.kernel.webhooks import outbox
from countersign.records import suspension_emails, user_creation
from countersign.records.access import grants
from countersign.records.suspension_emails import SuspensionEmails
from tests.adopted.shop import MARK, ROOT_URL, Shop

SOON_S = suspension_emails.DELAY_S + 1


async def add_people(shop: Shop) -> None:
    """Create administrators, one of whom wants no letters and one of whom reads German, and a person without a role."""
    records, inside = shop.inside.service.records, shop.inside
    async with records.database.transaction() as transaction:
        await grants.seed_roles(transaction, records.registry)
        run = inside.run(inside.administrator()).within(transaction)
        for name in ("ada", "uwe", "quiet", "bob"):
            roles = [] if name == "bob" else [ADMINISTRATOR]
            await user_creation.add_user(run, name, name.title(), f"{name}@example.com", roles, None)
        await transaction.run("UPDATE \"user\" SET letters = 'none' WHERE username = 'quiet'")
        await transaction.run("UPDATE \"user\" SET language = 'de' WHERE username = 'uwe'")


def letters(shop: Shop) -> SuspensionEmails:
    """Return the letters of a process that has just started."""
    records = shop.inside.service.records
    return SuspensionEmails(records.database, records.mail, ROOT_URL, shop.suspensions)


async def deliver(process: SuspensionEmails, later_s: float = 0) -> None:
    """Run one round of a process at this time in the future."""
    with clock.fixed(clock.later(clock.now(), seconds=later_s)):
        await process.send_due()


def sent(shop: Shop) -> list[tuple[str, str, str]]:
    """Return the e-mails in the outbox folder, by recipient: recipient, subject and text."""
    folder = Path(shop.inside.service.records.settings.data) / transports.OUTBOX_FOLDER
    messages = [message_from_bytes(path.read_bytes(), policy=SMTP) for path in transports.messages(folder)]
    texts = [str(each.get_content()).replace("\r\n", "\n") for each in messages]
    return sorted((str(each["To"]), str(each["Subject"]), text) for each, text in zip(messages, texts, strict=True))


@pytest.fixture
async def process(shop: Shop) -> SuspensionEmails:
    """The letters of a process of the shop, which has people and no suspended model."""
    await add_people(shop)
    suspension_letters = letters(shop)
    await deliver(suspension_letters)
    return suspension_letters


async def drift(shop: Shop, column: str, name: str) -> None:
    """Rename a column of customers, and look at the tables."""
    shop.change(f"ALTER TABLE customer RENAME COLUMN {column} TO {name}")
    await shop.suspensions.check()


async def test_each_administrator_gets_one_letter_that_names_the_model(shop: Shop, process: SuspensionEmails) -> None:
    await drift(shop, "note", f"{MARK}_note")
    other = letters(shop)

    for each in (process, other):
        await deliver(each)
    assert sent(shop) == []
    for later_s in (SOON_S, SOON_S + 3600):
        for each in (process, other, letters(shop)):
            await deliver(each, later_s)

    (ada, uwe) = sent(shop)
    assert (ada[0], ada[1]) == ("ada@example.com", "1 model is hidden, because its table changed")
    assert (uwe[0], uwe[1]) == (
        "uwe@example.com", "1 Modell ist ausgeblendet, weil sich seine Tabelle geändert hat"
    )  # fmt: skip
    for _, _, text in (ada, uwe):
        assert text.startswith("customer\n")
        assert ROOT_URL in text
        assert MARK not in text


async def test_a_table_that_is_soon_as_reviewed_again_causes_no_letter_and_a_later_change_does(
    shop: Shop, process: SuspensionEmails
) -> None:
    await drift(shop, "note", "remark")
    await deliver(process)
    await drift(shop, "remark", "note")
    await deliver(process, SOON_S)
    assert sent(shop) == []

    await drift(shop, "note", "remark")
    await deliver(process, SOON_S)
    await deliver(process, 3 * SOON_S)

    assert len(sent(shop)) == 2


async def test_a_second_model_causes_a_second_email_that_names_both_models(
    shop: Shop, process: SuspensionEmails
) -> None:
    await drift(shop, "note", "remark")
    await deliver(process)
    await deliver(process, SOON_S)
    shop.change("ALTER TABLE line RENAME COLUMN title TO heading")
    await shop.suspensions.check()

    await deliver(process, SOON_S)
    await deliver(process, 3 * SOON_S)

    assert [subject for to, subject, _ in sent(shop) if to == "ada@example.com"] == [
        "1 model is hidden, because its table changed", "2 models are hidden, because their tables changed"
    ]  # fmt: skip
    assert sent(shop)[1][2].startswith("customer, line\n")


async def test_a_paused_service_sends_the_letter_when_it_is_resumed(shop: Shop, process: SuspensionEmails) -> None:
    database = shop.inside.service.records.database
    async with database.transaction() as transaction:
        await outbox.pause(transaction)
    await drift(shop, "note", "remark")

    await deliver(process)
    await deliver(process, SOON_S)
    assert sent(shop) == []
    async with database.transaction() as transaction:
        await outbox.resume(transaction)
    await deliver(process, SOON_S)

    assert len(sent(shop)) == 2


async def test_a_change_while_the_service_was_stopped_causes_a_letter(shop: Shop, process: SuspensionEmails) -> None:
    await drift(shop, "note", "remark")
    await deliver(process)
    await deliver(process, SOON_S)
    # The table is as reviewed when the service starts again, and changes once more.
    await drift(shop, "remark", "note")
    restarted = letters(shop)
    await deliver(restarted)
    await drift(shop, "note", "remark")

    await deliver(restarted)
    await deliver(restarted, SOON_S)

    assert len(sent(shop)) == 4
