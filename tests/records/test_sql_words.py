"""Models and fields may have names that are key words of SQL, in all statements."""

import csv
from pathlib import Path

from countersign.declare import Bool, Date, Model, Move, Number, Ref, Select, Text, Workflow, where
from tests.records import inside

POSITIVE = where("where", gt=0)


class Order(Model, shown_as="group"):
    """A model whose name and fields are key words of SQL."""

    group = Text(required=True, index=True, unique=True)
    select = Select("all", "distinct", "union", index=True)
    where = Number(index=True)
    desc = Text(personal="PERSON")
    primary = Bool(default=False)
    default = Date()
    user = Ref("user")
    references = Ref("order", on_delete="cascade")
    limit = Number(sum_of="values.offset")

    workflow = Workflow("select", check=Move("all", to="distinct", guards=(POSITIVE,)))


class Values(Model, shown_as="id"):
    """A child model with such names."""

    table = Ref("order", required=True, on_delete="cascade")
    offset = Number(default=1)


async def test_every_command_works_on_them(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Order, Values) as service:
        root = await service.member()
        first_order = await service.value(root, "order", "create", group="a", where=1, desc="Ada", user=root.user_id)
        second_order = await service.value(root, "order", "create", group="b", where=2, references=first_order["id"])
        await service.value(root, "values", "create", table=first_order["id"], offset=7)

        assert (await service.value(root, "order", "get", id=first_order["id"]))["limit"] == 7
        changed_order = await service.value(
            root, "order", "update", id=second_order["id"], group="c", select="distinct"
        )
        assert (changed_order["group"], changed_order["select"], changed_order["revision"]) == ("c", "distinct", 2)
        assert (await service.value(root, "order", "check", id=first_order["id"]))["select"] == "distinct"

        conditions = [
            {"field": "group", "op": "contains", "value": "C"},
            {"field": "select", "op": "gt", "value": "all"},
            {"field": "where", "op": "in", "value": [1, 2]},
            {"field": "default", "op": "is_null", "value": True},
            {"field": "references", "op": "eq", "value": first_order["id"]},
            {"field": "primary", "op": "ne", "value": True},
        ]
        result = await service.value(root, "order", "search", filter=conditions, order=[{"field": "desc"}])
        assert (result["total"], [row["id"] for row in result["rows"]]) == (1, [second_order["id"]])
        for name in Order.declared.fields:
            listed_orders = await service.value(root, "order", "list", order=[{"field": name, "dir": "desc"}])
            assert len(listed_orders) == 2


async def test_records_named_by_key_words_are_grouped_exported_imported_and_deleted(
    database_url: str, tmp_path: Path
) -> None:
    async with inside.open_service(database_url, tmp_path, Order, Values) as service:
        root = await service.member()
        created_order = await service.value(root, "order", "create", group="a", user=root.user_id)
        await service.value(root, "order", "create", group="b", references=created_order["id"])
        await service.value(root, "values", "create", table=created_order["id"])

        groups = await service.value(root, "order", "count_by", field="select")
        assert groups == [{"value": "all", "count": 2}]
        text = (await service.value(root, "order", "export", content_type="text/csv"))["text"]
        assert sorted(row["group"] for row in csv.DictReader(text.splitlines())) == ["a", "b"]
        await service.value(root, "order", "import", csv="group,where,desc\nd,3,Grace\n")
        assert len(await service.value(root, "order", "history", id=created_order["id"])) == 1
        await service.value(root, "order", "delete", id=created_order["id"], cascade=True)

        remaining_orders = await service.value(root, "order", "list")
        assert [row["group"] for row in remaining_orders] == ["d"]
        assert await service.value(root, "values", "list") == []


async def test_an_agent_sees_tokens_in_them(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Order, Values) as service:
        created_order = await service.value(service.administrator(), "order", "create", group="a", desc="Ada")
        agent = await service.agent("scout")

        token = (await service.value(agent, "order", "get", id=created_order["id"]))["desc"]
        agents_order = await service.value(agent, "order", "create", group="b", desc=token)

        assert token.startswith("PERSON_")
        assert agents_order["desc"] == token
