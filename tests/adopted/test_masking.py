"""What agents and people with limited grants see of tables of others."""

import json
import re

import pytest

from countersign.declare import Grant, where
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import MARK, MODELS, Shop

TOKEN = re.compile(r"(PERSON|EMAIL|TEXT)_[0-9]{1,15}")
MASKED = tuple(Grant(model=name, commands="*", masked="*") for name in MODELS)


async def test_an_agent_sees_tokens_alone_through_every_command(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)
    run = shop.inside.value

    answers = [
        await run(agent, "customer", "list"),
        await run(agent, "customer", "search", order=[{"field": "visits"}], expand=["country"]),
        await run(agent, "customer", "get", id=(await run(agent, "customer", "list"))[0]["id"]),
        await run(agent, "customer", "export"),
        await run(agent, "customer", "export", content_type="application/x-ndjson"),
        await run(agent, "customer", "count_by", field="country"),
        await run(agent, "order", "search", expand=["customer"]),
        await run(agent, "order", "export", form="shown"),
    ]

    assert MARK not in json.dumps(answers, ensure_ascii=False)
    assert all(TOKEN.fullmatch(each["first_name"]) for each in answers[0])
    assert [TOKEN.fullmatch(each["note"] or "TEXT_1") is not None for each in answers[0]] == [True] * 3


async def test_an_agent_over_mcp_and_http_sees_tokens_alone(shop: Shop) -> None:
    token = await shop.token_of(await shop.inside.member())
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    call = {"name": "customer__search", "arguments": {"limit": 3}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}

    over_mcp = await shop.http.post("/mcp", json=message, headers=headers)
    whole_list = await shop.http.post("/api/customer/list", json={}, headers=headers)
    export = await shop.http.post("/api/customer/export", json={}, headers={**headers, "Accept": "text/csv"})
    meta = await shop.http.get("/api/meta", headers=headers)
    commands = await shop.http.get("/api/commands", headers=headers)

    assert [each.status_code for each in (over_mcp, whole_list, export, meta, commands)] == [200] * 5
    for each in (over_mcp, whole_list, export):
        assert MARK not in each.text
        assert len(set(TOKEN.findall(each.text))) == 3, each.text
    known = {each["id"] for each in commands.json()["commands"] if each["id"].startswith("customer.")}
    names = ("get", "list", "search", "export", "count_by", "related", "series")
    assert known == {f"customer.{name}" for name in names}
    lines = next(each for each in meta.json()["models"] if each["name"] == "line")
    assert {each["name"]: each.get("sortable") for each in lines["fields"]} == {
        "order": None, "title": False, "number": None
    }


async def test_equal_values_have_equal_tokens_in_one_domain_and_different_tokens_in_two_domains(shop: Shop) -> None:
    scout, other = [await shop.inside.agent(label, *MASKED) for label in ("scout", "other")]

    ada, bob, zoe = await shop.inside.value(scout, "customer", "list")
    customers_of_scout = await shop.inside.value(scout, "customer", "list")
    seen_by_other = await shop.inside.value(other, "customer", "list")

    assert ada["email"] == zoe["email"] != bob["email"]
    assert ada["note"] != zoe["note"]
    assert customers_of_scout == [ada, bob, zoe]
    assert {each["email"] for each in seen_by_other}.isdisjoint({ada["email"], bob["email"]})
    assert [each["revision"] for each in seen_by_other] != [each["revision"] for each in customers_of_scout]


async def test_equal_values_of_fields_that_are_not_linked_have_different_tokens(shop: Shop) -> None:
    shop.change("UPDATE customer SET note = 'the same text'")
    agent = await shop.inside.agent("scout", *MASKED)

    notes = [each["note"] for each in await shop.inside.value(agent, "customer", "list")]

    assert len(set(notes)) == 3


async def test_no_value_of_theirs_is_stored_in_our_tables(shop: Shop) -> None:
    agent = await shop.inside.agent("scout", *MASKED)

    await shop.inside.value(agent, "customer", "list")
    rows = await shop.inside.rows("SELECT hash, label FROM pii_value")

    assert sorted(row[1] for row in rows) == ["EMAIL"] * 2 + ["PERSON"] * 3 + ["TEXT"] * 2
    assert all(len(row[0]) == 20 for row in rows)


@pytest.mark.parametrize("field", ["first_name", "note", "password", "unknown"])
async def test_masked_and_hidden_fields_are_not_filtered_ordered_or_counted(shop: Shop, field: str) -> None:
    agent = await shop.inside.agent("scout", *MASKED)

    condition = {"field": field, "op": "eq", "value": "x"}
    for command, body in (
        ("list", {"filter": [condition]}),
        ("search", {"order": [{"field": field}]}),
        ("count_by", {"field": field}),
        ("export", {"filter": [condition]}),
    ):
        with pytest.raises(BadInput, match=f"unknown field customer.{field}"):
            await shop.inside.value(agent, "customer", command, **body)


async def test_hidden_rows_do_not_exist_and_refs_to_them_are_empty(shop: Shop) -> None:
    person = await shop.inside.person(
        Grant(model="customer", commands="*", clear=("first_name", "visits"), rows=(where("visits", lt=10),)),
        Grant(model="order", commands="*", clear="*"),
    )
    root = shop.inside.administrator()
    hidden = next(each["id"] for each in await shop.inside.value(root, "customer", "list") if each["visits"] == 10)

    seen = await shop.inside.value(person, "customer", "search")
    orders = await shop.inside.value(person, "order", "list")
    counted = await shop.inside.value(person, "order", "count_by", field="customer")
    of_hidden = [{"field": "customer", "op": "eq", "value": hidden}]

    assert ([each["visits"] for each in seen["rows"]], seen["total"]) == ([7], 1)
    assert sorted(each["customer"] is None for each in orders) == [False, True]
    assert [each["count"] for each in counted] == [1, 1]
    assert hidden not in json.dumps([orders, counted])
    assert await shop.inside.value(person, "order", "list", filter=of_hidden) == []
    with pytest.raises(BadInput, match="no such record"):
        await shop.inside.value(person, "customer", "get", id=hidden)


async def test_hidden_fields_are_in_no_answer(shop: Shop) -> None:
    person = await shop.inside.person(Grant(model="customer", commands="*", clear=("visits",)))

    (first, *_) = await shop.inside.value(person, "customer", "list")

    assert set(first) == {"id", "revision", "visits"}


async def test_ids_are_not_guessed(shop: Shop) -> None:
    root = shop.inside.administrator()
    ids = {
        name: [each["id"] for each in await shop.inside.value(root, name, "list")] for name in MODELS
    }
    foreign = ids["order"][0]

    assert {len(each) for each in ids["customer"]} == {24}
    assert {len(each) for each in ids["country"]} == {64}
    for wrong in ("", "1", "0" * 24, "f" * 24, foreign, ids["customer"][0].upper(), ids["customer"][0][:-1] + "é"):
        with pytest.raises(BadInput, match="no such record"):
            await shop.inside.value(root, "customer", "get", id=wrong)


async def test_text_that_looks_like_a_token_is_none_for_an_agent(shop: Shop) -> None:
    shop.change("UPDATE country SET title = 'EMAIL_42' WHERE code = 'AT'")
    agent = await shop.inside.agent("scout", *MASKED)

    titles = [each["title"] for each in await shop.inside.value(agent, "country", "list")]

    assert "EMAIL_42" not in titles
    assert len(titles) == 2
