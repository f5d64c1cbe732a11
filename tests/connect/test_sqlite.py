"""The draft of a module text for a SQLite file."""

import asyncio
from pathlib import Path

import pytest

from countersign.connect import sqlite
from countersign.connect.draft import NO_KEY, Draft
from countersign.declare import Ref, text
from countersign.declare.model import Declared
from countersign.declare.registry import Registry
from countersign.kernel.errors import Unavailable
from countersign.records import base_models
from tests.connect.conftest import drafted_sqlite


def models(module_draft: Draft) -> dict[str, Declared]:
    """Return the models by their table, after the draft was written, read and checked."""
    module = text.build(text.read(text.write(module_draft.text)), "shop.py")
    declared = Registry((base_models.MODULE, module)).models.values()
    return {each.table.relation: each for each in declared if each.table is not None}


def test_the_kind_of_a_field_follows_the_declared_type(sqlite_file: Path) -> None:
    declared_models = models(drafted_sqlite(sqlite_file))

    lines = {name: field.kind for name, field in declared_models["Order Lines"].fields.items()}
    customer = {name: (field.kind, field.personal) for name, field in declared_models["customer"].fields.items()}
    assert lines == {
        "customer": "ref", "product": "ref", "price_minor": "money", "ordered_at": "moment",
        "is_paid": "bool", "total": "decimal",
    }  # fmt: skip
    assert customer == {
        "name": ("text", "PERSON"), "e_mail": ("text", "EMAIL"), "untyped": ("text", "TEXT"),
        "odd_type": ("text", "TEXT"),
    }  # fmt: skip


def test_a_foreign_key_without_columns_refers_to_the_primary_key(sqlite_file: Path) -> None:
    fields = models(drafted_sqlite(sqlite_file))["Order Lines"].fields

    customer, product = fields["customer"], fields["product"]
    assert isinstance(customer, Ref)
    assert isinstance(product, Ref)
    assert (customer.target, customer.columns) == ("customer", ("customer",))
    assert (product.target, product.columns) == ("product", ("product",))


def test_a_key_that_may_be_empty_or_is_partial_is_no_key(sqlite_file: Path) -> None:
    module_draft = drafted_sqlite(sqlite_file)

    adopted = {name: model.table.key_columns for name, model in models(module_draft).items() if model.table is not None}
    assert adopted == {
        "customer": ("id",), "Order Lines": ("order_id", "line_no"), "product": ("code",), "by_index": ("number",),
        '"semi;colon ""quoted"""': ("id",),
    }  # fmt: skip
    assert {place for place, reason in module_draft.report.left_out if reason == NO_KEY} == {
        "empty_keys", "by_expression", "partial"
    }  # fmt: skip
    assert "1 trigger: keep" in text.write(module_draft.text)


def test_without_samples_text_is_masked_as_well(sqlite_file: Path) -> None:
    shown = [
        f"{name}.{field.name}"
        for name, model in models(drafted_sqlite(sqlite_file, sample=0)).items()
        for field in model.fields.values()
        if field.kind in ("text", "longtext") and not field.personal
    ]

    assert not shown


def test_a_file_that_is_no_database_is_refused_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(b"hunter2 " * 1000)

    with pytest.raises(Unavailable) as caught:
        asyncio.run(sqlite.read(f"sqlite:///{tmp_path}/noise.db"))
    assert "hunter2" not in str(caught.value)
