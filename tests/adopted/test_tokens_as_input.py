"""Agents write values of connected tables that they see as placeholder tokens. A person approves each change."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from countersign.declare import Declared, Model, Module, Text
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.kernel.database import read_only
from countersign.kernel.database.port import Transaction
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.adopted.store import AdoptedStore
from countersign.records.masking import value_sweep
from tests.adopted.scout import Scout, scout_of
from tests.adopted.shop import MARK, MODULE, Shop, open_shop
from tests.adopted.writable import make_writable, shop_registry

ADA, BOB = f"ada{MARK}@example.com", f"bob{MARK}@example.com"
VALUES = 8
"""The number of values that are in the vault after a read of all customers: theirs, and the name of the person."""
AGAIN = ": read the record again with get"


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop that it may write."""
    url = make_writable(request, tmp_path)
    async with open_shop(url, tmp_path, shop_registry(), is_shared=True) as opened:
        yield opened


@pytest.fixture
async def scout(shop: Shop) -> Scout:
    """An agent of an administrator."""
    return await scout_of(shop, await shop.inside.member(), "scout")


def _emails(shop: Shop) -> list[str | None]:
    return [row[0] for row in shop.rows("SELECT email FROM customer ORDER BY customer_id")]


async def test_a_token_of_one_record_is_written_into_another(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()

    answer = await scout.call("update", id=bob["id"], email=ada["email"])
    plan = (await shop.http.post("/api/plan/get", json={"id": answer.json()["plan_id"]}, headers=scout.headers)).text
    await scout.approve(answer)

    assert _emails(shop) == [ADA, ADA, ADA]
    assert MARK not in answer.text + plan
    assert (await scout.get(bob))["email"] == ada["email"]


async def test_a_new_record_gets_the_values_of_tokens(shop: Shop, scout: Scout) -> None:
    _, bob, _ = await scout.customers()

    answer = await scout.call("create", first_name=bob["first_name"], email=bob["email"], visits=1)
    await scout.approve(answer)

    assert _emails(shop) == [ADA, BOB, ADA, BOB]
    created = (await scout.customers())[3]
    assert (created["first_name"], created["email"]) == (bob["first_name"], bob["email"])


async def test_the_person_who_approves_sees_the_value_and_the_agent_the_token(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    plan_id = (await scout.call("update", id=bob["id"], email=ada["email"])).json()["plan_id"]

    person = shop.narrowed(shop.inside.administrator())
    (seen,) = (await shop.inside.value(person, "plan", "get", id=plan_id))["diff"]
    shown = await shop.http.post("/api/plan/get", json={"id": plan_id}, headers=scout.headers)

    assert (seen["before"], seen["after"]) == (BOB, ADA)
    (diff,) = shown.json()["value"]["diff"]
    assert diff["after"] == ada["email"]


async def test_a_masked_field_is_emptied(shop: Shop, scout: Scout) -> None:
    ada, *_ = await scout.customers()

    await scout.approve(await scout.call("update", id=ada["id"], email=None))

    assert _emails(shop) == [None, BOB, ADA]


async def test_a_value_is_copied_as_long_as_it_is(shop: Shop, scout: Scout) -> None:
    text = f"{'x' * 2_000}@example.com"
    shop.change(f"UPDATE customer SET email = '{text}' WHERE customer_id = 1")
    ada, bob, _ = await scout.customers()

    await scout.approve(await scout.call("update", id=bob["id"], email=ada["email"]))

    assert _emails(shop)[1] == text


@pytest.mark.parametrize("text", ["{email} and more", "see {email}", "EMAIL_12", "{first_name}", "email_12"])
async def test_a_token_is_the_whole_text_of_a_short_field(shop: Shop, scout: Scout, text: str) -> None:
    ada, bob, _ = await scout.customers()
    value = text.format(**ada)

    refusal = await scout.refusal(bob, email=value)

    assert refusal in {
        "customer.email takes one placeholder token and nothing else, or a value in clear",
        "token not allowed in customer.email",
        f"unknown token EMAIL_12{AGAIN}",
        "email_12 is no placeholder token: write tokens exactly as they were given to you",
    }
    assert _emails(shop) == [ADA, BOB, ADA]


async def test_a_token_means_nothing_to_another_agent(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    other = await scout_of(shop, scout.person, "other")
    await other.customers()

    assert await other.refusal(bob, email=ada["email"]) == f"unknown token {ada['email']}{AGAIN}"


async def test_a_token_ends_with_the_last_record_that_has_its_value(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    shop.change("UPDATE customer SET email = 'new@example.com' WHERE customer_id = 2")

    assert await scout.refusal(ada, email=bob["email"]) == f"unknown token {bob['email']}{AGAIN}"

    again = await scout.get(bob)
    await scout.approve(await scout.call("update", id=ada["id"], email=again["email"]))
    assert _emails(shop) == ["new@example.com", "new@example.com", ADA]


async def test_a_deleted_row_ends_its_tokens(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    shop.change('DELETE FROM line; DELETE FROM "Orders"; DELETE FROM customer WHERE customer_id = 2')

    assert await scout.refusal(ada, email=bob["email"]) == f"unknown token {bob['email']}{AGAIN}"


async def test_a_token_follows_its_value_to_a_record_that_is_read(shop: Shop, scout: Scout) -> None:
    ada, bob, zoe = await scout.customers()
    assert ada["email"] == zoe["email"]
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 1")

    zoe = await scout.get(zoe)
    answer = await scout.call("update", id=bob["id"], email=zoe["email"])

    await scout.approve(answer)
    assert _emails(shop) == [None, ADA, ADA]


async def test_a_token_is_refused_outside_of_fields_with_its_label(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    condition = {"field": "visits", "op": "eq", "value": ada["email"]}

    assert await scout.refusal(bob, first_name=ada["email"]) == "token not allowed in customer.first_name"
    assert (await scout.call("list", filter=[condition])).status_code == 400
    filtered = await scout.call("list", filter=[{"field": "email", "op": "eq", "value": ada["email"]}])
    assert (filtered.status_code, filtered.json()["error"]) == (400, "token not allowed in a filter on customer.email")


async def test_no_text_of_theirs_is_in_our_tables_after_a_read(shop: Shop, scout: Scout) -> None:
    await scout.customers()

    rows = await shop.inside.rows("SELECT model, field, record_id, domain_id, user_id FROM seen_place")

    assert len(rows) == 7
    assert MARK not in str(rows)


@pytest.mark.parametrize("shop", ["postgres"], indirect=True)
async def test_a_repeated_read_writes_nothing(shop: Shop, scout: Scout) -> None:
    await scout.customers()
    before = await shop.inside.rows("SELECT xmin::text, * FROM seen_place ORDER BY value_id")

    await scout.customers()

    assert await shop.inside.rows("SELECT xmin::text, * FROM seen_place ORDER BY value_id") == before


async def _sweep(shop: Shop, days: int) -> None:
    assert shop.inside.service.value_sweep is not None
    with clock.fixed(clock.later(clock.now(), seconds=days * 86_400)):
        await shop.inside.service.value_sweep.run_daily()


async def test_a_value_that_no_record_has_is_erased_after_thirty_days(shop: Shop, scout: Scout) -> None:
    await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")

    await _sweep(shop, 1)
    labels = [row[0] for row in await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL")]
    await _sweep(shop, 30)
    kept = await shop.inside.rows("SELECT label FROM pii_value ORDER BY label")
    await _sweep(shop, 31)

    assert (labels, len(kept)) == (["EMAIL"], VALUES)
    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES - 1
    assert len(await shop.inside.rows("SELECT field FROM seen_place")) == 6


async def test_a_value_that_comes_back_is_kept(shop: Shop, scout: Scout) -> None:
    _, bob, _ = await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    shop.change(f"UPDATE customer SET email = '{BOB}' WHERE customer_id = 2")
    again = await scout.get(bob)

    await _sweep(shop, 2)
    await _sweep(shop, 40)

    assert again == bob
    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES
    await scout.approve(await scout.call("create", first_name=bob["first_name"], email=bob["email"]))
    assert _emails(shop)[3] == BOB


async def test_a_day_on_which_a_record_cannot_be_read_changes_nothing(
    shop: Shop, scout: Scout, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)

    with monkeypatch.context() as patch:
        patch.setattr(AdoptedStore, "is_suspended", lambda *_: True)
        await _sweep(shop, 2)
        labels = [row[0] for row in await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL")]
        await _sweep(shop, 40)
    kept = await shop.inside.rows("SELECT label FROM pii_value")
    await _sweep(shop, 41)

    assert (labels, len(kept)) == (["EMAIL"], VALUES)
    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES - 1


async def test_the_sweep_runs_once_a_day(shop: Shop, scout: Scout) -> None:
    await scout.customers()
    await _sweep(shop, 1)
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")

    await _sweep(shop, 1)

    assert await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL") == []


async def test_a_value_that_comes_back_is_kept_even_if_it_is_not_read_meanwhile(shop: Shop, scout: Scout) -> None:
    await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    shop.change(f"UPDATE customer SET email = '{BOB}' WHERE customer_id = 2")

    await _sweep(shop, 2)
    await _sweep(shop, 40)

    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES


async def test_a_value_that_is_read_again_is_not_erased_by_a_sweep_that_has_read_its_record_before(
    shop: Shop, scout: Scout
) -> None:
    _, bob, _ = await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    shop.change(f"UPDATE customer SET email = '{BOB}' WHERE customer_id = 2")

    assert await scout.get(bob) == bob

    assert await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL") == []


async def test_a_value_of_one_record_is_kept_if_another_record_has_lost_it(shop: Shop) -> None:
    root = shop.inside.administrator()
    ada, bob, _ = await shop.inside.value(root, "customer", "list")
    for each in (ada, bob):
        await shop.inside.value(root, "customer", "update", id=each["id"], email="new@example.com")
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")

    await _sweep(shop, 1)
    await _sweep(shop, 40)

    (entry,) = await shop.inside.value(root, "customer", "history", id=ada["id"])
    assert entry["changes"]["email"][1] == "new@example.com"


async def test_a_value_that_a_pending_plan_writes_later_is_kept(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    answer = await scout.call("create", first_name=ada["first_name"], email=bob["email"])
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    await _sweep(shop, 40)

    await scout.approve(answer)
    await _sweep(shop, 41)

    assert _emails(shop)[3] == BOB
    root = shop.inside.administrator()
    created = (await shop.inside.value(root, "customer", "list"))[3]
    (entry,) = await shop.inside.value(root, "customer", "history", id=created["id"])
    assert entry["changes"]["email"] == [None, BOB]


async def test_a_pending_plan_keeps_its_value_if_it_is_gone_twice(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    answer = await scout.call("create", first_name=ada["first_name"], email=bob["email"])
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    await _sweep(shop, 40)
    shop.change(f"UPDATE customer SET email = '{BOB}' WHERE customer_id = 2")
    assert await scout.get(bob) == bob
    await _sweep(shop, 41)
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 42)
    await _sweep(shop, 80)

    await scout.approve(answer)

    assert _emails(shop)[3] == BOB


async def test_a_value_is_erased_after_the_last_plan_with_it_is_decided(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    answer = await scout.call("create", first_name=ada["first_name"], email=bob["email"])
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    await _sweep(shop, 40)
    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES

    person = shop.narrowed(scout.person)
    await shop.inside.value(person, "plan", "reject", id=answer.json()["plan_id"], reason="no")
    await _sweep(shop, 41)

    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES - 1


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE token_domain SET closed_at = 1"],
        ["DELETE FROM agent_token", "DELETE FROM user_role", 'DELETE FROM "user"'],
    ],
    ids=["domain closed", "person deleted"],
)
async def test_what_an_agent_saw_is_removed_when_its_token_domain_ends(
    shop: Shop, scout: Scout, statements: list[str]
) -> None:
    ada, *_ = await scout.customers()
    await shop.inside.value(shop.inside.administrator(), "customer", "update", id=ada["id"], first_name="Mia")
    async with shop.inside.service.records.database.transaction() as transaction:
        for statement in statements:
            await transaction.run(statement)

    await _sweep(shop, 1)
    places = await shop.inside.rows("SELECT domain_id, record_id FROM seen_place")
    await _sweep(shop, 40)

    assert set(places) == {(ada["id"], ada["id"])}
    (entry,) = await shop.inside.value(shop.inside.administrator(), "customer", "history", id=ada["id"])
    assert entry["changes"]["first_name"][1] == "Mia"
    # The name of the person, the new name, and the e-mail address and the note of the record.
    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == 4


def _keep_busy(monkeypatch: pytest.MonkeyPatch, *, field: str, times: int) -> None:
    """Refuse the first reads of a field, because too many statements are running."""
    read, left = AdoptedStore.texts, [times]

    async def texts(
        store: AdoptedStore, person: Caller, model: Declared, name: str, record_ids: Sequence[str]
    ) -> Mapping[str, str | None]:
        if name == field and left[0]:
            left[0] -= 1
            raise read_only.Busy(read_only.BUSY)
        return await read(store, person, model, name, record_ids)

    monkeypatch.setattr(AdoptedStore, "texts", texts)
    monkeypatch.setattr(value_sweep, "BUSY_PAUSE_S", 0.0)


async def test_the_sweep_waits_for_a_busy_database(shop: Shop, scout: Scout, monkeypatch: pytest.MonkeyPatch) -> None:
    await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    _keep_busy(monkeypatch, field="email", times=value_sweep.BUSY_TRIES - 1)

    await _sweep(shop, 1)

    assert await shop.inside.rows("SELECT label FROM pii_value WHERE gone_day IS NOT NULL") == [("EMAIL",)]


async def test_values_are_erased_even_if_the_database_stays_busy_for_others(
    shop: Shop, scout: Scout, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scout.customers()
    shop.change("UPDATE customer SET email = NULL WHERE customer_id = 2")
    await _sweep(shop, 1)
    _keep_busy(monkeypatch, field="first_name", times=1_000)

    await _sweep(shop, 40)

    assert len(await shop.inside.rows("SELECT label FROM pii_value")) == VALUES - 1


class Contact(Model):
    """A person in a table of our own."""

    email = Text(personal="EMAIL")


@pytest.fixture(params=["sqlite", "postgres"])
async def shop_with_contacts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop that it only reads, with a model of its own."""
    url = make_writable(request, tmp_path)
    module = Module("more", version="1.0.0", models=(Contact,))
    registry = Registry([base_models.MODULE, MODULE, module])
    async with open_shop(url, tmp_path, registry) as opened:
        yield opened


async def test_a_copy_into_a_record_that_more_people_read_needs_approval(shop_with_contacts: Shop) -> None:
    shop = shop_with_contacts
    scout = await scout_of(shop, await shop.inside.member(), "scout")
    ada, *_ = await scout.customers()

    answer = await shop.http.post("/api/contact/create", json={"email": ada["email"]}, headers=scout.headers)
    assert answer.status_code == 200, answer.text
    async with shop.inside.service.records.database.transaction() as transaction:
        await _let_all_read_contacts(transaction)
    answer = await shop.http.post("/api/contact/create", json={"email": ada["email"]}, headers=scout.headers)

    assert answer.status_code == 202, answer.text
    rows = await shop.inside.rows("SELECT email FROM contact")
    assert [tuple(row) for row in rows] == [(ADA,)]


async def _let_all_read_contacts(transaction: Transaction) -> None:
    """Give a role the right to read contacts in clear, and none to read customers."""
    await transaction.run("INSERT INTO role (id, revision, changed, title) VALUES ('r', 1, 0, 'everyone')")
    await transaction.run(
        "INSERT INTO \"grant\" (id, revision, changed, role, model, commands, clear) "
        "VALUES ('g', 1, 0, 'r', 'contact', 'get,list', 'email')"
    )
