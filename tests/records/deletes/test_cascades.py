"""Cascading deletions of chains, cycles and many records, and with concurrent writers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Model, Money, Ref, Text, where
from countersign.records.commands import dependents
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService


class Node(Model):
    """Refers to other nodes by refs with every kind of `on_delete`."""

    title = Text()
    parent = Ref("node", on_delete="cascade")
    friend = Ref("node", on_delete="clear")
    boss = Ref("node")
    sum_minor = Money(sum_of="part.amount_minor")


class Part(Model, locked=(where("title", eq="closed"),)):
    """Belongs to a node."""

    title = Text()
    node = Ref("node", on_delete="cascade")
    amount_minor = Money()


@pytest.fixture
async def graph(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service without nodes, once on SQLite and once on PostgreSQL."""
    async with inside.open_service(database_url, tmp_path, Node, Part) as service:
        yield service


async def node(graph: InProcessService, title: str, **refs: object) -> str:
    """Create a node."""
    return str((await graph.value(graph.administrator(), "node", "create", title=title, **refs))["id"])


async def delete(graph: InProcessService, record_id: str, **options: object) -> Any:
    """Delete a node."""
    return await graph.value(graph.administrator(), "node", "delete", id=record_id, **options)


async def titles(graph: InProcessService) -> list[str]:
    """Return the titles of the remaining nodes."""
    return [row[0] for row in await graph.rows("SELECT title FROM node ORDER BY title")]


async def test_a_chain_of_any_length_is_deleted_as_a_whole(graph: InProcessService) -> None:
    first_node = last_node = await node(graph, "0")
    for number in range(1, 40):
        last_node = await node(graph, f"{number}", parent=last_node)

    await delete(graph, first_node, cascade=True)

    assert await titles(graph) == []


async def test_records_that_refer_to_each_other_in_a_circle_are_deleted_together(graph: InProcessService) -> None:
    first_node = await node(graph, "first")
    second_node = await node(graph, "second", parent=first_node)
    third_node = await node(graph, "third", parent=second_node, friend=first_node, boss=first_node)
    await graph.value(graph.administrator(), "node", "update", id=first_node, parent=third_node)

    with pytest.raises(BadInput, match=f"^{dependents.REFUSAL}$"):
        await delete(graph, first_node)
    await delete(graph, first_node, cascade=True)

    assert await titles(graph) == []
    entries = await graph.rows("SELECT changes FROM audit_entry WHERE record_id = $1 ORDER BY number", third_node)
    assert f'"parent":["{second_node}",null]' in entries[-1][0], "the audit has the refs as they were"


async def test_a_record_with_references_only_from_itself_can_be_deleted(graph: InProcessService) -> None:
    lone_node = await node(graph, "alone")
    await graph.value(graph.administrator(), "node", "update", id=lone_node, parent=lone_node, boss=lone_node)

    await delete(graph, lone_node)

    assert await titles(graph) == []


async def test_a_reference_prevents_a_deletion_only_if_its_record_is_kept(graph: InProcessService) -> None:
    first_node = await node(graph, "first")
    child = await node(graph, "child", parent=first_node, boss=first_node)
    stays = await node(graph, "stays", boss=child, friend=first_node)

    with pytest.raises(BadInput, match=f"^{dependents.REFUSAL}$"):
        await delete(graph, first_node, cascade=True)
    assert await titles(graph) == ["child", "first", "stays"]
    await graph.value(graph.administrator(), "node", "update", id=stays, boss=None)
    await delete(graph, first_node, cascade=True)

    assert await titles(graph) == ["stays"]
    assert await graph.rows("SELECT friend FROM node WHERE id = $1", stays) == [(None,)]


async def test_a_locked_record_is_not_deleted_with_its_parent(graph: InProcessService) -> None:
    first_node = await node(graph, "first")
    locked_part = await graph.value(graph.administrator(), "part", "create", node=first_node)
    await graph.value(graph.administrator(), "part", "update", id=locked_part["id"], title="closed")

    with pytest.raises(BadInput, match="locked"):
        await delete(graph, first_node, cascade=True)

    assert await titles(graph) == ["first"]


async def test_a_deletion_of_too_many_records_is_refused_with_their_number(
    graph: InProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_node = await node(graph, "first")
    for number in range(4):
        await node(graph, f"{number}", parent=first_node)
    monkeypatch.setattr(dependents, "MAX_RECORDS", 3)

    with pytest.raises(BadInput, match="more than 3 other records"):
        await delete(graph, first_node, cascade=True)

    assert len(await titles(graph)) == 5
    monkeypatch.setattr(dependents, "MAX_RECORDS", 4)
    await delete(graph, first_node, cascade=True)
    assert await titles(graph) == []


async def test_a_cascade_updates_only_the_totals_of_remaining_records(
    graph: InProcessService,
) -> None:
    first_node = await node(graph, "first")
    for amount in (5, 6):
        await graph.value(graph.administrator(), "part", "create", node=first_node, amount_minor=amount)
    changes_before = await graph.rows("SELECT count(*) FROM record_change")

    await delete(graph, first_node, cascade=True)

    assert await titles(graph) == []
    assert (await graph.rows("SELECT count(*) FROM record_change WHERE record_id = $1", first_node)) == [(0,)]
    assert changes_before != [(0,)]


async def test_a_reference_created_during_a_deletion_never_dangles(graph: InProcessService) -> None:
    for turn in range(6):
        target = await node(graph, f"target {turn}")
        child = asyncio.create_task(node(graph, f"child {turn}", boss=target))
        removed_task = asyncio.create_task(delete(graph, target, cascade=bool(turn % 2)))

        child_result, deletion_result = await asyncio.gather(child, removed_task, return_exceptions=True)

        assert isinstance(child_result, BadInput) != isinstance(deletion_result, BadInput), (
            child_result,
            deletion_result,
        )
    dangling_count = await graph.rows(
        "SELECT count(*) FROM node WHERE boss IS NOT NULL AND boss NOT IN (SELECT id FROM node)"
    )
    assert dangling_count == [(0,)]
