"""Billing: products, invoices with lines and tax, payments."""

from countersign.declare import CALLER, Grant, Module, Role, where
from countersign.modules.billing.invoice import NUMBERS, Invoice, InvoiceLine
from countersign.modules.billing.payment import Payment
from countersign.modules.billing.product import Product

SHARING = tuple(
    Grant(model=name, commands=("get",), write=("shared",), rows=(where("owner", eq=CALLER),))
    for name in ("view", "dashboard")
)
"""The right to share one's views and dashboards with everyone."""

module = Module(
    "billing",
    version="1.0.0",
    label_de="Abrechnung",
    icon="receipt",
    needs=("party",),
    settings=(NUMBERS,),
    models=(Product, Invoice, InvoiceLine, Payment),
    roles=(
        Role(
            "accountant",
            *SHARING,
            Grant(model="product", commands="*", clear="*", write="*"),
            Grant(model="invoice", commands="*", clear="*", write="*"),
            Grant(model="invoice_line", commands="*", clear="*", write="*"),
            Grant(model="payment", commands="*", clear="*", write="*"),
            Grant(model="comment", commands=("delete",), rows=(where("model", eq="invoice"),)),
        ),
    ),
)
