"""Exported records can be imported: every shipped model into an empty installation, with equal values."""

import csv
import io
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from countersign.records import app
from countersign.records.access.view import Caller
from countersign.settings import Settings
from tests.records.inside import InProcessService
from tests.records.office import ROOT_URL, settings
from tests.servers.postgres import Cluster

_numbers = count(1)

HOSTILE = (
    "=1+1", "'=quoted", "''", "'", "", "+49 30 1", "-5", "@home", "\tTab", "Zeile\nzwei", 'a "b"; c, d', "\ufeffx",
    "yes", "PERSON_123456", " padded ", "0123456789abcdef01234567", "\u202eabc", "12,50", "\uff1dfull", "\nx", "sep=;",
)  # fmt: skip
"""Texts that a CSV file or a spreadsheet could change."""

MODELS = (
    "user", "role", "user_role", "grant", "setting", "party", "address", "product", "lead", "activity", "invoice",
    "invoice_line", "payment", "ticket",
)  # fmt: skip
"""Every shipped model that can be imported. A model comes after the models to which it refers."""


@dataclass
class ProcessInstallation:
    """An installation in the process of the test, and its administrator."""

    inside: InProcessService
    admin: Caller

    async def run(self, command: str, /, **body: object) -> Any:
        """Run a command as the administrator, and return its value."""
        model, _, name = command.partition(".")
        return await self.inside.value(self.admin, model, name, **body)

    async def exported(self, model: str, **body: object) -> str:
        """Return all records as CSV text."""
        return (await self.run(f"{model}.export", **body))["text"]

    async def values(self, model: str) -> list[dict[str, Any]]:
        """Return all records without their revisions."""
        rows = await self.run(f"{model}.list")
        return [{name: value for name, value in row.items() if name != "revision"} for row in rows]


@pytest.fixture(params=["sqlite", "postgres"])
def both_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Settings]]:
    """The settings of two empty installations on one engine."""
    folders = [str(tmp_path / name) for name in ("one", "two")]
    if request.param == "sqlite":
        yield [settings(folder) for folder in folders]
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    names = [f"round_trip_{next(_numbers)}" for _ in folders]
    yield [settings(folder, cluster.create(name)) for folder, name in zip(folders, names, strict=True)]
    for name in names:
        cluster.drop(name)


@asynccontextmanager
async def open_installation(settings: Settings) -> AsyncGenerator[ProcessInstallation]:
    """Open an installation without records other than its administrator."""
    async with app.open_records(settings, ROOT_URL, is_loopback=True) as service:
        in_process = InProcessService(service)
        yield ProcessInstallation(in_process, await in_process.member())


async def create_records(installation: ProcessInstallation) -> None:
    """Create records of every model in every state, with texts that are difficult to export."""
    run = installation.run
    user = await run("user.create", username="eve", name="=Eve", email="eve@example.org", language="de")
    role = await run("role.create", title="auditor", description="'+", rights="base.unmask")
    await run("user_role.create", user=user["id"], role=role["id"])
    await run("grant.create", role=role["id"], model="lead", commands="get,list", clear="title", rows="[]")
    await run("setting.create", title="approval:lead.win", value='{"n": 2}')
    parties = [
        await run("party.create", name=f"Party {number}", notes=text, is_active=number % 2 == 0, kind=None)
        for number, text in enumerate(HOSTILE)
    ]
    await run(
        "party.update", id=parties[0]["id"], email="a@example.org", tax_id="DE123456789", customer_since="2020-02-29"
    )
    await run("address.create", party=parties[0]["id"], street="-1 St", city="Köln", country="DE", postcode="01099")
    product = await run("product.create", sku="A-1", name="@Thing", unit_price_minor=5)
    for number, text in enumerate(text for text in HOSTILE if text.strip()):
        lead = await run("lead.create", title=text, party=parties[number]["id"], notes=text, source="web", owner=None)
        if number == 0:
            await run("lead.lose", id=lead["id"], lost_reason="=cost")
            finished_activity = await run(
                "activity.create", lead=lead["id"], subject="Call", due="2026-01-31", notes=""
            )
            await run("activity.finish", id=finished_activity["id"])
    await invoices(installation, parties[0]["id"], product["id"])
    ticket = await run("ticket.create", subject="Help", party=parties[1]["id"], priority="urgent", assignee=user["id"])
    await run("ticket.solve", id=ticket["id"], resolution="+done")


async def invoices(installation: ProcessInstallation, party: str, product: str) -> None:
    """Create a draft, a posted, a paid and a cancelled invoice."""
    for state in ("draft", "posted", "paid", "cancelled"):
        invoice = (await installation.run("invoice.create", party=party, due="2026-12-31", notes=state))["id"]
        line = {"invoice": invoice, "product": product, "description": "=Line", "quantity": 3}
        await installation.run("invoice_line.create", **line, unit_price_minor=1250, tax_bp=1900)
        if state != "draft":
            await installation.run("invoice.post", id=invoice)
        if state == "paid":
            open_minor = (await installation.run("invoice.get", id=invoice))["open_minor"]
            await installation.run("payment.create", invoice=invoice, amount_minor=open_minor, reference="'=ref")
            await installation.run("invoice.settle", id=invoice)
        if state == "cancelled":
            await installation.run("invoice.cancel", id=invoice)


async def carry(source: ProcessInstallation, target: ProcessInstallation) -> None:
    """Restore the exported records of the first installation in the second."""
    for model in MODELS:
        # The built-in roles and the people of the two installations have different ids, so records that refer to them
        # are exported in the form for people, which contains names.
        refers_to_roles = model in ("user_role", "grant")
        # Each installation has its own administrator.
        is_not_administrator = [{"field": "username", "op": "ne", "value": "ada"}]
        without_administrator = {"filter": is_not_administrator} if model == "user" else {}
        text = await source.exported(model, **without_administrator, **({"form": "shown"} if refers_to_roles else {}))
        report = await target.run(f"{model}.import", csv=text, restore=True)
        assert not report["errors"], (model, report["errors"][:3], text[:500])
        assert report["created"] + report["unchanged"] == report["rows"]


async def test_every_model_is_exported_and_imported_with_equal_values(both_settings: list[Settings]) -> None:
    async with open_installation(both_settings[0]) as source, open_installation(both_settings[1]) as target:
        await create_records(source)
        importable = {name for name, model in source.inside.models.items() if "import" in model.commands}
        assert importable == set(MODELS)

        await carry(source, target)

        for model in MODELS[5:]:
            assert await target.values(model) == await source.values(model), model
            assert (await source.values(model)) != [], model
            assert csv_values(await target.exported(model)) == csv_values(await source.exported(model))
        for model in ("user", "role", "user_role", "grant", "setting"):
            shown_exports = [
                sorted(without_id(await installation.exported(model, form="shown")))
                for installation in (source, target)
            ]
            assert shown_exports[0] == shown_exports[1], model
        await require_usable_after_restore(source, target)


async def require_usable_after_restore(source: ProcessInstallation, target: ProcessInstallation) -> None:
    """Require that the restored records can be used as in the first installation, and that a second restore changes
    nothing."""
    text = await source.exported("invoice")
    repeated_import = await target.run("invoice.import", csv=text, restore=True)
    assert (repeated_import["created"], repeated_import["unchanged"]) == (0, 4)
    changed_csv = text.replace("2026-12-31", "2026-12-30", 1)
    refused_report = await target.run("invoice.import", csv=changed_csv, restore=True)
    assert [error["error"] for error in refused_report["errors"]] == [
        "the invoice record with this id has other values"
    ]
    draft = next(invoice for invoice in await target.values("invoice") if invoice["state"] == "draft")
    numbers = {invoice["number"] for invoice in await target.values("invoice")}
    posted_invoice = await target.run("invoice.post", id=draft["id"])
    assert posted_invoice["number"] not in numbers
    assert posted_invoice["number"].endswith("-000004")


def csv_values(text: str) -> list[dict[str, str]]:
    """Return the rows without the column `revision`, which counts the changes of a record."""
    return [
        {name: value for name, value in row.items() if name != "revision"} for row in csv.DictReader(io.StringIO(text))
    ]


def without_id(text: str) -> list[str]:
    """Return the rows as text without ids."""
    rows = csv_values(text)
    return [str({name: value for name, value in row.items() if name != "id"}) for row in rows]


async def test_an_export_for_people_can_be_imported_with_equal_values(both_settings: list[Settings]) -> None:
    notation: dict[str, object] = {"separator": ";", "decimal": ",", "date_order": "dmy"}
    async with open_installation(both_settings[0]) as source, open_installation(both_settings[1]) as target:
        await create_records(source)
        await target.run("user.import", csv="username;Name\neve;=Eve\n")
        for model in MODELS[5:]:
            text = await source.exported(model, form="shown", **notation)
            saved_by_spreadsheet = "\ufeff" + text.replace("\r\n", "\r")
            report = await target.run(f"{model}.import", csv=saved_by_spreadsheet, restore=True, **notation)
            assert not report["errors"], (model, report["errors"][:3], text[:500])
        for model in MODELS[5:]:
            exported_rows, imported_rows = await source.values(model), await target.values(model)
            if model == "ticket":
                # The second installation has its own record of eve, so the ids of the assignees differ.
                assert imported_rows[0]["assignee"] == (await target.run("user.list", filter=EVE))[0]["id"]
                exported_rows, imported_rows = (
                    [{**row, "assignee": None} for row in exported_rows],
                    [{**row, "assignee": None} for row in imported_rows],
                )
            assert imported_rows == exported_rows, model


EVE = [{"field": "username", "op": "eq", "value": "eve"}]
