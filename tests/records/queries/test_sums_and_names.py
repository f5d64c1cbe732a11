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
    async with inside.open_service(database_url, tmp_path, Owner, Plot, Fence) as service:
        root = service.administrator()
        owners = [(await run_decoded(service, root, "owner.create", name=f"Owner {n}"))["id"] for n in range(2)]
        for number in range(6):
            values = {"area": number * 10 if number else None, "price": number * 50, "sold": f"2026-11-{number + 1:02}"}
            plot = await run_decoded(
                service, root, "plot.create", title=f"Plot {number}", owner=owners[number % 2], **values
            )
            await run_decoded(service, root, "fence.create", title=f"Fence {number}", plot=plot["id"], length=number)
        yield service


async def run_decoded(service: InProcessService, caller: Caller, command: str, /, **body: object) -> Any:
    """Run a command, and return its value as decoded JSON."""
    model, _, name = command.partition(".")
    return msgspec.json.decode(msgspec.json.encode(await service.value(caller, model, name, **body)))


async def surveyor(land: InProcessService) -> Caller:
    """Create a caller who sees only cheap plots, no prices, and the names of owners as placeholder tokens."""
    return await land.person(
        Grant(model="plot", commands="*", clear=("title", "area", "owner", "sold"), rows=(CHEAP,)),
        Grant(model="owner", masked=("name",)),
        Grant(model="fence", commands="*", clear=("title", "plot")),
    )


async def test_sums_cover_the_whole_result_and_not_the_page(land: InProcessService) -> None:
    root = land.administrator()

    search_result = await run_decoded(land, root, "plot.search", sums=["area", "price"], limit=2, offset=1)

    assert (len(search_result["rows"]), search_result["total"]) == (2, 6)
    assert search_result["sums"] == {"area": {"sum": 150, "count": 5}, "price": {"sum": 750, "count": 6}}
    assert "names" not in search_result


async def test_sums_of_nothing_are_zero(land: InProcessService) -> None:
    no_plot = [{"field": "title", "op": "eq", "value": "no such plot"}]

    search_result = await run_decoded(land, land.administrator(), "plot.search", filter=no_plot, sums=["area"])

    assert search_result == {"rows": [], "total": 0, "sums": {"area": {"sum": 0, "count": 0}}}


async def test_a_sum_of_negative_and_large_numbers_is_exact_or_null(land: InProcessService) -> None:
    root = land.administrator()
    for area in (LARGEST, LARGEST, -LARGEST, -3):
        await run_decoded(land, root, "plot.create", title="large", area=area)
    large_plots = [{"field": "title", "op": "eq", "value": "large"}]
    large_positive_plots = [*large_plots, {"field": "area", "op": "gt", "value": 0}]

    assert (await run_decoded(land, root, "plot.search", filter=large_plots, sums=["area"]))["sums"]["area"][
        "sum"
    ] == LARGEST - 3
    assert (await run_decoded(land, root, "plot.search", filter=large_positive_plots, sums=["area"]))["sums"][
        "area"
    ] == {
        "sum": None,
        "count": 2,
    }


async def test_sums_count_only_records_that_the_caller_sees(land: InProcessService) -> None:
    search_result = await run_decoded(land, await surveyor(land), "plot.search", sums=["area"])

    assert (search_result["total"], search_result["sums"]) == (2, {"area": {"sum": 10, "count": 1}})


@pytest.mark.parametrize("field", ["price", "nothing", "owner__value"])
async def test_a_hidden_field_is_unknown_to_sums(land: InProcessService, field: str) -> None:
    with pytest.raises(BadInput) as refusal:
        await run_decoded(land, await surveyor(land), "plot.search", sums=[field])

    assert refusal.value.detail == f"unknown field plot.{field}"


async def test_only_numbers_are_summed_and_only_references_expanded(land: InProcessService) -> None:
    root = land.administrator()
    for body, text in (
        ({"sums": ["title"]}, "plot.title cannot be summed: its kind must be number or money"),
        ({"expand": ["title"]}, "plot.title cannot be expanded: it is not a reference"),
        ({"sums": "area"}, "sums must be an array of at most 10 names of fields"),
        ({"sums": ["area"] * 11}, "sums must be an array of at most 10 names of fields"),
    ):
        with pytest.raises(BadInput) as refusal:
            await run_decoded(land, root, "plot.search", **body)
        assert refusal.value.detail == text


async def test_expand_adds_the_names_of_referenced_records(land: InProcessService) -> None:
    search_result = await run_decoded(land, land.administrator(), "plot.search", expand=["owner"])

    assert {search_result["names"]["owner"][row["owner"]] for row in search_result["rows"]} == {"Owner 0", "Owner 1"}


async def test_masked_names_are_placeholder_tokens(land: InProcessService) -> None:
    search_result = await run_decoded(land, await surveyor(land), "plot.search", expand=["owner"])

    names = list(search_result["names"]["owner"].values())
    assert len(names) == 2
    assert all(name.startswith("PERSON_") for name in names)
    assert "Owner" not in str(search_result)


async def test_a_hidden_reference_is_unknown_to_expand(land: InProcessService) -> None:
    caller = await land.person(Grant(model="plot", clear=("title", "owner")))

    with pytest.raises(BadInput) as refusal:
        await run_decoded(land, caller, "plot.search", expand=["owner"])

    assert refusal.value.detail == "unknown field plot.owner"


async def test_related_lists_the_records_that_refer_to_a_record(land: InProcessService) -> None:
    root = land.administrator()
    owner = (await run_decoded(land, root, "owner.list"))[0]["id"]

    (related_plots,) = await run_decoded(land, root, "owner.related", id=owner, limit=2)

    assert (related_plots["model"], related_plots["field"], related_plots["count"]) == ("plot", "owner", 3)
    assert [item["owner"] for item in related_plots["items"]] == [owner, owner]
    assert related_plots["items"][0]["sold"] > related_plots["items"][1]["sold"]


async def test_related_counts_only_records_that_the_caller_sees(land: InProcessService) -> None:
    caller = await surveyor(land)
    owner = (await run_decoded(land, caller, "owner.list"))[0]["id"]
    plot = (await run_decoded(land, caller, "plot.list"))[0]["id"]

    (plots,) = await run_decoded(land, caller, "owner.related", id=owner)
    (fences,) = await run_decoded(land, caller, "plot.related", id=plot)

    assert plots["count"] == 1
    assert "price" not in plots["items"][0]
    assert fences["names"] == {}
    assert fences["items"][0].keys() == {"id", "revision", "title", "plot"}


async def test_related_refuses_a_hidden_record_like_a_missing_record(land: InProcessService) -> None:
    caller = await surveyor(land)
    hidden_plot_ids = [
        plot["id"] for plot in await run_decoded(land, land.administrator(), "plot.list") if plot["price"] >= 100
    ]

    for record_id in (hidden_plot_ids[0], "0" * 24):
        with pytest.raises(BadInput) as refusal:
            await run_decoded(land, caller, "plot.related", id=record_id)
        assert refusal.value.detail == "no such record"


async def test_models_that_the_caller_cannot_read_are_not_related(land: InProcessService) -> None:
    caller = await land.person(Grant(model="plot", clear=("title",)))
    plot = (await run_decoded(land, caller, "plot.list"))[0]["id"]

    assert await run_decoded(land, caller, "plot.related", id=plot) == []
