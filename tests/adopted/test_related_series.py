"""The commands `related` and `series` over tables of others."""

from typing import Any

import pytest

from countersign.declare import Grant, where
from countersign.kernel.errors import NotFound
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.adopted.shop import MARK, Shop

PERIOD = {"date": "born", "from": "1980-01-01", "to": "2009-12-31", "step": "year"}


async def ids(shop: Shop, model: str) -> list[str]:
    """Return the ids of all records of the model, in the order of their keys."""
    return [each["id"] for each in await shop.inside.value(shop.inside.administrator(), model, "list")]


async def related(shop: Shop, caller: Caller, model: str, record_id: str, **body: object) -> dict[str, Any]:
    """Map the models of referring records to what `related` returns of them."""
    related_records = await shop.inside.value(caller, model, "related", id=record_id, **body)
    return {f"{each['model']}.{each['field']}": each for each in related_records}


async def test_related_records_are_those_that_refer_by_a_foreign_key(shop: Shop) -> None:
    root = shop.inside.administrator()
    austria, japan = await ids(shop, "country")
    ada, bob, zoe = await ids(shop, "customer")
    order, _ = await ids(shop, "order")

    of_austria = await related(shop, root, "country", austria)
    of_order = await related(shop, root, "order", order, limit=1)
    of_zoe = await related(shop, root, "customer", zoe)

    assert {name: (each["count"], [item["id"] for item in each["items"]]) for name, each in of_austria.items()} == {
        "customer.country": (1, [ada])
    }
    assert [each["id"] for each in (await related(shop, root, "country", japan))["customer.country"]["items"]] == [bob]
    assert (of_order["line.order"]["count"], len(of_order["line.order"]["items"])) == (2, 1)
    assert of_zoe["order.customer"]["count"] == 0


async def test_related_records_are_those_that_the_caller_sees(shop: Shop) -> None:
    austria, japan = await ids(shop, "country")
    seen = Grant(model="customer", clear=("country",), masked=("email",), rows=(where("visits", lte=7),))
    agent = await shop.inside.agent("scout", Grant(model="country", clear=("title",)), seen)
    without_ref = await shop.inside.agent("blind", Grant(model="country", clear=("title",)), Grant(model="customer"))

    of_austria = await related(shop, agent, "country", austria)

    assert of_austria["customer.country"]["count"] == 1
    assert of_austria["customer.country"]["items"][0]["email"].startswith("EMAIL_")
    assert (await related(shop, agent, "country", japan))["customer.country"]["count"] == 0
    assert await related(shop, without_ref, "country", austria) == {}


async def test_the_related_records_of_a_suspended_model_are_left_out(shop: Shop) -> None:
    austria, _ = await ids(shop, "country")
    shop.change("ALTER TABLE customer RENAME COLUMN note TO remark")
    await shop.suspensions.check()
    root = shop.suspensions.narrowed(shop.inside.administrator())

    assert await related(shop, root, "country", austria) == {}


async def test_a_series_has_the_values_of_the_rows(shop: Shop) -> None:
    root = shop.inside.administrator()

    counted = await shop.inside.value(root, "customer", "series", **PERIOD)
    summed = await shop.inside.value(root, "customer", "series", **PERIOD, fn="sum", field="visits")
    middle = await shop.inside.value(root, "customer", "series", **PERIOD, fn="median", field="balance_minor")

    assert {each["at"]: each["value"] for each in counted["points"] if each["value"]} == {
        "1985-01-01": 1, "2000-01-01": 1
    }  # fmt: skip
    assert (len(counted["points"]), counted["total"], counted["previous"]["total"]) == (30, 2, 0)
    assert (summed["total"], middle["total"]) == (7, 1234)


@pytest.mark.parametrize(
    ("step", "start"),
    [("week", "1985-12-09"), ("month", "1985-12-01"), ("quarter", "1985-10-01"), ("day", "1985-12-10")],
)
async def test_each_step_begins_on_its_first_day(shop: Shop, step: str, start: str) -> None:
    body = {**PERIOD, "from": "1985-10-01", "to": "1985-12-31", "step": step}

    counted = await shop.inside.value(shop.inside.administrator(), "customer", "series", **body)

    assert [each["at"] for each in counted["points"] if each["value"]] == [start]


async def test_a_series_is_grouped_by_refs_and_selects(shop: Shop) -> None:
    root = shop.inside.administrator()
    austria, _ = await ids(shop, "country")

    by_country = await shop.inside.value(root, "customer", "series", **PERIOD, by="country")
    by_status = await shop.inside.value(root, "customer", "series", **PERIOD, by="status")
    by_active = await shop.inside.value(root, "customer", "series", **PERIOD, by="active", fn="median", field="visits")

    assert [(each["key"], each["total"]) for each in by_country["groups"]] == [(austria, 1), (None, 1)]
    assert by_country["names"] == {austria: "Austria"}
    assert [(each["key"], each["total"]) for each in by_status["groups"]] == [("new", 1), ("other", 1)]
    assert [(each["key"], each["total"]) for each in by_active["groups"]] == [(True, 7)]


async def test_a_series_counts_only_rows_and_fields_that_the_caller_sees(shop: Shop) -> None:
    few = Grant(model="customer", clear=("born", "visits", "country"), rows=(where("visits", gt=7),))
    agent = await shop.inside.agent("scout", few)
    unborn = await shop.inside.agent("blind", Grant(model="customer", clear=("visits",)))

    assert (await shop.inside.value(agent, "customer", "series", **PERIOD))["total"] == 0
    with pytest.raises(BadInput, match="unknown field"):
        await shop.inside.value(unborn, "customer", "series", **PERIOD)
    with pytest.raises(BadInput, match="unknown field"):
        await shop.inside.value(agent, "customer", "series", **PERIOD, fn="sum", field="balance_minor")
    # The caller does not see countries, so the ref does not exist for it.
    with pytest.raises(BadInput, match="unknown field"):
        await shop.inside.value(agent, "customer", "series", **PERIOD, by="country")


async def test_a_model_without_these_commands_has_no_such_address(shop: Shop) -> None:
    listing = await shop.inside.agent("lister", Grant(model="customer", commands=("list",), clear="*"))

    for name, body in (("related", {"id": "0" * 24}), ("series", PERIOD)):
        with pytest.raises(NotFound):
            await shop.inside.value(listing, "customer", name, **body)


async def test_pages_of_a_connected_model_reach_both_commands(shop: Shop) -> None:
    headers = {"Authorization": f"Bearer {await shop.token_of(await shop.inside.member())}"}
    austria, _ = await ids(shop, "country")

    around = await shop.http.post("/api/country/related", json={"id": austria}, headers=headers)
    over_time = await shop.http.post("/api/customer/series", json=PERIOD, headers=headers)

    assert (around.status_code, over_time.status_code) == (200, 200)
    assert MARK not in around.text + over_time.text
