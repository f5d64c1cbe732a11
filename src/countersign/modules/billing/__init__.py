"""Billing: products, invoices with lines and tax, payments."""

from countersign.declare import Grant, Module, Role
from countersign.modules.billing.invoice import NUMBERS, Invoice, InvoiceLine
from countersign.modules.billing.payment import Payment
from countersign.modules.billing.product import Product

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
            Grant(model="product", commands="*", clear="*", write="*"),
            Grant(model="invoice", commands="*", clear="*", write="*"),
            Grant(model="invoice_line", commands="*", clear="*", write="*"),
            Grant(model="payment", commands="*", clear="*", write="*"),
        ),
    ),
)
