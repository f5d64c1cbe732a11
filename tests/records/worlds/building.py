"""Builds two databases (worlds) that differ only in what one caller may not see."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import httpx

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.database import versions
from countersign.kernel.security import passwords
from countersign.records import app, user_creation
from countersign.records.access.view import Caller, View
from countersign.records.commands import record_writer, workflow
from countersign.records.commands.run import Actor, Run
from countersign.settings import Settings
from tests.records.office import ROOT_URL

Variant = Literal["a", "b"]
Audience = Literal["alice", "bob", "dan", "carol"]

STARTED = Instant(1_790_000_000_000_000)
PASSWORD = "a long password"
Step = tuple[str, Mapping[str, object]]
"""A step of another caller: a path and a body."""

PARTIES, LEADS, ACTIVITIES, INVOICES, TICKETS, COMMENTS = 18, 26, 12, 8, 14, 12
ROLES = {"root": ["administrator"], "alice": ["sales_manager"], "bob": ["clerk"], "carol": ["accountant"], "dan": []}
STAGES = ("new", "qualified", "proposed", "won", "lost")

DIRECT_AGENT_COMMANDS = (
    *("party.update", "product.create", "product.update", "lead.win", "invoice.settle"),
    *("payment.create", "payment.update"),
)
"""The commands that agents may run directly in this test, so that their responses are compared too."""

GRANTS_OF_DAN: tuple[dict[str, str], ...] = (
    {
        "model": "lead",
        "commands": "*",
        "clear": "title,stage,source,party,expected_close",
        "masked": "contact_name,contact_email",
        "write": "title,source,party,stage,expected_close,contact_name,contact_email",
        "rows": '[{"field":"stage","op":"in","value":["new","qualified"]}]',
    },
    {
        "model": "party",
        "commands": "get,list,search,create,update,delete,export,history,count_by",
        "clear": "kind,website,is_active",
        "masked": "name",
        "write": "name,website,kind",
        "rows": '[{"field":"kind","op":"eq","value":"person"}]',
    },
    {
        "model": "activity",
        "commands": "get,list,search,create,update,delete,finish,history,count_by,export",
        "clear": "lead,kind,subject,state",
        "masked": "notes",
        "write": "lead,kind,subject,notes",
    },
    {
        "model": "ticket",
        "commands": "*",
        "clear": "subject,state,priority,party",
        "masked": "requester_email,description",
        "write": "subject,priority,party,requester_email,description,state",
        "rows": '[{"field":"priority","op":"ne","value":"urgent"}]',
    },
    {
        "model": "invoice",
        "commands": "get,list,search,history,count_by,post,settle,cancel,export",
        "clear": "number,state,due",
        "rows": '[{"field":"state","op":"ne","value":"paid"}]',
    },
    {"model": "product", "commands": "*", "clear": "sku,name", "write": "sku,name,unit_price_minor",
     "rows": '[{"field":"name","op":"contains","value":"Visible"}]'},
    {"model": "audit_entry", "commands": "get,list,search", "clear": "command,model,fields,changes,record_id"},
)  # fmt: skip


@dataclass
class OpenWorld:
    """One of the two databases, with its service, a client and the bearer tokens of its callers. World b also has the
    plans of others and the steps that others run during the test."""

    service: app.RecordsService
    http: httpx.AsyncClient
    variant: Variant
    audience: Audience = "alice"
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    plans: list[str] = field(default_factory=list[str])
    steps: tuple[Step, ...] = ()

    async def call(self, who: str, path: str, body: object) -> httpx.Response:
        """Send a POST request with a JSON body."""
        return await self.http.post(path, json=body, headers={"Authorization": f"Bearer {self.tokens[who]}"})

    async def hidden_step(self, number: int) -> None:
        """Let others run the next step that the audience does not see."""
        path, fields = self.steps[number % len(self.steps)]
        body = {
            name: f"{item} {number}" if name in FIELDS_CHANGED_AT_EACH_STEP else item for name, item in fields.items()
        }
        if path.endswith("/update"):
            body.setdefault("id", made_id(path.split("/")[2], number % 4))
        with ids.seeded(f"hidden {number}"):
            answer = await self.call("root", path, body)
        assert answer.status_code == 200 or "no such record" in answer.text, answer.text

    async def change_restored_field(self, turn: int) -> tuple[str, str]:
        """Add, remove or restore a value that the audience sees, in both worlds. In world b only, also give a hidden
        record the same value before the value is removed. Return the model and the id of the visible record."""
        round_number, phase = divmod(turn, 3)
        restored_field = RESTORED_FIELDS[self.audience]
        value = f"Leaver {round_number} of {self.variant}"
        record_id = made_id(restored_field.model, restored_field.numbers[round_number % len(restored_field.numbers)])
        body = {"id": record_id, restored_field.field: f"Away {value}" if phase == 1 else value}
        with ids.seeded(f"returning {turn}"):
            answer = await self.call("root", f"/api/{restored_field.model}/update", body)
            assert answer.status_code == 200 or "no such record" in answer.text, answer.text
        if phase == 0 and self.variant == "b":
            path, field, body = restored_field.hidden_equal_input
            with ids.seeded(f"holder {turn}"):
                answer = await self.call("root", path, {**body, field: value})
            assert answer.status_code == 200, answer.text
        return restored_field.model, record_id


@dataclass(frozen=True)
class ClosedWorld:
    """A built world that is not open: its audience, the bearer tokens of its callers, and in world b the plans of
    others and the steps that others run during the test."""

    audience: Audience
    tokens: Mapping[str, str]
    plans: Sequence[str]
    steps: tuple[Step, ...]


async def build(settings: Settings, variant: Variant, audience: Audience) -> ClosedWorld:
    """Fill an empty database with a world for this audience. The variants `a` and `b` look the same to the audience."""
    async with _served(settings, variant) as world:
        with clock.fixed(STARTED):
            await _WorldBuilder(world.service, variant, audience).create_all()
            await _sign_in(world, audience)
            await _sign_in_root(world)
            if variant == "b":
                await _let_others_work(world, audience)
        return ClosedWorld(audience, world.tokens, world.plans, world.steps)


@asynccontextmanager
async def open_world(settings: Settings, variant: Variant, built: ClosedWorld) -> AsyncGenerator[OpenWorld]:
    """Open the world that was built in this database, or in the database from which this one was copied."""
    async with _served(settings, variant) as world:
        await salt_anew(world.service)
        world.audience = built.audience
        world.tokens, world.plans, world.steps = dict(built.tokens), list(built.plans), built.steps
        yield world


@asynccontextmanager
async def _served(settings: Settings, variant: Variant) -> AsyncGenerator[OpenWorld]:
    if variant == "b":
        settings = replace(settings, modules=f"{settings.modules},archive")
    async with app.open_records(settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            yield OpenWorld(service, http, variant)


async def _sign_in_root(world: OpenWorld) -> None:
    answer = await world.http.post("/api/auth/login", json={"username": "root", "password": PASSWORD})
    world.tokens["root"] = answer.json()["token"]


async def _let_others_work(world: OpenWorld, audience: Audience) -> None:
    """Create agents of another person, one of them with the same label as the audience's agent, and let them propose
    plans. For dan, the plans are about leads that he does not see, because he would see plans about other leads. For
    the rest of the audience, the plans are also about visible leads."""
    for label in ("scout", "other"):
        answer = await world.call("root", "/api/auth/agent-token", {"scopes": ["*"], "label": label})
        world.tokens[label] = answer.json()["token"]
    world.steps = STEPS["sales" if audience in ("alice", "bob") else audience]
    leads = [number for number in range(LEADS) if STAGES[number % 5] == "won"] if audience == "dan" else range(6)
    for number, label in zip(leads, ("scout", "other", "scout", "other", "scout", "other"), strict=False):
        deletion = {"id": made_id("lead", number), "cascade": True}
        answer = await world.call(label, "/api/lead/delete", deletion)
        world.plans.append(answer.json()["plan_id"])


async def salt_anew(service: app.RecordsService) -> None:
    """Replace the secret from which tokens are computed. Ids are equal in both worlds, but tokens must differ."""
    async with service.records.database.transaction() as transaction:
        for row in await transaction.fetch("SELECT id FROM token_domain"):
            await transaction.run("UPDATE token_domain SET salt = $2 WHERE id = $1", row[0], ids.random_bytes(32))
        await versions.bump(transaction, "access")


async def _sign_in(world: OpenWorld, audience: str) -> None:
    with ids.seeded("signing in"):
        await _get_tokens(world, audience)


async def _get_tokens(world: OpenWorld, audience: str) -> None:
    answer = await world.http.post("/api/auth/login", json={"username": audience, "password": PASSWORD})
    world.tokens["person"] = answer.json()["token"]
    answer = await world.call("person", "/api/auth/agent-token", {"scopes": ["*"], "label": "scout"})
    world.tokens["agent"] = answer.json()["token"]
    # A person who sees masked fields gets a token domain with the first call.
    await world.http.get("/api/meta", headers={"Authorization": f"Bearer {world.tokens['person']}"})


def made_id(model: str, key: object) -> str:
    """Return the id of the record that is created under this key."""
    with ids.seeded(f"{model}/{key}"):
        return ids.new_record_id()


FIELDS_CHANGED_AT_EACH_STEP = frozenset({"tax_id", "sku"})
"""The fields that must get another value at every step."""

STEPS: Mapping[str, tuple[Step, ...]] = {
    # The role sales sees neither tax numbers nor invoices.
    "sales": (
        ("/api/party/update", {"tax_id": "ZZ"}),
        ("/api/invoice/create", {"party": made_id("party", 3)}),
        ("/api/product/create", {"sku": "NEW", "name": "New", "unit_price_minor": 1}),
        ("/api/party/update", {"tax_id": "YY"}),
    ),
    "dan": (
        ("/api/lead/update", {"expected_revenue_minor": 77}),
        ("/api/ticket/create", {"subject": "It broke", "priority": "urgent", "party": made_id("party", 1)}),
        ("/api/product/create", {"sku": "NEW", "name": "New", "unit_price_minor": 1}),
        ("/api/lead/update", {"id": made_id("lead", 3), "title": "Won", "party": made_id("party", 5)}),
        ("/api/lead/update", {"expected_revenue_minor": 78}),
    ),
    # Carol sees neither leads nor tickets.
    "carol": (
        ("/api/lead/create", {"title": "Order 1", "party": made_id("party", 1)}),
        ("/api/lead/update", {"title": "Renamed again"}),
        ("/api/ticket/create", {"subject": "It broke", "party": made_id("party", 2)}),
        ("/api/lead/update", {"title": "And again"}),
    ),
}


@dataclass(frozen=True)
class RestoredField:
    """A field that the audience sees. Its value is removed and restored in the records with these numbers.
    `hidden_equal_input` gives a hidden record an equal value: the path, the field of the hidden record, and the other
    members of the body."""

    model: str
    field: str
    numbers: tuple[int, ...]
    hidden_equal_input: tuple[str, str, Mapping[str, object]]


_OF_SALES = RestoredField("lead", "contact_name", (0, 5, 7), ("/api/dossier/create", "writer", {"title": "Equal"}))
_URGENT: Mapping[str, object] = {"subject": "It broke", "priority": "urgent"}
RESTORED_FIELDS: Mapping[Audience, RestoredField] = {
    "alice": _OF_SALES,
    "bob": _OF_SALES,
    "dan": RestoredField("lead", "contact_name", (0, 5, 6), ("/api/ticket/create", "requester_name", _URGENT)),
    "carol": RestoredField("party", "name", (0, 5, 7), ("/api/lead/create", "contact_name", {"title": "Not hers"})),
}


class _WorldBuilder:
    def __init__(self, service: app.RecordsService, variant: Variant, audience: Audience) -> None:
        self._service = service
        self._is_b = variant == "b"
        self._audience = audience
        self._is_sales = audience in ("alice", "bob")
        self._people: dict[str, str] = {}

    async def create_all(self) -> None:
        """Create the records of this world. What the audience sees is equal in both worlds, and so are the ids of
        records that both worlds have. Values that the audience does not see differ, and world b has more records."""
        password_hash = await passwords.hash_password(PASSWORD)
        async with self._service.records.database.transaction() as transaction:
            nobody = Caller("person", "", "", "", View({}))
            actor = Actor("0" * 24, request_id="made")
            self._run = Run(self._service.engine, nobody, transaction, actor, transaction)
            await self._create_people_and_roles(password_hash)
            for number in range(PARTIES):
                await self._party(number)
            for number in range(LEADS):
                await self._lead(number)
            for number in range(ACTIVITIES):
                await self._activity(number)
            for number in range(TICKETS):
                await self._ticket(number)
            await self._billing()
            for number in range(COMMENTS):
                await self._comment(number)
            if self._is_b:
                await self._create_world_b_extras()

    async def _make(self, model: str, key: object, /, **values: object) -> str:
        effects = workflow.EffectContext(self._run, self._run.engine.registry.models[model], "", {}, "made")
        with ids.seeded(f"{model}/{key}"):
            return await effects.create(model, **{name: value for name, value in values.items() if value is not None})

    async def _change(self, model: str, record_id: str, /, **values: object) -> None:
        declared = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, declared, None, record_id)
        effects = workflow.EffectContext(self._run, declared, record_id, record.values, f"{model}.update")
        await effects.change(**values)
        await record_writer.update(self._run, declared, record, effects.changes, f"{model}.update")

    async def _create_people_and_roles(self, password_hash: str) -> None:
        with ids.seeded("people"):
            for name, roles in ROLES.items():
                display_name = f"{name} {'Beta' if self._is_b and name != self._audience else 'Alpha'}"
                self._people[name] = await user_creation.add_user(
                    self._run, name, display_name, f"{name}@example.com", roles, password_hash
                )
        for name in DIRECT_AGENT_COMMANDS:
            await self._make("setting", name, title=f"approval:{name}", value='{"n": 0}')
        role = await self._make("role", "dan", title="role of dan")
        await self._make("user_role", "dan", user=self._people["dan"], role=role)
        for number, grant in enumerate(GRANTS_OF_DAN):
            await self._make("grant", number, role=role, **grant)

    def _in_world(self, a: object, b: object) -> object:
        """Return a value that the audience sees as a token or not at all. It differs in world b."""
        return b if self._is_b else a

    async def _party(self, number: int) -> None:
        is_hidden = self._audience == "dan" and number % 2 == 0
        contact_number = number % 7
        await self._make(
            "party",
            number,
            name=self._in_world(f"Ada Lovelace {number}", f"Zoë\u202f{number} née Õ'Brien-{number * 77}"),
            kind="company" if number % 2 == 0 else "person",
            email=self._in_world(
                f"contact{contact_number}@a.example", f"{contact_number}.someone.else@elsewhere.example"
            ),
            phone=self._in_world(f"+43 1 {number % 5}", f"+1 (555) 000-{number % 5:04d}"),
            tax_id=self._in_world(f"AT{number:08d}", f"FR{number * 13:011d}"),
            website=f"https://{number}.example"
            if not is_hidden
            else self._in_world("https://a.example", "https://b.example"),
            customer_since=f"2020-01-{number + 1:02d}",
            notes=self._in_world("Likes tea. EMAIL_12", "Hates tea, wants a call back") if number % 3 == 0 else None,
        )

    async def _lead(self, number: int) -> None:
        stage = STAGES[number % 5]
        is_hidden = self._audience == "dan" and stage not in ("new", "qualified")
        await self._make(
            "lead",
            number,
            title=self._in_world("Hidden order", "Another hidden order") if is_hidden else f"Order {number % 4}",
            stage=stage,
            contact_name=self._in_world(f"Grace {number % 6}", f"Katherine the {number % 6}th"),
            contact_email=self._in_world(
                f"contact{number % 7}@a.example", f"{number % 7}.someone.else@elsewhere.example"
            ),
            party=self._party_of_lead(number) if number % 3 else None,
            owner=self._people["carol" if self._is_b and self._audience == "dan" else "bob"],
            source=("web", "fair", None)[number % 3],
            expected_close=(f"2026-12-{number % 9 + 1:02d}", None)[number % 4 == 0],
            expected_revenue_minor=number * 1000 if self._is_sales else self._in_world(number * 1000, 5000 - number),
            lost_reason=("price", None)[stage != "lost"],
            notes=(None, self._in_world("Call her", "Write to him at once"))[number % 2],
        )

    def _party_of_lead(self, number: int) -> str | None:
        party = number % PARTIES
        if self._audience != "dan" or party % 2:
            return made_id("party", party)
        # Dan sees no company. Each world has another company here, or only one of the worlds has a company.
        first, second = made_id("party", party), made_id("party", (party + 2) % PARTIES)
        party_of_this_world = {2: self._in_world(None, second), 4: self._in_world(first, None)}.get(
            number % 12, self._in_world(first, second)
        )
        return None if party_of_this_world is None else str(party_of_this_world)

    async def _activity(self, number: int) -> None:
        await self._make(
            "activity",
            number,
            lead=made_id("lead", number % LEADS),
            kind=("call", "mail")[number % 2],
            subject=f"Talk {number}",
            due=f"2026-11-{number + 1:02d}" if self._is_sales else self._in_world("2026-11-05", "2027-01-01"),
            notes=self._in_world("He said no", "She said perhaps"),
        )

    async def _ticket(self, number: int) -> None:
        priority = ("low", "normal", "high", "urgent")[number % 4]
        is_hidden = self._audience == "dan" and priority == "urgent"
        await self._make(
            "ticket",
            number,
            subject=f"It broke {number % 3}" if not is_hidden else self._in_world("Secret fault", "Other secret fault"),
            priority=priority,
            requester_name=self._in_world(f"Grace {number % 6}", f"Katherine the {number % 6}th"),
            requester_email=self._in_world(
                f"contact{number % 7}@a.example", f"{number % 7}.someone.else@elsewhere.example"
            ),
            party=made_id("party", number * 2 % PARTIES + 1) if number % 2 else None,
            description=self._in_world("Please help", "It burns"),
        )

    async def _comment(self, number: int) -> None:
        """Create a comment. Dan reads the texts of those on records that he sees."""
        model = ("lead", "party", "ticket")[number % 3]
        text = self._in_world(f"@carol Call Ada {number}", f"Call Zoë @bob @alice {number}")
        is_read = self._audience == "dan"
        author = self._people["bob" if number % 2 else "alice"]
        about = {"model": model, "record": made_id(model, number)}
        await self._make("comment", number, author=author, text=f"Call {number}" if is_read else text, **about)

    async def _billing(self) -> None:
        is_seen = self._audience == "carol"
        for number in range(4):
            name = ("Visible", "Hidden")[number % 2]
            is_same = is_seen or name == "Visible"
            sku = f"SKU-{number}" if is_same else self._in_world(f"SKU-{number}", f"SKU-{number}X")
            price = 1000 if is_seen else self._in_world(1000, 7777)
            await self._make("product", number, sku=sku, name=f"{name} {number}", unit_price_minor=price)
        for number in range(INVOICES):
            await self._invoice(number, is_seen=is_seen)

    async def _invoice(self, number: int, *, is_seen: bool) -> None:
        """Create an invoice. Unless the audience sees all of it, party and amount differ in world b, and payments
        belong to other invoices than in world a."""
        differs = self._is_b and not is_seen
        party = made_id("party", number + 9 if differs else number)
        invoice = await self._make("invoice", number, party=party, due=f"2026-12-{number + 1:02d}")
        line = {"description": "Work", "quantity": 5 if differs else 2, "unit_price_minor": 1000}
        await self._make("invoice_line", number, invoice=invoice, **line)
        if number % 2:
            await self._post(invoice)
            if is_seen or number % 4 == self._in_world(1, 3):
                await self._make("payment", number, invoice=invoice, amount_minor=1_000_000)

    async def _post(self, invoice: str) -> None:
        declared_invoice = self._run.engine.registry.models["invoice"]
        record = await record_writer.find(self._run, declared_invoice, None, invoice)
        with ids.seeded(f"post/{invoice}"):
            await workflow.perform(self._run, declared_invoice, record, workflow.move_of(declared_invoice, "post"), {})

    async def _create_world_b_extras(self) -> None:
        """Create what only world b has: more hidden records, and hidden changes of visible records."""
        if self._audience != "carol":
            for number in range(PARTIES):
                for turn in range(number % 4):
                    await self._change("party", made_id("party", number), tax_id=f"XX{number}{turn}")
            for number in range(5):
                party = made_id("party", number * 2 + 1)
                if self._is_sales:
                    await self._make("invoice", f"more {number}", party=party)
        if self._audience == "dan":
            await self._create_world_b_extras_for_dan()
        if self._audience == "carol":
            for number in range(9):
                await self._make("lead", f"more {number}", title="Not hers", owner=self._people["bob"])
                await self._change("lead", made_id("lead", number), title="Renamed")

        for number in range(3):
            await self._create_deleted_records_and_dossiers(number)
            about = {"model": "dossier", "record": made_id("dossier", number)}
            await self._make("comment", f"more {number}", author=self._people["bob"], text="Secret", **about)

    async def _create_deleted_records_and_dossiers(self, number: int) -> None:
        """Create records that are deleted again, and records of a model that only this world has, which refer to
        visible records."""
        model = "lead" if self._audience == "carol" else "product"
        values: dict[str, object] = {"title": "Gone", "owner": self._people["bob"]}
        if model == "product":
            values = {"sku": f"GONE-{number}", "name": "Gone", "unit_price_minor": 1}
        deleted_id = await self._make(model, f"gone {number}", **values)
        declared = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, declared, None, deleted_id)
        await record_writer.delete(self._run, declared, record, f"{model}.delete")
        party, lead = made_id("party", number), made_id("lead", number)
        await self._make("dossier", number, title="Secret", party=party, lead=lead, writer="Grace 1")

    async def _create_world_b_extras_for_dan(self) -> None:
        for number in range(7):
            await self._make("party", f"more {number}", name=f"Company {number}", kind="company")
            lead = {"title": f"Order {number % 4}", "stage": "won", "party": made_id("party", 2 * number + 1)}
            await self._make("lead", f"more {number}", owner=self._people["bob"], **lead)
            await self._make("ticket", f"more {number}", subject="Order", priority="urgent")
            await self._make("product", f"more {number}", sku=f"MORE-{number}", name="Hidden", unit_price_minor=1)
        for number in range(LEADS):
            for turn in range(number % 3):
                await self._change("lead", made_id("lead", number), expected_revenue_minor=turn, notes=f"edit {turn}")
