"""Agents write personal values in clear into connected tables. They then see tokens that no equal value has, so that
they cannot confirm a guess."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.records.access import sessions
from countersign.records.approvals import decisions
from countersign.records.masking import connected_aliases
from tests.adopted.scout import Scout, scout_of
from tests.adopted.shop import MARK, Shop, open_shop
from tests.adopted.writable import WRITES_CUSTOMERS, make_writable, shop_registry

ADA, BOB, NEW = f"ada{MARK}@example.com", f"bob{MARK}@example.com", "new@example.com"
GUESSES = pytest.mark.parametrize("guess", [BOB, NEW], ids=["right", "wrong"])
"""What an agent takes for the e-mail address of Bob."""
UNIQUE = """
UPDATE customer SET email = 'zoe@example.com' WHERE customer_id = 3;
CREATE UNIQUE INDEX one ON customer (email);
"""


@pytest.fixture(params=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The service over a shop that it may write."""
    url = make_writable(request, tmp_path, grants=(*WRITES_CUSTOMERS, "DELETE ON customer"))
    async with open_shop(url, tmp_path, shop_registry(deletes=True), is_shared=True) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
async def unique_shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The same over a shop whose e-mail addresses are unique."""
    url = make_writable(request, tmp_path, changes=UNIQUE, sqlite_changes=UNIQUE)
    async with open_shop(url, tmp_path, shop_registry(), is_shared=True) as opened:
        yield opened


@pytest.fixture
async def scout(shop: Shop) -> Scout:
    """An agent of an administrator."""
    return await scout_of(shop, await shop.inside.member())


def _rows(shop: Shop, column: str = "email") -> list[Any]:
    return [row[0] for row in shop.rows(f"SELECT {column} FROM customer ORDER BY customer_id")]


async def _history(scout: Scout, record: dict[str, Any]) -> list[dict[str, Any]]:
    return (await scout.call("history", id=record["id"])).json()["value"]


async def _sweep(shop: Shop, days: int) -> None:
    assert shop.inside.service.value_sweep is not None
    with clock.fixed(clock.later(clock.now(), seconds=days * 86_400)):
        await shop.inside.service.value_sweep.run_daily()


async def test_an_agent_creates_a_record_with_a_new_name(shop: Shop, scout: Scout) -> None:
    answer = await scout.call("create", first_name="Mia New", email=NEW, visits=1)
    await scout.approve(answer)
    *_, mia = await scout.customers()

    assert (_rows(shop)[3], _rows(shop, "first_name")[3]) == (NEW, "Mia New")
    assert mia["first_name"].startswith("PERSON_")
    assert NEW not in str(mia)
    assert await scout.get(mia) == mia
    seen = await shop.inside.value(shop.inside.administrator(), "customer", "get", id=mia["id"])
    assert (seen["first_name"], seen["email"]) == ("Mia New", NEW)


async def test_the_agent_writes_the_token_of_its_own_text_into_other_records(shop: Shop, scout: Scout) -> None:
    _, bob, _ = await scout.customers()
    await scout.approve(await scout.call("create", first_name="Mia New", email=NEW))
    mia = (await scout.customers())[3]

    await scout.approve(await scout.call("update", id=bob["id"], email=mia["email"]))

    assert _rows(shop)[1] == NEW
    assert (await scout.get(bob))["email"] == mia["email"]


async def test_the_text_is_not_stored_in_clear(shop: Shop, scout: Scout) -> None:
    await scout.approve(await scout.call("create", first_name="Mia New", email=NEW))

    tables = ["SELECT * FROM pii_alias", "SELECT id, label, hash, refs FROM pii_value", "SELECT * FROM seen_place"]
    tables += ["SELECT changes FROM audit_entry", "SELECT input, diff FROM plan", "SELECT sealed FROM plan_value"]
    for statement in tables:
        assert NEW not in str(await shop.inside.rows(statement))
    assert len(await shop.inside.rows("SELECT record_id FROM pii_alias WHERE hash IS NOT NULL")) == 2


async def test_a_guess_has_another_token_than_the_equal_value(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()

    await scout.approve(await scout.call("update", id=ada["id"], email=BOB))
    again = await scout.get(ada)

    assert _rows(shop)[0] == BOB
    assert again["email"] not in {ada["email"], bob["email"]}
    assert (await scout.get(bob))["email"] == bob["email"]


@GUESSES
async def test_the_agent_does_not_learn_whether_the_value_was_equal_before(
    shop: Shop, scout: Scout, guess: str
) -> None:
    _, bob, _ = await scout.customers()
    other = await scout.call("update", id=bob["id"], visits=11)

    await scout.approve(await scout.call("update", id=bob["id"], email=guess))
    again = await scout.get(bob)
    (entry,) = await _history(scout, bob)
    refusal = await scout.refusal(bob, email=bob["email"])
    with pytest.raises(Refused, match="plan is stale"):
        await scout.approve(other)

    assert _rows(shop)[1] == guess
    assert again["email"] != bob["email"]
    assert again["revision"] != bob["revision"]
    assert entry["changes"] == {"email": [bob["email"], again["email"]]}
    assert refusal == f"unknown token {bob['email']}: read the record again with get"


@GUESSES
async def test_a_list_an_export_and_a_search_show_the_alias(shop: Shop, scout: Scout, guess: str) -> None:
    _, bob, _ = await scout.customers()
    await scout.approve(await scout.call("update", id=bob["id"], email=guess))
    again = await scout.get(bob)

    listed = (await scout.customers())[1]
    (found,) = (await scout.call("search", filter=[{"field": "visits", "op": "eq", "value": 10}])).json()["value"][
        "rows"
    ]
    exported = (await scout.call("export")).json()["value"]["text"]

    assert listed == found == again
    assert again["email"] in exported
    assert bob["email"] not in exported


async def test_another_agent_sees_the_token_of_the_value(shop: Shop, scout: Scout) -> None:
    other = await scout_of(shop, scout.person, "other")
    ada, bob, _ = await other.customers()

    await scout.approve(await scout.call("update", id=ada["id"], email=BOB))

    assert (await other.get(ada))["email"] == bob["email"]


async def test_the_same_text_twice_has_two_tokens(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    for each in (ada, bob):
        await scout.approve(await scout.call("update", id=each["id"], email=NEW))

    first, second, _ = await scout.customers()

    assert first["email"] != second["email"]


async def test_a_value_that_another_application_has_changed_has_its_own_token(shop: Shop, scout: Scout) -> None:
    ada, bob, zoe = await scout.customers()
    await scout.approve(await scout.call("update", id=bob["id"], email=NEW))
    typed = await scout.get(bob)

    shop.change(f"UPDATE customer SET email = '{ADA}' WHERE customer_id = 2")
    again = await scout.get(bob)

    assert again["email"] == ada["email"] == zoe["email"]
    assert await scout.refusal(ada, email=typed["email"]) == (
        f"unknown token {typed['email']}: read the record again with get"
    )


async def test_the_token_of_a_value_replaces_the_alias_of_equal_text(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    await scout.approve(await scout.call("update", id=bob["id"], email=ADA))
    assert (await scout.get(bob))["email"] != ada["email"]

    await scout.approve(await scout.call("update", id=bob["id"], email=ada["email"]))

    assert (await scout.get(bob))["email"] == ada["email"]
    assert await shop.inside.rows("SELECT record_id FROM pii_alias") == []


async def test_a_token_that_the_agent_sees_already_changes_nothing(shop: Shop, scout: Scout) -> None:
    _, bob, _ = await scout.customers()
    await scout.approve(await scout.call("update", id=bob["id"], email=NEW))
    typed = await scout.get(bob)

    await scout.approve(await scout.call("update", id=bob["id"], email=typed["email"]))

    assert await scout.get(bob) == typed
    assert len(await _history(scout, bob)) == 1


async def test_free_text_may_contain_tokens(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()

    await scout.approve(await scout.call("update", id=bob["id"], note=f"Ask {ada['first_name']}, {ada['note']}"))
    again = await scout.get(bob)

    assert _rows(shop, "note")[1] == f"Ask Ada {MARK}, calls {MARK}"
    assert again["note"].startswith("TEXT_")
    await scout.approve(await scout.call("update", id=ada["id"], note=again["note"]))
    assert _rows(shop, "note")[0] == f"Ask Ada {MARK}, calls {MARK}"


@pytest.mark.parametrize("text", ["x {first_name}", "{email}", "PERSON_12"])
async def test_a_short_text_is_one_token_or_has_none(shop: Shop, scout: Scout, text: str) -> None:
    ada, bob, _ = await scout.customers()

    refusal = await scout.refusal(bob, first_name=text.format(**ada))

    assert refusal in {
        "customer.first_name takes one placeholder token and nothing else, or a value in clear",
        "token not allowed in customer.first_name",
        "unknown token PERSON_12: read the record again with get",
    }


async def test_equal_free_text_counts_as_a_change(shop: Shop, scout: Scout) -> None:
    ada, *_ = await scout.customers()

    await scout.approve(await scout.call("update", id=ada["id"], note=f"calls {MARK}"))
    again = await scout.get(ada)

    assert again["note"] != ada["note"]
    assert (await _history(scout, ada))[0]["changes"] == {"note": [ada["note"], again["note"]]}


@pytest.mark.parametrize("email", [BOB, NEW], ids=["taken", "free"])
async def test_a_unique_value_becomes_a_plan_whether_it_is_taken_or_not(unique_shop: Shop, email: str) -> None:
    shop = unique_shop
    scout = await scout_of(shop, await shop.inside.member())
    ada, *_ = await scout.customers()

    answers = [await scout.call("create", first_name="Mia", email=email)]
    answers.append(await scout.call("update", id=ada["id"], email=email))
    repeated = await scout.call("update", id=ada["id"], email=email)

    assert [each.status_code for each in answers] == [202, 202]
    assert repeated.json() == answers[1].json()
    for answer in answers:
        plan = (await scout.post("plan/get", id=answer.json()["plan_id"])).json()["value"]
        assert (plan["state"], plan["error"], plan["result"]) == ("pending", None, None)
        assert MARK not in str(plan)


async def test_only_the_person_who_approves_learns_that_a_value_is_taken(unique_shop: Shop) -> None:
    shop = unique_shop
    scout = await scout_of(shop, await shop.inside.member())
    await scout.customers()
    answer = await scout.call("create", first_name="Mia", email=BOB)
    plan_id = answer.json()["plan_id"]

    run = shop.inside.run(shop.narrowed(scout.person))
    with pytest.raises(decisions.NotPending, match=r"customer\.email must be unique: another record has this value"):
        await decisions.approve(run, shop.inside.service.callers, plan_id)

    plan = (await scout.post("plan/get", id=plan_id)).json()["value"]
    assert (plan["state"], plan["error"]) == ("failed", "refused")
    assert await shop.inside.rows("SELECT record_id FROM pii_alias") == []


async def test_a_refused_write_leaves_no_alias_and_no_entry(shop: Shop, scout: Scout) -> None:
    await scout.customers()
    answer = await scout.call("create", first_name="Mia", email=NEW)
    shop.change("ALTER TABLE customer RENAME TO people")

    with pytest.raises(Refused):
        await scout.approve(answer)

    assert await shop.inside.rows("SELECT record_id FROM pii_alias") == []
    assert await shop.inside.rows("SELECT command FROM audit_entry WHERE model = 'customer'") == []


async def test_a_deletion_removes_the_aliases(shop: Shop, scout: Scout) -> None:
    await scout.approve(await scout.call("create", first_name="Mia New", email=NEW))
    mia = (await scout.customers())[3]
    before = len(await shop.inside.rows("SELECT id FROM pii_value WHERE domain_id IS NOT NULL"))

    await scout.approve(await scout.call("delete", id=mia["id"]))

    assert before == 2
    assert await shop.inside.rows("SELECT record_id FROM pii_alias") == []
    assert await shop.inside.rows("SELECT id FROM pii_value WHERE domain_id IS NOT NULL") == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE customer SET email = 'other@example.com', first_name = 'Eve' WHERE customer_id = 4",
        "DELETE FROM customer WHERE customer_id = 4",
    ],
    ids=["changed", "deleted"],
)
async def test_the_sweep_drops_aliases_of_what_other_applications_change(
    shop: Shop, scout: Scout, change: str
) -> None:
    await scout.approve(await scout.call("create", first_name="Mia New", email=NEW))
    await _sweep(shop, 1)
    kept = len(await shop.inside.rows("SELECT record_id FROM pii_alias"))

    shop.change(change)
    await _sweep(shop, 2)

    assert kept == 2
    assert await shop.inside.rows("SELECT record_id FROM pii_alias") == []
    assert await shop.inside.rows("SELECT id FROM pii_value WHERE domain_id IS NOT NULL") == []


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
async def test_a_read_waits_for_the_aliases_of_a_plan_that_commits(shop: Shop, scout: Scout) -> None:
    _, bob, _ = await scout.customers()
    await scout.call("update", id=bob["id"], email=BOB)

    async with shop.inside.service.records.database.transaction():
        read = asyncio.create_task(scout.get(bob))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(read), 0.3)

    assert await read == bob


async def test_the_aliases_of_an_agent_that_has_written_much_are_found_by_record(
    shop: Shop, scout: Scout, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob, _ = await scout.customers()
    for each in (ada, bob):
        await scout.approve(await scout.call("update", id=each["id"], email=BOB, first_name=f"Bob {MARK}"))
    before = await scout.customers()
    few = connected_aliases._OF_DOMAIN.replace(  # pyright: ignore[reportPrivateUsage]
        f"LIMIT {connected_aliases.MAX_TOGETHER + 1}", "LIMIT 2"
    )
    monkeypatch.setattr(connected_aliases, "MAX_TOGETHER", 1)
    monkeypatch.setattr(connected_aliases, "_OF_DOMAIN", few)

    assert await scout.customers() == before


async def test_what_a_trigger_may_compute_from_the_text_has_another_token_as_well(shop: Shop, scout: Scout) -> None:
    ada, bob, _ = await scout.customers()
    if shop.is_sqlite:
        shop.change(
            "CREATE TRIGGER derive AFTER UPDATE OF note ON customer BEGIN "
            "UPDATE customer SET email = new.note WHERE customer_id = new.customer_id; END"
        )
    else:
        shop.change(
            "CREATE FUNCTION derive() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN new.email := new.note; RETURN new; END'; "
            "CREATE TRIGGER derive BEFORE UPDATE OF note ON customer FOR EACH ROW EXECUTE FUNCTION derive()"
        )

    await scout.approve(await scout.call("update", id=ada["id"], note=BOB))
    again = await scout.get(ada)

    assert _rows(shop)[0] == BOB
    assert again["email"] not in {ada["email"], bob["email"]}
    assert set((await _history(scout, ada))[0]["changes"]) == {"first_name", "email", "note"}


def _add_trigger(shop: Shop, value: str) -> None:
    """Let the database compute the e-mail address with each update."""
    if shop.is_sqlite:
        shop.change(
            "CREATE TRIGGER derive AFTER UPDATE OF first_name, note, visits ON customer BEGIN "
            f"UPDATE customer SET email = {value} WHERE customer_id = new.customer_id; END"
        )
        return
    shop.change(
        "CREATE FUNCTION derive() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$BEGIN new.email := {value}; RETURN new; END$$; "
        "CREATE TRIGGER derive BEFORE UPDATE OF first_name, note, visits ON customer FOR EACH ROW "
        "EXECUTE FUNCTION derive()"
    )


@GUESSES
async def test_what_a_trigger_computes_from_earlier_text_has_another_token(
    shop: Shop, scout: Scout, guess: str
) -> None:
    """The second write has no text in clear, and computes a value from the text of the first one."""
    shop.change(f"UPDATE customer SET email = 'Bob {MARK}/' || email WHERE customer_id = 2")
    ada, bob, _ = await scout.customers()
    _add_trigger(shop, "new.first_name || '/' || new.note")

    await scout.approve(await scout.call("update", id=ada["id"], note=guess))
    await scout.approve(await scout.call("update", id=ada["id"], first_name=bob["first_name"]))
    by_agent = await scout.get(ada)
    await shop.inside.value(scout.person, "customer", "update", id=ada["id"], visits=8)

    assert _rows(shop)[0] == f"Bob {MARK}/{guess}"
    assert by_agent["email"] != bob["email"]
    assert (await scout.get(ada))["email"] == by_agent["email"]


async def test_what_another_agent_writes_leaves_the_aliases_of_other_fields(shop: Shop, scout: Scout) -> None:
    other = await scout_of(shop, scout.person, "other")
    ada, bob, _ = await scout.customers()
    await other.customers()
    await scout.approve(await scout.call("update", id=ada["id"], email=BOB))
    typed = await scout.get(ada)
    _add_trigger(shop, "new.email")

    await other.approve(await other.call("update", id=ada["id"], note="x"))

    assert _rows(shop)[0] == BOB
    assert (await scout.get(ada))["email"] == typed["email"] != bob["email"]


@GUESSES
async def test_the_next_agent_with_the_label_does_not_see_whether_a_guess_was_right(
    shop: Shop, scout: Scout, guess: str
) -> None:
    """The token domain is closed while no agent has the label, and is then opened again."""
    ada, *_ = await scout.customers()
    await scout.approve(await scout.call("update", id=ada["id"], email=guess))
    async with shop.inside.service.records.database.transaction() as transaction:
        await sessions.end_all_of_user(transaction, scout.person.user_id, ("agent_token",))
    await _sweep(shop, 1)

    again, bob, _ = await (await scout_of(shop, scout.person)).customers()

    assert _rows(shop)[0] == guess
    assert again["email"] != bob["email"]
