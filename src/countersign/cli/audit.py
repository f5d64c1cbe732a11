"""`countersign audit`: whether the records service's audit is as it was written."""

import asyncio
import sys

import click

from countersign.cli import configuration, output, record_store
from countersign.cli.administration import data_option
from countersign.cli.output import Exit, Failure
from countersign.kernel.security.masterkey import master_key
from countersign.records import key
from countersign.records.audit import verify
from countersign.records.audit.verify import ChainDefect, ChainReport, What
from countersign.records.schema import install
from countersign.settings import Settings

DOING = "cannot verify the audit"

MEANINGS: dict[What, str] = {
    "changed": "this entry, or what stood before it, was changed",
    "missing": "this entry is missing",
    "added": "this entry was not written by the service",
    "cut": "this entry and all after it are missing",
    "head": "the head of the lane is missing, or was not written by the service",
}


@click.group()
def audit() -> None:
    """The audit of the records service: what was done, by whom, in chains."""


@audit.command("verify")
@data_option
@output.json_option
def verify_audit(data: str | None) -> None:
    """Read the audit from its first entry to its last; exit code 1 when one was changed, added or removed."""
    settings = configuration.load(data=data)
    report = record_store.settled(_verified(settings), DOING)
    faults = [{"lane": each.lane, "number": each.number, "id": each.id, "what": each.what} for each in report.faults]
    lines = "\n".join(_line(each) for each in report.faults)
    output.answer(
        {"ok": report.is_intact, "entries": report.entries, "faults": faults},
        lines or f"The audit is intact: {report.entries} entries.",
    )
    if not report.is_intact:
        output.note("Somebody wrote to the database past the service. Keep the database as it is, and a backup of it.")
        sys.exit(Exit.FAILED)


async def _verified(settings: Settings) -> ChainReport:
    async with record_store.TABLES.kept(settings) as database:
        if database is None or not await install.is_installed(database):
            remedy = "Name the data directory of a records service with --data."
            raise Failure(DOING, why="there are no records yet", remedy=remedy, exit_code=Exit.NOT_FOUND)
        master = await asyncio.to_thread(master_key, settings)
        return await verify.verify(database, await key.secret(database, master))


def _line(fault: ChainDefect) -> str:
    found = f" (id {fault.id})" if fault.id else ""
    return f"lane {fault.lane}, number {fault.number}{found}: {MEANINGS[fault.what]}"
