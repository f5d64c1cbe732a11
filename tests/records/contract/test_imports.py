"""Import of common CSV files: separators, line ends, names and labels, words for yes and no, dates and amounts."""

from typing import Any

import pytest

from countersign.records.commands.csv_format import escape_formula, escape_formulas, unescape_formula
from tests.records.contract.test_round_trip import HOSTILE
from tests.records.office import Office

LEAD = {"title": "New", "source": "web", "expected_revenue_minor": 123450, "expected_close": "2026-12-31"}


async def import_one(office: Office, who: str, model: str, csv: str, **body: object) -> dict[str, Any]:
    """Import the text, and return the only record that it creates."""
    report = await office.value(who, f"{model}.import", csv=csv, **body)
    assert report["errors"] == []
    return await office.first_record(model, who, id=report["ids"][0])


@pytest.mark.parametrize(
    ("csv", "body"),
    [
        ("title;source;expected_revenue_minor;expected_close\nNew;web;123450;2026-12-31\n", {}),
        ("TITLE\tSource\tExpected Revenue Minor\tEXPECTED_CLOSE\rNew\tWEB\t123450\t2026-12-31\r", {}),
        ("\ufeffTitle,Source,Expected revenue,Expected close\r\n\r\nNew,web,1234.5,2026-12-31\r\n", {}),
        ("sep=;\nTitle;source;expected revenue;expected close\nNew;web;1,234.50;2026-12-31", {}),
        (
            'title;Source;"Expected revenue";Expected close;;\nNew;web;"1.234,50";31.12.2026;;\n',
            {"decimal": ",", "date_order": "dmy"},
        ),
        (
            "title,source,expected_revenue_minor:amount,expected_close\nNew,web,1234.50,12/31/2026",
            {"date_order": "mdy"},
        ),
        (
            "a|b,c,d,e,f\nNew,web,1234.50,2026-12-31,left out\n",
            {"columns": ["title", "source", "expected_revenue_minor:amount", "expected_close", None]},
        ),
        ("title,source,expected_revenue_minor,expected_close,id,revision\n'New,web,123450,2026-12-31,5,7\n", {}),
    ],
)
async def test_every_csv_format_is_read(office: Office, csv: str, body: dict[str, object]) -> None:
    lead = await import_one(office, "alice", "lead", csv, **body)

    assert {name: lead[name] for name in LEAD} == LEAD | {"title": "'New" if "'New" in csv else "New"}


@pytest.mark.parametrize(("cell", "is_active"), [("yes", True), ("No", False), ("TRUE", True), ("0", False)])
async def test_words_for_true_and_false_are_understood(office: Office, cell: str, *, is_active: bool) -> None:
    party = await import_one(office, "alice", "party", f"Name,Active\nNew,{cell}\n")

    assert party["is_active"] is is_active


async def test_a_reference_is_imported_by_the_id_or_the_name_of_its_record(office: Office) -> None:
    party = await office.value("alice", "party.create", name="Straße AG")
    for cell in (party["id"], "Straße AG", "STRASSE ag"):
        lead = await import_one(office, "alice", "lead", f"title,Party,owner\nNew,{cell},bob\n")
        assert lead["party"] == party["id"]
        assert lead["owner"] == (await office.first_record("user", username="bob"))["id"]

    await office.value("alice", "party.create", name="Straße AG")
    for cell, error in (
        ("Straße AG", "names 2 party records: give the id of one"),
        ("Other", "must be the id of a party record"),
    ):
        report = await office.value("alice", "lead.import", csv=f"title,party\nNew,{cell}\n")
        assert [error["error"] for error in report["errors"]] == [f"lead.party {error}"]


async def test_a_name_that_the_caller_does_not_read_names_no_record(office: Office) -> None:
    party = await office.value("alice", "party.create", name="Only One")
    clerk_id = (await office.first_record("role", title="clerk"))["id"]
    await office.value("root", "grant.create", role=clerk_id, model="lead", commands="import")

    by_name = await office.value("bob", "lead.import", csv="title,party\nNew,Only One\n", dry_run=True)
    by_id = await office.value("bob", "lead.import", csv=f"title,party\nNew,{party['id']}\n", dry_run=True)

    assert [error["error"] for error in by_name["errors"]] == ["lead.party must be the id of a party record"]
    assert by_id["errors"] == []


async def test_a_dry_run_names_the_field_of_each_column(office: Office) -> None:
    csv = "Title,Expected revenue,stage,id,Nonsense,tax_id\nx,1,,,,\n"
    dry_run_report = await office.value("alice", "lead.import", csv=csv, dry_run=True)

    fields = ["title", "expected_revenue_minor:amount", "stage", None, None, None]
    assert [column["field"] for column in dry_run_report["columns"]] == fields
    assert [error["row"] for error in dry_run_report["errors"]] == [0, 0]
    assert await office.refusal_of("alice", "lead.import", csv=csv) == "unknown field lead.Nonsense"


@pytest.mark.parametrize(
    ("csv", "body", "error"),
    [
        ("Expected revenue,title\n12,x\n", {"decimal": ";"}, "decimal must be"),
        ("title\nx\n", {"separator": "|"}, "separator must be"),
        ("title\nx\n", {"date_order": "dym"}, "date_order must be"),
        ("title\nx\n", {"columns": ["title", "source"]}, "columns must be an array"),
        ("title\nx\n", {"columns": [{}]}, "unknown field lead."),
        ("title\nx\n", {"columns": ["tax_id"]}, "unknown field lead.tax_id"),
        ("title,Title\nx,y\n", {}, "csv names a field twice"),
        ("id\nx\n", {}, "csv needs a first row"),
        ("title" + "," * 1_000 + "\nx\n", {"dry_run": True}, "csv may have 1000 columns"),
        ("title\nx\n", {"restore": True}, "restore keeps ids"),
    ],
)
async def test_an_unreadable_file_is_refused(office: Office, csv: str, body: dict[str, object], error: str) -> None:
    assert (await office.refusal_of("alice", "lead.import", csv=csv, **body)).startswith(error)


@pytest.mark.parametrize("cell", ["12,50", "1,23.00", "1.2.3", "12.345", "9" * 5000, "1e3", "-", "\u0661"])
async def test_an_amount_in_another_writing_is_an_error_of_its_row(office: Office, cell: str) -> None:
    report = await office.value("alice", "lead.import", csv=f'title,Expected revenue\nx,"{cell}"\n')

    assert [error["row"] for error in report["errors"]] == [1]


async def test_an_agent_restores_nothing(office: Office) -> None:
    agent = await office.agent("root", "*")

    assert (await office.refusal_of(agent, "lead.import", csv="title\nx\n", restore=True)).startswith("restore keeps")


async def test_an_export_has_the_requested_columns_and_form(office: Office) -> None:
    party = await office.value("alice", "party.create", name="=Acme", customer_since="2026-01-31", is_active=False)
    lead = await office.value("alice", "lead.create", title="x", party=party["id"], expected_revenue_minor=-0 + 1205)
    only = [{"field": "id", "op": "eq", "value": lead["id"]}]
    fields = ["title", "party", "expected_revenue_minor", "owner"]
    exported = await office.value("alice", "lead.export", filter=only, fields=fields, form="shown")
    assert exported["text"] == "Title,Party,Expected revenue,Owner\r\nx,'=Acme,12.05,alice\r\n"
    raw = await office.value("alice", "lead.export", filter=only, fields=fields[2:0:-1], separator=";")
    assert raw["text"] == f"expected_revenue_minor;party\r\n1205;{party['id']}\r\n"
    only = [{"field": "id", "op": "eq", "value": party["id"]}]
    german = {"separator": ";", "decimal": ",", "date_order": "dmy", "form": "shown"}
    text = await office.value("alice", "party.export", filter=only, fields=["customer_since", "is_active"], **german)
    assert text["text"] == "Customer since;Active\r\n31.01.2026;no\r\n"
    lines = await office.value("alice", "party.export", filter=only, fields=["id"], content_type="application/x-ndjson")
    assert lines["text"] == f'{{"id":"{party["id"]}"}}\n'
    wrong_bodies: list[dict[str, object]] = [{"fields": ["tax_id"]}, {"fields": [{}]}, {"fields": []}, {"form": "nice"}]
    for body in wrong_bodies:
        assert await office.refusal_of("alice", "party.export", **body)


async def test_a_clerk_exports_no_name_that_is_masked(office: Office) -> None:
    clerk_id = (await office.first_record("role", title="clerk"))["id"]
    await office.value("root", "grant.create", role=clerk_id, model="lead", commands="export")
    rows = (await office.value("bob", "lead.export", fields=["party"], form="shown"))["text"].splitlines()[1:]
    ids = {party["id"] for party in await office.all("party")}

    assert {row for row in rows if row != '""'} <= ids
    assert len(set(rows)) > 5


@pytest.mark.parametrize("text", [*HOSTILE, "", "'", "a\n=b", "a", "it's"])
def test_a_column_of_cells_is_guarded_as_each_cell(text: str) -> None:
    assert list(escape_formulas([None, "a", text])) == [None, "a", escape_formula(text)]
    assert list(escape_formulas([text])) == [escape_formula(text)]


@pytest.mark.parametrize("text", HOSTILE)
def test_an_import_removes_the_guard_against_formulas(text: str) -> None:
    cell = escape_formula(text)

    assert unescape_formula(cell) == text
    assert cell
    assert cell[0] not in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
