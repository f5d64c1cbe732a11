"""Leak channels through records, refs, refusals and workflows."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from countersign.declare import BadValue
from countersign.kernel import ids
from countersign.records import dispatch, rest_handlers
from countersign.records.access import visibility
from countersign.records.commands import crud, dependents, mask_output, unmask_input
from countersign.records.commands.errors import BadInput
from tests.records.leaks.channel import assert_same_response, channel, create_dan, replace_defence
from tests.records.office import Office
from tests.records.worlds import leaking


def _show_database_errors(patch: pytest.MonkeyPatch) -> None:
    class NeverRaised(Exception):
        """An error that is never raised."""

    replace_defence(patch, dispatch, "ConstraintViolation", NeverRaised)


@channel(11, _show_database_errors)
async def l11(office: Office) -> None:
    """Errors of the database are reported in the words of the service."""
    from countersign.records.commands import record_writer

    async def quicker(*arguments: object, **options: object) -> None:
        """Write the same value in another transaction between the check and the write."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_writer, "_require_unique", quicker)
        sku = (await office.first_record("product"))["sku"]
        answer = await office.call("carol", "product.create", {"sku": sku, "name": "x", "unit_price_minor": 1})
    assert answer.status_code == 400, answer.text
    assert not [word for word in ("UNIQUE", "constraint", "product_", sku) if word in answer.text]


def _echo_values(patch: pytest.MonkeyPatch) -> None:
    _append_to_refusal(patch, lambda meanings: ", ".join(meanings.values()))


def _append_to_refusal(patch: pytest.MonkeyPatch, added_text: Callable[[Mapping[str, str]], str]) -> None:
    """Make the refusal of a text that is too long end with words about the values of its tokens."""
    original = unmask_input.require_fitting

    def require_fitting(
        field: Any, text: str, known_values: Any, meanings: Mapping[str, str], long_labels: Any
    ) -> None:
        try:
            original(field, text, known_values, meanings, long_labels)
        except BadValue as error:
            raise BadValue(f"{error}: {added_text(meanings)}") from error

    replace_defence(patch, unmask_input, "require_fitting", require_fitting)


async def _refusal_of_long_text(office: Office) -> tuple[str, str, str]:
    """Return the refusal of a text whose tokens have values that are too long, the token, and the name in clear."""
    agent = await office.agent("alice")
    lead = (await office.value(agent, "lead.list", limit=1))[0]
    clear_name = (await office.value("alice", "lead.get", id=lead["id"]))["contact_name"]
    text = " ".join([lead["contact_name"]] * 200)
    return await office.refusal_of(agent, "lead.update", id=lead["id"], contact_name=text), text, clear_name


@channel(12, _echo_values)
async def l12(office: Office) -> None:
    """An error never contains the value of a token."""
    refusal, _, clear_name = await _refusal_of_long_text(office)
    assert clear_name not in refusal


def _reveal_lengths(patch: pytest.MonkeyPatch) -> None:
    _append_to_refusal(patch, lambda meanings: str(200 * len(next(iter(meanings.values()))) + 199))


@channel(40, _reveal_lengths)
async def l40(office: Office) -> None:
    """The error of a limit on the values of tokens does not reveal their length."""
    refusal, _, clear_name = await _refusal_of_long_text(office)
    assert str(200 * len(clear_name) + 199) not in refusal
    assert "1000" in refusal.replace(",", "")


def _reveal_forbidden_models(patch: pytest.MonkeyPatch) -> None:
    original = dispatch.require_command

    def require_command(caller: Any, model: str, name: str) -> Any:
        if model in ("invoice", "lead") and model not in caller.view.models:
            raise BadInput("you may not use this")
        return original(caller, model, name)

    replace_defence(patch, dispatch, "require_command", require_command)
    replace_defence(patch, rest_handlers, "require_command", require_command)


@channel(13, _reveal_forbidden_models)
async def l13(office: Office) -> None:
    """Unknown, hidden and forbidden models have the same 404."""
    agent = await office.agent("bob", "party.get")
    calls = [("bob", "invoice.get"), ("bob", "nothing.get"), ("bob", "lead.delete"), (agent, "lead.get")]
    assert_same_response(*[await office.call(who, command, {"id": "x"}) for who, command in calls])


@channel(14, leaking.hidden_records_can_be_changed)
async def l14(office: Office) -> None:
    """For every command, a record that a row condition hides is equal to a missing record."""
    who = await create_dan(office)
    hidden_id = (await office.first_record("lead", stage="qualified"))["id"]
    for command, body in (("get", {}), ("update", {"title": "x"}), ("delete", {}), ("propose", {}), ("history", {})):
        assert_same_response(
            *[
                await office.call(who, f"lead.{command}", {"id": record_id, **body})
                for record_id in (hidden_id, "0" * 24)
            ]
        )


def _use_sequential_ids(patch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10**9))
    replace_defence(patch, ids, "new_record_id", lambda: f"{next(numbers):024x}")


@channel(15, _use_sequential_ids)
async def l15(office: Office) -> None:
    """An id reveals neither when a record was created nor how many records there are."""
    ids = [(await office.value("alice", "lead.create", title="x"))["id"] for _ in range(12)]
    assert ids != sorted(ids)
    assert len({id_[:8] for id_ in ids}) == 12


@channel(16, leaking.refs_tell_what_exists)
async def l16(office: Office) -> None:
    """A ref to a hidden record has the same error as a ref to a missing record."""
    rule = '[{"field": "kind", "op": "eq", "value": "person"}]'
    who = await create_dan(office, {"model": "party", "commands": "get,list", "clear": "kind", "rows": rule})
    hidden_id = (await office.first_record("party", kind="company"))["id"]
    for body in ({"title": "x"}, {"title": "x", "stage": "new"}):
        assert_same_response(
            *[
                await office.call(who, "lead.create", {**body, "party": record_id})
                for record_id in (hidden_id, "0" * 24)
            ]
        )


@channel(17, leaking.refs_show_hidden_records)
async def l17(office: Office) -> None:
    """A ref whose target is hidden is shown as empty."""
    rule = '[{"field": "kind", "op": "eq", "value": "person"}]'
    who = await create_dan(office, {"model": "party", "commands": "get,list", "clear": "kind", "rows": rule})
    ids = {party["id"] for party in await office.all("party", who)}
    assert {lead["party"] for lead in await office.all("lead", who)} <= {None, *ids}


@channel(18, leaking.a_unique_clash_is_told)
async def l18(office: Office) -> None:
    """An agent's input with a guessed unique value becomes a plan, whether the guess is right or wrong."""
    agent = await office.agent("carol")
    await office.value("root", "setting.create", title="approval:party.update", value='{"n": 0}')
    used_tax_id = next(party["tax_id"] for party in await office.all("party", "carol") if party["tax_id"])
    party = next(party["id"] for party in await office.all("party", "carol") if not party["tax_id"])
    for guess in (used_tax_id, "EU000000000000"):
        answer = await office.call(agent, "party.update", {"id": party, "tax_id": guess})
        assert answer.status_code == 202, answer.text


@channel(19, leaking.agents_delete_themselves)
async def l19(office: Office) -> None:
    """If an agent proposes a deletion, the response does not reveal whether a record that the agent cannot see refers
    to the record."""
    agent = await office.agent("root", "party.*")
    used_party = (await office.first_record("invoice"))["party"]
    unused_party = (await office.value("root", "party.create", name="Nobody's"))["id"]
    for party in (used_party, unused_party):
        for options in ({}, {"cascade": True}):
            answer = await office.call(agent, "party.delete", {"id": party, **options})
            assert answer.status_code == 202, answer.text


def _ignore_unknown_fields(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, unmask_input, "_require_writable", lambda view, name: None)


@channel(20, _ignore_unknown_fields)
async def l20(office: Office) -> None:
    """No command creates a record if it exists and updates it otherwise."""
    lead = (await office.first_record("lead"))["id"]
    for key, value in (("id", lead), ("on_conflict", "update"), ("upsert", True)):
        assert key in await office.refusal_of("alice", "lead.create", title="x", **{key: value})


@channel(21, leaking.guards_look_at_hidden_fields)
async def l21(office: Office) -> None:
    """If an action has a guard on a field that the agent cannot read, a person decides."""
    await create_dan(office, {"model": "invoice", "commands": "get,list,settle", "clear": "number,state"})
    agent = await office.agent("dan")
    await office.value("root", "setting.create", title="approval:invoice.settle", value='{"n": 0}')
    first_invoice, second_invoice = [
        invoice for invoice in await office.all("invoice") if invoice["state"] == "posted"
    ][:2]
    await office.value("carol", "payment.create", invoice=first_invoice["id"], amount_minor=first_invoice["open_minor"])
    for invoice in (first_invoice, second_invoice):
        answer = await office.call(agent, "invoice.settle", {"id": invoice["id"]})
        assert answer.status_code == 202, answer.text


def _name_missing_fields(patch: pytest.MonkeyPatch) -> None:
    replace_defence(
        patch, crud, "_required_error", lambda view, name: BadInput(f"{view.model.name}.{name} is required")
    )


@channel(22, _name_missing_fields)
async def l22(office: Office) -> None:
    """An error never names a required field that is hidden."""
    await create_dan(office, {"model": "ticket", "commands": "create,get", "clear": "priority", "write": "priority"})
    assert "subject" not in await office.refusal_of("dan", "ticket.create", priority="low")


def _ignore_sources_of_computed_fields(patch: pytest.MonkeyPatch) -> None:
    replace_defence(
        patch, visibility._DerivedVisibility, "_compute", lambda self, model, name: self._granted[model].get(name)
    )


@channel(23, _ignore_sources_of_computed_fields)
async def l23(office: Office) -> None:
    """A computed field is hidden if one of its sources is hidden."""
    grant = {"model": "invoice", "commands": "get,list", "clear": "number,state,total_minor,open_minor"}
    await create_dan(office, grant)
    row = (await office.value("dan", "invoice.list", limit=1))[0]
    assert set(row) == {"id", "revision", "number", "state"}


def _deny_fields_by_row(patch: pytest.MonkeyPatch) -> None:
    original = rest_handlers.Envelope
    replace_defence(
        patch, rest_handlers, "Envelope", lambda denied_names, value: original(denied_names if value else (), value)
    )


@channel(24, _deny_fields_by_row)
async def l24(office: Office) -> None:
    """The list of denied fields is the same for no rows as for many."""
    no_rows = {"filter": [{"field": "id", "op": "eq", "value": "x"}], "limit": 1}
    assert await office.denied("bob", "party.list", **no_rows) == await office.denied("bob", "party.list", limit=9)


def _embed_people(patch: pytest.MonkeyPatch) -> None:
    original = mask_output.masked_records

    async def records(run: Any, reading: Any, rows: Any) -> list[Any]:
        return [{"record": row, "created_by": {"name": "Alice"}} for row in await original(run, reading, rows)]

    replace_defence(patch, mask_output, "masked_records", records)


@channel(44, _embed_people)
async def l44(office: Office) -> None:
    """A record is flat: it does not contain other records."""
    for model in ("lead", "party", "ticket", "activity"):
        for row in await office.value("bob", f"{model}.list", limit=20):
            assert not [name for name, value in row.items() if isinstance(value, dict | list)], row


def _check_references(patch: pytest.MonkeyPatch) -> None:
    original = dependents.find

    async def find(*arguments: Any, seen_by: Any = None, **options: Any) -> Any:
        return await original(*arguments, **options)

    replace_defence(patch, dependents, "find", find)


@channel(50, _check_references)
async def l50(office: Office) -> None:
    """A proposal is checked against what the agent may know. The other checks follow at the approval."""
    agent = await office.agent("root", "party.*", "plan.propose")
    used_party = (await office.first_record("invoice"))["party"]
    steps = [{"command": "party.delete", "input": {"id": used_party}}]
    assert (await office.call(agent, "plan.propose", {"steps": steps})).status_code == 202
