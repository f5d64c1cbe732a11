"""A plan's steps as they are stored: prepared commands, personal values sealed in the vault."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from countersign.declare.fields.field import Stored
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import Reader, Transaction
from countersign.records.approvals.hanging import Row, Surroundings
from countersign.records.commands.given import Given
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.masking.vault import Vault

_KEEP = "INSERT INTO plan_value (plan_id, value_id, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_KEPT = "SELECT value_id, sealed FROM plan_value WHERE plan_id = $1"
_DROP = "DELETE FROM plan_value WHERE plan_id = $1"

VALUES_A_TURN = 200
"""Values that are opened or shown, with no statement for each, between two turns of the event loop."""


class Value(msgspec.Struct, omit_defaults=True):
    """One given value: in clear, or by the value id under which the plan keeps it."""

    stored: int | str | None = None
    value: int | None = None
    linked: int | None = None
    is_plain: bool = False
    origins: list[int] = []
    is_default: bool = False


class Step(msgspec.Struct, omit_defaults=True):
    """One command of a plan: on which record (as it was at `revision`), with which values.

    `dependents_fingerprint` stands for the records that it takes along, as they were; `read_revisions` are those that
    it reads, with their revisions (see `hanging.Surroundings`); `cascade` is that of a deletion.
    """

    model: str
    command: str
    record_id: str | None = None
    revision: int = 0
    given: dict[str, Value] = {}
    dependents_fingerprint: str = msgspec.field(default="", name="hanging")
    cascade: bool = False
    read_revisions: list[Row] = msgspec.field(default_factory=list[Row], name="reads")

    @property
    def id(self) -> str:
        """The command as it is called."""
        return f"{self.model}.{self.command}"


def decoded(text: str) -> list[Step]:
    """The steps of a stored plan."""
    return msgspec.json.decode(text, type=list[Step])


async def keep(run: Run, plan_id: str, prepared: Sequence[Prepared]) -> list[Step]:
    """The steps to store; personal values are held in the vault until the plan is decided."""
    around = Surroundings(run, prepared)
    return [
        Step(
            each.model,
            each.command,
            each.record_id,
            each.revision,
            {name: await _kept(run, plan_id, each.model, name, given) for name, given in each.given.items()},
            await around.fingerprint(each),
            each.cascade,
            await around.reads(each),
        )
        async for each in CooperativeIterator(prepared)
    ]


async def _kept(run: Run, plan_id: str, model: str, name: str, given: Given) -> Value:
    field = run.engine.registry.models[model].fields[name]
    if field.personal is None or given.stored is None:
        return Value(stored=given.stored, is_default=given.is_default)
    vault, domain = run.engine.vault, run.caller.domain
    held = None if given.value_id is None else await vault.hold_again(run.transaction, given.value_id)
    if held is None:
        held = await vault.hold_apart(run.transaction, field.personal, "" if domain is None else domain.id)
    sealed = vault.seal(held.key, str(given.stored))
    if not await run.transaction.run(_KEEP, plan_id, held.id, sealed):
        await vault.release(run.transaction, [held.id])
    return Value(value=held.id, linked=given.value_id, is_plain=given.is_plain_text, origins=list(given.origins))


async def prepared_of(run: Run, plan_id: str, steps: Sequence[Step]) -> list[Prepared]:
    """The steps as prepared commands again, their personal values opened.

    Raises:
        BadInput: a value was erased meanwhile.
    """
    texts = await kept_texts(run, run.transaction, plan_id)
    return [
        Prepared(
            step.model,
            step.command,
            step.record_id,
            step.revision,
            {name: _given(value, texts) for name, value in step.given.items()},
            step.cascade,
        )
        async for step in CooperativeIterator(steps, VALUES_A_TURN)
    ]


def _given(value: Value, texts: Mapping[int, str]) -> Given:
    if value.value is None:
        return Given(value.stored, is_default=value.is_default)
    if value.value not in texts:
        raise BadInput("a personal value of the plan was erased; propose it again")
    return Given(texts[value.value], value.linked, value.is_plain, tuple(value.origins))


async def kept_texts(run: Run, reader: Reader, plan_id: str) -> dict[int, str]:
    """The clear texts a pending plan keeps, by value id."""
    sealed: dict[int, str] = dict(await reader.fetch(_KEPT, plan_id))
    keys = await run.engine.vault.keys(reader, list(sealed))
    opened = {
        each: run.engine.vault.unseal(keys[each], text)
        async for each, text in CooperativeIterator(sealed.items(), VALUES_A_TURN)
        if each in keys
    }
    return {each: text for each, text in opened.items() if text is not None}


async def let_go(vault: Vault, transaction: Transaction, plan_id: str) -> None:
    """The plan is decided: it keeps no personal value in the vault any longer."""
    rows = await transaction.fetch(_KEPT, plan_id)
    await transaction.run(_DROP, plan_id)
    await vault.release(transaction, [row[0] for row in rows])


def sameness(run: Run, prepared: Sequence[Prepared], seen: Sequence[object]) -> bytes:
    """What two proposals of one agent have in common when they are the same: input as it was sent, and the records as
    it sees them. A value by its token and the same in clear are two: else the agent would learn that they are equal."""
    domain, proposer = run.caller.domain, [run.caller.user_id, run.caller.agent]
    steps = [[each.model, each.command, each.record_id, each.cascade, _sent(each)] for each in prepared]
    text = msgspec.json.encode([None if domain is None else domain.id, proposer, steps, list(seen)])
    return run.engine.vault.keyed(text)


def _sent(prepared: Prepared) -> list[tuple[str, Stored, int | None, bool, tuple[int, ...]]]:
    return sorted(
        (name, each.stored, each.value_id, each.is_plain_text, each.origins) for name, each in prepared.given.items()
    )


def digest(vault: Vault, plan_id: str, steps: Sequence[Step], diff: Sequence[Any], effects: Sequence[Any]) -> str:
    """What an approver names to say which plan he saw. It is keyed: made from hidden values too, a plain hash would let
    whoever sees it try them."""
    text = msgspec.json.encode([plan_id, list(steps), list(diff), list(effects)])
    return f"sha256:{hashlib.sha256(vault.keyed(text)).hexdigest()}"
