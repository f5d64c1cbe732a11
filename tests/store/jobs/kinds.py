"""Types of jobs for tests. Each job writes a row to the table `effect` when its result is committed."""

import asyncio
import os
from typing import Annotated, Any, Literal

import msgspec

from countersign.kernel.database.migrate import in_dialect
from countersign.kernel.database.port import Database, Reader, Transaction
from countersign.kernel.errors import NotFound, Refused
from countersign.store.auth.callers import Caller
from countersign.store.auth.queries import organisation_with_slug
from countersign.store.context import Store
from countersign.store.jobs.job_types import AdmittedJob, AnyJobType, JobContext, JobType, Outcome
from tests.store.world import World

EFFECTS = "CREATE TABLE effect (job_id TEXT NOT NULL, attempt BIGINT NOT NULL)"


class ErrandInput(msgspec.Struct, forbid_unknown_fields=True):
    """The input of an errand: its duration, and whether it succeeds, is refused, fails, or fails while its result is
    committed."""

    org: str
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0
    end: Literal["well", "refused", "broken", "unkept", "once_broken"] = "well"
    size: int = 0
    heeds: bool = True


class ErrandResult(msgspec.Struct):
    """The result of an errand."""

    attempt: int
    left: list[str]


class ErrandRefused(Refused):
    """The errand is refused."""

    status = 422
    code = "too_heavy"
    title = "Too heavy"


async def admit(reader: Reader, caller: Caller, payload: ErrandInput) -> AdmittedJob:
    """Admit callers who may publish in the organisation."""
    org = await organisation_with_slug(reader, payload.org)
    if org is None or org.id not in caller.orgs_allowing("write:releases"):
        raise NotFound("there is no such organisation")
    return AdmittedJob(org.id, payload.size)


async def run(store: Store, work: JobContext[ErrandInput]) -> Outcome:
    """Run the errand in steps of 10 ms, and report the progress."""
    left_names = sorted(path.name for path in work.scratch.iterdir())
    (work.scratch / "pid").write_text(str(os.getpid()))
    steps = round(work.payload.seconds * 100)
    for step in range(steps):
        await asyncio.sleep(0.01)
        if work.payload.heeds:
            await work.progress((step + 1) / (steps + 1))
    if work.payload.end == "refused":
        raise ErrandRefused("nobody can carry that", resolution="Take less.")
    if work.payload.end == "broken" or (work.payload.end == "once_broken" and work.attempt == 1):
        raise ZeroDivisionError("the secret is 42")

    async def commit(transaction: Transaction) -> None:
        await transaction.run("INSERT INTO effect (job_id, attempt) VALUES ($1, $2)", work.job_id, work.attempt)
        if work.payload.end == "unkept":
            raise ZeroDivisionError("the secret is 43")

    return Outcome(ErrandResult(work.attempt, left_names), commit)


TYPES: tuple[AnyJobType, ...] = (
    JobType("errand", ErrandInput, run, admit),
    JobType("inner", ErrandInput, run),
)


async def make_effects(database: Database) -> None:
    """Create the table of effects."""
    async with database.transaction() as transaction:
        await transaction.run(in_dialect(EFFECTS, database.dialect))


async def effects(database: Database) -> list[str]:
    """Return the id of the job of each committed effect."""
    return [row[0] for row in await database.fetch("SELECT job_id FROM effect ORDER BY job_id")]


def errand(**payload: object) -> dict[str, object]:
    """Return the body that requests an errand of north."""
    return {"type": "errand", "payload": {"org": "north", **payload}}


async def ask(world: World, token: str, **payload: object) -> str:
    """Request an errand without waiting for it, and return its id."""
    answer = await world.call("POST", "/jobs", token, json=errand(**payload), headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]
    assert isinstance(job_id, str)
    return job_id


async def wait_for_job(world: World, token: str, job_id: str) -> dict[str, Any]:
    """Return the job after it has ended."""
    async with asyncio.timeout(120):
        while True:
            body: dict[str, Any] = (await world.call("GET", f"/jobs/{job_id}", token)).json()
            if body["finished_at"]:
                return body
            await asyncio.sleep(0.02)
