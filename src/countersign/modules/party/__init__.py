"""Parties: the people and companies everything else is about."""

from countersign.declare import Grant, Module, Role
from countersign.modules.party.address import Address
from countersign.modules.party.party import Party

CONTACT = ("name", "email", "phone", "notes")
PLAIN = ("kind", "website", "customer_since", "is_active")

module = Module(
    "party",
    version="1.0.0",
    label="Parties",
    label_de="Kontakte",
    icon="building-2",
    models=(Party, Address),
    roles=(
        Role(
            "sales_manager",
            Grant(model="party", commands="*", clear="*", write="*"),
            Grant(model="address", commands="*", clear="*", write="*"),
            Grant(model="comment", commands=("delete",)),
        ),
        Role(
            "clerk",
            Grant(model="party", commands=("get", "list", "search", "count_by"), clear=PLAIN, masked=CONTACT),
            Grant(model="address", clear=("party", "label", "city", "country"), masked=("street", "postcode")),
        ),
        Role(
            "accountant",
            Grant(
                model="party",
                commands=("get", "list", "search", "update", "export", "history"),
                clear="*",
                write=("tax_id", "email", "phone"),
            ),
            Grant(model="address", commands=("get", "list", "search", "create", "update"), clear="*", write="*"),
        ),
    ),
)
