"""Hooks and effects on trial tell an agent nothing that it does not know, and leave nothing half done."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countersign.declare import Grant, Model, Move, Number, Ref, Select, Text, Work, Workflow, on
from countersign.kernel import clock
from countersign.records.access.view import Caller
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands import hooks
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.package_code.calling import outcome, refusal, scout


def first_letter(owner: str) -> str:
    """Return the initial."""
    return owner[:1]


async def refuse_owners(work: Work) -> None:
    """Refuse the action with a personal value, as no effect should."""
    async for each in work.each("card"):
        work.refuse(f"{each['owner']} has a card")


class Card(Model):
    """A card whose hook reads a computed value."""

    title = Text(required=True)
    owner = Text(personal="PERSON")
    letter = Text(computed=first_letter, personal="INITIAL")
    state = Select("open", "shut")

    workflow = Workflow("state", shut=Move("open", to="shut", needs_approval=True, effect=refuse_owners))

    @on("create")
    async def some_letters_have_no_card(work: Work) -> None:
        """Refuse one initial."""
        if work.now["letter"] == "M" and work.now["title"] == "copy":
            work.refuse("this initial has no card")


class Folder(Model):
    """A folder of pages."""

    title = Text()


class Page(Model):
    """A page that stays."""

    title = Text()
    folder = Ref("folder", on_delete="cascade")

    @on("delete")
    async def pages_stay(work: Work) -> None:
        """Refuse, whatever the page is."""
        work.refuse("pages stay")


def larger(hidden: int, shown: int) -> int:
    """Return the larger number."""
    return max(hidden, shown)


class Scale(Model):
    """A scale that does not go up."""

    hidden = Number(default=5)
    shown = Number(default=0)
    top = Number(computed=larger)
    title = Text()

    @on("update:top")
    async def top_stays(work: Work) -> None:
        """Refuse, whatever the values are."""
        work.refuse("the top stays")

    @on("create")
    async def titles_are_unique(work: Work) -> None:
        """Refuse a second record of one title."""
        if work.now["title"] and await work.count("scale", title=work.now["title"]) > 1:
            work.refuse("there is one")


class Inner(Model):
    """A record that no hook may create."""

    title = Text()

    @on("create")
    async def never(work: Work) -> None:
        """Refuse."""
        work.refuse("never")


class Outer(Model):
    """A record whose hooks ignore a refusal, or take too long."""

    title = Text(required=True)

    @on("create")
    async def ignores_a_refusal(work: Work) -> None:
        """Create a record that is refused, or read until the time is over."""
        with suppress(Exception):
            await work.create("inner", title="a")
        ends_s = clock.monotonic_s() + (2 if work.now["title"] == "slow" else 0)
        while clock.monotonic_s() < ends_s:
            await work.count("outer")


async def limited(service: InProcessService, grant: Grant) -> Caller:
    """Return an agent with a token and this grant alone."""
    token_agent = await scout(service)
    view = (await service.agent("scout", grant)).view
    models = {**view.models, "plan": token_agent.view.models["plan"]}
    return replace(token_agent, view=replace(view, models=models))


@pytest.mark.parametrize("owner", ["Mallory", "Grace"])
async def test_a_value_computed_from_a_token_is_not_known(database_url: str, tmp_path: Path, owner: str) -> None:
    async with inside.open_service(database_url, tmp_path, Card) as service:
        card = await service.value(service.administrator(), "card", "create", title="a", owner=owner)
        agent = await scout(service)
        token = (await service.value(agent, "card", "get", id=card["id"]))["owner"]

        assert isinstance(await outcome(service, agent, "card", "create", title="copy", owner=token), Proposal)


async def test_the_refusal_of_an_effect_is_not_sent_with_its_proposal(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Card) as service:
        card = await service.value(service.administrator(), "card", "create", title="a", owner="Grace")

        assert isinstance(await outcome(service, await scout(service), "card", "shut", id=card["id"]), Proposal)


async def test_a_hook_on_a_hidden_record_refuses_no_proposal(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Folder, Page) as service:
        root = service.administrator()
        folder = await service.value(root, "folder", "create", title="a")
        await service.value(root, "page", "create", folder=folder["id"])
        agent = await limited(service, Grant(model="folder", commands="*", clear="*", write="*"))

        assert isinstance(await outcome(service, agent, "folder", "delete", id=folder["id"], cascade=True), Proposal)


async def test_an_agent_does_not_learn_whether_a_hidden_sum_changes(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Scale) as service:
        root = service.administrator()
        scales = [await service.value(root, "scale", "create", hidden=hidden) for hidden in (5, 9)]
        agent = await limited(service, Grant(model="scale", commands="*", clear=("shown",), write=("shown",)))

        outcomes: list[Any] = [
            await outcome(service, agent, "scale", "update", id=each["id"], shown=7) for each in scales
        ]

        assert [type(each) for each in outcomes] == [Proposal, Proposal]


async def test_an_agent_that_lists_nothing_does_not_learn_what_exists(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Scale) as service:
        await service.value(service.administrator(), "scale", "create", title="a")
        agent = await limited(service, Grant(model="scale", commands=("get", "create"), clear="*", write="*"))

        outcomes = [await outcome(service, agent, "scale", "create", title=title) for title in ("a", "b")]

        assert [type(each) for each in outcomes] == [Proposal, Proposal]


async def test_a_refusal_that_a_hook_ignores_leaves_nothing(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Outer, Inner) as service:
        await service.value(service.administrator(), "outer", "create", title="a")

        assert await service.rows('SELECT count(*) FROM "inner"') == [(0,)]


async def test_a_hook_that_only_reads_is_ended_too(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "TIME_LIMIT_S", 0.05)
    async with inside.open_service(database_url, tmp_path, Outer, Inner) as service:
        text = await refusal(service, service.administrator(), "outer", "create", title="slow")

    assert text == "outer.create is refused: the code of a package took more than 0.05 s"
