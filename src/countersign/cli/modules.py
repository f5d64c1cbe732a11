"""`countersign modules`: which modules there are, what an upgrade of their tables would do, and doing it."""

import asyncio
from pathlib import Path

import click

from countersign.cli import configuration, lock, output, record_store
from countersign.cli.administration import data_option
from countersign.cli.tables import made_ready
from countersign.kernel.security.masterkey import master_key
from countersign.records import modules as declared
from countersign.records.schema import install
from countersign.records.schema.install import UpgradePlan
from countersign.settings import Settings

APPLYING = "cannot upgrade the modules"


@click.group()
def modules() -> None:
    """Modules of the records service, and the tables of their models."""


@modules.command("list")
@data_option
@output.json_option
def list_modules(data: str | None) -> None:
    """List the modules that are installed here: in the database, declared, switched on or off."""
    settings = configuration.load(data=data)
    rows = record_store.settled(_listed(settings), "cannot list the modules")
    if output.wants_json():
        names = ("name", "label", "installed", "declared", "is_on")
        output.answer({"modules": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    words = [(name, had or "-", has or "-", "on" if on else "off", label) for name, label, had, has, on in rows]
    output.table(("module", "in the database", "declared", "switched", "label"), words)


Row = tuple[str, str, str | None, str | None, bool]


async def _listed(settings: Settings) -> list[Row]:
    registry = declared.found(declared.names(settings.modules))
    async with record_store.TABLES.kept(settings) as database:
        is_there = database is not None and await install.is_installed(database)
        versions = (await install.installed(database)).versions if database is not None and is_there else {}
    switched_on = {module.name: module for module in registry.modules}
    names = dict.fromkeys([*switched_on, *sorted(declared.installed()), *versions])
    return [_row(name, versions.get(name), switched_on.get(name)) for name in names]


def _row(name: str, had: str | None, module: declared.Module | None) -> Row:
    if module is None:
        return name, "", had, None, False
    return name, module.label, had, module.version, True


@modules.command("plan")
@data_option
@output.json_option
def show_plan(data: str | None) -> None:
    """Tell what an upgrade of the tables would do, and what is in its way; nothing is changed."""
    settings = configuration.load(data=data)
    _show(record_store.settled(_planned(settings), "cannot plan the upgrade"))


@modules.command("apply")
@click.option("--destroy", is_flag=True, help="Take the steps, too, that lose data.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done or refused, and change nothing.")
@data_option
@output.json_option
def apply(*, destroy: bool, dry_run: bool, data: str | None) -> None:
    """Show the plan and carry it out; interrupted, it goes on when run again.

    Nothing may serve the data directory meanwhile. `serve` applies by itself what loses nothing.
    """
    settings = configuration.load(data=data)
    if dry_run:
        plan = record_store.settled(_planned(settings), APPLYING)
        _show(plan)
        record_store.settled(_required(plan, destroy), APPLYING)
        return
    with lock.held(Path(settings.data), APPLYING):
        plan = record_store.settled(_planned(settings), APPLYING)
        if not output.wants_json():
            _show(plan)
        taken = record_store.settled(_applied(settings, destroy), APPLYING)
    if output.wants_json():
        output.answer({"applied": taken})
    elif taken:
        output.say(f"Done: {len(taken)} steps.")


async def _required(plan: UpgradePlan, destroy: bool) -> None:
    plan.require(destroy=destroy)


async def _planned(settings: Settings) -> UpgradePlan:
    registry = declared.found(declared.names(settings.modules))
    async with record_store.TABLES.kept(settings) as database:
        if database is None:
            return install.from_empty(registry, record_store.dialect_of(settings))
        return await install.plan(database, registry)


async def _applied(settings: Settings, destroy: bool) -> list[str]:
    registry = declared.found(declared.names(settings.modules))
    await made_ready(settings)
    master = await asyncio.to_thread(master_key, settings)
    async with record_store.TABLES.opened(settings) as database:
        return [step.sentence for step in await install.upgrade(database, registry, master, destroy=destroy)]


def _show(plan: UpgradePlan) -> None:
    steps = [{"what": step.sentence, "loses_data": step.is_destructive} for step in plan.steps]
    output.answer(
        {"steps": steps, "in_the_way": list(plan.obstacles)},
        "\n".join(f"{'!' if step.is_destructive else ' '} {step.sentence}" for step in plan.steps)
        or "Everything is up to date.",
    )
    if plan.losses:
        output.note(f"Steps with ! lose data ({len(plan.losses)}): they need --destroy. Make a backup first.")
    for each in plan.obstacles:
        output.note(f"In the way: {each}")
