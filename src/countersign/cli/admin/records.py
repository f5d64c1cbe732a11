"""`countersign user`, `modules` and `audit`: administration of the records service."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import click

from countersign.cli import configuration, output
from countersign.cli.admin import lock, open_records
from countersign.cli.admin.open_store import prepare_data_directory
from countersign.cli.options import data_option
from countersign.cli.output import Exit, Failure
from countersign.declare.registry import Registry
from countersign.kernel.database import migrate
from countersign.kernel.security.masterkey import master_key
from countersign.records import app, root_secret
from countersign.records import modules as declared
from countersign.records import user_creation as people
from countersign.records.access import invitations as setup
from countersign.records.access.view import Caller, View
from countersign.records.audit import verify
from countersign.records.audit.verify import ChainDefect, ChainReport, DefectKind
from countersign.records.commands import outside_changes
from countersign.records.commands.outside_changes import OutsideCount
from countersign.records.commands.run import Actor, Run
from countersign.records.schema import install
from countersign.records.schema.install import UpgradePlan
from countersign.settings import Settings

CANNOT_APPLY = "cannot upgrade the modules"

CANNOT_VERIFY = "cannot verify the audit"

AUDIT_MEANINGS: dict[DefectKind, str] = {
    "changed": "this entry, or the entry before it, was changed",
    "missing": "this entry is missing",
    "added": "this entry was not written by the service",
    "cut": "this entry and all after it are missing",
    "head": "the head of the lane is missing, or was not written by the service",
}


@click.group()
def user() -> None:
    """People of the records service, who sign in with a user name and a password."""


@user.command("create")
@click.argument("username")
@click.option("--name", help="The name that other people see.")
@click.option("--email", help="The person's e-mail address.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role to give; may be given several times.")
@data_option
@output.json_option
def create_user(
    username: str, *, name: str | None, email: str | None, roles: tuple[str, ...], data: str | None
) -> None:
    """Create the person USERNAME, and print a link with which they can set a password, once and within a day."""

    def new(registry: Registry) -> None:
        people.check_input(registry, username, name, email, roles)

    async def work(service: app.RecordsService) -> tuple[str, str, str]:
        async with service.records.database.transaction() as transaction:
            caller = Caller("person", "", "", "", View({}))
            run = Run(service.engine, caller, transaction, Actor("", request_id="command line"), transaction)
            user_id = await people.add_user(run, username, name, email, roles, None)
            secret = await setup.invite(transaction, user_id)
        is_guessed = open_records.configured_url(service.records.settings) is None
        return user_id, setup.address(service.records, secret), service.records.root_url if is_guessed else ""

    user_id, link, guessed = open_records.run(data, f"cannot create the person {username}", work, validate_new=new)
    output.print_result({"id": user_id, "username": username, "roles": list(roles), "setup_url": link}, link)
    if guessed:
        output.note(f"The link names {guessed}: serve the records there, or first set COUNTERSIGN_RECORDS_URL.")
    output.note(f"Give this link to {username} only: it sets the password, works once, and expires after a day.")


@click.group()
def modules() -> None:
    """Modules of the records service, and the tables of their models."""


@modules.command("list")
@data_option
@output.json_option
def list_modules(data: str | None) -> None:
    """List the modules with their version in the database, their declared version, and whether they are enabled."""
    settings = configuration.load(data=data)
    rows = open_records.run_coroutine(_module_rows(settings), "cannot list the modules")
    if output.wants_json():
        names = ("name", "label", "installed", "declared", "is_on")
        output.print_result({"modules": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    lines_shown = [
        (name, old_version or "-", new_version or "-", "on" if is_on else "off", label)
        for name, label, old_version, new_version, is_on in rows
    ]
    output.table(("module", "in the database", "declared", "switched", "label"), lines_shown)


ModuleRow = tuple[str, str, str | None, str | None, bool]


async def _module_rows(settings: Settings) -> list[ModuleRow]:
    registry = declared.found(declared.module_names(settings.modules))
    async with open_records.TABLES.open_existing(settings) as database:
        is_there = database is not None and await install.is_installed(database)
        versions = (await install.installed(database)).versions if database is not None and is_there else {}
    switched_on = {module.name: module for module in registry.modules}
    names = dict.fromkeys([*switched_on, *sorted(declared.installed_modules()), *versions])
    return [_module_row(name, versions.get(name), switched_on.get(name)) for name in names]


def _module_row(name: str, had: str | None, module: declared.Module | None) -> ModuleRow:
    if module is None:
        return name, "", had, None, False
    return name, module.label, had, module.version, True


@modules.command("plan")
@data_option
@output.json_option
def show_plan(data: str | None) -> None:
    """Show what an upgrade of the tables would do, and what blocks the upgrade. Nothing is changed."""
    settings = configuration.load(data=data)
    _show_plan(open_records.run_coroutine(_plan(settings), "cannot plan the upgrade"))


@modules.command("apply")
@click.option("--destroy", is_flag=True, help="Also run the steps that lose data.")
@click.option("--dry-run", is_flag=True, help="Show what would be done or refused, and change nothing.")
@data_option
@output.json_option
def apply(*, destroy: bool, dry_run: bool, data: str | None) -> None:
    """Show the plan and carry it out. If the command is interrupted, run it again: it continues.

    No server may use the data directory meanwhile. `serve` applies all steps that lose no data.
    """
    settings = configuration.load(data=data)
    if dry_run:
        plan = open_records.run_coroutine(_plan(settings), CANNOT_APPLY)
        _show_plan(plan)
        open_records.run_coroutine(_require_applicable(plan, destroy), CANNOT_APPLY)
        return
    with lock.acquire(Path(settings.data), CANNOT_APPLY):
        plan = open_records.run_coroutine(_plan(settings), CANNOT_APPLY)
        if not output.wants_json():
            _show_plan(plan)
        applied_plan = open_records.run_coroutine(_apply(settings, destroy), CANNOT_APPLY)
    if output.wants_json():
        output.print_result({"applied": applied_plan})
    elif applied_plan:
        output.say(f"Done: {len(applied_plan)} steps.")


async def _require_applicable(plan: UpgradePlan, destroy: bool) -> None:
    plan.require(destroy=destroy)


async def _plan(settings: Settings) -> UpgradePlan:
    registry = declared.found(declared.module_names(settings.modules))
    async with open_records.TABLES.open_existing(settings) as database:
        if database is None:
            return install.from_empty(registry, open_records.dialect_of(settings))
        return await install.plan_upgrade(database, registry)


async def _apply(settings: Settings, destroy: bool) -> list[str]:
    registry = declared.found(declared.module_names(settings.modules))
    await prepare_data_directory(settings)
    master = await asyncio.to_thread(master_key, settings)
    async with open_records.TABLES.open(settings) as database:
        return [step.sentence for step in await install.upgrade(database, registry, master, destroy=destroy)]


def _show_plan(plan: UpgradePlan) -> None:
    steps = [{"what": step.sentence, "loses_data": step.is_destructive} for step in plan.steps]
    output.print_result(
        {"steps": steps, "in_the_way": list(plan.obstacles)},
        "\n".join(f"{'!' if step.is_destructive else ' '} {step.sentence}" for step in plan.steps)
        or "Everything is up to date.",
    )
    if plan.losses:
        output.note(f"Steps with ! lose data ({len(plan.losses)}): they need --destroy. Make a backup first.")
    for obstacle in plan.obstacles:
        output.note(f"Blocked by: {obstacle}")


@click.group()
def audit() -> None:
    """The audit log of the records service, whose entries are linked in chains."""


@audit.command("verify")
@data_option
@output.json_option
def verify_audit(data: str | None) -> None:
    """Check the audit log from its first entry to its last. Exit code 1 if an entry was changed, added or removed."""
    settings = configuration.load(data=data)
    report, outside = open_records.run_coroutine(_verify_audit(settings), CANNOT_VERIFY)
    faults = [
        {"lane": fault.lane, "number": fault.number, "id": fault.id, "what": fault.what} for fault in report.faults
    ]
    lines = "\n".join(_fault_line(fault) for fault in report.faults)
    text = lines or f"The audit is intact: {report.entries} entries."
    value: dict[str, object] = {"ok": report.is_intact, "entries": report.entries, "faults": faults}
    if outside.models:
        value["connected"] = outside._asdict()
        text = f"{text}\n{_coverage(outside)}"
    output.print_result(value, text)
    if not report.is_intact:
        output.note("Another program changed the database. Keep the database unchanged, and keep a backup of it.")
        sys.exit(Exit.FAILED)


def _coverage(outside: OutsideCount) -> str:
    """Describe the changes that the audit does not cover."""
    tables = "table" if outside.models == 1 else "tables"
    changes = "change by other applications was" if outside.changes == 1 else "changes by other applications were"
    text = (
        f"This covers what was done through Countersign. {outside.changes} {changes} recorded, in "
        f"{outside.changed_models} of {outside.models} connected {tables}; there may be others."
    )
    if not outside.interrupted_models:
        return text
    return f"{text} The recording was interrupted for {outside.interrupted_models}: see outside.unwatched in the audit."


async def _verify_audit(settings: Settings) -> tuple[ChainReport, OutsideCount]:
    async with open_records.TABLES.open_existing(settings) as database:
        if database is None or not await install.is_installed(database):
            remedy = "Name the data directory of a records service with --data."
            raise Failure(CANNOT_VERIFY, why="there are no records yet", remedy=remedy, exit_code=Exit.NOT_FOUND)
        master = await asyncio.to_thread(master_key, settings)
        report = await verify.verify(database, await root_secret.secret(database, master))
        outside = OutsideCount(0, 0, 0, 0)
        # The tables of another version may have no list of the connected models.
        with suppress(migrate.SchemaMismatch):
            if not await migrate.pending(database, install.MIGRATIONS):
                outside = await outside_changes.count(database)
        return report, outside


def _fault_line(fault: ChainDefect) -> str:
    id_text = f" (id {fault.id})" if fault.id else ""
    return f"lane {fault.lane}, number {fault.number}{id_text}: {AUDIT_MEANINGS[fault.what]}"
