"""Stores the steps of plans, with their personal values encrypted and with fingerprints of the records on which they
depend."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from countersign.declare.fields.field import Stored
from countersign.kernel.concurrency import CooperativeIterator
from countersign.kernel.database.port import Reader, Transaction
from countersign.records.approvals.plan_dependencies import Dependencies, ReadRow
from countersign.records.commands.errors import BadInput
from countersign.records.commands.prepared_command import FieldInput, PlannedCommand, PreparedCommand
from countersign.records.commands.run import Run
from countersign.records.masking.vault import Vault

_ADD_VALUE = "INSERT INTO plan_value (plan_id, value_id, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_VALUES = "SELECT value_id, sealed FROM plan_value WHERE plan_id = $1"
_DELETE_VALUES = "DELETE FROM plan_value WHERE plan_id = $1"

VALUES_PER_TURN = 200
"""The number of values to decrypt or render before yielding to the event loop. It applies to work that needs no
statement for each value."""


class Step(PlannedCommand, frozen=True):
    """A stored command of a plan. It contains the value ids of personal values instead of the values.

    `dependents_fingerprint` is the fingerprint of the records on which the command depends indirectly. `read_revisions`
    lists the records that the command reads, with their revisions. Both were determined when the plan was proposed (see
    `Dependencies`).
    """

    dependents_fingerprint: str = msgspec.field(default="", name="hanging")
    read_revisions: list[ReadRow] = msgspec.field(default_factory=list[ReadRow], name="reads")


def decode_steps(text: str) -> list[Step]:
    """Return the steps of a stored plan."""
    return msgspec.json.decode(text, type=list[Step])


async def store_steps(run: Run, plan_id: str, prepared_commands: Sequence[PreparedCommand]) -> list[Step]:
    """Return the steps to store, and store their personal values, encrypted with keys of the vault, until the plan is
    decided."""
    dependencies = Dependencies(run, prepared_commands)
    return [
        Step(
            command.model,
            command.command,
            command.record_id,
            command.revision,
            {
                name: await _store_value(run, plan_id, command.model, name, field_input)
                for name, field_input in command.given.items()
            },
            command.cascade,
            await dependencies.fingerprint(command),
            await dependencies.reads(command),
        )
        async for command in CooperativeIterator(prepared_commands)
    ]


async def _store_value(run: Run, plan_id: str, model: str, name: str, field_input: FieldInput) -> FieldInput:
    field = run.engine.registry.models[model].fields[name]
    if field.personal is None or field_input.stored is None:
        return FieldInput(field_input.stored, is_default=field_input.is_default)
    vault, domain = run.engine.vault, run.caller.domain
    value_key = (
        None if field_input.value_id is None else await vault.hold_existing(run.transaction, field_input.value_id)
    )
    if value_key is None:
        value_key = await vault.create_alias_id(run.transaction, field.personal, "" if domain is None else domain.id)
    sealed_text = vault.seal(value_key.key, str(field_input.stored))
    if not await run.transaction.run(_ADD_VALUE, plan_id, value_key.id, sealed_text):
        await vault.release(run.transaction, [value_key.id])
    return FieldInput(
        None, field_input.value_id, field_input.is_plain_text, field_input.origins, sealed_id=value_key.id
    )


def stored_copy(value: FieldInput) -> object:
    """Return the value of a step in the form in which the plan's diff stores it. A personal value is stored as its
    value id."""
    return value.stored if value.sealed_id is None else {"value": value.sealed_id}


async def prepared_of(run: Run, plan_id: str, steps: Sequence[Step]) -> list[PreparedCommand]:
    """Convert the steps back to prepared commands, with their personal values in clear.

    Raises:
        BadInput: a personal value has been erased.
    """
    texts = await stored_texts(run, run.transaction, plan_id)
    return [
        PreparedCommand(
            step.model,
            step.command,
            step.record_id,
            step.revision,
            {name: _with_text(value, texts) for name, value in step.given.items()},
            step.cascade,
        )
        async for step in CooperativeIterator(steps, VALUES_PER_TURN)
    ]


def _with_text(value: FieldInput, texts: Mapping[int, str]) -> FieldInput:
    if value.sealed_id is None:
        return value
    if value.sealed_id not in texts:
        raise BadInput("a personal value of the plan was erased; propose it again")
    return FieldInput(texts[value.sealed_id], value.value_id, value.is_plain_text, value.origins)


async def stored_texts(run: Run, reader: Reader, plan_id: str) -> dict[int, str]:
    """Map the value ids of a pending plan to their texts in clear."""
    sealed_texts: dict[int, str] = dict(await reader.fetch(_VALUES, plan_id))
    keys = await run.engine.vault.keys(reader, list(sealed_texts))
    text_by_id = {
        value_id: run.engine.vault.unseal(keys[value_id], text)
        async for value_id, text in CooperativeIterator(sealed_texts.items(), VALUES_PER_TURN)
        if value_id in keys
    }
    return {value_id: text for value_id, text in text_by_id.items() if text is not None}


async def release_values(vault: Vault, transaction: Transaction, plan_id: str) -> None:
    """Release the personal values that a decided plan keeps in the vault."""
    rows = await transaction.fetch(_VALUES, plan_id)
    await transaction.run(_DELETE_VALUES, plan_id)
    await vault.release(transaction, [row[0] for row in rows])


def proposal_key(run: Run, prepared_commands: Sequence[PreparedCommand], visible_revisions: Sequence[object]) -> bytes:
    """Return the key that equal proposals of one agent share. It covers the input as sent, and the records as the agent
    sees them. A token and the same value in clear have different keys. Otherwise, the agent would learn that they are
    equal."""
    domain, proposer = run.caller.domain, [run.caller.user_id, run.caller.agent]
    steps = [
        [
            prepared_command.model,
            prepared_command.command,
            prepared_command.record_id,
            prepared_command.cascade,
            _sent_values(prepared_command),
        ]
        for prepared_command in prepared_commands
    ]
    text = msgspec.json.encode([None if domain is None else domain.id, proposer, steps, list(visible_revisions)])
    return run.engine.vault.keyed(text)


def _sent_values(prepared_command: PreparedCommand) -> list[tuple[str, Stored, int | None, bool, tuple[int, ...]]]:
    return sorted(
        (name, field_input.stored, field_input.value_id, field_input.is_plain_text, field_input.origins)
        for name, field_input in prepared_command.given.items()
    )


def digest(vault: Vault, plan_id: str, steps: Sequence[Step], diff: Sequence[Any], effects: Sequence[Any]) -> str:
    """Return the digest with which an approver identifies the plan that was shown. The digest is keyed, because it
    covers hidden values, which could be guessed from a plain hash."""
    text = msgspec.json.encode([plan_id, list(steps), list(diff), list(effects)])
    return f"sha256:{hashlib.sha256(vault.keyed(text)).hexdigest()}"
