"""A records service with a test's own models in the process of the test. Tests call its dispatcher as HTTP and MCP
do."""

import dataclasses
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from countersign.declare import ADMINISTRATOR, Declared, Field, Grant, Model, Module
from countersign.declare.registry import Registry
from countersign.kernel.database.open import open_database
from countersign.kernel.database.versions import Versions
from countersign.kernel.http.rate_limit import SharedMemoryCounters
from countersign.kernel.mail.transports import open_mail
from countersign.kernel.security.masterkey import load_master_key
from countersign.records import app, base_models, builtin_commands, root_secret, user_creation
from countersign.records.access import agent_tokens, grants, visibility
from countersign.records.access.agent_tokens import TokenRequest
from countersign.records.access.view import Caller, Domain
from countersign.records.access.visibility import Rights, ScopeLimit
from countersign.records.app import RecordsService
from countersign.records.approvals.proposals import Proposal
from countersign.records.commands import command
from countersign.records.commands.run import Run, actor_of
from countersign.records.context import Records
from countersign.records.dispatch import require_command
from countersign.records.schema import install
from countersign.settings import Settings


@asynccontextmanager
async def open_service(
    url: str,
    folder: Path,
    *models: type[Model],
    schema: str = "records",
    deadline_s: float = 5.0,
    kinds: Sequence[type[Field]] = (),
) -> AsyncGenerator["InProcessService"]:
    """Open a service with these models and kinds of fields on the database at this address, which is empty or was
    opened before."""
    registry = Registry([base_models.MODULE, Module("trial", version="1", models=models, kinds=kinds)])
    database = await open_database(url, schema=schema, pool=4, reserve_bytes=0, read_deadline_s=deadline_s)
    counters = SharedMemoryCounters(folder, slots=64)
    try:
        master = load_master_key(None, None, folder)
        await install.upgrade(database, registry, master)
        records = Records(
            settings=Settings(data=str(folder)),
            root_url="http://127.0.0.1",
            is_loopback=True,
            database=database,
            registry=registry,
            bits=await install.bits(database),
            master=master,
            secret=await root_secret.secret(database, master),
            mail=open_mail("", "Trial <no-reply@localhost>", folder),
            versions=Versions(database, ("access",)).current,
            plan_version=Versions(database, ("plan",)).current,
        )
        yield InProcessService(app.assemble_service(records, counters))
    finally:
        await counters.close()
        await database.close()


@dataclasses.dataclass
class InProcessService:
    """A service, with callers that are created from grants, like people who are signed in and their agents."""

    service: RecordsService

    @property
    def models(self) -> Mapping[str, Declared]:
        """Return the declared models."""
        return self.service.records.registry.models

    def administrator(self, user_id: str = "a" * 24) -> Caller:
        """Return a person who sees everything in clear and may run every command."""
        return self._caller(Rights(user_id, "root", frozenset({ADMINISTRATOR})), None, None, None)

    async def member(self) -> Caller:
        """Return an administrator who has a record, so that agents with tokens can be created for this person."""
        records = self.service.records
        async with records.database.transaction() as transaction:
            await grants.seed_roles(transaction, records.registry)
            run = self.run(self.administrator()).within(transaction)
            user_id = await user_creation.add_user(run, "ada", "Ada", None, [ADMINISTRATOR], None)
        return self.administrator(user_id)

    async def person(self, *grants: Grant, user_id: str = "b" * 24) -> Caller:
        """Return a person with these grants. If fields are masked, the person has a token domain."""
        rights = Rights(user_id, "person", frozenset({"tester"}), frozenset(), grants)
        return self._caller(rights, None, None, await self.domain(user_id, ""))

    async def agent(self, label: str, *grants: Grant, user_id: str = "b" * 24) -> Caller:
        """Return an agent of a person with these grants, or of an administrator without grants, as authentication would
        return it now."""
        roles = frozenset({"tester"} if grants else {ADMINISTRATOR})
        rights = Rights(user_id, "person", roles, frozenset(), grants)
        return self._caller(rights, ScopeLimit(("*",)), label, await self.domain(user_id, label))

    async def issue_agent_token(self, person: Caller, label: str = "scout") -> str:
        """Issue a bearer token for an agent of a member, and return the id of its record."""
        records = self.service.records
        async with records.database.transaction() as transaction:
            return (await agent_tokens.issue_token(transaction, records, person, TokenRequest(("*",), label))).record_id

    async def caller_of(self, token_id: str) -> Caller:
        """Return the agent that calls with this token."""
        caller = await self.service.callers.agent(self.service.records.database, token_id)
        assert caller is not None
        return caller

    async def domain(self, user_id: str, label: str) -> Domain:
        """Return the open token domain, and open it if needed."""
        records = self.service.records
        async with records.database.transaction() as transaction:
            await agent_tokens.open_domain(transaction, user_id, label)
            domain = await agent_tokens.find_domain(transaction, records.secret, user_id, label)
        assert domain is not None
        return domain

    def _caller(
        self, rights: Rights, scope_limit: ScopeLimit | None, agent: str | None, domain: Domain | None
    ) -> Caller:
        names = command.names_of(self.service.records.registry, builtin_commands.SENTENCES)
        view = visibility.view_of(self.service.records.registry, names, rights, scope_limit)
        return Caller(
            kind="person" if scope_limit is None else "agent",
            user_id=rights.user_id,
            username=rights.username,
            credential_id="c" * 24,
            view=view,
            roles=rights.roles,
            domain=domain if view.is_masked else None,
            agent=agent,
            scopes=() if scope_limit is None else scope_limit.scopes,
        )

    def run(self, caller: Caller) -> Run:
        """Return a run of a reading command by the caller."""
        return Run(self.service.engine, caller, self.service.records.database, actor_of(caller, "request"))

    async def value(self, caller: Caller, model: str, name: str, /, **body: object) -> Any:
        """Run a command and return its value as decoded JSON."""
        view = require_command(caller, model, name)
        outcome = await self.service.dispatch.run(caller, view, name, body, "request")
        assert not isinstance(outcome.value, Proposal), outcome
        return msgspec.json.decode(msgspec.json.encode(outcome.value))

    async def rows(self, statement: str, *values: int | str | None) -> list[tuple[Any, ...]]:
        """Return the rows of a table, independent of any caller."""
        return await self.service.records.database.fetch(statement, *values)

    async def plan_of(self, statement: str, values: Sequence[Any]) -> str:
        """Return the query plan of a statement as text."""
        database = self.service.records.database
        explain = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN"
        rows = await database.scan(f"{explain} {statement}", *values)
        return "\n".join(cast(str, row[-1]) for row in rows)
