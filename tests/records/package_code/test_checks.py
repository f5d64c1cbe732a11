"""Validators of packages run with every write, answer all reasons at once, and tell nothing that the caller may not
know."""

import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from countersign.declare import Grant, Model, Move, Number, Select, Text, Workflow, check
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from tests.records import inside
from tests.records.inside import InProcessService
from tests.records.package_code.calling import outcome, refusal, scout

DAYS = {"first_day": "2026-12-01", "last_day": "2026-12-02"}


async def trip(service: InProcessService, **values: object) -> dict[str, Any]:
    """Create a vehicle with a trip."""
    root = service.administrator()
    vehicle = await service.value(root, "vehicle", "create", plate="W-1")
    body = {"vehicle": vehicle["id"], "driver": "Ada Byron", **DAYS, **values}
    return dict(await service.value(root, "trip", "create", **body))


async def test_a_write_is_refused_with_the_reasons_of_all_validators(service: InProcessService) -> None:
    root, created = service.administrator(), await trip(service)
    wrong = {"vehicle": created["vehicle"], "driver": "Ada", "licence": "1", "first_day": "2026-12-03"}

    create_text = await refusal(service, root, "trip", "create", **wrong, last_day="2026-12-01")
    update_text = await refusal(service, root, "trip", "update", id=created["id"], last_day="2026-01-01")

    days = "trip.first_day and trip.last_day must be in this order"
    assert create_text == f"{days}; trip.licence must have eight digits"
    assert update_text == days


async def test_rows_of_an_import_are_checked(service: InProcessService) -> None:
    root = service.administrator()

    result = await service.value(root, "vehicle", "import", csv="plate\nW-1\nwrong\n")

    assert result["errors"] == [{"row": 2, "error": "vehicle.plate must be like W-12345X"}]
    assert await service.rows('SELECT count(*) FROM "vehicle"') == [(0,)]


async def test_a_validator_runs_if_one_of_its_fields_is_written_and_one_has_a_value(service: InProcessService) -> None:
    root, created = service.administrator(), await trip(service, licence=None)

    updated = await service.value(root, "trip", "update", id=created["id"], driver="Grace Hopper")
    emptied = await service.value(root, "trip", "update", id=created["id"], licence=None)

    assert (updated["driver"], emptied["licence"]) == ("Grace Hopper", None)


async def test_an_agent_is_refused_at_once_if_it_knows_the_values(service: InProcessService) -> None:
    created = await trip(service)
    agent = await service.agent("scout")

    text = await refusal(service, agent, "trip", "update", id=created["id"], licence="123")
    changed = await service.value(agent, "trip", "update", id=created["id"], licence="12345678")

    assert text == "trip.licence must have eight digits"
    assert changed["licence"].startswith("LICENCE_")


@pytest.mark.parametrize("stored", ["12345678", "older than its validator"])
async def test_an_agent_does_not_learn_whether_the_value_of_a_token_is_valid(
    service: InProcessService, stored: str
) -> None:
    first, agent = await trip(service, licence="12345678"), await scout(service)
    async with service.service.records.database.transaction() as transaction:
        await transaction.run('UPDATE "trip" SET licence = $1', stored)
    second = await service.value(
        service.administrator(), "trip", "create", vehicle=first["vehicle"], driver="Grace", **DAYS
    )
    token = (await service.value(agent, "trip", "get", id=first["id"]))["licence"]

    updated = await outcome(service, agent, "trip", "update", id=second["id"], licence=token)
    created = await outcome(
        service, agent, "trip", "create", vehicle=first["vehicle"], driver="Grace", licence=token, **DAYS
    )

    assert (type(updated), type(created)) == (Proposal, Proposal)


class Shelf(Model):
    """A shelf with validators that make mistakes."""

    title = Text(required=True)
    owner = Text(personal="PERSON")
    height = Number()
    state = Select("empty", "full")

    workflow = Workflow("state", fill=Move("empty", to="full", inputs=("height",)))

    @check("owner")
    def owner_is_repeated(owner: str) -> str | None:
        """Repeat the value, which no validator may do."""
        return f"{owner.upper()} is not welcome" if owner.startswith("Mallory") else None

    @check("title")
    def title_breaks(title: str) -> str | None:
        """Fail for some titles, with an error that contains the title."""
        return str(int(title)) if title.startswith("broken") else None

    @check("height")
    def height_is_slow(height: int) -> str | None:
        """Take longer than a validator may."""
        if height == 1:
            time.sleep(0.02)
        return "must be positive" if height < 0 else None


async def test_a_reason_that_repeats_a_personal_value_is_not_sent(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        with capture_logs() as lines:
            text = await refusal(service, service.administrator(), "shelf", "create", title="a", owner="Mallory M.")

    assert text == "shelf.owner is not valid"
    assert [line["code"] for line in lines] == ["shelf.owner_is_repeated"]
    assert "mallory" not in str(lines).lower()


async def test_an_error_in_a_validator_is_answered_with_a_reference_alone(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        with capture_logs() as lines:
            text = await refusal(service, service.administrator(), "shelf", "create", title="broken by Ada")

    assert text == "shelf.create failed in the code of a package; the log of the service has details (request)"
    assert [(line["code"], line["error"], line["reference"]) for line in lines] == [
        ("shelf.title_breaks", "ValueError", "request")
    ]
    assert "test_checks.py:" in lines[0]["place"]
    assert "Ada" not in str(lines)


async def test_a_slow_validator_is_logged(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        with capture_logs() as lines:
            await service.value(service.administrator(), "shelf", "create", title="a", height=1)

    assert [line["code"] for line in lines] == ["shelf.height_is_slow"]


async def test_actions_are_checked(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        root = service.administrator()
        created = await service.value(root, "shelf", "create", title="a")
        agent = await service.agent("scout")

        texts = [await refusal(service, who, "shelf", "fill", id=created["id"], height=-1) for who in (root, agent)]

        assert texts == ["shelf.height must be positive"] * 2
        assert (await service.value(root, "shelf", "fill", id=created["id"], height=2))["state"] == "full"


async def test_a_person_who_does_not_see_the_value_gets_no_reason(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        root = service.administrator()
        created = await service.value(root, "shelf", "create", title="a", owner="Ada")
        grant = Grant(model="shelf", commands="*", clear=("title",), masked=("owner",), write="*")
        person = await service.person(grant)
        async with service.service.records.database.transaction() as transaction:
            await transaction.run('UPDATE "shelf" SET owner = $1', "Mallory M.")
        token = (await service.value(person, "shelf", "get", id=created["id"]))["owner"]

        text = await refusal(service, person, "shelf", "create", title="b", owner=token)

    assert text == "shelf.create is refused"


async def test_a_plan_fails_if_a_validator_refuses_it_at_the_approval(database_url: str, tmp_path: Path) -> None:
    async with inside.open_service(database_url, tmp_path, Shelf) as service:
        ada = await service.member()
        agent = await service.caller_of(await service.issue_agent_token(ada))
        created = await service.value(ada, "shelf", "create", title="a", owner="Grace")
        second = await service.value(ada, "shelf", "create", title="b")
        async with service.service.records.database.transaction() as transaction:
            await transaction.run('UPDATE "shelf" SET owner = $1 WHERE id = $2', "Mallory M.", created["id"])
        token = (await service.value(agent, "shelf", "get", id=created["id"]))["owner"]
        plan = await outcome(service, agent, "shelf", "update", id=second["id"], owner=token)
        assert isinstance(plan, Proposal)
        with pytest.raises(decisions.NotPending) as ended:
            await decisions.approve(service.run(ada), service.service.callers, plan.plan_id)
        seen = await service.value(agent, "plan", "get", id=plan.plan_id)

    assert ended.value.detail == "plan is failed: shelf.owner is not valid"
    assert (seen["state"], seen["error"]) == ("failed", "refused")
