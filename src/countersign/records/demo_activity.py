"""The activity of the demonstration: dates around today, payments, tickets in progress, agents with proposals."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.records import demo_pages
from countersign.records.access import agent_tokens, grants, visibility
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.callers import Callers
from countersign.records.access.view import Caller, View
from countersign.records.approvals import proposals
from countersign.records.commands import call_log, command, record_writer, workflow
from countersign.records.commands.call_log import AgentCall
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Actor, Engine, Run, actor_of

SPREAD_DAYS = 84
"""The number of days before today that have most of the activity: twelve weeks. The twelve weeks before them are for
comparison."""
RECENT_TICKETS = 10
"""The number of tickets that are not solved yet."""
LOGGED_DAYS = 7
HOUR_MINUTES, DAY_MINUTES = 60, 1440

_LEADS = "SELECT id, title, stage FROM lead ORDER BY id"
_INVOICES = "SELECT id FROM invoice WHERE state = 'posted' ORDER BY number"
_OPEN = "SELECT id, open_minor, issued FROM invoice WHERE state = 'posted' ORDER BY number LIMIT 150"
_TICKETS = "SELECT id FROM ticket ORDER BY id"
_IN_STAGE = "SELECT id FROM lead WHERE stage = $1 ORDER BY id LIMIT 12"
_COMPLETE = (
    "SELECT id, title, party, expected_revenue_minor FROM lead WHERE stage = 'qualified' AND party IS NOT NULL "
    "AND expected_revenue_minor IS NOT NULL AND contact_phone IS NOT NULL AND source IS NOT NULL ORDER BY id DESC"
)
_NOTES = "Wants an offer before the end of the quarter. Asked twice whether VAT is included. It is not."
_LAST_TICKET = "SELECT id FROM ticket WHERE state = 'solved' ORDER BY id DESC LIMIT 1"
_AFTER_LATIN = "\u0250"
"""The first character after the letters of Latin scripts with their accents."""
_PLANNED = (
    (0, "mail", "Send the revised offer"),
    (3, "call", "Call the purchasing department"),
    (-12, "meeting", "Visit to their workshop"),
)
"""The activities of the lead with a long history: days from today, kind and subject."""
_WITH_ACTIVITIES = (
    "SELECT lead.id, lead.title FROM lead JOIN activity ON activity.lead = lead.id WHERE lead.stage = $1 "
    "GROUP BY lead.id, lead.title ORDER BY count(*) DESC, lead.id"
)
_WINNABLE = "SELECT id FROM lead WHERE stage = 'proposed' AND party IS NOT NULL ORDER BY id LIMIT 3"
_OPEN_TICKETS = "SELECT id FROM ticket WHERE state = 'open' ORDER BY id LIMIT 3"
_PARTIES = "SELECT id FROM party ORDER BY id LIMIT 12"
_UNPAID = "SELECT id, open_minor FROM invoice WHERE state = 'posted' ORDER BY number DESC LIMIT 2"
_PRODUCTS = "SELECT id FROM product ORDER BY sku LIMIT 3"
_PEOPLE = 'SELECT username, id FROM "user"'
_ACTIVITIES = (
    ("call", "Call about the offer"),
    ("mail", "Send the terms"),
    ("meeting", "Meeting on site"),
    ("task", "Ask for the order number"),
    ("task", "Follow up"),
)
_LATER_STAGES: Mapping[tuple[object, int], str] = {
    ("proposed", 0): "won",
    ("proposed", 1): "won",
    ("qualified", 0): "new",
    ("qualified", 3): "new",
}
"""Maps a stage, and the number of a lead among the leads of that stage modulo 5, to the stage that replaces it. Leads
without an entry keep their stage."""

_Step = tuple[str, Mapping[str, object]]


async def add_activity(engine: Engine) -> None:
    """Add activity to the demonstration records, in one transaction."""
    with ids.seeded("activity"):
        async with engine.records.database.transaction() as transaction:
            people = dict(await transaction.fetch(_PEOPLE))
            caller = Caller("person", "", "", "", View({}))
            run = Run(engine, caller, transaction, Actor(people["root"], request_id="demo"), transaction)
            past = _Past(clock.now())
            activity = _Activity(run, people, past)
            agents = _Agents(run, people, past)
            with past.at_minutes_ago(20 * DAY_MINUTES):
                await agents.issue_tokens()
                await activity.leads()
                await activity.tickets()
            with past.at_minutes_ago(DAY_MINUTES):
                await activity.invoices()
            lead = await activity.active_lead()
            await agents.change_records(lead)
            await agents.propose_all(lead)
            await agents.log_calls()
            await activity.newest_activity()
            await demo_pages.add_pages(run, people, past.now, lead)


class _Past:
    """The times before the moment at which the activity is added."""

    def __init__(self, now: Instant) -> None:
        self.now = now

    def minutes(self, ago: int) -> Instant:
        """Return the moment this many minutes ago."""
        return clock.later(self.now, seconds=-ago * 60)

    @contextmanager
    def at_minutes_ago(self, minutes: int) -> Generator[None]:
        """During the block, the clock shows a time this many minutes ago."""
        with clock.fixed(self.minutes(minutes)):
            yield

    def day(self, offset: int) -> str:
        """Return the date this many days after today."""
        return clock.rfc3339(clock.later(self.now, seconds=offset * 86_400))[:10]


class _Activity:
    """Changes records so that their dates lie around today."""

    def __init__(self, run: Run, people: Mapping[str, str], past: _Past) -> None:
        self._run = run
        self._people = people
        self._past = past

    def _act_as(self, person: str) -> "_Activity":
        actor = replace(self._run.actor, user_id=self._people[person])
        return _Activity(replace(self._run, actor=actor), self._people, self._past)

    async def set_values(self, model: str, record_id: str, **values: str) -> None:
        """Set fields of a record."""
        model_declaration = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, model_declaration, None, record_id)
        field_inputs = {name: FieldInput(model_declaration.fields[name].read(value)) for name, value in values.items()}
        await record_writer.update(self._run, model_declaration, record, field_inputs, f"{model}.update")

    async def _create(self, model: str, **values: object) -> None:
        model_declaration = self._run.engine.registry.models[model]
        await workflow.EffectContext(self._run, model_declaration, "", {}, f"{model}.create").create(model, **values)

    async def _run_action(self, model: str, record_id: str, name: str, **inputs: object) -> None:
        model_declaration = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, model_declaration, None, record_id)
        field_inputs = {
            field: FieldInput(model_declaration.fields[field].read(value)) for field, value in inputs.items()
        }
        await workflow.perform(
            self._run, model_declaration, record, workflow.move_of(model_declaration, name), field_inputs
        )

    async def leads(self) -> None:
        """Move the dates of decided leads to the past and of open leads to the future. Add activities to some leads."""
        count_by_decided = {True: 0, False: 0}
        stages: dict[str, int] = {}
        leads = await self._run.transaction.fetch(_LEADS)
        for number, (lead, title, old_stage) in enumerate(leads):
            stages[old_stage] = stages.get(old_stage, -1) + 1
            stage = _LATER_STAGES.get((old_stage, stages[old_stage] % 5), str(old_stage))
            is_decided = stage in ("won", "lost")
            place_in_list = count_by_decided[is_decided]
            count_by_decided[is_decided] += 1
            close_offset = (
                -_denser_days_ago(place_in_list % 240, 240, 2 * SPREAD_DAYS)
                if is_decided
                else place_in_list * 11 % 67 - 2
            )
            person = "alice" if place_in_list % 2 == 0 else "bob"
            values = {"stage": stage, "expected_close": self._past.day(close_offset), "owner": self._people[person]}
            await self._act_as(person).set_values("lead", lead, **values)
            if number % 3 == 0:
                kind, activity_title = _ACTIVITIES[number % len(_ACTIVITIES)]
                subject = f"{activity_title}: {title}"[:200]
                due_day = _day_in_active_weeks(number, 14 - _denser_days_ago(number, len(leads), 2 * SPREAD_DAYS + 14))
                state = "done" if due_day < 0 and number % 7 else "planned"
                values = {"kind": kind, "subject": subject, "due": self._past.day(due_day), "state": state}
                await self._create("activity", lead=lead, **values)

    async def invoices(self) -> None:
        """Spread the invoices over twelve weeks, and pay half of them."""
        day = self._past.day
        invoices = await self._run.transaction.fetch(_INVOICES)
        for number, (invoice,) in enumerate(invoices):
            issue_day = number * SPREAD_DAYS // len(invoices) - SPREAD_DAYS
            await self.set_values("invoice", invoice, due=day(issue_day + 14 + number % 3 * 8))
            await self.set_values("invoice", invoice, issued=day(issue_day))
        for number, (invoice, amount, issue_day) in enumerate(await self._run.transaction.fetch(_OPEN)):
            if number % 5:
                paid_on = min(day(-1), max(issue_day, day(number * SPREAD_DAYS // 150 - SPREAD_DAYS // 2)))
                payment = {"amount_minor": amount, "paid_on": paid_on, "reference": f"DEMO {number:04d}"}
                await self._create("payment", invoice=invoice, **payment)
                await self._run_action("invoice", invoice, "settle")

    async def tickets(self) -> None:
        """Give tickets a day, a person and a state: the newest are in progress, the others are solved."""
        tickets = await self._run.transaction.fetch(_TICKETS)
        for number, (ticket,) in enumerate(tickets):
            assignee = self._people[("alice", "bob")[number % 2]]
            opened_day = (
                -number // 2
                if number < RECENT_TICKETS
                else -_denser_days_ago(number, len(tickets), 2 * SPREAD_DAYS) - 5
            )
            await self.set_values("ticket", ticket, opened=self._past.day(opened_day), assignee=assignee)
            if number >= RECENT_TICKETS:
                await self._run_action("ticket", ticket, "solve", resolution="Answered by e-mail.")
            elif number % 3:
                await self._run_action("ticket", ticket, "start")
                if number % 3 == 2:
                    await self._run_action("ticket", ticket, "wait")

    async def active_lead(self) -> str:
        """Give one lead a long history: activities, notes, a ticket of its party, and an offer. Return its id."""
        leads = await self._run.transaction.fetch(_COMPLETE)
        lead, _, party, amount = next(lead for lead in leads if max(lead[1]) < _AFTER_LATIN)
        ((ticket,),) = await self._run.transaction.fetch(_LAST_TICKET)
        bob = self._act_as("bob")
        with self._past.at_minutes_ago(13 * DAY_MINUTES):
            for day, kind, subject in _PLANNED:
                due_day, state = self._past.day(day), "done" if day < 0 else "planned"
                await bob._create("activity", lead=lead, kind=kind, subject=subject, due=due_day, state=state)
            await bob.set_values("ticket", ticket, party=party)
        with self._past.at_minutes_ago(12 * DAY_MINUTES):
            await bob.set_values("lead", lead, notes=_NOTES)
        with self._past.at_minutes_ago(2 * DAY_MINUTES):
            await bob._run_action("lead", lead, "propose", expected_revenue_minor=amount)
        return str(lead)

    async def newest_activity(self) -> None:
        """Run commands of people, which the first pages show as the newest activity."""
        fetch = self._run.transaction.fetch
        won = [row[0] for row in await fetch(_WINNABLE)][-1]
        first_lead, second_lead = [row[0] for row in await fetch(_IN_STAGE, "new")][-2:]
        offered_lead = [row[0] for row in await fetch(_IN_STAGE, "qualified")][-1]
        tickets = [row[0] for row in await fetch(_OPEN_TICKETS)]
        alice, bob = self._act_as("alice"), self._act_as("bob")
        with self._past.at_minutes_ago(19 * HOUR_MINUTES):
            await alice._run_action("lead", won, "win")
            await alice.set_values("lead", won, expected_close=self._past.day(-1))
        with self._past.at_minutes_ago(3 * HOUR_MINUTES):
            await bob._run_action("ticket", tickets[0], "solve", resolution="The printer has its old driver again.")
        with self._past.at_minutes_ago(2 * HOUR_MINUTES):
            await bob._run_action("lead", first_lead, "qualify")
        with self._past.at_minutes_ago(64):
            await alice._run_action("lead", offered_lead, "propose")
        with self._past.at_minutes_ago(38):
            await bob.set_values("lead", second_lead, expected_close=self._past.day(9))
        with self._past.at_minutes_ago(12):
            await bob._run_action("ticket", tickets[1], "wait")
        opened_records = (
            ("lead", offered_lead),
            ("ticket", tickets[2]),
            ("party", (await fetch(_PARTIES))[0][0]),
            ("lead", won),
        )
        visits = {
            (self._people["alice"], model, record_id): self._past.minutes(9 + 22 * index)
            for index, (model, record_id) in enumerate(opened_records)
        }
        await call_log.write_opened(self._run.transaction, visits)


def _denser_days_ago(index: int, count: int, days: int) -> int:
    """Return the age in days of the record at this index. More records are recent than old."""
    return round(days * (1 - ((index + 1) / count) ** 0.8))


def _day_in_active_weeks(number: int, day: int) -> int:
    """Return the day on which an activity is due: for some of them, a day of every third or fourth week."""
    weeks = {1: 3, 3: 4}.get(number % 4)
    return day if weeks is None else day // (7 * weeks) * 7 * weeks + number % 5


class _Agents:
    """Issues tokens to agents, logs what they read, and proposes plans of each risk."""

    def __init__(self, run: Run, people: Mapping[str, str], past: _Past) -> None:
        self._run = run
        self._people = people
        self._past = past
        self._agents: dict[str, Caller] = {}
        self._calls: list[AgentCall] = []

    async def issue_tokens(self) -> None:
        """Issue the tokens of four agents."""
        await self._issue("alice", "inbox-triage", "lead.*", "activity.*", "ticket.*", "party.get", "plan.*")
        await self._issue("alice", "crm-sync", "lead.*", "party.*", "plan.*")
        await self._issue("alice", "helpdesk-bot", "ticket.*", "party.get", "plan.*")
        await self._issue("carol", "billing-helper", "invoice.*", "payment.*", "product.*", "party.get", "plan.*")

    async def log_calls(self) -> None:
        """Log the agents' reads of the last days, and their proposals."""
        fetch = self._run.transaction.fetch
        leads = [row[0] for row in await fetch(_IN_STAGE, "new")]
        tickets = [row[0] for row in await fetch(_OPEN_TICKETS)]
        parties = [row[0] for row in await fetch(_PARTIES)]
        invoices = [row[0] for row in await fetch(_UNPAID)]
        self._read(
            "inbox-triage",
            16,
            (("ticket.search", []), ("ticket.get", tickets), ("lead.get", leads), ("party.get", parties)),
        )
        # It sent a value that the field does not allow.
        self._note(self._agents["inbox-triage"], 3 * HOUR_MINUTES, "lead.update", leads[0], "refused", 6_000)
        self._read("crm-sync", 12, (("lead.search", []), ("lead.get", leads), ("party.get", parties)))
        self._read("helpdesk-bot", 24, (("ticket.search", []), ("ticket.get", tickets), ("party.get", parties)))
        self._read("billing-helper", 8, (("invoice.search", []), ("invoice.get", invoices), ("lead.search", [])))
        await call_log.add(self._run.transaction, sorted(self._calls, key=lambda call: call.at))

    def _read(self, agent: str, calls_per_day: int, reads: tuple[tuple[str, list[str]], ...]) -> None:
        """Log `calls_per_day` reads by these tools for each day, spread over the day, and fewer on every third day."""
        caller = self._agents[agent]
        for number in range(LOGGED_DAYS * calls_per_day):
            ago = (
                (LOGGED_DAYS * calls_per_day - number) * DAY_MINUTES // calls_per_day - DAY_MINUTES // calls_per_day + 6
            )
            if ago // DAY_MINUTES % 3 == 2 and number % 2:
                continue
            tool, records = reads[number % len(reads)]
            model, _, name = tool.partition(".")
            is_allowed = model in caller.view.models and name in caller.view.models[model].commands
            record = records[number % len(records)] if records and is_allowed else None
            result = "ok" if is_allowed else "refused"
            self._note(caller, ago, tool, record, result, 9_000 + number * 7_919 % 46_000)

    def _note(self, agent: Caller, ago: int, tool: str, record: str | None, result: str, elapsed_us: int) -> None:
        noted_at = self._past.minutes(ago)
        self._calls.append(AgentCall(agent.credential_id, noted_at, tool, record, result, elapsed_us))

    async def change_records(self, lead: str) -> None:
        """Change records with two agents, as their permissions allow; one of them is this lead."""
        leads = [row[0] for row in await self._run.transaction.fetch(_IN_STAGE, "new")]
        tickets = [row[0] for row in await self._run.transaction.fetch(_OPEN_TICKETS)]
        await self._set("crm-sync", 27 * HOUR_MINUTES, "lead", lead, expected_close=self._past.day(1))
        await self._set("inbox-triage", 5 * HOUR_MINUTES, "ticket", tickets[2], resolution="A technician visits.")
        await self._set("crm-sync", 95, "lead", leads[4], expected_close=self._past.day(80))

    async def _set(self, label: str, ago: int, model: str, record_id: str, **values: str) -> None:
        agent = self._agents[label]
        run = replace(self._run, actor=actor_of(agent, "demo"))
        with self._past.at_minutes_ago(ago):
            await _Activity(run, self._people, self._past).set_values(model, record_id, **values)
        self._note(agent, ago, f"{model}.update", record_id, "ok", 46_000)

    async def propose_all(self, lead: str) -> None:
        """Propose with the agents. One of the proposals is for this lead."""
        await self._billing()
        await self._sales(lead)

    async def _sales(self, lead: str) -> None:
        fetch = self._run.transaction.fetch
        new_leads = [row[0] for row in await fetch(_IN_STAGE, "new")]
        # Fonts of some systems lack other letters, and the first page shows these titles.
        lost_leads = [lead for lead, title in await fetch(_WITH_ACTIVITIES, "lost") if max(title) < _AFTER_LATIN]
        offered_leads = [row[0] for row in await fetch(_IN_STAGE, "proposed") if row[0] != lead][-2:]
        tickets = [row[0] for row in await fetch(_OPEN_TICKETS)]
        await self._change_leads([lead, *offered_leads])
        answer = {"id": tickets[2], "resolution": "The new version exports all columns."}
        reason = "The export works with the new version."
        await self._propose("helpdesk-bot", 88, reason, ("ticket.solve", answer))
        for ago, (lead,) in zip((130, 52), (await fetch(_WINNABLE))[:2], strict=True):
            await self._propose("crm-sync", ago, "The order has arrived.", ("lead.win", {"id": lead}))
        deletions = [("lead.delete", {"id": lost_lead, "cascade": True}) for lost_lead in lost_leads[1:3]]
        await self._propose("inbox-triage", 31, "Lost for more than a year, without activity.", *deletions)
        duplicate = ("lead.delete", {"id": new_leads[0], "cascade": True})
        await self._propose("crm-sync", 16, "A duplicate of another lead.", duplicate)
        reason = "The contact wrote that the trial is cancelled and asked for their data to be removed."
        await self._propose("inbox-triage", 4, reason, ("lead.delete", {"id": lost_leads[0], "cascade": True}))

    async def _change_leads(self, leads: list[str]) -> None:
        """Propose an amount for the first lead, and a closing date for each other lead."""
        first_lead, *other_leads = leads
        amount = ("lead.update", {"id": first_lead, "expected_revenue_minor": 2_450_000})
        await self._propose("crm-sync", 67, "The customer ordered two more tills.", amount)
        for lead in other_leads:
            step = ("lead.update", {"id": lead, "expected_close": self._past.day(21)})
            await self._propose("crm-sync", 175, "The customer decides after the trade fair.", step)

    async def _billing(self) -> None:
        fetch = self._run.transaction.fetch
        for ago, (invoice, amount) in zip((190, 75), await fetch(_UNPAID), strict=True):
            # An hour after midnight, a payment that was proposed two hours ago is of yesterday.
            paid_on = clock.rfc3339(self._past.minutes(ago))[:10]
            payment_values = {"invoice": invoice, "amount_minor": amount, "paid_on": paid_on}
            reason = "The bank statement shows this transfer."
            await self._propose("billing-helper", ago, reason, ("payment.create", payment_values))
        for (product,) in await fetch(_PRODUCTS):
            step = ("product.update", {"id": product, "tax_bp": 700})
            await self._propose("billing-helper", 60, "The reduced rate applies.", step)

    async def _issue(self, person: str, label: str, *scopes: str) -> None:
        """Issue a token to a new agent of a person. The token itself is not kept."""
        engine, transaction = self._run.engine, self._run.transaction
        rights = await grants.rights_of(transaction, engine.registry, self._people[person])
        if rights is None:
            raise LookupError(f"the person {person} of the demonstration is missing")
        view = visibility.view_of(engine.registry, engine.commands, rights)
        owner = Caller("person", rights.user_id, person, "", view, rights.roles)
        issued_token = await agent_tokens.issue_token(transaction, engine.records, owner, TokenRequest(scopes, label))
        agent = await Callers(engine.records, engine.commands).agent(transaction, issued_token.record_id)
        if agent is None:
            raise LookupError(f"the agent {label} of the demonstration cannot authenticate")
        self._agents[label] = agent

    async def _propose(self, label: str, ago: int, reason: str, *steps: _Step) -> None:
        agent = self._agents[label]
        run = replace(self._run, caller=agent, actor=actor_of(agent, "demo"))
        with self._past.at_minutes_ago(ago):
            step_parts = [(*name.partition(".")[::2], inputs) for name, inputs in steps]
            prepared_commands = [
                await command.check(run, run.view_of(model), name, inputs) for model, name, inputs in step_parts
            ]
            if prepared_commands:
                await proposals.propose(run, prepared_commands, reason=reason)
        target = steps[0][1].get("id")
        record = target if isinstance(target, str) else None
        self._note(agent, ago, steps[0][0], record, "proposed", 84_000)
