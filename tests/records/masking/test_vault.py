"""The vault: one row for each distinct linked value, with a reference count. The last release deletes the row."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from countersign.kernel.database.port import Transaction
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from countersign.records.masking import vault as module
from countersign.records.masking.vault import NewAlias, PersonalValue, Vault
from tests.records.inside import InProcessService

HELD = "SELECT label, refs FROM pii_value ORDER BY label, refs"


async def vault_counts(book: InProcessService) -> list[tuple[str, int]]:
    """Return the labels and the reference counts in the vault."""
    return [(row[0], row[1]) for row in await book.rows(HELD)]


async def recount_references(book: InProcessService) -> dict[int, int]:
    """Count the fields and aliases that refer to each value id."""
    columns = [f"{name}__value" for name in ("email", "other_email", "phone", "postcode", "notes")]
    selects = [f'SELECT "{column}" AS id FROM contact WHERE "{column}" IS NOT NULL' for column in columns]
    selects.append("SELECT value_id FROM pii_alias")
    rows = await book.rows(f"SELECT id, count(*) FROM ({' UNION ALL '.join(selects)}) AS held GROUP BY id")
    return {row[0]: row[1] for row in rows}


async def test_each_distinct_linked_value_has_one_row_and_other_values_have_one_row_for_each_holder(
    book: InProcessService, root: Caller
) -> None:
    values = {"email": "ada@example.com", "other_email": "ada@example.com", "postcode": "1", "notes": "n"}
    for _ in range(2):
        await book.value(root, "contact", "create", **values)

    assert await vault_counts(book) == [("EMAIL", 4), ("NOTES", 1), ("NOTES", 1), ("POSTCODE", 1), ("POSTCODE", 1)]


async def test_equal_values_of_two_labels_are_two_values(book: InProcessService, root: Caller) -> None:
    await book.value(root, "contact", "create", email="12", phone="12")

    assert await vault_counts(book) == [("EMAIL", 1), ("PHONE", 1)]


async def test_no_value_is_in_the_vault(book: InProcessService, root: Caller) -> None:
    await book.value(root, "contact", "create", email="ada@example.com", notes="knows Ada")

    for row in await book.rows("SELECT label, hash, key FROM pii_value"):
        assert b"ada" not in b"".join(bytes(cell) for cell in row[1:] if cell is not None)
    assert [row[0] for row in await book.rows("SELECT hash FROM pii_value WHERE label = 'NOTES'")] == [None]


async def test_changing_a_value_releases_the_old_value(book: InProcessService, root: Caller) -> None:
    created_contact = await book.value(root, "contact", "create", email="old@example.com", notes="n")
    await book.value(root, "contact", "create", email="old@example.com")

    await book.value(root, "contact", "update", id=created_contact["id"], email="new@example.com")
    assert await vault_counts(book) == [("EMAIL", 1), ("EMAIL", 1), ("NOTES", 1)]

    await book.value(root, "contact", "update", id=created_contact["id"], email=None, notes=None)
    assert await vault_counts(book) == [("EMAIL", 1)]
    assert await book.rows('SELECT count(*) FROM contact WHERE "email__value" IS NOT NULL') == [(1,)]


async def test_deleting_the_last_holder_erases_the_value_and_its_sealed_copies(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    vault = book.service.engine.vault
    ids = [(await book.value(root, "contact", "create", email="ada@example.com"))["id"] for _ in range(2)]
    token = (await book.value(agent, "contact", "get", id=ids[0]))["email"]
    (value_id,) = (await book.rows("SELECT id FROM pii_value"))[0]
    database = book.service.records.database
    key = (await vault.keys(database, [value_id]))[value_id]
    sealed_text = vault.seal(key, "ada@example.com")

    await book.value(root, "contact", "delete", id=ids[0])
    assert vault.unseal((await vault.keys(database, [value_id]))[value_id], sealed_text) == "ada@example.com"
    assert (await book.value(agent, "contact", "create", email=token))["email"] == token

    for row in await book.value(root, "contact", "list"):
        await book.value(root, "contact", "delete", id=row["id"])
    assert await vault.keys(database, [value_id]) == {}
    assert await vault_counts(book) == []
    with pytest.raises(BadInput, match=f"unknown token {token}"):
        await book.value(agent, "contact", "create", email=token)

    # If the same value is written again, it gets the same token as if another record had contained it in the meantime.
    # Earlier encrypted copies stay unreadable.
    second_contact = await book.value(root, "contact", "create", email="ada@example.com")
    assert (await book.value(agent, "contact", "get", id=second_contact["id"]))["email"] == token
    (other_id, other_key) = (await book.rows("SELECT id, key FROM pii_value"))[0]
    assert other_id == value_id
    assert vault.unseal(bytes(other_key), sealed_text) is None


@pytest.mark.parametrize("is_held_elsewhere", [False, True])
async def test_a_value_that_is_removed_and_returns_has_its_token_again(
    book: InProcessService, root: Caller, agent: Caller, *, is_held_elsewhere: bool
) -> None:
    if is_held_elsewhere:
        await book.value(root, "contact", "create", email="ada@example.com")
    created_contact = await book.value(root, "contact", "create", email="ada@example.com")
    token = (await book.value(agent, "contact", "get", id=created_contact["id"]))["email"]

    for email in ("grace@example.com", None):
        await book.value(root, "contact", "update", id=created_contact["id"], email=email)
        await book.value(root, "contact", "update", id=created_contact["id"], email="ada@example.com")
        assert (await book.value(agent, "contact", "get", id=created_contact["id"]))["email"] == token


async def test_values_whose_ids_would_be_equal_get_two(book: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = book.service.engine
    first_value, second_value = (
        PersonalValue("EMAIL", f"{name}@example.com", linked=True) for name in ("ada", "grace")
    )
    monkeypatch.setattr(module, "_linked_id", lambda hashed, start=0: 7 + start + (hashed[0] if start else 0))

    async with book.service.records.database.transaction() as transaction:
        (first_held,) = await engine.vault.hold(transaction, [first_value])
        (second_held,) = await engine.vault.hold(transaction, [second_value])
        held_again = await engine.vault.hold(transaction, [second_value, first_value])

    assert first_held.id == 7
    assert second_held.id != 7
    assert held_again == [second_held, first_held]


async def test_reference_counts_equal_a_recount_after_many_changes(
    book: InProcessService, root: Caller, agent: Caller
) -> None:
    contacts: list[str] = []
    for turn in range(60):
        caller = agent if turn % 2 else root
        values = {"email": f"p{turn % 5}@x", "other_email": f"p{turn % 3}@x", "phone": f"{turn % 2}", "notes": "n"}
        if turn % 4 == 3:
            await book.value(caller, "contact", "update", id=contacts[turn % len(contacts)], **values)
        elif turn % 10 == 8:
            await book.value(root, "contact", "delete", id=contacts.pop(turn % len(contacts)))
        else:
            contacts.append((await book.value(caller, "contact", "create", **values))["id"])
        if turn % 6 == 5:
            shown_contact = await book.value(agent, "contact", "get", id=contacts[0])
            await book.value(
                agent, "contact", "update", id=contacts[-1], email=shown_contact["email"], notes=shown_contact["notes"]
            )

        stored_counts = dict(await book.rows("SELECT id, refs FROM pii_value"))
        assert stored_counts == await recount_references(book), f"turn {turn}"
    for contact in contacts:
        await book.value(root, "contact", "delete", id=contact)
    assert await vault_counts(book) == []
    assert await book.rows("SELECT count(*) FROM pii_alias") == [(0,)]


async def test_values_added_in_one_batch_are_counted_once_each(book: InProcessService) -> None:
    vault = book.service.engine.vault
    values = [PersonalValue("EMAIL", "a", True), PersonalValue("EMAIL", "b", True), PersonalValue("EMAIL", "a", True)]
    values += [PersonalValue("NOTES", "a", False), PersonalValue("NOTES", "a", False)]

    async with book.service.records.database.transaction() as transaction:
        held_batch = await vault.hold(transaction, values)
        held_later = await vault.hold(transaction, values[:1])
        assert await vault.hold(transaction, []) == []

    assert held_batch[0] == held_batch[2] == held_later[0]
    assert len({entry.id for entry in held_batch}) == 4
    assert await vault_counts(book) == [("EMAIL", 1), ("EMAIL", 3), ("NOTES", 1), ("NOTES", 1)]
    assert all(0 <= entry.id < 1 << 48 for entry in held_batch)


async def test_more_releases_than_holds_leave_no_value(book: InProcessService) -> None:
    vault = book.service.engine.vault
    async with book.service.records.database.transaction() as transaction:
        (held_value,) = await vault.hold(transaction, [PersonalValue("EMAIL", "a", True)])
        assert await vault.hold_existing(transaction, held_value.id) == held_value
        await vault.release(transaction, [held_value.id])
    assert await vault_counts(book) == [("EMAIL", 1)]

    async with book.service.records.database.transaction() as transaction:
        await vault.release(transaction, [held_value.id, held_value.id])
        assert await vault.hold_existing(transaction, held_value.id) is None
    assert await vault_counts(book) == []


@pytest.mark.parametrize("text", ["", "a", "zoë\U0001f600", "x" * 5_000])
def test_an_encrypted_copy_is_decrypted_only_with_its_key(text: str) -> None:
    vault, stranger = Vault(b"1" * 32), Vault(b"2" * 32)

    sealed_text = vault.seal(b"k" * 16, text)

    assert vault.unseal(b"k" * 16, sealed_text) == text
    assert vault.unseal(b"K" * 16, sealed_text) is None
    assert stranger.unseal(b"k" * 16, sealed_text) is None
    assert vault.seal(b"k" * 16, text) != sealed_text


def test_keyed_hashes_distinguish_values_and_differ_between_databases() -> None:
    vault, other_vault = Vault(b"1" * 32), Vault(b"2" * 32)
    hashes: Mapping[str, bytes] = {"a": vault.keyed(b"a"), "b": vault.keyed(b"b"), "other": other_vault.keyed(b"a")}

    assert vault.keyed(b"a") == hashes["a"]
    assert len(set(hashes.values())) == 3


class CountingTransaction:
    """A transaction that counts its statements."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        self.statements += name in ("run", "fetch", "fetch_one", "run_many")
        return getattr(self._transaction, name)


async def test_values_and_new_aliases_are_added_together_on_postgres_in_one_statement(book: InProcessService) -> None:
    database, vault = book.service.records.database, book.service.engine.vault
    values = [PersonalValue("EMAIL", "a", True), PersonalValue("NOTES", "n", False)]
    aliases = [NewAlias("contact", "c" * 24, field, "EMAIL", "d" * 24) for field in ("email", "other_email")]

    async with database.transaction() as transaction:
        counting = CountingTransaction(transaction)
        *held_values, first_alias, second_alias = await vault.hold(cast("Transaction", counting), values, (), aliases)

    assert counting.statements == 1 if database.dialect == "postgres" else counting.statements > 1
    by_field = {"email": {"d" * 24: first_alias.id}, "other_email": {"d" * 24: second_alias.id}}
    assert await vault.aliases(database, "contact", "c" * 24) == by_field
    assert await vault.keys(database, [key.id for key in held_values]) == dict(held_values)
    assert await vault.keys(database, [first_alias.id, second_alias.id]) == dict((first_alias, second_alias))
    assert await vault_counts(book) == [("EMAIL", 1), ("EMAIL", 1), ("EMAIL", 1), ("NOTES", 1)]
