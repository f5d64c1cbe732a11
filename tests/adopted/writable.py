"""The models of the shop with tables that people may write."""

from dataclasses import replace

from countersign.declare import Declared, Model, Module
from countersign.declare.registry import Registry
from countersign.records import base_models
from tests.adopted.shop import MODULE
from tests.declare.planting import model


def writable_registry(*, version: str = "") -> Registry:
    """Return the registry of the shop whose tables are writable. `version` is the column in which other applications
    count the changes of a customer."""
    models = [
        _with_writable_table(each, each.declared, version if each.declared.name == "customer" else "")
        for each in MODULE.models
    ]
    return Registry(
        [base_models.MODULE, Module("shop", version="1.0.0", models=tuple(models), search_path=("public",))]
    )


def _with_writable_table(model_class: type[Model], declared: Declared, version: str) -> type[Model]:
    assert declared.table is not None
    table = replace(declared.table, writable=True, version=version)
    return model(model_class.__name__, declared.fields, table=table)
