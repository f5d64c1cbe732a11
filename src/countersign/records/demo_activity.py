"""The activity of the demonstration: dates around today, payments, tickets in progress, agents with proposals."""

from collections.abc import Mapping
from dataclasses import replace

from countersign.kernel import clock, ids
from countersign.records.access import agent_tokens, grants, visibility
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.callers import Callers
from countersign.records.access.view import Caller, View
from countersign.records.approvals import proposals
from countersign.records.commands import command, record_writer, workflow
from countersign.records.commands.prepared_command import FieldInput
from countersign.records.commands.run import Actor, Engine, Run, actor_of

SPREAD_DAYS = 84
_LEADS = "SELECT id, title FROM lead ORDER BY id LIMIT 160"
_INVOICES = "SELECT id FROM invoice WHERE state = 'posted' ORDER BY number"
_OPEN = "SELECT id, open_minor, issued FROM invoice WHERE state = 'posted' ORDER BY number LIMIT 150"
_TICKETS = "SELECT id FROM ticket ORDER BY id"
_NEW_LEADS = "SELECT id FROM lead WHERE stage = 'new' ORDER BY id LIMIT 12"
_LOST_LEADS = "SELECT id FROM lead WHERE stage = 'lost' ORDER BY id LIMIT 3"
_WINNABLE = "SELECT id FROM lead WHERE stage = 'proposed' AND party IS NOT NULL ORDER BY id LIMIT 2"
_UNPAID = "SELECT id, open_minor FROM invoice WHERE state = 'posted' ORDER BY number DESC LIMIT 2"
_PRODUCTS = "SELECT id FROM product ORDER BY sku LIMIT 3"
_PEOPLE = 'SELECT username, id FROM "user"'
_SUBJECTS = ("Call about the offer", "Send the terms", "Meeting on site", "Ask for the order number", "Follow up")
_KINDS = ("call", "mail", "meeting", "task")

_Step = tuple[str, Mapping[str, object]]


async def add_activity(engine: Engine) -> None:
    """Add activity to the demonstration records, in one transaction."""
    with ids.seeded("activity"):
        async with engine.records.database.transaction() as transaction:
            people = dict(await transaction.fetch(_PEOPLE))
            nobody = Caller("person", "", "", "", View({}))
            run = Run(engine, nobody, transaction, Actor(people["root"], request_id="demo"), transaction)
            activity = _Activity(run, people)
            await activity.leads()
            await activity.invoices()
            await activity.tickets()
            await _Agents(run, people).propose_all()


def _day(offset: int) -> str:
    return clock.rfc3339(clock.later(clock.now(), seconds=offset * 86_400))[:10]


class _Activity:
    """Changes records so that their dates lie around today."""

    def __init__(self, run: Run, people: Mapping[str, str]) -> None:
        self._run = run
        self._people = people

    async def _set(self, model: str, record_id: str, **values: str) -> None:
        declared = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, declared, None, record_id)
        given = {name: FieldInput(declared.fields[name].read(value)) for name, value in values.items()}
        await record_writer.update(self._run, declared, record, given, "demo")

    async def _create(self, model: str, **values: object) -> None:
        declared = self._run.engine.registry.models[model]
        await workflow.EffectContext(self._run, declared, "", {}, "demo").create(model, **values)

    async def _act(self, model: str, record_id: str, name: str) -> None:
        declared = self._run.engine.registry.models[model]
        record = await record_writer.find(self._run, declared, None, record_id)
        await workflow.perform(self._run, declared, record, workflow.move_of(declared, name), {})

    async def leads(self) -> None:
        """Let leads close around today, and add activities to some."""
        for number, (lead, title) in enumerate(await self._run.transaction.fetch(_LEADS)):
            await self._set("lead", lead, expected_close=_day(number * 7 % 110 - 20))
            if number % 3 == 0:
                subject = f"{_SUBJECTS[number % len(_SUBJECTS)]}: {title}"[:200]
                due, state = _day(number % 29 - 12), "done" if number % 9 == 0 else "planned"
                await self._create(
                    "activity", lead=lead, kind=_KINDS[number % 4], subject=subject, due=due, state=state
                )

    async def invoices(self) -> None:
        """Spread the invoices over twelve weeks, and pay half of them."""
        invoices = await self._run.transaction.fetch(_INVOICES)
        for number, (invoice,) in enumerate(invoices):
            issued = number * SPREAD_DAYS // len(invoices) - SPREAD_DAYS
            await self._set("invoice", invoice, due=_day(issued + 14 + number % 3 * 8))
            await self._set("invoice", invoice, issued=_day(issued))
        for number, (invoice, amount, issued) in enumerate(await self._run.transaction.fetch(_OPEN)):
            if number % 5:
                paid_on = min(_day(0), max(issued, _day(number * SPREAD_DAYS // 150 - SPREAD_DAYS // 2)))
                payment = {"amount_minor": amount, "paid_on": paid_on, "reference": f"DEMO {number:04d}"}
                await self._create("payment", invoice=invoice, **payment)
                await self._act("invoice", invoice, "settle")

    async def tickets(self) -> None:
        """Give tickets a day, a person and a state."""
        for number, (ticket,) in enumerate(await self._run.transaction.fetch(_TICKETS)):
            assignee = self._people[("alice", "bob")[number % 2]]
            await self._set("ticket", ticket, opened=_day(-(number * 5 % 28)), assignee=assignee)
            if number % 4:
                await self._act("ticket", ticket, "start")
            if number % 4 == 2:
                await self._act("ticket", ticket, "wait")


class _Agents:
    """Issues tokens to agents, and proposes plans of each risk."""

    def __init__(self, run: Run, people: Mapping[str, str]) -> None:
        self._run = run
        self._people = people

    async def propose_all(self) -> None:
        """Propose with three agents."""
        await self._sales()
        await self._billing()

    async def _sales(self) -> None:
        fetch = self._run.transaction.fetch
        new = [row[0] for row in await fetch(_NEW_LEADS)]
        lost = [row[0] for row in await fetch(_LOST_LEADS)]
        triage = await self._agent("alice", "inbox-triage", "lead.*", "activity.*", "ticket.*", "plan.*")
        why = "The contact wrote that the trial is cancelled and asked for their data to be removed."
        await self._propose(triage, why, ("lead.delete", {"id": lost[0], "cascade": True}))
        stale = [("lead.delete", {"id": each, "cascade": True}) for each in lost[1:]]
        await self._propose(triage, "Lost for more than a year, without activity.", *stale)
        sync = await self._agent("alice", "crm-sync", "lead.*", "party.*", "plan.*")
        for (lead,) in await fetch(_WINNABLE):
            await self._propose(sync, "The order has arrived.", ("lead.win", {"id": lead}))
        for lead in new[:1]:
            await self._propose(sync, "A duplicate of another lead.", ("lead.delete", {"id": lead, "cascade": True}))

    async def _billing(self) -> None:
        fetch = self._run.transaction.fetch
        scopes = ("invoice.*", "payment.*", "product.*", "party.get", "plan.*")
        biller = await self._agent("carol", "billing-helper", *scopes)
        for invoice, amount in await fetch(_UNPAID):
            given = {"invoice": invoice, "amount_minor": amount, "paid_on": _day(0)}
            await self._propose(biller, "The bank statement shows this transfer.", ("payment.create", given))
        for (product,) in await fetch(_PRODUCTS):
            await self._propose(biller, "The reduced rate applies.", ("product.update", {"id": product, "tax_bp": 700}))

    async def _agent(self, person: str, label: str, *scopes: str) -> Caller:
        """Issue a token to a new agent of a person. The token itself is not kept."""
        engine, transaction = self._run.engine, self._run.transaction
        rights = await grants.rights_of(transaction, engine.registry, self._people[person])
        if rights is None:
            raise LookupError(f"the person {person} of the demonstration is missing")
        view = visibility.view_of(engine.registry, engine.commands, rights)
        owner = Caller("person", rights.user_id, person, "", view, rights.roles)
        issued = await agent_tokens.issue_token(transaction, engine.records, owner, TokenRequest(scopes, label))
        agent = await Callers(engine.records, engine.commands).agent(transaction, issued.record_id)
        if agent is None:
            raise LookupError(f"the agent {label} of the demonstration cannot authenticate")
        return agent

    async def _propose(self, agent: Caller, why: str, *steps: _Step) -> None:
        run = replace(self._run, caller=agent, actor=actor_of(agent, "demo"))
        named = [(*name.partition(".")[::2], given) for name, given in steps]
        prepared = [await command.check(run, run.view_of(model), name, given) for model, name, given in named]
        if prepared:
            await proposals.propose(run, prepared, why=why)

