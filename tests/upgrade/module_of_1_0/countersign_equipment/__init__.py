"""Equipment: things we own and lend to those we deal with."""

from countersign.declare import Date, Grant, Model, Module, Move, Ref, Role, Select, Text, Work, Workflow


async def end_loan(work: Work) -> None:
    """Empty the fields of the loan."""
    await work.change(borrower=None, contact=None, due=None)


class Equipment(Model, plural="Equipment"):
    """A thing we own and lend."""

    title = Text(required=True, index=True)
    serial = Text(unique=True, longest=40, label="Serial number")
    state = Select("in_stock", "lent", "scrapped", index=True)
    borrower = Ref("party", on_delete="clear")
    contact = Text(personal="PERSON", help="Who has it in hand")
    due = Date(index=True, help="The day it should be back")

    workflow = Workflow(
        "state",
        lend=Move("in_stock", to="lent", inputs=("borrower", "contact", "due"), help="Hand it out."),
        take_back=Move("lent", to="in_stock", effect=end_loan, help="It is back, and whole."),
        scrap=Move("in_stock", "lent", to="scrapped", needs_approval=True, help="It is lost or beyond repair."),
    )


module = Module(
    "equipment",
    version="1.0.0",
    needs=("party",),
    models=(Equipment,),
    roles=(
        Role(
            "storekeeper",
            Grant(model="equipment", commands="*", clear="*", write="*"),
            Grant(model="party", clear=("kind",), masked=("name",)),
        ),
    ),
)
