"""The provenance rule: a personal value does not reach more readers through an agent without a person's consent."""

from countersign.records.commands import incoming
from countersign.records.commands.prepared import Prepared
from countersign.records.commands.run import Run

_READERS = """
SELECT r.title, g.clear
FROM "grant" AS g
JOIN role AS r ON r.id = g.role
WHERE g.model = $1
"""
_LABEL = "SELECT label FROM pii_value WHERE id = $1"
_ALIASED = "SELECT model, record_id, field FROM pii_alias WHERE value_id = $1"


async def widens(run: Run, prepared: Prepared) -> bool:
    """Whether a value whose token stands in the input would be read in clear by a role that cannot now.

    The readers of a value are the roles that read, in clear, some field it is in; those of the field it is written to
    must be among them.
    """
    for name, given in prepared.given.items():
        if not given.origins:
            continue
        readers = await _readers(run, prepared.model, name)
        for value_id in set(given.origins):
            if not readers <= await _readers_of_value(run, value_id):
                return True
    return False


async def _readers(run: Run, model: str, field: str) -> frozenset[str]:
    restricted = run.engine.registry.models[model].fields[field].restricted
    found: set[str] = set()
    for role, clear in await run.reader.fetch(_READERS, model):
        names = {each.strip() for each in str(clear or "").split(",")}
        if (field in names or "*" in names) and (not restricted or role in restricted):
            found.add(role)
    return frozenset(found)


async def _readers_of_value(run: Run, value_id: int) -> frozenset[str]:
    """The readers of the value's fields in records the caller sees: hidden ones must not change what it is told."""
    row = await run.reader.fetch_one(_LABEL, value_id)
    if row is None:
        return frozenset()
    found: frozenset[str] = frozenset()
    for model, name in incoming.holders(run, row[0]):
        if await incoming.text_in(run, model, name, f"{name}__value", value_id) is not None:
            found |= await _readers(run, model, name)
    for model, record_id, name in await run.reader.fetch(_ALIASED, value_id):
        if await incoming.text_in(run, model, name, "id", record_id) is not None:
            found |= await _readers(run, model, name)
    return found
