"""Leak channels through tokens, plans, history, logs, documents, caches and rights."""

import io
import json
from contextlib import redirect_stderr
from typing import Any

import pytest

from countersign.kernel import telemetry
from countersign.kernel.database import versions
from countersign.records import dispatch, json_schemas, openapi_document, redaction, rest_handlers
from countersign.records.access import visibility
from countersign.records.access.view import Domain
from countersign.records.commands import export, record_writer
from countersign.records.commands.run import Engine
from countersign.records.masking.placeholder_tokens import DomainMasks, MaskStore
from countersign.records.masking.vault import PersonalValue
from tests.records.leaks.channel import assert_same_response, channel, create_dan, replace_defence
from tests.records.office import Office
from tests.records.worlds import leaking


def _linking_everything(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, record_writer, "PersonalValue", lambda label, text, linked: PersonalValue(label, text, True))


@channel(26, _linking_everything)
async def l26(office: Office) -> None:
    """Equal tokens mean equal values only in fields that are declared as linked."""
    for title in ("one", "two"):
        await office.value("alice", "lead.create", title=title, contact_email="same@x.example", notes="Same words")
    rows = [row for row in await office.all("lead", "bob") if row["title"] in ("one", "two")]
    assert rows[0]["contact_email"] == rows[1]["contact_email"]
    assert rows[0]["notes"] != rows[1]["notes"]


@channel(27, leaking.guesses_are_confirmed)
async def l27(office: Office) -> None:
    """Text that an agent writes in clear is never shown as the token of an equal existing value."""
    agent = await office.agent("alice")
    lead = (await office.value(agent, "lead.list", limit=1))[0]
    clear_email = (await office.value("alice", "lead.get", id=lead["id"]))["contact_email"]
    for guess in (clear_email, clear_email.upper()):
        created_lead = await office.value(agent, "lead.create", title="x", contact_email=guess)
        assert created_lead["contact_email"] != lead["contact_email"]


def _sharing_one_domain(patch: pytest.MonkeyPatch) -> None:
    masks = DomainMasks(Domain("shared", b"k" * 32))
    replace_defence(patch, MaskStore, "of_caller", lambda self, caller: masks)


@channel(28, _sharing_one_domain)
async def l28(office: Office) -> None:
    """A token is invalid for every other caller."""
    first_agent, second_agent = await office.agent("alice", label="one"), await office.agent("alice", label="two")
    lead = (await office.value(first_agent, "lead.list", limit=1))[0]
    reason = await office.refusal_of(second_agent, "lead.update", id=lead["id"], contact_email=lead["contact_email"])
    assert reason == f"unknown token {lead['contact_email']}"


@channel(29, leaking.tokens_are_swapped_anywhere)
async def l29(office: Office) -> None:
    """A token is refused in every field whose value would be read in clear."""
    agent = await office.agent("alice")
    lead = (await office.value(agent, "lead.list", limit=1))[0]
    token = lead["contact_email"]
    for field, text in (("title", token), ("title", f"Ask {token}."), ("lost_reason", token)):
        reason = await office.refusal_of(agent, "lead.update", id=lead["id"], **{field: text})
        assert reason == f"token not allowed in lead.{field}"
    for field in ("source", "party", "stage"):
        assert (await office.call(agent, "lead.update", {"id": lead["id"], field: token})).status_code == 400
    conditions = [{"field": "title", "op": "contains", "value": token}]
    assert (await office.call(agent, "lead.list", {"filter": conditions, "limit": 1})).status_code == 400
    steps = [{"command": "lead.delete", "input": {"id": lead["id"]}}]
    assert (await office.call(agent, "plan.propose", {"steps": steps, "why": token})).status_code == 400


@channel(30, leaking.plans_show_hidden_values)
async def l30(office: Office) -> None:
    """A plan shows its proposer tokens, and no fields that the proposer cannot read."""
    await create_dan(office)
    agent = await office.agent("dan")
    lead = await office.first_record("lead", stage="new")
    plan_id = await office.proposed(agent, "lead.delete", id=lead["id"])
    answer = await office.call(agent, "plan.get", {"id": plan_id})
    fields = {change["field"] for change in answer.json()["value"]["diff"]}
    assert fields <= {"title", "stage", "party", "source", "contact_name", "contact_email"}
    assert "lead.notes" in answer.json()["denied"]
    assert lead["contact_email"] not in answer.text


def _showing_history_as_it_was(patch: pytest.MonkeyPatch) -> None:
    async def changes_unchanged(run: Any, view: Any, changes: Any) -> Any:
        return changes

    replace_defence(patch, redaction, "visible_changes", changes_unchanged)


@channel(31, _showing_history_as_it_was)
async def l31(office: Office) -> None:
    """History is shown according to the current rights."""
    await create_dan(office)
    lead = await office.value("alice", "lead.create", title="x", lost_reason="hidden from dan", contact_name="Ada")
    await office.value("alice", "lead.update", id=lead["id"], notes="also hidden")
    answer = await office.call("dan", "lead.history", {"id": lead["id"]})
    assert len(answer.json()["value"]) == 1
    response_text = json.dumps(answer.json()["value"])
    assert not [word for word in ("hidden from dan", "also hidden", '"Ada"', "lost_reason") if word in response_text]


def _logging_everything(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, telemetry, "_redact", lambda _, __, event: event)


@channel(32, _logging_everything)
async def l32(office: Office) -> None:
    """No log line contains a token, a password or a value of a request."""
    log_text = io.StringIO()
    with redirect_stderr(log_text):
        telemetry.configure("debug")
        log = telemetry.logger("trial")
        for token in (office.tokens["alice"], f"Bearer {office.tokens['bob']}"):
            log.error("refused", said=f"the header was {token}", authorization=token)
        await office.call("alice", "lead.create", {"title": "canary-title", "contact_email": "canary@x.example"})
        await office.call("alice", "lead.create", {"title": 5, "contact_email": "canary@x.example"})
    assert "refused" in log_text.getvalue()
    for canary in (office.tokens["alice"], office.tokens["bob"], "canary@x.example", "canary-title"):
        assert canary not in log_text.getvalue()


def _exporting_clear(patch: pytest.MonkeyPatch) -> None:
    async def pieces_of(run: Any, model: str, query: Any) -> Any:
        rows = await run.reader.fetch(f'SELECT id, name, email FROM "{model}"')
        yield "".join(json.dumps(list(row)) + "\n" for row in rows), len(rows)

    replace_defence(patch, export, "pieces_of", pieces_of)


@channel(33, _exporting_clear)
async def l33(office: Office) -> None:
    """All formats of a response have the same content: an export contains the same records as a list."""
    rows = await office.value("bob", "party.list", limit=30)
    text = await _exported(office)
    assert [json.loads(line) for line in text.splitlines()][:30] == rows


async def _exported(office: Office) -> str:
    clerk = (await office.first_record("role", title="clerk"))["id"]
    await office.value("root", "grant.create", role=clerk, model="party", commands="export")
    headers = {**office.headers("bob"), "Accept": "application/x-ndjson"}
    return (await office.http.post("/api/party/export", json={}, headers=headers)).text


def _describing_everything(patch: pytest.MonkeyPatch) -> None:
    original_object = json_schemas._object
    replace_defence(
        patch,
        json_schemas,
        "_object",
        lambda properties, required: {**original_object(properties, required), "not": "tax_id"},
    )


@channel(34, _describing_everything)
async def l34(office: Office) -> None:
    """No description contains the name of a hidden model or field."""
    for path in ("/api/commands", "/api/meta", "/api/openapi.json"):
        text = (await office.http.get(path, headers=office.headers("bob"))).text
        assert not [word for word in ("tax_id", "invoice_line", "payment", "audit_entry") if word in text], path


def _sharing_readings(patch: pytest.MonkeyPatch) -> None:
    readings: dict[str, Any] = {}
    original_reading = Engine.reading
    replace_defence(
        patch,
        Engine,
        "reading",
        lambda self, caller, view: readings.setdefault(view.model.name, original_reading(self, caller, view)),
    )


@channel(35, _sharing_readings)
async def l35(office: Office) -> None:
    """The response to one caller is never cached for another caller."""
    for who in ("carol", "bob", "alice", "bob", "carol"):
        row = (await office.value(who, "party.list", limit=1))[0]
        assert ("tax_id" in row) is (who == "carol")
        assert row["name"].startswith("PERSON_") is (who == "bob")


def _remembering_rights(patch: pytest.MonkeyPatch) -> None:
    async def bump(*arguments: object) -> None:
        """Do not notify the other workers."""

    replace_defence(patch, versions, "bump", bump)


@channel(36, _remembering_rights)
async def l36(office: Office) -> None:
    """A revoked token is refused at the next call."""
    agent = await office.agent("bob")
    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 200
    token = (await office.value("bob", "agent_token.list"))[0]
    await office.value("bob", "agent_token.revoke", id=token["id"])
    assert (await office.call(agent, "lead.list", {"limit": 1})).status_code == 401


@channel(37, _remembering_rights)
async def l37(office: Office) -> None:
    """A right that is revoked between two pages is missing for the second page."""
    await office.person("dan", {"model": "product", "commands": "list", "clear": "sku"})
    assert len(await office.value("dan", "product.list", limit=2)) == 2
    role = (await office.first_record("role", title="role of dan"))["id"]
    grant = next(grant["id"] for grant in await office.all("grant") if grant["role"] == role)
    await office.value("root", "grant.delete", id=grant)
    assert (await office.call("dan", "product.list", {"limit": 2, "offset": 2})).status_code == 404


@channel(38, leaking.exports_hold_everything)
async def l38(office: Office) -> None:
    """An export applies the rules for rows and fields."""
    who = await create_dan(office)
    text = (await office.value(who, "lead.export"))["text"]
    assert len(text.splitlines()) == 201
    assert "@" not in text


def _looking_before_refusing(patch: pytest.MonkeyPatch) -> None:
    original_require = dispatch.require_command

    def require_command(caller: Any, model: str, name: str) -> Any:
        if model == "invoice":
            _ASKED.append(model)
        return original_require(caller, model, name)

    replace_defence(patch, dispatch, "require_command", require_command)
    replace_defence(patch, rest_handlers, "require_command", require_command)


_ASKED: list[str] = []


@channel(39, _looking_before_refusing)
async def l39(office: Office) -> None:
    """Requests for hidden and for unknown records run the same number of statements, and nothing else."""
    unknown = await office.call("bob", "x.y", {"id": "x"})
    database = office.service.records.database
    counts: list[int] = []
    for command in ("invoice.get", "nothing.get", "lead.delete"):
        _ASKED.clear()
        with pytest.MonkeyPatch.context() as patch:
            # Without a mark, each request reads the counters that validate caches, as it does after a commit.
            replace_defence(patch, database, "change_mark", lambda: None)
            for name in ("fetch", "fetch_one", "scan"):
                replace_defence(patch, database, name, _counting(getattr(database, name)))
            assert_same_response(await office.call("bob", command, {"id": "x"}), unknown)
        counts.append(len(_ASKED))
    assert len(set(counts)) == 1, counts


def _counting(original: Any) -> Any:
    async def run_counted(*arguments: Any) -> Any:
        _ASKED.append("statement")
        return await original(*arguments)

    return run_counted


def _documenting_everything(patch: pytest.MonkeyPatch) -> None:
    original_document = openapi_document.openapi_document
    replace_defence(
        patch,
        openapi_document,
        "openapi_document",
        lambda *arguments: {**original_document(*arguments), "x-models": ["invoice_line"]},
    )


@channel(43, _documenting_everything)
async def l43(office: Office) -> None:
    """Documents and the responses to refused methods depend on the caller's view."""
    text = (await office.http.get("/api/openapi.json", headers=office.headers("bob"))).text
    assert "invoice_line" not in text
    for method in ("GET", "PUT", "DELETE"):
        answers = [
            await office.http.request(method, f"/api/{model}/list", headers=office.headers("bob"))
            for model in ("invoice", "nothing", "lead")
        ]
        assert_same_response(*answers)


OWN_MODELS = ("plan.", "session.", "agent_token.", "view.", "dashboard.", "favourite.", "comment.")
"""The commands of a caller's own records, which every caller has."""


def _inheriting(patch: pytest.MonkeyPatch) -> None:
    replace_defence(patch, visibility, "_is_administrator", lambda rights: bool(rights.roles))


@channel(45, _inheriting)
async def l45(office: Office) -> None:
    """The rights of a person are the sum of the grants of the person's roles. Nothing is inherited."""
    await office.person("dan", {"model": "product", "commands": "list", "clear": "sku"})
    commands = (await office.http.get("/api/commands", headers=office.headers("dan"))).json()["commands"]
    assert {command["id"] for command in commands if not command["id"].startswith(OWN_MODELS)} == {
        "product.list",
        *("user.get", "user.related", "user.home", "user.find", "user.recent"),
    }
