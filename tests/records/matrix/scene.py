"""A company for the matrix test: every kind of caller, and for every model one record that all callers see and one
hidden record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from countersign.kernel import clock
from countersign.records import demo
from countersign.records.access import sessions
from tests.records.matrix import table
from tests.records.office import Office

MISSING = "0" * 24
HIDDEN_ROW = "hiddenrow"
HIDDEN_FIELD = "hiddenfield"
PERSONAL = "personalvalue"
COMMENT = "commenttext"
"""The text of the comments. People who see a record read its comments in clear, and agents never do."""


@dataclass
class MatrixScene:
    """The office, its callers by name, and its records by model and kind (`ours` or `hidden`)."""

    office: Office
    records: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    owned: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Maps model and person to a record, for models of which each person has own records."""

    async def send(
        self, caller: str, method: str, path: str, body: object = None, content: bytes | None = None
    ) -> httpx.Response:
        """Send a request with a JSON body as this caller."""
        headers = {} if caller == "anonymous" else self.office.headers(caller)
        if method == "GET":
            return await self.office.http.get(path, headers=headers)
        raw = json.dumps(body or {}).encode() if content is None else content
        headers["Content-Type"] = "application/json"
        return await self.office.http.post(path, content=raw, headers=headers)

    async def run(self, caller: str, command: str, body: Mapping[str, object]) -> httpx.Response:
        """Run a command, such as `lead.get`."""
        return await self.send(caller, "POST", "/api/" + command.replace(".", "/"), body)

    def record(self, caller: str, model: str, row_kind: str) -> str:
        """Return the id of the record of this kind for the caller."""
        if row_kind == "missing":
            return MISSING
        if model not in table.ONES_OWN:
            return self.records[model, row_kind]
        person = table.AGENTS[caller][0] if caller in table.AGENTS else caller
        other_person = "alice" if person == "root" else "root"
        return self.owned[model, person if row_kind == "ours" else other_person]


async def build_scene(office: Office) -> MatrixScene:
    """Build the scene with the commands of the service."""
    scene = MatrixScene(office)
    for row_kind, email_word in (("ours", "ours"), ("hidden", HIDDEN_ROW)):
        await _records(scene, row_kind, email_word)
    await _people(scene)
    await _outsiders(scene)
    return scene


async def _records(scene: MatrixScene, row_kind: str, email_word: str) -> None:
    record_ids: dict[str, str] = {}

    async def create(model: str, /, **values: object) -> None:
        record_ids[model] = (await scene.office.value("root", f"{model}.create", **values))["id"]

    website, email = f"{HIDDEN_FIELD}.example", f"{PERSONAL}@{email_word}.example"
    await create("party", name=f"{PERSONAL} {email_word}", email=email, notes=PERSONAL, website=website)
    await create(
        "address", party=record_ids["party"], street=f"{PERSONAL} {email_word}", city=HIDDEN_FIELD, country="FR"
    )
    contact = {"contact_name": PERSONAL, "contact_email": f"{PERSONAL}@lead.example", "contact_phone": "+49301234567"}
    await create("lead", title=email_word, lost_reason=HIDDEN_FIELD, notes=PERSONAL, **contact)
    await create("activity", lead=record_ids["lead"], kind="task", subject=email_word, due="2031-07-09", notes=PERSONAL)
    await create("ticket", subject=email_word, requester_name=PERSONAL, description=PERSONAL, resolution=HIDDEN_FIELD)
    await create("product", sku=f"{email_word}-1", name=email_word, unit_price_minor=5, tax_bp=1234)
    await create("invoice", party=record_ids["party"], notes=HIDDEN_FIELD)
    line = {"invoice": record_ids["invoice"], "product": record_ids["product"]}
    await create("invoice_line", **line, description=email_word, unit_price_minor=5)
    paid_invoice = (await scene.office.value("root", "invoice.create", party=record_ids["party"], notes=HIDDEN_FIELD))[
        "id"
    ]
    await scene.office.value(
        "root", "invoice_line.create", invoice=paid_invoice, description=email_word, unit_price_minor=5
    )
    await scene.office.value("root", "invoice.post", id=paid_invoice)
    await create("payment", invoice=paid_invoice, amount_minor=1, reference=f"{PERSONAL} {email_word}")
    await create("comment", model="lead", record=record_ids["lead"], text=COMMENT)
    await create("role", title=f"{email_word} role", description=HIDDEN_FIELD)
    await create(
        "user_role", user=(await scene.office.first_record("user", username="root"))["id"], role=record_ids["role"]
    )
    await create("grant", role=record_ids["role"], model="lead", commands="get", clear="title")
    await create("setting", title=f"approval:lead.{'win' if row_kind == 'ours' else 'propose'}", value='{"n": 1}')
    entry = await scene.office.first_record("audit_entry", record_id=record_ids["lead"], command="lead.create")
    scene.records |= {(model, row_kind): value for model, value in {**record_ids, "audit_entry": entry["id"]}.items()}


def _grants(scene: MatrixScene, registry: Mapping[str, Any]) -> list[dict[str, object]]:
    """Create the grants of the keeper: one record of each model, with one hidden field and masked personal fields."""
    grants: list[dict[str, object]] = []
    for model, command_names in table.ROLES["keeper"].items():
        hidden_field, masked = table.HIDDEN.get(model), table.MASKED.get(model, "").split()
        clear_fields = [field for field in registry[model].fields if field != hidden_field and field not in masked]
        grant_fields: dict[str, object] = {
            "model": model,
            "commands": command_names.replace(" ", ","),
            "clear": ",".join(clear_fields),
        }
        if masked:
            grant_fields["masked"] = ",".join(masked)
        rows = [{"field": "id", "op": "eq", "value": scene.records[model, "ours"]}]
        grants.append({**grant_fields, "write": "*", "rows": json.dumps(rows)})
    return grants


async def _people(scene: MatrixScene) -> None:
    office = scene.office
    await office.person("keeper", *_grants(scene, office.service.records.registry.models))
    await office.person("dan")
    erin = await office.person("erin")
    manager = (await office.first_record("role", title="sales_manager"))["id"]
    had = await office.value("root", "user_role.create", user=erin, role=manager)
    for name, (person, scope) in table.AGENTS.items():
        await office.agent(person, scope, name=name)
    await office.value("root", "user_role.delete", id=had["id"])
    for person in (*table.PEOPLE, "erin"):
        user = (await office.first_record("user", username=person))["id"]
        scene.owned["user", person] = user
        await office.agent(person, "plan.*", name=f"{person}'s spare")
        spare = await office.first_record("agent_token", user=user, label=f"{person}'s spare")
        scene.owned["agent_token", person] = spare["id"]
        await _pages(scene, person)
        sessions_before = {session["id"] for session in await _sessions(office, user)}
        password = demo.PASSWORD if person in {name for name, _, _ in demo.PEOPLE} else "a long password"
        await sessions.sign_in(office.service.records, person, password)
        scene.owned["session", person] = next(
            session["id"] for session in await _sessions(office, user) if session["id"] not in sessions_before
        )


async def _pages(scene: MatrixScene, person: str) -> None:
    """Create a view, a dashboard and a favourite of the person."""
    values: dict[str, dict[str, object]] = {
        "view": {"model": "lead", "name": person},
        "dashboard": {"name": person},
        "favourite": {"name": person, "path": "/"},
    }
    for model, value in values.items():
        scene.owned[model, person] = (await scene.office.value(person, f"{model}.create", **value))["id"]


async def _sessions(office: Office, user: str) -> list[dict[str, Any]]:
    condition = {"field": "user", "op": "eq", "value": user}
    rows: list[dict[str, Any]] = await office.value("root", "session.list", filter=[condition])
    return rows


async def _outsiders(scene: MatrixScene) -> None:
    office = scene.office
    office.tokens["forged"] = office.tokens["alice"][:-4] + "AAAA"
    with clock.fixed(clock.later(clock.now(), seconds=-40 * 86_400)):
        office.tokens["expired session"] = await sessions.sign_in(office.service.records, "alice", demo.PASSWORD)
        office.tokens["then"] = office.tokens["expired session"]
        body = {"scopes": ["*"], "label": "expired agent", "expires_in": 60}
        office.tokens["expired agent"] = (await office.post("then", "/api/auth/agent-token", body)).json()["token"]
    office.tokens["ended session"] = await sessions.sign_in(office.service.records, "alice", demo.PASSWORD)
    await office.value("ended session", "session.revoke")
    await office.agent("alice", "*", name="ended agent")
    ended_token = await office.first_record("agent_token", label="ended agent")
    await office.value("root", "agent_token.revoke", id=ended_token["id"])
    manager = (await office.first_record("role", title="sales_manager"))["id"]
    off = await office.person("off")
    await office.value("root", "user_role.create", user=off, role=manager)
    office.tokens["person switched off"] = office.tokens["off"]
    await office.agent("off", "*", name="agent of a person switched off")
    await office.value("root", "user.update", id=off, is_active=False)
