"""The provenance rule: a personal value does not reach more readers through an agent without a person's consent."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from countersign.records.access.view import ModelView, Visibility
from countersign.records.commands import incoming
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.run import Run

_READERS = """
SELECT r.title, g.clear, g.commands, g.rows
FROM "grant" AS g
JOIN role AS r ON r.id = g.role
WHERE g.model = $1
"""
_READING = ("get", "list", "search")
_LABEL = "SELECT label FROM pii_value WHERE id = $1"
_LABELS = "SELECT id, label FROM pii_value WHERE id IN ({places})"
_ALIASED = "SELECT model, record_id, field FROM pii_alias WHERE value_id = $1"


async def widens(run: Run, prepared: Prepared) -> bool:
    """Whether a value whose token stands in the input would be read in clear by a role that cannot now.

    The readers of a value are the roles that read, in clear, some field it is in; those of the field it is written to
    must be among them. A role that sees some records of a model alone may see the one written to and not the one that
    the value comes from: it counts as a reader of the latter only where both are the same.
    """
    for name, given in prepared.given.items():
        if not given.origins:
            continue
        readers = (await _readers(run, prepared.model, name)).some
        for value_id in set(given.origins):
            if not readers <= await _readers_of_value(run, value_id, prepared):
                return True
    return False


class _Readers(NamedTuple):
    """Roles that read a field in clear: in some records, and those of them that do in all."""

    some: frozenset[str]
    all: frozenset[str]


async def _readers(run: Run, model: str, field: str) -> _Readers:
    restricted = run.engine.registry.models[model].fields[field].restricted
    some: set[str] = set()
    by_command: dict[str, dict[str, bool]] = {}
    for role, clear, commands, rows in await run.reader.fetch(_READERS, model):
        if _names(clear, field) and (not restricted or role in restricted):
            some.add(role)
        for command in _READING:
            if _names(commands, command):
                sees_all = by_command.setdefault(role, {})
                sees_all[command] = sees_all.get(command, False) or not rows
    return _Readers(frozenset(some), frozenset(role for role in some if _sees_every_row(by_command.get(role, {}))))


def _names(names: object, name: str) -> bool:
    return bool({each.strip() for each in str(names or "").split(",")} & {name, "*"})


def _sees_every_row(by_command: Mapping[str, bool]) -> bool:
    """`get` tells which records exist for a role; for one without it, those it may list."""
    return by_command.get("get", any(by_command.values()))


async def _readers_of_value(run: Run, value_id: int, prepared: Prepared) -> frozenset[str]:
    """The readers of the value's fields in records the caller sees: hidden ones must not change what it is told."""
    row = await run.reader.fetch_one(_LABEL, value_id)
    if row is None:
        return frozenset()
    found: frozenset[str] = frozenset()
    for model, name in incoming.holders(run, row[0]):
        if await incoming.text_in(run, model, name, f"{name}__value", value_id) is not None:
            is_same = model == prepared.model and await incoming.holds(run, model, name, prepared.record_id, value_id)
            found |= (await _readers(run, model, name))[0 if is_same else 1]
    for model, record_id, name in await run.reader.fetch(_ALIASED, value_id):
        if await incoming.text_in(run, model, name, "id", record_id) is not None:
            is_same = (model, record_id) == (prepared.model, prepared.record_id)
            found |= (await _readers(run, model, name))[0 if is_same else 1]
    return found


async def unseen(run: Run, model: str, origins: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """Of the fields of a plan's input those whose text is not for the caller: where it reads the field in clear, and
    not each value whose token stands in the text; where the field is masked for it, and it does not see these at all.

    A plan is no way to read what the agent's person may see and whoever decides may not; nor may it be approved blind.
    """
    view = run.caller.view.models.get(model)
    found: set[str] = set()
    for name, value_ids in origins.items():
        sight = None if view is None else view.fields.get(name)
        if value_ids and (sight is None or not await _sees_all(run, sight, sorted(set(value_ids)))):
            found.add(name)
    return frozenset(found)


async def _sees_all(run: Run, sight: Visibility, value_ids: Sequence[int]) -> bool:
    """Whether the caller sees all of the values so, or in clear."""
    places = ", ".join(f"${number}" for number in range(1, len(value_ids) + 1))
    labels: dict[int, str] = dict(await run.reader.fetch(_LABELS.format(places=places), *value_ids))
    if len(labels) < len(value_ids) and not _sees_everywhere(run, sight, None):
        # What no record holds any more is for those alone who would have read it wherever it was.
        return False
    for label in set(labels.values()):
        if not _sees_everywhere(run, sight, label):
            same = [each for each in value_ids if labels.get(each) == label]
            if await incoming.read(run, label, same, in_clear=sight == "clear") < frozenset(same):
                return False
    return True


def _sees_everywhere(run: Run, sight: Visibility, label: str | None) -> bool:
    """Whether the caller sees every field of the label (None: of any) so, in all records there are."""
    return all(
        _sees_field(run.caller.view.models.get(name), field.name, sight)
        for name, model in run.engine.registry.models.items()
        for field in model.fields.values()
        if field.personal and label in (None, field.personal)
    )


def _sees_field(view: ModelView | None, name: str, sight: Visibility) -> bool:
    return view is not None and view.visible is None and view.fields.get(name) in ("clear", sight)
