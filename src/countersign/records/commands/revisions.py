"""Revisions of records: the log of the fields that each revision changed, and the revision that a caller sees."""

from collections.abc import Container, Mapping

ADD_CHANGE = "INSERT INTO record_change (model, record_id, revision, fields) VALUES ($1, $2, $3, $4)"
REMOVE_CHANGES = "DELETE FROM record_change WHERE model = $1 AND record_id = $2"


def visible_revision(alias: str, model: str, visible_fields: Container[str], bits: Mapping[str, int]) -> str:
    """Return the SQL expression for the revision of a record, which counts only changes that the caller can see.

    `alias` is the table of the record, and `bits` maps each field to its bit in the columns `changed` and `fields`.
    """
    hidden_bits = sum(1 << bit for name, bit in bits.items() if name not in visible_fields)
    if not hidden_bits:
        return f"{alias}.revision"
    visible_bits = sum(1 << bit for name, bit in bits.items() if name in visible_fields)
    # Most records never had a hidden change. For the other records, count the visible changes.
    return (
        f"CASE WHEN {alias}.changed & {hidden_bits} = 0 THEN {alias}.revision ELSE 1 + (SELECT count(*) "
        f"FROM record_change AS change WHERE change.model = '{model}' "
        f"AND change.record_id = {alias}.id AND change.fields & {visible_bits} <> 0) END"
    )
