"""The tables that a database was installed with are stored in it: every version reads what earlier ones stored."""

import msgspec

from countersign.records.schema.snapshot import Column, Index, ModelTable, Snapshot

STORED = b"""
{"tables": {"invoice": {"columns": [
    {"name": "id", "type": "TEXT"},
    {"name": "party", "type": "TEXT", "references": "party", "kind": "ref", "is_required": true},
    {"name": "net_minor", "type": "BIGINT", "kind": "money", "made_from": ["invoice_line.net_minor"]},
    {"name": "note", "type": "TEXT", "kind": "longtext", "label": "NOTES", "is_linked": true, "former_name": "notes"}
]}}}
"""


def test_a_stored_column_is_read_with_all_its_properties() -> None:
    columns = msgspec.json.decode(STORED)["tables"]["invoice"]["columns"]

    columns_read = [msgspec.convert(column, Column) for column in columns]

    assert columns_read[1].references == "party"
    assert columns_read[2].direct_sources == ("invoice_line.net_minor",)
    assert (columns_read[3].label, columns_read[3].is_linked, columns_read[3].former_name) == ("NOTES", True, "notes")
    assert [msgspec.json.decode(msgspec.json.encode(column)) for column in columns_read] == columns


def test_the_stored_names_stay() -> None:
    stored_fields = {
        struct.__name__: " ".join(struct.__struct_encode_fields__) for struct in (Snapshot, ModelTable, Column, Index)
    }

    assert stored_fields == {
        "Snapshot": "tables versions",
        "ModelTable": "name module columns indexes bits used_bits unfilled",
        "Column": "name type references kind options is_required made_from label is_linked former_name",
        "Index": "name terms is_unique holding",
    }
