"""The generated commands, states and effects of the API document, and the additions of the decisions document."""

import asyncio

import pytest

from tests.records.office import Office


async def test_get_answers_the_record_of_the_id(office: Office) -> None:
    lead = (await office.all("lead", "alice"))[5]

    assert await office.value("alice", "lead.get", id=lead["id"]) == lead


@pytest.mark.parametrize("body", [{}, {"id": None}, {"id": 5}, {"id": "x", "more": 1}, {"id": ["x"]}])
async def test_get_refuses_another_input(office: Office, body: dict[str, object]) -> None:
    await office.refusal_of("alice", "lead.get", **body)


async def test_get_of_a_missing_id_is_400(office: Office) -> None:
    for record_id in ("", "x", "0" * 24, "' OR 1=1 --"):
        assert await office.refusal_of("alice", "lead.get", id=record_id) == "no such record"


async def test_list_without_a_query_answers_every_record(office: Office) -> None:
    assert len(await office.value("alice", "party.list")) == 200


async def test_create_answers_the_new_record_with_its_id(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="New roof")

    assert lead["id"]
    assert (lead["title"], lead["stage"], lead["revision"]) == ("New roof", "new", 1)
    assert await office.value("alice", "lead.get", id=lead["id"]) == lead


async def test_a_lead_requires_only_its_title(office: Office) -> None:
    assert await office.refusal_of("alice", "lead.create") == "lead.title is required"
    assert await office.refusal_of("alice", "lead.create", source="web") == "lead.title is required"


@pytest.mark.parametrize("key", ["titel", "revision", "id", "__proto__", "title.x", "lead.title", "$where"])
async def test_create_refuses_an_unknown_key_by_its_name(office: Office, key: str) -> None:
    assert key in await office.refusal_of("alice", "lead.create", title="x", **{key: "y"})


async def test_create_refuses_read_only_fields(office: Office) -> None:
    party = (await office.first_record("party"))["id"]
    for field, value in (("number", "2026-000001"), ("total_minor", 5), ("issued", "2026-01-01")):
        assert f"invoice.{field}" in await office.refusal_of("carol", "invoice.create", party=party, **{field: value})


async def test_a_governed_field_starts_at_its_first_option(office: Office) -> None:
    assert (await office.value("alice", "lead.create", title="x", stage="new"))["stage"] == "new"
    assert "lead.stage" in await office.refusal_of("alice", "lead.create", title="x", stage="won")


async def test_update_answers_the_updated_record(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x", source="web")

    changed_lead = await office.value("alice", "lead.update", id=lead["id"], title="y")

    assert changed_lead == {**lead, "title": "y", "revision": 2}


async def test_an_update_that_changes_nothing_counts_no_revision(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    assert await office.value("alice", "lead.update", id=lead["id"], title="x") == lead
    assert await office.value("alice", "lead.update", id=lead["id"]) == lead


async def test_an_update_of_another_revision_is_refused(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")
    await office.value("alice", "lead.update", id=lead["id"], title="y", revision=1)

    for command, other_fields in (("update", {"title": "z"}), ("delete", {}), ("qualify", {})):
        reason = await office.refusal_of("alice", f"lead.{command}", id=lead["id"], revision=1, **other_fields)
        assert reason == "record has changed"
    assert (await office.value("alice", "lead.qualify", id=lead["id"], revision=2))["revision"] == 3


@pytest.mark.parametrize("revision", ["1", 1.0, None, 0, -1, True])
async def test_a_malformed_revision_is_400(office: Office, revision: object) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    await office.refusal_of("alice", "lead.update", id=lead["id"], title="y", revision=revision)


async def test_two_updates_at_once_never_lose_a_field(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    await asyncio.gather(
        office.value("alice", "lead.update", id=lead["id"], title="y"),
        office.value("alice", "lead.update", id=lead["id"], source="fair"),
        office.value("alice", "lead.update", id=lead["id"], expected_revenue_minor=7),
    )

    now_lead = await office.value("alice", "lead.get", id=lead["id"])
    assert (now_lead["title"], now_lead["source"], now_lead["expected_revenue_minor"], now_lead["revision"]) == (
        "y",
        "fair",
        7,
        4,
    )


async def test_the_second_update_of_one_revision_is_refused(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    answers = await asyncio.gather(
        *(office.call("alice", "lead.update", {"id": lead["id"], "title": f"{n}", "revision": 1}) for n in range(5))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400, 400]


async def test_update_of_a_governed_field_runs_the_matching_action(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    moved_lead = await office.value("alice", "lead.update", id=lead["id"], stage="qualified")

    assert moved_lead["stage"] == "qualified"
    story = await office.value("alice", "lead.history", id=lead["id"])
    assert "lead.qualify" in str(story)
    assert "lead.stage" in await office.refusal_of("alice", "lead.update", id=lead["id"], stage="new")


async def test_update_of_a_governed_field_keeps_the_actions_guards_and_inputs(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    assert "lost_reason" in await office.refusal_of("alice", "lead.update", id=lead["id"], stage="lost")
    moved_lead = await office.value("alice", "lead.update", id=lead["id"], stage="lost", lost_reason="price", title="z")
    assert (moved_lead["stage"], moved_lead["lost_reason"], moved_lead["title"]) == ("lost", "price", "z")


async def test_delete_answers_the_id(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    assert await office.value("alice", "lead.delete", id=lead["id"]) == {"id": lead["id"]}
    assert await office.refusal_of("alice", "lead.get", id=lead["id"]) == "no such record"


async def test_delete_is_refused_while_another_record_refers_to_it(office: Office) -> None:
    invoice = await office.first_record("invoice")

    for options in ({}, {"cascade": False}, {"cascade": True}):
        reason = await office.refusal_of("root", "party.delete", id=invoice["party"], **options)
        assert reason == "another record refers to this one"
    assert (await office.value("root", "party.get", id=invoice["party"]))["id"] == invoice["party"]


@pytest.mark.parametrize("cascade", ["true", 1, None, "yes"])
async def test_cascade_is_true_or_false(office: Office, cascade: object) -> None:
    lead = await office.value("alice", "lead.create", title="x")

    assert await office.refusal_of("alice", "lead.delete", id=lead["id"], cascade=cascade) == (
        "cascade must be true or false"
    )


async def test_delete_with_cascade_deletes_dependent_records_and_empties_other_refs(office: Office) -> None:
    party = await office.value("root", "party.create", name="Gone Ltd")
    address = await office.value(
        "root", "address.create", party=party["id"], street="1 Road", city="Graz", country="AT"
    )
    lead = await office.value("root", "lead.create", title="x", party=party["id"])

    assert await office.refusal_of("root", "party.delete", id=party["id"]) == "another record refers to this one"
    assert await office.value("root", "party.delete", id=party["id"], cascade=True) == {"id": party["id"]}

    assert await office.refusal_of("root", "address.get", id=address["id"]) == "no such record"
    assert (await office.value("root", "lead.get", id=lead["id"]))["party"] is None


async def test_lead_stage_new_is_moved_to_qualified_by_lead_qualify(office: Office) -> None:
    lead = await office.first_record("lead", stage="new")

    assert (await office.value("alice", "lead.qualify", id=lead["id"]))["stage"] == "qualified"
    reason = await office.refusal_of("alice", "lead.qualify", id=lead["id"])
    assert reason == "lead.qualify is not allowed in this state: stage is qualified"


async def test_lead_qualify_takes_only_the_id(office: Office) -> None:
    lead = await office.first_record("lead", stage="new")

    assert "title" in await office.refusal_of("alice", "lead.qualify", id=lead["id"], title="y")


async def test_lead_convert_links_the_party_of_its_contact(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x", contact_name="Ada L", contact_email="ada@new.example")
    same_lead = await office.value(
        "alice", "lead.create", title="y", contact_name="Ada L", contact_email="ada@new.example"
    )

    first_conversion = await office.value("alice", "lead.convert", id=lead["id"])
    second_conversion = await office.value("alice", "lead.convert", id=same_lead["id"])

    assert first_conversion["party"] == second_conversion["party"]
    party = await office.value("alice", "party.get", id=first_conversion["party"])
    assert (party["name"], party["email"]) == ("Ada L", "ada@new.example")


async def test_an_invoice_adds_up_its_lines_and_is_locked_once_posted(office: Office) -> None:
    party = (await office.first_record("party"))["id"]
    invoice = (await office.value("carol", "invoice.create", party=party))["id"]
    assert "line" in await office.refusal_of("carol", "invoice.post", id=invoice)
    line = {"invoice": invoice, "description": "Work", "quantity": 3, "unit_price_minor": 333, "tax_bp": 1900}
    first_line = await office.value("carol", "invoice_line.create", **line)
    await office.value("carol", "invoice_line.create", **{**line, "quantity": 1, "unit_price_minor": 1, "tax_bp": 700})

    posted_invoice = await office.value("carol", "invoice.post", id=invoice)

    assert (posted_invoice["net_minor"], posted_invoice["tax_minor"], posted_invoice["total_minor"]) == (
        1000,
        190,
        1190,
    )
    assert posted_invoice["number"].endswith("-000226")
    for command, body in (
        ("invoice.update", {"id": invoice, "due": "2027-01-01"}),
        ("invoice_line.update", {"id": first_line["id"], "quantity": 4}),
        ("invoice_line.delete", {"id": first_line["id"]}),
        ("invoice_line.create", line),
        ("invoice.delete", {"id": invoice}),
    ):
        assert (await office.call("carol", command, body)).status_code == 400, command
    await office.value("carol", "payment.create", invoice=invoice, amount_minor=1190)
    assert (await office.value("carol", "invoice.settle", id=invoice))["state"] == "paid"


async def test_denied_lists_every_hidden_field_and_no_masked_field(office: Office) -> None:
    for command in ("party.list", "party.search"):
        assert await office.denied("bob", command, limit=1) == ["party.tax_id"]
    assert await office.denied("carol", "party.list", limit=1) == []
    assert await office.denied("bob", "party.list", filter=[{"field": "id", "op": "eq", "value": "x"}]) == [
        "party.tax_id"
    ]


async def test_fields_the_caller_may_not_see_are_unknown_keys(office: Office) -> None:
    party = (await office.first_record("party"))["id"]

    hidden_refusal = await office.refusal_of("alice", "party.update", id=party, tax_id="x")
    unknown = await office.refusal_of("alice", "party.update", id=party, tax_ix="x")

    assert hidden_refusal.replace("tax_id", "?") == unknown.replace("tax_ix", "?")


async def test_export_returns_text_or_streams_the_format_of_the_accept_header(office: Office) -> None:
    value = await office.value("alice", "lead.export", filter=[{"field": "stage", "op": "eq", "value": "new"}])
    assert set(value) == {"content_type", "text"}
    assert len(value["text"].splitlines()) >= 101

    for media_type in ("text/csv", "application/x-ndjson"):
        headers = {**office.headers("alice"), "Accept": media_type}
        answer = await office.http.post("/api/lead/export", json={}, headers=headers)
        assert answer.headers["content-type"].startswith(media_type)
        assert len(answer.text.splitlines()) >= 500


async def test_import_shows_errors_by_row_and_writes_all_or_nothing(office: Office) -> None:
    valid_csv = "title,source\nOne,web\nTwo,\n"
    invalid_csv = "title,source\nThree,web\n,fair\nFour,nowhere\n"

    dry_run_report = await office.value("alice", "lead.import", csv=valid_csv, dry_run=True)
    assert not dry_run_report["errors"]
    assert len(await office.all("lead", "alice")) == 500
    refusal_report = await office.value("alice", "lead.import", csv=invalid_csv)
    assert [error["row"] for error in refusal_report["errors"]] == [2, 3]
    assert len(await office.all("lead", "alice")) == 500
    await office.value("alice", "lead.import", csv=valid_csv)
    assert len(await office.all("lead", "alice")) == 502


async def test_history_shows_the_commands_on_a_record(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")
    await office.value("alice", "lead.update", id=lead["id"], title="y")

    story = await office.value("alice", "lead.history", id=lead["id"])

    assert [entry["command"] for entry in story] == ["lead.update", "lead.create"]


async def test_count_by_groups_and_counts(office: Office) -> None:
    counts = await office.value("alice", "lead.count_by", field="stage")

    assert str(counts).count("100") == 5
    assert await office.refusal_of("alice", "lead.count_by", field="contact_name")
    assert await office.refusal_of("bob", "lead.count_by", field="nothing") == "unknown field lead.nothing"
