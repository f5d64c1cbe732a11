"""Sums, names of references and related records cover only records that the caller sees."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from countersign.declare import Date, Grant, Model, Number, Ref, Text, where
from countersign.declare.fields.kinds import LARGEST
from countersign.records.access.view import Caller
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService


class Owner(Model, shown_as="name"):
    """An owner of plots."""

    name = Text(personal="PERSON")
    secret = Text()


class Plot(Model):
    """A piece of land."""

    title = Text(required=True)
    area = Number(index=True)
    price = Number()
    sold = Date()
    owner = Ref("owner", on_delete="clear")


class Fence(Model):
    """A fence around a plot."""

    title = Text(required=True)
    plot = Ref("plot", required=True)
    length = Number()


CHEAP = where("price", lt=100)


@pytest.fixture
async def land(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Two owners, six plots with prices from 0 to 250, and a fence for each plot."""
    async with inside.open_service(database_url, tmp_path, Owner, Plot, Fence) as opened:
        root = opened.administrator()
        owners = [(await value(opened, root, "owner.create", name=f"Owner {n}"))["id"] for n in range(2)]
        for number in range(6):
            values = {"area": number * 10 if number else None, "price": number * 50, "sold": f"2026-11-{number + 1:02}"}
            plot = await value(opened, root, "plot.create", title=f"Plot {number}", owner=owners[number % 2], **values)
            await value(opened, root, "fence.create", title=f"Fence {number}", plot=plot["id"], length=number)
        yield opened


async def value(land: InProcessService, caller: Caller, command: str, /, **body: object) -> Any:
    """Run a command, and return its value as decoded JSON."""
    model, _, name = command.partition(".")
    return msgspec.json.decode(msgspec.json.encode(await land.value(caller, model, name, **body)))


async def surveyor(land: InProcessService) -> Caller:
    """A caller who sees cheap plots without their price, and owners as tokens."""
    return await land.person(
        Grant(model="plot", commands="*", clear=("title", "area", "owner", "sold"), rows=(CHEAP,)),
        Grant(model="owner", masked=("name",)),
        Grant(model="fence", commands="*", clear=("title", "plot")),
    )


async def test_sums_cover_the_whole_result_and_not_the_page(land: InProcessService) -> None:
    root = land.administrator()

    found = await value(land, root, "plot.search", sums=["area", "price"], limit=2, offset=1)

    assert (len(found["rows"]), found["total"]) == (2, 6)
    assert found["sums"] == {"area": {"sum": 150, "count": 5}, "price": {"sum": 750, "count": 6}}
    assert "names" not in found


async def test_sums_of_nothing_are_zero(land: InProcessService) -> None:
    nothing = [{"field": "title", "op": "eq", "value": "no such plot"}]

    found = await value(land, land.administrator(), "plot.search", filter=nothing, sums=["area"])

    assert found == {"rows": [], "total": 0, "sums": {"area": {"sum": 0, "count": 0}}}


async def test_a_sum_of_negative_and_large_numbers_is_exact_or_null(land: InProcessService) -> None:
    root = land.administrator()
    for area in (LARGEST, LARGEST, -LARGEST, -3):
        await value(land, root, "plot.create", title="large", area=area)
    large = [{"field": "title", "op": "eq", "value": "large"}]
    above = [*large, {"field": "area", "op": "gt", "value": 0}]

    assert (await value(land, root, "plot.search", filter=large, sums=["area"]))["sums"]["area"]["sum"] == LARGEST - 3
    assert (await value(land, root, "plot.search", filter=above, sums=["area"]))["sums"]["area"] == {
        "sum": None,
        "count": 2,
    }


async def test_sums_count_only_records_that_the_caller_sees(land: InProcessService) -> None:
    found = await value(land, await surveyor(land), "plot.search", sums=["area"])

    assert (found["total"], found["sums"]) == (2, {"area": {"sum": 10, "count": 1}})


@pytest.mark.parametrize("field", ["price", "nothing", "owner__value"])
async def test_a_hidden_field_is_unknown_to_sums(land: InProcessService, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        await value(land, await surveyor(land), "plot.search", sums=[field])

    assert refused.value.detail == f"unknown field plot.{field}"


async def test_only_numbers_are_summed_and_only_references_expanded(land: InProcessService) -> None:
    root = land.administrator()
    for body, text in (
        ({"sums": ["title"]}, "plot.title cannot be summed: its kind must be number or money"),
        ({"expand": ["title"]}, "plot.title cannot be expanded: it is not a reference"),
        ({"sums": "area"}, "sums must be an array of at most 10 names of fields"),
        ({"sums": ["area"] * 11}, "sums must be an array of at most 10 names of fields"),
    ):
        with pytest.raises(BadInput) as refused:
            await value(land, root, "plot.search", **body)
        assert refused.value.detail == text


async def test_expand_answers_the_names_of_references(land: InProcessService) -> None:
    found = await value(land, land.administrator(), "plot.search", expand=["owner"])

    assert {found["names"]["owner"][row["owner"]] for row in found["rows"]} == {"Owner 0", "Owner 1"}


async def test_names_are_placeholder_tokens_where_they_are_masked(land: InProcessService) -> None:
    found = await value(land, await surveyor(land), "plot.search", expand=["owner"])

    names = list(found["names"]["owner"].values())
    assert len(names) == 2
    assert all(name.startswith("PERSON_") for name in names)
    assert "Owner" not in str(found)


async def test_a_hidden_reference_is_unknown_to_expand(land: InProcessService) -> None:
    blind = await land.person(Grant(model="plot", clear=("title", "owner")))

    with pytest.raises(BadInput) as refused:
        await value(land, blind, "plot.search", expand=["owner"])

    assert refused.value.detail == "unknown field plot.owner"


async def test_related_answers_the_records_that_refer_to_one(land: InProcessService) -> None:
    root = land.administrator()
    owner = (await value(land, root, "owner.list"))[0]["id"]

    (found,) = await value(land, root, "owner.related", id=owner, limit=2)

    assert (found["model"], found["field"], found["count"]) == ("plot", "owner", 3)
    assert [item["owner"] for item in found["items"]] == [owner, owner]
    assert found["items"][0]["sold"] > found["items"][1]["sold"]


async def test_related_counts_only_records_that_the_caller_sees(land: InProcessService) -> None:
    caller = await surveyor(land)
    owner = (await value(land, caller, "owner.list"))[0]["id"]
    plot = (await value(land, caller, "plot.list"))[0]["id"]

    (plots,) = await value(land, caller, "owner.related", id=owner)
    (fences,) = await value(land, caller, "plot.related", id=plot)

    assert plots["count"] == 1
    assert "price" not in plots["items"][0]
    assert fences["names"] == {}
    assert fences["items"][0].keys() == {"id", "revision", "title", "plot"}


async def test_related_of_a_hidden_record_is_refused_like_a_missing_one(land: InProcessService) -> None:
    caller = await surveyor(land)
    dear = [plot["id"] for plot in await value(land, land.administrator(), "plot.list") if plot["price"] >= 100]

    for record_id in (dear[0], "0" * 24):
        with pytest.raises(BadInput) as refused:
            await value(land, caller, "plot.related", id=record_id)
        assert refused.value.detail == "no such record"


async def test_models_that_the_caller_cannot_read_are_not_related(land: InProcessService) -> None:
    caller = await land.person(Grant(model="plot", clear=("title",)))
    plot = (await value(land, caller, "plot.list"))[0]["id"]

    assert await value(land, caller, "plot.related", id=plot) == []
