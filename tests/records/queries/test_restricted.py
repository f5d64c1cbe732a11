"""Queries of callers who see a part of the data: no filter, order, total or group reveals what they do not see."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import CALLER, Grant, Model, Number, Ref, Select, Text, where
from countersign.declare.condition import OPERATORS
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.queries import oracle

ME = "b" * 24


class Shop(Model):
    """A shop."""

    title = Text()
    is_open = Select("no", "yes")


class Deal(Model):
    """A sale with fields of every kind of visibility."""

    title = Text(index=True)
    secret = Text(index=True)
    email = Text(personal="EMAIL", index=True)
    margin = Number(index=True)
    stage = Select("new", "won", "lost", index=True)
    region = Select("north", "south")
    shop = Ref("shop")


SEEN = ("title", "email", "stage", "shop")
# The fields that the caller cannot use, each for another reason: masked, hidden or missing.
CLOSED = ("email", "secret", "margin", "region", "nothing", "email__value", "secret__folded", "revision")
OPEN_SHOPS = Grant(model="shop", commands="*", clear="*", rows=(where("is_open", eq="yes"),))


def some_deals(*conditions: Any) -> tuple[Grant, ...]:
    """Return grants to see some fields of the deals that meet the conditions."""
    deal = Grant(
        model="deal", commands="*", clear=("title", "stage", "shop"), masked=("email",), write=SEEN, rows=conditions
    )
    return (deal, OPEN_SHOPS)


@pytest.fixture
async def trade(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Twelve shops, half of them open, and 96 deals."""
    async with inside.open_service(database_url, tmp_path, Shop, Deal) as service:
        root = service.administrator()
        shops = [
            (await service.value(root, "shop", "create", title=f"shop {n}", is_open=("no", "yes")[n % 2]))["id"]
            for n in range(6)
        ]
        for number in range(96):
            deal = {
                "title": f"deal {number % 10}" if number % 7 else None,
                "secret": f"secret {number}",
                "email": f"p{number % 9}@example.com",
                "margin": number - 40,
                "stage": ("new", "won", "lost", None)[number % 4],
                "region": ("north", "south")[number // 2 % 2],
                "shop": [*shops, None][number % 7],
            }
            await service.value(root, "deal", "create", **deal)
        yield service


async def refusal_of(trade: InProcessService, caller: Caller, command: str, **query: object) -> str:
    """Return the error of a query."""
    with pytest.raises(BadInput) as refusal:
        await trade.value(caller, "deal", command, **query)
    return str(refusal.value)


async def visible(
    trade: InProcessService, caller: Caller, hidden_values: dict[str, tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Return the deals that a caller must see, as the caller must see them: deals without the hidden values, with
    closed shops shown as empty."""
    root = trade.administrator()
    shops = {row["id"] for row in await trade.value(root, "shop", "list") if row["is_open"] == "yes"}
    tokens = {row["id"]: row["email"] for row in await trade.value(caller, "deal", "list")}
    visible_deals: list[dict[str, Any]] = []
    for row in await trade.value(root, "deal", "list"):
        if not any(row[name] in values for name, values in hidden_values.items()):
            shop = row["shop"] if row["shop"] in shops else None
            masked_deal = {"id": row["id"], "revision": 1, "title": row["title"], "email": tokens[row["id"]]}
            visible_deals.append({**masked_deal, "stage": row["stage"], "shop": shop})
    return visible_deals


async def test_masked_hidden_and_missing_fields_are_refused_with_the_same_text(trade: InProcessService) -> None:
    person = await trade.person(*some_deals())
    agent = await trade.agent("scout", *some_deals())
    values: dict[str, Any] = {"in": ["p1@example.com"], "is_null": True}

    for caller in (person, agent):
        for name in CLOSED:
            unknown = f"unknown field deal.{name}"
            for operator in OPERATORS:
                condition = {"field": name, "op": operator, "value": values.get(operator, "p1@example.com")}
                for command in ("list", "search", "export"):
                    assert await refusal_of(trade, caller, command, filter=[condition]) == unknown
                assert await refusal_of(trade, caller, "count_by", field="stage", filter=[condition]) == unknown
            # The validity of the value is not checked either.
            misfit = {"field": name, "op": "gt", "value": {"x": 1}}
            assert await refusal_of(trade, caller, "list", filter=[misfit]) == unknown
            for order in ([{"field": name}], [{"field": "title"}, {"field": name, "dir": "desc"}]):
                assert await refusal_of(trade, caller, "list", order=order) == unknown
                assert await refusal_of(trade, caller, "search", order=order) == unknown
            assert await refusal_of(trade, caller, "count_by", field=name) == unknown


async def test_an_administrators_agent_filters_on_everything_but_personal_fields(trade: InProcessService) -> None:
    agent = await trade.agent("scout")

    condition = {"field": "email", "op": "eq", "value": "p1@example.com"}
    assert await refusal_of(trade, agent, "list", filter=[condition]) == "unknown field deal.email"
    result = await trade.value(agent, "deal", "search", filter=[{"field": "secret", "op": "eq", "value": "secret 3"}])
    assert result["total"] == 1


QUERIES: list[dict[str, Any]] = [
    {},
    {"limit": 5},
    {"limit": 5, "offset": 11, "order": [{"field": "title", "dir": "desc"}]},
    {"order": [{"field": "stage"}, {"field": "shop", "dir": "desc"}], "offset": 2},
    {"filter": [{"field": "stage", "op": "in", "value": ["new", "lost"]}], "limit": 7},
    {"filter": [{"field": "stage", "op": "ne", "value": "won"}], "order": [{"field": "shop"}]},
    {"filter": [{"field": "title", "op": "contains", "value": "DEAL 1"}]},
    {"filter": [{"field": "shop", "op": "is_null", "value": True}], "limit": 3},
    {"filter": [{"field": "shop", "op": "is_null", "value": False}, {"field": "stage", "op": "gt", "value": "new"}]},
    {"filter": [{"field": "title", "op": "lte", "value": "deal 3"}], "order": [{"field": "id", "dir": "desc"}]},
]


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        (where("region", eq="north"), {"region": ("south",)}),
        (where("margin", gt=0), {"margin": tuple(range(-40, 1))}),
        (where("stage", in_=["new", "won"]), {"stage": ("lost", None)}),
        (where("secret", contains="SECRET 1"), {"secret": tuple(f"secret {n}" for n in range(96) if str(n)[0] != "1")}),
        (where("email", eq="p3@example.com"), {"email": tuple(f"p{n}@example.com" for n in range(9) if n != 3)}),
    ],
    ids=lambda value: value.field if hasattr(value, "field") else "",
)
async def test_rows_totals_and_groups_are_of_the_rows_a_rule_leaves(
    trade: InProcessService, rule: Any, hidden: dict[str, tuple[Any, ...]]
) -> None:
    caller = await trade.person(*some_deals(rule))
    model = trade.models["deal"]
    visible_deals = await visible(trade, caller, hidden)
    assert 0 < len(visible_deals) < 96

    for query in QUERIES:
        result = await trade.value(caller, "deal", "search", **query)
        assert result["rows"] == oracle.page(model, visible_deals, query), query
        assert result["total"] == len(oracle.filter_records(model, visible_deals, query)), query
        for field in ("stage", "shop"):
            condition = {"filter": query["filter"]} if "filter" in query else {}
            groups = await trade.value(caller, "deal", "count_by", field=field, **condition)
            assert groups == oracle.groups(model, visible_deals, field, condition), query


async def test_several_grants_add_their_rows_up(trade: InProcessService) -> None:
    caller = await trade.person(*some_deals(where("region", eq="north"), where("stage", eq="won")), *some_deals(
        where("margin", gte=50)
    ))  # fmt: skip
    everything = await trade.value(trade.administrator(), "deal", "list")

    result = await trade.value(caller, "deal", "search")

    meant = {
        row["id"] for row in everything if (row["region"], row["stage"]) == ("north", "won") or row["margin"] >= 50
    }
    assert {row["id"] for row in result["rows"]} == meant
    assert result["total"] == len(meant)


async def test_a_rule_about_the_caller_is_filled_in(trade: InProcessService) -> None:
    caller = await trade.person(*some_deals(where("id", eq=CALLER)), user_id=ME)

    assert await trade.value(caller, "deal", "search") == {"rows": [], "total": 0}
    assert await trade.value(caller, "deal", "count_by", field="stage") == []


async def test_a_hidden_record_is_not_found_by_its_id_nor_through_a_ref(trade: InProcessService) -> None:
    caller = await trade.person(*some_deals(where("region", eq="north")))
    root = trade.administrator()
    hidden_deal = (await trade.value(root, "deal", "list", filter=[{"field": "region", "op": "eq", "value": "south"}]))[
        0
    ]
    closed_shop = (await trade.value(root, "shop", "list", filter=[{"field": "is_open", "op": "eq", "value": "no"}]))[0]

    by_id = [{"field": "id", "op": "eq", "value": hidden_deal["id"]}]
    by_shop = [{"field": "shop", "op": "eq", "value": closed_shop["id"]}]

    assert await trade.value(caller, "deal", "search", filter=by_id) == {"rows": [], "total": 0}
    assert await trade.value(caller, "deal", "search", filter=by_shop) == {"rows": [], "total": 0}
    # The condition "not this shop" is true for every visible deal, as if the shop did not exist.
    other_shops = [{"field": "shop", "op": "ne", "value": closed_shop["id"]}]
    assert (await trade.value(caller, "deal", "search", filter=other_shops))["total"] == 48
