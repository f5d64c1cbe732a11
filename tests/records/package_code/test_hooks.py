"""Hooks of packages run with the write, in one transaction, and tell agents nothing that they do not know."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from countersign.declare import Grant, Model, Module, Number, Ref, Select, Text, Work, on, where
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands import hooks
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.package_code.calling import outcome, refusal, scout


async def vehicle(service: InProcessService, **values: object) -> str:
    """Create a vehicle and return its id."""
    body = {"plate": "W-1", **values}
    return str((await service.value(service.administrator(), "vehicle", "create", **body))["id"])


async def test_a_hook_refuses_a_write_and_nothing_is_written(service: InProcessService) -> None:
    root = service.administrator()
    ready, broken = await vehicle(service), await vehicle(service, plate="W-2", state="in_repair")
    body = {"driver": "Ada", "first_day": "2026-12-01"}

    create_text = await refusal(service, root, "trip", "create", vehicle=broken, **body)
    created = await service.value(root, "trip", "create", vehicle=ready, **body)
    update_text = await refusal(service, root, "trip", "update", id=created["id"], vehicle=broken)

    assert (create_text, update_text) == ("the vehicle is in repair",) * 2
    assert await service.rows('SELECT vehicle FROM "trip"') == [(ready,)]
    assert len(await service.value(root, "trip", "history", id=created["id"])) == 2


async def test_a_hook_changes_its_record_and_others_within_the_command(service: InProcessService) -> None:
    root, vehicle_id = service.administrator(), await vehicle(service)

    created = await service.value(root, "trip", "create", vehicle=vehicle_id, driver="Ada", first_day="2026-12-01")
    await service.value(root, "trip", "update", id=created["id"], odometer=1234)
    history = await service.value(root, "trip", "history", id=created["id"])

    assert created["last_day"] == "2026-12-01"
    assert (await service.value(root, "vehicle", "get", id=vehicle_id))["odometer"] == 1234
    assert [entry["command"] for entry in history] == ["trip.update", "trip.create", "trip.create"]


async def test_an_agent_that_knows_what_a_hook_reads_is_answered_at_once(service: InProcessService) -> None:
    ready, broken = await vehicle(service), await vehicle(service, plate="W-2", state="in_repair")
    agent, body = await scout(service), {"driver": "Grace", "first_day": "2026-12-01"}

    text = await refusal(service, agent, "trip", "create", vehicle=broken, **body)
    created = await service.value(agent, "trip", "create", vehicle=ready, **body)

    assert text == "the vehicle is in repair"
    assert created["last_day"] == "2026-12-01"


LOG: list[str] = []


class Box(Model):
    """A box whose hooks read a personal value, and make mistakes."""

    title = Text(required=True)
    owner = Text(personal="PERSON")
    weight = Number()
    state = Select("open", "shut", default="open")

    @on("update:weight")
    async def weight_depends_on_the_owner(work: Work) -> None:
        """Refuse heavy boxes of one owner, and shut those of the others."""
        if work.now["owner"] == "Mallory M." and work.now["weight"] == 5:
            work.refuse("this owner may have light boxes only")
        await work.change(state="shut")

    @on("update:title")
    async def title_decides(work: Work) -> None:
        """Do what the title says."""
        title = str(work.now["title"])
        if title == "repeat":
            work.refuse(f"{work.now['owner']} is not welcome")
        if title == "break":
            raise ValueError(str(work.now["owner"]))
        if title == "wait":
            await asyncio.sleep(30)

    @on("delete")
    async def shut_boxes_stay(work: Work) -> None:
        """Refuse to delete a shut box."""
        if work.was["state"] == "shut":
            work.refuse("open the box first")


class First(Model):
    """The first of four models whose hooks write each other."""

    title = Text()

    @on("create")
    async def b_creates_another(work: Work) -> None:
        """Create a record of the same model, which runs no hook again."""
        LOG.append("first.b")
        await work.create("first", title="again")

    @on("create")
    async def a_creates_a_second(work: Work) -> None:
        """Create a record of another model, which runs its hooks."""
        LOG.append("first.a")
        await work.create("second", title=work.now["title"])


class Second(Model):
    """The second of them."""

    title = Text()

    @on("create")
    async def creates_a_third(work: Work) -> None:
        """Create the next one."""
        LOG.append("second")
        if work.now["title"] != "short":
            await work.create("third", title=work.now["title"])


class Third(Model):
    """The third of them."""

    title = Text()

    @on("create")
    async def creates_a_fourth(work: Work) -> None:
        """Create the next one."""
        LOG.append("third")
        await work.create("fourth", title=work.now["title"])


class Fourth(Model):
    """The last of them."""

    title = Text()
    first = Ref("first")

    @on("create")
    async def runs_too_deep(work: Work) -> None:
        """Never run, because hooks are nested three deep."""
        LOG.append("fourth")


async def test_hooks_run_hooks_of_other_models_in_the_order_of_their_names(database_url: str, tmp_path: Path) -> None:
    LOG.clear()
    async with inside.open_service(database_url, tmp_path, First, Second, Third, Fourth) as service:
        root = service.administrator()
        await service.value(root, "first", "create", title="short")
        order, LOG[:] = list(LOG), []
        text = await refusal(service, root, "first", "create", title="long")
        count = await service.rows('SELECT count(*) FROM "second"')

    assert order == ["first.a", "second", "first.b"]
    assert LOG == ["first.a", "second", "third"]
    assert text == "fourth.create is refused: hooks of packages are nested more than 3 deep"
    assert count == [(1,)]


@pytest.mark.parametrize("owner", ["Mallory M.", "Grace"])
async def test_an_agent_proposes_what_depends_on_a_value_that_it_does_not_know(
    database_url: str, tmp_path: Path, owner: str
) -> None:
    async with inside.open_service(database_url, tmp_path, Box) as service:
        agent, root = await scout(service), service.administrator()
        box = await service.value(root, "box", "create", title="a", owner=owner)

        proposals: list[Any] = [
            await outcome(service, agent, "box", "update", id=box["id"], weight=weight) for weight in (1, 5)
        ]

        assert [type(proposal) for proposal in proposals] == [Proposal, Proposal]
        plans = [await service.value(agent, "plan", "get", id=each.plan_id) for each in proposals]
        assert [plan["effects"] for plan in plans] == [[], []]
        assert owner not in str(plans)


async def test_a_person_sees_what_a_hook_changes_and_the_approval_runs_it_again(
    database_url: str, tmp_path: Path
) -> None:
    async with inside.open_service(database_url, tmp_path, Box) as service:
        ada = await service.member()
        agent = await service.caller_of(await service.issue_agent_token(ada))
        box = await service.value(ada, "box", "create", title="a", owner="Grace")
        plan: Any = await outcome(service, agent, "box", "update", id=box["id"], weight=5)

        effects = (await service.value(ada, "plan", "get", id=plan.plan_id))["effects"]
        before = (await service.value(ada, "box", "get", id=box["id"]))["state"]
        await decisions.approve(service.run(ada), service.service.callers, plan.plan_id)
        after = (await service.value(ada, "box", "get", id=box["id"]))["state"]

    assert effects == ["code of the module changes state of the box from open to shut"]
    assert (before, after) == ("open", "shut")


async def test_mistakes_of_a_hook_are_refused_without_its_texts(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "TIME_LIMIT_S", 0.05)
    async with inside.open_service(database_url, tmp_path, Box) as service:
        root = service.administrator()
        box = await service.value(root, "box", "create", title="a", owner="Grace Hopper")
        with capture_logs() as lines:
            texts = [
                await refusal(service, root, "box", "update", id=box["id"], title=title)
                for title in ("repeat", "break", "wait")
            ]

    assert texts == [
        "box.update is refused",
        "box.update failed in the code of a package; the log of the service has details (request)",
        "box.update is refused: the code of a package took more than 0.05 s",
    ]
    assert {line["code"] for line in lines} == {"box.title_decides"}
    assert "Grace" not in str(lines)


async def test_a_hook_refuses_a_deletion(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Box) as service:
        root = service.administrator()
        shut = await service.value(root, "box", "create", title="a", state="shut")
        opened = await service.value(root, "box", "create", title="b")

        text = await refusal(service, root, "box", "delete", id=shut["id"])
        await service.value(root, "box", "delete", id=opened["id"])

        assert text == "open the box first"
        assert await service.rows('SELECT title FROM "box"') == [("a",)]


class Bag(Model):
    """A bag whose hook uses all that a hook can read."""

    title = Text(required=True)
    weight = Number()
    owner = Text(personal="PERSON")

    @on("update:owner")
    async def bag_becomes_heavy(work: Work) -> None:
        """Set the weight, whoever the owner is."""
        await work.change(weight=9)

    @on("create")
    async def bag_reads(work: Work) -> None:
        """Note what the hook reads."""
        titles = [str(each["title"]) async for each in work.each("bag", where("weight", gt=1), limit=2)]
        is_found = await work.find("bag", title="b") is not None
        LOG.append(f"{titles} {await work.count('bag')} {is_found} {sorted(work.caller_roles)} {dict(work.was)}")


async def test_a_hook_reads_records_and_the_roles_of_the_caller(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Bag) as service:
        await service.value(service.administrator(), "bag", "create", title="b", weight=2)
        person = await service.person(Grant(model="bag", commands="*", clear="*", write="*"))
        LOG.clear()
        await service.value(person, "bag", "create", title="c", weight=1)

    assert len(LOG) == 1
    assert LOG[0].startswith("['b'] 2 True ['tester'] {'id': ")


@pytest.mark.parametrize("guess", ["Grace", "Mallory"])
async def test_a_hook_does_not_confirm_the_guess_of_an_agent(database_url: str, tmp_path: Path, guess: str) -> None:
    async with inside.open_service(database_url, tmp_path, Bag) as service:
        bag = await service.value(service.administrator(), "bag", "create", title="b", weight=2, owner="Grace")

        changed = await service.value(await scout(service), "bag", "update", id=bag["id"], owner=guess)

    assert changed["weight"] == 9


def test_hooks_of_a_needed_module_run_first() -> None:
    async def from_outside(work: Work) -> None:
        """Do nothing."""

    box = Module("zebra", version="1", models=(Box,))
    other = Module("apple", version="1", needs=("zebra",), hooks=(on("box.create", "box.update")(from_outside),))

    registry = Registry([base_models.MODULE, other, box])

    names = [hook.name for hook in registry.hooks["box"]]
    assert names == ["shut_boxes_stay", "title_decides", "weight_depends_on_the_owner", "from_outside"]
    assert registry.hooks["box"][-1].events == {"create", "update"}
